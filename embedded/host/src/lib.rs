#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

pub mod bridge;
mod client;
pub mod clock;
pub mod coordinator;
mod keyfile;
mod provision;
pub mod runner;
mod transport;

pub use client::{CallError, Done, GateClient, Status};
pub use keyfile::{Existing, KeyFile, KeyFileError, Secret};
pub use provision::{emulator, factory, new_identity, new_keys, next_id, provision, replacing};
pub use transport::{BadPort, Line, Port};

// The types of this crate's own interface.
pub use {fencegate, fencegate_wire as wire};
