//! What the machine's clock is like: where it comes from, who slews it and by how much, and whether it may sleep.

use fencegate::{Drift, Duration};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::fs;

/// chrony's default `maxslewrate`.
const CHRONY: Drift = Drift::from_ppb(83_333_333);

/// The programs that discipline a clock, as the kernel shortens their names, and how fast each may slew it.
const DAEMONS: [(&str, Drift); 5] = [
    ("chronyd", CHRONY),
    // The kernel's own limit for what goes through adjtimex(2).
    ("ntpd", Drift::from_ppm(500)),
    ("systemd-timesyn", Drift::from_ppm(500)),
    ("ptp4l", Drift::from_ppm(500)),
    ("phc2sys", Drift::from_ppm(500)),
];

/// Where nothing disciplines it in sight: the most that any of them may, since outside a container's sight somebody may do so.
/// Whether the kernel takes the clock for synchronised, adjtimex(2) alone would say, and that is not to be had without unsafe
/// code; nor would it say by whom.
const OTHERWISE: Drift = CHRONY;

/// The clock of this machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Clock {
    /// What the kernel counts time with; `null` where it does not say.
    #[serde(rename = "clock_source")]
    pub(super) source: Option<String>,
    /// The program that disciplines it, as far as this process sees.
    pub(super) disciplined_by: Option<&'static str>,
    /// How fast it was slewed just now, against the hardware's own pace; positive is fast.
    pub(super) slew_ppb: i64,
    /// How long the machine has slept since it was booted.
    #[serde(rename = "slept_us")]
    pub(super) slept: Duration,
    /// Whether it can be suspended.
    pub(super) can_suspend: bool,
    /// The bound that follows for this clock.
    #[serde(rename = "clock_drift_ppb")]
    pub(super) drift: Drift,
    /// Whether that is an assumption, since nobody was seen to discipline the clock.
    #[serde(rename = "clock_drift_assumed")]
    pub(super) assumed: bool,
}

fn nanoseconds(clock: ClockId) -> i128 {
    let t = clock_gettime(clock);
    i128::from(t.tv_sec) * 1_000_000_000 + i128::from(t.tv_nsec)
}

/// Both clocks, as nearly at once as two calls can be: the reading of one lies between two of the other.
fn both() -> (i128, i128) {
    let reading = || {
        let (before, raw) = (nanoseconds(ClockId::Monotonic), nanoseconds(ClockId::MonotonicRaw));
        let after = nanoseconds(ClockId::Monotonic);
        (after - before, before + (after - before) / 2, raw)
    };
    let best = (0..32).map(|_| reading()).min_by_key(|(apart, ..)| *apart);
    best.map_or((0, 0), |(_, slewed, raw)| (slewed, raw))
}

/// Of two readings of a slewed clock and of the raw one: the rate of their difference, away from zero.
fn rate(slewed: i128, raw: i128) -> i64 {
    if raw <= 0 {
        return 0;
    }
    let scaled = (slewed - raw) * 1_000_000_000;
    let away = if scaled < 0 { -((-scaled + raw - 1) / raw) } else { (scaled + raw - 1) / raw };
    i64::try_from(away).unwrap_or(if away < 0 { i64::MIN } else { i64::MAX })
}

/// The names of all processes in sight.
fn processes() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok()).map(|name| name.trim().to_owned())
}

impl Clock {
    /// Looks at it for as long.
    pub(super) fn look(span: Duration) -> Self {
        let (slewed, raw) = both();
        std::thread::sleep(span.into());
        let (then, then_raw) = both();
        let slew_ppb = rate(then - slewed, then_raw - raw);
        let names: Vec<_> = processes().collect();
        let daemon = DAEMONS.iter().find(|(name, _)| names.iter().any(|found| found == name));
        let slept = nanoseconds(ClockId::Boottime) - nanoseconds(ClockId::Monotonic);
        // Two calls apart; no machine sleeps for less than that.
        let slept = u64::try_from(slept / 1_000_000_000).unwrap_or(0);
        let file =
            |path| fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self {
            source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            disciplined_by: daemon.map(|(name, _)| *name),
            slew_ppb,
            slept: Duration::from_micros(slept.saturating_mul(1_000_000)),
            can_suspend: file("/sys/power/state").is_some(),
            drift: bound(daemon.map_or(OTHERWISE, |(_, drift)| *drift), slew_ppb),
            assumed: daemon.is_none(),
        }
    }
}

/// What a daemon may do, or what was seen where that is more.
fn bound(may: Drift, seen_ppb: i64) -> Drift {
    Drift::from_ppb(may.as_ppb().max(seen_ppb.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_rounds_away_from_zero() {
        const S: i128 = 1_000_000_000;
        assert_eq!(rate(S, S), 0);
        assert_eq!(rate(S + 500_000, S), 500_000);
        assert_eq!(rate(2 * S - 1, 2 * S), -1);
        assert_eq!(rate(2 * S + 1, 2 * S), 1);
        assert_eq!(rate(1, 0), 0);
    }

    #[test]
    fn what_is_not_seen_is_as_bad_as_the_worst_that_could_be() {
        assert!(DAEMONS.iter().all(|(_, drift)| *drift <= OTHERWISE));
    }

    #[test]
    fn what_was_seen_counts_where_it_is_more() {
        assert_eq!(bound(Drift::from_ppm(500), -499_999), Drift::from_ppm(500));
        assert_eq!(bound(Drift::from_ppm(500), -600_000), Drift::from_ppm(600));
    }
}
