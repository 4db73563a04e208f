//! Sizing: the least TTL that leaves room for the work, the pause and the renewals that may be lost.

use crate::{Drift, Duration, OutOfRange, PPB, Plan, PlanInput};

/// What a TTL is sized for. Start with [`SizeInput::new`], name what differs from the default, and ask for the size.
///
/// The timer is started at send, and one machine tells the time: there is no `start` and no `clock_offset` here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SizeInput {
    /// ε, the drift of both clocks together.
    #[cfg_attr(feature = "serde", serde(rename = "drift_ppb"))]
    pub drift: Drift,
    /// d, the worst round trip of an acquire or renew call.
    #[cfg_attr(feature = "serde", serde(rename = "rtt_us"))]
    pub rtt: Duration,
    /// n, heartbeats per TTL; at least 2.
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
    /// Renewals in a row that may fail before the lease is lost.
    pub lost: u64,
    /// The coordinator's step of the TTL; at least 1 µs.
    #[cfg_attr(feature = "serde", serde(rename = "granularity_us"))]
    pub granularity: Duration,
}

/// The least TTL for a [`SizeInput`], and the whole plan for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Size {
    /// T.
    pub ttl: Duration,
    /// The plan for T, of the same drift, latency, heartbeats, work, pause and poll; the timer starts at send.
    pub plan: Plan,
}

impl SizeInput {
    /// Clocks that differ by at most `drift`; no latency, no work, no pause, three heartbeats of which one may be lost.
    pub const fn new(drift: Drift) -> Self {
        Self {
            drift,
            rtt: Duration::ZERO,
            attempts: 3,
            work: Duration::ZERO,
            pause: Duration::ZERO,
            poll: Duration::ZERO,
            lost: 1,
            granularity: Duration::from_micros(1),
        }
    }

    /// Sets d, the worst round trip of an acquire or renew call.
    #[must_use]
    pub const fn round_trip(mut self, rtt: Duration) -> Self {
        self.rtt = rtt;
        self
    }

    /// Sets W, the longest time from the last check of the lease until the action has taken effect.
    #[must_use]
    pub const fn work(mut self, work: Duration) -> Self {
        self.work = work;
        self
    }

    /// Sets P, a stall that the holder should ride through without losing the lease.
    #[must_use]
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The input of the plan for a lease of `ttl` that is otherwise the one that is sized.
    pub const fn plan_for(&self, ttl: Duration) -> PlanInput {
        let Self { drift, rtt, attempts, work, pause, poll, .. } = *self;
        PlanInput { rtt, attempts, work, pause, poll, ..Plan::for_ttl(ttl).drift(drift) }
    }

    /// The least whole T with T·(1−ε) − m·T/n − d ≥ W + P + 1, m = lost + 1, at least n and a multiple of the
    /// granularity; `None` where no TTL is long enough.
    ///
    /// The one microsecond pays for rounding and for equality being expiry, so that in the plan for T
    /// m·h + d + W + P < window.
    ///
    /// # Errors
    /// [`OutOfRange::Drift`], [`OutOfRange::Attempts`] or [`OutOfRange::Granularity`] for an input, whether or not a TTL
    /// exists; [`OutOfRange::TtlTooLong`] where T or a figure of its plan is above 2⁶³−1 µs.
    pub fn size(&self) -> Result<Option<Size>, OutOfRange> {
        self.drift.checked()?;
        if self.attempts < 2 {
            return Err(OutOfRange::Attempts);
        }
        if self.granularity.is_zero() {
            return Err(OutOfRange::Granularity);
        }
        let Some(exact) = self.exact() else { return Ok(None) };
        let ttl = (exact?.max(self.attempts).div_ceil(self.granularity.as_micros()))
            .checked_mul(self.granularity.as_micros())
            .map(Duration::from_micros)
            .filter(|ttl| *ttl <= Duration::MAX_ANSWER)
            .ok_or(OutOfRange::TtlTooLong)?;
        let plan = self.plan_for(ttl).plan()?;
        Ok(Some(Size { ttl, plan }))
    }

