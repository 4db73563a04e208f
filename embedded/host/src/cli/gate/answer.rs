//! What a gate did, or why it refused.

use super::super::output::{self, Failure, Outcome, Table, has, spends};
use super::status::values as shown;
use fencegate::{Duration, Epoch, FenceRecord, HolderId, Limits};
use fencegate_host::Done;
use fencegate_wire::{MAX_OUTPUTS, Reason, Refused, Values};
use serde::Serialize;

/// What the gate was told, and in whose name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Status,
    Log,
    Raise(HolderId),
    Drive(HolderId, Values),
    Release(HolderId),
    Acquire(HolderId, Duration),
    Renew(HolderId),
    Epoch,
    Rearm,
    Provision,
}

impl Told {
    pub(super) const fn holder(&self) -> Option<HolderId> {
        match self {
            Self::Raise(holder)
            | Self::Drive(holder, _)
            | Self::Release(holder)
            | Self::Acquire(holder, _)
            | Self::Renew(holder) => Some(*holder),
            Self::Status | Self::Log | Self::Epoch | Self::Rearm | Self::Provision => None,
        }
    }
}

#[derive(Serialize)]
struct DoneJson {
    done: bool,
    channel: u8,
    epoch: Epoch,
    token: u64,
    holder: Option<HolderId>,
    #[serde(rename = "window_left_us", skip_serializing_if = "Option::is_none")]
    window_left: Option<Duration>,
    #[serde(rename = "ttl_us", skip_serializing_if = "Option::is_none")]
    ttl: Option<Duration>,
}

#[derive(Serialize)]
struct RefusedJson {
    done: bool,
    reason: &'static str,
    epoch: Option<Epoch>,
    token: Option<u64>,
    holder: Option<HolderId>,
    #[serde(rename = "wait_us", skip_serializing_if = "Option::is_none")]
    wait: Option<Duration>,
}

/// Prints what was done.
pub(super) fn done(
    json: bool,
    channel: u8,
    told: &Told,
    Done { record, window_left }: Done,
) -> Result<Outcome, Failure> {
    if json {
        let FenceRecord { epoch, token, holder, .. } = record;
        let window_left = matches!(told, Told::Drive(..)).then_some(window_left);
        let ttl = match told {
            Told::Acquire(_, ttl) => Some(*ttl),
            _ => None,
        };
        output::print_json(&DoneJson { done: true, channel, epoch, token, holder, window_left, ttl })?;
    } else {
        let stands = stands(&record);
        let what = match told {
            Told::Drive(_, values) if window_left.is_zero() => {
                format!("channel {channel} was set to {}; its window is over", shown(values))
            }
            Told::Drive(_, values) => {
                let (values, left) = (shown(values), has(window_left));
                format!("channel {channel} is set to {values} for another {left}; {stands}")
            }
            Told::Release(_) => format!("channel {channel} is safe; {stands}"),
            Told::Acquire(_, ttl) => {
                format!("channel {channel}: {stands}, for {} from when this was asked", has(*ttl))
            }
            Told::Renew(_) => format!("channel {channel}: {stands}, for its TTL from when this was asked"),
            Told::Rearm => format!("channel {channel} may be driven again; {stands}"),
            Told::Raise(_) | Told::Epoch | Told::Status | Told::Log | Told::Provision => {
                format!("channel {channel}: {stands}")
            }
        };
        output::print(Table::new(true, "done", what))?;
    }
    Ok(Outcome::Yes)
}

/// Prints why not, and what to do about it: what is `known` of this case, or what there is to say of the reason.
pub(super) fn refused(
    json: bool,
    channel: Option<u8>,
    told: &Told,
    Refused { reason, by, wait }: Refused,
    known: Option<String>,
) -> Result<Outcome, Failure> {
    if json {
        output::print_json(&RefusedJson {
            done: false,
            reason: reason.as_str(),
            epoch: by.map(|by| by.epoch),
            token: by.map(|by| by.token),
            holder: by.and_then(|by| by.holder),
            wait: (reason == Reason::Held).then_some(wait),
        })?;
    } else {
        let mut words = format!("{}.", reason.as_str());
        if let (Some(channel), Some(by), true) = (channel, by, is_about_stamps(reason)) {
            words = format!("{words} Channel {channel} {}.", has_seen(&by));
        }
        let mut table = Table::new(false, "refused", words);
        table.note(known.unwrap_or_else(|| match (reason, told.holder(), by) {
            // Since an epoch's first raise is still to come, it is the operator's epoch that beat the stamp.
            (Reason::Stale, Some(_), Some(FenceRecord { epoch, holder: None, .. })) => format!(
                "the operator has moved the channel to epoch {epoch}: acquire the lease anew, and pass the epoch that \
                 belongs to it (`--epoch {epoch}`)"
            ),
            (Reason::Held, ..) => format!(
                "the lease is over in {} at the latest if nobody renews it; a release ends it at once (its own holder \
                 renews it, `renew`)",
                spends(wait)
            ),
            _ => advice(reason, told),
        }));
        output::print(table)?;
    }
    Ok(Outcome::No)
}

