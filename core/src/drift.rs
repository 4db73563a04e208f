//! How far two clocks may run apart.

use crate::{Duration, OutOfRange};
use core::ops::Add;

/// Parts in a whole: drift is counted in parts per billion.
pub const PPB: u64 = 1_000_000_000;

/// A bound on the rate difference of clocks, in whole parts per billion (ppb).
///
/// The drift of a lease is the sum of the holder's own bound and that of whatever clock times the expiry: add them
/// with `+`. Any sum may be written down; one of 10⁹ ppb or more (a clock that may stand still) is refused where it
/// is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Drift(u64);

impl Drift {
    /// Clocks that run at exactly one rate (one clock, asked twice).
    pub const ZERO: Self = Self(0);

    /// A bound of `ppb` parts per billion.
    pub const fn from_ppb(ppb: u64) -> Self {
        Self(ppb)
    }

    /// A bound of `ppm` parts per million; exact for every `u32`.
    pub const fn from_ppm(ppm: u32) -> Self {
        Self(ppm as u64 * 1_000)
    }

    /// The parts per billion.
    pub const fn as_ppb(self) -> u64 {
        self.0
    }

    /// This drift if it is one that can be reckoned with.
    pub(crate) const fn checked(self) -> Result<Self, OutOfRange> {
        if self.0 < PPB { Ok(self) } else { Err(OutOfRange::Drift) }
    }

    /// ⌈T·ε⌉: what a clock within this bound may be off after `t`, rounded up.
    ///
    /// With T = q·10⁹ + r this is q·ε + ⌈r·ε/10⁹⌉, exact in 64 bits since r·ε < 10¹⁸ and the whole is at most T.
    ///
    /// # Errors
    /// [`OutOfRange::Drift`] from 10⁹ ppb on.
    pub const fn of(self, t: Duration) -> Result<Duration, OutOfRange> {
        match self.checked() {
            Ok(Self(ppb)) => {
                let us = t.as_micros();
                // A lease of less than a quarter of an hour needs no wide division.
                let (q, r) = if us < PPB { (0, us) } else { (us / PPB, us % PPB) };
                Ok(Duration::from_micros(q * ppb + billionths(r * ppb)))
            }
            Err(e) => Err(e),
        }
    }

    /// ⌈T·10⁹/(10⁹−ε)⌉: how long one must wait on a clock within this bound to be sure that `t` has passed.
    ///
    /// With D = 10⁹−ε and T = q·D + r this is q·10⁹ + ⌈r·10⁹/D⌉, exact in 64 bits since r < D ≤ 10⁹.
    ///
    /// # Errors
    /// [`OutOfRange::Drift`] from 10⁹ ppb on; [`OutOfRange::TtlTooLong`] where the answer does not fit 64 bits.
    pub const fn outlast(self, t: Duration) -> Result<Duration, OutOfRange> {
        match self.checked() {
            Ok(Self(ppb)) => {
                let d = PPB - ppb;
                let (q, r) = (t.as_micros() / d, t.as_micros() % d);
                match q.checked_mul(PPB) {
                    Some(whole) => match whole.checked_add((r * PPB).div_ceil(d)) {
                        Some(us) => Ok(Duration::from_micros(us)),
                        None => Err(OutOfRange::TtlTooLong),
                    },
                    None => Err(OutOfRange::TtlTooLong),
                }
            }
            Err(e) => Err(e),
        }
    }
}

/// ⌈x/10⁹⌉ for x < 10¹⁸, by two multiplications: a Cortex-M0+ divides 64 bits in hundreds of instructions.
///
/// With k = ⌊x/2²⁹⌋ and M = ⌊2⁶¹/10⁹⌋, e = ⌊k·M/2³²⌋ is at most x/10⁹ and less than 2 below it: the three roundings lose
/// less than M/2³², k/2³² and 1, together less than 1.98. So x − e·10⁹ is below 2·10⁹, and 32 bits of it are enough.
/// (The method is that of T. Granlund and P. L. Montgomery, "Division by invariant integers using multiplication", 1994.)
#[expect(clippy::cast_possible_truncation, reason = "k < 2³¹, e < 10⁹, and the rest fits 32 bits")]
const fn billionths(x: u64) -> u64 {
    const WHOLE: u32 = PPB as u32;
    const M: u32 = ((1 << 61) / PPB) as u32;
    let k = (x >> 29) as u32;
    let e = ((k as u64 * M as u64) >> 32) as u32;
    let rest = (x as u32).wrapping_sub(e.wrapping_mul(WHOLE));
    (e + (rest > 0) as u32 + (rest > WHOLE) as u32) as u64
}

impl Add for Drift {
    type Output = Self;

    /// The bound of two clocks together. A sum past 64 bits stays at the top of the range, which no use accepts.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both roundings against 128-bit arithmetic, at the edges of every operand.
    #[test]
    fn both_roundings_are_exact() {
        let edges = |top: u64| [0, 1, 2, 3, 7, top / 3, top / 2, top - 2, top - 1, top];
        for ppb in edges(PPB - 1) {
            for t in edges(u64::MAX).into_iter().chain(edges(PPB)).chain(edges(i64::MAX as u64)) {
                let (drift, d) = (Drift::from_ppb(ppb), Duration::from_micros(t));
                let up = (u128::from(t) * u128::from(ppb)).div_ceil(u128::from(PPB));
                assert_eq!(u128::from(drift.of(d).unwrap().as_micros()), up, "⌈{t}·{ppb} ppb⌉");
                let wait = (u128::from(t) * u128::from(PPB)).div_ceil(u128::from(PPB - ppb));
                let got = drift.outlast(d).map(|d| u128::from(d.as_micros()));
                assert_eq!(got.ok(), u64::try_from(wait).ok().map(u128::from), "⌈{t}/(1−{ppb} ppb)⌉");
            }
        }
    }

    /// Around every kind of multiple, where an estimate that is one off would show.
    #[test]
    fn billionths_round_up_by_multiplication() {
        // Interpreted (Miri), only some of them.
        let step = if cfg!(miri) { 4_099 } else { 1 };
        for n in (0..1_000).chain((0..PPB).step_by(9_999_991)).chain(PPB - 1_000..PPB).step_by(step) {
            for x in [n * PPB, n * PPB + 1, n * PPB + PPB / 2, n * PPB + PPB - 1] {
                assert_eq!(billionths(x), x.div_ceil(PPB), "⌈{x}/10⁹⌉");
            }
        }
        for n in (0..1 << 20).step_by(step) {
            let x = (n << 29) * 1_771;
            for x in [x, (x + (1 << 29) - 1).min(PPB * PPB - 1)] {
                assert_eq!(billionths(x), x.div_ceil(PPB), "⌈{x}/10⁹⌉");
            }
        }
    }

    #[test]
    fn a_clock_that_may_stand_still_is_refused() {
        for drift in [Drift::from_ppb(PPB), Drift::from_ppb(u64::MAX) + Drift::from_ppm(1)] {
            assert_eq!(drift.of(Duration::from_secs(1)), Err(OutOfRange::Drift));
            assert_eq!(drift.outlast(Duration::from_secs(1)), Err(OutOfRange::Drift));
        }
    }
}
