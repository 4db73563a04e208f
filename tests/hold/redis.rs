//! Locks of Redis, which are for efficiency only.

use super::worker::{Held, PATIENCE, appears, at, first, hold, hold_for, last, marks};
use super::{hands_out_one_lease_at_a_time, story};
use fencegate_tests::{EmulatedGate, Said, Server};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}

/// What a server says to one command.
fn said(server: &Server, words: &[&str]) -> String {
    let said = Said::by(Command::new("redis-cli").args(["-p", &server.port.to_string()]).args(words));
    assert_eq!(said.status, 0, "{said:?}");
    said.out.trim().to_owned()
}

#[test]
fn redis_hands_out_one_lease_at_a_time_for_what_that_is_worth() {
    let server = Server::redis();
    let url = url(&server);
    hands_out_one_lease_at_a_time(&at(&url));
    // A crash without a disk: two holders, and the token begins anew.
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let first = Held::begin(hold(&url, "a", &[], &format!("echo $FENCEGATE_TOKEN > {}; sleep 60", up.display())));
    let token = appears(&up);
    assert_eq!(said(&server, &["FLUSHALL"]), "OK");
    let second = Held::begin(hold(&url, "b", &[], "echo $FENCEGATE_TOKEN")).end();
    assert_eq!((second.out.as_str(), token.as_str()), ("1\n", "4"), "that is why it protects no gate");
    let first = first.end();
    assert_eq!(first.status, 122, "it finds out at its next renewal: {first:?}");
    assert!(first.err.contains("the coordinator refused to renew"), "{first:?}");
}

/// The operator's slip: the lock was granted under it, and is given back with the error.
#[test]
fn an_epoch_that_is_none_leaves_no_key_held() {
    let server = Server::redis();
    for epoch in ["4294967296", "-1", "three"] {
        assert_eq!(said(&server, &["SET", "{press-7}:epoch", epoch]), "OK");
        let wrong = Held::begin(hold(&url(&server), "a", &[], "echo no")).end();
        assert_eq!((wrong.status, wrong.out.as_str()), (2, ""), "{epoch}: {wrong:?}");
        assert!(wrong.err.contains("epoch: not a number of 32 bits"), "{epoch}: {wrong:?}");
        assert_eq!(said(&server, &["EXISTS", "press-7"]), "0", "{epoch}");
    }
}

/// As everybody knows: a primary answers before its replica has heard of it, and is lost.
#[test]
fn a_primary_that_is_lost_before_replication_makes_two_holders_with_one_token() {
    let (mut primary, replica, folder) = (Server::redis(), Server::redis(), tempfile::tempdir().unwrap());
    let port = primary.port.to_string();
    assert_eq!(said(&replica, &["REPLICAOF", "127.0.0.1", &port]), "OK");
    let begun = Instant::now();
    while !said(&replica, &["INFO", "replication"]).contains("master_link_status:up") {
        assert!(begun.elapsed() < PATIENCE, "it does not replicate");
        sleep(Duration::from_millis(20));
    }
    let before = Held::begin(hold(&url(&primary), "a", &[], "echo $FENCEGATE_TOKEN")).end();
    assert_eq!((before.status, before.out.as_str()), (0, "1\n"), "{before:?}");
    assert_eq!(said(&primary, &["WAIT", "1", "0"]), "1", "so far the replica has it all");

    // It stalls, and the connection breaks: what lay in its buffer it would still read.
    replica.signal("STOP");
    assert_eq!(said(&primary, &["CLIENT", "KILL", "TYPE", "replica"]), "1");
    let [a_marks, b_marks, token] = ["a", "b", "token"].map(|name| folder.path().join(name));
    let holds = |url: &str, holder, script: &str| Held::begin(hold_for("30s", url, holder, &[], script));
    let script = format!("trap '' TERM; echo $FENCEGATE_TOKEN > {}; {}", token.display(), marks(&a_marks));
    let a = holds(&url(&primary), "a", &script);
    appears(&a_marks);
    primary.kill();
    replica.signal("CONT");
    assert_eq!(said(&replica, &["REPLICAOF", "NO", "ONE"]), "OK");
    let b = holds(&url(&replica), "b", &format!("echo $FENCEGATE_TOKEN; {} & sleep 1", marks(&b_marks))).end();
    assert_eq!((b.status, b.out.trim()), (0, appears(&token).as_str()), "the same token comes twice: {b:?}");
    // A's window is still open: nobody has told it anything, and it works on.
    sleep(Duration::from_millis(300));
    assert!(first(&b_marks) < last(&a_marks) && last(&b_marks) < last(&a_marks), "both were inside their windows");
    drop(a);

    // That is why it does not get to protect a gate, unless somebody says that it protects nothing.
    let gate = EmulatedGate::new();
    let key = gate.key_file();
    let protect = ["--gate", &gate.port, "--key-file", key.to_str().unwrap(), "--channel", "2"];
    let refused = Held::begin(hold(&url(&replica), "a", &protect, "echo no")).end();
    assert_eq!((refused.status, refused.out.as_str()), (2, ""));
    let why = "coordinator: redis keeps no durable order";
    assert!(refused.err.contains(why) && refused.err.contains("--efficiency"), "{refused:?}");
}

/// The gate's own memory keeps it, though Redis could not.
#[test]
fn a_late_command_meets_the_fence_though_redis_could_not_keep_it() {
    let (server, gate) = (Server::redis(), EmulatedGate::new());
    let begin = |holder: &str, flags: &[&str], script: &str| {
        Held::begin(hold(&url(&server), holder, &[flags, &["--efficiency"]].concat(), script))
    };
    story(&begin, &gate, "2", &Server::postgres());
    // The token goes back, as it does with a primary that was lost; the gate remembers.
    assert_eq!(said(&server, &["FLUSHALL"]), "OK");
    let key = gate.key_file();
    let protect = ["--gate", &gate.port, "--key-file", key.to_str().unwrap(), "--channel", "2"];
    let said = begin("c", &protect, "echo no").end();
    assert_eq!((said.status, said.out.as_str()), (121, ""), "{said:?}");
    assert!(said.err.contains("a resource has refused the stamp: channel 2: "), "{said:?}");
}
