//! `fencegate plan`: how often to renew, when to cancel, and how long the next holder waits.

use super::output::{self, Echoed, Failure, Outcome, Table, has, spends};
use super::units::{self, DURATION};
use super::window::{self, Lease};
use fencegate::{Duration, Plan, PlanInput, Window, WindowInput};

const EXAMPLE: &str = "Example:
  fencegate plan --ttl 10s --drift 500ppm --drift 500ppm --rtt 5ms --work 200ms

Exit status: 0 the window is not empty, 1 it is, 2 the input is wrong.";

/// The flags of `plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(flatten)]
    lease: Lease,
    /// Heartbeats per TTL, at least 2; below 3 the schedule is cut to what cancellation allows
    #[arg(long, value_name = "N", value_parser = units::parse_count, default_value = "3")]
    attempts: u64,
    /// The longest time from the holder's last check of its lease until its action has taken effect
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    work: Duration,
    /// A stall that the holder should ride through without losing the lease
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    pause: Duration,
    /// How often a challenger asks again
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    poll: Duration,
    /// Print one JSON object, the inputs echoed
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let Self { lease, attempts, work, pause, poll, json } = self;
        let WindowInput { ttl, drift, rtt, start, clock_offset } = lease.into();
        let input = PlanInput { ttl, drift, rtt, start, clock_offset, attempts, work, pause, poll };
        let output = input.plan()?;
        if json {
            output::print_json(&Echoed { input, output })?;
        } else {
            output::print(table(&input, &output))?;
        }
        Ok(output.safe.into())
    }
}

fn table(input: &PlanInput, plan: &Plan) -> Table {
    let &Plan { margin, window, safe, .. } = plan;
    let mut table = window::table(&input.lease(), &Window { margin, window, safe });
    schedule(&mut table, plan);
    notes(&mut table, input, plan);
    table
}

/// The figures of a plan beyond its window.
pub(super) fn schedule(table: &mut Table, plan: &Plan) {
    table.row(
        "heartbeat",
        has(plan.heartbeat),
        format_args!("between renewals: {} an hour, {} in the window", plan.renewals_per_hour, plan.renewals_in_window),
    );
    table.row("cancel after", has(plan.cancel_after), misses(plan));
    table.row("stall", has(plan.stall_tolerance), "a shorter one, just before a renewal, keeps the lease");
    table.row("work deadline", has(plan.work_deadline), "an action must begin before this");
    table.row("takeover", format_args!("≤ {}", spends(plan.takeover)), "until the next holder, when this one dies");
}

/// When cancellation trips, in words.
fn misses(plan: &Plan) -> String {
    match plan.misses_before_cancel {
        _ if !plan.sustainable => "without an answer, and none comes in time".to_owned(),
        0 => "without an answer: the first missing one trips it".to_owned(),
        1 => "without an answer: one may be missing".to_owned(),
        n => format!("without an answer: {n} in a row may be missing"),
    }
}

/// What counts for nothing in the exit status and for much in practice.
pub(super) fn notes(table: &mut Table, input: &PlanInput, plan: &Plan) {
    if !plan.sustainable {
        table.note(format_args!(
            "the heartbeats cannot be kept up: with a round trip of {} every answer comes after cancellation, at {}",
            spends(input.rtt),
            has(plan.cancel_after),
        ));
        // ⌊T/3⌋ > d from T = 3·(d + 1) on.
        if let Some(ttl) = input.rtt.as_micros().checked_add(1).and_then(|d| d.checked_mul(3)) {
            let ttl = spends(Duration::from_micros(ttl));
            table.note(format_args!("heartbeats need a TTL of at least {ttl} (--ttl), or a shorter round trip"));
        }
    }
    if input.attempts < 3 {
        let n = input.attempts;
        table.note(if plan.sustainable {
            format!("{n} heartbeats per TTL are too few: the schedule is cut to what cancellation allows")
        } else {
            format!("{n} heartbeats per TTL are too few, and cancellation leaves no room to cut the schedule to")
        });
    }
    if plan.safe && plan.work_deadline.is_zero() {
        table.note(format_args!("an action of {} (--work) does not fit the window", spends(input.work)));
    }
    if !input.pause.is_zero() && input.pause >= plan.stall_tolerance {
        table.note(format_args!("a stall of {} (--pause) can lose the lease", spends(input.pause)));
    }
}
