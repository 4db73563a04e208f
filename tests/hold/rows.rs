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
