//! One output: what it is set to, since when, and whether its contact follows.

use fencegate::{Duration, Instant};
use fencegate_wire::{OutputConfig, SafeAction};

/// What one output is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(crate) value: i32,
    /// When it last went to its safe value or left it.
    since: Instant,
    /// Since when its contact has not followed.
    astray: Option<Instant>,
}

impl Line {
    /// An output at boot: safe, and off since then as far as anybody knows.
    pub(crate) const fn new(config: &OutputConfig, now: Instant) -> Self {
        Self { value: config.safe, since: now, astray: None }
    }

    /// Sets it.
    pub(crate) fn set(&mut self, config: &OutputConfig, value: i32, now: Instant) {
        if (self.value == config.safe) != (value == config.safe) {
            self.since = now;
        }
        if (self.value == 0) != (value == 0) {
            self.astray = None; // the contact has its time again
        }
        self.value = value;
    }

    /// Whether a command may set it to `value` now: its least on or off time has passed, if the value ends one.
    pub(crate) fn may_become(&self, config: &OutputConfig, value: i32, now: Instant) -> bool {
        let least = match (self.value == config.safe, value == config.safe) {
            (true, false) => config.least_off,
            (false, true) => config.least_on,
            _ => return true,
        };
        now.since(self.since).is_ok_and(|passed| passed >= least)
    }

    /// Looks at its contact; whether it has gone astray for too long.
    pub(crate) fn follow(&mut self, config: &OutputConfig, closed: bool, now: Instant) -> bool {
        let Some(within) = config.feedback else { return false };
        if closed == (self.value != 0) {
            self.astray = None;
            return false;
        }
        let since = *self.astray.get_or_insert(now);
        now.since(since).is_ok_and(|astray| astray >= within)
    }
}

/// The value of an output that was let go of `passed` ago, when it had the value `from`.
pub(crate) fn on_its_way(config: &OutputConfig, from: i32, passed: Duration) -> i32 {
    if passed >= config.action.time() {
        return config.safe;
    }
    match config.action {
        SafeAction::AtOnce => config.safe,
        SafeAction::Keep { .. } => from,
        SafeAction::Hold { value, .. } => value,
        SafeAction::Ramp { time } => {
            // In steps of a 1,024th, which no width of time or value overflows: both are below 2⁶³, the step below 2¹⁰.
            let step = passed.as_micros() / (time.as_micros() / 1_024).max(1);
            let way = i64::from(config.safe) - i64::from(from);
            let gone = way * i64::try_from(step.min(1_024)).unwrap_or(1_024) / 1_024;
            i32::try_from(i64::from(from) + gone).unwrap_or(config.safe)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u32) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    #[test]
    fn a_ramp_goes_straight_down_and_never_up() {
        let motor = OutputConfig {
            min: i32::MIN,
            max: i32::MAX,
            action: SafeAction::Ramp { time: MS(300) },
            ..OutputConfig::switch()
        };
        for from in [i32::MIN, -100, -1, 0, 1, 77, i32::MAX] {
            let mut last = from;
            for us in (0..=300_000).step_by(997).chain([299_999, 300_000, 400_000]) {
                let value = on_its_way(&motor, from, Duration::from_micros(us));
                assert!(value.unsigned_abs() <= last.unsigned_abs() || us > 299_000, "{value} after {last}");
                assert!(value.signum() * from.signum() >= 0, "{value} from {from}");
                last = value;
            }
            assert_eq!(last, 0);
            let half = on_its_way(&motor, from, MS(150));
            assert!((i64::from(half) - i64::from(from) / 2).abs() <= (i64::from(from).abs() / 512).max(1), "{half}");
        }
    }

    #[test]
    fn a_hold_and_a_keep_last_as_long_as_they_say() {
        let brake = OutputConfig {
            powered: true,
            action: SafeAction::Hold { value: 1, time: MS(500) },
            ..OutputConfig::switch()
        };
        assert_eq!((on_its_way(&brake, 0, MS(499)), on_its_way(&brake, 0, MS(500))), (1, 0));
        let valve = OutputConfig { action: SafeAction::Keep { time: MS(500) }, ..OutputConfig::switch() };
        assert_eq!((on_its_way(&valve, 1, MS(499)), on_its_way(&valve, 1, MS(500))), (1, 0));
        assert_eq!(on_its_way(&OutputConfig::switch(), 1, MS(0)), 0);
    }

    #[test]
    fn the_least_times_count_from_the_last_change() {
        let pump = OutputConfig { max: 2, least_on: MS(100), least_off: MS(50), ..OutputConfig::switch() };
        let mut line = Line::new(&pump, at(0));
        assert!(!line.may_become(&pump, 1, at(49)), "off since boot as far as anybody knows");
        assert!(line.may_become(&pump, 1, at(50)));
        line.set(&pump, 1, at(50));
        line.set(&pump, 2, at(120));
        assert!(line.may_become(&pump, 1, at(121)), "from one value to another it stays on");
        assert!(!line.may_become(&pump, 0, at(149)));
        assert!(line.may_become(&pump, 0, at(150)));
        assert!(!line.may_become(&pump, 0, at(40)), "a clock that ran backwards proves nothing");
    }

    #[test]
    fn a_contact_has_its_time_after_each_change_and_then_it_is_astray() {
        let relay = OutputConfig { feedback: Some(MS(30)), ..OutputConfig::switch() };
        let mut line = Line::new(&relay, at(0));
        assert!(!line.follow(&relay, false, at(0)));
        line.set(&relay, 1, at(10));
        assert!(!line.follow(&relay, false, at(10)));
        assert!(!line.follow(&relay, true, at(35)), "in time");
        line.set(&relay, 0, at(40));
        assert!(!line.follow(&relay, true, at(40)));
        assert!(!line.follow(&relay, true, at(69)));
        assert!(line.follow(&relay, true, at(70)), "welded");
        assert!(!line.follow(&OutputConfig::switch(), true, at(99)), "none is wired");
    }
}
