//! Every check and every test there is.

use crate::board::Board;
use crate::ledger::Ledger;
use crate::step::Step;
use crate::{firmware, lint, page, setup, workspace};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// The tests across rooms that run on whatever board `FENCEGATE_BOARD` names; without it, that is the MPS2.
const ON_A_BOARD: [&str; 9] =
    ["authority", "board", "gate", "hang", "hostile", "kill", "misuse", "provisioning", "story"];

/// Sets up, checks style, builds everything, tests everything, and prints how long each took.
pub fn run(root: &Path) -> Result<()> {
    let mut ledger = Ledger::default();
    if ledger.check("set-up", || setup::ensure(&setup::everything())).is_none() {
        return ledger.close();
    }
    lint::run(root, &mut ledger)?;
    if build(root, &mut ledger)?.is_some() {
        test(root, &mut ledger)?;
    }
    ledger.close()
}

/// What tests find ready: the module, the page, the command, the firmware. Without one of them most of what follows
/// would fail for the same reason.
fn build(root: &Path, ledger: &mut Ledger) -> Result<Option<()>> {
    let members = workspace::members(root)?;
    let module = ledger.check("module", || page::module(root));
    let page = module.and_then(|_| ledger.check("page", || page::build(root)));
    let mut cargo = workspace::cargo(root);
    cargo.args(["build", "--bins"]).args(workspace::host_crates(&members));
    let command = ledger.step(Step::new("host programs", cargo));
    let mut all = page.and(command);
    for board in workspace::boards(&members) {
        let image = ledger.check(&format!("firmware for {board}"), || firmware::build(root, board));
        all = image.and(all);
    }
    Ok(all)
}

fn test(root: &Path, ledger: &mut Ledger) -> Result<()> {
    let members = workspace::members(root)?;
    // Core and xtask with all they have, in calls of their own: the others are tested with the features they ship with.
    let others =
        ["--exclude", "fencegate", "--exclude", "xtask", "--exclude", "fencegate-tests", "--", "--show-output"];
    let host = [&workspace::host_crates(&members)[..], &others].concat();
    for (name, arguments) in [
        ("tests of core", ["--package", "fencegate", "--all-features"].as_slice()),
        ("tests of core (bare)", &["--package", "fencegate", "--no-default-features"]),
        ("tests of xtask", &["--package", "xtask", "--features", "web"]),
        // With what they print: seeds, and the sizes of the spaces that were searched.
        ("tests of the other rooms", &host),
        // Those of coordinators that are not there by default.
        ("tests of coordinators", &["--package", "fencegate-host", "--all-features", "--lib", "coordinator"]),
        ("tests across rooms", &["--package", "fencegate-tests", "--", "--show-output"]),
    ] {
        let mut cargo = workspace::cargo(root);
        cargo.args(["test", "--no-fail-fast"]).args(arguments);
        ledger.tests(Step::new(name, cargo));
    }
    // What runs on an emulated board, once more on the other one.
    let mut cargo = workspace::cargo(root);
    cargo.args(["test", "--no-fail-fast", "--package", "fencegate-tests"]);
    cargo.args(ON_A_BOARD.iter().flat_map(|test| ["--test", test])).args(["--", "--show-output"]);
    cargo.env("FENCEGATE_BOARD", Board::Rp2040.name());
    ledger.tests(Step::new("tests across rooms (rp2040)", cargo));
    let mut npm = Command::new("npm");
    npm.arg("test").current_dir(root.join("embedded/firmware/rp2040/emulator"));
    ledger.tests(Step::new("tests of the emulator of the rp2040", npm));
    let mut npm = Command::new("npm");
    npm.arg("test").current_dir(root.join("tests/js")).env("CARGO_TARGET_DIR", workspace::target_dir(root)?);
    ledger.tests(Step::new("tests in JavaScript", npm));
    Ok(())
}
