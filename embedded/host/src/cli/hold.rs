//! `fencegate hold`: any program under a lease.
//!
//! Three processes, so that no one of them is trusted alone. This one speaks with the coordinator. A watcher (`watch`)
//! starts the command, is told the end of the window at each renewal, and kills the command and all its descendants before
//! it. The command itself is started through a third (`exec`) that has the kernel kill it when the watcher dies. Watcher and
//! holder are both reapers of what is orphaned below them, so that a descendant that has forked away is still theirs; and where
//! there are control groups the command is in one of its own (`cgroup`), which is killed at once.

mod cgroup;
mod coordinate;
mod descendants;
mod exec;
mod holder;
mod signals;
mod status;
mod supervise;
mod watch;

use super::gate::values;
use super::output::{Failure, Outcome};
use super::units::{self, DRIFT, DURATION};
use coordinate::Protected;
use fencegate::{Cause, Drift, Duration, Epoch, HolderId, Plan, PlanInput, Unfit};
use fencegate_host::Port;
use fencegate_host::runner::{Held, NotHeld, Runner};
use std::ffi::OsString;
use std::path::PathBuf;
use supervise::{Command, Supervisor};
use tokio_util::sync::CancellationToken;

pub(super) use coordinate::{Secrets, Service, asked, whose};
pub(crate) use exec::Args as ExecArgs;
pub(super) use holder::instance;
pub(crate) use watch::Args as WatchArgs;

/// The lease was not to be had, and the command was not started.
const NOT_ACQUIRED: u8 = 121;
/// The lease was lost, and the command was stopped.
const LOST: u8 = 122;

const HELP: &str = "Coordinators:
  etcd://HOST:PORT[,HOST:PORT]            a lease and a key; the token is its create revision. TTLs are whole seconds. From
                                          3.4.31 or 3.5.13 on; each the address of a member itself, of no balancer. A restore
                                          from a snapshot forgets leases: keep the cluster down for a TTL, or fence everything
  zookeeper://HOST:PORT[,HOST:PORT]       a node; the token is the transaction that made it. Needs a session of twice the TTL,
                                          the same limits at all members, and minSessionTimeout not below two ticks
  postgres://USER@HOST:PORT[,...]/DB      a row of fencegate_lease, on the database's clock; the token is from a sequence. More
                                          hosts are its standbys; a fail-over to one that lagged forgets leases, as a restore does
  dynamodb://REGION/TABLE                 an item; the token counts in it. Who waits, waits a whole TTL from its first look
  redis://HOST:PORT/0                     for efficiency only: a fail-over gives the lock to two, and the token goes back
  redlock://HOST:PORT,HOST:PORT,HOST:PORT the same at a majority of them; at least 1 % of the TTL and 2 ms go off the window
  gate:tcp://HOST:PORT, gate:/dev/ttyACM0 a gate's channel that is its own authority (--lock is its number, --key-file)

In TLS: etcds://, rediss://, redlocks://, and postgres:// with ?sslmode=require or --ca-file; dynamodb:// always is. A password \
belongs into a --password-file: an address is seen by every user of this machine.

The command's environment: FENCEGATE_TOKEN, FENCEGATE_EPOCH, FENCEGATE_HOLDER, and FENCEGATE_DEADLINE, the end of the window \
as it was when the command began, in microseconds of the boot-time clock (renewals move it later; `gate drive --deadline ${FENCEGATE_DEADLINE}us` takes it). With --progress also \
NOTIFY_SOCKET and WATCHDOG_USEC, as systemd has them: the command sends WATCHDOG=1 as it gets on.

When cancellation trips the command gets SIGTERM (or the signal that this process got) and nothing is renewed any more, also where \
the coordinator answers again; --kill-before the window's end it is killed with all its descendants, and so is what it leaves behind \
when it ends. Then the lease is released. Whatever is below this process counts as the command's, so also what a shell had started \
before it said `exec fencegate hold`. What this user may not kill, since it has become another's (su, sudo), is waited for, however \
long that takes, and nothing is released before. The lease is renewed meanwhile, unless cancellation has tripped (a signal, no answer, \
no progress, --longest, or the lease is gone): then it lapses all the same, and only the fence keeps out what lives on.

