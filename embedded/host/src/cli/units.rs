//! Durations, drifts and counts as flags: read by the core, rounded as the flag's meaning asks for.

use fencegate::{Duration, Round, parse_duration};

pub(crate) use fencegate::{UnitError, parse_count, parse_drift};

/// The value name of a flag that takes a duration; its field in the contract ends in `_us`.
pub(crate) const DURATION: &str = "DURATION";
/// The value name of a flag that takes a drift; its field in the contract ends in `_ppb`.
pub(crate) const DRIFT: &str = "DRIFT";

/// Reads what a holder has (a TTL, a window) for clap: rounds down.
pub(crate) fn has(text: &str) -> Result<Duration, UnitError> {
    parse_duration(text, Round::Down)
}

/// Reads what is spent or waited for (everything else) for clap: rounds up.
pub(crate) fn spends(text: &str) -> Result<Duration, UnitError> {
    parse_duration(text, Round::Up)
}
