//! The repository: where it is, what is in it, and cargo for it.

use crate::step;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, path};

/// A crate of this workspace.
#[derive(Debug)]
pub struct Member {
    /// The package's name.
    pub name: String,
    /// Its folder, from the repository's root, with `/` between the parts.
    pub dir: String,
    /// Names of this workspace's packages it depends on, in any way.
    pub uses: Vec<String>,
    /// Its features, `default` left out.
    pub features: Vec<String>,
    /// The root files of its library and its programs.
    pub roots: Vec<PathBuf>,
}

/// The repository's root.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// What is checked out, as git names it; with a mark where anything but the record was changed since.
pub fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| Command::new("git").args(arguments).current_dir(root).output().ok();
    let named = git(&["describe", "--always", "--exclude=*"])
        .map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    let named = named.filter(|name| !name.is_empty()).unwrap_or_else(|| "an unknown commit".to_owned());
    let same =
        git(&["diff", "--quiet", "HEAD", "--", ".", ":!tests/BENCH.md"]).is_some_and(|said| said.status.success());
    if same { named } else { named + ", changed" }
}

/// The cargo that runs this, to be run in `dir`. A relative `CARGO_TARGET_DIR` means the same folder there.
///
/// What the cargo that runs this tells this program of its own package is kept from it: a build script may ask for these
/// names (ring's does), and what hangs on it would be built anew whenever another package's program calls cargo.
pub fn cargo(dir: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(dir);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    if let Some(target) = env::var_os("CARGO_TARGET_DIR").and_then(|dir| path::absolute(dir).ok()) {
        command.env("CARGO_TARGET_DIR", target);
    }
    command
}

/// A setting for cargo that makes what it builds for `target` the same on every machine: panic messages carry the paths
/// of sources.
pub fn same_paths(root: &Path, target: &str) -> String {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let remap = |from: &Path, to: &str| format!("{:?}", format!("--remap-path-prefix={}=/{to}", from.display()));
    let flags: Vec<_> =
        [remap(root, "fencegate")].into_iter().chain(home.as_deref().map(|home| remap(home, "cargo"))).collect();
    format!("target.{target}.rustflags=[{}]", flags.join(","))
}

/// Where cargo puts what it builds for the repository at `root`.
pub fn target_dir(root: &Path) -> Result<PathBuf> {
    let metadata = metadata(root)?;
    let dir = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    Ok(dir.into())
}

/// The crates of the workspace at `root`.
pub fn members(root: &Path) -> Result<Vec<Member>> {
    members_in(&metadata(root)?)
}

/// The boards that have firmware: the names of the folders in `embedded/firmware/`.
pub fn boards(members: &[Member]) -> impl Iterator<Item = &str> {
    members.iter().filter_map(|member| member.board())
}

/// The folders of what runs without an operating system: the boards' firmware, and the tests' images.
pub fn bare(members: &[Member]) -> impl Iterator<Item = &str> {
    members.iter().filter(|member| member.is_bare()).map(|member| member.dir.as_str())
}

/// Arguments that select what builds for the machine at hand: everything but bare images and the module.
pub fn host_crates(members: &[Member]) -> Vec<&str> {
    let elsewhere = members.iter().filter(|member| member.is_bare() || member.is_module());
    ["--workspace"].into_iter().chain(elsewhere.flat_map(|member| ["--exclude", member.name.as_str()])).collect()
}

impl Member {
    /// The board, if this is a board's firmware.
    pub fn board(&self) -> Option<&str> {
        self.dir.strip_prefix("embedded/firmware/")
    }

    /// Whether it is a module for JavaScript.
    pub fn is_module(&self) -> bool {
        self.dir == "wasm" || self.dir.starts_with("wasm/")
    }

    /// Whether it runs without an operating system; its folder has a `.cargo/config.toml` that names its target.
    pub fn is_bare(&self) -> bool {
        self.board().is_some() || ["tests/bare", "tests/image"].contains(&self.dir.as_str())
    }
}

/// What `cargo metadata` says of the workspace at `root`, dependencies' own packages left out.
fn metadata(root: &Path) -> Result<Value> {
    let mut command = cargo(root);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = command.output().with_context(|| format!("running `{}`", step::shown(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", step::shown(&command), String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("`cargo metadata` did not answer in JSON")
}

pub(crate) fn members_in(metadata: &Value) -> Result<Vec<Member>> {
    let root = Path::new(metadata["workspace_root"].as_str().context("`cargo metadata` names no workspace root")?);
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let names: Vec<_> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    packages
        .iter()
        .map(|package| {
            let name = package["name"].as_str().context("`cargo metadata` lists a package without a name")?.to_owned();
            let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
            let dir = manifest.parent().and_then(|dir| dir.strip_prefix(root).ok()).unwrap_or(manifest);
            let dir = dir.to_string_lossy().replace('\\', "/");
            let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut uses: Vec<_> = dependencies
                .iter()
                .filter_map(|dependency| dependency["name"].as_str())
                .filter(|dependency| names.contains(dependency))
                .map(str::to_owned)
                .collect();
            uses.sort();
            uses.dedup();
            let features = package["features"].as_object().into_iter().flatten();
            let features =
                features.map(|(feature, _)| feature.clone()).filter(|feature| feature != "default").collect();
            let targets = package["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_root = |target: &&Value| {
                let kinds = target["kind"].as_array().map(Vec::as_slice).unwrap_or_default();
                kinds.iter().filter_map(Value::as_str).any(|kind| kind == "bin" || kind.ends_with("lib"))
            };
            let roots = targets.iter().filter(is_root).filter_map(|target| target["src_path"].as_str());
            let roots = roots.map(PathBuf::from).collect();
            Ok(Member { name, dir, uses, features, roots })
        })
        .collect()
}
