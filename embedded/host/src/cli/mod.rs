//! The subcommands, and what becomes of them: an answer on standard output or one line on standard error, and an exit
//! status. A subcommand is a struct of flags with a `run` that gives `Result<Outcome, Failure>`, in a file of its own.

mod audit;
mod check;
#[cfg(target_os = "linux")]
mod doctor;
mod gate;
mod guard;
#[cfg(target_os = "linux")]
mod hold;
mod output;
mod plan;
mod presets;
mod quorum;
mod redlock;
mod size;
mod units;
mod window;
mod wrong;

use clap::{Parser, Subcommand};
use fencegate::Instant;
use output::{Failure, Outcome};
use std::ffi::OsString;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "fencegate", version, about = "Leases and fencing tokens for machines that move things")]
#[command(arg_required_else_help = false, after_help = STATUSES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const STATUSES: &str = "Exit status: 0 yes or done, 1 the answer is no or the gate refused, 2 the input is wrong, \
3 no answer from the gate in time, 4 its answer is not authentic; of `hold`, see there.";

#[derive(Debug, Subcommand)]
enum Command {
    /// For how long a holder may rely on its lease
    Window(window::Args),
    /// How often to renew a lease, when to cancel, and how long the next holder waits
    Plan(plan::Args),
    /// The least TTL for the work, the pause and the renewals that may be lost
    Size(size::Args),
    /// What is left of a lock on independent Redis nodes
    Redlock(redlock::Args),
    /// How many of a number of nodes are needed, and how many may be missing
    Quorum(quorum::Args),
    /// Lock services as they come, and clocks worth knowing
    Presets(presets::Args),
    /// Hold a lock service's configuration against its own rules
    Check(check::Args),
    /// Replay the fence over a log of writes
    Audit(audit::Args),
    /// The conditional write that fences a store: a table, a key, an object
    Guard(guard::Args),
    /// Run a command under a lease: killed before it ends, released after it
    #[cfg(target_os = "linux")]
    Hold(hold::Args),
    /// Look at the clock here and the way to the coordinator and the gate, and size a lease
    #[cfg(target_os = "linux")]
    Doctor(doctor::Args),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    HoldWatch(hold::WatchArgs),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    HoldExec(hold::ExecArgs),
    /// Ask a gate, or have it do something
    Gate(gate::Args),
}

impl Command {
    fn run(self, started: Instant) -> Result<Outcome, Failure> {
        match self {
            Self::Window(args) => args.run(),
            Self::Plan(args) => args.run(),
            Self::Size(args) => args.run(),
            Self::Redlock(args) => args.run(),
            Self::Quorum(args) => args.run(),
            Self::Presets(args) => args.run(),
            Self::Check(args) => args.run(),
            Self::Audit(args) => args.run(),
            Self::Guard(args) => args.run(),
            #[cfg(target_os = "linux")]
            Self::Hold(args) => args.run(),
            #[cfg(target_os = "linux")]
            Self::Doctor(args) => args.run(),
            #[cfg(target_os = "linux")]
            Self::HoldWatch(args) => args.run(),
            #[cfg(target_os = "linux")]
            Self::HoldExec(args) => args.run(),
            Self::Gate(args) => args.run(started),
        }
    }
}

/// Runs the command line of this process, which began at `started`.
pub(crate) fn main(started: Instant) -> ExitCode {
    let ran = match Cli::try_parse_from(with_signs(std::env::args_os())) {
        Ok(cli) => cli.command.run(started),
        // Help and version, which were asked for. A reader who has gone away does not need them.
        Err(asked) if !asked.use_stderr() => {
            let _ = asked.print();
            Ok(Outcome::Yes)
        }
        Err(error) => Err(wrong::in_one_line(&error)),
    };
    match ran {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.report();
            failure.into()
        }
    }
}

/// Ties `-5s` to the flag before it (`--ttl -5s` becomes `--ttl=-5s`), so that whoever reads the flag's value refuses the
/// sign or takes it. Clap would take it for a flag, and could then not name the one that it belongs to; to let values
/// begin with a hyphen would make `--drift` the value of a `--ttl` that has none.
fn with_signs(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut tied: Vec<OsString> = Vec::new();
    for argument in arguments {
        let signed = matches!(argument.as_encoded_bytes(), [b'-', b'0'..=b'9' | b'.', ..]);
        let is_flag = |before: &OsString| match before.as_encoded_bytes() {
            [b'-', b'-', name @ ..] => !name.is_empty() && !name.contains(&b'='),
            _ => false,
        };
        match tied.last_mut() {
            Some(flag) if signed && is_flag(flag) => {
                flag.push("=");
                flag.push(argument);
            }
            _ => tied.push(argument),
        }
    }
    tied
}

#[cfg(test)]
mod tests {
    use super::with_signs;
    use clap::CommandFactory;
    use std::ffi::OsString;

    #[test]
    fn a_signed_value_goes_to_the_flag_before_it() {
        let tied = |line: &str| with_signs(line.split(' ').map(OsString::from)).join(" ".as_ref());
        assert_eq!(tied("plan --ttl -5s --drift 1ppm"), "plan --ttl=-5s --drift 1ppm");
        assert_eq!(tied("drive --value -1,0"), "drive --value=-1,0");
        for untouched in ["plan --ttl --drift 1ppm", "plan --ttl=1s -5s", "plan -- -5s", "-5s", "plan --ttl -h"] {
            assert_eq!(tied(untouched), untouched);
        }
    }

    #[test]
    fn the_flags_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
