//! `fencegate gate … log`: what the gate remembers of the last things that happened to it.

use super::super::output::{self, Failure, Outcome};
use super::super::units::{self, DURATION};
use super::answer::{self, Told};
use super::{Session, clock, status};
use fencegate::{Duration, HolderId, Instant};
use fencegate_host::{CallError, GateClient, Line};
use fencegate_wire::{Event, Operation, Reply, Request, What};
use serde::Serialize;
use tokio::time::sleep;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Log {
    /// Go on with what happens from now on; until Ctrl-C, or no answer for the timeout
    #[arg(long)]
    follow: bool,
    /// How often to ask, with --follow
    #[arg(long, value_name = DURATION, value_parser = units::has, default_value = "500ms")]
    every: Duration,
}

/// The log for programs: one object, or with `--follow` one of its events a line.
#[derive(Serialize)]
struct LogJson {
    events: Vec<EventJson>,
}

#[derive(Serialize)]
struct EventJson {
    number: u32,
    at_us: Instant,
    channel: Option<u8>,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<HolderId>,
    /// What belongs to this kind of event alone.
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

impl From<&Event> for EventJson {
    fn from(&Event { number, at, channel, what }: &Event) -> Self {
        let mut more = serde_json::Map::new();
        let mut also = |name: &str, value: serde_json::Value| more.insert(name.to_owned(), value);
        let mut stamp = None;
        let event = match what {
            What::Booted { boots } => {
                also("boots", boots.into());
                "booted"
            }
            What::Mended { records } => {
                also("records", records.into());
                "mended"
            }
            What::Raised { token, holder } => {
                stamp = Some((token, holder));
                "raised"
            }
            What::Driven { token, holder } => {
                stamp = Some((token, holder));
                "driven"
            }
            What::Warned => "warned",
            What::Ended => "ended",
            What::Released { token, holder } => {
                stamp = Some((token, holder));
                "released"
            }
            What::Epoch { epoch } => {
                also("epoch", epoch.0.into());
                "epoch"
            }
            What::Granted { token, holder } => {
                stamp = Some((token, holder));
                "granted"
            }
            What::Refused { reason, times } => {
                also("reason", reason.as_str().into());
                also("times", times.into());
                "refused"
            }
            What::Fault { fault } => {
                also("fault", status::fault_name(fault).into());
                "fault"
            }
            What::Rearmed => "rearmed",
            What::Provisioned => "provisioned",
        };
        let (token, holder) = stamp.unzip();
        Self { number, at_us: at, channel, event, token, holder, more }
    }
}

/// An event for a person, after the time since the gate's boot.
fn line(event: &Event) -> String {
    let ms = event.at.as_micros() / 1_000;
    let whose = event.channel.map_or_else(|| "gate".to_owned(), |channel| format!("channel {channel}"));
    let what = match event.what {
        What::Booted { boots } => format!("boot {boots}"),
        What::Mended { records } => format!("{records} records mended from their other copy"),
        What::Raised { token, holder } => format!("raised to token {token} by {holder}"),
        What::Driven { token, holder } => format!("driven under token {token} by {holder}"),
        What::Warned => "the window is about to end".to_owned(),
        What::Ended => "the window has ended".to_owned(),
        What::Released { token, holder } => format!("token {token} released by {holder}"),
        What::Epoch { epoch } => format!("the operator has set epoch {epoch}"),
        What::Granted { token, holder } => format!("token {token} granted to {holder}"),
        What::Refused { reason, times: 1 } => format!("refused: {}", reason.as_str()),
        What::Refused { reason, times } => format!("refused {times} times: {}", reason.as_str()),
        What::Fault { fault } => format!("fault: {}", fault.as_str()),
        What::Rearmed => "the operator has rearmed it".to_owned(),
        What::Provisioned => "provisioned anew".to_owned(),
    };
    format!("[{:5}.{:03}] {whose}: {what}\n", ms / 1_000, ms % 1_000)
}

/// Prints the log, and what comes after it where that is wanted.
pub(super) async fn run(session: &Session, Log { follow, every }: Log) -> Result<Outcome, Failure> {
    if every.is_zero() {
        return Err(Failure::input("every_us: `--every`: some time passes between two questions"));
    }
    let give_up = session.give_up(session.started)?;
    let mut gate = session.connect(session.keys.reader(), give_up).await?;
    if !follow {
        return match gate.log(0, give_up).await {
            Ok(events) if session.json => {
                output::print_json(&LogJson { events: events.iter().map(EventJson::from).collect() })?;
                Ok(Outcome::Yes)
            }
            Ok(events) => {
                output::print(events.iter().map(line).collect::<String>())?;
                Ok(Outcome::Yes)
            }
            Err(error) => failed(session, error),
        };
    }
    tokio::select! {
        ended = go_on(session, &mut gate, every) => ended,
        _ = tokio::signal::ctrl_c() => Ok(Outcome::Yes),
    }
}

/// Asks again and again. A boot begins the numbers anew, and the log with them.
async fn go_on<L: Line>(session: &Session, gate: &mut GateClient<L>, every: Duration) -> Result<Outcome, Failure> {
    let (mut asked, mut booted, mut last) = (session.started, None, None::<Event>);
    loop {
        let give_up = session.give_up(asked)?;
        let boots = match gate.call(Operation::new(Request::Status), give_up).await {
            Ok(Reply::Status(status)) => status.boots,
            Ok(Reply::Refused(refused)) => return failed(session, CallError::Refused(refused)),
            Ok(_) => return failed(session, CallError::Unexpected),
            Err(error) => return failed(session, error),
        };
        if booted.replace(boots) != Some(boots) {
            last = None;
        }
        // From the last one on, which is another's or is not there where a boot was not counted.
        let mut events = match gate.log(last.map_or(0, |last| last.number), give_up).await {
            Ok(events) => events,
            Err(error) => return failed(session, error),
        };
        match (last, events.first()) {
            (Some(before), Some(first)) if is_same(&before, first) => last = Some(events.remove(0)),
            (None, _) => {}
            (Some(last), Some(first)) if first.number > last.number => {} // what is between was overwritten
            (Some(_), _) => {
                last = None;
                continue;
            }
        }
        for event in &events {
            if session.json {
                output::print_json(&EventJson::from(event))?;
            } else {
                output::print(line(event))?;
            }
            last = Some(*event);
        }
        sleep(every.into()).await;
        if super::watch::is_closed(&std::io::stdout()) {
            return Ok(Outcome::Yes);
        }
        asked = clock::now();
    }
}

/// Whether an event is one from before, of the same boot: as it was, or the same refusal again, which is counted in it.
fn is_same(before: &Event, now: &Event) -> bool {
    match (before.what, now.what) {
        (What::Refused { reason, times }, What::Refused { reason: again, times: all }) => {
            let same = (before.number, before.channel, reason) == (now.number, now.channel, again);
            same && before.at <= now.at && times <= all
        }
        _ => before == now,
    }
}

fn failed(session: &Session, error: CallError) -> Result<Outcome, Failure> {
    match error {
        CallError::Refused(refused) => answer::refused(session.json, None, &Told::Log, refused, None),
        error => Err(session.failure(error, None)),
    }
}
