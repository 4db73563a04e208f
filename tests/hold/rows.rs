//! Rows of PostgreSQL that somebody else has had a hand in.

use super::worker::{Held, hold, postgres_url};
use fencegate_tests::{Said, Server};

/// An end that is no time: the operator's, who keeps everybody out; or that of a lease which is released while it is looked at.
#[test]
fn a_row_without_an_end_is_held_until_it_has_one() {
    let server = Server::postgres();
    let url = postgres_url(&server);
    let ends = |ends: &str| {
        let set = format!("UPDATE fencegate_lease SET ends = {ends} WHERE lock = 'press-7'");
        assert_eq!(Said::by(&mut server.psql(&["-c", &set])).out, "UPDATE 1\n");
    };
    let run = || Held::begin(hold(&url, "a", &["--wait", "1s", "--status"], "echo yes")).end();
    assert_eq!(run().out, "yes\n");
    ends("'infinity'");
    let said = run();
    assert_eq!((said.status, said.out.as_str()), (121, ""), "{said:?}");
    assert!(said.err.starts_with("held by a#"), "{said:?}");
    ends("'-infinity'");
    assert_eq!(run().out, "yes\n");
}

/// The operator's slip: the lock was granted under it, and is given back with the error.
#[test]
fn an_epoch_that_is_none_leaves_no_row_held() {
    let server = Server::postgres();
    let run = || Held::begin(hold(&postgres_url(&server), "a", &[], "echo yes")).end();
    assert_eq!(run().out, "yes\n");
    let set = "UPDATE fencegate_lease SET epoch = 4294967296 WHERE lock = 'press-7'";
    assert_eq!(Said::by(&mut server.psql(&["-c", set])).out, "UPDATE 1\n");
    let wrong = run();
    assert_eq!((wrong.status, wrong.out.as_str()), (2, ""), "{wrong:?}");
    assert!(wrong.err.contains("epoch: not a number of 32 bits"), "{wrong:?}");
    let said = Said::by(&mut server.psql(&["-c", "SELECT count(*) FROM fencegate_lease WHERE ends > now()"]));
    assert_eq!(said.out, "0\n", "{said:?}");
}
