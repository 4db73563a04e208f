//! What leaves the process: answers, tables, failures and the exit status.

use anstyle::{AnsiColor, Style};
use fencegate::{Drift, Duration};
use serde::Serialize;
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};
use std::process::ExitCode;

/// An answer that has been printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit status 0.
    Yes,
    /// Exit status 1.
    No,
    /// A status of another program's, passed through.
    #[cfg(target_os = "linux")]
    Status(u8),
}

impl From<bool> for Outcome {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Yes => Self::SUCCESS,
            Outcome::No => Self::from(1),
            #[cfg(target_os = "linux")]
            Outcome::Status(status) => Self::from(status),
        }
    }
}

/// No answer: an exit status and the one line that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// A failure with a status of its own.
    pub(crate) fn new(status: u8, message: impl Display) -> Self {
        Self { status, message: message.to_string() }
    }

    /// The input is wrong (2); the message begins with the field's name.
    pub(crate) fn input(message: impl Display) -> Self {
        Self::new(2, message)
    }

    /// The exit status.
    pub(crate) const fn status(&self) -> u8 {
        self.status
    }

    /// Prints the line. Where standard error is gone too, the status has to do.
    pub(crate) fn report(&self) {
        let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {self}");
    }
}

impl Display for Failure {
    /// One line, whatever was quoted: what would break it or steer the terminal is escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.chars().try_for_each(|c| match c {
            '\u{2028}' | '\u{2029}' => write!(f, "{}", c.escape_unicode()),
            c if c.is_control() => write!(f, "{}", c.escape_default()),
            c => f.write_char(c),
        })
    }
}

impl From<fencegate::OutOfRange> for Failure {
    /// Names the field, and the flag that it came in by: `clock_offset_us` is `--clock-offset`.
    fn from(error: fencegate::OutOfRange) -> Self {
        let (field, reason) = (error.field(), error.reason());
        let flag = field.trim_end_matches("_us").trim_end_matches("_ppb").replace('_', "-");
        Self::input(format_args!("{field}: `--{flag}`: {reason}"))
    }
}

impl From<Failure> for ExitCode {
    fn from(failure: Failure) -> Self {
        Self::from(failure.status)
    }
}

/// Inputs echoed, outputs added: one flat object in the contract's order.
#[derive(Serialize)]
pub(crate) struct Echoed<I, O> {
    #[serde(flatten)]
    pub(crate) input: I,
    #[serde(flatten)]
    pub(crate) output: O,
}

/// Prints one JSON object on one line.
pub(crate) fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_string(object).map_err(unwritten)?;
    line.push('\n');
    arrived(write_all(io::stdout().lock(), &line))
}

/// Prints text for a person: styled on a terminal, plain elsewhere.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    arrived(write_all(anstream::stdout().lock(), &text.to_string()))
}

fn write_all(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// A reader that has read enough (a broken pipe) is no failure; an answer that could not be stored is.
fn arrived(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(error)),
        _ => Ok(()),
    }
}

fn unwritten(why: impl Display) -> Failure {
    Failure::input(format_args!("standard output: {why}"))
}

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default().bold();
const FIGURE: Style = Style::new().bold();

/// A verdict, rows of figures and notes: what a person reads.
#[derive(Debug)]
pub(crate) struct Table {
    verdict: String,
    rows: Vec<[String; 3]>,
    notes: Vec<String>,
}

