//! `fencegate gate … watch`: a gate as it changes.
//!
//! The gate is asked again and again. On a terminal the table of `status` is drawn over the last one; elsewhere there
//! is a line for each change, at first one for everything. A window that runs down is no change. When the line breaks
//! or the gate falls silent (a power cut), it is tried again until the timeout since the last answer is over; a gate
//! that is back shows a higher boot count.

use super::super::output::{Failure, Outcome, Table};
use super::answer::{self, Told, stands};
use super::status::{ChannelJson, Seen, counts, fault_name, state, table, why};
use super::{Session, clock};
use fencegate::{Duration, Instant};
use fencegate_host::{CallError, Status};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use tokio::time::sleep;

/// How long a line that has just broken is left alone.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// How often a window is seen to run down, and silence to last.
const BEAT: std::time::Duration = std::time::Duration::from_millis(100);

/// How long the gate may owe an answer before that is said.
const SILENT: Duration = Duration::from_secs(1);

/// Watches until Ctrl-C, until nobody reads any more, or until the gate has been silent for too long.
pub(super) async fn run(session: &Session, every: Duration) -> Result<Outcome, Failure> {
    if every.is_zero() {
        return Err(Failure::input("every_us: `--every`: some time passes between two questions"));
    }
    tokio::select! {
        ended = follow(session, every) => ended,
        _ = tokio::signal::ctrl_c() => Ok(Outcome::Yes),
    }
}

async fn follow(session: &Session, every: Duration) -> Result<Outcome, Failure> {
    let mut view = View::new(session.json);
    // Since when the gate has owed an answer.
    let mut asked = session.started;
    loop {
        let connected = session.connect(session.keys.reader(), session.give_up(asked)?);
        let failure = match view.meanwhile(Some(asked), connected).await? {
            Err(failure) => failure,
            Ok(mut gate) => loop {
                match view.meanwhile(Some(asked), gate.status(session.give_up(asked)?)).await? {
                    Ok(status) => view.show(status)?,
                    Err(CallError::Refused(refused)) => {
                        return answer::refused(session.json, None, &Told::Status, refused, None);
                    }
                    Err(error) => break session.failure(error, None),
                }
                view.meanwhile(None, sleep(every.into())).await?;
                if !view.is_read() {
                    return Ok(Outcome::Yes);
                }
                asked = clock::now();
            },
        };
        if session.give_up(asked)?.is_over(clock::now()) {
            return Err(failure);
        }
        view.meanwhile(Some(asked), sleep(PAUSE)).await?;
        if !view.is_read() {
            return Ok(Outcome::Yes);
        }
    }
}

/// What has been shown, and how.
struct View {
    style: Style,
    last: Option<Status>,
    /// When that came.
    at: Instant,
    /// Whether the silence since has been said.
    silent: bool,
    closed: bool,
}

enum Style {
    /// Drawn over the last one, which has so many lines.
    Live(usize),
    /// A line for each change.
    Lines,
    /// An object for each change.
    Json,
}

impl View {
    fn new(json: bool) -> Self {
        let can_draw = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let style = match (json, can_draw) {
            (true, _) => Style::Json,
            (false, true) => Style::Live(0),
            (false, false) => Style::Lines,
        };
        Self { style, last: None, at: clock::now(), silent: false, closed: false }
    }

    fn show(&mut self, status: Status) -> Result<(), Failure> {
        let written = match &mut self.style {
            Style::Live(lines) => draw(&table(&status, Seen::Now), lines),
            Style::Lines => write_lines(changes(self.last.as_ref(), &status).iter().map(Change::line)),
            Style::Json => write_lines(changes(self.last.as_ref(), &status).iter().map(Change::json)),
        };
        self.last = Some(status);
        self.at = clock::now();
        self.silent = false;
        self.written(written)
    }

    /// Goes on showing what is so while something else is waited for; the gate has owed an answer since `asked`, if it
    /// owes one.
    async fn meanwhile<T>(&mut self, asked: Option<Instant>, work: impl Future<Output = T>) -> Result<T, Failure> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = sleep(BEAT) => self.beat(asked)?,
            }
        }
    }

    fn beat(&mut self, asked: Option<Instant>) -> Result<(), Failure> {
        let now = clock::now();
        let silent = asked.and_then(|asked| now.since(asked).ok()).unwrap_or(Duration::ZERO);
        let is_silent = silent >= SILENT;
        let written = match (&mut self.style, &self.last) {
            (Style::Live(lines), Some(last)) if is_silent => draw(&table(last, Seen::Before(silent)), lines),
            (Style::Live(lines), Some(last)) => {
                draw(&table(&aged(last, now.since(self.at).unwrap_or_default()), Seen::Now), lines)
            }
            (Style::Lines | Style::Json, Some(_)) if is_silent && !self.silent => {
                let silence = Change { at: now, what: What::Silence(silent) };
                let line = if matches!(self.style, Style::Json) { silence.json() } else { silence.line() };
                write_lines(std::iter::once(line))
            }
            _ => return Ok(()),
        };
        self.silent = is_silent;
        self.written(written)
    }

    fn written(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => return Err(Failure::input(format_args!("standard output: {error}"))),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Whether somebody may still be reading.
    fn is_read(&self) -> bool {
        !self.closed && !is_closed(&io::stdout())
    }
}

