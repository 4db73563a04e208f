//! `fencegate doctor`: the clock here, the way to the coordinator and to the gate, and the TTL that follows from them.

mod clock;
mod trips;

use super::hold::{self, Secrets, Service};
use super::output::{self, Failure, Outcome, Table, shown_drift, spends};
use super::plan;
use super::units::{self, DRIFT, DURATION};
use clock::Clock;
use fencegate::{Drift, Duration, Size, SizeInput};
use fencegate_host::Port;
use serde::Serialize;
use std::path::PathBuf;
use trips::Trips;

const EXAMPLE: &str = "Examples:
  fencegate doctor --coordinator etcd://127.0.0.1:2379 --work 200ms
  fencegate doctor --gate tcp://127.0.0.1:7033 --key-file target/gate.key
  fencegate doctor --coordinator gate:tcp://127.0.0.1:7033 --lock 3 --key-file target/gate.key

It looks at the clock, makes some calls, and sizes a lease with twice the worst round trip, since samples are no bound. At the \
coordinator it acquires, renews and releases the lock fencegate-doctor. That is one name for all doctors, since what counts \
tokens stays behind under it: two nodes in ZooKeeper, a row in PostgreSQL, an item in DynamoDB, a key at each Redis, nothing in \
etcd. A gate that is named with --gate is only asked for its channel 0; one that is the coordinator grants its channel's lease, \
and that channel's token goes up: do that while nobody works there.

Who disciplines the clock is a guess from the names of the processes in sight, and so is the drift, which is the most that such a \
program does as it comes: the kernel cannot be asked. Where none is seen it is the worst of them, 10 % (clock_drift_assumed).

Exit status: 0 there is a TTL, 1 no TTL is long enough, 2 the input is wrong, 3 no answer, or another holds the lock.";

/// The arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The lock service, as `hold` takes it
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    #[command(flatten)]
    secrets: Secrets,
    /// The lock to measure with at the coordinator; of a gate, the number of a channel that is its own authority
    #[arg(long, value_name = "NAME", default_value = "fencegate-doctor")]
    lock: String,
    /// A gate
    #[arg(long, value_name = "PORT")]
    gate: Option<Port>,
    /// The file with the key to speak to the gate with
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// How fast the coordinator's clock may drift; this machine's is looked at
    #[arg(long, value_name = DRIFT, value_parser = units::parse_drift, default_value = "500ppm")]
    drift: Drift,
    /// The longest time from the holder's last check of its lease until its action has taken effect, the gate apart
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    work: Duration,
    /// A stall that the holder should ride through without losing the lease
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    pause: Duration,
    /// Renewals in a row that may fail before the lease is lost
    #[arg(long, value_name = "N", value_parser = units::parse_count, default_value = "1")]
    lost: u64,
    /// How many calls to make
    #[arg(long, value_name = "N", value_parser = units::parse_count, default_value = "20")]
    samples: u64,
    /// For how long to look at the clock
    #[arg(long, value_name = DURATION, value_parser = units::has, default_value = "2s")]
    look: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was found, and what follows.
#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    clock: Clock,
    coordinator: Option<Trips>,
    gate: Option<Trips>,
    size: SizeInput,
    ttl_us: Option<Duration>,
}

