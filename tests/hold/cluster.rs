//! A lease on a cluster of etcd whose members fail, and on one that was taken back to a snapshot.

use super::worker::{
    Held, PATIENCE, appears, etcd_url, first, grows_only_with_answers, hold, hold_for, hold_of, last, marks, now,
    on_a_terminal,
};
use fencegate_tests::{EmulatedGate, Network, Said, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const TTL: u64 = 15_000_000;

/// A lease of 15 s with ten heartbeats: cancellation, 5 s without an answer, leaves room for an election.
fn hold_long(holder: &str, coordinator: &str, flags: &[&str], script: &str) -> Command {
    hold_for("15s", coordinator, holder, &[flags, &["--attempts", "10"]].concat(), script)
}

/// The address of all of them.
fn all_of(cluster: &[Server]) -> String {
    let members: Vec<_> = cluster.iter().map(|member| format!("{}:{}", member.host, member.port)).collect();
    format!("etcd://{}", members.join(","))
}

/// One worked, and then the other.
fn never_at_once(a_marks: &Path, b_marks: &Path) {
    let (until, from) = (last(a_marks), first(b_marks));
    assert!(until <= from, "two at once: until {until} and from {from}");
}

#[test]
fn a_lease_outlives_its_leader_and_nobody_else_gets_it_meanwhile() {
    let mut cluster = Server::etcd_cluster::<3>();
    let (url, folder) = (all_of(&cluster), tempfile::tempdir().unwrap());
    let [a_marks, b_marks] = ["a", "b"].map(|name| folder.path().join(name));
    let held = |holder, script: &str| Held::begin(on_a_terminal(&hold_long(holder, &url, &["--status"], script)));
    let a = held("a", &format!("{} & sleep 14; echo done", marks(&a_marks)));
    appears(&a_marks);
    let leader = cluster.iter().position(Server::leads).unwrap();

    // First cut off from the others, as a frozen one is; then back, no leader any more; then dead. One waits through it all.
    cluster[leader].signal("STOP");
    let b = held("b", &format!("{} & sleep 1", marks(&b_marks)));
    sleep(Duration::from_secs(7));
    cluster[leader].signal("CONT");
    let refused = Held::begin(hold_long("c", &url, &["--wait", "0s"], "echo no")).end();
    assert_eq!((refused.status, refused.out.as_str()), (121, ""), "{refused:?}");
    let leader = cluster.iter().position(Server::leads).unwrap();
    cluster[leader].kill();
    let (a, b) = (a.end(), b.end());
    assert_eq!(a.status, 0, "{a:?}");
    assert!(a.out.contains("done\r\n") && !a.out.contains("cancelled: "), "{a:?}");
    // A new leader gives every lease its whole time again, and a member that answers again answers late. The window knows
    // nothing of either.
    assert!(grows_only_with_answers(&a.out, TTL) > 3, "{a:?}");
    assert_eq!(b.status, 0, "two of three are enough, and nothing is left held: {b:?}");
    grows_only_with_answers(&b.out, TTL);
    never_at_once(&a_marks, &b_marks);
}

/// The cable to the others, and not the process: what is cut off with it goes on talking to whoever reaches it.
#[test]
fn a_leader_cut_off_from_the_others_grants_nothing_and_no_two_are_inside_their_windows() {
    let Some(network) = Network::new(3) else {
        println!("not tested: only root makes network namespaces");
        return;
    };
    let cluster = Server::etcd_cluster_on::<3>(&network);
    let leader = cluster.iter().position(Server::leads).unwrap();
    let (all, alone) = (all_of(&cluster), etcd_url(&cluster[leader]));
    let folder = tempfile::tempdir().unwrap();
    let [a_marks, b_marks] = ["a", "b"].map(|name| folder.path().join(name));

    // One that hears of the cluster only through the member that is cut off.
    let held = |url: &str, holder, script: &str| Held::begin(hold_for("6s", url, holder, &["--status"], script));
    // It does not listen: only what kills it before its window's end ends it.
    let a = held(&alone, "a", &format!("trap '' TERM; {}", marks(&a_marks)));
    appears(&a_marks);
    network.cut_off(leader);
    let b = held(&all, "b", &format!("{} & sleep 4", marks(&b_marks)));
    let begun = Instant::now();
    while cluster[leader].leads() {
        assert!(begun.elapsed() < PATIENCE, "it does not step down");
        sleep(Duration::from_millis(50));
    }
    // A lock that nobody holds: what could be refused for another's lease is granted for nobody's.
    let c = Held::begin(hold_of("press-8", "6s", &alone, "c", &[], "echo no")).end();
    assert_eq!((c.status, c.out.as_str()), (3, ""), "a minority grants nothing: {c:?}");
    let a = a.end();
    assert_eq!(a.status, 122, "{a:?}");
    let b = b.end();
    let granted = |said: &Said| {
        said.err
            .lines()
            .find_map(|line| line.strip_prefix("acquired: epoch 0 token "))
            .map(|line| line.split(',').next().unwrap().parse::<u64>().unwrap())
    };
    assert!(b.status == 0 && granted(&b) > granted(&a), "the majority goes on: {b:?} after {a:?}");
    never_at_once(&a_marks, &b_marks);

    network.join(leader);
    let begun = Instant::now();
    loop {
        let d = held(&alone, "d", "echo yes").end();
        if d.status == 0 {
            assert!(granted(&d) > granted(&b), "{d:?} after {b:?}");
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{d:?}");
    }
}

/// It stood still while another was elected, and hears of nobody when it goes on: for a while it takes itself for the
/// leader. What it answers then renews nothing, since the lease runs out at the other.
#[test]
fn a_leader_that_was_deposed_while_it_stood_still_renews_nothing() {
    let Some(network) = Network::new(3) else {
        println!("not tested: only root makes network namespaces");
        return;
    };
    let cluster = Server::etcd_cluster_on::<3>(&network);
    let old = cluster.iter().position(Server::leads).unwrap();
    let others = || cluster.iter().enumerate().filter(|(n, _)| *n != old).map(|(_, member)| member);
    let majority: Vec<_> = others().map(|member| format!("{}:{}", member.host, member.port)).collect();
    let folder = tempfile::tempdir().unwrap();
    let [a_marks, b_marks] = ["a", "b"].map(|name| folder.path().join(name));
    // One that hears of the old one alone, and that only what kills it before its window's end ends.
    let a = Held::begin(hold_long(
        "a",
        &etcd_url(&cluster[old]),
        &["--status"],
        &format!("trap '' TERM; {}", marks(&a_marks)),
    ));
    appears(&a_marks);

    cluster[old].signal("STOP");
    let stopped = now();
    network.cut_off(old); // before anybody is elected: it has read nothing of it when it goes on
    let begun = Instant::now();
    while !others().any(Server::leads) {
        assert!(begun.elapsed() < PATIENCE, "nobody is elected");
        sleep(Duration::from_millis(50));
    }
    let script = format!("{} & sleep 1", marks(&b_marks));
    let b = Held::begin(hold_for("15s", &format!("etcd://{}", majority.join(",")), "b", &[], &script));
    // The lease has its whole time again at the other. The longer this one sleeps on, the further beyond it would renew.
    sleep(Duration::from_secs(2));
    cluster[old].signal("CONT");
    let (a, b) = (a.end(), b.end());
    assert_eq!((a.status, b.status), (122, 0), "{a:?}, {b:?}");
    assert!(last(&a_marks) < stopped + TTL, "renewed after that: {a:?}");
    never_at_once(&a_marks, &b_marks);
}

/// A look is no entry in the cluster's log, and a keep-alive is none either.
#[test]
fn neither_who_waits_nor_who_renews_writes_anything() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let (url, [up, go]) = (etcd_url(&server), ["up", "go"].map(|name| folder.path().join(name)));
    let entries = || {
        let status = Said::by(&mut server.etcdctl(&["endpoint", "status", "--write-out", "json"])).json();
        status[0]["Status"]["raftIndex"].as_u64().unwrap()
    };
    let script = format!("echo up > {}; until [ -e {} ]; do sleep 0.05; done", up.display(), go.display());
    let a = Held::begin(hold(&url, "a", &["--status"], &script));
    appears(&up);
    // Its own entries come first: who leads, and which version all of them have.
    let (mut before, begun) = (0, Instant::now());
    while before != entries() {
        assert!(begun.elapsed() < PATIENCE, "it goes on writing");
        before = entries();
        sleep(Duration::from_millis(500));
    }
    let b = Held::begin(hold(&url, "b", &["--wait", "4s", "--status"], "echo no")).end();
    assert_eq!((b.status, b.out.as_str()), (121, ""), "{b:?}");
    assert!(b.err.matches("held by a#").count() > 1, "it asked again: {b:?}");
    assert_eq!(entries(), before);
    fs::write(go, "").unwrap();
    let a = a.end();
    assert!(a.status == 0 && a.err.contains("renewed: "), "{a:?}");
}

/// A cluster of three, and a snapshot of it.
fn cluster_with_a_snapshot(folder: &Path) -> ([Server; 3], PathBuf) {
    let (cluster, snapshot) = (Server::etcd_cluster::<3>(), folder.join("snapshot"));
    let saved = Said::by(&mut cluster[0].etcdctl(&["snapshot", "save", snapshot.to_str().unwrap()]));
    assert_eq!(saved.status, 0, "{saved:?}");
    (cluster, snapshot)
}

fn raise_epoch(cluster: &[Server]) {
    assert_eq!(Said::by(&mut cluster[0].etcdctl(&["put", "press-7/epoch", "1"])).status, 0);
}

/// One works on while it happens, and his lease is one that the restored cluster has never heard of.
#[test]
fn after_a_restore_the_gate_refuses_the_old_tokens_until_the_operator_raises_the_epoch() {
    let (gate, folder) = (EmulatedGate::new(), tempfile::tempdir().unwrap());
    let (cluster, snapshot) = cluster_with_a_snapshot(folder.path());
    let key = gate.key_file();
    let protect = ["--gate", gate.port.as_str(), "--key-file", key.to_str().unwrap()];
    let url = all_of(&cluster);
    let work = |holder| Held::begin(hold(&url, holder, &protect, "echo $FENCEGATE_TOKEN")).end();
    let tokens = [(); 4].map(|()| work("a")).map(|said| said.out.trim().parse::<u64>().unwrap());
    assert!(tokens.is_sorted(), "{tokens:?}");
    let up = folder.path().join("up");
    let script = format!("echo $FENCEGATE_TOKEN > {}; while :; do sleep 0.05; done", up.display());
    let a = Held::begin(hold_long("a", &url, &protect, &script));
    let last: u64 = appears(&up).parse().unwrap();

    let cluster = Server::etcd_restored(cluster, &snapshot);
    let b = work("b");
    assert_eq!((b.status, b.out.as_str()), (121, ""), "{b:?}");
    assert!(b.err.contains("a resource has refused the stamp: channel 0: "), "{b:?}");
    let a = a.end();
    assert_eq!(a.status, 122, "{a:?}");
    assert!(a.err.contains("the lease was lost, and the command was stopped: "), "{a:?}");

    // Beside the lock and at the gate; then work goes on.
    gate.done("epoch --channel 0 --set 1");
    raise_epoch(&cluster);
    let said = work("b");
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.out.trim().parse::<u64>().unwrap() < last, "a lower token of a higher epoch");
}

