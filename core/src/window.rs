//! The window: for how long a holder may rely on its lease, and a gate on its holder.

use crate::{Drift, Duration, OutOfRange};

/// When the holder starts the timer of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Start {
    /// Before the request leaves: latency then needs no allowance, since the coordinator's timer starts later.
    #[default]
    Send,
    /// When the reply arrives: the round trip is subtracted, since the coordinator's timer started within it.
    Grant,
}

/// What the window of a lease follows from.
///
/// The rule is that of C. G. Gray and D. R. Cheriton, "Leases: an efficient fault-tolerant mechanism for distributed
/// file cache consistency" (SOSP 1989), §3: a term shortened by the transmission time and a clock uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WindowInput {
    /// T, the lease as the coordinator grants it.
    #[cfg_attr(feature = "serde", serde(rename = "ttl_us"))]
    pub ttl: Duration,
    /// ε, the drift of both clocks together.
    #[cfg_attr(feature = "serde", serde(rename = "drift_ppb"))]
    pub drift: Drift,
    /// d, the worst round trip of an acquire or renew call.
    #[cfg_attr(feature = "serde", serde(rename = "rtt_us"))]
    pub rtt: Duration,
    /// When the timer starts.
    pub start: Start,
    /// Worst offset between two wall clocks; only for a deadline that one machine writes and another reads.
    #[cfg_attr(feature = "serde", serde(rename = "clock_offset_us"))]
    pub clock_offset: Duration,
}

/// The window of a lease, and what was taken off for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Window {
    /// ⌈T·ε⌉ + (d where the timer starts at the grant) + clock offset.
    #[cfg_attr(feature = "serde", serde(rename = "margin_us"))]
    pub margin: Duration,
    /// max(0, T − margin): the lease is over once this much has passed since the start of the timer.
    #[cfg_attr(feature = "serde", serde(rename = "window_us"))]
    pub window: Duration,
    /// Whether anything is left: window > 0.
    pub safe: bool,
}

impl WindowInput {
    /// A lease of `ttl` between clocks that differ by at most `drift`; the timer starts at send, and the rest is zero.
    pub const fn new(ttl: Duration, drift: Drift) -> Self {
        Self { ttl, drift, rtt: Duration::ZERO, start: Start::Send, clock_offset: Duration::ZERO }
    }

    /// The window: T·(1−ε), less the round trip where the timer starts at the grant, less the clock offset.
    ///
    /// # Errors
    /// [`OutOfRange`] for a TTL of zero, a drift of 100 % or more, or a result above 2⁶³−1 µs.
    pub fn window(&self) -> Result<Window, OutOfRange> {
        if self.ttl.is_zero() {
            return Err(OutOfRange::TtlTooShort);
        }
        let latency = match self.start {
            Start::Send => Duration::ZERO,
            Start::Grant => self.rtt,
        };
        let margin = (self.drift.of(self.ttl)?.checked_add(latency))
            .and_then(|m| m.checked_add(self.clock_offset))
            .filter(|m| *m <= Duration::MAX_ANSWER)
            .ok_or(OutOfRange::TtlTooLong)?;
        let window = self.ttl.less(margin);
        if window > Duration::MAX_ANSWER {
            return Err(OutOfRange::TtlTooLong);
        }
        Ok(Window { margin, window, safe: !window.is_zero() })
    }
}

/// What a gate takes off a holder's window before it counts it on its own clock, all of it provisioned.
///
/// With w what the holder had left when it *received* the challenge, the gate counts w′ = ⌊w·(1−ε)⌋ − L − A from when
/// it *issued* that challenge. The challenge was issued before it was received, so the output is safe before the
/// holder's own deadline, whatever the two clocks read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GateTiming {
    /// ε, the gate's own drift bound.
    pub drift: Drift,
    /// L, the gate's worst lateness: interrupt-off time included.
    pub lateness: Duration,
    /// A, the actuator's reaction time, the length of a safe action included.
    pub reaction: Duration,
    /// The longest window that the gate honours; a longer one is clamped to it.
    pub longest_window: Duration,
}

impl GateTiming {
    /// w′ for a holder's `w`, or `None` where nothing of the window is left.
    ///
    /// # Errors
    /// [`OutOfRange::Drift`] from 10⁹ ppb on.
    pub fn window(&self, w: Duration) -> Result<Option<Duration>, OutOfRange> {
        let w = w.min(self.longest_window);
        let left = w.less(self.drift.of(w)?).less(self.lateness).less(self.reaction);
        Ok((!left.is_zero()).then_some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn latency_counts_once_and_only_from_the_grant() {
        let mut lease = WindowInput::new(US(10_000_000), Drift::from_ppm(1_000));
        lease.rtt = US(5_000);
        assert_eq!(lease.window().unwrap().window, US(9_990_000));
        lease.start = Start::Grant;
        assert_eq!(lease.window().unwrap().window, US(9_985_000));
    }

    #[test]
    fn a_margin_as_long_as_the_lease_leaves_nothing() {
        let mut lease = WindowInput::new(US(100), Drift::ZERO);
        lease.clock_offset = US(100);
        assert_eq!(lease.window(), Ok(Window { margin: US(100), window: Duration::ZERO, safe: false }));
        lease.clock_offset = US(99);
        assert_eq!(lease.window(), Ok(Window { margin: US(99), window: US(1), safe: true }));
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_never_a_number() {
        let mut lease = WindowInput::new(US(u64::MAX), Drift::ZERO);
        assert_eq!(lease.window(), Err(OutOfRange::TtlTooLong));
        lease.clock_offset = US(u64::MAX);
        assert_eq!(lease.window(), Err(OutOfRange::TtlTooLong));
        lease.clock_offset = US(1 << 63);
        assert_eq!(lease.window(), Err(OutOfRange::TtlTooLong), "the margin itself does not fit");
        lease.ttl = Duration::ZERO;
        assert_eq!(lease.window(), Err(OutOfRange::TtlTooShort));
    }

    #[test]
    fn the_gate_rounds_against_the_holder_and_clamps() {
        let gate = GateTiming {
            drift: Drift::from_ppm(100),
            lateness: US(5_000),
            reaction: US(1_000),
            longest_window: US(60_000_000),
        };
        assert_eq!(gate.window(US(2_000_001)), Ok(Some(US(2_000_001 - 201 - 6_000))));
        assert_eq!(gate.window(US(6_000)), Ok(None));
        assert_eq!(gate.window(US(6_001)), Ok(None), "one microsecond of drift eats the last one");
        assert_eq!(gate.window(US(6_002)), Ok(Some(US(1))));
        assert_eq!(gate.window(US(u64::MAX)), gate.window(US(60_000_000)));
    }
}
