//! `fencegate gate`: one gate, asked or told.

mod answer;
mod status;
mod values;
mod watch;

use super::output::{Failure, Outcome, has};
use super::units::{self, DURATION};
use answer::Told;
use fencegate::{Deadline, Duration, Epoch, HolderId, Instant, Token};
use fencegate_host::{CallError, GateClient, KeyFile, Line, Port, Secret, clock};
use fencegate_wire::{Credential, Role, Values};
use std::path::PathBuf;
use tokio::time::timeout;

const EXAMPLE: &str = "Example:
  fencegate gate --port tcp://127.0.0.1:7033 --key-file target/gate.key status

Exit status: 0 done, 1 the gate refused, 2 the input is wrong, 3 no answer in time, 4 the answer is not authentic.";

const GATE_FLAGS: &str = "Options of every `gate` command";

/// The flags of `gate`, which may stand before or after what is to be done.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Where the gate's line begins: a serial device (/dev/ttyACM0, COM5) or tcp://host:port
    #[arg(long, global = true, help_heading = GATE_FLAGS, value_name = "PORT")]
    port: Option<Port>,
    /// The file with the key to speak with
    #[arg(long, global = true, help_heading = GATE_FLAGS, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// How long the whole command may take, connecting included
    #[arg(long, global = true, help_heading = GATE_FLAGS, value_name = DURATION, value_parser = units::has, default_value = "5s")]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long, global = true, help_heading = GATE_FLAGS)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const GATE: &str = "fencegate gate --port tcp://127.0.0.1:7033 --key-file target/gate.key";

fn example(command: &str) -> String {
    format!("Example:\n  {GATE} {command}")
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Who holds the gate's channels, and what it has refused
    #[command(after_help = example("status"))]
    Status,
    /// Raise a channel's fence to a stamp: a new holder's first act
    #[command(after_help = example("raise --channel 0 --token 34 --holder b"))]
    Raise(Stamp),
    /// Drive a channel's outputs until the window is over, raising its fence first where the stamp is higher
    #[command(after_help = example("drive --channel 0 --token 34 --holder b --value 1 --window 2s"))]
    Drive(Drive),
    /// Let go of a channel's outputs and give the stamp back for good
    #[command(after_help = example("release --channel 0 --token 34 --holder b"))]
    Release(Stamp),
    /// Move a channel's epoch (operator), after the lock service was restored or the gate's storage was lost
    #[command(after_help = example("epoch --channel 0 --set 1"))]
    Epoch(SetEpoch),
    /// A live view on a terminal, a line for each change in a pipe; until Ctrl-C, or no answer for the timeout
    #[command(after_help = example("watch"))]
    Watch(Watch),
}

/// What every command of a holder's carries.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Stamp {
    /// Which channel, from 0
    #[arg(long, value_name = "N", value_parser = values::channel)]
    channel: u8,
    /// The token that the coordinator gave with the lease, from 1
    #[arg(long, value_name = "N", value_parser = values::token)]
    token: Token,
    /// Who acquired the lease: a name, or name#instance; 1 to 16 printable ASCII characters
    #[arg(long, value_name = "NAME")]
    holder: HolderId,
    /// The operator's epoch at the acquisition
    #[arg(long, value_name = "N", value_parser = values::epoch, default_value = "0")]
    epoch: Epoch,
}

#[derive(Debug, clap::Args)]
struct Drive {
    #[command(flatten)]
    stamp: Stamp,
    /// One integer for each output of the channel, applied together: 1, or 1,0
    #[arg(long, value_name = "VALUES", value_parser = values::values)]
    value: Values,
    /// What was left of the lease's window when this command was started
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    window: Option<Duration>,
    /// The end of the lease's window on this machine's boot-time clock (in /proc/uptime's terms): 1234.5s
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, clap::Args)]
struct SetEpoch {
    /// Which channel, from 0
    #[arg(long, value_name = "N", value_parser = values::channel)]
    channel: u8,
    /// The new epoch, above the channel's
    #[arg(long, value_name = "N", value_parser = values::epoch)]
    set: Epoch,
    /// The token that the new epoch's tokens must exceed
    #[arg(long, value_name = "TOKEN", value_parser = units::parse_count, default_value = "0")]
    floor: u64,
}

#[derive(Clone, Copy, Debug, clap::Args)]
struct Watch {
    /// How often to ask
    #[arg(long, value_name = DURATION, value_parser = units::has, default_value = "200ms")]
    every: Duration,
}

impl Args {
    pub(super) fn run(self, started: Instant) -> Result<Outcome, Failure> {
        let Self { port, key_file, timeout, json, command } = self;
        let port = port.ok_or_else(|| Failure::input("port: missing; add --port <PORT>"))?;
        let path = key_file.ok_or_else(|| Failure::input("key_file: missing; add --key-file <FILE>"))?;
        if timeout.is_zero() {
            return Err(Failure::input("timeout_us: `--timeout`: nothing can be done in no time"));
        }
        let keys = KeyFile::read(&path).map_err(|error| Failure::input(format_args!("key_file: {error}")))?;
        let session = Session { port, keys, started, timeout, json };
        session.give_up(started)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(3, format_args!("no connection: {error}")))?;
        let outcome = runtime.block_on(command.run(&session));
        runtime.shutdown_background(); // a name that is still being looked up holds nobody up
        outcome
    }
}

