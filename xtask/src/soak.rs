//! `cargo xtask soak`: the full counts of what `cargo xtask test` samples. It takes more than an hour.

use crate::board::Board;
use crate::ledger::Ledger;
use crate::step::Step;
use crate::{setup, workspace};
use anyhow::Result;
use std::path::Path;

/// Random inputs against the oracle.
const INPUTS: &str = "50000000";

/// What is run in full: its name, the package and its arguments.
const RUNS: [(&str, &str, &[&str]); 10] = [
    ("the calculator against the oracle, 50 million inputs", "fencegate-tests", &["--test", "exactness"]),
    ("the model, a tick longer each", "fencegate-tests", &["--test", "model"]),
    ("random walks, 1,200 hours", "fencegate-tests", &["--test", "walks"]),
    ("the store, cut at every byte", "fencegate-node", &["--lib"]),
    ("the gate against its plain model", "fencegate-node", &["--test", "properties"]),
    ("the gate on three drifting clocks, a million leases", "fencegate-node", &["--test", "time"]),
    ("every story of four steps", "fencegate-node", &["--test", "exhaustive"]),
    ("every bit, truncation and splice of every frame", "fencegate-node", &["--test", "black_channel"]),
    ("the board killed 200 times while it raises", "fencegate-tests", &["--test", "kill"]),
    ("the board under 100,000 hostile frames", "fencegate-tests", &["--test", "hostile"]),
];

/// Runs each of them to its end; a failure does not stop the others.
pub fn run(root: &Path) -> Result<()> {
    setup::ensure(setup::FIRMWARE)?;
    setup::ensure(Board::Mps2.emulator())?;
    let mut ledger = Ledger::default();
    for (name, package, arguments) in RUNS {
        let mut cargo = workspace::cargo(root);
        cargo.args(["test", "--package", package]).args(arguments).args(["--", "--show-output"]);
        cargo.env("FENCEGATE_SOAK", "1").env("FENCEGATE_RUNS", INPUTS);
        ledger.tests(Step::new(name, cargo));
    }
    ledger.close()
}
