//! What hosts were refused for a reason that may pass: they were told no, and no copy of such a frame, which the line may
//! still hold, is done later.
//!
//! A refusal uses up the challenge of its request, and every earlier one under the same key for the same channel. That is
//! remembered for the last few keys and channels; where one has to give way, its challenge and every earlier one is used up
//! for everybody instead. A host that asks again does so with a newer challenge. (Under the same key, and not of the same
//! instance: whoever has a key has any number of those.)

use fencegate_wire::{Challenge, Reason, Role, Tag};

/// For how many keys and channels it is kept.
const KEPT: usize = 4;

/// The last refusal under one key on one channel.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    key: Role,
    /// `None` for a provisioning.
    channel: Option<u8>,
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

    /// Remembers a refusal, if its reason may pass; the challenge up to which everybody's are used up, where an older
    /// refusal had to give way.
    pub(crate) fn remember(
        &mut self,
        role: Role,
        channel: Option<u8>,
        tag: Tag,
        reason: Reason,
        challenge: Challenge,
    ) -> Option<Challenge> {
        use Reason::{Authority, Busy, Expired, Fault, Held, Jump, Presence, Rate, Storage};
        if !matches!(reason, Authority | Storage | Jump | Expired | Fault | Held | Rate | Busy | Presence) {
            return None;
        }
        let (key, newest) = (of(role), self.used(role, channel).map_or(challenge, |used| used.max(challenge)));
        self.0.retain(|refusal| (refusal.key, refusal.channel) != (key, channel));
        let given_way = self.0.is_full().then(|| self.0.remove(0).challenge);
        let _ = self.0.push(Refusal { key, channel, tag, reason, challenge: newest }); // there is room
        given_way
    }

    /// Why the request with this tag was refused.
    pub(crate) fn reason(&self, tag: Tag) -> Option<Reason> {
        self.0.iter().find_map(|refusal| (refusal.tag == tag).then_some(refusal.reason))
    }

    /// Up to which challenge all are used that came under this one's key on a channel.
    pub(crate) fn used(&self, role: Role, channel: Option<u8>) -> Option<Challenge> {
        let key = of(role);
        self.0.iter().find(|refusal| (refusal.key, refusal.channel) == (key, channel)).map(|refusal| refusal.challenge)
    }
}

/// Whose key it is.
fn of(role: Role) -> Role {
    if let Role::Holder(holder) = role { Role::Holder(holder.name()) } else { role }
}
