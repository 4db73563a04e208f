//! What can be wrong with an input.

use core::fmt;

/// An input out of its range, or an output that does not fit: the closed list of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum OutOfRange {
    /// The TTL is zero, or shorter than its heartbeats have microseconds.
    TtlTooShort,
    /// A result that grows with the TTL would not fit 2⁶³−1 µs.
    TtlTooLong,
    /// A drift of 10⁹ ppb (100 %) or more.
    Drift,
    /// Fewer than two heartbeats per TTL.
    Attempts,
    /// A step of the TTL of zero.
    Granularity,
    /// No node at all, or so many that their quorum does not fit 2⁶³−1.
    Nodes,
    /// More nodes granted a lock than there are.
    Granted,
    /// A drift factor of 10⁹ ppb (100 %) or more.
    DriftFactor,
    /// An instant that the other clock cannot show.
    Instant,
}

impl OutOfRange {
    /// The contract's name of the field that is to blame.
    pub const fn field(self) -> &'static str {
        match self {
            Self::TtlTooShort | Self::TtlTooLong => "ttl_us",
            Self::Drift => "drift_ppb",
            Self::Attempts => "attempts",
            Self::Granularity => "granularity_us",
            Self::Nodes => "nodes",
            Self::Granted => "granted",
            Self::DriftFactor => "drift_factor_ppb",
            Self::Instant => "instant",
        }
    }

    /// What is wrong, and what would be right, without the field's name.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TtlTooShort => "a TTL is at least 1 µs, and in a plan at least one per heartbeat",
            Self::TtlTooLong => "the result does not fit 2⁶³−1 µs; a shorter TTL or smaller latencies are needed",
            Self::Drift => "a drift must stay below 1000000000 ppb (100 %)",
            Self::Attempts => "a lease needs at least 2 heartbeats per TTL",
            Self::Granularity => "the coordinator's step of the TTL is at least 1 µs",
            Self::Nodes => "a quorum needs at least 1 node, and itself fits 2⁶³−1",
            Self::Granted => "no more nodes can grant a lock than there are",
            Self::DriftFactor => "a drift factor must stay below 1000000000 ppb (100 %)",
            Self::Instant => "the instant lies past the end of that clock",
        }
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field(), self.reason())
    }
}

impl core::error::Error for OutOfRange {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::string::ToString;

    #[test]
    fn each_reason_names_its_field_and_is_told_apart() {
        let all = [
            (OutOfRange::TtlTooShort, "ttl_us: "),
            (OutOfRange::TtlTooLong, "ttl_us: "),
            (OutOfRange::Drift, "drift_ppb: "),
            (OutOfRange::Attempts, "attempts: "),
            (OutOfRange::Granularity, "granularity_us: "),
            (OutOfRange::Nodes, "nodes: "),
            (OutOfRange::Granted, "granted: "),
            (OutOfRange::DriftFactor, "drift_factor_ppb: "),
            (OutOfRange::Instant, "instant: "),
        ];
        let mut reasons = BTreeSet::new();
        for (error, field) in all {
            assert_eq!(error.to_string(), std::format!("{field}{}", error.reason()));
            assert!(error.reason().len() > 20 && reasons.insert(error.reason()), "{error}");
        }
    }
}
