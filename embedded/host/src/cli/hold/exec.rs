//! The last step before the command: the kernel is told to kill it when the watcher dies.

use super::super::output::{Failure, Outcome};
use super::cgroup;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// What the watcher calls itself with.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The watcher.
    #[arg(long)]
    parent: i32,
    /// The control group that the command belongs into.
    #[arg(long)]
    group: Option<PathBuf>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(in crate::cli) fn run(self) -> Result<Outcome, Failure> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| Failure::new(126, format_args!("no parent-death signal: {error}")))?;
        // One that died before that is never heard of.
        if getppid() != Pid::from_raw(self.parent) {
            return Err(Failure::new(126, "the watcher is gone"));
        }
        // Before the command is there, so that all that it ever starts is in it.
        // One that may be made and not be entered is as good as none: the others see to it that nothing outlives the lease.
        if let Some(group) = &self.group {
            let _ = cgroup::enter(group);
        }
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(Failure::input("command: missing"));
        };
        // It keeps the death signal, unless it changes its user, which is the kernel's rule.
        let error = Command::new(program).args(arguments).exec();
        let status = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        Err(Failure::new(status, format_args!("command: `{}`: {error}", program.to_string_lossy())))
    }
}
