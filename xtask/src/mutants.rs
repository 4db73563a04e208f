//! `cargo xtask mutants`: every small change of the core, each of which some test of the core must notice.
//!
//! What is changed, with which tests, and which changes make no difference and why: `.cargo/mutants.toml`.

use crate::setup;
use crate::step::Step;
use crate::workspace;
use anyhow::Result;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

/// Tries all mutants, or those of `files` (paths or globs); an error if one survives that is not listed.
pub fn run(root: &Path, files: &[String]) -> Result<()> {
    setup::ensure(&[setup::CARGO_MUTANTS])?;
    let jobs = available_parallelism().map_or(1, |cores| cores.get().div_ceil(2).max(2));
    let output = workspace::target_dir(root)?.join("mutants");
    let mut mutants = Command::new(setup::program(setup::CARGO_MUTANTS)?);
    mutants.args(["mutants", "--package", "fencegate", "--colors", "never", "--jobs", &jobs.to_string(), "--output"]);
    // Each job copies the tree, and in one target folder cargo could not tell the copies apart.
    mutants.arg(&output).current_dir(root).env_remove("CARGO_TARGET_DIR");
    for file in files {
        mutants.args(["--file", file]);
    }
    Step::new("mutants of the core", mutants)
        .advice(format!(
            "write the test that notices each survivor beside the code, or list it in .cargo/mutants.toml with the reason \
             why it makes no difference; {} has every change as a diff",
            output.join("mutants.out").display()
        ))
        .run()
}
