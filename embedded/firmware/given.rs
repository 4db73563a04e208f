//! What the gate gave the watchdog last. One for all boards whose watchdog counts less far than that, or a time that cannot be
//! changed: each has it as a module, and hands its hardware the rest piece by piece.

use core::cell::Cell;

use critical_section::Mutex;
use embassy_time::Instant;
use fencegate_node::Duration;

/// When it is over, in µs of the board's clock.
static OVER: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));

/// So much is given, from now on.
pub(crate) fn set(within: Duration) {
    let over = Instant::now().as_micros().saturating_add(within.as_micros());
    critical_section::with(|cs| OVER.borrow(cs).set(over));
}

/// How much of it is left, in µs.
pub(crate) fn left_us() -> u64 {
    let over = critical_section::with(|cs| OVER.borrow(cs).get());
    over.saturating_sub(Instant::now().as_micros())
}