    /// ⌈S·n·10⁹ / D⌉ with S = W + P + d + 1 and D = n·(10⁹−ε) − m·10⁹; `None` where D is not positive.
    ///
    /// S·n·10⁹ can have 160 bits. D < n·10⁹, so that T > S: an S of 2⁶³−1 or more has no answer that fits, and below it
    /// S·n < 2¹²⁷. With S·n = q·D + r, T = q·10⁹ + ⌈r·10⁹/D⌉, and r·10⁹ < D·10⁹ < 2¹²⁴: exact in 128 bits, for every
    /// input. A lease is sized by a person at a desk, not by a microcontroller in a loop, and 64 bits would not do.
    fn exact(&self) -> Option<Result<u64, OutOfRange>> {
        let (n, whole) = (u128::from(self.attempts), u128::from(PPB));
        let lost = (u128::from(self.lost) + 1) * whole;
        let divisor = (n * (whole - u128::from(self.drift.as_ppb()))).checked_sub(lost).filter(|d| *d > 0)?;

        let sum = [self.work, self.pause, self.rtt].iter().fold(1, |sum, us| sum + u128::from(us.as_micros()));
        if sum >= u128::from(Duration::MAX_ANSWER.as_micros()) {
            return Some(Err(OutOfRange::TtlTooLong));
        }
        let (q, r) = (sum * n / divisor, sum * n % divisor);
        let ttl = q.checked_mul(whole).and_then(|t| t.checked_add((r * whole).div_ceil(divisor)));
        Some(ttl.and_then(|t| u64::try_from(t).ok()).ok_or(OutOfRange::TtlTooLong))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Size {
    /// `ttl_us` and every field of the plan side by side.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let Self { ttl, plan } = self;
        let mut size = to.serialize_struct("Size", 13)?;
        size.serialize_field("ttl_us", ttl)?;
        size.serialize_field("margin_us", &plan.margin)?;
        size.serialize_field("window_us", &plan.window)?;
        size.serialize_field("safe", &plan.safe)?;
        size.serialize_field("heartbeat_us", &plan.heartbeat)?;
        size.serialize_field("sustainable", &plan.sustainable)?;
        size.serialize_field("renewals_in_window", &plan.renewals_in_window)?;
        size.serialize_field("cancel_after_us", &plan.cancel_after)?;
        size.serialize_field("misses_before_cancel", &plan.misses_before_cancel)?;
        size.serialize_field("stall_tolerance_us", &plan.stall_tolerance)?;
        size.serialize_field("work_deadline_us", &plan.work_deadline)?;
        size.serialize_field("takeover_us", &plan.takeover)?;
        size.serialize_field("renewals_per_hour", &plan.renewals_per_hour)?;
        size.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    fn ttl(input: &SizeInput) -> Result<Option<u64>, OutOfRange> {
        Ok(input.size()?.map(|size| size.ttl.as_micros()))
    }

    fn worked() -> SizeInput {
        let mut input = SizeInput::new(Drift::from_ppm(1_000)).round_trip(US(50_000)).work(US(2_000_000));
        input.pause = US(500_000);
        input
    }

    #[test]
    fn the_contracts_example_and_its_plan() {
        let size = worked().size().unwrap().unwrap();
        assert_eq!(size.ttl, US(7_673_023));
        assert_eq!(Ok(size.plan), worked().plan_for(size.ttl).plan());
        assert!(2 * size.plan.heartbeat.as_micros() + 2_550_000 < size.plan.window.as_micros());
    }

    #[test]
    fn the_plan_is_asked_for_what_the_size_was() {
        let input = SizeInput { attempts: 4, poll: US(7), drift: Drift::from_ppb(3), ..worked() };
        let plan = input.plan_for(US(9));
        assert_eq!((plan.ttl, plan.drift, plan.rtt, plan.attempts), (US(9), Drift::from_ppb(3), US(50_000), 4));
        assert_eq!((plan.work, plan.pause, plan.poll), (US(2_000_000), US(500_000), US(7)));
        assert_eq!((plan.start, plan.clock_offset), (crate::Start::Send, Duration::ZERO));
        let set = SizeInput::new(Drift::ZERO).round_trip(US(1)).work(US(2)).pause(US(3));
        assert_eq!((set.rtt, set.work, set.pause), (US(1), US(2), US(3)));
    }

    #[test]
    fn a_step_of_the_coordinators_rounds_up() {
        let step = |us| ttl(&SizeInput { granularity: US(us), ..worked() });
        assert_eq!(step(1_000_000), Ok(Some(8_000_000)));
        assert_eq!(step(7_673_023), Ok(Some(7_673_023)));
        assert_eq!(step(7_673_022), Ok(Some(15_346_044)));
        assert_eq!(step(i64::MAX.cast_unsigned()), Err(OutOfRange::TtlTooLong), "the plan's takeover does not fit");
        assert_eq!(step(u64::MAX), Err(OutOfRange::TtlTooLong));
        assert_eq!(step(0), Err(OutOfRange::Granularity));
    }

    #[test]
    fn where_nothing_is_left_no_ttl_is_long_enough() {
        let third = |ppb| ttl(&SizeInput::new(Drift::from_ppb(ppb)).work(US(1_000_000)));
        assert_eq!(third(333_333_333), Ok(Some(3_000_003_000_000_000)));
        assert_eq!(third(333_333_334), Ok(None));
        let even = SizeInput { lost: 2, ..worked() };
        assert_eq!(ttl(&SizeInput { drift: Drift::ZERO, ..even }), Ok(None), "a divisor of exactly zero");
        let most = SizeInput { lost: u64::MAX, work: US(u64::MAX), attempts: u64::MAX, ..worked() };
        assert_eq!(ttl(&most), Ok(None), "and not an error: no TTL is long enough whatever the work");
    }

    #[test]
    fn a_wrong_input_is_named_even_where_no_ttl_exists() {
        let none = SizeInput { lost: u64::MAX, ..worked() };
        assert_eq!(none.size(), Ok(None));
        assert_eq!(SizeInput { attempts: 1, ..none }.size(), Err(OutOfRange::Attempts));
        assert_eq!(SizeInput { granularity: US(0), ..none }.size(), Err(OutOfRange::Granularity));
        assert_eq!(SizeInput { drift: Drift::from_ppb(PPB), ..none }.size(), Err(OutOfRange::Drift));
    }

    #[test]
    fn the_largest_inputs_neither_wrap_nor_saturate() {
        let most = SizeInput::new(Drift::ZERO);
        let sums = SizeInput { work: US(u64::MAX), pause: US(u64::MAX), rtt: US(u64::MAX), ..most };
        assert_eq!(ttl(&sums), Err(OutOfRange::TtlTooLong));
        assert_eq!(ttl(&SizeInput { attempts: u64::MAX, ..sums }), Err(OutOfRange::TtlTooLong));
        assert_eq!(ttl(&SizeInput { attempts: 2, lost: 0, ..worked() }), Ok(Some(5_110_223)), "two heartbeats will do");
        let beats = |attempts| ttl(&SizeInput { attempts, ..most });
        assert_eq!(beats(u64::MAX), Err(OutOfRange::TtlTooLong), "T is at least n");
        assert_eq!(beats(i64::MAX.cast_unsigned()), Ok(Some(i64::MAX.cast_unsigned())));
        // 2⁶³−1 microseconds, a hair of drift and all but every renewal lost: the quotient itself passes 64 bits.
        let hair = SizeInput { drift: Drift::from_ppb(333_333_333), work: US(i64::MAX.cast_unsigned() - 1), ..most };
        assert_eq!(ttl(&hair), Err(OutOfRange::TtlTooLong));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn json_has_the_ttl_beside_the_plan() {
        let size = worked().size().unwrap().unwrap();
        let mut json = serde_json::to_value(size).unwrap();
        assert_eq!(json.as_object_mut().unwrap().remove("ttl_us"), Some(7_673_023.into()));
        assert_eq!(json, serde_json::to_value(size.plan).unwrap());
        assert_eq!(
            serde_json::to_string(&worked()).unwrap(),
            r#"{"drift_ppb":1000000,"rtt_us":50000,"attempts":3,"work_us":2000000,"pause_us":500000,"poll_us":0,"lost":1,"granularity_us":1}"#
        );
    }
}