/// How many values a channel takes, where another number was given.
pub(super) fn takes(channel: u8, takes: usize, given: usize) -> String {
    let outputs = if takes == 1 { "output" } else { "outputs" };
    let given = match given {
        1 => "1 was".to_owned(),
        many if many > MAX_OUTPUTS => format!("more than {MAX_OUTPUTS} were"),
        some => format!("{some} were"),
    };
    format!("channel {channel} has {takes} {outputs} and takes one value for each; {given} given")
}

/// Where a fence stands: `epoch 0 token 34, held by b`.
pub(super) fn stands(record: &FenceRecord) -> String {
    let FenceRecord { epoch, token, holder, released } = record;
    match holder {
        Some(holder) if *released => format!("epoch {epoch} token {token}, released by {holder}"),
        Some(holder) => format!("epoch {epoch} token {token}, held by {holder}"),
        None => format!("epoch {epoch}, tokens must exceed {token}"),
    }
}

fn has_seen(record: &FenceRecord) -> String {
    match record.holder {
        Some(_) => format!("has seen {}", stands(record)),
        None => format!("stands at {}", stands(record)),
    }
}

/// Whether the channel's stamp is why, or explains it.
const fn is_about_stamps(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Authority
            | Reason::Stale
            | Reason::WrongHolder
            | Reason::Released
            | Reason::Jump
            | Reason::Held
            | Reason::Storage
    )
}

/// What to do about a refusal.
fn advice(reason: Reason, told: &Told) -> String {
    let text = match (reason, told) {
        (Reason::BadChannel, _) => "the gate has no such channel; `status` lists those that it has",
        (Reason::Role, Told::Epoch | Told::Rearm | Told::Provision) => {
            "only the operator may: use the key file with the operator's key"
        }
        (Reason::Role, _) => {
            "this key only reads: use the holder's own key file, or the operator's, which has the root"
        }
        (Reason::Authority, Told::Acquire(..)) => {
            "the channel's tokens come from a coordinator outside: acquire the lease there"
        }
        (Reason::Authority, Told::Renew(_)) => {
            "the channel has not granted this stamp, or its tokens come from a coordinator outside: renew it there"
        }
        (Reason::Authority, _) => "the channel grants its own leases: only a stamp that it granted is taken there",
        (Reason::Range, Told::Acquire(..)) => "a TTL is at most the longest window that the gate was provisioned with",
        (Reason::Range, Told::Drive(..)) => {
            "each output takes one value, within the range that it was provisioned with; `status` shows the outputs"
        }
        (Reason::Range, Told::Provision) => {
            "the board has not so many channels or outputs, or an epoch leaps further than `epoch_jump`, or its firmware does \
             not know what is asked of it"
        }
        (Reason::Range, Told::Epoch) => "a floor is below 2^63 - 1: no token could follow on it",
        (Reason::Range, _) => "the gate's firmware does not know what is asked of it: is it an older one?",
        (Reason::NotProvisioned, _) => "the gate has no keys and no channels yet: provision it",
        (Reason::Storage, Told::Epoch | Told::Provision) => {
            "nothing can be stored: the flash is worn out or damaged; replace the gate"
        }
        (Reason::Storage, _) => {
            "what the channel had stored is lost: only an epoch above any ever used helps (`epoch --set N`)"
        }
        (Reason::Stale, Told::Epoch) => "an epoch only goes up: set a higher one",
        (Reason::Stale, _) => "somebody holds a newer lease: stop, and come back with the token of a new lease",
        (Reason::WrongHolder, _) => {
            "one token was given to two holders: stop, and find out which of them has the lease"
        }
        (Reason::Released, _) => "a stamp that was given back does not return: come back with the token of a new lease",
        (Reason::Jump, Told::Epoch) => {
            return format!(
                "an epoch rises by at most {} at once, unless the gate was provisioned otherwise",
                Limits::EPOCH_JUMP
            );
        }
        (Reason::Jump, _) => {
            "no honest stamp leaps so far: check the token and the epoch; only the operator moves an epoch (`epoch`)"
        }
        (Reason::Replay, _) => {
            "another request with this stamp overtook it, or it was under way too long: try again if the lease holds"
        }
        (Reason::Expired, Told::Renew(_)) => "the lease is over: acquire a new one",
        (Reason::Expired, _) => {
            "nothing is left of the lease's window once the gate's own allowance is off: renew first"
        }
        (Reason::Fault, Told::Rearm) => "what made the fault is still there: `status` says which it is",
        (Reason::Fault, _) => "the outputs stay safe until the fault is cured: `status` says which it is",
        (Reason::Held, _) => "somebody holds the lease: wait until it is released or over",
        (Reason::Rate, _) => "the gate was told to change too often: wait, and try again (`release` lets go at once)",
        (Reason::Busy, Told::Provision) => {
            "a gate is provisioned again only while nothing is driven: press the stop first, and try again"
        }
        (Reason::Busy, _) => "the gate may not store anything at the moment: try again",
        (Reason::Presence, _) => {
            "a gate is provisioned again only while somebody is present at it: hold the board's presence input, and try again"
        }
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_in_words() {
        let mut record = FenceRecord::floor(Epoch(1), 5);
        assert_eq!(has_seen(&record), "stands at epoch 1, tokens must exceed 5");
        record.holder = HolderId::new("b").ok();
        assert_eq!(has_seen(&record), "has seen epoch 1 token 5, held by b");
        record.released = true;
        assert_eq!(has_seen(&record), "has seen epoch 1 token 5, released by b");
    }
}
