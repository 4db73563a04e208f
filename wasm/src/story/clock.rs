//! A clock that runs at its own rate beside the story's time.

use fencegate::{Instant, PPB};

/// Where every clock of the story stands at its start: no two machines were started at once, and none at zero.
const EPOCH: u64 = 1_000_000;

/// A clock that gains or loses a fixed part of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What it counts in 10⁹ µs of the story.
    rate: u64,
}

impl Clock {
    /// A clock that is `ppb` fast, or slow below zero; at most by half.
    pub(crate) const fn off_by(ppb: i64) -> Self {
        Self { rate: PPB.saturating_add_signed(ppb) }
    }

    /// What it shows at `at`, exact in 64 bits since a story lasts a day at most: at = q·10⁹ + r.
    pub(crate) const fn reads(self, at: u64) -> Instant {
        let (q, r) = (at / PPB, at % PPB);
        Instant::from_micros(EPOCH + q * self.rate + r * self.rate / PPB)
    }

    /// The first instant of the story at which it shows `local` or more.
    pub(crate) const fn when(self, local: Instant) -> u64 {
        let us = local.as_micros().saturating_sub(EPOCH);
        let (q, r) = (us / self.rate, us % self.rate);
        q.saturating_mul(PPB).saturating_add((r * PPB).div_ceil(self.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_at_the_first_instant_that_is_late_enough() {
        for ppb in [-500_000_000, -1_001, 0, 1, 83_333_334, 500_000_000] {
            let clock = Clock::off_by(ppb);
            for local in [0, 1, 999, 1_000_000, 1_000_001, 7_654_321_098, 86_400_000_000] {
                let local = Instant::from_micros(local);
                let at = clock.when(local);
                assert!(clock.reads(at) >= local, "{ppb} {local:?}");
                assert!(at == 0 || clock.reads(at - 1) < local, "{ppb} {local:?}");
            }
        }
    }
}
