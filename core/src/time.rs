//! Instants and durations in whole microseconds, and what can be said of a clock.

use core::fmt;

/// A span of time in whole microseconds.
///
/// There is no operator that could wrap: what may not fit is asked for by name and answers with an [`Option`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The largest duration that any answer of this crate holds: 2⁶³−1 µs, about 292,000 years.
    pub const MAX_ANSWER: Self = Self(i64::MAX as u64);

    /// A duration of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// A duration of `ms` milliseconds; exact for every `u32`.
    pub const fn from_millis(ms: u32) -> Self {
        Self(ms as u64 * 1_000)
    }

    /// A duration of `s` seconds; exact for every `u32`.
    pub const fn from_secs(s: u32) -> Self {
        Self(s as u64 * 1_000_000)
    }

    /// The whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or `None` where it does not fit 64 bits.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(us) => Some(Self(us)),
            None => None,
        }
    }

    /// The difference, or `None` where `other` is the longer.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(us) => Some(Self(us)),
            None => None,
        }
    }

    /// What is left after `other`: max(0, self − other), the contract's wording for every length that may run out.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// From the standard library's duration, for what a holder *has* (a TTL, a window): nanoseconds round down.
    /// `None` where it does not fit 64 bits of microseconds.
    pub fn floor_from(d: core::time::Duration) -> Option<Self> {
        d.as_secs().checked_mul(1_000_000)?.checked_add(u64::from(d.subsec_micros())).map(Self)
    }

    /// From the standard library's duration, for what a holder *spends* (work, latency): nanoseconds round up.
    /// `None` where it does not fit 64 bits of microseconds.
    pub fn ceil_from(d: core::time::Duration) -> Option<Self> {
        d.as_secs().checked_mul(1_000_000)?.checked_add(u64::from(d.subsec_nanos().div_ceil(1_000))).map(Self)
    }
}

impl From<Duration> for core::time::Duration {
    fn from(d: Duration) -> Self {
        Self::from_micros(d.0)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}µs", self.0)
    }
}

/// A point on the caller's own monotonic clock, in microseconds since whatever that clock counts from.
///
/// Instants of two clocks are never compared; nothing in this crate reads a clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(u64);

impl Instant {
    /// The instant at which the caller's clock shows `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// What the caller's clock shows at this instant, in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The instant `d` later, or `None` past the end of the clock.
    pub const fn checked_add(self, d: Duration) -> Option<Self> {
        match self.0.checked_add(d.0) {
            Some(us) => Some(Self(us)),
            None => None,
        }
    }

    /// The time that passed since `earlier`.
    ///
    /// # Errors
    /// [`ClockRanBackwards`] where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Result<Duration, ClockRanBackwards> {
        match self.0.checked_sub(earlier.0) {
            Some(us) => Ok(Duration(us)),
            None => Err(ClockRanBackwards),
        }
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}µs", self.0)
    }
}

/// The instant at which something is over. Equality is expiry: at the deadline itself it is already over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Deadline(Instant);

impl Deadline {
    /// Over at `at`, open strictly before it.
    pub const fn at(at: Instant) -> Self {
        Self(at)
    }

    /// Over `window` after `start`, or `None` past the end of the clock.
    pub const fn after(start: Instant, window: Duration) -> Option<Self> {
        match start.checked_add(window) {
            Some(at) => Some(Self(at)),
            None => None,
        }
    }

    /// The instant at which it is over.
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// What is left at `now`; zero once it is over.
    pub const fn left(self, now: Instant) -> Duration {
        Duration(self.0.0).less(Duration(now.0))
    }

    /// Whether it is over at `now`.
    pub const fn is_over(self, now: Instant) -> bool {
        now.0 >= self.0.0
    }
}

/// The caller's clock showed an earlier time than before. That clock is broken, and a fault is the safe state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClockRanBackwards;

impl fmt::Display for ClockRanBackwards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the clock ran backwards: nothing timed by it can be trusted")
    }
}

impl core::error::Error for ClockRanBackwards {}

/// Guards a clock: every reading passes through it, and one that is earlier than the last is an error, then and
/// for ever after. A restart is the only cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Monotonic {
    last: Instant,
    broken: bool,
}

impl Monotonic {
    /// A guard that has seen no reading yet.
    pub const fn new() -> Self {
        Self { last: Instant(0), broken: false }
    }

