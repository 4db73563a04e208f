//! One channel: what one stamp governs.

use fencegate::{Act, Fence, FenceRecord, Instant};
use fencegate_wire::{Challenge, ChannelConfig, ChannelState, ChannelStatus, Fault, Reason, Tag, Values};

use crate::memory::Remembered;

/// What a channel's outputs are doing. Only an [`Act`] drives them, and an act needs a stored stamp and an open window.
#[derive(Debug)]
enum Drive {
    /// Every output has its safe value.
    Safe,
    /// The holder's values, until the act's deadline.
    Driven { act: Act, values: Values },
}

/// The last request that was done under the fence's stamp.
#[derive(Clone, Copy, Debug)]
struct Used {
    /// `None` where the fence it was done under is lost.
    tag: Option<Tag>,
    challenge: Challenge,
}

/// One channel of a gate.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) config: ChannelConfig,
    fence: Option<Fence>,
    /// Where a fence that is lost was last seen; it stood there or higher.
    seen: FenceRecord,
    drive: Drive,
    used: Option<Used>,
    /// The last request that was refused for a reason that may pass.
    refused: Option<(Tag, Reason)>,
}

impl Channel {
    /// A channel at boot, safe.
    pub(crate) fn new(config: ChannelConfig, remembered: Remembered) -> Self {
        let (fence, seen) = match remembered {
            Remembered::Fence(record) => (Some(Fence::new(record, config.limits())), record),
            Remembered::Lost(seen) => (None, seen),
        };
        Self { config, fence, seen, drive: Drive::Safe, used: None, refused: None }
    }

    /// Whether its storage was lost.
    pub(crate) const fn is_lost(&self) -> bool {
        self.fence.is_none()
    }

    /// The fence that decides; `None` where storage was lost.
    #[cfg(not(feature = "demonstration"))]
    pub(crate) const fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// The demonstration's fence forgets everything before each request: this is the check left out.
    #[cfg(feature = "demonstration")]
    pub(crate) fn fence(&mut self) -> Option<&Fence> {
        self.fence = Some(Fence::new(FenceRecord::floor(self.config.epoch, self.config.floor), self.config.limits()));
        self.fence.as_ref()
    }

    /// The fence to commit to.
    pub(crate) const fn fence_mut(&mut self) -> Option<&mut Fence> {
        self.fence.as_mut()
    }

    /// Where the fence stands; where storage was lost, what is left of it.
    pub(crate) fn record(&self) -> FenceRecord {
        self.fence.as_ref().map_or(self.seen, Fence::record)
    }

    /// Takes a fence whose record the operator has just stored anew.
    pub(crate) fn restore(&mut self, fence: Fence) {
        self.let_go();
        self.fence = Some(fence);
    }

    /// Storage can no longer be trusted: safe, until the operator sets an epoch with a challenge that is newer than all
    /// that were issued before.
    pub(crate) fn lose(&mut self, last_issued: Challenge) {
        self.let_go();
        self.seen = self.record();
        self.fence = None;
        self.used = Some(Used { tag: None, challenge: last_issued });
    }

    /// Drives the outputs.
    pub(crate) fn drive(&mut self, act: Act, values: Values) {
        self.drive = Drive::Driven { act, values };
    }

    /// Lets go of the outputs.
    pub(crate) fn let_go(&mut self) {
        self.drive = Drive::Safe;
    }

    /// Lets go if the window is over at `now`.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.deadline().is_some_and(|end| now >= end) {
            self.let_go();
        }
    }

    /// When the window of a driven channel is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.drive {
            Drive::Safe => None,
            Drive::Driven { act, .. } => Some(act.deadline().instant()),
        }
    }

    /// What the outputs are to be set to.
    pub(crate) fn values(&self) -> Values {
        match &self.drive {
            Drive::Safe => self.config.safe(),
            Drive::Driven { values, .. } => values.clone(),
        }
    }

    /// What is left of the window at `now`.
    pub(crate) fn left(&self, now: Instant) -> fencegate::Duration {
        match &self.drive {
            Drive::Safe => fencegate::Duration::ZERO,
            Drive::Driven { act, .. } => act.left(now),
        }
    }

    /// What became of the request with this tag, if it is the last that was done, or was refused for what may pass.
    pub(crate) fn answered(&self, tag: Tag) -> Option<Result<(), Reason>> {
        match (self.used, self.refused) {
            (Some(Used { tag: Some(done), .. }), _) if done == tag => Some(Ok(())),
            (_, Some((refused, reason))) if refused == tag => Some(Err(reason)),
            _ => None,
        }
    }

    /// Remembers a refusal for what may pass: the host was told no, and a copy of its frame on the line is not done later.
    pub(crate) const fn refuse(&mut self, tag: Tag, reason: Reason) {
        if matches!(reason, Reason::Jump | Reason::Expired | Reason::Fault | Reason::Rate | Reason::Busy) {
            self.refused = Some((tag, reason));
        }
    }

    /// Whether `challenge` is newer than the last one used under this stamp.
    pub(crate) fn is_unused(&self, challenge: Challenge) -> bool {
        self.used.is_none_or(|used| challenge > used.challenge)
    }

    /// Uses up a challenge.
    pub(crate) const fn use_up(&mut self, tag: Tag, challenge: Challenge) {
        self.used = Some(Used { tag: Some(tag), challenge });
    }

    /// The channel for a host to read.
    pub(crate) fn status(&self, now: Instant, fault: Option<Fault>) -> ChannelStatus {
        let state = match (&self.drive, fault.is_some() || self.fence.is_none()) {
            (_, true) => ChannelState::Fault,
            (Drive::Safe, _) => ChannelState::Safe,
            (Drive::Driven { .. }, _) => ChannelState::Driven,
        };
        ChannelStatus { record: self.record(), state, values: self.values(), window_left: self.left(now) }
    }
}
