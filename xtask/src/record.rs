//! The record of what was measured and counted.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Where it is kept.
const RECORD: &str = "tests/BENCH.md";

/// Writes what `cargo xtask WORDS` has found into the record, in the place of what it found before.
pub(crate) fn write(root: &Path, words: &str, found: &str) -> Result<()> {
    let file = root.join(RECORD);
    let record = fs::read_to_string(&file).with_context(|| format!("reading {RECORD}"))?;
    let updated = between(&record, words, &format!("\n{found}"));
    let updated = updated.with_context(|| format!("{RECORD} has lost the marks of “{words}”"))?;
    fs::write(&file, updated).with_context(|| format!("writing {RECORD}"))
}

/// The record with `found` between the marks of a command.
fn between(record: &str, words: &str, found: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- cargo xtask {words} -->"), format!("<!-- /cargo xtask {words} -->"));
    let (before, rest) = record.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{found}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_written_anew() {
        let record = "before\n<!-- cargo xtask bench a -->\nold\n<!-- /cargo xtask bench a -->\nafter\n";
        assert_eq!(between(record, "bench a", "\nnew\n").unwrap(), record.replace("old", "new"));
        assert_eq!(between(record, "bench b", "new"), None);
    }
}
