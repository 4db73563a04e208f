//! What was checked, how it went and how long it took.

use crate::step::{self, Step, Tally, human};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// The checks of one command. One that fails is reported at once and does not stop the others.
#[derive(Debug, Default)]
pub struct Ledger {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    took: Duration,
    tally: Tally,
}

impl Ledger {
    /// Makes one check; its result, if it passed.
    pub fn check<T>(&mut self, name: &str, check: impl FnOnce() -> Result<T>) -> Option<T> {
        let since = Instant::now();
        let result = check();
        self.enter(name, since, Tally::of_one(result.is_ok()));
        result.map_err(|error| step::report(&error)).ok()
    }

    /// Makes one check that is a step of its own.
    pub fn step(&mut self, step: Step) -> Option<()> {
        let name = step.name().to_owned();
        self.check(&name, || step.run())
    }

    /// Runs a test runner, and counts its tests instead of the step.
    pub fn tests(&mut self, step: Step) -> Option<()> {
        let tally = self.tests_heard(step, |_| ());
        (tally.failed == 0).then_some(())
    }

    /// The same, and `hear` gets each line that the tests print; how many there were.
    pub fn tests_heard(&mut self, step: Step, hear: impl FnMut(&str)) -> Tally {
        let (name, since) = (step.name().to_owned(), Instant::now());
        let mut tally = Tally::default();
        if let Err(error) = step.tally(&mut tally, hear) {
            // Tests that did not even compile have reported no failure.
            tally.failed = tally.failed.max(1);
            step::report(&error);
        }
        self.enter(&name, since, tally.clone());
        tally
    }

    fn enter(&mut self, name: &str, since: Instant, tally: Tally) {
        self.rows.push(Row { name: name.to_owned(), took: since.elapsed(), tally });
    }

    /// What passed without a look, since this machine lacks something for it: a line each.
    fn not_tested(&self) -> Vec<String> {
        let of_row = |row: &Row| {
            row.tally.not_tested.iter().map(|what| format!("not tested here: {}: {what}", row.name)).collect::<Vec<_>>()
        };
        self.rows.iter().flat_map(of_row).collect()
    }

    /// Prints the table, the closing line, what was not tested here and why tests failed; an error if anything did.
    pub fn close(self) -> Result<()> {
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
        let (mut took, mut passed, mut failed) = (Duration::ZERO, 0, 0);
        anstream::println!();
        for Row { name, took: this, tally } in &self.rows {
            let how = if tally.failed > 0 {
                format!("  {} failed", tally.failed)
            } else if tally.passed > 1 {
                format!("  {} passed", tally.passed)
            } else {
                String::new()
            };
            anstream::println!("{name:width$}  {:>12}{how}", human(*this));
            took += *this;
            passed += tally.passed;
            failed += tally.failed;
        }
        anstream::println!("{:width$}  {:>12}", "all", human(took));
        anstream::println!("{passed} passed, {failed} failed");
        for line in self.not_tested() {
            anstream::println!("{line}");
        }
        // Once more and last, since what was printed when it failed may be thousands of lines above, and logs are cut in the
        // middle.
        for Row { name, tally, .. } in self.rows.iter().filter(|row| !row.tally.reasons.is_empty()) {
            anstream::println!("\n{name}:");
            for line in &tally.reasons {
                anstream::println!("  {line}");
            }
        }
        if failed > 0 {
            let names: Vec<_> = self.rows.iter().filter(|row| row.tally.failed > 0).map(|row| &*row.name).collect();
            bail!("failed: {}; the reasons are above", names.join(", "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn shell(script: &str) -> Step {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Step::new(script, command)
    }

    #[test]
    fn a_failed_check_does_not_stop_the_others_and_fails_the_whole() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.step(shell("exit 1")), None);
        assert_eq!(ledger.check("seven", || Ok(7)), Some(7));
        assert_eq!(ledger.close().unwrap_err().to_string(), "failed: exit 1; the reasons are above");
    }

    #[test]
    fn what_was_not_tested_is_listed_and_fails_nothing() {
        let mut ledger = Ledger::default();
        let mut tally = Tally::of_one(true);
        tally.not_tested.push("one: not tested: no root".to_owned());
        ledger.enter("rooms", Instant::now(), tally);
        assert_eq!(ledger.not_tested(), ["not tested here: rooms: one: not tested: no root"]);
        assert!(ledger.close().is_ok());
    }

    #[test]
    fn tests_that_did_not_compile_are_a_failure() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.tests(shell("exit 101")), None);
        assert_eq!((ledger.rows[0].tally.passed, ledger.rows[0].tally.failed), (0, 1));
    }
}
