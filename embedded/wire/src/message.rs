//! The messages: what a host asks and what a gate answers.
//!
//! How they may evolve stands in `PROTOCOL.md`: numbers are never reused, variants and fields are only appended with
//! a new number, and what a reader does not know it refuses whole.

use crate::event::{Event, MAX_EVENTS};
use crate::provisioning::{ChannelConfig, GateConfig, OutputConfig};
use fencegate::{Duration, Epoch, FenceRecord, Refusal, Token};
use serde::{Deserialize, Serialize};

/// The most channels that a gate has.
pub const MAX_CHANNELS: usize = 8;
/// The most outputs that a channel has.
pub const MAX_OUTPUTS: usize = 8;

/// One value an output of a channel, applied together. There is room for one too many: the gate refuses that as it does
/// any other count that is not the channel's.
pub type Values = heapless::Vec<i32, { MAX_OUTPUTS + 1 }>;

/// What makes a request fresh: the gate's boot, and its clock in microseconds when it issued this. Used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Challenge {
    /// The gate's boot counter.
    pub boot: u32,
    /// The gate's clock when it issued the challenge, in microseconds; no two challenges of a boot share one.
    pub tick: u64,
}

/// What is sealed towards the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The challenge that this request answers; everything that changes state carries one.
    pub challenge: Option<Challenge>,
    /// The request.
    pub request: Request,
}

/// What a host asks. The holder of a stamp is the one whose key seals the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Request {
    /// 0: a challenge, and nothing else.
    Challenge,
    /// 1: the gate's state.
    Status,
    /// 2: one channel's state.
    Channel {
        /// Which.
        channel: u8,
    },
    /// 3: how often each reason was given.
    Counters,
    /// 4 (holder): raise the fence of a channel to a stamp of the sender's.
    Raise {
        /// Which.
        channel: u8,
        /// The operator's epoch at the acquisition.
        epoch: Epoch,
        /// The coordinator's token.
        token: Token,
    },
    /// 5 (holder): drive a channel's outputs, raising its fence first where the stamp is higher.
    Drive {
        /// Which.
        channel: u8,
        /// The operator's epoch at the acquisition.
        epoch: Epoch,
        /// The coordinator's token.
        token: Token,
        /// w: what was left of the sender's window when it received the challenge.
        window: Duration,
        /// One value an output.
        values: Values,
    },
    /// 6 (holder): let go of the outputs and give the stamp back for good.
    Release {
        /// Which.
        channel: u8,
        /// The operator's epoch at the acquisition.
        epoch: Epoch,
        /// The coordinator's token.
        token: Token,
    },
    /// 7 (operator): move a channel's epoch.
    Epoch {
        /// Which.
        channel: u8,
        /// The new epoch.
        epoch: Epoch,
        /// The floor that its tokens must exceed.
        floor: u64,
    },
    /// 8 (operator): let a channel be driven again after a fault, or after a window's end where so provisioned.
    Rearm {
        /// Which.
        channel: u8,
    },
    /// 9 (holder): a lease on a channel that is its own authority.
    Acquire {
        /// Which.
        channel: u8,
        /// T: for how long.
        ttl: Duration,
    },
    /// 10 (holder): the lease anew, for its TTL from now.
    Renew {
        /// Which.
        channel: u8,
        /// The lease's epoch.
        epoch: Epoch,
        /// The lease's token.
        token: Token,
    },
    /// 11: the last events, from this number on.
    Log {
        /// The first that is wanted.
        from: u32,
    },
    /// 12 (operator): what an output is to be once [`Request::Provision`] says so.
    SetOutput {
        /// Which, counted over the whole gate.
        output: u8,
        /// What it is to be.
        config: OutputConfig,
    },
    /// 13 (operator): what a channel is to be once [`Request::Provision`] says so.
    SetChannel {
        /// Which.
        channel: u8,
        /// What it is to be.
        config: ChannelConfig,
    },
    /// 14 (operator; the factory key on a board that was never a gate): be the gate that has been described.
    Provision {
        /// What it is as a whole.
        config: GateConfig,
        /// How many channels were described.
        channels: u8,
        /// How many outputs were described.
        outputs: u8,
    },
}

impl Request {
    /// Whether it changes state, and so must carry a challenge.
    pub const fn changes(&self) -> bool {
        !matches!(self, Self::Challenge | Self::Status | Self::Channel { .. } | Self::Counters | Self::Log { .. })
    }

