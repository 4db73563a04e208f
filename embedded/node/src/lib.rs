#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod boots;
mod challenger;
mod channel;
mod entry;
mod gate;
mod inputs;
mod latched;
mod line;
mod log;
mod memory;
mod pending;
mod refusals;
mod run;
mod store;
mod words;

pub use entry::{Entry, Stored};
pub use gate::Gate;
pub use inputs::{Contacts, Inputs, Unwired};
pub use latched::Latched;
pub use memory::{Board, Memory, Remembered};
pub use pending::{Pending, Step};
pub use run::{Duty, Lamp, Node, Output, Watchdog, run};
pub use store::{Boot, Store, StoreError};
pub use words::Words;

// What a board says of itself is in the core's units, and what its lamp shows in the protocol's words.
pub use fencegate::{Duration, Instant};
pub use fencegate_wire::ChannelState;

use fencegate_wire::{Domain, Version};

/// The domain of the keys that this image obeys.
pub const DOMAIN: Domain = if cfg!(feature = "demonstration") { Domain::Demonstration } else { Domain::Gate };

/// This firmware's version.
pub const FIRMWARE: Version = Version(
    part(env!("CARGO_PKG_VERSION_MAJOR")),
    part(env!("CARGO_PKG_VERSION_MINOR")),
    part(env!("CARGO_PKG_VERSION_PATCH")),
);

/// A part of the version; one that does not fit a byte does not compile.
const fn part(digits: &str) -> u8 {
    match u8::from_str_radix(digits, 10) {
        Ok(part) => part,
        Err(_) => panic!("a part of the version is no byte"),
    }
}
