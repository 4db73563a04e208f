//! Leases in ZooKeeper: one at a time, in sessions that are lost and refused.

use super::worker::{Held, PATIENCE, appears, at, hold, hold_for, is_silent, last, marks, now, odd, zookeeper_url};
use super::{hands_out_one_lease_at_a_time, story};
use fencegate_tests::{EmulatedGate, Said, Server};
use std::fs;
use std::io::{BufRead, BufReader};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What is below a node, as ZooKeeper's own client shows it: one line a node, of those that are ours.
fn below(server: &Server, node: &str) -> Vec<String> {
    let said = Said::by(&mut server.zookeeper_client(&["ls", "-R", node]));
    assert_eq!(said.status, 0, "{said:?}");
    said.out.lines().filter(|line| line.starts_with(node)).map(str::to_owned).collect()
}

#[test]
fn zookeeper_hands_out_one_lease_at_a_time_and_keeps_the_operators_epoch() {
    let server = Server::zookeeper();
    let url = zookeeper_url(&server);
    hands_out_one_lease_at_a_time(&at(&url));
    let lock = ["/fencegate", "/fencegate/press-7", "/fencegate/press-7/epoch"];
    assert_eq!(below(&server, "/fencegate"), lock, "no lease is left");

    let set = |epoch: &str| {
        let said = Said::by(&mut server.zookeeper_client(&["set", "/fencegate/press-7/epoch", epoch]));
        assert_eq!(said.status, 0, "{said:?}");
    };
    set("3");
    let epoch = "echo $FENCEGATE_EPOCH $FENCEGATE_HOLDER";
    assert_eq!(Held::begin(hold(&url, "a#1", &[], epoch)).end().out, "3 a#1\n");
    let said = Held::begin(hold(&url, "a", &["--epoch", "2"], epoch)).end();
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains("epoch: 2 is below the one that is kept beside the lock, 3"), "{said:?}");
    set("three");
    let said = Held::begin(hold(&url, "a", &[], epoch)).end();
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains("epoch: the node /fencegate/press-7/epoch has to be a number of 32 bits"), "{said:?}");
    assert_eq!(below(&server, "/fencegate"), lock, "no lease is left");
}

#[test]
fn a_late_command_meets_the_fence_of_a_lease_in_zookeeper() {
    story(&at(&zookeeper_url(&Server::zookeeper())), &EmulatedGate::new(), "0", &Server::postgres());
}

/// The token is the transaction that made the node, and the node is what the lease hangs on.
#[test]
fn a_node_that_is_deleted_is_a_lease_that_is_lost() {
    let (server, folder) = (Server::zookeeper(), tempfile::tempdir().unwrap());
    let url = zookeeper_url(&server);
    let up = folder.path().join("up");
    let script = format!("echo $FENCEGATE_TOKEN > {}; sleep 60", up.display());
    let held = Held::begin(hold(&url, "a#1", &[], &script));
    let token: u64 = appears(&up).parse().unwrap();
    let nodes = below(&server, "/fencegate/press-7");
    let [_, _, lease] = nodes.as_slice() else { panic!("{nodes:?}") };
    assert!(lease.starts_with("/fencegate/press-7/lease-a%231."), "{lease}");
    let stat = Said::by(&mut server.zookeeper_client(&["stat", lease])).out;
    assert!(stat.lines().any(|line| line == format!("cZxid = {token:#x}")), "{token}: {stat}");
    assert_eq!(Said::by(&mut server.zookeeper_client(&["delete", lease])).status, 0);
    let said = held.end();
    assert_eq!(said.status, 122, "{said:?}");
}

