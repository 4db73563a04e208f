//! The control group of a command: an addition where there is one, and nothing that is left behind.

use super::worker::{Held, appears, etcd_url, hold};
use fencegate_tests::{Said, Server, fencegate};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn a_group_that_cannot_be_entered_is_as_good_as_none() {
    let us = std::process::id().to_string();
    for group in ["/nowhere/group", "/proc/self", "/etc/passwd"] {
        let said = Said::by(fencegate().args(["hold-exec", "--parent", &us, "--group", group, "--", "echo", "yes"]));
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "yes\n", ""), "{group}: {said:?}");
    }
}

#[test]
fn the_group_of_a_holder_that_was_killed_is_removed_by_the_watcher() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let tree = mounts.lines().find_map(|line| line.split(' ').nth(1).filter(|_| line.contains(" cgroup2 ")));
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let file = folder.path().join("group");
    let script = format!("sed -n 's/^0:://p' /proc/self/cgroup > {0}.new; mv {0}.new {0}; sleep 60", file.display());
    let held = Held::begin(hold(&etcd_url(&server), "a", &[], &script));
    let group = appears(&file);
    let (Some(tree), true) = (tree, group.contains("/fencegate-hold-")) else {
        println!("not tested: no right to make control groups");
        return;
    };
    let group = Path::new(tree).join(group.trim_start_matches('/'));
    assert!(group.exists());
    held.signal("KILL");
    let begun = Instant::now();
    while group.exists() {
        assert!(begun.elapsed() < super::PATIENCE, "{} is left behind", group.display());
        sleep(Duration::from_millis(20));
    }
}
