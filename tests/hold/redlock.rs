//! Redlock: a lock at a majority of several Redis servers.

use super::worker::{Held, appears, at, hold, odd};
use super::{hands_out_one_lease_at_a_time, story};
use fencegate_tests::{EmulatedGate, Said, Server, fencegate};
use std::process::Command;

fn three() -> ([Server; 3], String) {
    let servers = [(); 3].map(|()| Server::redis());
    let places = servers.each_ref().map(|server| format!("127.0.0.1:{}", server.port));
    let url = format!("redlock://{}", places.join(","));
    (servers, url)
}

/// What a server says to one command.
fn said(server: &Server, words: &[&str]) -> String {
    let said = Said::by(Command::new("redis-cli").args(["-p", &server.port.to_string()]).args(words));
    assert_eq!(said.status, 0, "{said:?}");
    said.out.trim().to_owned()
}

#[test]
fn a_majority_hands_out_one_lease_at_a_time() {
    let (mut servers, url) = three();
    hands_out_one_lease_at_a_time(&at(&url));
    for server in &servers {
        assert_eq!(said(server, &["EXISTS", "press-7"]), "0", "nothing is left");
    }
    assert_eq!(said(&servers[0], &["SET", "{press-7}:epoch", "3"]), "OK");
    let run = |holder: &str| Held::begin(hold(&url, holder, &[], "echo $FENCEGATE_EPOCH $FENCEGATE_TOKEN")).end();
    assert_eq!(run("a").out, "3 4\n");

    let any = Held::begin(odd(&url)).end();
    assert_eq!((any.status, any.err.as_str()), (0, ""), "any name that can be read is a name");
    // One that takes connections and says nothing is one that is missing.
    servers[2].signal("STOP");
    let frozen = run("a");
    servers[2].signal("CONT");
    assert_eq!((frozen.out.as_str(), frozen.err.as_str()), ("3 5\n", ""));

    // One may be missing, and is, in the middle of a lease; and the token goes on from the others' count.
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let held = Held::begin(hold(&url, "a", &[], &format!("echo up > {}; sleep 4; echo done", up.display())));
    appears(&up);
    servers[0].kill();
    let held = held.end();
    assert_eq!((held.status, held.out.as_str()), (0, "done\n"), "{held:?}");
    assert_eq!(run("b").out, "0 7\n", "the epoch was kept at the one that is gone alone: it belongs to all of them");

    // Of two, both are needed: one of three is no majority.
    servers[1].kill();
    let alone = run("b");
    assert_eq!((alone.status, alone.out.as_str(), alone.err.lines().count()), (3, "", 1), "{alone:?}");
    assert!(alone.err.contains("Redlock: 1 of 3 servers answered"), "{alone:?}");
    assert_eq!(said(&servers[2], &["EXISTS", "press-7"]), "0", "the one that granted it has it no more");
}

#[test]
fn an_epoch_that_is_none_leaves_nothing_held_at_any_server() {
    let (servers, url) = three();
    assert_eq!(said(&servers[0], &["SET", "{press-7}:epoch", "4294967296"]), "OK");
    let wrong = Held::begin(hold(&url, "a", &[], "echo no")).end();
    assert_eq!((wrong.status, wrong.out.as_str()), (2, ""), "{wrong:?}");
    assert!(wrong.err.contains("epoch: not a number of 32 bits"), "{wrong:?}");
    for server in &servers {
        assert_eq!(said(server, &["EXISTS", "press-7"]), "0");
    }
}

/// What the formula allows for drift, 1 % and 2 ms, is in what the doctor sizes.
#[test]
fn the_doctor_sizes_with_the_drift_of_the_formula() {
    let (servers, url) = three();
    let doctor = ["doctor", "--coordinator", &url, "--look", "10ms", "--samples", "3", "--json"];
    let found = Said::by(fencegate().args(doctor));
    assert_eq!((found.status, found.err.as_str()), (0, ""), "{found:?}");
    let size = &found.json()["size"];
    assert!(size["drift_ppb"].as_u64().unwrap() >= 10_000_000, "{size}");
    assert_eq!(size["work_us"], 2_000, "{size}");
    for server in &servers {
        assert_eq!(said(server, &["KEYS", "*"]).lines().filter(|key| !key.ends_with("}:token")).count(), 0);
    }
}

#[test]
fn a_lock_that_a_majority_has_forgotten_is_lost() {
    let (servers, url) = three();
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let held = Held::begin(hold(&url, "a", &[], &format!("echo up > {}; sleep 60", up.display())));
    appears(&up);
    for server in &servers[..2] {
        said(server, &["DEL", "press-7"]);
    }
    let held = held.end();
    assert_eq!(held.status, 122, "{held:?}");
    assert!(held.err.contains("the coordinator refused to renew"), "{held:?}");
}

/// It does not get to protect a gate, unless somebody says that it protects nothing; the gate's own memory does.
#[test]
fn a_late_command_meets_the_fence_though_redlock_could_not_keep_it() {
    let ((_servers, url), gate) = (three(), EmulatedGate::new());
    let key = gate.key_file();
    let protect = ["--gate", &gate.port, "--key-file", key.to_str().unwrap(), "--channel", "2"];
    let refused = Held::begin(hold(&url, "a", &protect, "echo no")).end();
    assert_eq!((refused.status, refused.out.as_str()), (2, ""));
    let why = "coordinator: redlock keeps no durable order";
    assert!(refused.err.contains(why) && refused.err.contains("--efficiency"), "{refused:?}");
    let begin = |holder: &str, flags: &[&str], script: &str| {
        Held::begin(hold(&url, holder, &[flags, &["--efficiency"]].concat(), script))
    };
    story(&begin, &gate, "0", &Server::postgres());
}

#[test]
fn the_redlock_of_another_password_is_refused() {
    let (servers, url) = three();
    for server in &servers {
        assert_eq!(said(server, &["CONFIG", "SET", "requirepass", "secret"]), "OK");
    }
    for wrong in [url.clone(), url.replace("//", "//:guess@")] {
        let said = Held::begin(hold(&wrong, "a", &[], "echo no")).end();
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");
        assert!(said.err.contains("coordinator: Redis: "), "{said:?}");
    }
    let right = Held::begin(hold(&url.replace("//", "//:secret@"), "a", &[], "echo yes")).end();
    assert_eq!((right.status, right.out.as_str()), (0, "yes\n"), "{right:?}");
}
