//! Style, and the rules of the house that a machine can check.

use crate::ledger::Ledger;
use crate::setup;
use crate::step::{self, Step};
use crate::workspace::{self, Member};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Which rooms each room may use; `None` is all of them. A board's firmware is the room `embedded/firmware`.
const ROOMS: [(&str, Option<&[&str]>); 8] = [
    ("core", Some(&[])),
    ("embedded/wire", Some(&["core"])),
    ("embedded/node", Some(&["core", "embedded/wire"])),
    ("embedded/firmware", Some(&["embedded/node"])),
    ("embedded/host", Some(&["core", "embedded/wire"])),
    ("wasm", Some(&["core", "embedded/wire"])),
    ("tests", None),
    ("xtask", Some(&["embedded/host"])),
];

/// What may stand at the top level, besides names that begin with a dot and `LICENSE-*`.
const TOP_LEVEL: [&str; 18] = [
    "core",
    "embedded",
    "wasm",
    "web",
    "tests",
    "xtask",
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    // Of Rust tools.
    "rust-toolchain.toml",
    "rustfmt.toml",
    "clippy.toml",
    "deny.toml",
    "taplo.toml",
    "typos.toml",
];

const FORBID_UNSAFE: &str = "#![forbid(unsafe_code)]";

/// Makes every check that needs no run of our own code.
pub fn run(root: &Path, ledger: &mut Ledger) -> Result<()> {
    let members = workspace::members(root)?;
    ledger.check("arrows between the rooms", || none_of(&wrong_arrows(&members)));
    ledger.check("what stands at the top level", || none_of(&strangers(&top_level(root)?)));
    ledger.check("unsafe code is forbidden", || none_of(&without_forbid(&members)?));

    // Not every machine can have another toolchain; one that cannot says so, and checks all the rest.
    match setup::ensure(setup::OLDEST_RUST) {
        Ok(()) => {
            for (name, features) in [("bare", "--no-default-features"), ("all features", "--all-features")] {
                ledger.step(oldest(root, name, features)?);
            }
        }
        Err(why) => step::warn(&format!("not checked with Rust {}: {why:#}", setup::OLDEST)),
    }
    for (name, arguments, folder) in cargo_checks(&members) {
        let mut cargo = workspace::cargo(&root.join(folder));
        cargo.args(arguments.split(' '));
        if arguments.starts_with("doc ") {
            cargo.env("RUSTDOCFLAGS", "-Dwarnings");
        }
        ledger.step(Step::new(name, cargo));
    }
    Ok(())
}

/// Compiles the core with the oldest toolchain that it promises to compile with.
fn oldest(root: &Path, name: &str, features: &str) -> Result<Step> {
    let mut cargo = Command::new("rustup");
    cargo.args(["run", setup::OLDEST, "cargo", "check", "--package", "fencegate", "--lib", features]);
    // The other rooms ask for more; and a target folder of its own, or each toolchain would undo the other's work.
    cargo.args(["--ignore-rust-version", "--target-dir"]).arg(workspace::target_dir(root)?.join("oldest"));
    cargo.current_dir(root).env_remove("CARGO").env_remove("RUSTC");
    Ok(Step::new(format!("check with Rust {} (core, {name})", setup::OLDEST), cargo))
}

/// What cargo checks: a name, cargo's arguments, and the folder to call it in.
fn cargo_checks(members: &[Member]) -> Vec<(String, String, String)> {
    let mut checks = Vec::new();
    let mut check = |name: &str, arguments: &str, folder: &str| {
        checks.push((name.to_owned(), arguments.to_owned(), folder.to_owned()));
    };
    let host = workspace::host_crates(members).join(" ");
    check("rustfmt", "fmt --all --check", "");
    check("clippy (host)", &format!("clippy {host} --all-targets --all-features -- -D warnings"), "");
    let core = "clippy --package fencegate --all-targets --no-default-features";
    check("clippy (core, bare)", &format!("{core} -- -D warnings"), "");
    for feature in members.iter().filter(|member| member.dir == "core").flat_map(|core| &core.features) {
        check(&format!("clippy (core with {feature})"), &format!("{core} --features {feature} -- -D warnings"), "");
    }
    for folder in workspace::bare(members) {
        check(&format!("clippy ({folder})"), "clippy --release -- -D warnings", folder);
        check(&format!("clippy ({folder}, all features)"), "clippy --release --all-features -- -D warnings", folder);
    }
    // A workspace of their own; only to run them takes a nightly compiler.
    let fuzz = "clippy --locked --no-default-features --target-dir ../../target/fuzz -- -D warnings";
    check("clippy (fuzz targets)", fuzz, "tests/fuzz");
    let wasm = "--package fencegate-wasm --package fencegate-wasm-gate --target wasm32-unknown-unknown";
    check("clippy (modules)", &format!("clippy {wasm} -- -D warnings"), "");
    check(
        "build for thumbv6m",
        "build --package fencegate --package fencegate-wire --package fencegate-node --target thumbv6m-none-eabi",
        "",
    );
    check(
        "build for thumbv6m (core, all features)",
        "build --package fencegate --all-features --target thumbv6m-none-eabi",
        "",
    );
    check(
        "build for wasm32 (core, all features)",
        "build --package fencegate --all-features --target wasm32-unknown-unknown",
        "",
    );
    check(
        "rustdoc",
        "doc --lib --no-deps --all-features --package fencegate --package fencegate-wire --package fencegate-node \
         --package fencegate-host",
        "",
    );
    check("rustdoc (modules)", &format!("doc --lib --no-deps {wasm}"), "");
    checks
}

