//! The watcher: starts the command, and kills it and all its descendants before the window closes, whatever has become of
//! the process that speaks with the coordinator.

use super::super::output::{Failure, Outcome};
use super::signals::{TERM, Typed};
use super::supervise::{is_time, kill_at};
use super::{cgroup, descendants};
use fencegate::{Deadline, Duration, Instant};
use fencegate_host::runner::{BootClock, Clock};
use rustix::process::{Pid, Signal, WaitStatus, getpgid, getpgrp, getpid, kill_process};
use std::ffi::OsString;
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

/// What `hold` calls itself with.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where `hold` listens.
    #[arg(long)]
    socket: PathBuf,
    /// How long before the window's end to kill, in microseconds.
    #[arg(long)]
    reserve: u64,
    /// The command's control group.
    #[arg(long)]
    group: Option<PathBuf>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err hands over")]
fn failed(error: std::io::Error) -> Failure {
    Failure::new(126, format_args!("watcher: {error}"))
}

/// The command, as far as it has got.
struct Watched {
    child: Pid,
    /// Its exit status as a shell has it, once it has ended.
    status: Option<u8>,
}

impl Watched {
    fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.child {
            let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
            self.status = code.and_then(|code| u8::try_from(code).ok()).or(self.status);
        }
    }

    fn signal(&self, number: i32) {
        if let (None, Some(signal)) = (self.status, Signal::from_named_raw(number)) {
            let _ = kill_process(self.child, signal);
        }
    }

    /// Whether what is typed comes to it as it comes to this process: not where it has begun a group or a session (`setsid`).
    fn is_in_our_group(&self) -> bool {
        getpgid(Some(self.child)).is_ok_and(|group| group == getpgrp())
    }
}

impl Args {
    pub(in crate::cli) fn run(self) -> Result<Outcome, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        runtime.block_on(self.watch())
    }

    async fn watch(self) -> Result<Outcome, Failure> {
        // A signal to the whole group, as a terminal sends it, is not for the watcher; handled, and not ignored, since what
        // is ignored stays so in the command.
        for number in [1, TERM, 10, 12, 20] {
            drop(signal(SignalKind::from_raw(number)).map_err(failed)?);
        }
        let [mut interrupt, mut quit] = Typed::listen().map_err(failed)?;
        let mut children = signal(SignalKind::child()).map_err(failed)?;
        descendants::adopt().map_err(failed)?;
        let (from, mut to) = UnixStream::connect(&self.socket).await.map_err(failed)?.into_split();
        let mut lines = BufReader::new(from).lines();
        let reserve = Duration::from_micros(self.reserve);
        let first = lines.next_line().await.map_err(failed)?.unwrap_or_default();
        let Some(Told::Deadline(end)) = told(&first) else { return Err(Failure::new(126, "watcher: told nothing")) };
        let mut kill = kill_at(end, reserve);
        if is_time(kill) {
            return Err(Failure::new(126, "watcher: no time is left"));
        }

        let group = self.group.as_deref();
        let mut watched = Watched { child: self.start()?, status: None };
        let mut alone = false;
        while watched.status.is_none() {
            tokio::select! {
                line = lines.next_line(), if !alone => match line.ok().flatten().as_deref().map(told) {
                    Some(Some(Told::Deadline(end))) => kill = kill_at(end, reserve),
                    Some(Some(Told::Signal(number))) => {
                        let brought = interrupt.has_brought(number).await || quit.has_brought(number).await;
                        if !(brought && watched.is_in_our_group()) {
                            watched.signal(number);
                        }
                    }
                    Some(None) => {}
                    // The holder is gone, and nobody renews any more.
                    None => {
                        alone = true;
                        watched.signal(TERM);
                    }
                },
                () = interrupt.comes() => {}
                () = quit.comes() => {}
                _ = children.recv() => descendants::reap(|pid, status| watched.reaped(pid, status)),
                () = BootClock.until(kill.instant()) => {
                    descendants::kill_all(group, |pid, status| watched.reaped(pid, status));
                    break;
                }
            }
        }
        // What it leaves behind has no lease.
        descendants::kill_all(group, |pid, status| watched.reaped(pid, status));
        cgroup::remove(group);
        let status = watched.status.unwrap_or(128 + 9);
        let _ = to.write_all(format!("ended {status}\n").as_bytes()).await; // the holder may be gone
        Ok(Outcome::Status(status))
    }

    fn start(&self) -> Result<Pid, Failure> {
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = std::process::Command::new(program);
        command.arg("hold-exec").arg("--parent").arg(getpid().as_raw_nonzero().to_string());
        if let Some(group) = &self.group {
            command.arg("--group").arg(group);
        }
        command.arg("--").args(&self.command);
        let child = command.spawn().map_err(failed)?;
        i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| Failure::new(126, "watcher: no process"))
    }
}

/// What the holder says.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Deadline(Deadline),
    Signal(i32),
}

fn told(line: &str) -> Option<Told> {
    let (word, number) = line.split_once(' ')?;
    match word {
        "deadline" => Some(Told::Deadline(Deadline::at(Instant::from_micros(number.parse().ok()?)))),
        "signal" => Some(Told::Signal(number.parse().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_deadline_or_a_signal() {
        assert_eq!(told("deadline 7"), Some(Told::Deadline(Deadline::at(Instant::from_micros(7)))));
        assert_eq!(told("signal 15"), Some(Told::Signal(15)));
        for odd in ["", "deadline", "deadline -1", "signal x", "go 1"] {
            assert_eq!(told(odd), None, "{odd}");
        }
    }
}
