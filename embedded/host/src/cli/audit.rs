//! `fencegate audit`: the fence replayed over a log of writes, a line at a time in flat memory.

use super::output::{self, Failure, Outcome, Table};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fencegate::{Epoch, LogFence, LogWrite, Policy, Token, Verdict};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

const EXAMPLE: &str = "Examples:
  fencegate audit writes.jsonl --policy at-least
  tail -f writes.jsonl | fencegate audit - --json

A line is one JSON object with resource, holder and token, and epoch (0) and seq where there are any, in the order in
which the store took the writes. Other fields are passed over.

Exit status: 0 every line commits, 1 one does not, 2 a line cannot be read (its number is named).";

/// The longest line that is read; without a limit a file without line ends would have to fit memory.
const LONGEST_LINE: usize = 1 << 20;
/// How much is read or written at once.
const BUFFER: usize = 1 << 18;

/// The arguments of `audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The log, in JSON lines; - is standard input
    file: OsString,
    /// Whether one stamp may commit more than once
    #[arg(long, value_name = "POLICY", value_parser = policy(), default_value = "at-least")]
    policy: Policy,
    /// Print one JSON object a line, and one with the counts
    #[arg(long)]
    json: bool,
}

fn policy() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(["at-least", "greater"]).map(|name| match name.as_str() {
        "greater" => Policy::Greater,
        _ => Policy::AtLeast,
    })
}

type Log = BufReader<Box<dyn Read>>;

/// A line of the log.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    resource: Cow<'a, str>,
    holder: String,
    token: Token,
    #[serde(default)]
    epoch: Epoch,
    #[serde(default)]
    seq: Option<u64>,
}

/// What `--json` says of a line.
#[derive(Serialize)]
struct Judged<'a> {
    line: u64,
    verdict: Verdict,
    resource: &'a str,
    /// The stamp that beat it.
    #[serde(flatten)]
    by: Option<&'a LogWrite<String>>,
}

/// How many lines there were, and what became of them.
#[derive(Clone, Copy, Default, Serialize)]
struct Counts {
    lines: u64,
    commit: u64,
    stale: u64,
    wrong_holder: u64,
    duplicate: u64,
}

impl Counts {
    fn count(&mut self, verdict: Verdict) {
        self.lines += 1;
        *match verdict {
            Verdict::Commit => &mut self.commit,
            Verdict::Stale => &mut self.stale,
            Verdict::WrongHolder => &mut self.wrong_holder,
            Verdict::Duplicate => &mut self.duplicate,
        } += 1;
    }
}

/// Why a run ends before the log does.
enum Stop {
    /// Nobody reads the answer any more.
    Unread,
    /// A line cannot be read, or the log or the answer fails.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let (log, size) = open(&self.file)?;
        let mut audit = Audit {
            policy: self.policy,
            json: self.json,
            fences: HashMap::new(),
            counts: Counts::default(),
            answer: BufWriter::with_capacity(BUFFER, io::stdout()),
            progress: Progress::new(size),
        };
        let ended = audit.read(log);
        audit.progress.clear();
        // The verdicts of the lines before a bad one are printed whatever comes of it.
        let flushed = audit.answer.flush().map_err(stopped);
        match ended.and(flushed) {
            Ok(()) => audit.sum_up(true)?,
            Err(Stop::Unread) => {}
            Err(Stop::Failed(failure)) => {
                if !self.json {
                    audit.sum_up(false)?;
                }
                return Err(failure);
            }
        }
        Ok((audit.counts.commit == audit.counts.lines).into())
    }
}

