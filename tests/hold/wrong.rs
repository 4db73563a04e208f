//! What is wrong is one clear sentence and the right status, and nothing is left held.

use super::worker::{Held, PATIENCE, etcd_url, hold, hold_of, key_of, odd, postgres_url};
use fencegate_tests::{EmulatedGate, Said, Server, fencegate};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn what_is_wrong_is_one_sentence_and_nothing_is_held() {
    let server = Server::etcd();
    let url = etcd_url(&server);
    let said = |arguments: &[&str]| {
        let said = Said::by(fencegate().arg("hold").args(arguments));
        assert_eq!((said.out.as_str(), said.err.lines().count()), ("", 1), "{said:?}");
        said
    };
    let with = |coordinator: &str, ttl: &str, more: &[&str]| {
        let flags = ["--coordinator", coordinator, "--lock", "x", "--drift", "1ppm", "--ttl", ttl];
        said(&[&flags[..], more].concat())
    };
    let yes: &[&str] = &["--", "true"];
    for (coordinator, ttl, more, status, words) in [
        ("etcd://127.0.0.1:1", "1s", yes, 3, "no answer from the coordinator: etcd: "),
        ("zookeeper://127.0.0.1:1", "1s", yes, 3, "no answer from the coordinator: ZooKeeper: "),
        ("zookeeper://a:b@127.0.0.1", "1s", yes, 2, "coordinator: after zookeeper:// come host:port"),
        ("redis://127.0.0.1:1", "1s", yes, 3, "no answer from the coordinator: Redis: "),
        ("postgres://127.0.0.1:1/x?user=x", "1s", yes, 3, "no answer from the coordinator: PostgreSQL: "),
        (
            "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
            "1s",
            yes,
            3,
            "Redlock: 0 of 3 servers answered; no answer: Redis",
        ),
        ("redlock://127.0.0.1:1,127.0.0.1:1", "1s", yes, 2, "coordinator: Redlock: a server is named twice"),
        ("redlock://", "1s", yes, 2, "coordinator: after redlock:// come host:port"),
        ("paper://desk", "1s", yes, 2, "coordinator: `paper://desk`: one of etcd://"),
        ("etcd://", "1s", yes, 2, "coordinator: after etcd:// come host:port"),
        (&url, "1500ms", yes, 2, "ttl_us: etcd takes whole seconds"),
        (&url, "1s", &["--rtt", "400ms", "--kill-before", "100ms", "--", "true"], 2, "rtt_us: "),
        (&url, "1s", &["--kill-before", "1s", "--", "true"], 2, "kill_before_us: "),
        (&url, "1s", &["--holder", "twelve-bytes", "--", "true"], 2, "holder: `--holder twelve-bytes`"),
        (&url, "3s", &["--", "/nowhere/nothing"], 127, "command: `/nowhere/nothing`: there is none"),
        (&url, "3s", &["--", "/etc/passwd"], 126, "command: `/etc/passwd` is not a program"),
        (&url, "3s", &["--gate", "tcp://127.0.0.1:1", "--", "true"], 2, "key_file: missing"),
    ] {
        let said = with(coordinator, ttl, more);
        assert_eq!(said.status, status, "{coordinator} {ttl} {more:?}: {said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    let odd = "ü 'x' \"y\" $z; --";
    let arguments = ["hold", "--coordinator", &url, "--lock", odd, "--drift", "1ppm", "--ttl", "2s", "--", "true"];
    let said = Said::by(fencegate().args(arguments));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "any name that can be read is a name");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");
    assert_eq!(Said::by(&mut server.etcdctl(&["lease", "list"])).out.trim(), "found 0 leases");
}

/// What a lock service keeps beside one lock is not to be overwritten by another that is called so.
#[test]
fn a_lock_is_not_called_what_another_keeps_beside_it() {
    let (etcd, redis) = (Server::etcd(), Server::redis());
    let at_redis = format!("redis://127.0.0.1:{}", redis.port);
    let at_redlock = format!("redlock://127.0.0.1:{}", redis.port);
    let said = |url: &str, lock: &str| Held::begin(hold_of(lock, "3s", url, "a", &[], "true")).end();
    for url in [&etcd_url(&etcd), &at_redis, &at_redlock] {
        assert_eq!(said(url, "press-7").status, 0, "{url}");
        for lock in ["press-7/epoch", "{press-7}:token", "{press-7}:epoch"] {
            let said = said(url, lock);
            if url.starts_with("etcd") != lock.ends_with("/epoch") {
                assert_eq!((said.status, said.err.as_str()), (0, ""), "nobody keeps anything there: {url} {lock}");
                continue;
            }
            assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{url}: {said:?}");
            assert!(said.err.contains(&format!("lock: `--lock {lock}`: ")), "{url}: {said:?}");
        }
        assert_eq!(said(url, "press-7").status, 0, "and it is as it was: {url}");
    }
}

/// Whatever is wrong with an address: what is said of it may be read by more people than may read the password.
#[test]
fn no_address_is_shown_with_its_password() {
    for rest in [
        "://u:geheim@db/x",
        "://u:ge@heim@db/x",
        "://u:geheim@db:x/y",
        "://db/x?user=u&password=geheim",
        "://h:1/?user=u&password=geheim",
    ] {
        for scheme in ["postgress", "paper", "etcd", "zookeeper", "postgres", "redis", "redlock", "dynamodb", "gate"] {
            let url = format!("{scheme}{rest}");
            for words in [&["hold", "--ttl", "3s", "--drift", "1ppm"][..], &["doctor", "--look", "1ms"]] {
                let mut command = fencegate();
                command.args(words).args(["--coordinator", &url, "--lock", "1"]);
                if words[0] == "hold" {
                    command.args(["--", "true"]);
                }
                let said = Said::by(&mut command);
                assert!(said.status == 2 || said.status == 3, "{url}: {said:?}");
                assert!(!said.err.contains("heim") && said.err.lines().count() == 1, "{url}: {said:?}");
            }
        }
    }
    let said = Said::by(fencegate().args(["doctor", "--look", "1ms", "--coordinator", "u:geheim@db"]));
    assert!(said.status == 2 && !said.err.contains("heim"), "{said:?}");
}

/// How to send a server a signal.
type Signal<'a> = &'a dyn Fn(&str);

/// A server that takes connections and says nothing is as good as none.
#[test]
fn a_server_that_is_frozen_is_one_that_does_not_answer() {
    let (etcd, postgres, redis, gate) = (Server::etcd(), Server::postgres(), Server::redis(), EmulatedGate::new());
    let key = gate.key_file();
    let at_redis = format!("redis://127.0.0.1:{}", redis.port);
    let at_gate =
        hold_of("3", "3s", &format!("gate:{}", gate.port), "a", &["--key-file", key.to_str().unwrap()], "echo no");
    let holds: [(Command, Signal<'_>); 4] = [
        (hold(&etcd_url(&etcd), "a", &[], "echo no"), &|name| etcd.signal(name)),
        (hold(&postgres_url(&postgres), "a", &[], "echo no"), &|name| postgres.signal(name)),
        (hold(&at_redis, "a", &[], "echo no"), &|name| redis.signal(name)),
        (at_gate, &|name| gate.signal(name)),
    ];
    for (command, signal) in holds {
        signal("STOP");
        let said = Held::begin(command).end();
        signal("CONT");
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (3, "", 1), "{said:?}");
        assert!(said.err.contains("no answer from the coordinator: "), "{said:?}");
    }
    // What they were asked for while they stood still does not stay held: it lapses.
    let answer = Held::begin(hold(&etcd_url(&etcd), "b", &[], "echo yes")).end();
    assert_eq!((answer.status, answer.out.as_str()), (0, "yes\n"), "{answer:?}");
    let answer = Held::begin(hold(&postgres_url(&postgres), "b", &[], "echo yes")).end();
    assert_eq!((answer.status, answer.out.as_str()), (0, "yes\n"), "{answer:?}");
    let answer = Held::begin(hold(&at_redis, "b", &[], "echo yes")).end();
    assert_eq!((answer.status, answer.out.as_str()), (0, "yes\n"), "{answer:?}");
}

/// Neither a server that may only be read, as a standby, nor one that is frozen, as a primary that is gone, hides the one
/// that is named behind them. Each is a database of its own here, and the lock has never been at the first two.
#[test]
fn a_server_that_is_frozen_or_only_read_hides_no_other() {
    let (read, frozen, alive) = (Server::postgres(), Server::postgres(), Server::postgres());
    for statement in ["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"] {
        let said = Said::by(&mut read.psql(&["-c", statement]));
        assert_eq!(said.status, 0, "{said:?}");
    }
    let begun = Instant::now();
    while Said::by(&mut read.psql(&["-c", "SHOW transaction_read_only"])).out != "on\n" {
        assert!(begun.elapsed() < PATIENCE, "it can still be written");
        sleep(Duration::from_millis(20));
    }
    let ports = [&read, &frozen, &alive].map(|server| format!("127.0.0.1:{}", server.port)).join(",");
    frozen.signal("STOP");
    let said = Held::begin(hold(&format!("postgres://tester@{ports}/postgres"), "a", &[], "sleep 3; echo yes")).end();
    frozen.signal("CONT");
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "yes\n", ""));
    // A whole TTL of work, renewed at the one that answers and can be written.
    let row = Said::by(&mut alive.psql(&["-c", "SELECT lock, holder FROM fencegate_lease"]));
    assert!(row.out.starts_with("press-7|a#"), "{row:?}");
    for other in [&read, &frozen] {
        let table = Said::by(&mut other.psql(&["-c", "SELECT to_regclass('fencegate_lease') IS NULL"]));
        assert_eq!(table.out, "t\n", "nobody has worked there");
    }
    // Who says that any will do gets what is named first.
    let any = format!("postgres://tester@{ports}/postgres?target_session_attrs=any");
    let said = Held::begin(hold(&any, "a", &[], "echo no")).end();
    assert_eq!((said.status, said.out.as_str()), (3, ""), "{said:?}");
    assert!(said.err.contains("in a read-only transaction"), "{said:?}");
}

