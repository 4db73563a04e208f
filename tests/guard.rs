//! What `fencegate guard` prints, run by the very servers that it is for, or by what stands in for them.

#[path = "guard/cloud.rs"]
mod cloud;
#[path = "guard/mongodb.rs"]
mod mongodb;

use fencegate_tests::{Said, Server, fencegate};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A write as its holder makes it.
#[derive(Clone, Copy, Debug)]
struct Write {
    epoch: &'static str,
    token: &'static str,
    holder: &'static str,
    /// Of no meaning under `greater`.
    seq: &'static str,
    value: &'static str,
}

impl Write {
    /// Whether its numbers are such: whole, in range, and written as such.
    fn has_numbers(&self) -> bool {
        let is_number = |text: &str, least, most| {
            text.parse::<u64>().is_ok_and(|n| (least..=most).contains(&n) && n.to_string() == text)
        };
        is_number(self.epoch, 0, u32::MAX.into())
            && is_number(self.token, 1, u64::MAX)
            && is_number(self.seq, 1, u64::MAX)
    }
}

const fn write(
    epoch: &'static str,
    token: &'static str,
    holder: &'static str,
    seq: &'static str,
    value: &'static str,
) -> Write {
    Write { epoch, token, holder, seq, value }
}

/// A store with a printed guard: makes a write and says whether it was done; and shows the value.
trait Guarded {
    fn takes(&self, resource: &str, write: Write) -> bool;
    fn value(&self, resource: &str) -> String;
}

/// The guard as a file, printed by the command.
fn printed(system: &str, policy: &str, folder: &Path) -> PathBuf {
    let said = Said::by(fencegate().args(["guard", system, "--policy", policy]));
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let file = folder.join(format!("guard-{policy}"));
    std::fs::write(&file, said.out).unwrap();
    file
}

/// Many writes under one lease: counted, in order, each once.
fn at_least(store: &impl Guarded) {
    let a = |seq, value| write("0", "33", "press-a", seq, value);
    let b = |seq, value| write("0", "34", "press-b", seq, value);
    assert!(store.takes("press-7", a("1", "up")), "the first raise");
    assert!(store.takes("press-7", a("2", "down")), "the same holder again");
    assert!(!store.takes("press-7", a("2", "twice")), "repeated by the network");
    assert!(!store.takes("press-7", a("1", "late")), "and late");
    assert!(!store.takes("press-7", write("0", "33", "press-b", "9", "not mine")), "the stamp in another's hands");
    assert!(
        !store.takes("press-7", write("0", "33", "PRESS-A", "9", "not mine")),
        "nor is a holder spelt otherwise the same"
    );
    assert_eq!(store.value("press-7"), "down");
    assert!(store.takes("press-7", b("1", "up")), "raised; the count begins anew");
    assert!(!store.takes("press-7", a("3", "stale")), "the zombie");
    assert!(!store.takes("press-7", write("0", "9", "press-c", "1", "stale")), "9 is not above 34, whatever text says");
    assert_eq!(store.value("press-7"), "up");
    assert!(store.takes("press-7", write("1", "2", "press-a", "1", "restored")), "the operator's epoch comes first");
    assert!(!store.takes("press-7", b("2", "stale")));
    assert!(!store.takes("press-7", write("1", "0", "press-a", "1", "zero")), "zero is no token");
    assert_eq!(store.value("press-7"), "restored");
    // 2^53 and its successor are one double; 2^63 - 1 is the highest that every store has.
    assert!(store.takes("press-7", write("1", "9007199254740992", "press-a", "1", "even")));
    assert!(store.takes("press-7", write("1", "9007199254740993", "press-b", "1", "odd")));
    assert!(!store.takes("press-7", write("1", "9007199254740992", "press-a", "2", "stale")));
    assert!(store.takes("press-7", write("1", "9223372036854775807", "press-a", "1", "highest")));
    assert_eq!(store.value("press-7"), "highest");
    // At a new epoch any token is the highest. What is none would stay there, above all that are.
    for token in ["abc", "00", "0", "0.5", "-1", "100000000000000000000", "18446744073709551616"] {
        assert!(!store.takes("press-7", write("2", token, "press-a", "1", "no token")), "{token} is no token");
        assert_eq!(store.value("press-7"), "highest", "{token}");
    }
    // An epoch that is none would do the same, or be cut to one that is, and so take the fence back.
    for epoch in ["1.4", "2.5", "-1", "4294967296", "18446744073709551616"] {
        assert!(!store.takes("press-7", write(epoch, "1", "press-a", "1", "no epoch")), "{epoch} is no epoch");
        assert_eq!(store.value("press-7"), "highest", "{epoch}");
    }
    for seq in ["1.4", "1.5", "18446744073709551616"] {
        let write = write("1", "9223372036854775807", "press-a", seq, "no count");
        assert!(!store.takes("press-7", write), "{seq} is no count");
        assert_eq!(store.value("press-7"), "highest", "{seq}");
    }
    assert!(store.takes("press-8", write("0", "1", "press-a", "1", "other")), "another resource has another fence");
}