impl Table {
    /// A table under a verdict: `word` in colour, then what it means.
    pub(crate) fn new(good: bool, word: &str, meaning: impl Display) -> Self {
        let style = if good { GOOD } else { BAD };
        Self { verdict: format!("{style}{word}:{style:#} {meaning}"), rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a figure: its name, its value, and what it is for.
    pub(crate) fn row(&mut self, name: &str, value: impl Display, meaning: impl Display) {
        self.rows.push([name.to_owned(), value.to_string(), meaning.to_string()]);
    }

    /// Adds a sentence below the figures.
    pub(crate) fn note(&mut self, text: impl Display) {
        self.notes.push(text.to_string());
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (names, values) = (width(0), width(1));
        writeln!(f, "{}", self.verdict)?;
        for [name, value, meaning] in &self.rows {
            writeln!(f, "  {name:names$}   {FIGURE}{value:values$}{FIGURE:#}   {meaning}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{NOTE}note:{NOTE:#} {note}"))
    }
}

/// A duration for a person: three decimals of a handy unit, rounded to the side that promises less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    us: u64,
    up: bool,
}

/// What a holder has: rounded down.
pub(crate) const fn has(d: Duration) -> Shown {
    Shown { us: d.as_micros(), up: false }
}

/// What is spent or waited for: rounded up.
pub(crate) const fn spends(d: Duration) -> Shown {
    Shown { us: d.as_micros(), up: true }
}

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const S: u64 = 1_000_000;
        let (unit, name) = match self.us {
            0 => (S, "s"),
            us if us < 1_000 => (1, "µs"),
            us if us < S => (1_000, "ms"),
            us if us < 120 * S => (S, "s"),
            us if us < 60 * 60 * S => (60 * S, "min"),
            us if us < 48 * 3_600 * S => (3_600 * S, "h"),
            _ => (86_400 * S, "d"),
        };
        let exact = u128::from(self.us) * 1_000;
        let unit = u128::from(unit);
        let thousandths = if self.up { exact.div_ceil(unit) } else { exact / unit };
        let (whole, part) = (thousandths / 1_000, thousandths % 1_000);
        let decimals = format!(".{part:03}");
        let decimals = decimals.trim_end_matches('0').trim_end_matches('.');
        f.pad(&format!("{whole}{decimals} {name}"))
    }
}

/// A drift for a person, exact.
pub(crate) fn shown_drift(drift: Drift) -> String {
    match drift.as_ppb() {
        ppb if ppb % 1_000 == 0 => format!("{} ppm", ppb / 1_000),
        ppb => format!("{ppb} ppb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_well_and_promises_no_more_than_it_holds() {
        for (us, down, up) in [
            (0, "0 s", "0 s"),
            (1, "1 µs", "1 µs"),
            (100_001, "100.001 ms", "100.001 ms"),
            (999_999, "999.999 ms", "999.999 ms"),
            (7_673_023, "7.673 s", "7.674 s"),
            (10_000_000, "10 s", "10 s"),
            (119_999_999, "119.999 s", "120 s"),
            (300_000_000, "5 min", "5 min"),
            (3_600_000_000, "1 h", "1 h"),
            (86_400_000_000, "24 h", "24 h"),
            (31_536_000_000_000, "365 d", "365 d"),
            (u64::MAX, "213503982.334 d", "213503982.335 d"),
        ] {
            let d = Duration::from_micros(us);
            assert_eq!((has(d).to_string().as_str(), spends(d).to_string().as_str()), (down, up), "{us} µs");
        }
    }

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::input("ttl_us: `1\n\u{1b}[31m\u{2028}s`");
        assert_eq!(failure.to_string(), r"ttl_us: `1\n\u{1b}[31m\u{2028}s`");
    }

    #[test]
    fn what_is_out_of_range_is_named_with_its_field_and_its_flag() {
        let failure = Failure::from(fencegate::OutOfRange::DriftFactor).to_string();
        assert!(failure.starts_with("drift_factor_ppb: `--drift-factor`: a drift factor "), "{failure}");
        assert!(Failure::from(fencegate::OutOfRange::TtlTooLong).to_string().starts_with("ttl_us: `--ttl`: "));
    }

    #[test]
    fn a_reader_that_left_is_no_failure_and_a_full_disk_is() {
        assert_eq!(arrived(Err(io::ErrorKind::BrokenPipe.into())), Ok(()));
        assert_eq!(arrived(Err(io::ErrorKind::StorageFull.into())).map_err(|f| f.status), Err(2));
    }
}
