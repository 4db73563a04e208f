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
mod outputs;
mod regs;
mod time_driver;
mod uart;
mod vectors;
mod watchdog;

use fencegate_node::{Duration, Node};

use crate::board::Board;

/// The longest that storing a record takes: a dozen writes to a file of the host, two erased pages among them, at 11 µs
/// a call measured, and room for a busy host.
const WORST_STORE: Duration = Duration::from_millis(20);

#[cortex_m_rt::entry]
fn main() -> ! {
    let board = Board::take();
    executor::run(|spawner| spawner.spawn(gate(board).expect("there is one such task")))
}

/// The gate on this board.
#[embassy_executor::task]
async fn gate(board: Board) -> ! {
    let Board { rx, tx, flash, outputs, watchdog } = board;
    fencegate_node::run(Node { rx, tx, flash, outputs, watchdog, worst_store: WORST_STORE }).await
}