/// Opens the log; its size, where it has one.
fn open(file: &OsStr) -> Result<(Log, Option<u64>), Failure> {
    if file == "-" {
        return Ok((Log::with_capacity(BUFFER, Box::new(io::stdin())), None));
    }
    let name = file.to_string_lossy();
    let log = File::open(file).map_err(|why| Failure::input(format_args!("file: `{name}`: {why}")))?;
    let about = log.metadata().map_err(|why| Failure::input(format_args!("file: `{name}`: {why}")))?;
    if about.is_dir() {
        return Err(Failure::input(format_args!("file: `{name}`: is a directory")));
    }
    Ok((Log::with_capacity(BUFFER, Box::new(log)), about.is_file().then_some(about.len())))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of `map_err`")]
fn stopped(why: io::Error) -> Stop {
    if why.kind() == io::ErrorKind::BrokenPipe {
        Stop::Unread
    } else {
        Stop::Failed(Failure::input(format_args!("standard output: {why}")))
    }
}

/// A run over a log. Memory holds a fence a resource, one line, and the buffers.
struct Audit<W: Write> {
    policy: Policy,
    json: bool,
    fences: HashMap<String, LogFence<String>>,
    counts: Counts,
    answer: W,
    progress: Progress,
}

impl<W: Write> Audit<W> {
    fn read(&mut self, mut log: Log) -> Result<(), Stop> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let at = self.counts.lines + 1;
            let failed = |why: &dyn std::fmt::Display| Stop::Failed(Failure::input(format_args!("line {at}: {why}")));
            // One byte more than the limit, so that a line of exactly that length still ends.
            let limit = LONGEST_LINE as u64 + 1;
            match log.by_ref().take(limit).read_until(b'\n', &mut line).map_err(|why| failed(&why))? {
                0 => return Ok(()),
                length if length > LONGEST_LINE && line.last() != Some(&b'\n') => {
                    return Err(failed(&format_args!("longer than {LONGEST_LINE} bytes")));
                }
                _ => {}
            }
            let read = serde_json::from_slice(&line).map_err(|why| failed(&reason(&why)))?;
            self.judge(read)?;
            self.progress.show(self.counts.lines, line.len());
            // The next read may wait for the log to grow; whoever follows it should not wait too.
            if log.buffer().is_empty() {
                self.answer.flush().map_err(stopped)?;
            }
        }
    }

    fn judge(&mut self, line: Line<'_>) -> Result<(), Stop> {
        let Line { resource, holder, token, epoch, seq } = line;
        // Looked up twice where it is new, so that a known resource costs no allocation.
        if !self.fences.contains_key(resource.as_ref()) {
            self.fences.insert(resource.clone().into_owned(), LogFence::new());
        }
        let Some(fence) = self.fences.get_mut(resource.as_ref()) else { return Ok(()) };
        let write = LogWrite { epoch, token, holder, seq };
        let verdict = fence.judge(self.policy, &write);
        self.counts.count(verdict);
        let line = self.counts.lines;
        if self.json {
            let by = fence.top().filter(|_| verdict != Verdict::Commit);
            let judged = Judged { line, verdict, resource: &resource, by };
            serde_json::to_writer(&mut self.answer, &judged).map_err(|why| stopped(why.into()))?;
            self.answer.write_all(b"\n").map_err(stopped)?;
        } else if let (true, Some(top)) = (verdict != Verdict::Commit, fence.top()) {
            self.progress.clear();
            let refused = Refused { line, verdict, resource: &resource, write: &write, top };
            writeln!(self.answer, "{refused}").map_err(stopped)?;
        }
        fence.take(self.policy, write);
        Ok(())
    }

    /// The counts; `whole` where all of the log was read, without which nothing is called clean.
    fn sum_up(&self, whole: bool) -> Result<(), Failure> {
        if self.json {
            return output::print_json(&self.counts);
        }
        let Counts { lines, commit, stale, wrong_holder, duplicate } = self.counts;
        let mut table = if !whole {
            Table::new(false, "stopped", format_args!("the {lines} writes before the line that cannot be read"))
        } else if lines == 0 {
            Table::new(true, "empty", "there is no write in this log")
        } else if commit == lines {
            Table::new(true, "clean", format_args!("the fence would have taken all of {lines} writes"))
        } else {
            Table::new(
                false,
                "not clean",
                format_args!("the fence would have refused {} of {lines} writes", lines - commit),
            )
        };
        table.row("commit", commit, "taken");
        table.row("stale", stale, "under a stamp that another had passed");
        table.row("wrong holder", wrong_holder, "under another holder's stamp");
        table.row("duplicate", duplicate, "once more");
        output::print(table)
    }
}

/// A refused write in words.
struct Refused<'a> {
    line: u64,
    verdict: Verdict,
    resource: &'a str,
    write: &'a LogWrite<String>,
    top: &'a LogWrite<String>,
}

impl std::fmt::Display for Refused<'_> {
    /// What comes from the log is quoted, so that it cannot break the line or steer the terminal.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, verdict, resource, write, top } = self;
        let stamp = |f: &mut std::fmt::Formatter<'_>, w: &LogWrite<String>| {
            write!(f, "epoch {} token {} of {:?}", w.epoch, w.token, w.holder)?;
            w.seq.map_or(Ok(()), |seq| write!(f, " seq {seq}"))
        };
        write!(f, "line {line}: {}: {resource:?}: ", verdict.name())?;
        stamp(f, write)?;
        f.write_str("; the fence has seen ")?;
        stamp(f, top)
    }
}

/// Why serde cannot read a line, without the position that it adds: every line is its first.
fn reason(why: &serde_json::Error) -> String {
    let text = why.to_string();
    let column = why.column();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) if column > 0 => format!("{reason} at column {column}"),
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// How far the run is, on standard error, where that is a terminal and the answer goes elsewhere or is short.
struct Progress {
    shown: bool,
    wanted: bool,
    next: Instant,
    bytes: u64,
    size: Option<u64>,
}

impl Progress {
    const EVERY: Duration = Duration::from_millis(200);
    /// Asking for the time is not free; a few thousand lines take a few milliseconds.
    const LINES: u64 = 4_096;

    fn new(size: Option<u64>) -> Self {
        let wanted = io::stderr().is_terminal();
        Self { shown: false, wanted, next: Instant::now() + Self::EVERY, bytes: 0, size }
    }

    fn show(&mut self, lines: u64, bytes: usize) {
        self.bytes += bytes as u64;
        if !self.wanted || !lines.is_multiple_of(Self::LINES) || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + Self::EVERY;
        self.shown = true;
        // A terminal that is gone needs no progress.
        let _ = match self.size.and_then(|size| (self.bytes * 100).checked_div(size)) {
            Some(percent) => write!(io::stderr(), "\r\x1b[K{lines} lines, {percent} %"),
            None => write!(io::stderr(), "\r\x1b[K{lines} lines"),
        };
    }

    /// Takes the line back before anything else is written there.
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
