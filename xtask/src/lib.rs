//! What `cargo xtask …` does: set-up, checks, builds and the stage for demonstrations. No product code.
//!
//! To add a command: a module here with what it does, a variant of `Command` in `main.rs` with its words and an
//! example, and an arm in `run` there that first asks for what the command needs ([`setup::ensure`]). Other programs
//! run as named steps ([`step::Step`]); a command that makes many checks enters them in a [`ledger::Ledger`].
//!
//! What takes long to compile and only some commands need is behind the features `web` and `log`: those commands start
//! `xtask` again with them.
#![forbid(unsafe_code)]

#[cfg(feature = "web")]
pub mod bench;
pub mod board;
pub mod demo;
pub mod emulator;
pub mod firmware;
pub mod gate;
pub mod ledger;
pub mod lint;
mod log;
pub mod mutants;
pub mod nightly;
#[cfg(feature = "web")]
pub mod page;
mod record;
pub mod setup;
pub mod soak;
pub mod step;
#[cfg(feature = "web")]
pub mod test;
pub mod uf2;
#[cfg(feature = "web")]
mod wasm;
#[cfg(feature = "web")]
mod web;
pub mod workspace;
