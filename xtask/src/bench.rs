//! `cargo xtask bench`: what was measured, written into the record.
//!
//! Bytes and instructions are the same on every machine with the same toolchain; nanoseconds and lines per second are
//! this machine's.

mod bare;
mod gate;
mod host;
mod leases;
mod pico;
mod shipped;
mod web;

use crate::{record, workspace};
use anyhow::Result;
use std::path::Path;

/// A part of the record, with marks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes of what ships.
    Shipped,
    /// The core on a microcontroller: instructions, code, RAM.
    Bare,
    /// The gate: instructions and bytes a frame, its stack, its time with interrupts off.
    Gate,
    /// The Raspberry Pi Pico in its emulator: round trips, cycles; and how fast the emulator runs.
    Pico,
    /// The core on this machine: nanoseconds.
    Host,
    /// The audit of a long log.
    Audit,
    /// Leases that are held: what one costs, renewals at etcd, what `hold` adds to a command's start.
    Leases,
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
            Self::Pico => "pico",
            Self::Host => "host",
            Self::Audit => "audit",
            Self::Leases => "leases",
            Self::Web => "web",
        }
    }
}

/// Measures the parts, prints them and writes them into the record, with what was checked out.
pub fn run(root: &Path, parts: &[Part]) -> Result<()> {
    let commit = workspace::commit(root);
    for part in parts {
        let table = match part {
            Part::Shipped => shipped::measure(root),
            Part::Bare => bare::measure(root),
            Part::Gate => gate::measure(root),
            Part::Pico => pico::measure(root),
            Part::Host => host::decisions(root),
            Part::Audit => host::audit(root),
            Part::Leases => leases::measure(root),
            Part::Web => web::measure(root),
        }?;
        println!("{table}");
        record::write(root, &format!("bench {}", part.name()), &format!("At `{commit}`.\n\n{table}"))?;
    }
    Ok(())
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
    fn a_table_has_a_line_a_row() {
        let rows = [["x".to_owned(), "1".to_owned()]];
        assert_eq!(table(["what", "bytes"], rows), "| what | bytes |\n|---|---|\n| x | 1 |\n");
    }
}
