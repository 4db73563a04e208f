//! What comes out of the gate: nothing, an answer, or a change that waits for its proof.

use fencegate::{Deadline, EpochRaise, FenceRecord, Raise, Release};
use fencegate_wire::{Challenge, Frame, Header, Provisioning, Tag, Values};

/// What to do after a frame.
#[derive(Debug)]
#[must_use]
#[expect(clippy::large_enum_variant, reason = "without a heap there is nothing to box it in")]
pub enum Step {
    /// Nothing: no answer.
    Silent,
    /// Put this onto the line.
    Answer(Frame),
    /// Store [`Pending::record`], then come back with what was read back.
    Store(Pending),
    /// Store this as what the gate is from now on, then restart; the frame is the answer once it is stored.
    Provision(Provisioning, Frame),
}

/// A change that is decided and waits for its proof.
#[derive(Debug)]
pub struct Pending {
    pub(crate) channel: u8,
    pub(crate) change: Change,
    pub(crate) header: Header,
    pub(crate) tag: Tag,
    pub(crate) challenge: Challenge,
}

/// What is to change.
#[derive(Debug)]
pub(crate) enum Change {
    /// A higher stamp, and what it wants to drive.
    Raise(Raise, Option<Drive>),
    /// A stamp given back.
    Release(Release),
    /// The operator's epoch.
    Epoch(EpochRaise),
    /// The first record after storage was lost.
    Restore(FenceRecord),
}

/// A drive that has passed every station but the last: the time, once more.
#[derive(Debug)]
pub(crate) struct Drive {
    pub(crate) deadline: Deadline,
    pub(crate) values: Values,
}

impl Pending {
    /// Which channel's record this is.
    pub const fn channel(&self) -> u8 {
        self.channel
    }

    /// What to store.
    pub const fn record(&self) -> FenceRecord {
        match &self.change {
            Change::Raise(raise, _) => raise.record(),
            Change::Release(release) => release.record(),
            Change::Epoch(epoch) => epoch.record(),
            Change::Restore(record) => *record,
        }
    }
}
