//! embassy's clock, 1 MHz in 64 bits, out of two 32-bit timers that count down at 25 MHz.
//!
//! Timer 0 runs free and wraps every 2³² clocks (171.8 s). Timer 1 is the alarm.
//!
//! # Why time is right at the wrap
//!
//! The usual way counts wraps in timer 0's interrupt and adds the count to what the timer reads. It has to settle, at
//! every reading, whether a wrap has happened that is not counted yet; and these timers raise the interrupt when the
//! count goes from one *to* zero, a clock *before* it starts again. A reading of 0 with the interrupt pending belongs
//! to the old turn, and counting it as the new one puts the clock 171 s ahead.
//!
//! So wraps are not counted, and timer 0 has no interrupt. The clock keeps its last sample in 64 bits, and a new one
//! adds how far the timer has gone since, modulo 2³². That needs one thing, that two samples be less than one turn
//! apart, and then zero is a value like any other: there is no instant at which a reading is special, with interrupts
//! on or masked.
//!
//! - *It never goes back*: what is added is not negative, and a critical section spans reading the timer and storing
//!   the sample, so samples are stored in the order in which they were read.
//! - *It loses nothing*: every reading of the time is a sample, and the alarm is never set further ahead than
//!   [`HORIZON`], 43 s, and samples whenever it fires. Interrupts would have to be masked for the other 128 s of a turn
//!   at a stretch before a turn could go missing. A program that does that hangs, and a running watchdog that is
//!   given less than that has reset it.
//! - *It starts at zero*: the count is 0 from reset until [`init`], which makes the time 0; then it counts down from
//!   2³² − 1.
//!
//! Microseconds are whole clocks divided by 25, rounded down, so no rounding adds up. 2⁶⁴ clocks last 23,000 years.

use core::{
    cell::{Cell, RefCell},
    task::Waker,
};

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, TICK_HZ, time_driver_impl};
use embassy_time_queue_utils::Queue;

use crate::regs::{CLOCK_HZ, TIMER0, TIMER1, Timer};

/// Clocks of the timers in a tick of the driver.
const CLOCKS_PER_TICK: u64 = CLOCK_HZ as u64 / TICK_HZ;
const _: () = assert!(CLOCKS_PER_TICK * TICK_HZ == CLOCK_HZ as u64);

/// The furthest that the alarm is set ahead, in clocks: a quarter of timer 0's turn.
const HORIZON: u32 = 1 << 30;

struct Clock {
    /// Clocks since reset, at the latest sample. Its low 32 bits are the negative of what the timer read then.
    sample: Mutex<Cell<u64>>,
    /// Who sleeps until when.
    sleepers: Mutex<RefCell<Queue>>,
}

time_driver_impl!(static CLOCK: Clock = Clock {
    sample: Mutex::new(Cell::new(0)),
    sleepers: Mutex::new(RefCell::new(Queue::new())),
});

/// Starts the clock. Called once, by `Board::take`, before the alarm's interrupt is enabled.
pub(crate) fn init() {
    TIMER0.reload.write(u32::MAX);
    TIMER0.ctrl.write(Timer::ENABLE);
    critical_section::with(|cs| CLOCK.wake_and_arm(cs));
}

/// The alarm's interrupt handler.
pub(crate) extern "C" fn on_alarm() {
    critical_section::with(|cs| CLOCK.wake_and_arm(cs));
}

impl Clock {
    /// Takes a sample: clocks since reset.
    fn clocks(&self, cs: CriticalSection<'_>) -> u64 {
        let sample = self.sample.borrow(cs);
        let last = sample.get();
        let position = TIMER0.value.read().wrapping_neg();
        let last_position = (last & 0xFFFF_FFFF) as u32;
        let now = last + u64::from(position.wrapping_sub(last_position));
        sample.set(now);
        now
    }

    /// Wakes whoever is due and sets the alarm for the next, or for [`HORIZON`] if that is sooner.
    ///
    /// An alarm that fires early or for nothing does no harm: this runs again and sets it again. One is never missed:
    /// whoever is due at the instant of the sample is woken here, and for the others the timer starts from at least 1.
    fn wake_and_arm(&self, cs: CriticalSection<'_>) {
        let now = self.clocks(cs);
        let next = self.sleepers.borrow_ref_mut(cs).next_expiration(now / CLOCKS_PER_TICK);
        let wait = next.saturating_mul(CLOCKS_PER_TICK).saturating_sub(now);
        let wait = u32::try_from(wait).unwrap_or(HORIZON).clamp(1, HORIZON);

        TIMER1.ctrl.write(0);
        TIMER1.interrupt.write(1);
        TIMER1.reload.write(wait);
        TIMER1.ctrl.write(Timer::ENABLE | Timer::INTERRUPT);
    }
}

impl Driver for Clock {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.clocks(cs)) / CLOCKS_PER_TICK
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let changed = self.sleepers.borrow_ref_mut(cs).schedule_wake(at, waker);
            if changed {
                self.wake_and_arm(cs);
            }
        });
    }
}
