//! A gate's state: for people a table, for programs one object.

use super::super::output::{self, Failure, Outcome, Table, has};
use super::Session;
use super::answer::{self, Told, stands};
use fencegate::{Deadline, Duration, Epoch, HolderId};
use fencegate_host::{CallError, GateClient, Line, Status, factory};
use fencegate_wire::{
    Cause, ChannelState, ChannelStatus, Counters, Fault, GateStatus, Operation, Reason, Reply, Request, Values,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Asks for a gate's state and prints it.
pub(super) async fn run(session: &Session) -> Result<Outcome, Failure> {
    let give_up = session.give_up(session.started)?;
    let mut gate = session.connect(session.keys.reader(), give_up).await?;
    // What is kept of the time is for the question why there is no answer.
    let kept = Duration::from_micros(session.timeout.as_micros() / 8);
    let patience = session.timeout.checked_sub(kept).and_then(|most| Deadline::after(session.started, most));
    match gate.status(patience.unwrap_or(give_up)).await {
        Ok(status) if session.json => output::print_json(&StatusJson::from(&status))?,
        Ok(status) => output::print(table(&status, Seen::Now))?,
        Err(CallError::Refused(refused)) => return answer::refused(session.json, None, &Told::Status, refused, None),
        Err(CallError::NoAnswer) => return Err(silent(session, gate.into_line(), give_up).await),
        Err(error) => return Err(session.failure(error, None)),
    }
    Ok(Outcome::Yes)
}

/// Why there is no answer, as far as the board says so: one that was never provisioned, and one whose provisioning is
/// lost, answer to the factory key alone.
async fn silent(session: &Session, line: impl Line, give_up: Deadline) -> Failure {
    let Ok(mut board) = GateClient::new(line, factory(session.keys.domain)) else {
        return session.failure(CallError::NoAnswer, None);
    };
    let why = match board.call(Operation::new(Request::Status), give_up).await {
        Ok(Reply::Status(GateStatus { fault: Some(Fault::Storage), .. })) => {
            "was a gate, and its provisioning is lost: erase its flash, then `replace`"
        }
        Ok(Reply::Status(_)) => "was never provisioned: `provision` or `replace` makes it a gate",
        _ => return session.failure(CallError::NoAnswer, None),
    };
    Failure::new(3, format_args!("no answer from {} to this key: the board {why}", session.port))
}

#[derive(serde::Serialize)]
struct StatusJson<'a> {
    gate: String,
    firmware: String,
    boots: u32,
    channels: Vec<ChannelJson<'a>>,
    counters: CountersJson,
    fault: Option<&'static str>,
}

impl<'a> From<&'a Status> for StatusJson<'a> {
    fn from(status: &'a Status) -> Self {
        Self {
            gate: status.gate.to_string(),
            firmware: status.firmware.to_string(),
            boots: status.boots,
            channels: (0..).zip(&status.channels).map(|(number, channel)| ChannelJson::new(number, channel)).collect(),
            counters: CountersJson(status.counters),
            fault: status.fault.map(fault_name),
        }
    }
}

/// A channel as `status` and `watch` show it.
#[derive(serde::Serialize)]
pub(super) struct ChannelJson<'a> {
    channel: u8,
    epoch: Epoch,
    token: u64,
    holder: Option<HolderId>,
    state: ChannelState,
    values: &'a Values,
    #[serde(rename = "window_left_us")]
    window_left: Duration,
}

impl<'a> ChannelJson<'a> {
    pub(super) fn new(
        channel: u8,
        ChannelStatus { record, state, values, window_left, .. }: &'a ChannelStatus,
    ) -> Self {
        Self {
            channel,
            epoch: record.epoch,
            token: record.token,
            holder: record.holder,
            state: *state,
            values,
            window_left: *window_left,
        }
    }
}

/// Every counter by name.
pub(super) struct CountersJson(pub(super) Counters);

impl Serialize for CountersJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, n) in counts(&self.0) {
            map.serialize_entry(name, &n)?;
        }
        map.end()
    }
}

