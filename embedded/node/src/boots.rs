//! When a boot is counted: at once, as a rule; and the later, the more boots have come without a rest between them.
//!
//! Counting writes flash. A board that resets again and again while a host polls it, or on a supply that chatters, would
//! wear its flash out; so after some hundred boots, none of which went on for an hour, a gate hears nobody for a while
//! after each. Such a loop costs a count a minute at the most, and the boot that breaks it and lasts ends it.

use fencegate::{Duration, Instant};

/// How many boots without a rest are counted as soon as somebody speaks.
const AT_ONCE: u32 = 512;

/// How much later each one beyond that is counted, and how late at the most.
const LATER_MS: u32 = 50;
const LATEST: Duration = Duration::from_secs(60);

/// How long a boot goes on until the gate has rested.
const REST: Duration = Duration::from_secs(3_600);

/// One boot of a gate.
#[derive(Debug)]
pub(crate) struct ThisBoot {
    began: Instant,
    restless: u32,
    counted: bool,
}

impl ThisBoot {
    /// A boot that began at `now`, the last of `restless` without a rest.
    pub(crate) const fn new(now: Instant, restless: u32) -> Self {
        Self { began: now, restless, counted: false }
    }

    /// Whether it has been counted. Until then nobody is heard.
    pub(crate) const fn is_counted(&self) -> bool {
        self.counted
    }

    /// It has been counted.
    pub(crate) const fn count(&mut self) {
        self.counted = true;
    }

    /// Whether it may be counted by now.
    pub(crate) fn may_be_counted(&self, now: Instant) -> bool {
        let beyond = self.restless.saturating_sub(AT_ONCE);
        let later = beyond.checked_mul(LATER_MS).map_or(LATEST, |ms| Duration::from_millis(ms).min(LATEST));
        self.has_gone_on_for(later, now)
    }

    /// Whether it has gone on for long enough, and there were so many before it that this is worth storing.
    pub(crate) fn is_a_rest(&self, now: Instant) -> bool {
        self.counted && self.restless > AT_ONCE / 2 && self.has_gone_on_for(REST, now)
    }

    /// That the gate has rested is stored.
    pub(crate) const fn rest(&mut self) {
        self.restless = 0;
    }

    fn has_gone_on_for(&self, time: Duration, now: Instant) -> bool {
        now.since(self.began).is_ok_and(|gone| gone >= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a loop of boots costs in a year: each lasts for `period`, and a host speaks all the time.
    fn counts_a_year(period: Duration) -> u32 {
        const YEAR: u64 = 365 * 86_400 * 1_000_000;
        let (mut restless, mut counts, mut year) = (0_u32, 0_u32, 0_u64);
        let end = Instant::from_micros(period.as_micros());
        while year < YEAR {
            year += period.as_micros();
            let mut boot = ThisBoot::new(Instant::from_micros(0), restless + 1);
            if boot.may_be_counted(end) {
                boot.count();
                restless += 1;
                counts += 1;
            }
            if boot.is_a_rest(end) {
                boot.rest();
                (restless, counts) = (0, counts + 1);
            }
        }
        counts
    }

    /// `tests/BENCH.md` has 14 million stores in 100,000 cycles of the smallest flash there is.
    #[test]
    fn no_loop_of_boots_wears_the_flash_out_in_ten_years() {
        for millis in [20, 100, 1_000, 10_000, 59_000, 61_000, 600_000, 3_599_000, 3_601_000, 86_400_000] {
            let counts = counts_a_year(Duration::from_millis(millis));
            assert!(counts < 600_000, "every {millis} ms: {counts} a year");
        }
    }

    #[test]
    fn a_power_cut_now_and_then_is_counted_at_once() {
        let now = Instant::from_micros(0);
        assert!(ThisBoot::new(now, 1).may_be_counted(now));
        assert!(ThisBoot::new(now, AT_ONCE).may_be_counted(now));
        assert!(!ThisBoot::new(now, AT_ONCE + 1).may_be_counted(now));
        assert!(ThisBoot::new(now, AT_ONCE + 1).may_be_counted(Instant::from_micros(50_000)));
        assert!(!ThisBoot::new(now, u32::MAX).may_be_counted(Instant::from_micros(59_999_999)));
        assert!(ThisBoot::new(now, u32::MAX).may_be_counted(Instant::from_micros(60_000_000)));
    }

    #[test]
    fn a_rest_is_stored_once_and_only_where_it_is_worth_it() {
        let (now, hour) = (Instant::from_micros(0), Instant::from_micros(3_600_000_000));
        let mut boot = ThisBoot::new(now, AT_ONCE);
        assert!(!boot.is_a_rest(hour), "not counted");
        boot.count();
        assert!(!boot.is_a_rest(Instant::from_micros(3_599_999_999)));
        assert!(boot.is_a_rest(hour));
        boot.rest();
        assert!(!boot.is_a_rest(hour));
        let mut rare = ThisBoot::new(now, AT_ONCE / 2);
        rare.count();
        assert!(!rare.is_a_rest(hour));
    }
}
