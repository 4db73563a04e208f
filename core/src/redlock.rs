//! Redlock: what is left of a lock on independent nodes, and how many of them it takes.
//!
//! The formula is that of "Distributed Locks with Redis" (redis/redis-doc docs/manual/patterns/distributed-locks.md, §
//! The Redlock Algorithm: `MIN_VALIDITY=TTL-(T2-T1)-CLOCK_DRIFT`), the drift that of its clients
//! (leandromoreira/redlock-rb lib/redlock/client.rb: 1 % of the TTL and 2 ms). Those round the drift down and let a
//! validity of zero count as held; here it is rounded up, and zero is over.

use crate::{Drift, Duration, OutOfRange};

/// What a Redlock client allows for drift where nothing else is said: 1 % of the TTL …
pub const DEFAULT_DRIFT_FACTOR: Drift = Drift::from_ppm(10_000);
/// … and 2 ms, for the granularity of Redis's expiry and for short TTLs.
pub const DEFAULT_DRIFT_FIXED: Duration = Duration::from_millis(2);

/// What the validity of a Redlock follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RedlockInput {
    /// T, the time to live of the keys; at least 1 µs.
    #[cfg_attr(feature = "serde", serde(rename = "ttl_us"))]
    pub ttl: Duration,
    /// What passed from before the first node was asked until the last one answered.
    #[cfg_attr(feature = "serde", serde(rename = "elapsed_us"))]
    pub elapsed: Duration,
    /// N, the nodes that there are; at least 1.
    pub nodes: u64,
    /// The nodes that granted it; at most N.
    pub granted: u64,
    /// The part of the TTL that is allowed for drift; below 100 %.
    #[cfg_attr(feature = "serde", serde(rename = "drift_factor_ppb"))]
    pub drift_factor: Drift,
    /// What is allowed for drift whatever the TTL.
    #[cfg_attr(feature = "serde", serde(rename = "drift_fixed_us"))]
    pub drift_fixed: Duration,
}

/// What is left of a Redlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Redlock {
    /// ⌈factor·T⌉ + fixed.
    #[cfg_attr(feature = "serde", serde(rename = "drift_us"))]
    pub drift: Duration,
    /// max(0, T − elapsed − drift).
    #[cfg_attr(feature = "serde", serde(rename = "validity_us"))]
    pub validity: Duration,
    /// ⌊N/2⌋ + 1.
    pub quorum: u64,
    /// validity > 0 and granted ≥ quorum.
    pub held: bool,
}

impl RedlockInput {
    /// A lock of `ttl` that all of `nodes` granted in no time, with the usual allowance for drift.
    pub const fn new(ttl: Duration, nodes: u64) -> Self {
        let (elapsed, granted) = (Duration::ZERO, nodes);
        Self { ttl, elapsed, nodes, granted, drift_factor: DEFAULT_DRIFT_FACTOR, drift_fixed: DEFAULT_DRIFT_FIXED }
    }

    /// What is left of the lock.
    ///
    /// # Errors
    /// [`OutOfRange`] for a TTL of zero, a drift factor of 100 % or more, nodes as in [`quorum`], more granted than there
    /// are nodes, or a result above 2⁶³−1.
    pub fn redlock(&self) -> Result<Redlock, OutOfRange> {
        let Quorum { quorum, .. } = quorum(self.nodes)?;
        if self.granted > self.nodes {
            return Err(OutOfRange::Granted);
        }
        if self.ttl.is_zero() {
            return Err(OutOfRange::TtlTooShort);
        }
        let drift = (self.drift_factor.of(self.ttl).map_err(|_| OutOfRange::DriftFactor)?)
            .checked_add(self.drift_fixed)
            .filter(|drift| *drift <= Duration::MAX_ANSWER)
            .ok_or(OutOfRange::TtlTooLong)?;
        let validity = self.ttl.less(self.elapsed).less(drift);
        if validity > Duration::MAX_ANSWER {
            return Err(OutOfRange::TtlTooLong);
        }
        let held = !validity.is_zero() && self.granted >= quorum;
        Ok(Redlock { drift, validity, quorum, held })
    }
}

