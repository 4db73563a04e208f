//! A cluster of etcd that wants to know who is speaking.

use super::worker::{Held, appears, etcd_url, hold};
use fencegate_tests::{Said, Server};
use std::fs;
use std::path::Path;

/// The users `root`, who may everything, and `press`, who may use the lock; and `nobody`, who may nothing.
fn server() -> Server {
    let server = Server::etcd();
    for words in [
        &["user", "add", "root:root"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "press"],
        &["role", "grant-permission", "press", "--prefix=true", "readwrite", "press-7"],
        &["user", "add", "press:right"],
        &["user", "grant-role", "press", "press"],
        &["user", "add", "nobody:right"],
        &["auth", "enable"],
    ] {
        let said = Said::by(&mut server.etcdctl(words));
        assert_eq!(said.status, 0, "{words:?}: {said:?}");
    }
    server
}

fn as_root(server: &Server, words: &[&str]) -> String {
    let said = Said::by(&mut server.etcdctl(&[words, &["--user", "root:root"]].concat()));
    assert_eq!(said.status, 0, "{words:?}: {said:?}");
    said.out.trim().to_owned()
}

fn nothing_is_left(server: &Server) {
    assert_eq!(as_root(server, &["get", "--prefix", ""]), "");
    assert_eq!(as_root(server, &["lease", "list"]), "found 0 leases");
}

/// `hold` with this password.
fn with(url: &str, folder: &Path, password: &str, flags: &[&str], script: &str) -> Held {
    let file = folder.join(format!("password-{password}"));
    fs::write(&file, password).unwrap();
    Held::begin(hold(url, "a", &[flags, &["--password-file", file.to_str().unwrap()]].concat(), script))
}

#[test]
fn a_user_is_let_in_by_any_member_and_nobody_else_leaves_anything_behind() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let (port, folder) = (server.port, folder.path());
    let one = |user: &str| format!("etcd://{user}@127.0.0.1:{port}");
    let run = |url: &str, password: &str| with(url, folder, password, &[], "echo $FENCEGATE_HOLDER").end();
    let right = run(&one("press"), "right");
    assert_eq!((right.status, right.out.starts_with("a#"), right.err.as_str()), (0, true, ""), "{right:?}");
    for dead_first in ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"] {
        let right = run(&format!("etcd://press@{dead_first},127.0.0.1:{port}"), "right");
        assert_eq!((right.status, right.err.as_str()), (0, ""), "one that is dead stops nobody: {right:?}");
    }

    for (url, password, status, words) in [
        (one("press"), "wrong", 2, "coordinator: etcd: etcdserver: authentication failed, invalid user ID or password"),
        (one("stranger"), "right", 2, "coordinator: etcd: etcdserver: authentication failed"),
        (one("nobody"), "right", 2, "coordinator: etcd: etcdserver: permission denied"),
        ("etcd://press@127.0.0.1:1".to_owned(), "right", 3, "no answer from the coordinator: etcd: "),
    ] {
        let said = run(&url, password);
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (status, "", 1), "{url}: {said:?}");
        assert!(said.err.contains(words), "{url}: {said:?}");
    }
    let said = Held::begin(hold(&etcd_url(&server), "a", &[], "echo no")).end();
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");
    assert!(said.err.contains("coordinator: etcd: etcdserver: user name is empty"), "{said:?}");
    nothing_is_left(&server);

    let open = Server::etcd();
    let said = run(&format!("etcd://press@127.0.0.1:{}", open.port), "right");
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");
    assert!(said.err.contains("coordinator: etcd: etcdserver: authentication is not enabled"), "{said:?}");
}

/// What a member knows of who is speaking does not outlive a change of its users, or its process; the lease does.
#[test]
fn a_lease_outlives_what_the_members_have_forgotten_of_its_user() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let up = folder.path().join("up");
    let url = format!("etcd://press@127.0.0.1:{}", server.port);
    let script = format!("echo up > {}; sleep 7; echo done", up.display());
    let held = with(&url, folder.path(), "right", &["--status"], &script);
    appears(&up);
    as_root(&server, &["user", "add", "another:user"]);
    let held = held.end();
    assert_eq!((held.status, held.out.as_str()), (0, "done\n"), "{held:?}");
    assert!(held.err.matches("renewed: ").count() > 5 && !held.err.contains("cancelled: "), "{held:?}");
    nothing_is_left(&server);
}

#[test]
fn an_acquire_that_comes_to_nothing_leaves_no_lease_behind() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let leases = || Said::by(&mut server.etcdctl(&["lease", "list"])).out.lines().next().unwrap_or_default().to_owned();
    let url = etcd_url(&server);
    let up = folder.path().join("up");
    let a = Held::begin(hold(&url, "a", &[], &format!("echo up > {}; sleep 60", up.display())));
    appears(&up);
    let b = Held::begin(hold(&url, "b", &["--wait", "0s"], "echo no")).end();
    assert_eq!(b.status, 121, "{b:?}");
    assert_eq!(leases(), "found 1 leases", "refused: the other's alone");
    // The key is taken away; the lease that it hung on is given back as well.
    assert_eq!(Said::by(&mut server.etcdctl(&["del", "press-7"])).status, 0);
    assert_eq!(a.end().status, 122);
    assert_eq!(leases(), "found 0 leases", "lost");

    assert_eq!(Said::by(&mut server.etcdctl(&["put", "press-7/epoch", "three"])).status, 0);
    let c = Held::begin(hold(&url, "c", &[], "echo no")).end();
    assert_eq!((c.status, c.out.as_str()), (2, ""), "{c:?}");
    assert_eq!(leases(), "found 0 leases", "granted, and of no use");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "press-7"])).out, "");
}
