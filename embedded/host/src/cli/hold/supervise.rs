//! The command, from its start under a lease to the end of its last descendant.

use super::super::output::Failure;
use super::cgroup::Group;
use super::descendants;
use super::signals::{Signals, TERM};
use fencegate::{Deadline, Duration, Instant};
use fencegate_host::clock;
use fencegate_host::runner::{BootClock, Clock, Lease};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixDatagram, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long the watcher may take to be there.
const START: std::time::Duration = std::time::Duration::from_secs(5);

/// A command that is there.
#[derive(Debug)]
pub(super) struct Command(Vec<OsString>);

impl Command {
    /// Looks for it, so that nobody waits for a lease that nothing can be done with.
    pub(super) fn find(words: &[OsString]) -> Result<Self, Failure> {
        let Some(program) = words.first() else { return Err(Failure::input("command: missing")) };
        let shown = program.to_string_lossy();
        let file = |path: &Path| path.metadata().is_ok_and(|meta| meta.is_file());
        let runs =
            |path: &Path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        let path = Path::new(program);
        let (there, can_run) = if program.as_encoded_bytes().contains(&b'/') {
            (file(path), runs(path))
        } else {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            let places: Vec<_> = std::env::split_paths(&folders).map(|folder| folder.join(path)).collect();
            (places.iter().any(|place| file(place)), places.iter().any(|place| runs(place)))
        };
        match (there, can_run) {
            (_, true) => Ok(Self(words.to_vec())),
            (true, false) => Err(Failure::new(126, format_args!("command: `{shown}` is not a program"))),
            (false, false) => Err(Failure::new(127, format_args!("command: `{shown}`: there is none"))),
        }
    }
}

/// What runs it.
pub(super) struct Supervisor {
    pub(super) command: Command,
    /// How long before the window's end it is killed.
    pub(super) reserve: Duration,
    pub(super) progress: Option<Duration>,
    pub(super) signals: Signals,
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::new(126, format_args!("{what}: {error}"))
}

impl Supervisor {
    /// Runs it to its end: its exit status as a shell has it. Nothing of it lives when this returns.
    pub(super) async fn run(mut self, lease: Lease) -> Result<u8, Failure> {
        let ends = async {
            let group = Group::make();
            let group = group.as_ref().map(Group::path);
            let ran = self.watched(&lease, group).await;
            kill_all(group).await;
            ran
        };
        tokio::select! {
            ran = ends => ran,
            never = give_up(&lease) => match never {},
        }
    }

    async fn watched(&mut self, lease: &Lease, group: Option<&Path>) -> Result<u8, Failure> {
        descendants::adopt().map_err(failed("no reaper"))?;
        let folder = tempfile::tempdir().map_err(failed("no folder"))?;
        let socket = folder.path().join("watcher");
        let listener = UnixListener::bind(&socket).map_err(failed("no socket"))?;
        let notify = folder.path().join("notify");
        let progress = match self.progress {
            Some(limit) => Some((UnixDatagram::bind(&notify).map_err(failed("no socket"))?, limit)),
            None => None,
        };
        let program = std::env::current_exe().map_err(failed("no program"))?;
        let mut watcher = std::process::Command::new(program);
        watcher
            .arg("hold-watch")
            .arg("--socket")
            .arg(&socket)
            .arg("--reserve")
            .arg(self.reserve.as_micros().to_string());
        if let Some(group) = group {
            watcher.arg("--group").arg(group);
        }
        watcher.arg("--").args(&self.command.0);
        let stamp = lease.stamp();
        watcher.env("FENCEGATE_TOKEN", stamp.token.to_string()).env("FENCEGATE_EPOCH", stamp.epoch.to_string());
        watcher.env("FENCEGATE_HOLDER", stamp.holder.to_string());
        watcher.env("FENCEGATE_DEADLINE", lease.deadline().instant().as_micros().to_string());
        if let Some((_, limit)) = &progress {
            watcher.env("NOTIFY_SOCKET", &notify).env("WATCHDOG_USEC", limit.as_micros().to_string());
        }
        let _watcher = watcher.spawn().map_err(failed("no watcher"))?; // reaped with all the others
        let there = timeout(START, listener.accept()).await.map_err(|_| Failure::new(126, "no watcher"))?;
        let (line, _) = there.map_err(failed("no watcher"))?;
        Ok(self.converse(lease, line, progress.as_ref().map(|(socket, _)| socket)).await)
    }

