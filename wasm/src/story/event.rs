//! What a story tells: one event after another, each with the instant, who it happens to, and a sentence.

use crate::output::Plain;
use fencegate::{Cause, FenceRecord, Refusal, Refused, Stamp};
use std::borrow::Cow;
use wasm_bindgen::JsValue;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// What kind of an event it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $name,)+
        }

        impl Kind {
            /// As the declarations have it.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)+];
        }
    };
}

kinds! {
    /// A worker asks for the lease.
    Asks = "asks",
    /// The coordinator's grant has reached the worker.
    Granted = "granted",
    /// The coordinator has said no.
    Refused = "refused",
    /// No answer that counts.
    Lost = "lost",
    /// A renewal leaves.
    Renews = "renews",
    /// The coordinator's acknowledgement has reached the worker.
    Renewed = "renewed",
    /// The fence is asked to rise, before anything else.
    Raises = "raises",
    /// The fence is raised and stored.
    Raised = "raised",
    /// A worker has its permit and prepares a write.
    Begins = "begins",
    /// A write leaves.
    Writes = "writes",
    /// A write took effect.
    Landed = "landed",
    /// A write took effect that a fence would have refused.
    Corrupted = "corrupted",
    /// The fence refused a write or a raise.
    Bounced = "bounced",
    /// A worker must stop what it is doing.
    Cancelled = "cancelled",
    /// A worker has written everything.
    Finished = "finished",
    /// A release leaves.
    Releases = "releases",
    /// The coordinator has deleted the lease.
    Released = "released",
    /// The lease has run out at the coordinator.
    Expired = "expired",
    /// A process stops in its tracks.
    Freezes = "freezes",
    /// A process goes on, and has not noticed.
    Wakes = "wakes",
    /// A worker hangs, while its renewals go on.
    Hangs = "hangs",
    /// A process is gone.
    Dies = "dies",
    /// A write is held back in the network.
    Held = "held",
    /// A worker is cut off from nodes of the coordinator.
    Parts = "parts",
    /// It reaches all of them again.
    Heals = "heals",
    /// The resource loses power.
    PowerCut = "power-cut",
    /// The resource boots from what it has stored.
    Boots = "boots",
    /// A replica that lags has become the coordinator.
    FailsOver = "fails-over",
    /// The coordinator is back from a backup.
    Restored = "restored",
    /// The operator has raised the epoch.
    Epoch = "epoch",
    /// The story is broken off, since it has become too long.
    BrokenOff = "broken-off",
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: u64,
    pub(crate) who: String,
    pub(crate) kind: Kind,
    pub(crate) words: Cow<'static, str>,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) text: Option<String>,
    pub(crate) by: Option<FenceRecord>,
}

impl Event {
    pub(crate) fn to_js(&self) -> JsValue {
        Plain::new()
            .whole("at_us", self.at)
            .text("who", &self.who)
            .text("kind", self.kind.name())
            .text("words", &self.words)
            .maybe("epoch", self.stamp.map(|s| u64::from(s.epoch.0)))
            .maybe("token", self.stamp.map(|s| s.token.get()))
            .set("text", self.text.as_deref().map_or(JsValue::NULL, JsValue::from))
            .set("by", self.by.map_or(JsValue::NULL, record))
            .done()
    }
}

/// Where a fence stands, as an object.
pub(crate) fn record(record: FenceRecord) -> JsValue {
    Plain::new()
        .whole("epoch", record.epoch.0.into())
        .whole("token", record.token)
        .set("holder", record.holder.map_or(JsValue::NULL, |holder| holder.to_string().into()))
        .done()
}

/// The comparison that a refusal comes from: `33 < 34`.
pub(crate) fn comparison(stamp: Stamp, refused: Refused) -> String {
    let sign = match refused.reason {
        Refusal::Stale if stamp.epoch == refused.by.epoch && stamp.token.get() == refused.by.token => "≤",
        Refusal::Stale => "<",
        Refusal::WrongHolder | Refusal::Released => "=",
        Refusal::Jump => "≫",
    };
    let why = match refused.reason {
        Refusal::Stale => "stale",
        Refusal::WrongHolder => "but another holds it",
        Refusal::Released => "but it was released",
        Refusal::Jump => "too far ahead",
    };
    if stamp.epoch == refused.by.epoch {
        format!("{} {sign} {}: {why}", stamp.token, refused.by.token)
    } else {
        // Two epochs: the numbers alone would say the opposite.
        format!(
            "epoch {} token {} {sign} epoch {} token {}: {why}",
            stamp.epoch, stamp.token, refused.by.epoch, refused.by.token
        )
    }
}

pub(crate) fn cancelled(cause: Cause) -> String {
    format!("must stop: {cause}")
}
