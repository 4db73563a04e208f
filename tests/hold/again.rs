//! A holder that was killed and is started again under the very name that it had, as a service manager does it: what it was
//! granted before is a lease like another's, under which its command may still run.

use super::worker::{Begin, Held, appears, at, etcd_url, hold, is_silent, last, marks, postgres_url, zookeeper_url};
use fencegate_tests::{Said, Server};

/// The holder alone is killed: its command does not listen, and runs until the watcher ends it with the window.
fn is_kept_out_by_its_own_lease(run: Begin) {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
    let first = run("a#1", &[], &format!("trap '' TERM; {}", marks(&before)));
    appears(&before);
    first.signal("KILL");
    let refused = run("a#1", &["--wait", "0s", "--status"], "echo no").end();
    assert_eq!((refused.status, refused.out.as_str()), (121, ""), "{refused:?}");
    assert!(refused.err.starts_with("held by a#1"), "{refused:?}");
    let again = run("a#1", &[], &format!("cut -d' ' -f1 /proc/uptime > {}", after.display())).end();
    assert_eq!((again.status, again.err.as_str()), (0, ""), "{again:?}");
    assert!(last(&before) < last(&after), "two at once: until {} and from {}", last(&before), last(&after));
    is_silent(&before);
}

#[test]
fn in_etcd() {
    is_kept_out_by_its_own_lease(&at(&etcd_url(&Server::etcd())));
}

#[test]
fn in_postgresql_and_in_a_table_of_before_there_were_marks() {
    let server = Server::postgres();
    let table = "CREATE SEQUENCE fencegate_token; CREATE TABLE fencegate_lease (lock text PRIMARY KEY, \
                 epoch bigint NOT NULL DEFAULT 0, token bigint NOT NULL, holder text NOT NULL, ends timestamptz NOT NULL)";
    assert_eq!(Said::by(&mut server.psql(&["-c", table])).status, 0);
    is_kept_out_by_its_own_lease(&at(&postgres_url(&server)));
}

#[test]
fn in_redis() {
    let server = Server::redis();
    is_kept_out_by_its_own_lease(&at(&format!("redis://127.0.0.1:{}", server.port)));
}

#[test]
fn in_zookeeper() {
    is_kept_out_by_its_own_lease(&at(&zookeeper_url(&Server::zookeeper())));
}

#[test]
fn in_dynamodb() {
    let server = Server::moto();
    server.dynamodb_table("locks", "lock");
    is_kept_out_by_its_own_lease(&|holder, flags, script| {
        let mut command = hold("dynamodb://eu-central-1/locks", holder, flags, script);
        server.for_aws(&mut command);
        Held::begin(command)
    });
}

/// Its own key it cannot tell from a stranger's without the mark beside it; one that somebody else has written has none.
#[test]
fn what_somebody_else_has_written_in_its_name_is_left_alone() {
    let server = Server::etcd();
    assert_eq!(Said::by(&mut server.etcdctl(&["put", "press-7", "a#1"])).status, 0);
    let refused = Held::begin(hold(&etcd_url(&server), "a#1", &["--wait", "1s", "--status"], "echo no")).end();
    assert_eq!((refused.status, refused.out.as_str()), (121, ""), "{refused:?}");
    assert!(refused.err.starts_with("held by a#1\n"), "{refused:?}");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--print-value-only", "press-7"])).out, "a#1\n");
}
