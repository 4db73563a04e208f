//! Answers that are lost on the way: a lease that was granted and a release that was done, of which the holder never hears;
//! and a release that arrives when the lease is over.

use super::worker::{Held, PATIENCE, appears, hold_for, hold_of};
use fencegate_tests::{EmulatedGate, Proxy, Said, Server};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A `hold` by way of a port: for a holder, with flags, around a script.
type Hold<'a> = &'a dyn Fn(u16, &str, &[&str], &str) -> Command;

/// A coordinator, and what tells its requests apart on the line.
struct Service<'a> {
    /// Its port on 127.0.0.1.
    port: u16,
    hold: Hold<'a>,
    /// Whether somebody holds the lock, as the server has it.
    is_held: &'a dyn Fn() -> bool,
    /// What is in a request that takes the lock, and in no other that comes before it.
    takes: &'a [u8],
    /// What is in a request that gives it back, and in no other.
    gives_back: &'a [u8],
    /// Whether a lock there tells whose acquire it was for. Where it does not, one that was granted unheard is left to lapse.
    tells: bool,
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn token(said: &Said) -> u64 {
    assert_eq!(said.status, 0, "{said:?}");
    said.out.trim().parse().unwrap_or_else(|_| panic!("{said:?}"))
}

impl Service<'_> {
    fn begin(&self, port: u16, holder: &str, flags: &[&str], script: &str) -> Held {
        Held::begin((self.hold)(port, holder, flags, script))
    }

    fn leaves_nothing_unheard(&self) {
        // The first one finds tables and scripts, or makes them, undisturbed.
        let before = token(&self.begin(self.port, "a#1", &[], "echo $FENCEGATE_TOKEN").end());
        self.never_takes_up_what_was_granted_unheard(before);
        self.gives_back_though_the_answer_is_lost();
    }

    /// Nobody knows since when it runs. Mostly no TTL has to pass for it: the holder itself takes back what it has never
    /// heard of, and is granted another.
    fn never_takes_up_what_was_granted_unheard(&self, before: u64) {
        let proxy = Proxy::before(self.port);
        proxy.die_behind(self.takes);
        let a = self.begin(proxy.port, "a#1", &["--status"], "echo $FENCEGATE_TOKEN");
        until("nobody asks", || proxy.is_dead());
        until("it is not granted", || (self.is_held)());
        proxy.cut();
        until("nobody comes again", || proxy.turned_away() > 0);
        proxy.mend();
        let a = a.end();
        assert!(token(&a) > before + 1, "{a:?} after {before}");
        let undone = a.err.contains("an earlier acquire had been granted unheard; it was undone\n");
        assert_eq!(undone, self.tells, "{a:?}");
        assert!(!(self.is_held)(), "{a:?}");
    }

    /// Another has it by then, whom the release that is sent again spares.
    fn gives_back_though_the_answer_is_lost(&self) {
        let folder = tempfile::tempdir().unwrap();
        let [up, go] = ["up", "go"].map(|name| folder.path().join(name));
        let proxy = Proxy::before(self.port);
        proxy.die_behind(self.gives_back);
        let a = self.begin(proxy.port, "a#1", &["--status"], "echo $FENCEGATE_TOKEN; exit 7");
        until("nothing is given back", || proxy.is_dead());
        until("it is not given back", || !(self.is_held)());
        let script =
            format!("echo $FENCEGATE_TOKEN > {}; until [ -e {} ]; do sleep 0.05; done", up.display(), go.display());
        let b = self.begin(self.port, "b#1", &["--wait", "0s"], &script);
        let b_token: u64 = appears(&up).parse().unwrap();
        proxy.cut();
        until("nobody comes again", || proxy.turned_away() > 0);
        proxy.mend();
        let a = a.end();
        assert_eq!(a.status, 7, "{a:?}");
        assert!(a.out.trim().parse::<u64>().unwrap() < b_token, "{b_token} after {a:?}");
        // The last that it had to say: that it had no answer, and that it has one now.
        let mut lines = a.err.lines().rev();
        assert!(lines.next() == Some("released") && lines.next().unwrap().starts_with("no answer: "), "{a:?}");
        assert!((self.is_held)(), "the other's was given back: {a:?}");
        fs::write(&go, "").unwrap();
        let b = b.end();
        assert_eq!((b.status, b.err.as_str()), (0, ""), "{b:?}");
        assert!(!(self.is_held)(), "{b:?}");
    }
}