    /// Takes a reading and hands it back if it may be trusted.
    ///
    /// # Errors
    /// [`ClockRanBackwards`] where it is earlier than the last one, or where an earlier call has failed.
    pub fn read(&mut self, now: Instant) -> Result<Instant, ClockRanBackwards> {
        if self.broken || now < self.last {
            self.broken = true;
            return Err(ClockRanBackwards);
        }
        self.last = now;
        Ok(now)
    }
}

#[cfg(feature = "embassy-time")]
mod embassy {
    use super::{Duration, Instant};
    use embassy_time::TICK_HZ;

    /// Ticks to microseconds. Split as T·10⁶ = q·10⁶ + r·10⁶/`TICK_HZ`, so that only a result that does not fit fails.
    fn micros(ticks: u64, round_up: bool) -> Option<u64> {
        let part = (ticks % TICK_HZ).checked_mul(1_000_000)?;
        let part = if round_up { part.div_ceil(TICK_HZ) } else { part / TICK_HZ };
        (ticks / TICK_HZ).checked_mul(1_000_000)?.checked_add(part)
    }

    impl Duration {
        /// From embassy's ticks, for what a holder *has*: rounds down. `None` where it does not fit.
        pub fn floor_from_embassy(d: embassy_time::Duration) -> Option<Self> {
            micros(d.as_ticks(), false).map(Self)
        }

        /// From embassy's ticks, for what a holder *spends*: rounds up. `None` where it does not fit.
        pub fn ceil_from_embassy(d: embassy_time::Duration) -> Option<Self> {
            micros(d.as_ticks(), true).map(Self)
        }
    }

    /// Microseconds to ticks, split the same way.
    fn ticks(us: u64, round_up: bool) -> Option<u64> {
        let part = (us % 1_000_000).checked_mul(TICK_HZ)?;
        let part = if round_up { part.div_ceil(1_000_000) } else { part / 1_000_000 };
        (us / 1_000_000).checked_mul(TICK_HZ)?.checked_add(part)
    }

    impl Duration {
        /// In embassy's ticks, for what a holder *has*: rounds down. `None` where it does not fit.
        pub fn floor_to_embassy(self) -> Option<embassy_time::Duration> {
            ticks(self.as_micros(), false).map(embassy_time::Duration::from_ticks)
        }

        /// In embassy's ticks, for what a holder *spends*: rounds up. `None` where it does not fit.
        pub fn ceil_to_embassy(self) -> Option<embassy_time::Duration> {
            ticks(self.as_micros(), true).map(embassy_time::Duration::from_ticks)
        }
    }

    impl Instant {
        /// The start of a lease or a window on embassy's clock: rounds down, so that it began no later than this.
        pub fn start_from_embassy(at: embassy_time::Instant) -> Option<Self> {
            micros(at.as_ticks(), false).map(Self)
        }

        /// The present on embassy's clock: rounds up, so that no less time has passed than this says.
        pub fn now_from_embassy(at: embassy_time::Instant) -> Option<Self> {
            micros(at.as_ticks(), true).map(Self)
        }
    }

    impl TryFrom<Instant> for embassy_time::Instant {
        type Error = crate::OutOfRange;