/// Without a fence, what is left is to wait: a window that nobody at the restored cluster knows of is over by then.
#[test]
fn a_cluster_that_stays_down_for_a_ttl_before_its_restore_makes_no_two_holders() {
    let folder = tempfile::tempdir().unwrap();
    let (mut cluster, snapshot) = cluster_with_a_snapshot(folder.path());
    let url = all_of(&cluster);
    let [a_marks, b_marks] = ["a", "b"].map(|name| folder.path().join(name));
    // Only what kills it before its window's end ends it.
    let script = format!("trap '' TERM; echo token=$FENCEGATE_TOKEN; {}", marks(&a_marks));
    let a = Held::begin(on_a_terminal(&hold_for("6s", &url, "a", &["--status"], &script)));
    appears(&a_marks);
    sleep(Duration::from_secs(3)); // a renewal, as a rule
    cluster.iter_mut().for_each(Server::kill);
    let down = now();
    sleep(Duration::from_secs(6));
    let cluster = Server::etcd_restored(cluster, &snapshot);
    let script = format!("echo token=$FENCEGATE_TOKEN; {} & sleep 1", marks(&b_marks));
    let (b, a) = (Held::begin(hold(&url, "b", &[], &script)).end(), a.end());
    assert_eq!((a.status, b.status, b.err.as_str()), (122, 0, ""), "{a:?}, {b:?}");
    assert!(a.out.contains(&b.out.replace('\n', "\r\n")), "the revisions have gone back: {b:?} after {a:?}");
    grows_only_with_answers(&a.out, 6_000_000);
    assert!(last(&a_marks) < down + 6_000_000, "no window reaches further than a TTL past the last answer: {a:?}");
    never_at_once(&a_marks, &b_marks);
    raise_epoch(&cluster);
    let c = Held::begin(hold(&url, "c", &[], "echo $FENCEGATE_EPOCH")).end();
    assert_eq!((c.status, c.out.as_str()), (0, "1\n"), "and work goes on under a higher epoch: {c:?}");
}