/// An error that lists `complaints`, if there are any.
fn none_of(complaints: &[String]) -> Result<()> {
    if complaints.is_empty() { Ok(()) } else { bail!("{}", complaints.join("\n       ")) }
}

/// The room that a crate is in.
fn room(member: &Member) -> &str {
    match member.dir.as_str() {
        _ if member.board().is_some() => "embedded/firmware",
        dir if dir.starts_with("tests/") => "tests",
        _ if member.is_module() => "wasm",
        dir => dir,
    }
}

/// Dependencies that the table of rooms does not allow.
fn wrong_arrows(members: &[Member]) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in members {
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room(member)) else {
            wrong.push(format!("{}/ is no room of the workspace: move the crate {} into one", member.dir, member.name));
            continue;
        };
        let Some(allowed) = allowed else { continue };
        for other in members.iter().filter(|other| member.uses.contains(&other.name)) {
            if !allowed.contains(&room(other)) {
                let (from, to) = (&member.dir, &other.dir);
                wrong.push(format!("{from}/ may not use {to}/: take {} out of {from}/Cargo.toml", other.name));
            }
        }
    }
    wrong
}

/// Names at the top level of what git keeps, or would keep if it were asked to.
fn top_level(root: &Path) -> Result<BTreeSet<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().context("running `git ls-files`")?;
    if !output.status.success() {
        bail!("`git ls-files` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let paths = String::from_utf8_lossy(&output.stdout);
    let tops = paths.split_terminator('\0').filter_map(|path| path.split('/').next());
    Ok(tops.filter(|top| root.join(top).exists()).map(str::to_owned).collect())
}

/// Those of `names` that have no place at the top level.
fn strangers(names: &BTreeSet<String>) -> Vec<String> {
    let welcome =
        |name: &String| TOP_LEVEL.contains(&name.as_str()) || name.starts_with('.') || name.starts_with("LICENSE-");
    let strangers = names.iter().filter(|name| !welcome(name));
    strangers.map(|name| format!("{name} may not stand at the top level: move it into a room")).collect()
}

/// Crate roots that do not forbid unsafe code. A board's may have to talk to its hardware.
fn without_forbid(members: &[Member]) -> Result<Vec<String>> {
    let mut without = Vec::new();
    for file in members.iter().filter(|member| !member.is_bare()).flat_map(|member| &member.roots) {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        if !text.lines().any(|line| line == FORBID_UNSAFE) {
            let file = file.strip_prefix(workspace::root()).unwrap_or(file);
            without.push(format!("{} does not say `{FORBID_UNSAFE}`: add that line", file.display()));
        }
    }
    Ok(without)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_arrow_is_checked_also_of_tests_inside_a_room() {
        let crates = [
            ("fencegate", "core", json!([{"name": "serde"}, {"name": "fencegate-wire", "kind": "dev"}])),
            ("fencegate-wire", "embedded/wire", json!([{"name": "fencegate"}])),
            ("fencegate-node", "embedded/node", json!([{"name": "fencegate"}, {"name": "fencegate-wire"}])),
            ("fencegate-mps2", "embedded/firmware/mps2", json!([{"name": "fencegate-node"}])),
            ("fencegate-tests", "tests", json!([{"name": "fencegate-node"}, {"name": "xtask"}])),
            ("xtask", "xtask", json!([{"name": "fencegate-tests"}])),
            ("stray", "tools/stray", json!([])),
        ];
        let packages: Vec<_> = crates
            .into_iter()
            .map(|(name, dir, dependencies)| {
                let manifest = format!("/repository/{dir}/Cargo.toml");
                json!({"name": name, "manifest_path": manifest, "dependencies": dependencies})
            })
            .collect();
        let metadata = json!({"workspace_root": "/repository", "packages": packages});
        assert_eq!(
            wrong_arrows(&workspace::members_in(&metadata).unwrap()),
            [
                "core/ may not use embedded/wire/: take fencegate-wire out of core/Cargo.toml",
                "xtask/ may not use tests/: take fencegate-tests out of xtask/Cargo.toml",
                "tools/stray/ is no room of the workspace: move the crate stray into one",
            ]
        );
    }

    #[test]
    fn the_oldest_toolchain_is_the_one_that_the_core_promises() {
        let manifest = fs::read_to_string(workspace::root().join("core/Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("\nrust-version = \"{}\"\n", setup::OLDEST)));
    }

    #[test]
    fn strangers_at_the_top_level_are_named() {
        let names = [".ci", "core", "LICENSE-MIT", "notes.md", "rustfmt.toml", "web"];
        let names = names.into_iter().map(str::to_owned).collect();
        assert_eq!(strangers(&names), ["notes.md may not stand at the top level: move it into a room"]);
    }
}
