//! The plan: how often to renew, when to cancel, and how long the next holder waits.

use crate::{Drift, Duration, OutOfRange, Start, Window, WindowInput};
use core::num::NonZeroU64;

/// What a plan follows from. Start with [`Plan::for_ttl`], name what differs from the default, and ask for the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlanInput {
    /// T, the lease as the coordinator grants it.
    #[cfg_attr(feature = "serde", serde(rename = "ttl_us"))]
    pub ttl: Duration,
    /// ε, the drift of both clocks together.
    #[cfg_attr(feature = "serde", serde(rename = "drift_ppb"))]
    pub drift: Drift,
    /// d, the worst round trip of an acquire or renew call.
    #[cfg_attr(feature = "serde", serde(rename = "rtt_us"))]
    pub rtt: Duration,
    /// When the holder starts its timer.
    pub start: Start,
    /// Worst offset between two wall clocks; only for a deadline that one machine writes and another reads.
    #[cfg_attr(feature = "serde", serde(rename = "clock_offset_us"))]
    pub clock_offset: Duration,
    /// n, heartbeats per TTL; at least 2. Below 3 the schedule is cut to what cancellation allows.
    pub attempts: u64,
    /// W, the longest time from the holder's last check of its lease until its action has taken effect.
    #[cfg_attr(feature = "serde", serde(rename = "work_us"))]
    pub work: Duration,
    /// P, a stall (collector, scheduler, bus) that the holder should ride through without losing the lease.
    #[cfg_attr(feature = "serde", serde(rename = "pause_us"))]
    pub pause: Duration,
    /// How often a challenger asks again.
    #[cfg_attr(feature = "serde", serde(rename = "poll_us"))]
    pub poll: Duration,
}

/// The plan of a lease: every figure rounded to its safe side, nothing beyond that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Plan {
    /// ⌈T·ε⌉ + (d where the timer starts at the grant) + clock offset.
    #[cfg_attr(feature = "serde", serde(rename = "margin_us"))]
    pub margin: Duration,
    /// max(0, T − margin): the lease is over once this much has passed since the start of the timer.
    #[cfg_attr(feature = "serde", serde(rename = "window_us"))]
    pub window: Duration,
    /// Whether anything is left: window > 0.
    pub safe: bool,
    /// h, the time between renewals: ⌊T/n⌋, cut to c − d where an answer would otherwise come after cancellation.
    #[cfg_attr(feature = "serde", serde(rename = "heartbeat_us"))]
    pub heartbeat: Duration,
    /// Whether an answer normally comes before cancellation trips.
    pub sustainable: bool,
    /// How many k ≥ 1 have k·h + d < window.
    pub renewals_in_window: u64,
    /// c = ⌊T/3⌋: cancellation trips once more than this has passed since the last answer, or at the window's end.
    #[cfg_attr(feature = "serde", serde(rename = "cancel_after_us"))]
    pub cancel_after: Duration,
    /// Renewals in a row that may go unanswered before cancellation: max(0, ⌊(c − d)/h⌋ − 1), 0 if not sustainable.
    pub misses_before_cancel: u64,
    /// max(0, window − h − d): a stall shorter than this, begun just before the first renewal, keeps the lease.
    #[cfg_attr(feature = "serde", serde(rename = "stall_tolerance_us"))]
    pub stall_tolerance: Duration,
    /// max(0, window − W): an action must begin strictly earlier than this after the start of the timer.
    #[cfg_attr(feature = "serde", serde(rename = "work_deadline_us"))]
    pub work_deadline: Duration,
    /// ⌈T·10⁹/(10⁹−ε)⌉ + 2d + poll: the longest wait for the next holder when this one dies.
    #[cfg_attr(feature = "serde", serde(rename = "takeover_us"))]
    pub takeover: Duration,
    /// ⌊3,600,000,000 / h⌋.
    pub renewals_per_hour: u64,
}

impl Plan {
    /// The input of a plan for a lease of `ttl`: no drift, no latency, the timer started at send, three heartbeats.
    pub const fn for_ttl(ttl: Duration) -> PlanInput {
        PlanInput {
            ttl,
            drift: Drift::ZERO,
            rtt: Duration::ZERO,
            start: Start::Send,
            clock_offset: Duration::ZERO,
            attempts: 3,
            work: Duration::ZERO,
            pause: Duration::ZERO,
            poll: Duration::ZERO,
        }
    }
}

impl PlanInput {
    /// Sets ε, the drift of the holder's clock and of the clock that times the expiry together.
    #[must_use]
    pub const fn drift(mut self, drift: Drift) -> Self {
        self.drift = drift;
        self
    }

    /// Sets d, the worst round trip of an acquire or renew call.
    #[must_use]
    pub const fn round_trip(mut self, rtt: Duration) -> Self {
        self.rtt = rtt;
        self
    }

    /// Sets when the holder starts its timer.
    #[must_use]
    pub const fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets n, the heartbeats per TTL.
    #[must_use]
    pub const fn attempts(mut self, attempts: u64) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets W, the longest time from the last check of the lease until the action has taken effect.
    #[must_use]
    pub const fn work(mut self, work: Duration) -> Self {
        self.work = work;
        self
    }

    /// Sets how often a challenger asks again.
    #[must_use]
    pub const fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// What the window alone follows from.
    pub const fn lease(&self) -> WindowInput {
        let Self { ttl, drift, rtt, start, clock_offset, .. } = *self;
        WindowInput { ttl, drift, rtt, start, clock_offset }
    }

