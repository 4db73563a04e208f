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

/// Of those that mostly do without a board, what takes one: the test, and what its functions' names have in them.
const SOME_ON_A_BOARD: [(&str, &[&str]); 1] = [(
    "hold",
    &[
        "a_gate_hands_out_one_lease",
        "a_gate_that_is_not_there",
        "a_late_command_meets_the_fence",
        "a_primary_that_is_lost",
        "a_server_that_is_frozen",
        "after_a_restore_the_gate_refuses",
        "in_a_gate",
        "the_doctor_measures_",
        "the_doctor_speaks_",
        "what_is_wrong_at_a_gate",
    ],
)];

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
    let all = (String::new(), ON_A_BOARD.iter().flat_map(|test| ["--test", test]).collect(), [].as_slice());
    let some = SOME_ON_A_BOARD.iter().map(|(test, names)| (format!(", {test}"), vec!["--test", *test], *names));
    for (what, tests, names) in std::iter::once(all).chain(some) {
        let mut cargo = workspace::cargo(root);
        cargo.args(["test", "--no-fail-fast", "--package", "fencegate-tests"]).args(tests);
        // One after the other: an emulated Pico at work takes most of a processor, and its host has the other.
        cargo.args(["--", "--show-output", "--test-threads=1"]).args(names);
        cargo.env("FENCEGATE_BOARD", Board::Rp2040.name());
        ledger.tests(Step::new(format!("tests across rooms (rp2040{what})"), cargo));
    }
    let mut npm = Command::new("npm");
    npm.arg("test").current_dir(root.join("embedded/firmware/rp2040/emulator"));
    ledger.tests(Step::new("tests of the emulator of the rp2040", npm));
    let mut npm = Command::new("npm");
    npm.arg("test").current_dir(root.join("tests/js")).env("CARGO_TARGET_DIR", workspace::target_dir(root)?);
    ledger.tests(Step::new("tests in JavaScript", npm));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A test across rooms: its name, and its files.
    fn tests_across_rooms() -> Vec<(String, Vec<PathBuf>)> {
        let sources = |folder: &Path| -> Vec<PathBuf> {
            let Ok(folder) = fs::read_dir(folder) else { return Vec::new() };
            folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("rs".as_ref())).collect()
        };
        let tests = sources(&workspace::root().join("tests"));
        let with_modules = |root: PathBuf| {
            let name = root.file_stem().unwrap().to_str().unwrap().to_owned();
            let modules = sources(&root.with_extension(""));
            (name, [vec![root], modules].concat())
        };
        tests.into_iter().map(with_modules).collect()
    }

    /// Whether it starts a board, and leaves it to `FENCEGATE_BOARD` which. `of`, `on_usb` and `fast` say which themselves.
    fn takes_a_board(source: &str) -> bool {
        let calls = ["EmulatedGate::", "BlankBoard::"].into_iter().flat_map(|kind| source.split(kind).skip(1));
        calls
            .map(|call| call.split('(').next().unwrap_or_default())
            .any(|name| !["of", "on_usb", "fast"].contains(&name))
    }

    /// The functions of a source that are tests and take a board; `None` is one before the first test.
    fn functions(source: &str) -> Vec<Option<String>> {
        let (helpers, tests) = source.split_once("#[test]\n").unwrap_or((source, ""));
        let name = |test: &str| Some(test.split_once("fn ")?.1.split_once('(')?.0.to_owned());
        let tests = tests.split("#[test]\n").filter(|test| takes_a_board(test)).map(name);
        takes_a_board(helpers).then_some(None).into_iter().chain(tests).collect()
    }

    #[test]
    fn what_takes_a_board_runs_on_each_board() {
        let across = tests_across_rooms();
        for test in ON_A_BOARD.iter().chain(SOME_ON_A_BOARD.iter().map(|(test, _)| test)) {
            assert!(across.iter().any(|(name, _)| name == test), "there is no tests/{test}.rs");
        }
        let mut meant = Vec::new();
        for (name, files) in across {
            let sources = files.iter().map(|file| fs::read_to_string(file).unwrap());
            let takers: Vec<_> = sources.flat_map(|source| functions(&source)).collect();
            if takers.is_empty() || ON_A_BOARD.contains(&name.as_str()) {
                continue;
            }
            let some = SOME_ON_A_BOARD.iter().find(|(test, _)| *test == name);
            let Some((_, names)) = some else { panic!("add `{name}` to `ON_A_BOARD`: {takers:?} take a board") };
            for taker in takers {
                let function = taker.unwrap_or_else(|| panic!("a helper of `{name}` takes a board: for which test?"));
                let found = names.iter().find(|part| function.contains(**part));
                meant.push(*found.unwrap_or_else(|| panic!("add {name}'s `{function}` to `SOME_ON_A_BOARD`")));
            }
        }
        for (test, names) in SOME_ON_A_BOARD {
            for part in names {
                assert!(meant.contains(part), "no function of `{test}` has `{part}` in its name and takes a board");
            }
        }
    }

    #[test]
    fn who_takes_a_board_is_seen() {
        let source = "fn pico() { EmulatedGate::of(Board::Rp2040) }\n#[test]\nfn one() { EmulatedGate::new() }\n\
                      #[test]\nfn two() { BlankBoard::on_usb() }\n#[test]\nfn three() { BlankBoard::with_flash(&[]) }\n";
        assert_eq!(functions(source), [Some("one".to_owned()), Some("three".to_owned())]);
        assert_eq!(functions("fn gate() { EmulatedGate::on(folder) }\n#[test]\nfn one() { gate() }\n"), [None]);
        assert!(!takes_a_board("fn story(gate: &EmulatedGate) {}"));
    }
}
