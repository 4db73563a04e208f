//! `fencegate redlock`: what is left of a lock on independent Redis nodes.

use super::output::{self, Echoed, Failure, Outcome, Table, has, spends};
use super::units::{self, DRIFT, DURATION};
use fencegate::{Drift, Duration, RedlockInput};

const EXAMPLE: &str = "Example:
  fencegate redlock --ttl 10s --elapsed 300ms --nodes 5 --granted 3

Exit status: 0 the lock is held, 1 it is not, 2 the input is wrong.";

/// The flags of `redlock`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The time to live of the keys: 10s, 1m30s, 1.5s (ns us ms s m h d)
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    ttl: Duration,
    /// What passed from before the first node was asked until the last one answered
    #[arg(long, value_name = DURATION, value_parser = units::spends)]
    elapsed: Duration,
    /// The nodes that there are
    #[arg(long, value_name = "N", value_parser = units::parse_count)]
    nodes: u64,
    /// The nodes that granted the lock
    #[arg(long, value_name = "N", value_parser = units::parse_count)]
    granted: u64,
    /// The part of the TTL that is allowed for drift
    #[arg(long, value_name = DRIFT, value_parser = units::parse_drift, default_value = "1%")]
    drift_factor: Drift,
    /// What is allowed for drift whatever the TTL
    #[arg(long, value_name = DURATION, value_parser = units::spends, default_value = "2ms")]
    drift_fixed: Duration,
    /// Print one JSON object, the inputs echoed
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let Self { ttl, elapsed, nodes, granted, drift_factor, drift_fixed, json } = self;
        let input = RedlockInput { ttl, elapsed, nodes, granted, drift_factor, drift_fixed };
        let output = input.redlock()?;
        if json {
            output::print_json(&Echoed { input, output })?;
            return Ok(output.held.into());
        }
        let mut table = if output.held {
            Table::new(true, "held", format_args!("for {} from now", has(output.validity)))
        } else if output.validity.is_zero() {
            let spent = format_args!("nothing is left of a TTL of {} after {}", has(ttl), spends(elapsed));
            Table::new(false, "not held", spent)
        } else {
            Table::new(false, "not held", format_args!("{granted} of {nodes} nodes are no majority"))
        };
        table.row("validity", has(output.validity), "over when this much has passed");
        table.row("drift", spends(output.drift), "allowed for");
        table.row("quorum", output.quorum, format_args!("of {nodes} nodes; {granted} granted it"));
        table.note("random values cannot fence: nothing tells a resource which of two holders is the later");
        output::print(table)?;
        Ok(output.held.into())
    }
}
