//! TTLs below what a service gives at the least: it says so, or lengthens the lease and nobody's window.

use super::TTL;
use super::worker::{
    Held, appears, etcd_url, grows_only_with_answers, hold, hold_of, is_silent, last, marks, now, on_a_terminal,
    postgres_url, zookeeper_url,
};
use fencegate_tests::{Said, Server};
use std::process::Command;

/// What the server keeps for longer is of no use to the holder: when no more answers come, its command is dead a TTL later.
fn no_window_is_lengthened(server: &Server, url: &str, is_longer: impl Fn()) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("marks");
    let script = format!("trap '' TERM; {}", marks(&file));
    let a = Held::begin(on_a_terminal(&hold(url, "a", &["--status"], &script)));
    appears(&file);
    is_longer();
    server.signal("STOP");
    let frozen = now();
    let a = a.end();
    server.signal("CONT");
    assert_eq!(a.status, 122, "{a:?}");
    grows_only_with_answers(&a.out, TTL);
    assert!(last(&file) < frozen + TTL, "no window reaches further than a TTL past the last answer: {a:?}");
    is_silent(&file);
}

#[test]
fn a_lease_that_etcd_lengthens_lengthens_no_window() {
    let server = Server::etcd_with_long_leases();
    no_window_is_lengthened(&server, &etcd_url(&server), || {
        let leases = Said::by(&mut server.etcdctl(&["lease", "list"])).out;
        let lease = Said::by(&mut server.etcdctl(&["lease", "timetolive", leases.lines().nth(1).unwrap()]));
        assert!(lease.out.contains("granted with TTL(6s)"), "{lease:?}");
    });
}

#[test]
fn a_session_that_zookeeper_lengthens_lengthens_no_window() {
    let server = Server::zookeeper_with_long_sessions();
    no_window_is_lengthened(&server, &zookeeper_url(&server), || {
        let sessions = server.zookeeper_says("cons");
        assert!(sessions.contains(",to=12000,"), "{sessions}");
    });
}

/// Who takes any number has no least one but what a round trip takes: nothing that is granted is heard of in time.
#[test]
fn a_ttl_that_no_service_can_give_is_one_sentence_and_nothing_is_held() {
    let (etcd, zookeeper, redis) = (Server::etcd(), Server::zookeeper(), Server::redis());
    let (postgres, moto) = (Server::postgres(), Server::moto());
    moto.dynamodb_table("locks", "lock");
    let at_redis = format!("127.0.0.1:{}", redis.port);
    for (url, ttl, status, words) in [
        (etcd_url(&etcd), "500ms", 2, "ttl_us: etcd takes whole seconds, at least one"),
        (zookeeper_url(&zookeeper), "500us", 2, "ttl_us: ZooKeeper takes whole milliseconds, from 1 to "),
        (format!("redis://{at_redis}"), "500us", 2, "ttl_us: Redis takes whole milliseconds, at least one"),
        (
            format!("redlock://{at_redis}"),
            "500us",
            2,
            "ttl_us: the margin for drift and offset is as long as the lease",
        ),
        (format!("redlock://{at_redis}"), "3500us", 2, "ttl_us: Redis takes whole milliseconds, at least one"),
        (postgres_url(&postgres), "20us", 3, "no answer from the coordinator: "),
        ("dynamodb://eu-central-1/locks".to_owned(), "20us", 3, "no answer from the coordinator: "),
    ] {
        let mut command = hold_of("press-7", ttl, &url, "a", &["--rtt", "1us", "--kill-before", "1us"], "echo no");
        moto.for_aws(&mut command);
        let said = Held::begin(command).end();
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (status, "", 1), "{url}: {said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    let held = ["-p", &redis.port.to_string(), "EXISTS", "press-7"];
    assert_eq!(Said::by(Command::new("redis-cli").args(held)).out, "0\n");
    assert_eq!(Said::by(&mut etcd.etcdctl(&["get", "--prefix", ""])).out, "");
    assert_eq!(Said::by(&mut etcd.etcdctl(&["lease", "list"])).out.trim(), "found 0 leases");
    // All of them can be had by whoever asks for a TTL that there is.
    for url in [etcd_url(&etcd), zookeeper_url(&zookeeper), postgres_url(&postgres)] {
        let said = Held::begin(hold(&url, "b", &["--wait", "0s"], "echo yes")).end();
        assert_eq!((said.status, said.out.as_str()), (0, "yes\n"), "{url}: {said:?}");
    }
}
