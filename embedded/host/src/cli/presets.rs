//! `fencegate presets`: lock services as they come, and clocks worth knowing.

use super::output::{self, Failure, Outcome, Table, shown_drift};
use fencegate::{CLOCKS, Clock, Key, PRESETS, Preset};
use serde::Serialize;
use std::fmt::Write;

const EXAMPLE: &str = "Examples:
  fencegate presets
  fencegate presets --json";

/// The flags of `presets`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Presets {
    systems: &'static [&'static Preset],
    clocks: &'static [Clock],
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        if self.json {
            output::print_json(&Presets { systems: &PRESETS, clocks: &CLOCKS })?;
        } else {
            let mut text = String::new();
            for preset in PRESETS {
                // Writing into a string does not fail.
                let _ = writeln!(text, "{}", system(preset));
            }
            output::print(text + &clocks().to_string())?;
        }
        Ok(Outcome::Yes)
    }
}

fn system(preset: &Preset) -> Table {
    let order = if preset.ordered { "ordered" } else { "not ordered: it cannot fence" };
    let token = preset.token.map_or_else(|| "none".to_owned(), |token| format!("{token} ({order})"));
    let mut table = Table::new(preset.ordered, preset.system, preset.notes);
    table.row("token", "", token);
    table.row("renewal", "", if preset.renews { "by the client" } else { "by nobody, unless you do" });
    for key in preset.defaults {
        table.row(key.name, default(key), key.source);
    }
    for source in preset.sources {
        table.row("source", "", source);
    }
    table
}

fn default(key: &Key) -> String {
    key.default.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn clocks() -> Table {
    let mut table = Table::new(true, "clocks", "how far each may be off; the drift of a lease is the sum of two");
    for Clock { clock, drift, source } in CLOCKS {
        table.row(clock, shown_drift(drift), source);
    }
    table
}
