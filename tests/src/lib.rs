//! The harness of what crosses rooms: the shared cases, the command, and a gate in its emulator as a user starts it.
#![forbid(unsafe_code)]

mod authority;
mod blank;
mod board;
mod gate;
mod host;
mod network;
mod over;
mod programs;
mod proxy;
mod random;
mod server;

pub use authority::Authority;
pub use blank::BlankBoard;
pub use board::{Contact, Monitor};
pub use gate::EmulatedGate;
pub use host::{Host, drive};
pub use network::Network;
pub use over::Over;
pub use programs::{Said, example, fencegate, xtask};
pub use proxy::Proxy;
pub use random::{Random, is_soak, seed};
pub use server::{Server, is_root};

use serde_json::Value;
use std::time::Duration;
use xtask::board::Board;

/// How long a gate may take to be ready, its firmware built already.
const READY: Duration = Duration::from_mins(1);

/// The shared cases.
///
/// # Panics
/// Where they are not there.
pub fn cases() -> Vec<Value> {
    let file = xtask::workspace::root().join("tests/cases/calculator.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// The board under test: `FENCEGATE_BOARD` names it, and without that it is the MPS2.
///
/// # Panics
/// Where there is no board of that name.
pub fn board() -> Board {
    let Ok(name) = std::env::var("FENCEGATE_BOARD") else { return Board::Mps2 };
    Board::named(&name).unwrap_or_else(|| panic!("FENCEGATE_BOARD: there is no board {name}"))
}