/// Whether the highest token that there is fits; a store where it does not keeps it out.
fn highest(store: &impl Guarded, fits: bool) {
    assert_eq!(store.takes("press-7", write("2", "18446744073709551615", "press-b", "1", "end")), fits);
    assert!(!store.takes("press-7", write("2", "18446744073709551614", "press-b", "2", "below the end")));
    assert_eq!(store.value("press-7"), if fits { "end" } else { "highest" });
}

/// The ticket table: ticket 402 is worked off once, by whoever holds it last, and each token writes once.
fn greater(store: &impl Guarded) {
    let worker = |token, holder, value| write("0", token, holder, "1", value);
    assert!(store.takes("402", worker("10481", "worker-a", "begun")));
    assert!(store.takes("402", worker("10482", "worker-b", "refunded")));
    assert!(!store.takes("402", worker("10482", "worker-b", "refunded twice")), "a token writes once");
    assert!(!store.takes("402", worker("10482", "worker-c", "not mine")));
    assert!(!store.takes("402", worker("10481", "worker-a", "late")), "the worker that was frozen");
    assert!(!store.takes("402", worker("9999", "worker-d", "stale")));
    assert_eq!(store.value("402"), "refunded");
    assert!(store.takes("403", worker("10482", "worker-b", "refunded")), "each ticket has its own fence");
    assert!(store.takes("402", write("1", "1", "worker-a", "1", "after the restore")));
    assert_eq!(store.value("402"), "after the restore");
}

struct Postgres<'a>(&'a Server, PathBuf);

impl Guarded for Postgres<'_> {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let set = |name: &str, value: &str| ["-v".to_owned(), format!("{name}={value}")];
        let mut psql = self.0.psql(&[]);
        psql.args(set("resource", resource)).args(set("epoch", w.epoch)).args(set("token", w.token));
        psql.args(set("holder", w.holder)).args(set("seq", w.seq)).args(set("value", w.value));
        let said = Said::by(psql.arg("-f").arg(&self.1));
        if said.status != 0 && !w.has_numbers() {
            return false;
        }
        assert_eq!(said.status, 0, "{said:?}");
        assert!(said.out.contains("UPDATE 1\n") != said.out.contains("UPDATE 0\n"), "{said:?}");
        said.out.contains("UPDATE 1\n")
    }

    fn value(&self, resource: &str) -> String {
        let query = format!("SELECT value FROM fenced WHERE resource = '{resource}'");
        Said::by(&mut self.0.psql(&["-c", &query])).out.trim().to_owned()
    }
}

#[test]
fn postgresql_runs_its_guard() {
    let server = Server::postgres();
    let at = Postgres(&server, printed("postgres", "at-least", server.folder()));
    at_least(&at);
    highest(&at, true);
    let said = Said::by(&mut server.psql(&["-c", "DROP TABLE fenced"]));
    assert_eq!(said.status, 0, "{said:?}");
    greater(&Postgres(&server, printed("postgres", "greater", server.folder())));
}

struct Mysql<'a>(&'a Server, PathBuf);

impl Guarded for Mysql<'_> {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let Write { epoch, token, holder, seq, value } = w;
        let set = format!(
            "SET @resource = '{resource}', @epoch = {epoch}, @token = {token}, @holder = '{holder}', @seq = {seq}, \
             @value = '{value}'; source {};",
            self.1.display()
        );
        let said = Said::by(&mut self.0.mariadb_client(&["test", "-e", &set]));
        if said.status != 0 && !w.has_numbers() {
            return false;
        }
        assert!(said.status == 0 && ["0\n", "1\n"].contains(&said.out.as_str()), "{said:?}");
        said.out == "1\n"
    }

    fn value(&self, resource: &str) -> String {
        let query = format!("SELECT value FROM fenced WHERE resource = '{resource}'");
        Said::by(&mut self.0.mariadb_client(&["test", "-e", &query])).out.trim().to_owned()
    }
}

/// MySQL's guard, by the server that Debian has of that kind.
#[test]
fn mariadb_runs_the_guard_of_mysql() {
    let server = Server::mariadb();
    let at = Mysql(&server, printed("mysql", "at-least", server.folder()));
    at_least(&at);
    highest(&at, true);
    let said = Said::by(&mut server.mariadb_client(&["test", "-e", "DROP TABLE fenced"]));
    assert_eq!(said.status, 0, "{said:?}");
    greater(&Mysql(&server, printed("mysql", "greater", server.folder())));
}

struct Sqlite(tempfile::TempDir, PathBuf);

