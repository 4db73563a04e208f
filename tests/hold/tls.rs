//! Coordinators in TLS, and passwords that nobody sees.

use super::worker::{Held, appears, hold};
use fencegate_tests::{Authority, Server};
use std::fs;
use std::path::PathBuf;

struct Files {
    folder: tempfile::TempDir,
    ca: String,
    others: String,
}

/// The authority of the servers, and one that has nothing to do with them.
fn authorities() -> (Authority, Authority, Files) {
    let (ours, others) = (Authority::new(), Authority::new());
    let text = |file: PathBuf| file.to_str().unwrap().to_owned();
    let (folder, ca, others_ca) = (tempfile::tempdir().unwrap(), text(ours.ca()), text(others.ca()));
    (ours, others, Files { folder, ca, others: others_ca })
}

impl Files {
    fn password(&self, password: &str) -> String {
        let file = self.folder.path().join(format!("password-{password}"));
        fs::write(&file, format!("{password}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

/// Nobody is spoken to who cannot show a certificate of the right authority, and nobody is let in by the wrong password.
fn is_believed_with_the_right_certificate_alone(url: &str, files: &Files, password: Option<(&str, &str)>) {
    let run = |ca: &[&str], password: Option<&str>| {
        let password = password.map(|password| files.password(password));
        let flags: Vec<_> = password.iter().flat_map(|file| ["--password-file", file]).collect();
        Held::begin(hold(url, "a", &[ca, &flags].concat(), "echo $FENCEGATE_HOLDER")).end()
    };
    let right = run(&["--ca-file", &files.ca], password.map(|(right, _)| right));
    assert_eq!((right.status, right.out.starts_with("a#"), right.err.as_str()), (0, true, ""), "{url}: {right:?}");
    for ca in [&["--ca-file", &files.others][..], &[]] {
        let other = run(ca, password.map(|(right, _)| right));
        assert!(other.out.is_empty() && [2, 3].contains(&other.status), "{url} {ca:?}: {other:?}");
        assert_eq!(other.err.lines().count(), 1, "{url} {ca:?}: {other:?}");
    }
    if let Some((_, wrong)) = password {
        let wrong = run(&["--ca-file", &files.ca], Some(wrong));
        assert_eq!((wrong.status, wrong.out.as_str(), wrong.err.lines().count()), (2, "", 1), "{url}: {wrong:?}");
    }
}

#[test]
fn postgresql_in_tls_with_a_password_that_nobody_sees() {
    let (ours, _others, files) = authorities();
    let server = Server::postgres_in_tls(&ours);
    let url = format!("postgres://tester@127.0.0.1:{}/postgres?sslmode=require", server.port);
    is_believed_with_the_right_certificate_alone(&url, &files, Some(("only-in-a-file", "guess")));

    let plain = url.replace("require", "disable");
    let said = Held::begin(hold(&plain, "a", &["--password-file", &files.password("only-in-a-file")], "echo no")).end();
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");

    let up = files.folder.path().join("up");
    let password = files.password("only-in-a-file");
    let hidden = files.folder.path().join("password");
    fs::rename(&password, &hidden).unwrap(); // the name that it had says what is in it
    let flags = ["--ca-file", &files.ca, "--password-file", hidden.to_str().unwrap()];
    let held = Held::begin(hold(&url, "a", &flags, &format!("env > {0}; echo >> {0}; sleep 60", up.display())));
    assert!(!appears(&up).contains("only-in-a-file"), "nor does the command get it");
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok());
    let shown = lines.filter(|line| String::from_utf8_lossy(line).contains("only-in-a-file")).count();
    assert_eq!(shown, 0, "somebody shows the password");
    drop(held);
}

#[test]
fn redis_and_redlock_in_tls() {
    let (ours, _others, files) = authorities();
    let servers = [(); 3].map(|()| Server::redis_in_tls(&ours));
    let places = servers.each_ref().map(|server| format!("127.0.0.1:{}", server.port));
    let passwords = Some(("secret", "guess"));
    is_believed_with_the_right_certificate_alone(&format!("rediss://{}/0", places[0]), &files, passwords);
    is_believed_with_the_right_certificate_alone(&format!("redlocks://{}", places.join(",")), &files, passwords);
}

#[test]
fn etcd_in_tls() {
    let (ours, _others, files) = authorities();
    let server = Server::etcd_in_tls(&ours);
    is_believed_with_the_right_certificate_alone(&format!("etcds://127.0.0.1:{}", server.port), &files, None);
}

#[test]
fn what_is_wrong_with_secrets_is_one_sentence() {
    let (_ours, _others, files) = authorities();
    let empty = files.password("");
    let no_certificate = files.password("no certificate");
    for (coordinator, flags, words) in [
        (
            "etcd://127.0.0.1:1",
            ["--password-file", "/nowhere"],
            "password_file: `--password-file /nowhere`: cannot be read: ",
        ),
        ("etcd://127.0.0.1:1", ["--password-file", &empty], "password_file: there is no password in it"),
        ("etcd://127.0.0.1:1", ["--ca-file", &files.ca], "certificates are for etcds://"),
        ("redis://127.0.0.1:1", ["--ca-file", &files.ca], "certificates are for rediss://"),
        ("etcds://127.0.0.1:1", ["--ca-file", &no_certificate], "TLS: there is no certificate"),
        ("postgres://x@127.0.0.1:1/x", ["--ca-file", &no_certificate], "TLS: there is no certificate"),
        ("zookeeper://x:y@127.0.0.1:1", ["--ca-file", &files.ca], "ZooKeeper is spoken to over plain TCP"),
        ("zookeeper://x@127.0.0.1:1", ["--wait", "1s"], "ZooKeeper takes a user with a password, or neither"),
        ("dynamodb://eu-central-1/locks", ["--password-file", &no_certificate], "where AWS's own tools have them"),
        ("etcd://x@127.0.0.1:1", ["--wait", "1s"], "etcd: the user has no password"),
        ("etcd://127.0.0.1:1/x", ["--wait", "1s"], "coordinator: nothing comes after the servers of etcd://"),
    ] {
        let said = Held::begin(hold(coordinator, "a", &flags, "echo no")).end();
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{coordinator}: {said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
}
