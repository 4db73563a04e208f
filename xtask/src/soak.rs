//! `cargo xtask soak`: the full counts of what `cargo xtask test` samples. It takes the better part of an hour.

use crate::ledger::Ledger;
use crate::step::Step;
use crate::workspace;
use anyhow::Result;
use std::path::Path;

/// Random inputs against the oracle.
const INPUTS: &str = "50000000";

/// Runs each of them to its end; a failure does not stop the others.
pub fn run(root: &Path) -> Result<()> {
    let mut ledger = Ledger::default();
    for (name, test) in [
        ("the calculator against the oracle, 50 million inputs", "exactness"),
        ("the model, a tick longer each", "model"),
        ("random walks, 1,200 hours", "walks"),
        ("a gate killed 200 times while it raises", "kill"),
        ("100,000 hostile frames to the emulated board", "hostile"),
    ] {
        let mut cargo = workspace::cargo(root);
        cargo.args(["test", "--package", "fencegate-tests", "--test", test, "--", "--show-output"]);
        cargo.env("FENCEGATE_SOAK", "1").env("FENCEGATE_RUNS", INPUTS);
        ledger.tests(Step::new(name, cargo));
    }
    ledger.close()
}
