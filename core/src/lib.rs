#![no_std]
#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod audit;
mod budget;
mod check;
mod clocks;
mod drift;
mod error;
mod fence;
mod grantor;
mod holder;
mod holder_id;
mod plan;
mod redlock;
mod schedule;
mod size;
mod stamp;
mod systems;
#[cfg(feature = "heapless")]
mod table;
mod time;
mod window;

#[cfg(test)]
extern crate std;

pub use audit::{LogFence, LogWrite, Verdict};
pub use budget::{Budget, RaiseBudget};
pub use check::{Check, Config, ConfigError, Finding, MAX_FINDINGS, Severity};
pub use clocks::{CLOCKS, Clock};
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
pub use redlock::{DEFAULT_DRIFT_FACTOR, DEFAULT_DRIFT_FIXED, Quorum, Redlock, RedlockInput, quorum};
pub use schedule::{Schedule, Unfit};
pub use size::{Size, SizeInput};
pub use stamp::{Epoch, Stamp, Token};
pub use systems::{DRIFT, Key, Kind, Literal, PRESETS, Preset, RTT, System, Value};
#[cfg(feature = "heapless")]
pub use table::{FenceTable, TableAdmitted, TableError, TableProof, TableRaise, TableRefused};
pub use time::{ClockRanBackwards, Deadline, Duration, Instant, Monotonic};
pub use window::{GateTiming, Start, Window, WindowInput};
