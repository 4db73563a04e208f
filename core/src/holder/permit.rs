//! Leave to act.

use crate::{Deadline, Instant, Stamp};

/// Leave for one piece of work that ends inside the window: given by [`Holder::may_act`](super::Holder::may_act), used
/// up by whatever carries the command to the resource. It cannot be copied, nor made by hand.
///
/// ```compile_fail
/// # use fencegate::*;
/// fn twice(permit: Permit) -> (Permit, Permit) {
///     (permit.clone(), permit)
/// }
/// ```
/// ```compile_fail
/// # use fencegate::*;
/// fn forged(stamp: Stamp, deadline: Deadline, ends: Instant) -> Permit {
///     Permit { stamp, deadline, ends, after: 0 }
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "leave to act is there to be used up"]
pub struct Permit {
    pub(super) stamp: Stamp,
    pub(super) deadline: Deadline,
    pub(super) ends: Instant,
    /// How many cancellations there had been when it was given.
    pub(super) after: u64,
}

impl Permit {
    /// What the command carries to the resource.
    pub const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// When the window is over, on the holder's clock.
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// When the work has to have ended: strictly before the deadline.
    pub const fn ends(&self) -> Instant {
        self.ends
    }
}
