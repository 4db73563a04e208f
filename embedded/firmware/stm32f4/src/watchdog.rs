//! The watchdog (IWDG): a clock of its own, and nothing but a reset stops it.
//!
//! That clock (LSI) has 17 to 47 kHz, 32 as a rule. It is loaded for the slowest, so that it never bites late; at the
//! fastest it bites after 36 % of what it was given. Its reach is 7.7 s so counted, 2.8 s at the fastest. Of longer loads the
//! rest is handed to it piece by piece, by each write or erase that ends ([`go_on`]).

use embassy_stm32::pac::iwdg::vals::{Key, Pr};
use embassy_stm32::pac::{DBGMCU, IWDG};
use fencegate_node::Duration;

use crate::given;

/// LSI at its slowest, in Hz (DS10693, "LSI oscillator characteristics").
const SLOWEST_HZ: u64 = 17_000;
/// A tick is so many of its periods: 1.9 ms at the slowest.
const DIVIDER: (Pr, u64) = (Pr::DIVIDE_BY32, 32);

/// The watchdog, and whether it was started. It exists once.
pub(crate) struct Watchdog(pub(crate) bool);

impl fencegate_node::Watchdog for Watchdog {
    fn feed(&mut self, within: Duration) {
        given::set(within);
        if !core::mem::replace(&mut self.0, true) {
            // Only a debugger that has stopped the processor stops it.
            DBGMCU.apb1fzr().modify(|w| w.set_iwdg(true));
            IWDG.kr().write(|w| w.set_key(Key::START));
            IWDG.kr().write(|w| w.set_key(Key::ENABLE));
            IWDG.pr().write(|w| w.set_pr(DIVIDER.0));
            settled();
        }
        go_on();
    }
}

/// Loads it with what is left of what was last given.
pub(crate) fn go_on() {
    // It bites one tick after it has come to 0.
    let ticks = (given::left_us().saturating_mul(SLOWEST_HZ) / (DIVIDER.1 * 1_000_000)).saturating_sub(1).min(0xfff);
    if let Ok(ticks @ 1..) = u16::try_from(ticks) {
        IWDG.kr().write(|w| w.set_key(Key::ENABLE));
        IWDG.rlr().write(|w| w.set_rl(ticks));
        settled();
        IWDG.kr().write(|w| w.set_key(Key::RESET));
    }
}

/// Waits until it has taken what was written to it: five periods of its clock, 0.3 ms, and not for ever.
fn settled() {
    let taken = (0..1_000_000).any(|_| !IWDG.sr().read().pvu() && !IWDG.sr().read().rvu());
    assert!(taken, "the watchdog's clock stands");
}
