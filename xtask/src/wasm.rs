//! `cargo xtask wasm`: the npm package `wasm/pkg/`, and `wasm/gate/pkg/`, which the page loads when it needs it.
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

const TARGET: &str = "wasm32-unknown-unknown";

/// A module, which is a crate and becomes a package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    krate: &'static str,
    /// The crate's folder.
    dir: &'static str,
    /// The package, and how its files begin.
    name: &'static str,
    /// What lies in the crate's folder and is part of the package.
    data: &'static [&'static str],
    /// Whether it is for others, too.
    published: bool,
}

/// The lease's arithmetic and its stories.
pub(crate) const LEASES: Module = Module {
    krate: "fencegate-wasm",
    dir: "wasm",
    name: "fencegate",
    // Ready-made stories.
    data: &["scenarios.json"],
    published: true,
};

/// A gate's client. The first module would be half as large again with it, and one view of the page needs it.
pub(crate) const GATE: Module =
    Module { krate: "fencegate-wasm-gate", dir: "wasm/gate", name: "fencegate_gate", data: &[], published: false };

impl Module {
    /// What the package consists of; anything else in the folder is a left-over.
    fn files(self) -> [String; 4] {
        [".js", ".d.ts", "_bg.wasm", "_bg.wasm.d.ts"].map(|end| format!("{}{end}", self.name))
    }
}

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

/// Builds a module's package and returns its folder, `pkg` in the crate's.
///
/// `optimiser` is the npm package's `wasm-opt` (see [`wasm_opt`]), run through Node; without it the module is larger
/// and otherwise the same.
pub(crate) fn build(
    root: &Path,
    target_dir: &Path,
    module: Module,
    optimiser: Option<&Path>,
) -> anyhow::Result<PathBuf> {
    let compiled = compile(root, target_dir, module)?;
    let pkg = root.join(module.dir).join("pkg");
    if pkg.exists() {
        fs::remove_dir_all(&pkg).with_context(|| format!("cannot clear {}", pkg.display()))?;
    }
    bind(&compiled, &pkg, module)?;
    number(&pkg, module)?;
    if let Some(script) = optimiser {
        optimise(script, &pkg.join(format!("{}_bg.wasm", module.name)))?;
    }
    describe(root, &pkg, module)?;
    Ok(pkg)
}

fn compile(root: &Path, target_dir: &Path, module: Module) -> anyhow::Result<PathBuf> {
    run(Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["build", "--release", "--target", TARGET, "--package", module.krate])
        .args(["--config", &workspace::same_paths(root, TARGET)])
        // Firmware has the core a little faster; here nothing waits for it but the network.
        .args(["--config", "profile.release.package.fencegate.opt-level=\"z\""])
        .arg("--target-dir")
        .arg(target_dir)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    Ok(target_dir.join(TARGET).join("release").join(format!("{}.wasm", module.krate.replace('-', "_"))))
}

fn bind(compiled: &Path, pkg: &Path, module: Module) -> anyhow::Result<()> {
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(compiled)
        .out_name(module.name)
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
fn number(pkg: &Path, module: Module) -> anyhow::Result<()> {
    let glue = pkg.join(format!("{}.js", module.name));
    let wasm = pkg.join(format!("{}_bg.wasm", module.name));
    let (mut text, mut bytes) = (fs::read_to_string(&glue)?, fs::read(&wasm)?);
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
    fs::write(wasm, bytes).context("cannot write the module")
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
fn describe(root: &Path, pkg: &Path, module: Module) -> anyhow::Result<()> {
    for file in module.files() {
        ensure!(pkg.join(&file).is_file(), "wasm-bindgen wrote no {file}");
    }
    let manifest = package_json(&metadata(root, module)?, module);
    fs::write(pkg.join("package.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    for file in ["README.md"].iter().chain(module.data) {
        fs::copy(root.join(module.dir).join(file), pkg.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    for licence in LICENCES {
        if root.join(licence).is_file() {
            fs::copy(root.join(licence), pkg.join(licence))?;
        }
    }
    Ok(())
}

fn package_json(of_crate: &Value, module: Module) -> Value {
    let own = module.files();
    let files: Vec<_> = own.iter().map(String::as_str).chain(module.data.iter().copied()).chain(LICENCES).collect();
    let entry = format!("./{}", own[0]);
    let mut exports = json!({
        // The types lie beside it under the same name, where TypeScript looks.
        ".": entry,
    });
    for file in [own[2].as_str()].iter().chain(module.data).chain(&["package.json"]) {
        let file = format!("./{file}");
        exports[&file] = json!(file);
    }
    let mut manifest = json!({
        "name": module.name,
        "version": of_crate["version"],
        "description": of_crate["description"],
        "license": of_crate["license"].as_str().map(|l| format!("({l})")),
        "keywords": of_crate["keywords"],
        "type": "module",
        "main": entry,
        "module": entry,
        "types": format!("./{}", own[1]),
        "exports": exports,
        "files": files,
        // Loading the module does nothing; only its default export does.
        "sideEffects": false,
        "engines": { "node": ">=20" },
    });
    if !module.published {
        manifest["private"] = json!(true);
    }
    manifest
}

/// What cargo knows of the crate: one place for its version, description and licence.
fn metadata(root: &Path, module: Module) -> anyhow::Result<Value> {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
        .current_dir(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .into_iter()
        .find(|p| p["name"] == module.krate)
        .cloned()
        .with_context(|| format!("no crate {}", module.krate))
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