impl Drive {
    /// The end of the holder's window, and how long it is from the start of this command.
    fn lease(&self, started: Instant) -> Result<(Deadline, Duration), Failure> {
        match (self.window, self.deadline) {
            (Some(_), Some(_)) => {
                Err(Failure::input("window_us, deadline_us: one of `--window` and `--deadline`, and not both"))
            }
            (Some(window), None) if window.is_zero() => {
                Err(Failure::input("window_us: `--window`: nothing is left of the lease"))
            }
            (Some(window), None) => match Deadline::after(started, window) {
                Some(end) => Ok((end, window)),
                None => Err(Failure::input("window_us: `--window`: it ends after the clock does")),
            },
            // One that is over goes to the gate all the same: its refusal may name a stamp that has come since.
            (None, Some(deadline)) => {
                let end = Deadline::at(Instant::from_micros(deadline.as_micros()));
                Ok((end, end.left(started)))
            }
            (None, None) => Err(Failure::input("window_us: missing; add --window <DURATION> or --deadline <DURATION>")),
        }
    }
}

impl Stamp {
    fn role(&self) -> Role {
        Role::Holder(self.holder)
    }

    fn grant(&self) -> (Epoch, Token) {
        (self.epoch, self.token)
    }
}

impl Command {
    async fn run(self, session: &Session) -> Result<Outcome, Failure> {
        let give_up = session.give_up(session.started)?;
        let (channel, told, done) = match self {
            Self::Status => return status::run(session, give_up).await,
            Self::Watch(Watch { every }) => return watch::run(session, every).await,
            Self::Raise(stamp) => {
                let mut gate = session.connect(session.keys.credential(stamp.role()), give_up).await?;
                (stamp.channel, Told::Raise(stamp.holder), gate.raise(stamp.channel, stamp.grant(), give_up).await)
            }
            Self::Drive(drive) => {
                let (stamp, lease) = (drive.stamp, drive.lease(session.started)?);
                let mut gate = session.connect(session.keys.credential(stamp.role()), give_up).await?;
                let done = gate.drive(stamp.channel, stamp.grant(), drive.value, lease, give_up).await;
                (stamp.channel, Told::Drive(stamp.holder), done)
            }
            Self::Release(stamp) => {
                let mut gate = session.connect(session.keys.credential(stamp.role()), give_up).await?;
                (stamp.channel, Told::Release(stamp.holder), gate.release(stamp.channel, stamp.grant(), give_up).await)
            }
            Self::Epoch(SetEpoch { channel, set, floor }) => {
                let mut gate = session.connect(session.keys.credential(Role::Operator), give_up).await?;
                (channel, Told::Epoch, gate.epoch(channel, set, floor, give_up).await)
            }
        };
        match done {
            Ok(done) => answer::done(session.json, channel, told, done),
            Err(CallError::Refused(refused)) => answer::refused(session.json, Some(channel), told, refused),
            Err(error) => Err(session.failure(error, Some(told))),
        }
    }
}

/// With which gate, as whom, and for how long.
struct Session {
    port: Port,
    keys: KeyFile,
    /// When the command was started.
    started: Instant,
    timeout: Duration,
    json: bool,
}

impl Session {
    /// When what began at `from` has taken too long.
    fn give_up(&self, from: Instant) -> Result<Deadline, Failure> {
        Deadline::after(from, self.timeout)
            .ok_or_else(|| Failure::input("timeout_us: `--timeout`: it ends after the clock does"))
    }

    async fn connect(&self, credential: Credential, give_up: Deadline) -> Result<GateClient<Box<dyn Line>>, Failure> {
        let none = |why: String| Failure::new(3, format_args!("no connection to {}: {why}", self.port));
        match timeout(give_up.left(clock::now()).into(), self.port.open()).await {
            Ok(Ok(line)) => GateClient::new(line, credential).map_err(|error| none(error.to_string())),
            Ok(Err(error)) => Err(none(error.to_string())),
            Err(_elapsed) => Err(none(format!("none within {}", has(self.timeout)))),
        }
    }

    /// What a call without an answer means; `told` if it was to change something.
    fn failure(&self, error: CallError, told: Option<Told>) -> Failure {
        let unknown = if told.is_some() { "; whether it was done is not known" } else { "" };
        let port = &self.port;
        match error {
            CallError::NoAnswer => {
                let why = match (&self.keys.secret, told.and_then(Told::holder)) {
                    (Secret::Holder { holder, .. }, Some(claimed)) if claimed.name() != holder.name() => {
                        format!("the key is {holder}'s and not {claimed}'s")
                    }
                    _ => "a gate is silent to a key that it does not know".to_owned(),
                };
                let waited = has(self.timeout);
                Failure::new(3, format_args!("no answer from {port} within {waited}: is it there? ({why}){unknown}"))
            }
            CallError::Line(error) => Failure::new(3, format_args!("no answer from {port}: {error}{unknown}")),
            CallError::NotAuthentic => Failure::new(
                4,
                format_args!("the answer from {port} is not authentic: not made with the gate's key{unknown}"),
            ),
            CallError::Unexpected => {
                Failure::new(4, format_args!("the answer from {port} is to something else: another version?{unknown}"))
            }
            CallError::TooLong | CallError::Refused(_) => Failure::input(error),
        }
    }
}
