//! `cargo xtask miri` and `cargo xtask fuzz`: what needs the nightly toolchain.

use crate::ledger::Ledger;
use crate::step::Step;
use crate::{setup, workspace};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the core's own tests in an interpreter in which undefined behaviour is an error.
///
/// There is no `unsafe` in the core, so what it would find is in `heapless`, or in the compiler.
pub fn miri(root: &Path) -> Result<()> {
    setup::ensure(setup::MIRI)?;
    let mut cargo = nightly("rustup", root);
    cargo.args([
        "run",
        "nightly",
        "cargo",
        "miri",
        "test",
        "--package",
        "fencegate",
        "--lib",
        "--features",
        "heapless,serde",
    ]);
    cargo.env("CARGO_TARGET_DIR", workspace::target_dir(root)?.join("miri"));
    let mut ledger = Ledger::default();
    ledger.tests(Step::new("tests of core under Miri", cargo));
    ledger.close()
}

/// Fuzzes each target of `tests/fuzz`, or only `target`, for so many seconds.
pub fn fuzz(root: &Path, seconds: u32, target: Option<&str>) -> Result<()> {
    setup::ensure(setup::FUZZ)?;
    let folder = root.join("tests/fuzz");
    let targets: Vec<_> = targets(&folder)?.into_iter().filter(|name| target.is_none_or(|only| only == name)).collect();
    if targets.is_empty() {
        bail!("there is no fuzz target {}: see tests/fuzz/targets/", target.unwrap_or_default());
    }
    let built = workspace::target_dir(root)?.join("fuzz");
    let mut ledger = Ledger::default();
    for name in targets {
        let corpus = built.join("corpus").join(&name);
        fs::create_dir_all(&corpus).with_context(|| format!("making {}", corpus.display()))?;
        let mut fuzz = nightly(setup::program(setup::CARGO_FUZZ)?, &folder);
        fuzz.args(["fuzz", "run", "--fuzz-dir", "."]).arg(&name).arg(&corpus);
        fuzz.arg("--").args([format!("-max_total_time={seconds}"), "-print_final_stats=1".to_owned()]);
        fuzz.env("CARGO_TARGET_DIR", &built);
        let advice =
            format!("the input is in tests/fuzz/artifacts/{name}/: make it a test of its kind beside the code");
        ledger.step(Step::new(format!("fuzzing {name}"), fuzz).advice(advice));
    }
    ledger.close()
}

/// A program that finds the nightly toolchain where it looks for a toolchain.
fn nightly(program: impl AsRef<OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).env("RUSTUP_TOOLCHAIN", "nightly").env_remove("CARGO").env_remove("RUSTC");
    command
}

/// The fuzz targets: the names of their sources.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let dir = folder.join("targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))? {
        names.extend(entry?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}
