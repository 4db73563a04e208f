//! A budget for raises: every one writes flash, and an authenticated loop would wear the part out in a day.

use crate::{Duration, Instant};

/// The terms of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RaiseBudget {
    /// How many raises may come at once.
    pub burst: u32,
    /// After how much time one more is allowed; zero counts as one microsecond.
    pub every: Duration,
}

/// A token bucket: how many raises are left, and since when the next one has been accruing.
///
/// A burst of n and one every p allow at most n + ⌊t/p⌋ raises in any time t.
///
/// ```
/// use fencegate::{Budget, Duration, Instant, RaiseBudget};
///
/// let at = |s: u64| Instant::from_micros(s * 1_000_000);
/// let mut budget = Budget::full(RaiseBudget { burst: 1, every: Duration::from_secs(60) }, at(0));
/// assert!(budget.allows(at(0)));
/// budget.spend();
/// assert!(!budget.allows(at(59)));
/// assert_eq!(budget.wait(at(59)), Duration::from_secs(1));
/// assert!(budget.allows(at(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Budget {
    terms: RaiseBudget,
    left: u32,
    since: Instant,
}

impl Budget {
    /// A full bucket at `now`. Whoever reboots gets one: what bounds a boot loop is the wear of its boot counter.
    pub const fn full(terms: RaiseBudget, now: Instant) -> Self {
        Self { terms, left: terms.burst, since: now }
    }

    /// Whether a raise is allowed at `now`. A clock that ran backwards earns nothing.
    pub fn allows(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left > 0
    }

    /// Spends one raise; call it once the raise is decided. An empty bucket stays empty.
    pub const fn spend(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// How long after `now` a raise is allowed; zero where one is already, and for ever ([`Duration::MAX_ANSWER`]) where
    /// the burst is zero.
    pub fn wait(&mut self, now: Instant) -> Duration {
        if self.allows(now) {
            return Duration::ZERO;
        }
        if self.terms.burst == 0 {
            return Duration::MAX_ANSWER;
        }
        Duration::from_micros(self.every()).less(now.since(self.since).unwrap_or_default())
    }

    fn every(&self) -> u64 {
        self.terms.every.as_micros().max(1)
    }

    fn refill(&mut self, now: Instant) {
        let every = self.every();
        let earned = now.since(self.since).unwrap_or_default().as_micros() / every;
        let room = self.terms.burst.saturating_sub(self.left);
        match u32::try_from(earned) {
            Ok(earned) if earned < room => {
                self.left += earned;
                self.since = self.since.checked_add(Duration::from_micros(u64::from(earned) * every)).unwrap_or(now);
            }
            // A full bucket accrues nothing: the next period begins when one is spent, and not before `now`.
            _ => *self = Self::full(self.terms, now.max(self.since)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    fn bucket(burst: u32) -> Budget {
        Budget::full(RaiseBudget { burst, every: Duration::from_secs(1) }, at(0))
    }

    fn raises(budget: &mut Budget, times: &[u64]) -> std::vec::Vec<bool> {
        let raise = |ms: &u64| {
            let allowed = budget.allows(at(*ms));
            if allowed {
                budget.spend();
            }
            allowed
        };
        times.iter().map(raise).collect()
    }

    #[test]
    fn a_burst_then_one_a_period() {
        let mut budget = bucket(2);
        assert_eq!(raises(&mut budget, &[0, 0, 0, 999]), [true, true, false, false]);
        assert_eq!(raises(&mut budget, &[1_000, 1_500, 2_000, 2_001]), [true, false, true, false]);
        assert_eq!(
            raises(&mut budget, &[60_000, 60_000, 60_000]),
            [true, true, false],
            "no more than a burst is saved"
        );
    }

    #[test]
    fn what_is_left_of_a_period_is_told_and_kept() {
        let mut budget = bucket(2);
        assert_eq!(raises(&mut budget, &[0, 0]), [true, true]);
        assert_eq!(budget.wait(at(1)), Duration::from_millis(999));
        assert_eq!(raises(&mut budget, &[1_700]), [true], "the first, a second after the burst");
        assert_eq!(budget.wait(at(1_700)), Duration::from_millis(300), "the 700 ms were not thrown away");
        assert_eq!(budget.wait(at(2_000)), Duration::ZERO);
    }

    #[test]
    fn a_full_bucket_accrues_nothing() {
        let mut budget = bucket(1);
        assert_eq!(raises(&mut budget, &[0, 1_500, 2_000, 2_499, 2_500]), [true, true, false, false, true]);
    }

    #[test]
    fn odd_terms_and_clocks_allow_no_more() {
        assert_eq!(bucket(0).wait(at(9_000)), Duration::MAX_ANSWER);
        let mut budget = bucket(1);
        assert_eq!(raises(&mut budget, &[5_000, 4_000, 5_999, 6_000]), [true, false, false, true]);
        let mut always = Budget::full(RaiseBudget { burst: 1, every: Duration::ZERO }, at(0));
        assert_eq!(raises(&mut always, &[0, 0, 1]), [true, false, true]);
        let mut late = bucket(1);
        late.spend();
        assert!(late.allows(Instant::from_micros(u64::MAX)));
    }
}
