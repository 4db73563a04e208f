//! `cargo xtask soak`: the full counts of what `cargo xtask test` samples, written into the record. All of it takes hours.

use crate::ledger::Ledger;
use crate::step::{Step, human};
use crate::{record, setup, workspace};
use anyhow::Result;
use std::path::Path;
use std::time::Instant;

/// Random inputs against the oracle.
const INPUTS: &str = "50000000";

/// What a test's line begins with that belongs into the record.
const COUNTED: &str = "counted: ";

/// What is run in full.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// What it is called on the command line, and in the marks of the record.
    key: &'static str,
    name: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
}

const fn run_of(key: &'static str, name: &'static str, package: &'static str, tests: &'static [&'static str]) -> Run {
    Run { key, name, package, tests }
}

const RUNS: [Run; 12] = [
    run_of("oracle", "The calculator against the oracle", "fencegate-tests", &["--test", "exactness"]),
    run_of("model", "The model of holders and grantors, a tick longer each", "fencegate-tests", &["--test", "model"]),
    run_of(
        "gate-model",
        "The model of a gate on its cable, a step longer",
        "fencegate-tests",
        &["--test", "gate_model"],
    ),
    run_of("walks", "Random walks", "fencegate-tests", &["--test", "walks"]),
    run_of("store", "The store, cut at every byte", "fencegate-node", &["--lib"]),
    run_of("properties", "The gate against its plain model", "fencegate-node", &["--test", "properties"]),
    run_of("leases", "The gate on three drifting clocks", "fencegate-node", &["--test", "time"]),
    run_of("stories", "Every short story of a gate", "fencegate-node", &["--test", "exhaustive"]),
    run_of("cable", "Every damage to every frame", "fencegate-node", &["--test", "black_channel"]),
    run_of("decoder", "Frames without sense at both ends of the cable", "fencegate-tests", &["--test", "decoder"]),
    run_of("kill", "The board killed while it raises", "fencegate-tests", &["--test", "kill"]),
    run_of("hostile", "Hostile frames on the board", "fencegate-tests", &["--test", "hostile"]),
];

/// The names of the runs.
pub fn keys() -> [&'static str; RUNS.len()] {
    RUNS.map(|run| run.key)
}

/// Runs each of those named to its end, or all of them, and records what it has counted; a failure does not stop the
/// others.
pub fn run(root: &Path, keys: &[String]) -> Result<()> {
    setup::ensure(setup::FIRMWARE)?;
    setup::ensure(setup::EMULATOR)?;
    let mut ledger = Ledger::default();
    for run in RUNS.iter().filter(|run| keys.is_empty() || keys.iter().any(|key| key == run.key)) {
        one(root, run, &mut ledger)?;
    }
    ledger.close()
}

fn one(root: &Path, run: &Run, ledger: &mut Ledger) -> Result<()> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["test", "--package", run.package]).args(run.tests).args(["--", "--nocapture"]);
    cargo.env("FENCEGATE_SOAK", "1").env("FENCEGATE_RUNS", INPUTS);
    let (commit, since) = (workspace::commit(root), Instant::now());
    let mut counted = String::new();
    let tally = ledger.tests_heard(Step::new(run.name, cargo), |line| {
        // The test runner has written the test's name before it.
        if let Some((_, said)) = line.split_once(COUNTED) {
            counted.extend(["- ", said, "\n"]);
        }
    });
    let how = format!("{} passed, {} failed, {}", tally.passed, tally.failed, human(since.elapsed()));
    record::write(root, &format!("soak {}", run.key), &format!("**{}**, at `{commit}`: {how}.\n\n{counted}", run.name))
}
