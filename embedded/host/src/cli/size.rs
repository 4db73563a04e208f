//! `fencegate size`: the least TTL for the work, the pause and the renewals that may be lost.

use super::output::{self, Echoed, Failure, Outcome, Table, has, shown_drift, spends};
use super::plan;
use super::units::{self, DRIFT, DURATION};
use fencegate::{Drift, Duration, Size, SizeInput};
use serde::Serialize;

const EXAMPLE: &str = "Example:
  fencegate size --work 2s --pause 500ms --drift 0.1% --rtt 50ms --lost 1 --granularity 1s

Exit status: 0 there is a TTL, 1 no TTL is long enough, 2 the input is wrong.";

/// The flags of `size`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// How fast a clock may drift: 500ppm, 0.1%, 20ppb; once a clock, they add up
    #[arg(long, value_name = DRIFT, value_parser = units::parse_drift, required = true)]
    drift: Vec<Drift>,
    /// The worst round trip of an acquire or renew call
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    rtt: Duration,
    /// Heartbeats per TTL, at least 2
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
    /// Renewals in a row that may fail before the lease is lost
    #[arg(long, value_name = "N", value_parser = units::parse_count, default_value = "1")]
    lost: u64,
    /// The coordinator's step of the TTL
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "1us")]
    granularity: Duration,
    /// Print one JSON object, the inputs echoed
    #[arg(long)]
    json: bool,
}

/// The answer where no TTL is long enough.
#[derive(Serialize)]
struct NoTtl {
    ttl_us: Option<Duration>,
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let Self { drift, rtt, attempts, work, pause, poll, lost, granularity, json } = self;
        let drift = drift.into_iter().fold(Drift::ZERO, |sum, clock| sum + clock);
        let input = SizeInput { drift, rtt, attempts, work, pause, poll, lost, granularity };
        let size = input.size()?;
        match size {
            Some(output) if json => output::print_json(&Echoed { input, output })?,
            None if json => output::print_json(&Echoed { input, output: NoTtl { ttl_us: None } })?,
            Some(size) => output::print(table(&input, &size))?,
            None => output::print(none(&input))?,
        }
        Ok(size.is_some().into())
    }
}

fn table(input: &SizeInput, Size { ttl, plan }: &Size) -> Table {
    let lost = renewals(input.lost);
    let room = format_args!(
        "a TTL of {} leaves room for {} of work, a stall of {} and {lost}",
        spends(*ttl),
        spends(input.work),
        spends(input.pause),
    );
    let mut table = Table::new(true, "size", room);
    table.row("ttl", format_args!("{}us", ttl.as_micros()), "to the microsecond");
    table.row("window", has(plan.window), "over when this much has passed since the request was sent");
    plan::schedule(&mut table, plan);
    plan::notes(&mut table, &input.plan_for(*ttl), plan);
    table
}

fn none(input: &SizeInput) -> Table {
    let mut table = Table::new(
        false,
        "no size",
        format_args!(
            "no TTL is long enough for a drift of {} and {} out of {} heartbeats",
            shown_drift(input.drift),
            renewals(input.lost),
            input.attempts,
        ),
    );
    table.note("more heartbeats (--attempts), fewer lost renewals (--lost) or better clocks (--drift) leave room");
    table
}

fn renewals(lost: u64) -> String {
    match lost {
        0 => "no lost renewal".to_owned(),
        1 => "one lost renewal".to_owned(),
        n => format!("{n} lost renewals"),
    }
}