#[test]
fn what_is_wrong_at_postgresql_and_redis_is_one_sentence() {
    let (postgres, redis) = (Server::postgres(), Server::redis());
    let at_redis = format!("redis://127.0.0.1:{}", redis.port);
    for url in [&postgres_url(&postgres), &at_redis] {
        let said = Held::begin(odd(url)).end();
        assert_eq!((said.status, said.err.as_str()), (0, ""), "any name that can be read is a name: {url}");
    }
    let said = Held::begin(hold_of("press-7", "3000500us", &at_redis, "a", &[], "echo no")).end();
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");
    assert!(said.err.contains("ttl_us: Redis takes whole milliseconds"), "{said:?}");

    let rows = Said::by(&mut postgres.psql(&["-c", "SELECT lock FROM fencegate_lease WHERE ends > now()"]));
    assert_eq!((rows.status, rows.out.as_str()), (0, ""), "nothing is left held");
    let cli = |words: &[&str]| Said::by(Command::new("redis-cli").args(["-p", &redis.port.to_string()]).args(words));
    let left = cli(&["--scan"]).out;
    assert!(left.lines().all(|key| key.ends_with("}:token")), "nothing is left held: {left}");
}

#[test]
fn what_is_wrong_at_a_gate_is_one_sentence() {
    let (gate, other) = (EmulatedGate::new(), EmulatedGate::new());
    let (key, strange) = (gate.key_file(), other.key_file());
    let (key, strange) = (key.to_str().unwrap(), strange.to_str().unwrap());
    let (url, etcd) = (format!("gate:{}", gate.port), "etcd://127.0.0.1:1".to_owned());
    for (lock, ttl, flags, status, words) in [
        ("3", "3s", &["--key-file", strange][..], 3, "no answer from the coordinator: "),
        ("3", "3s", &[], 2, "key_file: missing"),
        ("3", "3s", &["--key-file", "/nowhere"], 2, "key_file: "),
        ("press-7", "3s", &["--key-file", key], 2, "lock: `--lock press-7`: "),
        ("256", "3s", &["--key-file", key], 2, "lock: `--lock 256`: "),
        ("200", "3s", &["--key-file", key], 2, "coordinator: the gate refused: bad_channel"),
        // A channel of somebody else's authority, and a lease longer than any window there.
        ("0", "3s", &["--key-file", key], 2, "coordinator: the gate refused: authority"),
        ("3", "10h", &["--key-file", key], 2, "coordinator: the gate refused: range"),
    ] {
        let said = Held::begin(hold_of(lock, ttl, &url, "a", flags, "echo no")).end();
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (status, "", 1), "{said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    // Somebody else's key: no gate would ever answer.
    let of_b = key_of(&gate, "--holder b");
    for (at, flags) in [(&url, &["--key-file", &of_b][..]), (&etcd, &["--gate", &gate.port, "--key-file", &of_b])] {
        for (holder, lock) in [("a", "3"), ("hold", "3"), ("a#b", "3")] {
            let said = Held::begin(hold_of(lock, "3s", at, holder, flags, "echo no")).end();
            assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{at}: {said:?}");
            assert!(said.err.contains("key_file: this key is b's; say --holder b"), "{at}: {said:?}");
        }
    }
    assert_eq!(gate.channel(3)["token"], 0, "nothing was granted");
    let said = Held::begin(hold_of("3", "3s", &url, "b", &["--key-file", &of_b], "echo yes")).end();
    assert_eq!((said.status, said.out.as_str()), (0, "yes\n"), "{said:?}");
    let fraction = hold_of("3", "3000500us", &url, "a", &["--key-file", key], "echo yes");
    let said = Held::begin(fraction).end();
    assert_eq!((said.status, said.out.as_str()), (0, "yes\n"), "a gate's leases are of microseconds: {said:?}");
}