        /// A wake-up on embassy's clock, rounded down: never later than asked for.
        fn try_from(at: Instant) -> Result<Self, Self::Error> {
            ticks(at.as_micros(), false).map(Self::from_ticks).ok_or(crate::OutOfRange::Instant)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_expiry() {
        let end = Deadline::after(Instant::from_micros(5), Duration::from_micros(10)).unwrap();
        assert!(!end.is_over(Instant::from_micros(14)));
        assert_eq!(end.left(Instant::from_micros(14)), Duration::from_micros(1));
        assert!(end.is_over(Instant::from_micros(15)));
        assert_eq!(end.left(Instant::from_micros(16)), Duration::ZERO);
    }

    #[test]
    fn what_passes_between_instants() {
        let (early, late) = (Instant::from_micros(5), Instant::from_micros(7));
        assert_eq!((late.since(early), late.since(late)), (Ok(Duration::from_micros(2)), Ok(Duration::ZERO)));
        assert_eq!(early.since(late), Err(ClockRanBackwards));
        assert_eq!(Duration::from_micros(5).checked_sub(Duration::from_micros(7)), None);
        assert_eq!(Duration::from_micros(7).checked_sub(Duration::from_micros(5)), Some(Duration::from_micros(2)));
        assert_eq!(Duration::from_micros(7).checked_add(Duration::from_micros(5)), Some(Duration::from_micros(12)));
        assert_eq!(Duration::from_micros(u64::MAX).checked_add(Duration::from_micros(1)), None);
        assert_eq!((Duration::from_millis(3), Duration::from_secs(3)), (Duration(3_000), Duration(3_000_000)));
        assert_eq!(core::time::Duration::from(Duration::from_micros(7)), core::time::Duration::from_micros(7));
        assert_eq!(std::format!("{:?} {late:?}", Duration::from_micros(2)), "2µs @7µs");
        assert!(std::format!("{ClockRanBackwards}").contains("ran backwards"));
    }

    #[test]
    fn a_deadline_past_the_end_of_the_clock_is_no_deadline() {
        assert_eq!(Deadline::after(Instant::from_micros(u64::MAX), Duration::from_micros(1)), None);
        assert!(Deadline::after(Instant::from_micros(u64::MAX), Duration::ZERO).is_some());
    }

    #[test]
    fn a_clock_that_ran_backwards_stays_broken() {
        let mut clock = Monotonic::new();
        assert!(clock.read(Instant::from_micros(7)).is_ok());
        assert!(clock.read(Instant::from_micros(7)).is_ok());
        assert_eq!(clock.read(Instant::from_micros(6)), Err(ClockRanBackwards));
        assert_eq!(clock.read(Instant::from_micros(8)), Err(ClockRanBackwards));
    }

    #[test]
    fn nanoseconds_round_to_the_safe_side_or_fail() {
        let d = core::time::Duration::from_nanos(1_001);
        assert_eq!(Duration::floor_from(d), Some(Duration::from_micros(1)));
        assert_eq!(Duration::ceil_from(d), Some(Duration::from_micros(2)));
        assert_eq!(Duration::floor_from(core::time::Duration::MAX), None);
        assert_eq!(Duration::ceil_from(core::time::Duration::MAX), None);
        let longest = core::time::Duration::from_micros(u64::MAX);
        let nanosecond = core::time::Duration::from_nanos(1);
        assert_eq!(Duration::ceil_from(longest), Some(Duration::from_micros(u64::MAX)));
        assert_eq!(Duration::floor_from(longest + nanosecond), Some(Duration::from_micros(u64::MAX)));
        assert_eq!(Duration::ceil_from(longest + nanosecond), None);
    }

    #[cfg(feature = "embassy-time")]
    #[test]
    fn embassy_ticks_convert_at_the_ends_of_the_clock() {
        let ticks = embassy_time::Instant::from_ticks(3 * embassy_time::TICK_HZ);
        assert_eq!(Instant::now_from_embassy(ticks), Some(Instant::from_micros(3_000_000)));
        assert_eq!(Instant::start_from_embassy(ticks), Instant::now_from_embassy(ticks));
        assert_eq!(embassy_time::Instant::try_from(Instant::from_micros(3_000_000)), Ok(ticks));
        let part = embassy_time::Duration::from_ticks(embassy_time::TICK_HZ * 3 / 2);
        assert_eq!(Duration::floor_from_embassy(part), Some(Duration::from_millis(1_500)));
        assert_eq!(Duration::floor_from_embassy(part), Duration::ceil_from_embassy(part));
        assert_eq!(Duration::from_millis(1_500).floor_to_embassy(), Some(part));
        assert_eq!(Duration::from_millis(1_500).ceil_to_embassy(), Some(part));
        let second = Duration::from_secs(1);
        assert_eq!(second.floor_to_embassy(), Some(embassy_time::Duration::from_ticks(embassy_time::TICK_HZ)));
        assert_eq!(second.floor_to_embassy(), second.ceil_to_embassy());
        let end = embassy_time::Duration::from_ticks(u64::MAX);
        assert_eq!(Duration::floor_from_embassy(end).is_some(), embassy_time::TICK_HZ >= 1_000_000);
        assert!(Duration::floor_from_embassy(end) <= Duration::ceil_from_embassy(end));
    }
}