/// Twice the worst: samples are no bound. At least a microsecond, since an answer takes time.
fn twice(trips: Option<&Trips>) -> Duration {
    trips.map_or(Duration::ZERO, |trips| Duration::from_micros(trips.worst.as_micros().saturating_mul(2).max(1)))
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        if self.samples == 0 || self.samples > 100_000 {
            return Err(Failure::input("samples: `--samples`: from 1 to 100000"));
        }
        let service = self.coordinator.as_deref().map(|url| Service::read(url, &self.lock)).transpose()?;
        let step = service.as_ref().map_or(Duration::from_micros(1), Service::step);
        let (allowed, fixed) = service.as_ref().map_or((Drift::ZERO, Duration::ZERO), Service::allowance);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(3, format_args!("no connection: {error}")))?;
        let measured = runtime.block_on(async {
            let key_file = self.key_file.as_deref();
            let id = trips::id(key_file)?;
            let coordinator = match service {
                Some(service) => {
                    let coordinator = service.open(id, &self.secrets.read()?, key_file)?;
                    Some(trips::coordinator(&*coordinator, id, self.samples).await?)
                }
                None => None,
            };
            let gate = match &self.gate {
                Some(port) => Some(trips::gate(&hold::asked(port, key_file)?, self.samples).await?),
                None => None,
            };
            Ok::<_, Failure>((coordinator, gate))
        });
        runtime.shutdown_background();
        let (coordinator, gate) = measured?;

        let clock = Clock::look(self.look);
        // A command to a gate may take two: one for the challenge.
        let trip = twice(gate.as_ref());
        let work = [trip, trip, fixed].into_iter().try_fold(self.work, Duration::checked_add);
        let size = SizeInput {
            drift: (clock.drift + self.drift).max(allowed),
            rtt: twice(coordinator.as_ref()),
            attempts: 3,
            work: work.ok_or_else(|| Failure::input("work_us: `--work`: too long"))?,
            pause: self.pause,
            poll: Duration::ZERO,
            lost: self.lost,
            granularity: step,
        };
        // Without a way to measure there is nothing to size: an answer takes some time.
        let sized = if coordinator.is_some() { size.size()? } else { None };
        let fits = sized.is_some() || coordinator.is_none();
        let found = Found { clock, coordinator, gate, size, ttl_us: sized.map(|size| size.ttl) };
        if self.json {
            output::print_json(&found)?;
        } else {
            output::print(table(&found, sized.as_ref()))?;
        }
        Ok(fits.into())
    }
}

fn table(found: &Found, sized: Option<&Size>) -> Table {
    let Found { clock, coordinator, gate, size, .. } = found;
    let mut table = match sized {
        Some(Size { ttl, .. }) => Table::new(true, "fit", format_args!("a TTL of {} or more", spends(*ttl))),
        None if coordinator.is_none() => Table::new(true, "clock", "this machine's; nothing is sized"),
        None => Table::new(false, "not fit", "no TTL is long enough for these clocks"),
    };
    table.row("clock", clock.source.as_deref().unwrap_or("unknown"), "what the kernel counts time with");
    let seen = clock.seen.map_or("nobody who disciplines clocks", |daemon| daemon.name);
    table.row("seen running", seen, format_args!("the clock is slewed by {} ppb just now", clock.slew_ppb));
    let what = if clock.assumed { "assumed: what phc2sys may do" } else { "what that program may do" };
    table.row("drift here", shown_drift(clock.drift), format_args!("{what} as it comes, or what was seen"));
    table.row("drift in all", shown_drift(size.drift), "with the coordinator's clock (--drift)");
    let may = if clock.can_suspend { "it can be suspended" } else { "it cannot be suspended" };
    table.row("slept", spends(clock.slept), format_args!("since boot, and counted; {may}"));
    for (name, trips) in [("coordinator", coordinator), ("gate", gate)] {
        if let Some(Trips { calls, median, worst }) = trips {
            let words = format_args!("the worst of {calls} calls, the median is {}", spends(*median)).to_string();
            table.row(name, spends(*worst), words);
        }
    }
    if let Some(Size { ttl, plan }) = sized {
        table.row("ttl", format_args!("{}us", ttl.as_micros()), "for twice the worst round trip");
        plan::schedule(&mut table, plan);
        plan::notes(&mut table, &size.plan_for(*ttl), plan);
    }
    if coordinator.is_none() {
        table.note("no coordinator was asked (--coordinator), so that there is no round trip to size a lease with");
    }
    match clock.seen {
        None => table.note(
            "nobody who disciplines clocks is in sight, but outside a container's sight somebody may: the drift is the most that \
             any such program does as it comes (phc2sys and ptp4l, 10 %); if you know better, say so with `plan --drift`",
        ),
        Some(daemon) => table.note(format_args!(
            "that {} disciplines this clock is a guess from its name, and the drift is what it may do as it comes; with another \
             {}, say so with `plan --drift`",
            daemon.name, daemon.set_by
        )),
    }
    if clock.synchronized == Some(false) {
        table.note("systemd-timesyncd has reached no server since boot: the clock goes as it likes, and may be set at any time");
    }
    table
}
