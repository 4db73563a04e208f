//! Fencing gate firmware for the Arm MPS2 with the AN385 image, as QEMU emulates it.
//!
//! Every line in this crate is about the board; the gate itself is `fencegate-node`.

#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks, missing_docs)]

mod board;
mod executor;
mod flash;
mod log;
mod outputs;
mod panel;
mod regs;
mod time_driver;
mod uart;
mod vectors;
mod watchdog;

use core::pin::pin;

use fencegate_node::{Duration, Node, Unwired};

use crate::board::Board;

/// The longest that storing a record takes. Of 3,000 raises, from the host's question to its answer and on a host with
/// four times more work than processors: 7 ms in the middle, 31 ms at the 99th in a hundred, with three above 0.4 s for
/// which the host did something else.
const WORST_STORE: Duration = Duration::from_millis(500);

#[cortex_m_rt::entry]
fn main() -> ! {
    // By reference: a future that is made with little is made in place, and not on the stack.
    let board = cortex_m::singleton!(: Option<Board> = None).expect("the board is taken once");
    *board = Some(Board::take());
    executor::run(|spawner| spawner.spawn(gate(board).expect("there is one such task")))
}

/// The gate on this board.
#[embassy_executor::task]
async fn gate(board: &'static mut Option<Board>) -> ! {
    let board = board.take().expect("the board is there");
    let Board { rx, tx, flash, outputs, watchdog, inhibit, presence, contacts } = board;
    defmt::info!("fencegate-mps2 {=str} boots", env!("CARGO_PKG_VERSION"));
    let worst_store = WORST_STORE;
    let node = Node { rx, tx, flash, outputs, watchdog, inhibit, presence, contacts, lamp: Unwired, worst_store };
    // Pinned where it is made: it is long, and would be moved otherwise, through the stack.
    pin!(fencegate_node::run(node)).await
}