/// The counters with their names: the reasons in their order, then what got no answer.
pub(super) fn counts(counters: &Counters) -> impl Iterator<Item = (&'static str, u32)> {
    let silent = [("noise", counters.noise), ("forged", counters.forged)];
    Reason::ALL.map(Reason::as_str).into_iter().zip(counters.reasons).chain(silent)
}

/// A fault's name for programs.
pub(super) const fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Clock => "clock",
        Fault::Storage => "storage",
        Fault::Inhibited => "inhibited",
        Fault::Feedback => "feedback",
        Fault::Expired => "expired",
    }
}

/// What else there is to say of a channel: its fault, or why it was last let go of.
pub(super) fn why(channel: &ChannelStatus) -> Option<String> {
    let cause = match (channel.fault, channel.state, channel.cause) {
        (Some(fault), ..) => return Some(format!("fault {}", fault_name(fault))),
        (None, ChannelState::Driven, _) => return None,
        (None, _, Cause::Boot) => "not driven since the boot",
        (None, _, Cause::Window) => "its window ended",
        (None, _, Cause::Raised) => "let go of for a higher stamp",
        (None, _, Cause::Released) => "let go of by its holder",
        (None, _, Cause::Epoch) => "let go of for a new epoch",
        (None, _, Cause::Fault) => "let go of at a fault",
    };
    Some(cause.to_owned())
}

/// Values as they were typed: `1,0`.
pub(super) fn values(values: &Values) -> String {
    values.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}

/// A state and its values for a person: an output that is held at 0 is not what one calls driven.
pub(super) fn state(channel: &ChannelStatus) -> (&'static str, String) {
    let word = match channel.state {
        ChannelState::Safe => "safe",
        ChannelState::Driven if channel.values.iter().all(|value| *value == 0) => "set to",
        ChannelState::Driven => "driven",
        ChannelState::Fault => "fault",
    };
    (word, values(&channel.values))
}

/// When a state was so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It has just been asked for.
    Now,
    /// The gate has not answered since, for this long.
    Before(Duration),
}

/// A gate's state for a person. One that is of before is not shown as if it were so now.
pub(super) fn table(status: &Status, seen: Seen) -> Table {
    let Status { gate, firmware, boots, mended, channels, counters, fault } = status;
    let healthy = fault.is_none() && channels.iter().all(|channel| channel.fault.is_none());
    let mut table = match seen {
        Seen::Now => {
            let word = if healthy { "ready" } else { "fault" };
            Table::new(healthy, word, format_args!("gate {gate}, firmware {firmware}, boot {boots}"))
        }
        Seen::Before(silent) => {
            let s = silent.as_micros() / 1_000_000;
            Table::new(false, &format!("no answer for {s} s"), format_args!("gate {gate}; so it was before that"))
        }
    };
    for (number, channel) in channels.iter().enumerate() {
        let (word, values) = state(channel);
        let what = match seen {
            Seen::Now => format!("{word:6} {values}"),
            Seen::Before(_) => format!("was {word} {values}"),
        };
        let mut meaning = stands(&channel.record);
        if channel.state == ChannelState::Driven && seen == Seen::Now {
            meaning = format!("{meaning}, {} left", has(channel.window_left));
        }
        if let Some(why) = why(channel) {
            meaning = format!("{meaning}; {why}");
        }
        table.row(&format!("channel {number}"), what, meaning);
    }
    let counted: Vec<_> = counts(counters).filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    if !counted.is_empty() {
        table.row("turned away", "", counted.join(", "));
    }
    let mut told = Vec::new();
    for fault in fault.iter().chain(channels.iter().filter_map(|channel| channel.fault.as_ref())) {
        if !told.contains(fault) {
            told.push(*fault);
            table.note(format_args!("{}: {}", fault_name(*fault), fault.as_str()));
        }
    }
    if *mended > 0 {
        let records = if *mended == 1 { "record was" } else { "records were" };
        table.note(format_args!(
            "{mended} {records} mended from the other copy at this boot: a power cut does that, and so does flash that wears out"
        ));
    }
    table
}