    /// The channel that it is about, if it is about one that exists already.
    pub const fn channel(&self) -> Option<u8> {
        match self {
            Self::Challenge
            | Self::Status
            | Self::Counters
            | Self::Log { .. }
            | Self::SetOutput { .. }
            | Self::SetChannel { .. }
            | Self::Provision { .. } => None,
            Self::Channel { channel }
            | Self::Raise { channel, .. }
            | Self::Drive { channel, .. }
            | Self::Release { channel, .. }
            | Self::Epoch { channel, .. }
            | Self::Rearm { channel }
            | Self::Acquire { channel, .. }
            | Self::Renew { channel, .. } => Some(*channel),
        }
    }
}

/// What is sealed towards the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// A new challenge for the next request.
    pub challenge: Challenge,
    /// The reply.
    pub reply: Reply,
}

/// What a gate answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Reply {
    /// 0: only the challenge was asked for.
    Challenge,
    /// 1: the gate's state.
    Status(GateStatus),
    /// 2: a channel's state.
    Channel(ChannelStatus),
    /// 3: how often each reason was given.
    Counters(Counters),
    /// 4: done; where the channel's fence stands now, whose lease it is on a channel that is its own authority, and what
    /// is left of its window.
    Done {
        /// The fence.
        record: FenceRecord,
        /// What is left of the window on the gate's clock; zero unless driven.
        window_left: Duration,
    },
    /// 5: refused.
    Refused(Refused),
    /// 6: this part of a provisioning is stored; after [`Request::Provision`] the gate restarts as the one it now is.
    Provisioned,
    /// 7: events in their order; none where there are none from the number asked for on.
    Log(heapless::Vec<Event, MAX_EVENTS>),
}

/// A version of the gate's firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Version(pub u8, pub u8, pub u8);

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A gate's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GateStatus {
    /// The firmware's version.
    pub firmware: Version,
    /// How often the gate has booted.
    pub boots: u32,
    /// How many channels it has.
    pub channels: u8,
    /// How many records of this boot's had to be mended from their other copy.
    pub mended: u8,
    /// What keeps the whole gate in its safe state.
    pub fault: Option<Fault>,
}

/// What keeps a gate or a channel in its safe state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Fault {
    /// 0: the clock ran backwards; only a restart cures it.
    Clock,
    /// 1: the storage was lost or cannot be written; only an operator's epoch cures it.
    Storage,
    /// 2: the inhibit input is open, or was and nobody has rearmed.
    Inhibited,
    /// 3: an output's contact did not follow it.
    Feedback,
    /// 4: the window ended, and this channel was provisioned to wait for a rearm after that.
    Expired,
}

impl Fault {
    /// The fault in words, and its cure.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "the gate's clock ran backwards; restart it",
            Self::Storage => "the storage was lost or cannot be written; set an epoch above any ever used",
            Self::Inhibited => "the inhibit input is or was open; close it, then rearm each channel",
            Self::Feedback => "a contact did not follow its output; see to the relay, then rearm",
            Self::Expired => "the window ended; rearm, as this channel was provisioned",
        }
    }
}

/// Whether a channel's outputs are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ChannelState {
    /// 0: every output has its safe value.
    Safe,
    /// 1: a holder's window is running, or its outputs are still on their way to their safe values.
    Driven,
    /// 2: safe, and nothing drives it before the fault is cured.
    Fault,
}

/// Why a channel was last let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Cause {
    /// 0: nothing has driven it since the gate booted.
    Boot,
    /// 1: its window ended.
    Window,
    /// 2: a higher stamp raised its fence.
    Raised,
    /// 3: its holder released it.
    Released,
    /// 4: the operator moved its epoch.
    Epoch,
    /// 5: a fault.
    Fault,
}

/// A channel's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// Where its fence stands.
    pub record: FenceRecord,
    /// Whether it is driven.
    pub state: ChannelState,
    /// What its outputs are set to.
    pub values: Values,
    /// What is left of the window on the gate's clock; zero unless driven.
    pub window_left: Duration,
    /// Why it was last let go of.
    pub cause: Cause,
    /// Its own fault, or the gate's.
    pub fault: Option<Fault>,
}

/// A refusal: why, and the stamp that beat the request's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Refused {
    /// Why.
    pub reason: Reason,
    /// Where the channel's fence stands; `None` where there is no such channel.
    pub by: Option<FenceRecord>,
    /// For how long at the most the lease stays held, where that is the reason, if nobody renews it; else zero.
    pub wait: Duration,
}

