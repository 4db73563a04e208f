//! Challenges: what makes a request fresh, without a list of those that are out.

use fencegate::{Duration, Instant};
use fencegate_wire::{Challenge, Tag};

/// Issues challenges: the boot counter and a tick that no two share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenger {
    boot: u32,
    last: u64,
    /// What was issued up to here is used up, whoever has it.
    void: u64,
}

/// The last request that was done, and its challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// `None` where half of it was done: the fence was raised and stored, and then it was too late to drive.
    pub(crate) tag: Option<Tag>,
    pub(crate) challenge: Challenge,
}

impl Challenger {
    /// Nothing issued yet in this boot.
    pub(crate) const fn new(boot: u32) -> Self {
        Self { boot, last: 0, void: 0 }
    }

    /// The gate's boot counter.
    pub(crate) const fn boot(&self) -> u32 {
        self.boot
    }

    /// The last one's tick.
    pub(crate) const fn last(&self) -> u64 {
        self.last
    }

    /// A new one.
    pub(crate) fn issue(&mut self, now: Instant) -> Challenge {
        self.last = now.as_micros().max(self.last.saturating_add(1));
        Challenge { boot: self.boot, tick: self.last }
    }

    /// Uses up every challenge that is out: what was sealed before this instant is not done after it.
    pub(crate) const fn void(&mut self) {
        self.void = self.last;
    }

    /// Uses up every challenge up to this one of this boot, whoever has it.
    pub(crate) fn void_to(&mut self, challenge: Challenge) {
        self.void = self.void.max(challenge.tick);
    }

    /// Whether `challenge` was issued in this boot, less than `longest` ago, and is not used up.
    pub(crate) fn is_fresh(&self, challenge: Challenge, now: Instant, longest: Duration) -> bool {
        let Challenge { boot, tick } = challenge;
        // Two challenges within a microsecond leave the second a tick ahead of the clock: its age is zero.
        let age = now.as_micros().saturating_sub(tick);
        boot == self.boot && self.void < tick && tick <= self.last && age < longest.as_micros()
    }
}
