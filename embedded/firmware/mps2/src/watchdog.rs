//! The watchdog: a program that stops feeding it is reset within the time it was last given.
//!
//! The device counts down twice. At the first zero it raises the non-maskable interrupt, at the second it resets the
//! machine. Each half gets half of the time, and the interrupt does nothing: so the bound is the device's own, whatever
//! the program does or has done to its vectors and its stack, and a program that is merely late may still feed in the
//! second half. The price of the other way (the whole time, then a handler that asks for a reset) is a hang that lasts
//! twice as long when that handler is what broke.
//!
//! A reset leaves the outputs low: the LED register is cleared by it, and the start-up code clears it again.
//!
//! **Not so on a board:** the emulator's host is no real-time system. It may not run the emulator for some milliseconds,
//! and then the alarm and the watchdog are due at once, with the watchdog the winner. So a feed gives [`LEAST_US`] at
//! least, which is more than the last milliseconds of a window have left.

use fencegate_node::Duration;

use crate::regs::{self, CLOCK_HZ};

/// The least time between a feed and the reset, longer than the host's scheduler usually leaves the emulator alone.
const LEAST_US: u64 = 100_000;

/// The watchdog. It exists once, and once started it cannot be stopped.
pub(crate) struct Watchdog {
    registers: regs::Watchdog,
    started: bool,
}

/// Makes the watchdog. Called once, by `Board::take`.
pub(crate) fn take() -> Watchdog {
    Watchdog { registers: regs::WATCHDOG, started: false }
}

impl fencegate_node::Watchdog for Watchdog {
    /// Starts the count again, and the watchdog itself the first time. The longest that the device can count is 343 s.
    fn feed(&mut self, within: Duration) {
        // Locked between feeds: a stray write does not stop it.
        self.registers.lock.write(regs::Watchdog::UNLOCK);
        // First the new count, then the interrupt of an old one: at no instant is there more time than was asked for.
        self.registers.load.write(half_count(within.as_micros().max(LEAST_US)));
        self.registers.interrupt_clear.write(1);
        if !self.started {
            self.registers.ctrl.write(regs::Watchdog::CTRL_ON);
            self.started = true;
        }
        self.registers.lock.write(0);
    }
}

/// The count for one of the two halves; counting `n` down and starting again takes `n + 1` clocks.
const fn half_count(timeout_us: u64) -> u32 {
    let clocks = timeout_us.saturating_mul((CLOCK_HZ / 1_000_000) as u64) / 2;
    match clocks {
        0..=1 => 1,
        #[expect(clippy::cast_possible_truncation, reason = "the arm's range is that of u32")]
        2..=0xFFFF_FFFF => clocks as u32 - 1,
        _ => u32::MAX,
    }
}
