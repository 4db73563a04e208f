//! The core as a new user meets it: the examples run, the package is whole, and a project of one's own for a
//! microcontroller needs nothing but what the README says.

use std::fs;
use std::path::Path;
use std::process::Command;

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_example_runs_and_finds_what_it_expects() {
    let root = xtask::workspace::root();
    let examples: Vec<_> =
        fs::read_dir(root.join("core/examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let mut cargo = xtask::workspace::cargo(root);
        cargo.args(["run", "--quiet", "--package", "fencegate", "--example"]).arg(example.file_stem().unwrap());
        succeeds(&mut cargo);
    }
}

/// The code of the README's section on microcontrollers, and the dependency that it names.
fn readme(root: &Path) -> (String, String) {
    let readme = fs::read_to_string(root.join("core/README.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no {language}"));
        rest.split_once("```").unwrap().0.to_owned()
    };
    (block("toml"), block("rust"))
}

/// Outside the workspace, and off the network but for what cargo has fetched for the workspace already.
#[test]
fn a_fresh_project_without_std_builds_for_a_microcontroller() {
    let root = xtask::workspace::root();
    let (dependency, code) = readme(root);
    let folder = tempfile::tempdir().unwrap();
    let package = "[package]\nname = \"valve\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    // The crate as it lies here stands in for the one on crates.io.
    let here = format!("[patch.crates-io]\nfencegate = {{ path = {:?} }}\n", root.join("core"));
    fs::write(folder.path().join("Cargo.toml"), format!("{package}\n{dependency}\n{here}")).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), format!("#![no_std]\n{code}")).unwrap();
    for target in ["thumbv6m-none-eabi", "wasm32-unknown-unknown"] {
        let mut cargo = xtask::workspace::cargo(folder.path());
        cargo.args(["build", "--offline", "--target", target, "--target-dir"]).arg(folder.path().join("target"));
        succeeds(&mut cargo);
    }
}

/// What `cargo publish` would send, without asking the registry: nothing that the crate needs lies outside its folder.
#[test]
fn the_package_builds_by_itself() {
    let root = xtask::workspace::root();
    let folder = tempfile::tempdir().unwrap();
    let mut cargo = xtask::workspace::cargo(root);
    cargo.args(["package", "--package", "fencegate", "--offline", "--allow-dirty", "--target-dir"]).arg(folder.path());
    succeeds(&mut cargo);
    let files =
        xtask::workspace::cargo(root).args(["package", "--package", "fencegate", "--list", "--allow-dirty"]).output();
    let files = String::from_utf8(files.unwrap().stdout).unwrap();
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
        assert!(files.lines().any(|line| line == file), "the package lacks {file}: {files}");
    }
}
