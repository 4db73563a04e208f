//! The board as its parts, and which pin is what.

use embassy_rp::bind_interrupts;
use embassy_rp::gpio::{Input, Level, Output as Pin, Pull};
use embassy_rp::pac;
use embassy_rp::peripherals::{PIO0, PIO1, UART0};
use embassy_rp::pio::{self, Pio};
use embassy_rp::uart::{BufferedInterruptHandler, BufferedUart, Config};
use fencegate_node::Words;
use static_cell::StaticCell;

use crate::flash::Flash;
use crate::inputs::{Contacts, Inhibit, Presence};
use crate::lamp::Lamp;
use crate::lines::{FromHosts, ToHosts};
use crate::outputs::{self, Output};
use crate::usb::{self, Port};
use crate::watchdog::Watchdog;

/// UART0's speed, in bits per second.
const BAUD: u32 = if cfg!(feature = "fast") { 1_000_000 } else { 115_200 };
/// The GPIO on which UART0 hears.
const RX: usize = 1;

/// Bytes that wait for the gate: a few of the longest frames.
const RECEIVED: usize = 1_024;
/// Bytes that wait for the cable.
const TO_SEND: usize = 256;

bind_interrupts!(struct Irqs {
    UART0_IRQ => BufferedInterruptHandler<UART0>;
    PIO0_IRQ_0 => pio::InterruptHandler<PIO0>;
    PIO1_IRQ_0 => pio::InterruptHandler<PIO1>;
});

/// Everything that this board gives to a program.
pub(crate) struct Board {
    /// From both lines.
    pub(crate) rx: &'static mut FromHosts,
    /// To both lines.
    pub(crate) tx: ToHosts,
    /// The USB port, which has to be run.
    pub(crate) port: &'static mut Port,
    /// Storage that outlasts a power cut.
    pub(crate) flash: Words<Flash, 4>,
    /// The outputs, all low.
    pub(crate) outputs: [Output; outputs::COUNT],
    /// High while the emergency stop is pressed, or has been since it was last asked.
    pub(crate) inhibit: Inhibit,
    /// High while somebody is at the board.
    pub(crate) presence: Presence,
    /// The contacts behind the outputs.
    pub(crate) contacts: Contacts,
    /// The watchdog, not started.
    pub(crate) watchdog: Watchdog,
    /// The LED on the board.
    pub(crate) lamp: Lamp,
}

impl Board {
    /// Starts clocks, PIO, UART and USB, and hands out the parts.
    ///
    /// # Panics
    ///
    /// The second time: the parts exist once.
    pub(crate) fn take() -> Self {
        static FROM_CABLE: StaticCell<[u8; RECEIVED]> = StaticCell::new();
        static TO_CABLE: StaticCell<[u8; TO_SEND]> = StaticCell::new();

        let p = embassy_rp::init(embassy_rp::config::Config::default());

        // The inhibit before the outputs: they look at it themselves.
        let inhibit = Inhibit::new(Input::new(p.PIN_14, Pull::Up));
        let (mut first, mut second) = (Pio::new(p.PIO0, Irqs), Pio::new(p.PIO1, Irqs));
        let one_shot = outputs::program();
        let (in_first, in_second) = (first.common.load_program(&one_shot), second.common.load_program(&one_shot));
        let outputs = [
            Output::new(&mut first.common, &in_first, first.sm0, pac::PIO0, p.PIN_2),
            Output::new(&mut first.common, &in_first, first.sm1, pac::PIO0, p.PIN_3),
            Output::new(&mut first.common, &in_first, first.sm2, pac::PIO0, p.PIN_4),
            Output::new(&mut first.common, &in_first, first.sm3, pac::PIO0, p.PIN_5),
            Output::new(&mut second.common, &in_second, second.sm0, pac::PIO1, p.PIN_6),
            Output::new(&mut second.common, &in_second, second.sm1, pac::PIO1, p.PIN_7),
        ];
        // Dropped, each would take its block's pins back.
        core::mem::forget((first.common, second.common));

        let mut config = Config::default();
        config.baudrate = BAUD;
        let (to_cable, from_cable) = (TO_CABLE.init([0; TO_SEND]), FROM_CABLE.init([0; RECEIVED]));
        let cable = BufferedUart::new(p.UART0, p.PIN_0, p.PIN_1, Irqs, to_cable, from_cable, config);
        // Nothing is wired to it on a board that is used over USB alone. Left afloat, it would hear noise, of which some looks
        // like a frame to answer, and the gate would wear its flash out for it.
        pac::PADS_BANK0.gpio(RX).modify(|w| {
            w.set_pue(true);
            w.set_schmitt(true);
        });
        let (to_uart, from_uart) = cable.split();
        let (port, from_usb) = usb::port(p.USB);

        Self {
            rx: FromHosts::new(from_uart, from_usb),
            tx: ToHosts::new(to_uart),
            port,
            flash: Words(Flash::new(p.FLASH)),
            outputs,
            inhibit,
            presence: Presence::new(Input::new(p.PIN_15, Pull::Down)),
            contacts: Contacts::new([
                Input::new(p.PIN_8, Pull::Up),
                Input::new(p.PIN_9, Pull::Up),
                Input::new(p.PIN_10, Pull::Up),
                Input::new(p.PIN_11, Pull::Up),
                Input::new(p.PIN_12, Pull::Up),
                Input::new(p.PIN_13, Pull::Up),
            ]),
            watchdog: Watchdog::new(embassy_rp::watchdog::Watchdog::new(p.WATCHDOG)),
            lamp: Lamp::new(Pin::new(p.PIN_25, Level::Low)),
        }
    }
}
