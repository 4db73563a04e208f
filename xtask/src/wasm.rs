//! `cargo xtask wasm`: the npm package `wasm/pkg/`.
//!
//! cargo builds the crate for `wasm32-unknown-unknown`, wasm-bindgen writes the glue, `wasm-opt -Oz` makes it smaller,
//! and a `package.json` makes it a package. wasm-bindgen is the library of the crate's own version (both are pinned
//! with `=`), so there is no tool to install and none that could be of another version.

use crate::workspace;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const CRATE: &str = "fencegate-wasm";
const NAME: &str = "fencegate";
const TARGET: &str = "wasm32-unknown-unknown";

/// What the package consists of; anything else in the folder is a left-over.
const FILES: [&str; 4] = ["fencegate.js", "fencegate.d.ts", "fencegate_bg.wasm", "fencegate_bg.wasm.d.ts"];

/// Ready-made stories, as they lie in the crate's folder.
const SCENARIOS: &str = "scenarios.json";

/// npm takes along a `LICENSE` by itself, and these only where they are named.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// What the stable compiler's wasm uses beyond the first version; `wasm-opt` refuses to read what it is not told of.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// What holds of this module beyond what `wasm-opt` may assume of any: its memory begins as zeroes, and the lowest
/// kibibyte of it is the far end of the stack.
const HOLDS: [&str; 2] = ["--zero-filled-memory", "--low-memory-unused"];

/// Functions that are called once stay functions, if they are larger than this: grown together they have so many locals
/// that nothing in them looks like anything else, and the module is smaller raw and larger as it is sent.
const APART: &str = "--one-caller-inline-max-function-size=20";

/// Where the page's development dependencies have `wasm-opt` once `npm ci` has run in `web/`.
pub(crate) fn wasm_opt(root: &Path) -> Option<PathBuf> {
    Some(root.join("web/node_modules/binaryen/bin/wasm-opt")).filter(|script| script.is_file())
}

/// Builds the package and returns its folder, `wasm/pkg` under `root`.
///
/// `optimiser` is the npm package's `wasm-opt` (see [`wasm_opt`]), run through Node; without it the module is larger
/// and otherwise the same.
pub(crate) fn build(root: &Path, target_dir: &Path, optimiser: Option<&Path>) -> anyhow::Result<PathBuf> {
    let compiled = compile(root, target_dir)?;
    let pkg = root.join("wasm/pkg");
    if pkg.exists() {
        fs::remove_dir_all(&pkg).with_context(|| format!("cannot clear {}", pkg.display()))?;
    }
    bind(&compiled, &pkg)?;
    number(&pkg)?;
    if let Some(script) = optimiser {
        optimise(script, &pkg.join("fencegate_bg.wasm"))?;
    }
    describe(root, &pkg)?;
    Ok(pkg)
}

fn compile(root: &Path, target_dir: &Path) -> anyhow::Result<PathBuf> {
    run(Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["build", "--release", "--target", TARGET, "--package", CRATE])
        .args(["--config", &workspace::same_paths(root, TARGET)])
        // Firmware has the core a little faster; here nothing waits for it but the network.
        .args(["--config", "profile.release.package.fencegate.opt-level=\"z\""])
        .arg("--target-dir")
        .arg(target_dir)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    Ok(target_dir.join(TARGET).join("release/fencegate_wasm.wasm"))
}

fn bind(compiled: &Path, pkg: &Path) -> anyhow::Result<()> {
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(compiled)
        .out_name(NAME)
        .web(true)?
        .typescript(true)
        // The default export finds the `.wasm` beside itself; bundlers see that address too.
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(pkg)
        .context("wasm-bindgen cannot write the module")
}

