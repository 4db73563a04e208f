//! `cargo xtask bench`: what was measured, written into the record.
//!
//! Bytes and instructions are the same on every machine with the same toolchain; nanoseconds and lines per second are
//! this machine's.

mod bare;
mod gate;
mod host;
mod shipped;
mod web;

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Where the record is kept.
const RECORD: &str = "tests/BENCH.md";

/// A part of the record, with marks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes of what ships.
    Shipped,
    /// The core on a microcontroller: instructions, code, RAM.
    Bare,
    /// The gate: instructions and bytes a frame, its stack, its time with interrupts off.
    Gate,
    /// The core on this machine: nanoseconds.
    Host,
    /// The audit of a long log.
    Audit,
    /// The module and the page.
    Web,
}

impl Part {
    /// Its name in the marks.
    const fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Bare => "bare",
            Self::Gate => "gate",
            Self::Host => "host",
            Self::Audit => "audit",
            Self::Web => "web",
        }
    }
}

/// Measures the parts, prints them and writes them into the record.
pub fn run(root: &Path, parts: &[Part]) -> Result<()> {
    for part in parts {
        let table = match part {
            Part::Shipped => shipped::measure(root),
            Part::Bare => bare::measure(root),
            Part::Gate => gate::measure(root),
            Part::Host => host::decisions(root),
            Part::Audit => host::audit(root),
            Part::Web => web::measure(root),
        }?;
        println!("{table}");
        let file = root.join(RECORD);
        let record = fs::read_to_string(&file).with_context(|| format!("reading {RECORD}"))?;
        let updated = between(&record, part.name(), &format!("\n{table}"));
        let updated = updated.with_context(|| format!("{RECORD} has lost the marks of “{}”", part.name()))?;
        fs::write(&file, updated).with_context(|| format!("writing {RECORD}"))?;
    }
    Ok(())
}

/// The record with `table` between the marks of a part.
fn between(record: &str, part: &str, table: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- cargo xtask bench {part} -->"), format!("<!-- /cargo xtask bench {part} -->"));
    let (before, rest) = record.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{table}{end}{after}"))
}

/// A table in Markdown.
fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut table = line(&heads.map(str::to_owned)) + &format!("|{}\n", "---|".repeat(N));
    rows.into_iter().for_each(|row| table.push_str(&line(&row)));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_written_anew() {
        let record = "before\n<!-- cargo xtask bench a -->\nold\n<!-- /cargo xtask bench a -->\nafter\n";
        assert_eq!(between(record, "a", "\nnew\n").unwrap(), record.replace("old", "new"));
        assert_eq!(between(record, "b", "new"), None);
    }

    #[test]
    fn a_table_has_a_line_a_row() {
        let rows = [["x".to_owned(), "1".to_owned()]];
        assert_eq!(table(["what", "bytes"], rows), "| what | bytes |\n|---|---|\n| x | 1 |\n");
    }
}
