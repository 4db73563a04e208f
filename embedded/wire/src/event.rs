//! What a gate remembers of the last things that happened to it.

use crate::message::{Fault, Reason};
use fencegate::{Epoch, HolderId, Instant};
use serde::{Deserialize, Serialize};

/// The most events in one answer.
pub const MAX_EVENTS: usize = 3;

/// One thing that happened. A gate keeps the last few, in memory alone: a power cut forgets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Event {
    /// Its number, counted from the boot on.
    pub number: u32,
    /// When, on the gate's clock: since the boot.
    pub at: Instant,
    /// To which channel; `None` for the whole gate.
    pub channel: Option<u8>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum What {
    /// 0: the gate booted, for the so many-th time.
    Booted {
        /// Its boot counter.
        boots: u32,
    },
    /// 1: records were damaged in one copy and mended from the other.
    Mended {
        /// How many.
        records: u8,
    },
    /// 2: a fence was raised.
    Raised {
        /// To which token.
        token: u64,
        /// By whom.
        holder: HolderId,
    },
    /// 3: outputs that were safe are driven.
    Driven {
        /// Under which token.
        token: u64,
        /// By whom.
        holder: HolderId,
    },
    /// 4: a window is about to end.
    Warned,
    /// 5: a window has ended.
    Ended,
    /// 6: a stamp was released.
    Released {
        /// Which token.
        token: u64,
        /// By whom.
        holder: HolderId,
    },
    /// 7: the operator moved the epoch.
    Epoch {
        /// To which.
        epoch: Epoch,
    },
    /// 8: a lease was granted by the gate itself.
    Granted {
        /// Which token.
        token: u64,
        /// To whom.
        holder: HolderId,
    },
    /// 9: requests were refused, one after the other, for the same reason.
    Refused {
        /// Why.
        reason: Reason,
        /// How many.
        times: u16,
    },
    /// 10: a fault.
    Fault {
        /// Which.
        fault: Fault,
    },
    /// 11: the operator rearmed.
    Rearmed,
    /// 12: the gate was provisioned anew, and restarts.
    Provisioned,
}