/// Why a gate refuses, in the order in which the reasons are tried: the first that applies is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Reason {
    /// 0: there is no such channel.
    BadChannel,
    /// 1: not with this key.
    Role,
    /// 2: this channel's tokens come from elsewhere.
    Authority,
    /// 3: a value, the number of values, or a TTL is out of range.
    Range,
    /// 4: nobody has provisioned the gate.
    NotProvisioned,
    /// 5: the channel's storage was lost or cannot be trusted.
    Storage,
    /// 6: lower than the fence.
    Stale,
    /// 7: the fence's own stamp in another holder's hands.
    WrongHolder,
    /// 8: the fence's own stamp after its release.
    Released,
    /// 9: further above the fence than any honest stamp leaps.
    Jump,
    /// 10: a challenge of another boot, already used, or at least as old as the longest window.
    Replay,
    /// 11: nothing of the window is left.
    Expired,
    /// 12: a fault, or an inhibit, that nobody has cured yet.
    Fault,
    /// 13: somebody holds the lease.
    Held,
    /// 14: the raise budget is spent, or an output's least on or off time has not passed.
    Rate,
    /// 15: storing now could delay another channel's dead man's switch; ask again.
    Busy,
    /// 16: somebody has to stand beside the gate.
    Presence,
}

impl Reason {
    /// Every reason, in order.
    pub const ALL: [Self; 17] = [
        Self::BadChannel,
        Self::Role,
        Self::Authority,
        Self::Range,
        Self::NotProvisioned,
        Self::Storage,
        Self::Stale,
        Self::WrongHolder,
        Self::Released,
        Self::Jump,
        Self::Replay,
        Self::Expired,
        Self::Fault,
        Self::Held,
        Self::Rate,
        Self::Busy,
        Self::Presence,
    ];

    /// The contract's name of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadChannel => "bad_channel",
            Self::Role => "role",
            Self::Authority => "authority",
            Self::Range => "range",
            Self::NotProvisioned => "not_provisioned",
            Self::Storage => "storage",
            Self::Stale => "stale",
            Self::WrongHolder => "wrong_holder",
            Self::Released => "released",
            Self::Jump => "jump",
            Self::Replay => "replay",
            Self::Expired => "expired",
            Self::Fault => "fault",
            Self::Held => "held",
            Self::Rate => "rate",
            Self::Busy => "busy",
            Self::Presence => "presence",
        }
    }
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Stale => Self::Stale,
            Refusal::WrongHolder => Self::WrongHolder,
            Refusal::Released => Self::Released,
            Refusal::Jump => Self::Jump,
        }
    }
}

/// How often a gate has given each reason since it booted, and how often it had to stay silent. A counter stays at
/// its top rather than begin again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Counters {
    /// One a reason, in the order of [`Reason::ALL`].
    pub reasons: [u32; Reason::ALL.len()],
    /// What was no frame; it got no answer.
    pub noise: u32,
    /// Frames whose authenticator did not hold; they got no answer.
    pub forged: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_and_named_as_they_are_ordered() {
        for (number, reason) in (0_u8..).zip(Reason::ALL) {
            assert_eq!(postcard::to_slice(&reason, &mut [0; 8]).unwrap(), [number]);
            assert_eq!(format!("{reason:?}").to_lowercase(), reason.as_str().replace('_', ""));
        }
    }

    #[test]
    fn requests_keep_their_numbers() {
        let (channel, epoch, token, ttl) = (0, Epoch(0), Token::new(1).unwrap(), Duration::ZERO);
        let drive = Request::Drive { channel, epoch, token, window: Duration::ZERO, values: Values::new() };
        let whole = crate::provisioning::tests::example();
        let (config, output) = (whole.channels[0].clone(), whole.outputs[0].clone());
        for (number, request) in [
            (0, Request::Challenge),
            (1, Request::Status),
            (2, Request::Channel { channel }),
            (3, Request::Counters),
            (4, Request::Raise { channel, epoch, token }),
            (5, drive),
            (6, Request::Release { channel, epoch, token }),
            (7, Request::Epoch { channel, epoch, floor: 0 }),
            (8, Request::Rearm { channel }),
            (9, Request::Acquire { channel, ttl }),
            (10, Request::Renew { channel, epoch, token }),
            (11, Request::Log { from: 0 }),
            (12, Request::SetOutput { output: 0, config: output }),
            (13, Request::SetChannel { channel, config }),
            (14, Request::Provision { config: whole.gate, channels: 1, outputs: 1 }),
        ] {
            assert_eq!(postcard::to_slice(&request, &mut [0; 256]).unwrap()[0], number, "{request:?}");
            assert_eq!(request.changes(), number > 3 && number != 11);
        }
    }

    #[test]
    fn token_zero_cannot_be_read() {
        let raise = [4, 0, 0, 0];
        assert!(postcard::from_bytes::<Request>(&raise).is_err());
    }
}
