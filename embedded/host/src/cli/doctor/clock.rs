//! What the machine's clock is like: where it comes from, who slews it and by how much, and whether it may sleep.

use fencegate::{Drift, Duration};
use rustix::time::{ClockId, clock_gettime};
use serde::{Serialize, Serializer};
use std::fs;
use std::path::Path;

/// A program that disciplines a clock.
pub(super) struct Daemon {
    /// As the kernel shortens it.
    pub(super) name: &'static str,
    /// How fast it may make the clock lose or gain, as it comes.
    drift: Drift,
    /// What of its configuration that depends on.
    pub(super) set_by: &'static str,
}

impl Serialize for Daemon {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(to)
    }
}

/// All that are known, the worst first. No 500 ppm: that is the kernel's limit for a frequency, and nobody keeps to it. Some
/// change the tick as well, by up to a tenth; and of an offset that the kernel is to take off, it takes a part each second:
/// one of 2 to the power of 2 + the time constant.
const DAEMONS: [Daemon; 6] = [
    // linuxptp's clockadj_max_freq: the system's clock is steered by its tick too. phc2sys does so, and ptp4l where it has
    // software time stamps.
    Daemon { name: "phc2sys", drift: Drift::from_ppm(100_000), set_by: "max_frequency" },
    Daemon { name: "ptp4l", drift: Drift::from_ppm(100_000), set_by: "max_frequency" },
    // chrony.conf(5): 83333.333 ppm.
    Daemon { name: "chronyd", drift: Drift::from_ppb(83_333_333), set_by: "maxslewrate" },
    // Up to 0.4 s, polled every 32 s or more, which is a time constant of 1: an eighth a second. And a frequency.
    Daemon { name: "systemd-timesyn", drift: Drift::from_ppm(50_500), set_by: "PollIntervalMinSec" },
    // Up to 128 ms, with a time constant of 4 where it polls every 16 s, and more by default. BusyBox's is about the same.
    Daemon { name: "ntpd", drift: Drift::from_ppm(2_500), set_by: "minpoll" },
    // ntpd-rs: a slew of 200 ppm, on a frequency of up to 495.
    Daemon { name: "ntp-daemon", drift: Drift::from_ppm(695), set_by: "slew-maximum-frequency-offset" },
];

/// Where none of them is in sight: the most that any of them may, since outside a container's sight somebody may do so.
const OTHERWISE: Drift = DAEMONS[0].drift;

/// A file that is there once systemd-timesyncd has reached a server since the machine was booted. What the kernel
/// takes the clock for, adjtimex(2) alone would say, and that is not to be had without unsafe code; nor would it say who.
const SYNCHRONIZED: &str = "/run/systemd/timesync/synchronized";

/// The clock of this machine.
#[derive(Serialize)]
pub(super) struct Clock {
    /// What the kernel counts time with; `null` where it does not say.
    #[serde(rename = "clock_source")]
    pub(super) source: Option<String>,
    /// The worst program of those in sight whose name is that of one that disciplines clocks. That it does so is a guess.
    #[serde(rename = "seen_running")]
    pub(super) seen: Option<&'static Daemon>,
    /// Whether systemd-timesyncd has reached a server since boot; `null` where it was not seen.
    pub(super) synchronized: Option<bool>,
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
    /// Whether that is for whoever may be out of sight, since no such program was seen running.
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
        let runs = |name: &str| names.iter().any(|found| found == name);
        let seen = DAEMONS.iter().find(|daemon| runs(daemon.name));
        let slept = nanoseconds(ClockId::Boottime) - nanoseconds(ClockId::Monotonic);
        // Two calls apart; no machine sleeps for less than that.
        let slept = u64::try_from(slept / 1_000_000_000).unwrap_or(0);
        let file =
            |path| fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self {
            source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            seen,
            synchronized: runs("systemd-timesyn").then(|| Path::new(SYNCHRONIZED).exists()),
            slew_ppb,
            slept: Duration::from_micros(slept.saturating_mul(1_000_000)),
            can_suspend: file("/sys/power/state").is_some(),
            drift: bound(seen.map_or(OTHERWISE, |daemon| daemon.drift), slew_ppb),
            assumed: seen.is_none(),
        }
    }
}

/// What a daemon may do, or what the clock was seen to do where that is more.
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
        assert!(DAEMONS.iter().all(|daemon| daemon.drift <= OTHERWISE));
    }

    #[test]
    fn of_several_the_worst_is_found_and_by_the_name_that_the_kernel_has() {
        assert!(DAEMONS.windows(2).all(|pair| pair[0].drift >= pair[1].drift));
        assert!(DAEMONS.iter().all(|daemon| daemon.name.len() <= 15));
    }

    #[test]
    fn what_was_seen_counts_where_it_is_more() {
        assert_eq!(bound(Drift::from_ppm(500), -499_999), Drift::from_ppm(500));
        assert_eq!(bound(Drift::from_ppm(500), -600_000), Drift::from_ppm(600));
    }
}