/// A `hold` of this TTL at the address that has this port.
fn at(ttl: &'static str, url: impl Fn(u16) -> String) -> impl Fn(u16, &str, &[&str], &str) -> Command {
    move |port, holder, flags, script| {
        hold_for(ttl, &url(port), holder, &[flags, &["--attempts", "10"]].concat(), script)
    }
}

/// A script of one key and one argument; one that renews has two.
const GIVES_BACK_IN_REDIS: &[u8] = b"*5\r\n$7\r\nEVALSHA\r\n";

/// What a server says to one command.
fn redis(server: &Server, words: &[&str]) -> String {
    Said::by(Command::new("redis-cli").args(["-p", &server.port.to_string()]).args(words)).out
}

#[test]
fn in_etcd() {
    let server = Server::etcd();
    Service {
        port: server.port,
        hold: &at("20s", |port| format!("etcd://127.0.0.1:{port}")),
        is_held: &|| !Said::by(&mut server.etcdctl(&["get", "press-7"])).out.is_empty(),
        // The epoch is read in the transaction that makes the key, and nowhere else.
        takes: b"press-7/epoch",
        // An operation of a transaction that deletes the key.
        gives_back: b"\x1a\x09\x0a\x07press-7",
        tells: true,
    }
    .leaves_nothing_unheard();
}

#[test]
fn in_postgresql() {
    let server = Server::postgres();
    let held = "SELECT count(*) FROM fencegate_lease WHERE ends > now()";
    Service {
        port: server.port,
        hold: &at("20s", |port| format!("postgres://tester@127.0.0.1:{port}/postgres")),
        is_held: &|| Said::by(&mut server.psql(&["-c", held])).out == "1\n",
        // Statements of four and of three parameters, the first of which is the lock.
        takes: b"\0\x04\0\0\0\x07press-7",
        gives_back: b"\0\x03\0\0\0\x07press-7",
        tells: true,
    }
    .leaves_nothing_unheard();
}

#[test]
fn in_redis() {
    let server = Server::redis();
    Service {
        port: server.port,
        hold: &at("20s", |port| format!("redis://127.0.0.1:{port}")),
        is_held: &|| redis(&server, &["EXISTS", "press-7"]) == "1\n",
        takes: b"{press-7}:token",
        gives_back: GIVES_BACK_IN_REDIS,
        tells: true,
    }
    .leaves_nothing_unheard();
}

#[test]
fn in_zookeeper() {
    let server = Server::zookeeper();
    // Its own client takes a second to start. A lock that is free has its folder and its epoch below the one of all locks.
    let nodes = || {
        let said = server.zookeeper_says("srvr");
        said.lines().find_map(|line| line.strip_prefix("Node count: ")?.parse::<u32>().ok()).unwrap()
    };
    let free = nodes() + 3;
    // A request to delete the node: what it is, how long the name is with the ten digits that are its end, and the name.
    let node = b"/fencegate/press-7/lease-a%231.";
    let delete = [&[0, 0, 0, 2, 0, 0, 0, u8::try_from(node.len() + 10).unwrap()], &node[..]].concat();
    Service {
        port: server.port,
        hold: &at("20s", |port| format!("zookeeper://127.0.0.1:{port}")),
        is_held: &|| nodes() > free,
        takes: b"/fencegate/press-7/lease-",
        gives_back: &delete,
        tells: true,
    }
    .leaves_nothing_unheard();
}

