//! Fencing gate firmware for the Raspberry Pi Pico, and any board with an RP2040 and 2 MiB of flash.
//!
//! Every line in this crate is about the board; the gate itself is `fencegate-node`.

#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks, missing_docs)]

mod board;
mod flash;
#[path = "../../given.rs"]
mod given;
mod inputs;
mod lamp;
#[path = "../../last_words.rs"]
mod last_words;
mod lines;
mod outputs;
mod usb;
mod watchdog;

use core::pin::pin;

use defmt_rtt as _;
use embassy_executor::{Executor, Spawner};
use fencegate_node::{Duration, Node};
use static_cell::StaticCell;

use crate::board::Board;
use crate::outputs::all_low;
use crate::usb::Port;
use crate::watchdog::reset;

/// The longest that storing a record takes. Of the Pico's flash (Winbond W25Q16JV): a sector's erase takes 400 ms at most, a
/// page's program 3 ms. There are two copies; each erases a sector at most, and moves some 30 records out of it, with two
/// or three programs for each: 2 · (400 + 30 · 3 · 3) ms, and the time of the processor.
const WORST_STORE: Duration = Duration::from_millis(1_500);

// Microseconds since reset.
defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());

#[cortex_m_rt::entry]
fn main() -> ! {
    static BOARD: StaticCell<Option<Board>> = StaticCell::new();
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    // By reference: a future that is made with little is made in place, and not on the stack.
    let board = BOARD.init(Some(Board::take()));
    EXECUTOR.init(Executor::new()).run(|spawner| spawner.spawn(gate(spawner, board).expect("there is one such task")))
}

/// The USB port on this board.
#[embassy_executor::task]
async fn usb_port(port: &'static mut Port) -> ! {
    port.run().await
}

/// The gate on this board.
#[embassy_executor::task]
async fn gate(spawner: Spawner, board: &'static mut Option<Board>) -> ! {
    let board = board.take().expect("the board is there");
    let Board { rx, tx, port, flash, outputs, watchdog, inhibit, presence, contacts, lamp } = board;
    defmt::info!("fencegate-rp2040 {=str} boots", env!("CARGO_PKG_VERSION"));
    spawner.spawn(usb_port(port).expect("there is one such task"));
    let worst_store = WORST_STORE;
    let node = Node { rx, tx, flash, outputs, watchdog, inhibit, presence, contacts, lamp, worst_store };
    // Pinned where it is made: it is long, and would be moved otherwise, through the stack.
    pin!(fencegate_node::run(node)).await
}