What it cannot promise: that a machine which freezes as a whole does nothing late when it thaws. That is what the fence at the \
resource is for (--gate, fencegate guard). Linux only.

Example:
  fencegate hold --coordinator etcd://127.0.0.1:2379 --lock press-7 --ttl 10s --drift 500ppm -- sh -c 'echo $FENCEGATE_TOKEN'

Exit status: the command's (128 + N where signal N ended it); 2 the input is wrong, 3 no answer from the coordinator or from a \
gate, 121 the lease was not acquired, 122 it was lost and the command was stopped, 126 the command cannot be run, 127 there is none. One \
line on standard error says which.";

/// The arguments of `hold`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The lock service
    #[arg(long, value_name = "URL")]
    coordinator: String,
    #[command(flatten)]
    secrets: Secrets,
    /// The lock's name there
    #[arg(long, value_name = "NAME")]
    lock: String,
    /// The lease as the coordinator grants it
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    ttl: Duration,
    /// How fast a clock may drift: 500ppm, 0.1%, 20ppb; once a clock, they add up
    #[arg(long, value_name = DRIFT, value_parser = units::parse_drift, required = true)]
    drift: Vec<Drift>,
    /// The worst round trip of an acquire or renew call
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "100ms")]
    rtt: Duration,
    /// Heartbeats per TTL, at least 2; with 3 the first missing answer cancels, with 10 two may be missing (see `plan`)
    #[arg(long, value_name = "N", value_parser = units::parse_count, default_value = "3")]
    attempts: u64,
    /// By how much a wall clock that times the lease may be stepped (postgres)
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    clock_offset: Duration,
    /// The operator's epoch; without it the one that is kept beside the lock
    #[arg(long, value_name = "N", value_parser = values::epoch)]
    epoch: Option<Epoch>,
    /// Who holds it: a name, to which an instance is added, or name#instance
    #[arg(long, value_name = "NAME", default_value = "hold")]
    holder: String,
    /// How long to wait for a lock that another holds, without it as long as that takes; and for a gate, but at least a TTL
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    wait: Option<Duration>,
    /// How long before the window's end the command is killed
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "500ms")]
    kill_before: Duration,
    /// Lose the lease where the command does not say WATCHDOG=1 for this long
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    progress: Option<Duration>,
    /// Give the lease up after this long, so that others get their turn
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    longest: Option<Duration>,
    /// A gate whose fence is raised before the command begins
    #[arg(long, value_name = "PORT")]
    gate: Option<Port>,
    /// The gate's channels; given more than once, each is raised
    #[arg(long, value_name = "N", value_parser = values::channel, default_value = "0")]
    channel: Vec<u8>,
    /// The file with the key to speak to the gate with
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The lock is there to save work and not to protect anything: what Redis and Redlock are good for
    #[arg(long)]
    efficiency: bool,
    /// Show the window running down, and each renewal, on standard error; what nobody reads in time is left out
    #[arg(long)]
    status: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let id = instance(&self.holder)?;
        let service = Service::read(&self.coordinator, &self.lock)?;
        let plan = self.plan(&service)?;
        let command = Command::find(&self.command)?;
        let gates = Protected::read(self.gate.as_ref(), &self.channel, self.key_file.as_deref(), id)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(126, format_args!("no runtime: {error}")))?;
        let outcome = runtime.block_on(self.hold(id, plan, command, service, gates));
        runtime.shutdown_background();
        outcome
    }

    fn plan(&self, service: &Service) -> Result<PlanInput, Failure> {
        let mut plan = Plan::for_ttl(self.ttl).round_trip(self.rtt).attempts(self.attempts).work(self.kill_before);
        let (drift, fixed) = service.allowance();
        plan.drift = self.drift.iter().fold(Drift::ZERO, |sum, clock| sum + *clock).max(drift);
        let offset = self.clock_offset.checked_add(fixed);
        plan.clock_offset = offset.ok_or_else(|| Failure::input("clock_offset_us: `--clock-offset`: too long"))?;
        match plan.build() {
            Err(Unfit::OutOfRange(error)) => Err(error.into()),
            // The contract's field has another flag here.
            Err(Unfit::WorkTooLong) => Err(Failure::input(
                "kill_before_us: `--kill-before`: it is as long as the window, so that the command could never begin",
            )),
            Err(unfit) => Err(Failure::input(unfit)),
            Ok(_) if self.kill_before.is_zero() => {
                Err(Failure::input("kill_before_us: `--kill-before`: to kill takes some time"))
            }
            Ok(_) => Ok(plan),
        }
    }

    async fn hold(
        self,
        id: HolderId,
        plan: PlanInput,
        command: Command,
        service: Service,
        gates: Vec<Protected>,
    ) -> Result<Outcome, Failure> {
        let wrong = |why: &dyn std::fmt::Display| Failure::input(format_args!("coordinator: {why}"));
        let name = service.name();
        let coordinator = service.open(id, &self.secrets.read()?, self.key_file.as_deref())?;
        let (reports, shown) = status::channel(self.status)?;
        let mut runner = Runner::new(coordinator, plan, id).map_err(|unfit| wrong(&unfit))?.reports(reports);
        for gate in gates {
            runner = runner.resource(gate.resource());
        }
        if self.efficiency {
            runner = runner.for_efficiency();
        }
        if let Some(wait) = self.wait {
            runner = runner.patience(wait);
        }
        if let Some(epoch) = self.epoch {
            runner = runner.epoch(epoch);
        }
        if let Some(limit) = self.progress {
            runner = runner.progress_within(limit);
        }
        if let Some(limit) = self.longest {
            runner = runner.longest_hold(limit);
        }
        let stop = CancellationToken::new();
        let signals =
            signals::Signals::listen(&stop).map_err(|error| Failure::new(126, format_args!("no signals: {error}")))?;
        let supervisor = Supervisor { command, reserve: self.kill_before, progress: self.progress, signals };
        let held = runner.hold(stop, |lease| supervisor.run(lease)).await;
        shown.end().await;
        outcome(held, name)
    }
}

