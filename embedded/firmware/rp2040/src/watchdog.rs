//! The watchdog: a program that stops feeding it is reset within the time it was last given.
//!
//! It counts no more than 8.3 s (24 bits, two a microsecond: erratum RP2040-E1), and the gate asks for up to 30 for what
//! takes long and drives nothing: a boot, and the end of a provisioning. What of that lies beyond the hardware's reach is
//! handed to it piece by piece, by the only thing that takes long in there: each write or erase that comes to its end
//! ([`go_on`]). So a hang is over after 8.3 s at the most, a slow flash has all the time that it was given, and nobody
//! ever has more.
//!
//! The reset is the whole chip's but for its oscillators: pins go back to inputs with a pull-down. It stands still while a
//! debugger has stopped the processor, and only then.

use embassy_rp::pac;
use fencegate_node::Duration;

use crate::given;

/// The most that the hardware counts, in µs.
const MOST_US: u64 = 8_300_000;

/// The watchdog. It exists once, and once started it is not stopped.
pub(crate) struct Watchdog {
    device: embassy_rp::watchdog::Watchdog,
    started: bool,
}

impl Watchdog {
    /// Makes it of the device.
    pub(crate) const fn new(device: embassy_rp::watchdog::Watchdog) -> Self {
        Self { device, started: false }
    }
}

impl fencegate_node::Watchdog for Watchdog {
    /// Starts the count again, and the watchdog itself the first time.
    fn feed(&mut self, within: Duration) {
        given::set(within);
        let within = embassy_time::Duration::from_micros(within.as_micros().min(MOST_US));
        if self.started {
            self.device.feed(within);
        } else {
            self.device.start(within);
            self.started = true;
        }
    }
}

/// Something long has come to its end: hands the hardware the next piece of what the watchdog was last given.
pub(crate) fn go_on() {
    if let Ok(left @ 1..) = u32::try_from(given::left_us().min(MOST_US)) {
        // Two a microsecond, as `embassy_rp::watchdog` loads it.
        pac::WATCHDOG.load().write_value(pac::watchdog::regs::Load(2 * left));
    }
}

/// Resets the whole chip but its oscillators, as a watchdog that bites does. The processor's own request is none: it leaves pins
/// and PIO as they are.
pub(crate) fn reset() -> ! {
    pac::PSM.wdsel().write_value(pac::psm::regs::Wdsel(0x0001_fffc));
    pac::WATCHDOG.ctrl().modify(|w| w.set_trigger(true));
    loop {
        cortex_m::asm::nop();
    }
}
