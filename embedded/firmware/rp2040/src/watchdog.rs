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

use core::cell::Cell;

use critical_section::Mutex;
use embassy_rp::pac;
use embassy_time::Instant;
use fencegate_node::Duration;

/// The most that the hardware counts, in µs.
const MOST_US: u64 = 8_300_000;

/// When what the watchdog was last given is over, in µs of the board's clock.
static OVER: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));

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
        let over = Instant::now().as_micros().saturating_add(within.as_micros());
        critical_section::with(|cs| OVER.borrow(cs).set(over));
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
    let over = critical_section::with(|cs| OVER.borrow(cs).get());
    let left = over.saturating_sub(Instant::now().as_micros()).min(MOST_US);
    if let Ok(left @ 1..) = u32::try_from(left) {
        // Two a microsecond, as `embassy_rp::watchdog` loads it.
        pac::WATCHDOG.load().write_value(pac::watchdog::regs::Load(2 * left));
    }
}
