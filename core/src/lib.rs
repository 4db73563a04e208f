#![no_std]
#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod budget;
mod drift;
mod error;
mod fence;
mod grantor;
mod holder;
mod holder_id;
mod plan;
mod schedule;
mod stamp;
#[cfg(feature = "heapless")]
mod table;
mod time;
mod window;

#[cfg(test)]
extern crate std;

pub use budget::{Budget, RaiseBudget};
pub use drift::{Drift, PPB};
pub use error::OutOfRange;
pub use fence::{
    Act, Admitted, EpochRaise, EpochRule, Expired, Fence, FenceRecord, Limits, NotStored, Pass, Policy, Proof, Raise,
    Refusal, Refused, Release,
};
pub use grantor::{
    GrantDenied, GrantEpoch, GrantProof, GrantRecord, GrantRelease, GrantTerms, Granted, Granting, Grantor,
};
pub use holder::{Cause, Denied, Holder, HolderFault, Output, Permit, Request};
pub use holder_id::{BadHolderId, HolderId};
pub use plan::{Plan, PlanInput};
pub use schedule::{Schedule, Unfit};
pub use stamp::{Epoch, Stamp, Token};
#[cfg(feature = "heapless")]
pub use table::{FenceTable, TableAdmitted, TableError, TableProof, TableRaise, TableRefused};
pub use time::{ClockRanBackwards, Deadline, Duration, Instant, Monotonic};
pub use window::{GateTiming, Start, Window, WindowInput};
