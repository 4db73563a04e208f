//! When a boot is counted: at once, as a rule; and the later, the more boots come with little time between them.
//!
//! Counting writes flash. A board that resets again and again while a host polls it, or on a supply that chatters, would
//! wear its flash out. So a minute of running makes up for one boot, and a gate that is some hundred boots behind hears
//! nobody for a while after each: such a loop costs about a count a minute.

use fencegate::{Duration, Instant};

/// How many boots may come without the time that makes up for them, and be counted as soon as somebody speaks.
const AT_ONCE: u32 = 512;

/// How much later each one beyond that is counted, and how late at the most.
const LATER_MS: u32 = 50;
const LATEST: Duration = Duration::from_secs(60);

const MINUTE_US: u64 = 60_000_000;

/// One boot of a gate.
#[derive(Debug)]
pub(crate) struct ThisBoot {
    began: Instant,
    /// How many boots nothing has made up for yet, this one included.
    restless: u32,
    counted: bool,
    /// How many minutes of this boot have made up for one each, and are stored.
    rested: u32,
}

impl ThisBoot {
    /// A boot that began at `now`, the last of `restless`.
    pub(crate) const fn new(now: Instant, restless: u32) -> Self {
        Self { began: now, restless, counted: false, rested: 0 }
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
        now.since(self.began).is_ok_and(|gone| gone >= later)
    }

    /// For how many boots it has made up since that was last stored; `None` where it need not be stored now. It is after a
    /// minute, two, four and so on, and only where there are many to make up for.
    pub(crate) fn rest_due(&self, now: Instant) -> Option<u32> {
        let gone = now.since(self.began).ok()?;
        let minutes = u32::try_from(gone.as_micros() / MINUTE_US).unwrap_or(u32::MAX);
        let due = self.counted && self.restless > AT_ONCE / 2 && minutes >= self.rested.saturating_mul(2).max(1);
        due.then(|| minutes.saturating_sub(self.rested))
    }

    /// That it has made up for so many is stored.
    pub(crate) const fn rest(&mut self, boots: u32) {
        self.rested = self.rested.saturating_add(boots);
        self.restless = self.restless.saturating_sub(boots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: u64 = 365 * 86_400 * 1_000_000;

    /// What is stored of boots in a year that consists of `boots`, each so long, while a host speaks all the time; and how
    /// long the last of them was deaf.
    fn a_year_of(mut boots: impl FnMut(u64) -> u64) -> (u32, bool) {
        let (mut restless, mut stores, mut year, mut deaf) = (0_u32, 0_u32, 0_u64, false);
        for n in 0.. {
            let length = boots(n);
            let mut boot = ThisBoot::new(Instant::from_micros(0), restless + 1);
            deaf = !boot.may_be_counted(Instant::from_micros(0));
            if boot.may_be_counted(Instant::from_micros(length)) {
                boot.count();
                stores += 1;
                restless += 1;
            }
            for minute in 1..=length / MINUTE_US {
                if let Some(earned) = boot.rest_due(Instant::from_micros(minute * MINUTE_US)) {
                    boot.rest(earned);
                    restless = restless.saturating_sub(earned);
                    stores += 1;
                }
            }
            year += length.max(1);
            if year >= YEAR {
                break;
            }
        }
        (stores, deaf)
    }

    /// `tests/BENCH.md` has 14 million stores in 100,000 cycles of the smallest flash there is.
    #[test]
    fn no_loop_of_boots_wears_the_flash_out_in_ten_years() {
        for millis in [20, 100, 1_000, 10_000, 59_000, 61_000, 121_000, 600_000, 86_400_000] {
            let (stores, _) = a_year_of(|_| millis * 1_000);
            assert!(stores < 1_400_000, "every {millis} ms: {stores} a year");
        }
        // Hundreds at once, and then the time that makes up for a few of them.
        for (many, minutes) in [(600, 1), (600, 10), (300, 60), (2_000, 300)] {
            let (stores, _) = a_year_of(|n| if n % many == 0 { minutes * MINUTE_US } else { 50_000 });
            assert!(stores < 1_400_000, "{many} boots and {minutes} min: {stores} a year");
        }
    }

    #[test]
    fn a_machine_that_is_switched_on_for_a_few_minutes_at_a_time_hears_at_once() {
        for minutes in [2, 10, 45] {
            let (_, deaf) = a_year_of(|_| minutes * MINUTE_US);
            assert!(!deaf, "{minutes} min each time");
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
    fn a_rest_is_stored_now_and_then_and_only_where_it_is_worth_it() {
        let at = |minutes| Instant::from_micros(minutes * MINUTE_US);
        let mut boot = ThisBoot::new(at(0), AT_ONCE);
        assert_eq!(boot.rest_due(at(1)), None, "not counted");
        boot.count();
        assert_eq!(boot.rest_due(Instant::from_micros(MINUTE_US - 1)), None);
        assert_eq!(boot.rest_due(at(1)), Some(1));
        boot.rest(1);
        assert_eq!(boot.rest_due(at(1)), None);
        assert_eq!(boot.rest_due(at(3)), Some(2), "a moment in which something was driven has gone by");
        boot.rest(2);
        assert_eq!(boot.rest_due(at(5)), None);
        assert_eq!(boot.rest_due(at(600)), Some(597));
        boot.rest(597);
        assert_eq!(boot.rest_due(at(10_000)), None, "nothing is left to make up for");
    }
}
