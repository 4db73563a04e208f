//! The fencing gate on the nRF52840-DK. **It has never run.** Pins and wiring: `README.md`.

#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

mod flash;
#[path = "../../given.rs"]
mod given;
#[path = "../../last_words.rs"]
mod last_words;
mod watchdog;

use core::pin::pin;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_nrf::buffered_uarte::{BufferedUarte, InterruptHandler};
use embassy_nrf::config::{Config, HfclkSource, LfclkSource};
use embassy_nrf::gpio::{AnyPin, Input, Level, Output, OutputDrive, Pull};
use embassy_nrf::nvmc::Nvmc;
use embassy_nrf::{Peri, bind_interrupts, pac, peripherals, uarte};
use fencegate_node::{Duration, Node, Unwired};
use static_cell::StaticCell;

use crate::flash::Flash;
use crate::watchdog::Watchdog;

/// The longest that storing a record takes: two erases of 85 ms, and twice some 30 records of up to 20 words at 41 µs each
/// (nRF52840 product specification, NVMC, "Electrical specification"), and the time of the processor.
const WORST_STORE: Duration = Duration::from_millis(300);

/// The outputs, in port 1.
const OUTPUTS: core::ops::RangeInclusive<usize> = 1..=6;

bind_interrupts!(struct Irqs { UARTE0 => InterruptHandler<peripherals::UARTE0>; });

#[embassy_executor::main]
async fn main(spawner: Spawner) -> ! {
    let _ = spawner; // the gate is the only task
    static FROM_CABLE: StaticCell<[u8; 1_024]> = StaticCell::new();
    static TO_CABLE: StaticCell<[u8; 256]> = StaticCell::new();

    // Both crystals: the RC oscillator of 32 kHz is no clock to keep a promise by, and the flash's times are of the other.
    let mut config = Config::default();
    config.lfclk_source = LfclkSource::ExternalXtal;
    config.hfclk_source = HfclkSource::ExternalXtal;
    let p = embassy_nrf::init(config);
    let outputs = [p.P1_01.into(), p.P1_02.into(), p.P1_03.into(), p.P1_04.into(), p.P1_05.into(), p.P1_06.into()]
        .map(|pin: Peri<AnyPin>| Output::new(pin, Level::Low, OutputDrive::Standard));
    let (inhibit, presence) = (Input::new(p.P1_07, Pull::Up), Input::new(p.P1_08, Pull::Down));

    // 115,200 baud, 8N1, on the pins that the board's own debugger makes a port of.
    let (rx, tx) = (FROM_CABLE.init([0; 1_024]), TO_CABLE.init([0; 256]));
    let (timer, first, second, group, config) =
        (p.TIMER0, p.PPI_CH0, p.PPI_CH1, p.PPI_GROUP0, uarte::Config::default());
    let (rx, tx) =
        BufferedUarte::new(p.UARTE0, timer, first, second, group, p.P0_08, p.P0_06, Irqs, config, rx, tx).split();

    defmt::info!("fencegate-nrf52840 {=str} boots", env!("CARGO_PKG_VERSION"));
    let (flash, watchdog, contacts, lamp) = (Flash(Nvmc::new(p.NVMC)), Watchdog, Unwired, Unwired);
    let node = Node { rx, tx, flash, outputs, watchdog, inhibit, presence, contacts, lamp, worst_store: WORST_STORE };
    // Pinned where it is made: it is long, and would be moved otherwise, through the stack.
    pin!(fencegate_node::run(node)).await
}

/// Drives every output low, from wherever the program is.
fn all_low() {
    OUTPUTS.for_each(|pin| pac::P1.outclr().write(|w| w.set_pin(pin, true)));
}

/// Makes every pin an input again.
fn reset() -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