/// Numbers the imports. wasm-bindgen tells two of one name apart by sixteen digits of a hash, which no compression makes
/// smaller; a number of as many digits does it too, here and there in the same places.
fn number(pkg: &Path) -> anyhow::Result<()> {
    let (glue, module) = (pkg.join("fencegate.js"), pkg.join("fencegate_bg.wasm"));
    let (mut text, mut bytes) = (fs::read_to_string(&glue)?, fs::read(&module)?);
    for (n, name) in imports(&text).into_iter().enumerate() {
        let numbered = format!("{}{n:016}", &name[..name.len() - 16]);
        let mut found = 0;
        while let Some(at) = bytes.windows(name.len()).position(|window| window == name.as_bytes()) {
            bytes[at..at + name.len()].copy_from_slice(numbered.as_bytes());
            found += 1;
        }
        ensure!(found == 1, "the import {name} is {found} times in the module");
        text = text.replace(&name, &numbered);
    }
    fs::write(glue, text)?;
    fs::write(module, bytes).context("cannot write the module")
}

/// The names in the glue that end in a hash, each once.
fn imports(glue: &str) -> BTreeSet<String> {
    let names = glue.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let hashed = |name: &&str| {
        name.starts_with("__wbg_")
            && name
                .rsplit_once('_')
                .is_some_and(|(_, end)| end.len() == 16 && end.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    names.filter(hashed).map(str::to_owned).collect()
}

fn optimise(script: &Path, wasm: &Path) -> anyhow::Result<()> {
    run(Command::new("node")
        .arg(script)
        .arg("-Oz")
        .args(HOLDS)
        .args(["-Oz", APART])
        .args(FEATURES)
        .arg(wasm)
        .arg("-o")
        .arg(wasm))
}

/// Adds what npm needs: `package.json`, the README and the licences.
fn describe(root: &Path, pkg: &Path) -> anyhow::Result<()> {
    for file in FILES {
        ensure!(pkg.join(file).is_file(), "wasm-bindgen wrote no {file}");
    }
    let manifest = package_json(&metadata(root)?);
    fs::write(pkg.join("package.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    fs::copy(root.join("wasm/README.md"), pkg.join("README.md")).context("cannot copy the README")?;
    fs::copy(root.join("wasm").join(SCENARIOS), pkg.join(SCENARIOS)).context("cannot copy the scenarios")?;
    for licence in LICENCES {
        if root.join(licence).is_file() {
            fs::copy(root.join(licence), pkg.join(licence))?;
        }
    }
    Ok(())
}

fn package_json(of_crate: &Value) -> Value {
    let files: Vec<_> = FILES.into_iter().chain([SCENARIOS]).chain(LICENCES).collect();
    json!({
        "name": NAME,
        "version": of_crate["version"],
        "description": of_crate["description"],
        "license": of_crate["license"].as_str().map(|l| format!("({l})")),
        "keywords": of_crate["keywords"],
        "type": "module",
        "main": "./fencegate.js",
        "module": "./fencegate.js",
        "types": "./fencegate.d.ts",
        "exports": {
            // The types lie beside it under the same name, where TypeScript looks.
            ".": "./fencegate.js",
            "./fencegate_bg.wasm": "./fencegate_bg.wasm",
            "./scenarios.json": "./scenarios.json",
            "./package.json": "./package.json",
        },
        "files": files,
        // Loading the module does nothing; only its default export does.
        "sideEffects": false,
        "engines": { "node": ">=20" },
    })
}

/// What cargo knows of the crate: one place for its version, description and licence.
fn metadata(root: &Path) -> anyhow::Result<Value> {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
        .current_dir(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.into_iter().find(|p| p["name"] == CRATE).cloned().with_context(|| format!("no crate {CRATE}"))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} ended with {status}: {command:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::imports;

    #[test]
    fn what_ends_in_a_hash_is_numbered_and_nothing_else() {
        let glue = "__wbg_new_0123456789abcdef: () => __wbg_new_0123456789abcdef, __wbg_get_fedcba9876543210(a), \
                    __wbg_story_free, __wbg_short_0123, x__wbg_set_0123456789abcdef, __wbindgen_0123456789abcdef";
        let found: Vec<_> = imports(glue).into_iter().collect();
        assert_eq!(found, ["__wbg_get_fedcba9876543210", "__wbg_new_0123456789abcdef"]);
    }
}
