//! The watchdog. Once started it is never stopped, and its time never changed: it is [`COUNT`] after each reload.
//!
//! So it is reloaded only where it is allowed at least that much: from the last such instant it runs to its end, which is
//! never after what the gate gave. A window shorter than [`COUNT`] may end in a reset before its time, and a hang in such a
//! window lasts until then; a longer one has its whole length but for the last 10 ms (`README.md`).

use embassy_nrf::pac::WDT;
use embassy_nrf::pac::wdt::vals::{Halt, Rr, Sleep};
use fencegate_node::Duration;

use crate::given;

/// What it counts to, in µs: longer than a store ([`crate::WORST_STORE`]) and a pulse of the gate's loop take.
const COUNT_US: u64 = 400_000;
/// The same in its ticks, of 32,768 Hz: a tick less, so that it is never longer.
const COUNT: u32 = 13_106;

/// The watchdog. It exists once.
pub(crate) struct Watchdog;

impl fencegate_node::Watchdog for Watchdog {
    fn feed(&mut self, within: Duration) {
        given::set(within);
        if !WDT.runstatus().read().runstatus() {
            WDT.config().write(|w| {
                w.set_sleep(Sleep::Run);
                w.set_halt(Halt::Pause);
            });
            WDT.crv().write_value(COUNT);
            WDT.rren().write(|w| w.set_rr(0, true));
            WDT.tasks_start().write_value(1);
        }
        // One that somebody else started goes on as that one had it, through a reset of the processor: then no gate.
        assert!(WDT.crv().read() == COUNT && WDT.rren().read().0 == 1, "not our watchdog");
        go_on();
    }
}

/// Reloads it, if what was last given leaves it that long: also called by what shows progress where 30 s were given.
pub(crate) fn go_on() {
    if given::left_us() >= COUNT_US {
        WDT.rr(0).write(|w| w.set_rr(Rr::Reload));
    }
}
