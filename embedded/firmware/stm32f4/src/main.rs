//! The fencing gate on the NUCLEO-F446RE (STM32F4). **It has never run.** Pins and wiring: `README.md`.

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
use embassy_stm32::flash::Flash as Device;
use embassy_stm32::gpio::{AnyPin, Input, Level, Output, Pull, Speed};
use embassy_stm32::time::Hertz;
use embassy_stm32::usart::{BufferedInterruptHandler, BufferedUart, Config as Line};
use embassy_stm32::{Config, Peri, bind_interrupts, pac, peripherals, rcc};
use fencegate_node::{Duration, Node, Unwired};
use static_cell::StaticCell;

use crate::flash::Flash;
use crate::watchdog::Watchdog;

/// The longest that storing a record takes is 1.8 s (`README.md` counts it). It is promised as more, since the watchdog is loaded
/// with that: at the fastest it bites after 36 % of it, and has to wait for the longest erase.
const WORST_STORE: Duration = Duration::from_millis(4_000);

/// The outputs, by port and pin.
const OUTPUTS: [(pac::gpio::Gpio, usize); 6] =
    [(pac::GPIOA, 10), (pac::GPIOB, 5), (pac::GPIOB, 10), (pac::GPIOA, 8), (pac::GPIOA, 9), (pac::GPIOC, 7)];

bind_interrupts!(struct Irqs { USART2 => BufferedInterruptHandler<peripherals::USART2>; });

#[embassy_executor::main]
async fn main(spawner: Spawner) -> ! {
    let _ = spawner; // the gate is the only task
    static FROM_CABLE: StaticCell<[u8; 1_024]> = StaticCell::new();
    static TO_CABLE: StaticCell<[u8; 256]> = StaticCell::new();

    // 8 MHz from the board's own debugger, which has a crystal: 168 MHz. The chip's RC oscillator is no clock to promise by.
    let mut config = Config::default();
    config.rcc.hse = Some(rcc::Hse { freq: Hertz(8_000_000), mode: rcc::HseMode::Bypass });
    let (prediv, mul, divp) = (rcc::PllPreDiv::DIV4, rcc::PllMul::MUL168, Some(rcc::PllPDiv::DIV2));
    config.rcc.pll = Some(rcc::Pll { prediv, mul, divp, divq: None, divr: None });
    (config.rcc.pll_src, config.rcc.sys) = (rcc::PllSource::HSE, rcc::Sysclk::PLL1_P);
    (config.rcc.apb1_pre, config.rcc.apb2_pre) = (rcc::APBPrescaler::DIV4, rcc::APBPrescaler::DIV2);
    let p = embassy_stm32::init(config);
    pac::FLASH.acr().modify(|w| w.set_dcen(false));
    let outputs = [p.PA10.into(), p.PB5.into(), p.PB10.into(), p.PA8.into(), p.PA9.into(), p.PC7.into()]
        .map(|pin: Peri<AnyPin>| Output::new(pin, Level::Low, Speed::Low));
    let (inhibit, presence) = (Input::new(p.PB6, Pull::Up), Input::new(p.PA6, Pull::Down));

    // 115,200 baud, 8N1, on the pins that the board's own debugger makes a port of.
    let (rx, tx) = (FROM_CABLE.init([0; 1_024]), TO_CABLE.init([0; 256]));
    let cable = BufferedUart::new(p.USART2, p.PA3, p.PA2, tx, rx, Irqs, Line::default());
    let (tx, rx) = cable.expect("the speed can be had").split();

    defmt::info!("fencegate-stm32f4 {=str} boots", env!("CARGO_PKG_VERSION"));
    let (flash, watchdog, contacts, lamp) = (Flash(Device::new_blocking(p.FLASH)), Watchdog(false), Unwired, Unwired);
    let node = Node { rx, tx, flash, outputs, watchdog, inhibit, presence, contacts, lamp, worst_store: WORST_STORE };
    // Pinned where it is made: it is long, and would be moved otherwise, through the stack.
    pin!(fencegate_node::run(node)).await
}

/// Drives every output low, from wherever the program is.
fn all_low() {
    for (port, pin) in OUTPUTS {
        port.bsrr().write(|w| w.set_br(pin, true));
    }
}

/// Makes every pin an input again.
fn reset() -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
