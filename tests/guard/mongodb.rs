//! The guard for MongoDB. No server of it can be had here, and none of `FerretDB` either (Debian 12 has no `mongodb-server` and no
//! `ferretdb`): Node runs the script against a stand-in of the test's own.

use super::{Guarded, Write, at_least, greater, highest, printed};
use fencegate_tests::Said;
use std::path::PathBuf;
use std::process::Command;

struct StandIn(tempfile::TempDir, PathBuf);

impl StandIn {
    fn new(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let guard = printed("mongodb", policy, folder.path());
        Self(folder, guard)
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }
}

impl Guarded for StandIn {
    fn takes(&self, resource: &str, w: Write) -> bool {
        let mut node = Command::new("node");
        node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/guard/stand-in.mjs")).arg(&self.1).arg(self.state());
        node.args([resource, w.epoch, w.token, w.holder, w.seq, w.value]);
        let said = Said::by(&mut node);
        if said.status != 0 {
            assert!(!w.has_numbers() && said.err.contains(": not a whole number"), "{said:?}");
            return false;
        }
        assert!(["0\n", "1\n"].contains(&said.out.as_str()), "{said:?}");
        said.out == "1\n"
    }

    fn value(&self, resource: &str) -> String {
        let state = std::fs::read_to_string(self.state()).unwrap();
        let documents: serde_json::Value = serde_json::from_str(&state).unwrap();
        let found = documents.as_array().unwrap().iter().find(|document| document["_id"] == resource);
        found.unwrap()["value"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_stand_in_for_mongodb_runs_its_guard() {
    let at = StandIn::new("at-least");
    at_least(&at);
    highest(&at, true);
    greater(&StandIn::new("greater"));
}
