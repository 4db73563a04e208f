//! What comes out of the gate: nothing, an answer, or a change that waits for its proof.

use crate::entry::Entry;
use crate::latched::Latched;
use fencegate::{Deadline, EpochRaise, FenceRecord, GrantEpoch, GrantRecord, GrantRelease, Granting, Raise, Release};
use fencegate_wire::{Challenge, ChannelConfig, Frame, GateConfig, Header, OutputConfig, Tag, Values};

/// What to do after a frame.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Nothing: no answer.
    Silent,
    /// Put this onto the line.
    Answer(Frame),
    /// Store [`Pending::entry`], then come back with what was read back.
    Store(Pending),
    /// Put this onto the line, then restart: the gate is another from now on, or its store failed while it became one.
    Restart(Frame),
}

/// A change that is decided and waits for its proof.
#[derive(Debug)]
pub struct Pending {
    pub(crate) change: Change,
    pub(crate) header: Header,
    pub(crate) tag: Tag,
    pub(crate) challenge: Challenge,
}

/// What is to change.
#[derive(Debug)]
pub(crate) enum Change {
    /// A channel's mark.
    Mark(u8, Mark),
    /// A channel is to be armed again, and this is what is latched then.
    Rearm(u8, Latched),
    /// What an output is to be.
    Output(u8, OutputConfig),
    /// What a channel is to be.
    Channel(u8, ChannelConfig),
    /// The end of a provisioning, with the numbers of channels and outputs.
    Gate(GateConfig, u8, u8),
}

/// How a channel's mark is to change.
#[derive(Debug)]
pub(crate) enum Mark {
    /// A higher stamp, and what it wants to drive.
    Raise(Raise, Option<Drive>),
    /// A stamp given back.
    Release(Release),
    /// The operator's epoch.
    Epoch(EpochRaise),
    /// The first record after storage was lost.
    Restore(FenceRecord),
    /// A lease of the channel's own authority.
    Grant(Granting),
    /// Such a lease given back.
    GrantRelease(GrantRelease),
    /// The operator's epoch on a channel that is its own authority.
    GrantEpoch(GrantEpoch),
}

/// A drive that has passed every station but the last: the time, once more.
#[derive(Debug)]
pub(crate) struct Drive {
    pub(crate) deadline: Deadline,
    pub(crate) values: Values,
}

impl Pending {
    /// What to store.
    pub fn entry(&self) -> Entry {
        match &self.change {
            Change::Mark(channel, mark) => Entry::Mark { channel: *channel, mark: mark.record() },
            Change::Rearm(_, latched) => Entry::Latched(*latched),
            Change::Output(output, config) => Entry::Output { output: *output, config: config.clone() },
            Change::Channel(channel, config) => Entry::Channel { channel: *channel, config: config.clone() },
            Change::Gate(config, channels, outputs) => {
                Entry::Gate { config: config.clone(), channels: *channels, outputs: *outputs }
            }
        }
    }
}

impl Mark {
    const fn record(&self) -> GrantRecord {
        let fence = match self {
            Self::Raise(raise, _) => raise.record(),
            Self::Release(release) => release.record(),
            Self::Epoch(epoch) => epoch.record(),
            Self::Restore(record) => *record,
            Self::Grant(granting) => return granting.record(),
            Self::GrantRelease(release) => return release.record(),
            Self::GrantEpoch(epoch) => return epoch.record(),
        };
        no_lease(fence)
    }
}

/// The mark of a channel whose leases are another's to count.
pub(crate) const fn no_lease(fence: FenceRecord) -> GrantRecord {
    GrantRecord { mark: fence, ttl: fencegate::Duration::ZERO }
}
