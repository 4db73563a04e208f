//! What hosts were refused for a reason that may pass: they were told no, and no copy of such a frame, which the line may
//! still hold, is done later.
//!
//! A refusal uses up the challenge of its request, and every earlier one of the same host for the same channel. It is kept
//! for the last few hosts and channels that were refused; a host that asks again does so with a newer challenge.

use fencegate_wire::{Challenge, Reason, Role, Tag};

/// For how many hosts and channels it is kept.
const KEPT: usize = 4;

/// The last refusal of one host on one channel.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    role: Role,
    channel: u8,
    tag: Tag,
    reason: Reason,
    challenge: Challenge,
}

/// The last refusals, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(heapless::Vec<Refusal, KEPT>);

impl Refusals {
    pub(crate) const fn new() -> Self {
        Self(heapless::Vec::new())
    }

    /// Remembers a refusal, if its reason may pass.
    pub(crate) fn remember(&mut self, role: Role, channel: u8, tag: Tag, reason: Reason, challenge: Challenge) {
        use Reason::{Busy, Expired, Fault, Held, Jump, Rate};
        if !matches!(reason, Jump | Expired | Fault | Held | Rate | Busy) {
            return;
        }
        let newest = self.used(role, channel).map_or(challenge, |used| used.max(challenge));
        self.0.retain(|refusal| (refusal.role, refusal.channel) != (role, channel));
        if self.0.is_full() {
            self.0.remove(0);
        }
        let _ = self.0.push(Refusal { role, channel, tag, reason, challenge: newest }); // there is room
    }

    /// Why the request with this tag was refused.
    pub(crate) fn reason(&self, tag: Tag) -> Option<Reason> {
        self.0.iter().find_map(|refusal| (refusal.tag == tag).then_some(refusal.reason))
    }

    /// Up to which challenge a host has used all of its own on a channel.
    pub(crate) fn used(&self, role: Role, channel: u8) -> Option<Challenge> {
        let of = |refusal: &&Refusal| (refusal.role, refusal.channel) == (role, channel);
        self.0.iter().find(of).map(|refusal| refusal.challenge)
    }
}
