//! `fencegate quorum`: how many nodes are needed, and how many may be missing.

use super::output::{self, Echoed, Failure, Outcome, Table};
use super::units;
use serde::Serialize;

const EXAMPLE: &str = "Example:
  fencegate quorum --nodes 5

Exit status: 0, or 2 where the input is wrong.";

/// The flags of `quorum`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The nodes that there are
    #[arg(long, value_name = "N", value_parser = units::parse_count)]
    nodes: u64,
    /// Print one JSON object, the input echoed
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Input {
    nodes: u64,
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let Self { nodes, json } = self;
        let output = fencegate::quorum(nodes)?;
        if json {
            output::print_json(&Echoed { input: Input { nodes }, output })?;
        } else {
            let mut table = Table::new(true, "quorum", format_args!("{} of {nodes} nodes", output.quorum));
            table.row("tolerates", output.tolerates, "nodes that do not answer");
            output::print(table)?;
        }
        Ok(Outcome::Yes)
    }
}