    /// Tells the watcher of each renewal, of cancellation and of signals, until it says how the command has ended.
    async fn converse(&mut self, lease: &Lease, line: UnixStream, progress: Option<&UnixDatagram>) -> u8 {
        let (from, mut to) = line.into_split();
        let mut lines = BufReader::new(from).lines();
        let mut deadlines = lease.deadlines();
        let mut asked = false;
        let mut end = *deadlines.borrow_and_update();
        let (mut told, mut say) = (None, Vec::new());
        let mut note = [0; 512];
        loop {
            // The next line once the last is out. A watcher that takes none is found out by its own end, or by the window's.
            if say.is_empty() && told != Some(end) {
                told = Some(end);
                say = format!("deadline {}\n", end.instant().as_micros()).into_bytes();
            }
            tokio::select! {
                said = lines.next_line() => return ended(said.ok().flatten().as_deref()),
                // Should the watcher hang: half the reserve is left to kill it with all the rest.
                () = BootClock.until(last_moment(end, self.reserve)) => return ended(None),
                wrote = to.write(&say), if !say.is_empty() => {
                    let out = wrote.unwrap_or(say.len()); // it is gone: its end is heard of above
                    say.drain(..out);
                }
                Ok(()) = deadlines.changed() => end = *deadlines.borrow_and_update(),
                () = lease.cancelled().cancelled(), if !asked && say.is_empty() => {
                    asked = true;
                    if !self.signals.ask() {
                        say = format!("signal {TERM}\n").into_bytes();
                    }
                }
                Some(signal) = self.signals.pass.recv(), if say.is_empty() => {
                    say = format!("signal {signal}\n").into_bytes();
                }
                Ok(length) = receive(progress, &mut note) => {
                    if note.get(..length).is_some_and(|note| note.split(|b| *b == b'\n').any(|line| line == b"WATCHDOG=1")) {
                        lease.progress();
                    }
                }
            }
        }
    }
}

/// Nothing is renewed once cancellation has tripped, whatever has tripped it: what does not listen, or may not be killed, would
/// keep the lock for ever.
async fn give_up(lease: &Lease) -> Infallible {
    lease.cancelled().cancelled().await;
    lease.hand_over();
    std::future::pending().await
}

/// What the watcher has done already, unless it was killed itself. It takes as long as something lives that cannot be killed,
/// so it has a thread of its own: renewals go on meanwhile, and signals are heard.
async fn kill_all(group: Option<&Path>) {
    let (done, ended) = oneshot::channel();
    let theirs = group.map(Path::to_owned);
    let kill = move || {
        descendants::kill_all(theirs.as_deref(), |_, _| ());
        let _ = done.send(());
    };
    // Where no thread is to be had, since the command has forked so often, it has to be this one.
    if std::thread::Builder::new().spawn(kill).is_err() || ended.await.is_err() {
        descendants::kill_all(group, |_, _| ());
    }
}

async fn receive(socket: Option<&UnixDatagram>, note: &mut [u8]) -> std::io::Result<usize> {
    match socket {
        Some(socket) => socket.recv(note).await,
        None => std::future::pending().await,
    }
}

/// When the watcher should long have killed it.
fn last_moment(end: Deadline, reserve: Duration) -> Instant {
    let half = Duration::from_micros(reserve.as_micros() / 2);
    Instant::from_micros(end.instant().as_micros().saturating_sub(half.as_micros()))
}

/// How the command has ended, as the watcher has it: `ended STATUS`. Silence is a watcher that is gone.
fn ended(said: Option<&str>) -> u8 {
    let status = said.and_then(|line| line.strip_prefix("ended ")).and_then(|status| status.parse().ok());
    status.unwrap_or(128 + 9) // killed by the one above
}

/// When to kill what runs under a window that ends so.
pub(super) fn kill_at(end: Deadline, reserve: Duration) -> Deadline {
    Deadline::at(Instant::from_micros(end.instant().as_micros().saturating_sub(reserve.as_micros())))
}

/// Whether it is time.
pub(super) fn is_time(at: Deadline) -> bool {
    at.is_over(clock::now())
}
