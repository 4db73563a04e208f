//! `cargo xtask soak`: the full counts of what `cargo xtask test` samples, written into the record. All of it takes hours.

use crate::board::Board;
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
    target: &'static str,
    /// Which of its tests, and which not; all of them where there is none.
    filters: &'static [&'static str],
}

const RUNS: [Run; 13] = [
    Run {
        key: "oracle",
        name: "The calculator against the oracle",
        package: "fencegate-tests",
        target: "--test=exactness",
        filters: &[],
    },
    Run {
        key: "model",
        name: "The model of holders and grantors, a tick longer each",
        package: "fencegate-tests",
        target: "--test=model",
        filters: &[],
    },
    Run {
        key: "gate-model",
        name: "The model of a gate on its cable, a step longer each",
        package: "fencegate-tests",
        target: "--test=gate_model",
        filters: &[],
    },
    Run { key: "walks", name: "Random walks", package: "fencegate-tests", target: "--test=walks", filters: &[] },
    Run {
        key: "cuts",
        name: "The store, cut at every place one after the other",
        package: "fencegate-node",
        target: "--lib",
        filters: &["cuts::words_of", "cuts::bytes_behind"],
    },
    Run {
        key: "store",
        name: "The store, cut upon cut, and rotten",
        package: "fencegate-node",
        target: "--lib",
        filters: &["store", "--skip", "cuts::words_of", "--skip", "cuts::bytes_behind"],
    },
    Run {
        key: "properties",
        name: "The gate against its plain model",
        package: "fencegate-node",
        target: "--test=properties",
        filters: &[],
    },
    Run {
        key: "leases",
        name: "The gate on three drifting clocks",
        package: "fencegate-node",
        target: "--test=time",
        filters: &[],
    },
    Run {
        key: "stories",
        name: "Every short story of a gate",
        package: "fencegate-node",
        target: "--test=exhaustive",
        filters: &[],
    },
    Run {
        key: "cable",
        name: "Every damage to every frame",
        package: "fencegate-node",
        target: "--test=black_channel",
        filters: &[],
    },
    Run {
        key: "decoder",
        name: "Frames without sense at both ends of the cable",
        package: "fencegate-tests",
        target: "--test=decoder",
        filters: &[],
    },
    Run {
        key: "kill",
        name: "The board killed while it raises",
        package: "fencegate-tests",
        target: "--test=kill",
        filters: &[],
    },
    Run {
        key: "hostile",
        name: "Hostile frames on the board",
        package: "fencegate-tests",
        target: "--test=hostile",
        filters: &[],
    },
];

/// The names of the runs.
pub fn keys() -> [&'static str; RUNS.len()] {
    RUNS.map(|run| run.key)
}

/// Runs each of those named to its end, or all of them, and records what it has counted; a failure does not stop the
/// others.
pub fn run(root: &Path, keys: &[String]) -> Result<()> {
    setup::ensure(setup::FIRMWARE)?;
    setup::ensure(Board::Mps2.emulator())?;
    let mut ledger = Ledger::default();
    for run in RUNS.iter().filter(|run| keys.is_empty() || keys.iter().any(|key| key == run.key)) {
        one(root, run, &mut ledger)?;
    }
    ledger.close()
}

fn one(root: &Path, run: &Run, ledger: &mut Ledger) -> Result<()> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["test", "--package", run.package, run.target, "--", "--nocapture"]).args(run.filters);
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