impl Guarded for Sqlite {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let Write { epoch, token, holder, seq, value } = w;
        let script = format!(
            ".bail on\n.param set :resource \"'{resource}'\"\n.param set :epoch {epoch}\n.param set :token {token}\n\
             .param set :holder \"'{holder}'\"\n.param set :seq {seq}\n.param set :value \"'{value}'\"\n.read {}\n",
            self.1.display()
        );
        let file = self.0.path().join("write.sql");
        std::fs::write(&file, script).unwrap();
        let mut sqlite = Command::new("sqlite3");
        sqlite.arg(self.0.path().join("db")).arg(format!(".read {}", file.display()));
        let said = Said::by(&mut sqlite);
        // A number that does not fit is an error, and nothing is written.
        match said.out.split('|').next() {
            Some("1") if said.err.is_empty() => true,
            Some("0") if said.err.is_empty() => false,
            _ => {
                let kept_out = ["REAL", "TEXT"].map(|kind| format!("cannot store {kind} value in INTEGER column"));
                assert!(kept_out.iter().any(|why| said.err.contains(why)), "{said:?}");
                false
            }
        }
    }

    fn value(&self, resource: &str) -> String {
        let query = format!("SELECT value FROM fenced WHERE resource = '{resource}'");
        Said::by(Command::new("sqlite3").arg(self.0.path().join("db")).arg(query)).out.trim().to_owned()
    }
}

#[test]
fn sqlite_runs_its_guard() {
    let database = |policy| {
        let folder = tempfile::tempdir().unwrap();
        let guard = printed("sqlite", policy, folder.path());
        Sqlite(folder, guard)
    };
    let at = database("at-least");
    at_least(&at);
    highest(&at, false);
    greater(&database("greater"));
}

struct Redis<'a>(&'a Server, PathBuf, bool);

impl Redis<'_> {
    fn cli(&self) -> Command {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.0.port.to_string()]);
        command
    }
}

impl Guarded for Redis<'_> {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let mut cli = self.cli();
        cli.arg("--eval").arg(&self.1).args([format!("fence:{{{resource}}}"), format!("value:{{{resource}}}")]);
        cli.args([",", w.epoch, w.token, w.holder]);
        if self.2 {
            cli.arg(w.seq);
        }
        let said = Said::by(cli.arg(w.value));
        let first = said.out.lines().next().unwrap_or_default();
        assert!(["0", "1"].contains(&first) || said.out.contains("not a whole number") && !w.has_numbers(), "{said:?}");
        first == "1"
    }

    fn value(&self, resource: &str) -> String {
        Said::by(self.cli().args(["GET", &format!("value:{{{resource}}}")])).out.trim().to_owned()
    }
}

#[test]
fn redis_runs_its_guard() {
    let server = Server::redis();
    let at = Redis(&server, printed("redis", "at-least", server.folder()), true);
    at_least(&at);
    highest(&at, true);
    assert_eq!(Said::by(at.cli().arg("FLUSHALL")).status, 0);
    greater(&Redis(&server, printed("redis", "greater", server.folder()), false));
}

struct Etcd<'a>(&'a Server, PathBuf);

impl Guarded for Etcd<'_> {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let mut shell = Command::new("sh");
        shell.arg(&self.1).env("ETCDCTL_API", "3");
        shell.env("ETCDCTL_ENDPOINTS", format!("http://127.0.0.1:{}", self.0.port));
        shell.env("RESOURCE", resource).env("EPOCH", w.epoch).env("TOKEN", w.token);
        shell.env("HOLDER", w.holder).env("SEQ", w.seq).env("VALUE", w.value.replace(' ', "-"));
        let said = Said::by(&mut shell);
        match said.status {
            0 => true,
            1 => false,
            _ => {
                assert_eq!((said.status, w.has_numbers()), (2, false), "{said:?}");
                false
            }
        }
    }

    fn value(&self, resource: &str) -> String {
        let said = Said::by(&mut self.0.etcdctl(&["get", "--print-value-only", resource]));
        said.out.trim().replace('-', " ")
    }
}

#[test]
fn etcd_runs_its_guard() {
    let server = Server::etcd();
    let at = Etcd(&server, printed("etcd", "at-least", server.folder()));
    at_least(&at);
    highest(&at, true);
    greater(&Etcd(&server, printed("etcd", "greater", server.folder())));
}

/// Those that are shell scripts: a shell finds nothing wrong with them, whatever of it is not run here.
#[test]
fn the_others_are_at_least_scripts() {
    let folder = tempfile::tempdir().unwrap();
    for system in ["s3", "gcs", "dynamodb", "etcd"] {
        for policy in ["at-least", "greater"] {
            let said = Said::by(Command::new("sh").arg("-n").arg(printed(system, policy, folder.path())));
            assert_eq!((said.status, said.err.as_str()), (0, ""), "{system} {policy}");
        }
    }
}

#[test]
fn an_unknown_store_is_wrong_input() {
    let said = Said::by(fencegate().args(["guard", "paper"]));
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains("system: `paper` is none of postgres, mysql, sqlite, redis"), "{said:?}");
    let said = Said::by(fencegate().args(["guard", "redis", "--policy", "most"]));
    assert!(said.status == 2 && said.err.contains("policy: `most` is none of at-least, greater"), "{said:?}");
}
