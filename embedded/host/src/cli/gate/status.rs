//! A gate's state: for people a table, for programs one object.

use super::super::output::{self, Failure, Outcome, Table, has};
use super::Session;
use super::answer::{self, Told, stands};
use fencegate::{Deadline, Duration, Epoch, HolderId};
use fencegate_host::{CallError, Status};
use fencegate_wire::{ChannelState, ChannelStatus, Counters, Fault, Reason, Values};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Asks for a gate's state and prints it.
pub(super) async fn run(session: &Session, give_up: Deadline) -> Result<Outcome, Failure> {
    let mut gate = session.connect(session.keys.reader(), give_up).await?;
    match gate.status(give_up).await {
        Ok(status) if session.json => output::print_json(&StatusJson::from(&status))?,
        Ok(status) => output::print(table(&status))?,
        Err(CallError::Refused(refused)) => return answer::refused(session.json, None, Told::Status, refused),
        Err(error) => return Err(session.failure(error, None)),
    }
    Ok(Outcome::Yes)
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
    pub(super) fn new(channel: u8, ChannelStatus { record, state, values, window_left }: &'a ChannelStatus) -> Self {
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
    }
}

/// Values as they were typed: `1,0`.
pub(super) fn values(values: &Values) -> String {
    values.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}

pub(super) const fn state(state: ChannelState) -> &'static str {
    match state {
        ChannelState::Safe => "safe",
        ChannelState::Driven => "driven",
        ChannelState::Fault => "fault",
    }
}

/// A gate's state for a person.
pub(super) fn table(status: &Status) -> Table {
    let Status { gate, firmware, boots, channels, counters, fault } = status;
    let word = if fault.is_some() { "fault" } else { "ready" };
    let mut table = Table::new(fault.is_none(), word, format_args!("gate {gate}, firmware {firmware}, boot {boots}"));
    for (number, channel) in channels.iter().enumerate() {
        let mut meaning = stands(&channel.record);
        if channel.state == ChannelState::Driven {
            meaning = format!("{meaning}, {} left", has(channel.window_left));
        }
        let what = format!("{:6} {}", state(channel.state), values(&channel.values));
        table.row(&format!("channel {number}"), what, meaning);
    }
    let counted: Vec<_> = counts(counters).filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    if !counted.is_empty() {
        table.row("turned away", "", counted.join(", "));
    }
    if let Some(fault) = fault {
        table.note(fault.as_str());
    }
    table
}