/// How many of N nodes are needed, and how many may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Quorum {
    /// ⌊N/2⌋ + 1.
    pub quorum: u64,
    /// N − quorum.
    pub tolerates: u64,
}

/// The quorum of `nodes`.
///
/// # Errors
/// [`OutOfRange::Nodes`] for none at all (a majority of nothing is held by everybody), or where the quorum is above
/// 2⁶³−1.
pub const fn quorum(nodes: u64) -> Result<Quorum, OutOfRange> {
    let quorum = nodes / 2 + 1;
    if nodes == 0 || quorum > Duration::MAX_ANSWER.as_micros() {
        return Err(OutOfRange::Nodes);
    }
    Ok(Quorum { quorum, tolerates: nodes - quorum })
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    fn five(ttl: u64, elapsed: u64, granted: u64) -> Redlock {
        let input = RedlockInput { elapsed: US(elapsed), granted, ..RedlockInput::new(US(ttl), 5) };
        input.redlock().unwrap()
    }

    #[test]
    fn it_takes_time_left_and_a_majority() {
        let held = Redlock { drift: US(102_000), validity: US(9_598_000), quorum: 3, held: true };
        assert_eq!(five(10_000_000, 300_000, 3), held);
        assert_eq!(five(10_000_000, 300_000, 2), Redlock { held: false, ..held });
        assert!(five(100_000, 96_999, 5).held, "one microsecond left");
        assert!(!five(100_000, 97_000, 5).held, "equality is expiry");
        assert!(!five(100_000, u64::MAX, 5).held);
        assert_eq!(five(1, 0, 5).drift, US(2_001), "a hundredth of a microsecond rounds up");
    }

    #[test]
    fn majorities() {
        let parts = |nodes| quorum(nodes).map(|q| (q.quorum, q.tolerates));
        for (nodes, want) in [(1, (1, 0)), (2, (2, 0)), (3, (2, 1)), (4, (3, 1)), (5, (3, 2))] {
            assert_eq!(parts(nodes), Ok(want), "{nodes}");
        }
        assert_eq!(parts(u64::MAX - 2), Ok((i64::MAX.cast_unsigned(), i64::MAX.cast_unsigned() - 1)));
        for nodes in [0, u64::MAX - 1, u64::MAX] {
            assert_eq!(parts(nodes), Err(OutOfRange::Nodes), "{nodes}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let good = RedlockInput::new(US(10), 3);
        assert_eq!(RedlockInput { nodes: 0, ..good }.redlock(), Err(OutOfRange::Nodes));
        assert_eq!(RedlockInput { granted: 4, ..good }.redlock(), Err(OutOfRange::Granted));
        assert_eq!(RedlockInput { ttl: US(0), ..good }.redlock(), Err(OutOfRange::TtlTooShort));
        let factor = |ppb| RedlockInput { drift_factor: Drift::from_ppb(ppb), ..good }.redlock();
        assert_eq!(factor(1_000_000_000), Err(OutOfRange::DriftFactor));
        assert!(factor(999_999_999).is_ok());
        for fixed in [1 << 63, u64::MAX] {
            assert_eq!(RedlockInput { drift_fixed: US(fixed), ..good }.redlock(), Err(OutOfRange::TtlTooLong));
        }
        let exact = RedlockInput { drift_factor: Drift::ZERO, drift_fixed: US(0), ttl: US(1 << 63), ..good };
        assert_eq!(exact.redlock(), Err(OutOfRange::TtlTooLong));
        assert!(RedlockInput { elapsed: US(1), ..exact }.redlock().unwrap().held);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn json_has_the_contracts_names_and_order() {
        let input = RedlockInput::new(US(10_000_000), 5);
        assert_eq!(
            serde_json::to_string(&input).unwrap(),
            r#"{"ttl_us":10000000,"elapsed_us":0,"nodes":5,"granted":5,"drift_factor_ppb":10000000,"drift_fixed_us":2000}"#
        );
        assert_eq!(
            serde_json::to_string(&input.redlock().unwrap()).unwrap(),
            r#"{"drift_us":102000,"validity_us":9898000,"quorum":3,"held":true}"#
        );
        assert_eq!(serde_json::to_string(&quorum(5).unwrap()).unwrap(), r#"{"quorum":3,"tolerates":2}"#);
    }
}
