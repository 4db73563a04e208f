//! `fencegate gate`: one gate, asked or told.

mod answer;
mod config;
mod key;
mod log;
mod orders;
mod provision;
mod session;
mod status;
pub(super) mod values;
mod watch;

use super::output::{self, Failure, Outcome};
use super::units::{self, DURATION};
use fencegate::{Duration, Instant};
use fencegate_host::{KeyFile, Port, clock};
use orders::Order;
use provision::Place;
use session::Session;
use std::path::PathBuf;

const EXAMPLE: &str = "Example:
  fencegate gate --port tcp://127.0.0.1:7033 --key-file target/gate.key status

Exit status: 0 done, 1 the gate refused, 2 the input is wrong, 3 no answer in time, 4 the answer is not authentic.";

const GATE_FLAGS: &str = "Options of every `gate` command";

/// The flags of `gate`, which may stand before or after what is to be done.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Where the gate's line begins: a serial device (/dev/ttyACM0, COM5; /dev/ttyUSB0@1000000 for another speed than 115,200 baud) or tcp://host:port
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
    Raise(orders::Stamp),
    /// Drive a channel's outputs until the window is over, raising its fence first where the stamp is higher
    #[command(after_help = example("drive --channel 0 --token 34 --holder b --value 1 --window 2s"))]
    Drive(orders::Drive),
    /// Let go of a channel's outputs and give the stamp back for good
    #[command(after_help = example("release --channel 0 --token 34 --holder b"))]
    Release(orders::Stamp),
    /// A lease on a channel that is its own authority; prints the token that it was given
    #[command(after_help = example("acquire --channel 3 --holder b --ttl 10s"))]
    Acquire(orders::Acquire),
    /// Renew a lease that the gate itself has granted: for its TTL from now
    #[command(after_help = example("renew --channel 3 --token 34 --holder b"))]
    Renew(orders::Stamp),
    /// Move a channel's epoch (operator), after the lock service was restored or the gate's storage was lost
    #[command(after_help = example("epoch --channel 0 --set 1"))]
    Epoch(orders::SetEpoch),
    /// Let a channel be driven again (operator), after a fault, or after a window's end where it was provisioned so
    #[command(after_help = example("rearm --channel 0"))]
    Rearm(orders::Rearm),
    /// A live view on a terminal, a line for each change in a pipe; until Ctrl-C, or no answer for the timeout
    #[command(after_help = example("watch"))]
    Watch(Watch),
    /// The last things that happened to the gate, since its boot
    #[command(after_help = example("log --follow"))]
    Log(log::Log),
    /// Write a key file for one holder, or for observers, from the operator's; no gate is asked
    #[command(after_help = "Examples:
  fencegate gate --key-file target/gate.key key --holder b --out b.key
  fencegate gate --key-file target/gate.key key --observer --out observer.key")]
    Key(key::Key),
    /// Make a gate of a blank board on a point-to-point line, its new keys in --key-file; or of a gate, --again
    #[command(after_help = PROVISION)]
    Provision(provision::Provision),
    /// Make a blank spare the gate whose place it takes, with new keys in --key-file
    #[command(after_help = REPLACE)]
    Replace(provision::Replace),
}

const PROVISION: &str =
    "The line has to be point to point: a blank board's key is known to everybody, and its new keys \
travel on that line. Those of `--again` travel on it readable too: take the bus off the board first. It is busy while \
anything is driven: press the stop, and leave it pressed until it is done.

Examples:
  fencegate gate provision --example > gate.toml
  fencegate gate --port /dev/ttyACM0 --key-file new.key provision --config gate.toml
  fencegate gate --port /dev/ttyACM0 --key-file gate.key provision --again --config gate.toml";

const REPLACE: &str = "The spare gets the old gate's identity, root and operator's key in a new instance: what was \
recorded of the old one convinces nobody, and every single holder's and observer's key file must be issued anew (`key`).

The floor must not be below the last token that was used under the epoch, or a stale holder gets in. Where nobody knows \
that token, give an epoch above any that the old gate ever had.

Example:
  fencegate gate --port /dev/ttyACM0 --key-file spare.key replace --old gate.key --config gate.toml --epoch 2";

#[derive(Clone, Copy, Debug, clap::Args)]
struct Watch {
    /// How often to ask
    #[arg(long, value_name = DURATION, value_parser = units::has, default_value = "200ms")]
    every: Duration,
}

impl Args {
    pub(super) fn run(self, started: Instant) -> Result<Outcome, Failure> {
        let Self { port, key_file, timeout, json, command } = self;
        if matches!(&command, Command::Provision(provision) if provision.is_example()) {
            output::print(config::EXAMPLE)?;
            return Ok(Outcome::Yes);
        }
        let is_asked = !matches!(command, Command::Key(_));
        if is_asked && port.is_none() {
            return Err(Failure::input("port: missing; add --port <PORT>"));
        }
        let path = key_file.ok_or_else(|| Failure::input("key_file: missing; add --key-file <FILE>"))?;
        if timeout.is_zero() {
            return Err(Failure::input("timeout_us: `--timeout`: nothing can be done in no time"));
        }
        let with = |keys| {
            let port = port.clone().ok_or_else(|| Failure::input("port: missing; add --port <PORT>"))?;
            let session = Session { port, keys, started, timeout, json };
            session.give_up(started).map(|_| session)
        };
        let read = || KeyFile::read(&path).map_err(|error| Failure::input(format_args!("key_file: {error}")));
        let session = || with(read()?);
        session::block_on(async {
            match command {
                Command::Status => status::run(&session()?).await,
                Command::Watch(Watch { every }) => watch::run(&session()?, every).await,
                Command::Log(log) => log::run(&session()?, log).await,
                Command::Raise(stamp) => Order::Raise(stamp).run(&session()?).await,
                Command::Drive(drive) => Order::Drive(drive).run(&session()?).await,
                Command::Release(stamp) => Order::Release(stamp).run(&session()?).await,
                Command::Acquire(acquire) => Order::Acquire(acquire).run(&session()?).await,
                Command::Renew(stamp) => Order::Renew(stamp).run(&session()?).await,
                Command::Epoch(epoch) => Order::Epoch(epoch).run(&session()?).await,
                Command::Rearm(rearm) => Order::Rearm(rearm).run(&session()?).await,
                Command::Key(key) => key.run(&read()?, json),
                Command::Provision(provision) => provision.run(Place { path: &path, session: &with }).await,
                Command::Replace(replace) => replace.run(Place { path: &path, session: &with }).await,
            }
        })
    }
}
