//! A command under a lease, and what it leaves to be looked at.

use fencegate_host::clock;
use fencegate_tests::{EmulatedGate, Said, Server, fencegate};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
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
    hold_of("press-7", ttl, coordinator, holder, flags, script)
}

/// `fencegate hold` for another lock.
pub(super) fn hold_of(lock: &str, ttl: &str, coordinator: &str, holder: &str, flags: &[&str], script: &str) -> Command {
    let mut command = fencegate();
    command.args(["hold", "--coordinator", coordinator, "--lock", lock, "--holder", holder]);
    command.args(["--ttl", ttl, "--drift", "1000ppm"]).args(flags).args(["--", "sh", "-c", script]);
    as_a_job(command)
}

/// In a group of its own, as a shell gives to a job, and with pipes.
fn as_a_job(mut command: Command) -> Command {
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same command where there are no control groups; only root can take them away.
pub(super) fn without_groups(command: &Command) -> Command {
    let mut alone = Command::new("unshare");
    alone.args(["--mount", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"", "sh"]);
    alone.arg(command.get_program()).args(command.get_args());
    as_a_job(alone)
}

/// The same command with a terminal for both its outputs; what is on it comes on standard output.
pub(super) fn on_a_terminal(command: &Command) -> Command {
    let quoted = |word: &OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    let mut terminal = Command::new("script");
    // A shell that stays between the two would die of what is typed.
    let line = format!("exec {}", words.collect::<Vec<_>>().join(" "));
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    as_a_job(terminal)
}

/// The same, with somebody at its keyboard: what is written to its standard input is typed.
pub(super) fn at_a_keyboard(command: &Command) -> Command {
    let mut terminal = on_a_terminal(command);
    terminal.stdin(Stdio::piped());
    terminal
}

/// `fencegate hold` for a lock whose name has in it what means something to somebody.
pub(super) fn odd(coordinator: &str) -> Command {
    let mut command = fencegate();
    command.args(["hold", "--coordinator", coordinator, "--lock", "ü 'x' \"y\" $z/..; --", "--ttl", "3s"]);
    command.args(["--drift", "1ppm", "--", "true"]);
    as_a_job(command)
}

/// A key file of the gate's for one principal alone: `--holder b`, `--observer`.
pub(super) fn key_of(gate: &EmulatedGate, whose: &str) -> String {
    let file = gate.folder().join(format!("{}.key", whose.trim_start_matches('-').replace(' ', "-")));
    let said = Said::by(&mut gate.host(&format!("key {whose} --out {}", file.display())));
    assert_eq!(said.status, 0, "{said:?}");
    file.to_str().unwrap().to_owned()
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

    /// Types some characters, where somebody is at its keyboard.
    pub(super) fn types(&mut self, characters: &[u8]) {
        self.0.stdin.as_mut().unwrap().write_all(characters).unwrap();
    }

    /// Waits for its exit status.
    pub(super) fn status(&mut self) -> i32 {
        let begun = Instant::now();
        loop {
            match self.0.try_wait().unwrap() {
                Some(status) => return status.code().unwrap_or(-1),
                None => assert!(begun.elapsed() < PATIENCE, "it does not end"),
            }
            sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn end(mut self) -> Said {
        let status = self.status();
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

/// What `--status` shows of the window on a terminal: what is left of it, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    Granted(u64),
    Renewed(u64),
    /// As it runs down.
    Left(u64),
}

/// All of it, in order.
pub(super) fn shown(out: &str) -> Vec<Shown> {
    let words = |text: &str| {
        let left = text.split_once("window")?.1.trim_start_matches([':', ' ']);
        Some(microseconds(left.split_once(" left").map_or(left, |(left, _)| left)))
    };
    let one = |line: &str| match line.trim().trim_start_matches("\u{1b}[K") {
        line if line.starts_with("acquired: ") => words(line).map(Shown::Granted),
        line if line.starts_with("renewed: ") => words(line).map(Shown::Renewed),
        line if line.starts_with("window: ") => words(line).map(Shown::Left),
        _ => None,
    };
    out.split(['\r', '\n']).filter_map(one).collect()
}

/// What is left, as a terminal has shown it, is never more than what a TTL of the server's is at least by our clock; and
/// between two answers to renewals of ours it only runs down. How many of those there were.
pub(super) fn grows_only_with_answers(out: &str, ttl: u64) -> usize {
    // Shown in milliseconds.
    let (shown, whole, mut left) = (shown(out), ttl * 1_000 / 1_001 + 1_000, u64::MAX);
    assert!(matches!(shown.first(), Some(Shown::Granted(_))), "{out}");
    for (n, one) in shown.iter().enumerate() {
        left = match *one {
            Shown::Granted(now) | Shown::Renewed(now) => now,
            Shown::Left(now) => {
                assert!(now <= left, "it has grown by itself, at {n}: {shown:?}");
                now
            }
        };
        assert!(left <= whole, "it is longer than any answer allows, at {n}: {shown:?}");
    }
    shown.iter().filter(|shown| matches!(shown, Shown::Renewed(_))).count()
}

fn microseconds(text: &str) -> u64 {
    let (number, unit) = text.split_once(' ').unwrap();
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let unit = match unit {
        "s" => 1_000_000,
        "ms" => 1_000,
        "µs" => 1,
        _ => panic!("{text}"),
    };
    let thousandths = format!("{part:0<3}").parse::<u64>().unwrap();
    whole.parse::<u64>().unwrap() * unit + thousandths * unit / 1_000
}
