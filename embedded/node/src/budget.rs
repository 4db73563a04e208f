//! The raise budget: a token bucket, since every raise writes flash.

use fencegate::{Duration, Instant};
use fencegate_wire::RaiseBudget;

/// How many raises are left, and since when the next one has been accruing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    terms: RaiseBudget,
    left: u32,
    since: Instant,
}

impl Budget {
    /// A full bucket at `now`. A gate that reboots gets one: what bounds a boot loop is the boot counter's own wear.
    pub(crate) const fn full(terms: RaiseBudget, now: Instant) -> Self {
        Self { terms, left: terms.burst, since: now }
    }

    /// Whether a raise is allowed at `now`.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left > 0
    }

    /// Spends one raise.
    pub(crate) const fn spend(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    fn refill(&mut self, now: Instant) {
        let every = self.terms.every.as_micros().max(1);
        let earned = now.since(self.since).unwrap_or(Duration::ZERO).as_micros() / every;
        let room = u64::from(self.terms.burst - self.left);
        if earned >= room {
            *self = Self::full(self.terms, now);
        } else if let Ok(earned) = u32::try_from(earned) {
            self.left += earned;
            self.since = self.since.checked_add(Duration::from_micros(u64::from(earned) * every)).unwrap_or(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_one_a_period() {
        let at = |ms: u64| Instant::from_micros(ms * 1_000);
        let mut budget = Budget::full(RaiseBudget { burst: 2, every: Duration::from_secs(1) }, at(0));
        let mut raise = |ms| {
            let allowed = budget.allows(at(ms));
            if allowed {
                budget.spend();
            }
            allowed
        };
        assert_eq!([raise(0), raise(0), raise(0), raise(999)], [true, true, false, false]);
        assert_eq!([raise(1_000), raise(1_500), raise(2_000), raise(2_001)], [true, false, true, false]);
        assert_eq!([raise(60_000), raise(60_000), raise(60_000)], [true, true, false], "no more than a burst is saved");
    }
}