#[test]
fn in_dynamodb() {
    let server = Server::moto();
    server.dynamodb_table("locks", "lock");
    let get = ["dynamodb", "get-item", "--table-name", "locks", "--key", r#"{"lock": {"S": "press-7"}}"#];
    let hold = at("20s", |_| "dynamodb://eu-central-1/locks".to_owned());
    Service {
        port: server.port,
        hold: &|port, holder, flags, script| {
            let mut command = hold(port, holder, flags, script);
            server.for_aws(&mut command).env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"));
            command
        },
        is_held: &|| Said::by(&mut server.aws(&get)).json()["Item"]["held"]["BOOL"] == true,
        takes: b"if_not_exists(#token",
        gives_back: b"SET #held = :no",
        tells: true,
    }
    .leaves_nothing_unheard();
}

/// Of two servers both are needed, so that what one of them answers decides.
#[test]
fn in_redlock() {
    let [server, other] = [(); 2].map(|()| Server::redis());
    Service {
        port: server.port,
        hold: &at("10s", |port| format!("redlock://127.0.0.1:{port},127.0.0.1:{}", other.port)),
        is_held: &|| redis(&server, &["EXISTS", "press-7"]) == "1\n",
        // Scripts of three keys, and of two arguments and of one. One that renews has two as well, and comes later.
        takes: b"*8\r\n$7\r\nEVALSHA\r\n",
        gives_back: b"*7\r\n$7\r\nEVALSHA\r\n",
        tells: false,
    }
    .leaves_nothing_unheard();
}

#[test]
fn in_a_gate() {
    let gate = EmulatedGate::new();
    gate.done("epoch --channel 3 --set 65000");
    let key = gate.key_file();
    // Requests on the line: what they are, the channel, and the TTL or the epoch, none of which has a zero byte in it.
    let asked = |what: u8, number: u64| [&[what, 3][..], &varint(number)].concat();
    Service {
        port: gate.port.rsplit(':').next().unwrap().parse().unwrap(),
        hold: &|port, holder, flags, script| {
            let flags = [&["--attempts", "10", "--key-file", key.to_str().unwrap()], flags].concat();
            hold_of("3", "10s", &format!("gate:tcp://127.0.0.1:{port}"), holder, &flags, script)
        },
        is_held: &|| {
            let (_, log) = gate.ask("log");
            let mut events =
                log["events"].as_array().unwrap().iter().rev().map(|event| event["event"].as_str().unwrap());
            events.find(|event| ["granted", "released"].contains(event)) == Some("granted")
        },
        takes: &asked(9, 10_000_000),
        gives_back: &asked(6, 65_000),
        tells: false,
    }
    .leaves_nothing_unheard();
}

/// A number as the gate's protocol has it: seven bits a byte, the lowest first.
fn varint(number: u64) -> Vec<u8> {
    let low = u8::try_from(number & 0x7f).unwrap();
    if number < 0x80 { vec![low] } else { [vec![low | 0x80], varint(number >> 7)].concat() }
}

/// It was sent in time. The holder has long given it up, and another has the lock.
#[test]
fn a_release_that_arrives_after_the_ttl_spares_the_next_holder() {
    let (server, folder) = (Server::redis(), tempfile::tempdir().unwrap());
    assert_eq!(redis(&server, &["CONFIG", "SET", "slowlog-log-slower-than", "0"]), "OK\n");
    let hold = at("5s", |port| format!("redis://127.0.0.1:{port}"));
    token(&Held::begin(hold(server.port, "a#0", &[], "echo $FENCEGATE_TOKEN")).end());
    let proxy = Proxy::before(server.port);
    proxy.die_before(GIVES_BACK_IN_REDIS);
    let a = Held::begin(hold(proxy.port, "a#1", &["--status"], "exit 7"));
    until("nothing is given back", || proxy.is_dead());
    assert_eq!(redis(&server, &["SLOWLOG", "RESET"]), "OK\n");
    let [up, go] = ["up", "go"].map(|name| folder.path().join(name));
    let script = format!("echo up > {}; until [ -e {} ]; do sleep 0.05; done", up.display(), go.display());
    let b = Held::begin(hold(server.port, "b#1", &[], &script));
    appears(&up);
    let a = a.end();
    assert!(a.status == 7 && a.err.contains("no answer: ") && !a.err.contains("released"), "{a:?}");

    // A release's argument is the lock's value, as was what the acquire wrote.
    let arrived = || redis(&server, &["SLOWLOG", "GET", "-1"]).contains("a#1:");
    assert!(!arrived(), "that was to come late");
    proxy.deliver();
    until("it never arrives", arrived);
    assert!(redis(&server, &["GET", "press-7"]).starts_with("b#1:"));
    fs::write(&go, "").unwrap();
    let b = b.end();
    assert_eq!((b.status, b.err.as_str()), (0, ""), "{b:?}");
}
