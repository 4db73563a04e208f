//! The host's clock: the time since boot, the machine's sleep included.
//!
//! `CLOCK_BOOTTIME` on Linux and Android. The standard library's `Instant` stops there while the machine sleeps, and
//! the lease does not. macOS's monotonic clock and Windows' performance counter go on in sleep, so they serve; what
//! the latter counts from is this process's first reading, so an absolute instant means nothing to another process.
//!
//! All other Unixes (the BSDs, illumos and the like) are read by `CLOCK_MONOTONIC`, which need not go on in sleep: **a machine
//! there that sleeps with a lease takes the window for longer than it is.** Do not let it sleep, or have every resource behind
//! a fence. `fencegate hold` is for Linux alone.

use fencegate::Instant;
use std::time::Duration;

/// Whether an instant of this clock means the same to every program on this machine.
pub const IS_THE_MACHINES: bool = cfg!(unix);

/// The present, rounded up: no less time has passed than this says.
pub fn now() -> Instant {
    Instant::from_micros(micros(fencegate::Duration::ceil_from(since_boot())))
}

/// The start of something that is counted from here, rounded down: it began no later than this says.
pub fn start() -> Instant {
    Instant::from_micros(micros(fencegate::Duration::floor_from(since_boot())))
}

/// A clock past its end shows its end: everything is over then.
fn micros(d: Option<fencegate::Duration>) -> u64 {
    d.map_or(u64::MAX, fencegate::Duration::as_micros)
}

#[cfg(unix)]
fn since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let t = clock_gettime(CLOCK);
    // Neither is negative on these clocks.
    Duration::new(u64::try_from(t.tv_sec).unwrap_or(0), u32::try_from(t.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
fn since_boot() -> Duration {
    use std::sync::OnceLock;
    static FIRST: OnceLock<std::time::Instant> = OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_forward_and_a_start_is_never_after_the_present() {
        for _ in 0..1_000 {
            let (start, now) = (start(), now());
            assert!(start <= now);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_counts_from_boot() {
        let uptime = std::fs::read_to_string("/proc/uptime").expect("procfs");
        let uptime: f64 = uptime.split(' ').next().and_then(|s| s.parse().ok()).expect("seconds");
        #[expect(clippy::cast_precision_loss, reason = "a comparison to the second")]
        let now = now().as_micros() as f64 / 1e6;
        assert!((now - uptime).abs() < 1.0, "{now} is not {uptime}");
    }
}
