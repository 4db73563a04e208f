//! The schedule: a plan that a holder can live by.

use crate::{Duration, OutOfRange, PlanInput, Start};
use core::fmt;

/// A plan that [`PlanInput::build`] has found fit for a [`Holder`](crate::Holder): it leaves a window, room for the
/// work inside it, and time for an answer before cancellation trips. Nothing else makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Schedule {
    #[cfg_attr(feature = "serde", serde(rename = "ttl_us"))]
    ttl: Duration,
    #[cfg_attr(feature = "serde", serde(rename = "window_us"))]
    window: Duration,
    #[cfg_attr(feature = "serde", serde(rename = "heartbeat_us"))]
    heartbeat: Duration,
    #[cfg_attr(feature = "serde", serde(rename = "cancel_after_us"))]
    cancel_after: Duration,
    #[cfg_attr(feature = "serde", serde(rename = "ask_again_us"))]
    ask_again: Duration,
}

impl Schedule {
    /// T, the lease that is asked for.
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How long a lease may be relied on, counted from when its request was sent.
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// h, the time between renewals.
    pub const fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// c: cancellation trips once more than this has passed since the last answer.
    pub const fn cancel_after(&self) -> Duration {
        self.cancel_after
    }

    /// The longest pause before a holder that was refused asks again: `poll` of the plan, or a heartbeat where that is
    /// zero.
    pub const fn ask_again(&self) -> Duration {
        self.ask_again
    }
}

/// Why no holder can live by a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Unfit {
    /// There is no plan at all.
    OutOfRange(OutOfRange),
    /// The timer starts at the grant: a holder's starts when the request is sent, and latency counts once.
    StartsAtGrant,
    /// A round trip of zero: an answer takes time, and with none allowed for it every heartbeat would trip.
    NoRoundTrip,
    /// The margin is as long as the lease.
    NoWindow,
    /// The work is as long as the window: no action could ever begin.
    WorkTooLong,
    /// Every answer would come after cancellation has tripped, or after the window is over.
    NotSustainable,
}

impl From<OutOfRange> for Unfit {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfRange(error) => return error.fmt(f),
            Self::StartsAtGrant => "start: a holder's timer starts when the request is sent",
            Self::NoRoundTrip => "rtt_us: an answer takes time; with none allowed for it every heartbeat would trip",
            Self::NoWindow => "ttl_us: the margin for drift and offset is as long as the lease",
            Self::WorkTooLong => "work_us: the work is as long as the window, so it could never begin",
            Self::NotSustainable => "rtt_us: every answer would come after cancellation or after the window",
        })
    }
}

impl core::error::Error for Unfit {}

impl PlanInput {
    /// The schedule of a holder that lives by this plan.
    ///
    /// # Errors
    /// [`Unfit`], the first that applies: an unsafe plan is an error here and not a surprise later.
    pub fn build(&self) -> Result<Schedule, Unfit> {
        let plan = self.plan()?;
        if self.start == Start::Grant {
            return Err(Unfit::StartsAtGrant);
        }
        if self.rtt.is_zero() {
            return Err(Unfit::NoRoundTrip);
        }
        if !plan.safe {
            return Err(Unfit::NoWindow);
        }
        if plan.work_deadline.is_zero() {
            return Err(Unfit::WorkTooLong);
        }
        if !plan.sustainable || plan.renewals_in_window == 0 {
            return Err(Unfit::NotSustainable);
        }
        Ok(Schedule {
            ttl: self.ttl,
            window: plan.window,
            heartbeat: plan.heartbeat,
            cancel_after: plan.cancel_after,
            ask_again: if self.poll.is_zero() { plan.heartbeat } else { self.poll },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Drift, Plan};

    const US: fn(u64) -> Duration = Duration::from_micros;

    fn sound() -> PlanInput {
        Plan::for_ttl(US(10_000_000)).drift(Drift::from_ppm(1_000)).round_trip(US(50_000))
    }

    #[test]
    fn a_sound_plan_is_its_own_schedule() {
        let (plan, schedule) = (sound().plan().unwrap(), sound().build().unwrap());
        assert_eq!(schedule.ttl(), US(10_000_000));
        assert_eq!(schedule.window(), plan.window);
        assert_eq!(schedule.heartbeat(), plan.heartbeat);
        assert_eq!(schedule.cancel_after(), plan.cancel_after);
        assert_eq!(schedule.ask_again(), plan.heartbeat, "a plan that names no poll");
        assert_eq!(sound().poll(US(7)).build().unwrap().ask_again(), US(7));
    }

    #[test]
    fn an_unfit_plan_makes_no_holder() {
        assert_eq!(sound().attempts(1).build(), Err(Unfit::OutOfRange(OutOfRange::Attempts)));
        assert_eq!(sound().start(Start::Grant).build(), Err(Unfit::StartsAtGrant));
        assert_eq!(sound().round_trip(US(0)).build(), Err(Unfit::NoRoundTrip));
        let mut skewed = sound();
        skewed.clock_offset = US(10_000_000);
        assert_eq!(skewed.build(), Err(Unfit::NoWindow));
        assert_eq!(sound().work(US(9_990_000)).build(), Err(Unfit::WorkTooLong));
        assert!(sound().work(US(9_989_999)).build().is_ok());
        assert_eq!(sound().round_trip(US(3_333_333)).build(), Err(Unfit::NotSustainable));
        assert!(sound().round_trip(US(3_333_332)).build().is_ok());
    }

    /// Cancellation would allow it, and yet the window, cut down by the clocks' offset, ends before the first answer.
    #[test]
    fn a_window_shorter_than_a_heartbeat_and_its_answer_is_not_sustainable() {
        let mut skewed = sound();
        let first_answer = skewed.plan().unwrap().heartbeat.as_micros() + 50_000;
        skewed.clock_offset = US(9_990_000 - first_answer - 1);
        assert!(skewed.build().is_ok());
        skewed.clock_offset = US(9_990_000 - first_answer);
        assert!(skewed.plan().unwrap().sustainable);
        assert_eq!(skewed.build(), Err(Unfit::NotSustainable));
    }

    #[test]
    fn each_reason_names_the_field_to_change() {
        extern crate std;
        use std::string::ToString;
        for (unfit, field) in [
            (Unfit::OutOfRange(OutOfRange::Drift), "drift_ppb: "),
            (Unfit::StartsAtGrant, "start: "),
            (Unfit::NoRoundTrip, "rtt_us: "),
            (Unfit::NoWindow, "ttl_us: "),
            (Unfit::WorkTooLong, "work_us: "),
            (Unfit::NotSustainable, "rtt_us: "),
        ] {
            assert!(unfit.to_string().starts_with(field), "{unfit}");
        }
    }
}