/// What has become of it, as an exit status and a line.
fn outcome(held: Result<Held<Result<u8, Failure>>, NotHeld>, coordinator: &str) -> Result<Outcome, Failure> {
    match held {
        Ok(Held { output, cancelled: None | Some(Cause::Stopped), .. }) => output.map(Outcome::Status),
        Ok(Held { cancelled: Some(cause), .. }) => {
            Err(Failure::new(LOST, format_args!("the lease was lost, and the command was stopped: {cause}")))
        }
        Err(why @ NotHeld::NotRaised(_)) => Err(Failure::new(3, why)),
        Err(NotHeld::NoOrder) => Err(Failure::input(format_args!(
            "coordinator: {coordinator} keeps no durable order: a fail-over gives the lock to two holders and takes the token \
             back, so it cannot protect a gate; use etcd or postgres, or say --efficiency if nothing is to be protected",
        ))),
        Err(NotHeld::NoAnswer(why)) => Err(Failure::new(3, format_args!("no answer from the coordinator: {why}"))),
        Err(NotHeld::Unfit(why)) if why.starts_with("ttl_us: ") || why.starts_with("epoch: ") => {
            Err(Failure::input(why))
        }
        Err(NotHeld::Unfit(why)) => Err(Failure::input(format_args!("coordinator: {why}"))),
        Err(why @ NotHeld::Epoch { .. }) => Err(Failure::input(why)),
        Err(why) => Err(Failure::new(NOT_ACQUIRED, format_args!("the lease was not acquired: {why}"))),
    }
}
