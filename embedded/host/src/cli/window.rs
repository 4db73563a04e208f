//! `fencegate window`: for how long a holder may rely on its lease.

use super::output::{self, Echoed, Failure, Outcome, Table, has, shown_drift, spends};
use super::units::{self, DRIFT, DURATION};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fencegate::{Drift, Duration, Start, Window, WindowInput};

const EXAMPLE: &str = "Example:
  fencegate window --ttl 10s --drift 1000ppm --rtt 5ms --start grant

Exit status: 0 the window is not empty, 1 it is, 2 the input is wrong.";

/// The flags of `window`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(flatten)]
    lease: Lease,
    /// Print one JSON object, the inputs echoed
    #[arg(long)]
    json: bool,
}

/// The flags that a window follows from.
#[derive(Debug, clap::Args)]
pub(crate) struct Lease {
    /// The lease as the coordinator grants it: 10s, 1m30s, 1.5s (ns us ms s m h d)
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    ttl: Duration,
    /// How fast a clock may drift: 500ppm, 0.1%, 20ppb; once a clock, they add up
    #[arg(long, value_name = DRIFT, value_parser = units::parse_drift, required = true)]
    drift: Vec<Drift>,
    /// The worst round trip of an acquire or renew call
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    rtt: Duration,
    /// When the holder starts its timer: before the request leaves, or when the reply arrives
    #[arg(long, value_name = "WHEN", value_parser = start(), default_value = "send")]
    start: Start,
    /// The worst offset between two wall clocks; only for a deadline that one machine writes and another reads
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "0s")]
    clock_offset: Duration,
}

fn start() -> impl TypedValueParser<Value = Start> {
    PossibleValuesParser::new(["send", "grant"]).map(|when| match when.as_str() {
        "grant" => Start::Grant,
        _ => Start::Send,
    })
}

impl From<Lease> for WindowInput {
    fn from(Lease { ttl, drift, rtt, start, clock_offset }: Lease) -> Self {
        let drift = drift.into_iter().fold(Drift::ZERO, |sum, clock| sum + clock);
        Self { ttl, drift, rtt, start, clock_offset }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let input = WindowInput::from(self.lease);
        let output = input.window()?;
        if self.json {
            output::print_json(&Echoed { input, output })?;
        } else {
            output::print(table(&input, &output))?;
        }
        Ok(output.safe.into())
    }
}

/// The verdict and the figures of a window.
pub(super) fn table(input: &WindowInput, &Window { margin, window, safe }: &Window) -> Table {
    let since = match input.start {
        Start::Send => "the request was sent",
        Start::Grant => "the reply arrived",
    };
    let mut table = if safe {
        Table::new(true, "safe", format_args!("the lease holds for {} after {since}", has(window)))
    } else {
        let mut table = Table::new(false, "not safe", format_args!("nothing is left of a TTL of {}", has(input.ttl)));
        for remedy in remedies(input) {
            table.note(remedy);
        }
        table
    };
    table.row("window", has(window), "over when this much has passed");
    table.row("margin", spends(margin), parts(input));
    table
}

/// What the margin consists of.
fn parts(input: &WindowInput) -> String {
    let mut parts = vec![format!("off a TTL of {} for a drift of {}", has(input.ttl), shown_drift(input.drift))];
    if input.start == Start::Grant && !input.rtt.is_zero() {
        parts.push(format!("a round trip of {}", spends(input.rtt)));
    }
    if !input.clock_offset.is_zero() {
        parts.push(format!("wall clocks {} apart", spends(input.clock_offset)));
    }
    parts.join(", ")
}

/// What would make an empty window one that can be used.
fn remedies(input: &WindowInput) -> Vec<String> {
    let mut remedies = Vec::new();
    let at_send = WindowInput { start: Start::Send, ..*input };
    if input.start == Start::Grant && at_send.window().is_ok_and(|w| w.safe) {
        remedies.push(
            "start the timer before the request leaves (--start send): the round trip then needs no margin".to_owned(),
        );
    }
    // ⌊T·(1−ε)⌋ must exceed what is taken off at a fixed length, which is so from ⌈(fixed + 1)/(1−ε)⌉ on.
    let latency = if input.start == Start::Grant { input.rtt } else { Duration::ZERO };
    let enough = latency
        .checked_add(input.clock_offset)
        .and_then(|fixed| fixed.checked_add(Duration::from_micros(1)))
        .and_then(|more| input.drift.outlast(more).ok());
    if let Some(enough) = enough {
        remedies.push(format!("a window needs a TTL of at least {} (--ttl), or a smaller margin", spends(enough)));
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remedy is the least TTL with a window, at every kind of margin.
    #[test]
    fn the_ttl_that_is_said_to_be_enough_is_the_least() {
        for ppb in [0, 1, 1_000_000, 83_333_334, 999_999_999] {
            for fixed in [0, 1, 999, 100_000, 1_000_000_007] {
                let drift = Drift::from_ppb(ppb);
                let enough = drift.outlast(Duration::from_micros(fixed + 1)).unwrap();
                let safe = |ttl| {
                    let mut input = WindowInput::new(Duration::from_micros(ttl), drift);
                    input.clock_offset = Duration::from_micros(fixed);
                    input.window().map(|w| w.safe)
                };
                assert_eq!(safe(enough.as_micros()), Ok(true), "{ppb} ppb, {fixed} µs");
                assert_ne!(safe(enough.as_micros() - 1), Ok(true), "{ppb} ppb, {fixed} µs");
            }
        }
    }
}
