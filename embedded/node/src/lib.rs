#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod blank;
mod budget;
mod channel;
mod gate;
mod run;
mod store;

pub use blank::Blank;
pub use gate::{Board, Gate, Memory, Pending, Step};
pub use run::{Node, Output, Watchdog, run};
pub use store::{Boot, Store, StoreError};

// What a board says of itself is in the core's units.
pub use fencegate::Duration;

use fencegate_wire::{Domain, Version};

/// The domain of the keys that this image obeys.
pub const DOMAIN: Domain = if cfg!(feature = "demonstration") { Domain::Demonstration } else { Domain::Gate };

/// This firmware's version.
pub const FIRMWARE: Version = Version(0, 1, 0);
