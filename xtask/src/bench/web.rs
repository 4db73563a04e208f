//! The page and the module in a browser and under Node: bytes, times, calls a second.

use super::table;
use crate::{page, setup, workspace};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// Measured where the page's tests are, with their browser and their server.
pub(super) fn measure(root: &Path) -> Result<String> {
    setup::ensure(setup::BROWSER)?;
    page::module(root)?;
    page::build(root)?;
    let output = Command::new("node")
        .arg("bench.mjs")
        .current_dir(root.join("tests/js"))
        .env("CARGO_TARGET_DIR", workspace::target_dir(root)?)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start node")?;
    ensure!(output.status.success(), "tests/js/bench.mjs ended with {}", output.status);
    let rows: Vec<[String; 2]> = serde_json::from_slice(&output.stdout).context("reading what bench.mjs printed")?;
    Ok(table(["what", "measured"], rows))
}