/// Whether a pipe's reader is gone: without a change there is no write that would say so.
#[cfg(unix)]
pub(super) fn is_closed(pipe: &io::Stdout) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(pipe, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

#[cfg(not(unix))]
pub(super) fn is_closed(_: &io::Stdout) -> bool {
    false // the next write says so
}

/// What an answer says some time after it came: its windows have run down.
fn aged(status: &Status, by: Duration) -> Status {
    let mut aged = status.clone();
    for channel in &mut aged.channels {
        channel.window_left = channel.window_left.less(by);
    }
    aged
}

/// Draws over the last drawing of `lines` lines. Lines are not wrapped meanwhile, or they could not be counted.
fn draw(table: &Table, lines: &mut usize) -> io::Result<()> {
    let text = table.to_string();
    let mut terminal = anstream::stdout().lock();
    let mut raw = io::stdout(); // a terminal without colour still moves its cursor
    if *lines > 0 {
        write!(raw, "\x1b[{lines}A")?;
    }
    write!(raw, "\r\x1b[J\x1b[?7l")?;
    raw.flush()?;
    let drawn = write!(terminal, "{text}");
    write!(raw, "\x1b[?7h")?;
    raw.flush()?;
    *lines = text.lines().count();
    drawn
}

fn write_lines(lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// One thing that is not as it was.
struct Change {
    /// When it was seen, on the boot-time clock.
    at: Instant,
    what: What,
}

enum What {
    Gate(Box<Status>),
    Channel(u8, fencegate_wire::ChannelStatus),
    Counters(Vec<(&'static str, u32)>),
    /// The gate has owed an answer for so long.
    Silence(Duration),
}

/// What has changed since `last`, or all of it.
fn changes(last: Option<&Status>, status: &Status) -> Vec<Change> {
    let at = clock::now();
    let mut changes = Vec::new();
    let gate = |status: &Status| (status.gate, status.firmware, status.boots, status.fault);
    if last.map(gate) != Some(gate(status)) {
        changes.push(What::Gate(Box::new(status.clone())));
    }
    for (number, channel) in (0_u8..).zip(&status.channels) {
        let last = last.and_then(|last| last.channels.get(usize::from(number)));
        if last.is_none_or(|last| {
            (last.record, last.state, &last.values, why(last))
                != (channel.record, channel.state, &channel.values, why(channel))
        }) {
            changes.push(What::Channel(number, channel.clone()));
        }
    }
    let before = last.map(|last| last.counters).unwrap_or_default();
    let counted: Vec<_> = counts(&status.counters)
        .zip(counts(&before))
        .filter_map(|(now, before)| (now != before).then_some(now))
        .collect();
    if !counted.is_empty() {
        changes.push(What::Counters(counted));
    }
    changes.into_iter().map(|what| Change { at, what }).collect()
}

impl Change {
    /// The change for a person, after the time since boot as the kernel's log has it.
    fn line(&self) -> String {
        let ms = self.at.as_micros() / 1_000;
        let what = match &self.what {
            What::Gate(status) => {
                let Status { gate, firmware, boots, fault, .. } = status.as_ref();
                let fault = fault.map_or_else(|| "no fault".to_owned(), |fault| format!("fault: {}", fault.as_str()));
                format!("gate {gate}: firmware {firmware}, boot {boots}, {fault}")
            }
            What::Channel(number, channel) => {
                let (state, values) = state(channel);
                let why = why(channel).map_or_else(String::new, |why| format!("; {why}"));
                format!("channel {number}: {state} {values}, {}{why}", stands(&channel.record))
            }
            What::Counters(counts) => {
                let counts: Vec<_> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
                format!("turned away: {}", counts.join(", "))
            }
            What::Silence(silent) => format!("no answer for {} s", silent.as_micros() / 1_000_000),
        };
        format!("[{:5}.{:03}] {what}", ms / 1_000, ms % 1_000)
    }

    /// The change for a program: when, and `status`'s own fields, as far as they changed.
    fn json(&self) -> String {
        #[derive(Serialize)]
        struct Timed<T> {
            at_us: Instant,
            #[serde(flatten)]
            what: T,
        }
        fn line(at_us: Instant, what: impl Serialize) -> String {
            serde_json::to_string(&Timed { at_us, what }).unwrap_or_default()
        }
        match &self.what {
            What::Gate(status) => {
                let Status { gate, firmware, boots, fault, .. } = status.as_ref();
                let (gate, firmware) = (gate.to_string(), firmware.to_string());
                let fault = fault.map(fault_name);
                line(self.at, serde_json::json!({ "gate": gate, "firmware": firmware, "boots": boots, "fault": fault }))
            }
            What::Channel(number, channel) => line(self.at, ChannelJson::new(*number, channel)),
            What::Counters(counts) => {
                let counts: serde_json::Map<_, _> =
                    counts.iter().map(|(name, n)| ((*name).to_owned(), (*n).into())).collect();
                line(self.at, serde_json::json!({ "counters": counts }))
            }
            What::Silence(silent) => line(self.at, serde_json::json!({ "no_answer_us": silent })),
        }
    }
}
