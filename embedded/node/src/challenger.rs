//! Challenges: what makes a request fresh, without a list of those that are out.

use fencegate::{Duration, Instant};
use fencegate_wire::Challenge;

/// Issues challenges: the boot counter and a tick that no two share.
#[derive(Debug)]
pub(crate) struct Challenger {
    boot: u32,
    last: u64,
}

impl Challenger {
    /// Nothing issued yet in this boot.
    pub(crate) const fn new(boot: u32) -> Self {
        Self { boot, last: 0 }
    }

    /// The gate's boot counter.
    pub(crate) const fn boot(&self) -> u32 {
        self.boot
    }

    /// The last one issued.
    pub(crate) const fn last(&self) -> Challenge {
        Challenge { boot: self.boot, tick: self.last }
    }

    /// A new one.
    pub(crate) fn issue(&mut self, now: Instant) -> Challenge {
        self.last = now.as_micros().max(self.last.saturating_add(1));
        Challenge { boot: self.boot, tick: self.last }
    }

    /// Whether `challenge` was issued in this boot, and less than `longest` ago.
    pub(crate) fn is_fresh(&self, challenge: Challenge, now: Instant, longest: Duration) -> bool {
        let Challenge { boot, tick } = challenge;
        // Two challenges within a microsecond leave the second a tick ahead of the clock: its age is zero.
        let age = now.as_micros().saturating_sub(tick);
        boot == self.boot && tick <= self.last && age < longest.as_micros()
    }
}
