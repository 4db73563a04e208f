//! A command under a lease, and what it leaves to be looked at.

use fencegate_host::clock;
use fencegate_tests::{Said, Server, fencegate};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long anything may take here.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// `fencegate hold` for a lock of 3 s.
pub(super) fn hold(coordinator: &str, holder: &str, flags: &[&str], script: &str) -> Command {
    hold_for("3s", coordinator, holder, flags, script)
}

/// `fencegate hold` for a lock of `ttl`.
pub(super) fn hold_for(ttl: &str, coordinator: &str, holder: &str, flags: &[&str], script: &str) -> Command {
    let mut command = fencegate();
    command.args(["hold", "--coordinator", coordinator, "--lock", "press-7", "--holder", holder]);
    command.args(["--ttl", ttl, "--drift", "1000ppm"]).args(flags).args(["--", "sh", "-c", script]);
    // A group of its own, as a shell gives to a job.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `fencegate hold` for a lock whose name has in it what means something to somebody.
pub(super) fn odd(coordinator: &str) -> Command {
    let mut command = fencegate();
    command.args(["hold", "--coordinator", coordinator, "--lock", "ü 'x' \"y\" $z/..; --", "--ttl", "3s"]);
    command.args(["--drift", "1ppm", "--", "true"]);
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How to begin a `hold` at some coordinator: for a holder, with flags, around a script.
pub(super) type Begin<'a> = &'a dyn Fn(&str, &[&str], &str) -> Held;

/// At the coordinator with this address.
pub(super) fn at(coordinator: &str) -> impl Fn(&str, &[&str], &str) -> Held {
    move |holder, flags, script| Held::begin(hold(coordinator, holder, flags, script))
}

pub(super) fn etcd_url(server: &Server) -> String {
    format!("etcd://{}:{}", server.host, server.port)
}

pub(super) fn zookeeper_url(server: &Server) -> String {
    format!("zookeeper://127.0.0.1:{}", server.port)
}

pub(super) fn postgres_url(server: &Server) -> String {
    format!("postgres://tester@127.0.0.1:{}/postgres", server.port)
}

/// A `hold` that is under way. Dropping it kills its whole group.
pub(super) struct Held(pub(super) Child);

impl Held {
    pub(super) fn begin(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(super) fn signal(&self, name: &str) {
        signal(name, &self.0.id().to_string());
    }

    pub(super) fn signal_all(&self, name: &str) {
        signal(name, &format!("-{}", self.0.id()));
    }

    pub(super) fn end(mut self) -> Said {
        let begun = Instant::now();
        let status = loop {
            match self.0.try_wait().unwrap() {
                Some(status) => break status.code().unwrap_or(-1),
                None => assert!(begun.elapsed() < PATIENCE, "it does not end"),
            }
            sleep(Duration::from_millis(10));
        };
        let (mut out, mut err) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        Said { status, out, err }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "KILL", "--", &format!("-{}", self.0.id())]).output();
        let _ = self.0.wait();
    }
}

pub(super) fn signal(name: &str, whom: &str) {
    assert!(Command::new("kill").args(["-s", name, "--", whom]).status().unwrap().success(), "{name} to {whom}");
}

/// Waits for a file, and reads it.
pub(super) fn appears(file: &Path) -> String {
    let begun = Instant::now();
    loop {
        match fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(begun.elapsed() < PATIENCE, "{} does not appear", file.display()),
        }
        sleep(Duration::from_millis(5));
    }
}

/// A loop that writes the time since boot into a file, every 50 ms, for ever.
pub(super) fn marks(file: &Path) -> String {
    format!("while :; do cut -d' ' -f1 /proc/uptime >> {}; sleep 0.05; done", file.display())
}

/// The last time in such a file, in microseconds.
pub(super) fn last(file: &Path) -> u64 {
    uptime(fs::read_to_string(file).unwrap().trim_end().lines().last().unwrap())
}

/// The first.
pub(super) fn first(file: &Path) -> u64 {
    uptime(fs::read_to_string(file).unwrap().lines().next().unwrap())
}

/// Seconds since boot, as `/proc/uptime` has them, in microseconds.
fn uptime(text: &str) -> u64 {
    let (seconds, hundredths) = text.split_once('.').unwrap();
    seconds.parse::<u64>().unwrap() * 1_000_000 + hundredths.parse::<u64>().unwrap() * 10_000
}

pub(super) fn now() -> u64 {
    clock::now().as_micros()
}

/// Nothing is written into the file any more.
pub(super) fn is_silent(file: &Path) {
    let before = last(file);
    sleep(Duration::from_millis(300));
    assert_eq!(last(file), before, "somebody lives on");
}
