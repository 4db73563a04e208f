//! `fencegate presets`: lock services as they come, and clocks worth knowing.

use super::output::{self, Failure, Outcome, Table, shown_drift};
use fencegate::{CLOCKS, Clock, Key, PRESETS, Preset};
use serde::Serialize;
use std::fmt::Write;

const EXAMPLE: &str = "Examples:
  fencegate presets
  fencegate presets etcd
  fencegate presets --json";

/// The flags of `presets`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Only this lock service, or this clock
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Presets {
    systems: Vec<&'static Preset>,
    clocks: Vec<Clock>,
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let is_wanted = |name: &str| self.name.as_ref().is_none_or(|wanted| wanted == name);
        let systems: Vec<_> = PRESETS.into_iter().filter(|preset| is_wanted(preset.system)).collect();
        let clocks: Vec<_> = CLOCKS.into_iter().filter(|clock| is_wanted(clock.clock)).collect();
        if let (Some(name), true) = (&self.name, systems.is_empty() && clocks.is_empty()) {
            let known: Vec<_> = PRESETS.into_iter().map(|preset| preset.system).collect();
            return Err(Failure::input(format_args!("name: `{name}` is none of {}, or a clock", known.join(", "))));
        }
        if self.json {
            output::print_json(&Presets { systems, clocks })?;
        } else {
            let mut text = String::new();
            for preset in systems {
                // Writing into a string does not fail.
                let _ = writeln!(text, "{}", system(preset));
            }
            if !clocks.is_empty() {
                text += &table(&clocks).to_string();
            }
            output::print(text)?;
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

fn table(clocks: &[Clock]) -> Table {
    let mut table = Table::new(true, "clocks", "how far each may be off; the drift of a lease is the sum of two");
    for Clock { clock, drift, source } in clocks {
        table.row(clock, shown_drift(*drift), source);
    }
    table
}
