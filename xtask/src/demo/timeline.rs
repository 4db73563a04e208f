//! The story as it is printed, and what is checked of it.

use super::stage::Pin;
use anstream::println;
use anstyle::{AnsiColor, Style};
use std::time::{Duration, Instant};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Who does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    A,
    B,
    Gate,
    Service,
}

impl Actor {
    fn name(self) -> (&'static str, Style) {
        match self {
            Self::A => ("A", AnsiColor::Yellow.on_default().bold()),
            Self::B => ("B", AnsiColor::Cyan.on_default().bold()),
            Self::Gate => ("gate", AnsiColor::Magenta.on_default().bold()),
            Self::Service => ("lock service", DIM),
        }
    }
}

/// Prints the story a line at a time, and counts where it deviates.
pub(super) struct Timeline {
    begun: Instant,
    deviations: u32,
}

impl Timeline {
    pub(super) fn new(fenced: bool) -> Self {
        if fenced {
            println!("A late command meets the fence");
        } else {
            println!(
                "The same timeline with the check left out: a demonstration image that obeys no real key, and hosts that\n\
                 send commands without their lease, as to any machine that knows nothing of leases"
            );
        }
        println!("{DIM}    time  output  {DIM:#}");
        Self { begun: Instant::now(), deviations: 0 }
    }

    /// One line: when, what the pin shows, who, what.
    pub(super) fn tell(&self, actor: Actor, pin: Pin, what: &str) {
        let (name, style) = actor.name();
        let (mark, pin_style) = if pin.high { ("● open", GOOD) } else { ("○ safe", DIM) };
        let verdict = match what {
            what if what.contains("refused") => BAD,
            what if what.ends_with("done") => GOOD,
            _ => Style::new(),
        };
        let (said, result) = what.rsplit_once(": ").filter(|_| verdict != Style::new()).unwrap_or((what, ""));
        let colon = if result.is_empty() { "" } else { ": " };
        println!(
            "{DIM}{:>6.3} s{DIM:#}  {pin_style}{mark}{pin_style:#}  {style}{name:<12}{style:#} {said}{colon}{verdict}{}{verdict:#}",
            self.begun.elapsed().as_secs_f64(),
            in_words(result),
        );
    }

    /// Says so where something is not as it should be.
    pub(super) fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.deviations += 1;
            println!("                  {BAD}DEVIATED:{BAD:#} it does not hold that {what}");
        }
    }

    /// Checks that the output was safe before the holder's window ended, and says how much before.
    pub(super) fn safe_in_time(&mut self, pin: Pin, leased: Instant, window: Duration) {
        let held = pin.since.saturating_duration_since(leased);
        self.check(!pin.high && held < window, "the output is safe before the window ends");
        println!(
            "                  {DIM}safe {} ms after the lease was asked for; its window was {} ms{DIM:#}",
            held.as_millis(),
            window.as_millis()
        );
    }

    /// The last line; how often the story deviated.
    pub(super) fn end(self, corrupted: bool) -> u32 {
        match (self.deviations, corrupted) {
            (0, false) => println!("{GOOD}Nothing stale moved the output.{GOOD:#}"),
            (0, true) => {
                println!("{BAD}Corrupted, as it had to be: nobody but the resource can refuse a late command.{BAD:#}");
            }
            (n, _) => println!("{BAD}The story deviated {n} times.{BAD:#}"),
        }
        self.deviations
    }
}

/// A holder's answer for a person.
fn in_words(result: &str) -> String {
    match result.split(' ').collect::<Vec<_>>()[..] {
        ["refused", reason, epoch, token, holder] => {
            let holder = if holder == "-" { "nobody" } else { holder };
            format!("refused, {reason}: the gate has seen epoch {epoch} token {token}, held by {holder}")
        }
        _ => result.to_owned(),
    }
}

/// What the gate let through, in the order in which it did.
#[derive(Default)]
pub(super) struct Ledger {
    writes: Vec<Write>,
}

struct Write {
    token: u64,
    holder: &'static str,
    value: i32,
    landed: bool,
}

impl Ledger {
    /// Enters a command and what came of it.
    pub(super) fn write(&mut self, token: u64, holder: &'static str, value: i32, result: &str) {
        self.writes.push(Write { token, holder, value, landed: result == "done" });
    }

    /// Whether a token landed after a higher one.
    pub(super) fn corrupted(&self) -> bool {
        !self.stale().is_empty()
    }

    /// The places of the writes that landed after a higher token had.
    fn stale(&self) -> Vec<usize> {
        let mut highest = 0;
        let mut stale = Vec::new();
        for (place, write) in self.writes.iter().enumerate().filter(|(_, write)| write.landed) {
            if write.token < highest {
                stale.push(place);
            }
            highest = highest.max(write.token);
        }
        stale
    }

    pub(super) fn print(&self) {
        println!("the ledger of the output");
        let stale = self.stale();
        for (place, Write { token, holder, value, landed }) in self.writes.iter().enumerate() {
            let verdict = match (landed, stale.contains(&place)) {
                (true, true) => format!("{BAD}landed on the work of a higher token{BAD:#}"),
                (true, false) => "landed".to_owned(),
                (false, _) => format!("{GOOD}bounced{GOOD:#}"),
            };
            println!("  {}  token {token}  {holder}  value {value}  {verdict}", place + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_token_that_lands_after_a_higher_one_is_corruption() {
        let mut ledger = Ledger::default();
        ledger.write(33, "a", 1, "done");
        ledger.write(34, "b", 1, "done");
        ledger.write(33, "a", 0, "refused stale 0 34 b");
        assert!(!ledger.corrupted());
        ledger.write(33, "a", 0, "done");
        assert!(ledger.corrupted());
    }
}
