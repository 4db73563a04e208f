//! What a holder says: what to do next, why to stop, and why not to begin.

use super::Request;
use crate::{Duration, Instant, Stamp};
use core::fmt;

/// What to do next. [`Holder::poll`](super::Holder::poll) hands them out one at a time, until it only wants to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Output {
    /// Ask the coordinator for the lease. The timer of what it grants runs from now.
    SendAcquire(Request),
    /// Raise the fence at every resource, before anything else under this stamp; then say
    /// [`raised`](super::Holder::raised), or [`fenced`](super::Holder::fenced) where one refused.
    Raise(Stamp),
    /// Renew the lease. The timer of the renewed one runs from now.
    SendRenewal(Request, Stamp),
    /// Stop what you are doing; once it has stopped, say so ([`stopped`](super::Holder::stopped)).
    Cancel(Cause),
    /// Delete the lease at the coordinator if it still carries this stamp, and only then.
    SendRelease(Stamp),
    /// Nothing now. Call again at this instant at the latest, or with whatever happens before; `None`: only then.
    Wait(Option<Instant>),
}

/// Why work in hand must stop. It is final for that work: what is begun anew needs a new permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Cause {
    /// More than a third of the TTL has passed since the last answer. The lease still runs and is still renewed; after
    /// the next answer new work may begin.
    Unanswered,
    /// The window is over.
    Expired,
    /// The coordinator has answered a renewal with no.
    Refused,
    /// The coordinator has taken the lease back.
    Revoked,
    /// A resource has seen a higher stamp.
    Fenced,
    /// The worker has reported no progress: it hangs, and its lease is not renewed on its behalf.
    NoProgress,
    /// The lease has been held for as long as it may be held at a stretch.
    HeldLongest,
    /// The caller was asked to stop.
    Stopped,
    /// The coordinator has granted less than was asked for, and the plan does not fit that.
    ShorterTtl,
    /// The coordinator has granted a stamp that is not above the last one: it has revived the old lease, or its memory
    /// went back and the operator has not raised the epoch.
    NotNewer,
    /// The holder can no longer count on its own state.
    Fault(HolderFault),
}

/// Why a holder can no longer count on its own state. Only a new holder (a new instance) is a cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum HolderFault {
    /// The caller's clock showed an earlier time than before.
    ClockRanBackwards,
    /// A deadline lies past the end of the caller's clock.
    ClockEnded,
    /// There is no number left for a further request.
    NumbersEnded,
}

/// What is missing for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Denied {
    /// The lease.
    NoLease,
    /// The fence has not been raised to this lease's stamp.
    NotRaised,
    /// An acknowledgement: cancellation has tripped, and none has come since (or [`Output::Cancel`] waits to be polled).
    Tripped,
    /// The future: this lease is being given up, and nothing new begins under it.
    Ending,
    /// Time: the work would not end inside the window.
    Time {
        /// What is left of the window.
        #[cfg_attr(feature = "serde", serde(rename = "left_us"))]
        left: Duration,
    },
    /// The holder itself.
    Fault(HolderFault),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unanswered => "no answer for a third of the lease",
            Self::Expired => "the window is over",
            Self::Refused => "the coordinator refused to renew",
            Self::Revoked => "the coordinator took the lease back",
            Self::Fenced => "a resource has seen a higher stamp",
            Self::NoProgress => "no progress was reported",
            Self::HeldLongest => "the lease has been held for as long as it may be",
            Self::Stopped => "asked to stop",
            Self::ShorterTtl => "the coordinator granted a shorter lease than was planned with",
            Self::NotNewer => "the coordinator granted a stamp that is not above the last one",
            Self::Fault(fault) => return fault.fmt(f),
        })
    }
}

impl fmt::Display for HolderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClockRanBackwards => "the clock ran backwards: nothing timed by it can be trusted",
            Self::ClockEnded => "a deadline lies past the end of the clock",
            Self::NumbersEnded => "no number is left for a further request",
        })
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLease => "no lease is held",
            Self::NotRaised => "the fence has not been raised to this lease's stamp",
            Self::Tripped => "cancellation has tripped and no acknowledgement has come since",
            Self::Ending => "this lease is being given up",
            Self::Time { left } => {
                return write!(f, "the work does not end inside the window, which has {left:?} left");
            }
            Self::Fault(fault) => return fault.fmt(f),
        })
    }
}

impl core::error::Error for Denied {}