    /// The plan.
    ///
    /// # Errors
    /// [`OutOfRange`] for a TTL below one microsecond per heartbeat, a drift of 100 % or more, fewer than two
    /// heartbeats, or a result above 2⁶³−1 µs.
    pub fn plan(&self) -> Result<Plan, OutOfRange> {
        let Self { ttl, rtt, .. } = *self;
        let drift = self.drift.checked()?;
        let attempts = NonZeroU64::new(self.attempts).filter(|n| n.get() > 1).ok_or(OutOfRange::Attempts)?;
        if ttl.as_micros() < self.attempts {
            return Err(OutOfRange::TtlTooShort);
        }
        let Window { margin, window, safe } = self.lease().window()?;
        let takeover = (drift.outlast(ttl)?.checked_add(rtt))
            .and_then(|wait| wait.checked_add(rtt))
            .and_then(|wait| wait.checked_add(self.poll))
            .filter(|wait| *wait <= Duration::MAX_ANSWER)
            .ok_or(OutOfRange::TtlTooLong)?;

        let cancel_after = Duration::from_micros(ttl.as_micros() / 3);
        let (h, sustainable) = self.heartbeat(attempts, cancel_after);
        let heartbeat = Duration::from_micros(h.get());
        let misses = if sustainable { (cancel_after.less(rtt).as_micros() / h).saturating_sub(1) } else { 0 };
        Ok(Plan {
            margin,
            window,
            safe,
            heartbeat,
            sustainable,
            // The largest k with k·h ≤ window − d − 1.
            renewals_in_window: window.less(rtt).as_micros().saturating_sub(1) / h,
            cancel_after,
            misses_before_cancel: misses,
            stall_tolerance: window.less(heartbeat).less(rtt),
            work_deadline: window.less(self.work),
            takeover,
            renewals_per_hour: 3_600_000_000 / h,
        })
    }

    /// h, at least one microsecond, and whether answers normally come before cancellation at `cancel_after`.
    fn heartbeat(&self, attempts: NonZeroU64, cancel_after: Duration) -> (NonZeroU64, bool) {
        // The TTL has a microsecond for each heartbeat.
        let even = NonZeroU64::new(self.ttl.as_micros() / attempts).unwrap_or(NonZeroU64::MIN);
        match NonZeroU64::new(cancel_after.less(self.rtt).as_micros()) {
            Some(latest) => (even.min(latest), true),
            None => (even, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn the_schedule_is_cut_to_what_cancellation_allows() {
        let plan = Plan::for_ttl(US(9_000_000)).attempts(2).round_trip(US(10_000)).plan().unwrap();
        assert_eq!((plan.heartbeat, plan.sustainable), (US(2_990_000), true));
        let plan = Plan::for_ttl(US(900_000)).round_trip(US(300_000)).plan().unwrap();
        assert_eq!((plan.heartbeat, plan.sustainable), (US(300_000), false));
    }

    /// The contract's worked example, every figure.
    #[test]
    fn the_whole_plan() {
        let mut input = Plan::for_ttl(US(10_000_000)).drift(Drift::from_ppm(1_000)).round_trip(US(50_000)).attempts(5);
        input = input.work(US(2_000_000)).poll(US(1_000_000));
        let plan = Plan {
            margin: US(10_000),
            window: US(9_990_000),
            safe: true,
            heartbeat: US(2_000_000),
            sustainable: true,
            renewals_in_window: 4,
            cancel_after: US(3_333_333),
            misses_before_cancel: 0,
            stall_tolerance: US(7_940_000),
            work_deadline: US(7_990_000),
            takeover: US(10_010_011 + 100_000 + 1_000_000),
            renewals_per_hour: 1_800,
        };
        assert_eq!(input.plan(), Ok(plan));
        let often = input.attempts(10).plan().unwrap();
        assert_eq!((often.heartbeat, often.renewals_in_window, often.misses_before_cancel), (US(1_000_000), 9, 2));
    }

    #[test]
    fn the_shortest_lease_has_a_plan() {
        let plan = Plan::for_ttl(US(2)).attempts(2).plan().unwrap();
        assert_eq!((plan.heartbeat, plan.cancel_after, plan.sustainable), (US(1), US(0), false));
        assert_eq!(Plan::for_ttl(US(1)).attempts(2).plan(), Err(OutOfRange::TtlTooShort));
        assert_eq!(Plan::for_ttl(US(2)).attempts(1).plan(), Err(OutOfRange::Attempts));
    }

    #[test]
    fn latencies_that_overflow_name_the_ttl() {
        for rtt in [1 << 62, 1 << 63, u64::MAX] {
            assert_eq!(Plan::for_ttl(US(10)).round_trip(US(rtt)).plan(), Err(OutOfRange::TtlTooLong));
        }
        let work = Plan::for_ttl(US(10)).work(US(u64::MAX)).plan().unwrap();
        assert_eq!(work.work_deadline, Duration::ZERO);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn json_has_the_contracts_names_and_order() {
        let input = Plan::for_ttl(US(10_000_000)).drift(Drift::from_ppm(1_000));
        assert_eq!(
            serde_json::to_string(&input).unwrap(),
            r#"{"ttl_us":10000000,"drift_ppb":1000000,"rtt_us":0,"start":"send","clock_offset_us":0,"attempts":3,"work_us":0,"pause_us":0,"poll_us":0}"#
        );
        let json = serde_json::to_value(input.plan().unwrap()).unwrap();
        assert_eq!(json["takeover_us"], 10_010_011);
        assert_eq!(json.as_object().unwrap().len(), 12);
    }
}