/// **This is what a restore does that is neither waited for nor fenced:** two are inside their windows, with one token. A
/// works on while it happens, and ends before it has heard of it; its release spares the other's key.
#[test]
fn after_a_restore_at_once_two_hold_the_lock_and_a_release_spares_the_others_key() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, snapshot) = cluster_with_a_snapshot(folder.path());
    let url = all_of(&cluster);
    // Five minutes, so that no renewal and no look falls into the test.
    let works = |holder: &str| {
        let [up, go, marked] = ["up", "go", "marks"].map(|name| folder.path().join(format!("{holder}-{name}")));
        let script = format!(
            "echo $FENCEGATE_TOKEN > {}; {} & until [ -e {} ]; do sleep 0.05; done",
            up.display(),
            marks(&marked),
            go.display()
        );
        let held = Held::begin(hold_for("300s", &url, holder, &["--status"], &script));
        let token = appears(&up);
        appears(&marked);
        (held, token, go, marked)
    };
    let (a, a_token, a_go, a_marks) = works("a");
    let cluster = Server::etcd_restored(cluster, &snapshot);
    let (b, b_token, b_go, b_marks) = works("b");
    assert_eq!(a_token, b_token, "the restore has taken the revisions back");
    let begun = Instant::now();
    while last(&a_marks) <= first(&b_marks) {
        assert!(begun.elapsed() < PATIENCE, "one at a time after all");
        sleep(Duration::from_millis(50));
    }

    fs::write(a_go, "").unwrap();
    let a = a.end();
    assert!(a.status == 0 && a.err.ends_with("released\n"), "{a:?}");
    let kept = Said::by(&mut cluster[0].etcdctl(&["get", "--print-value-only", "press-7"])).out;
    assert!(kept.starts_with("b#"), "{kept:?}");
    fs::write(b_go, "").unwrap();
    let b = b.end();
    assert_eq!(b.status, 0, "{b:?}");
    assert_eq!(Said::by(&mut cluster[0].etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");
}
