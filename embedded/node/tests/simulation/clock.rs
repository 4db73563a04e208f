//! Clocks that drift.

use fencegate::Duration;

/// A clock that shows whole microseconds since `origin` and goes at `rate` billionths of the real pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) origin: u64,
    pub(crate) rate: u64,
}

/// Nanoseconds times billionths, in a microsecond.
const SCALE: u128 = 1_000_000_000_000;

impl Clock {
    /// What it shows at a real instant.
    pub(crate) fn read(self, at: u64) -> u64 {
        let us = u128::from(at.saturating_sub(self.origin)) * u128::from(self.rate) / SCALE;
        u64::try_from(us).unwrap()
    }

    /// The first real instant at which it shows this.
    pub(crate) fn when(self, reading: u64) -> u64 {
        let ns = (u128::from(reading) * SCALE).div_ceil(u128::from(self.rate));
        self.origin + u64::try_from(ns).unwrap()
    }

    /// How long so many of its microseconds take, in real nanoseconds.
    pub(crate) fn span(self, us: u64) -> u64 {
        u64::try_from(u128::from(us) * SCALE / u128::from(self.rate)).unwrap()
    }
}

/// How long a lease lasts on a clock that may be too fast by `ppb`.
pub(crate) trait Outlasted {
    fn outlasted(self, ppb: u64) -> u64;
}

impl Outlasted for Duration {
    fn outlasted(self, ppb: u64) -> u64 {
        let exact = u128::from(self.as_micros()) * 1_000_000_000;
        u64::try_from(exact.div_ceil(1_000_000_000 - u128::from(ppb))).unwrap()
    }
}
