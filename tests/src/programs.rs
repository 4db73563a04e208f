//! The programs of this workspace, as a user runs them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A program of this workspace, built if it is not up to date.
///
/// # Panics
/// Where it cannot be built.
fn program(package: &str, name: &str, features: &str) -> PathBuf {
    built(package, &["--bin", name, "--features", features], name)
}

fn built(package: &str, what: &[&str], place: &str) -> PathBuf {
    let root = xtask::workspace::root();
    let mut cargo = xtask::workspace::cargo(root);
    let built = cargo.args(["build", "--quiet", "--package", package]).args(what).status().unwrap();
    assert!(built.success(), "{place} does not build");
    xtask::workspace::target_dir(root).unwrap().join("debug").join(place)
}

/// An example of a crate's.
pub fn example(package: &str, name: &str) -> Command {
    Command::new(built(package, &["--example", name], &format!("examples/{name}")))
}

/// The command `fencegate`, with everything that it can have.
pub fn fencegate() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    Command::new(PROGRAM.get_or_init(|| program("fencegate-host", "fencegate", "dynamodb,etcd,zookeeper")))
}

/// `cargo xtask`, without cargo.
pub fn xtask() -> Command {
    Command::new(xtask_program())
}

/// Where it is.
pub(crate) fn xtask_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| program("xtask", "xtask", ""))
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// The exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// Where it cannot be run, or is ended by a signal.
    pub fn by(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: status.code().expect("no signal"), out: text(stdout), err: text(stderr) }
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// Where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}
