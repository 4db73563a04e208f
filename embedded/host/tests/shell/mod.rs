//! The command as a shell runs it: what is typed, what is printed, and the exit status.

#![allow(dead_code, reason = "each of the tests that share this uses a part of it")]

use serde_json::{Map, Value};
use std::process::{Command, Output};

/// What a command did.
pub(crate) struct Ran {
    /// Its exit status.
    pub(crate) status: i32,
    /// What it printed on standard output.
    pub(crate) out: String,
    /// What it printed on standard error.
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("Unicode");
        Self {
            status: output.status.code().expect("an exit status, not a signal"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// The command with its arguments, not yet run.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencegate"));
    command.args(arguments);
    command
}

/// Runs a line as typed.
pub(crate) fn typed(line: &str) -> Ran {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("fencegate"));
    command(&words.collect::<Vec<_>>()).output().expect("the binary runs").into()
}

/// Runs a line as typed with `--json`: the status and the one object printed on one line.
#[track_caller]
pub(crate) fn answer(line: &str) -> (i32, Map<String, Value>) {
    let ran = typed(&format!("{line} --json"));
    assert_eq!(ran.err, "", "{line}");
    assert_eq!(ran.out.find('\n'), Some(ran.out.len() - 1), "one line: {line}");
    (ran.status, serde_json::from_str(&ran.out).expect("one object"))
}

/// As [`answer`], the object as a value to be compared whole.
#[track_caller]
pub(crate) fn object(line: &str) -> (i32, Value) {
    let (status, fields) = answer(line);
    (status, Value::from(fields))
}

/// Runs a line that must be refused: status 2, nothing on standard output, one line that has the words.
#[track_caller]
pub(crate) fn refused(line: &str, words: &str) {
    fails(line, 2, words);
}

/// Runs a line that has no answer: the status, nothing on standard output, one line that has the words.
#[track_caller]
pub(crate) fn fails(line: &str, status: i32, words: &str) {
    let ran = typed(line);
    assert_eq!((ran.status, ran.out.as_str()), (status, ""), "{line}: {}", ran.err);
    assert_eq!(ran.err.find('\n'), Some(ran.err.len() - 1), "one line: {line}: {}", ran.err);
    assert!(ran.err.contains(words), "{line}: {} does not say {words}", ran.err);
}

/// A terminal: its keyboard's end, and the end that a command draws on.
#[cfg(target_os = "linux")]
pub(crate) fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end");
    let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("Unicode");
    let screen = std::fs::OpenOptions::new().read(true).write(true).open(name).expect("its other end");
    (master.into(), screen)
}