/// Who waits has a session too. It freezes until that is over, and gets its turn all the same.
#[test]
fn a_waiter_that_has_lost_its_session_still_gets_the_lease() {
    let (server, folder) = (Server::zookeeper(), tempfile::tempdir().unwrap());
    let url = zookeeper_url(&server);
    let [up, go] = ["up", "go"].map(|name| folder.path().join(name));
    let script = format!("echo up > {}; while [ ! -e {} ]; do sleep 0.05; done", up.display(), go.display());
    let a = Held::begin(hold(&url, "a", &[], &script));
    appears(&up);
    let mut b = Held::begin(hold(&url, "b", &["--status"], "echo yes"));
    let mut waits = String::new();
    BufReader::new(b.0.stderr.as_mut().unwrap()).read_line(&mut waits).unwrap();
    assert!(waits.starts_with("held by a#"), "{waits}");
    b.signal_all("STOP");
    let begun = Instant::now();
    while !server.said().contains("Expiring session") {
        assert!(begun.elapsed() < PATIENCE, "{}", server.said());
        sleep(Duration::from_millis(50));
    }
    b.signal_all("CONT");
    fs::write(&go, "").unwrap();
    let a = a.end();
    assert_eq!((a.status, a.err.as_str()), (0, ""), "the session that was lost was the other's: {a:?}");
    let b = b.end();
    assert_eq!((b.status, b.out.as_str()), (0, "yes\n"), "{b:?}");
}

/// A follower that has lost its leader, and does not know it yet, answers pings and reads. Neither is a renewal.
#[test]
fn a_follower_that_is_cut_off_renews_nothing() {
    let (servers, folder) = (Server::zookeeper_ensemble::<3>(), tempfile::tempdir().unwrap());
    let follower = servers.iter().position(Server::follows).unwrap();
    let others = || servers.iter().enumerate().filter(|(n, _)| *n != follower).map(|(_, server)| server);
    let file = folder.path().join("marks");
    let script = format!("trap '' TERM; {}", marks(&file));
    let held = Held::begin(hold(&zookeeper_url(&servers[follower]), "a", &[], &script));
    appears(&file);
    others().for_each(|server| server.signal("STOP"));
    let cut = now();
    let said = held.end();
    let still = servers[follower].follows();
    others().for_each(|server| server.signal("CONT"));
    assert_eq!(said.status, 122, "{said:?}");
    assert!(said.err.contains("no answer for a third of the lease"), "{said:?}");
    assert!(last(&file) < cut + 3_000_000, "no window reaches further than a TTL past the last write");
    is_silent(&file);
    assert!(still, "it served after that as if nothing had happened");
}

#[test]
fn what_zookeeper_does_not_give_is_one_sentence() {
    let server = Server::zookeeper();
    let url = zookeeper_url(&server);
    let said = Held::begin(hold_for("31s", &url, "a", &[], "echo no")).end();
    assert_eq!((said.status, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.contains("ttl_us: this ZooKeeper gives sessions of at most 60000 ms"), "{said:?}");
    assert!(said.err.contains("ask for 30000 ms, or raise its maxSessionTimeout"), "{said:?}");
    let said = Held::begin(hold_for("3000500us", &url, "a", &[], "echo no")).end();
    assert_eq!((said.status, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.contains("ttl_us: ZooKeeper takes whole milliseconds"), "{said:?}");

    // One user's nodes are not another's.
    let as_user = |user: &str| url.replace("//", &format!("//{user}@"));
    let said = Held::begin(hold(&as_user("press:secret"), "a", &[], "echo yes")).end();
    assert_eq!((said.status, said.out.as_str()), (0, "yes\n"), "{said:?}");
    for other in [as_user("press:guess"), url.clone()] {
        let said = Held::begin(hold(&other, "b", &[], "echo no")).end();
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");
        assert!(said.err.contains("coordinator: ZooKeeper: not authorized"), "{said:?}");
    }

    let said = Held::begin(odd(&url)).end();
    assert_eq!((said.status, said.err.as_str()), (0, ""), "any name that can be read is a name");
    let lock = "/fencegate/%C3%BC%20%27x%27%20%22y%22%20%24z%2F%2E%2E%3B%20--";
    assert_eq!(below(&server, lock), [lock, &format!("{lock}/epoch")], "nothing is left");

    // A server that takes connections and says nothing is as good as none.
    server.signal("STOP");
    let said = Held::begin(hold(&url, "a", &[], "echo no")).end();
    server.signal("CONT");
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (3, "", 1), "{said:?}");
    assert!(said.err.contains("no answer from the coordinator: "), "{said:?}");
}
