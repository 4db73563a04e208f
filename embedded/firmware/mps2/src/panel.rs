//! The front panel, on UART 1: what a person or a relay would do to the board's inputs. The emulator's own buttons
//! always read 0.
//!
//! Two characters set one level; everything else is ignored, and a letter always begins anew.
//!
//! | written | level |
//! |---|---|
//! | `i1`, `i0` | the emergency stop is pressed; pulled out again |
//! | `p1`, `p0` | somebody is at the board; nobody is |
//! | `c0` … `c5` | the contact behind that output sticks closed (a welded relay) |
//! | `o0` … `o5` | it sticks open |
//! | `f0` … `f5` | it follows the output |
//!
//! What was understood is written back with a line feed, once it holds; an answer that is not taken is dropped.
//!
//! With the power the levels are: stop pulled out, nobody there, contacts that follow. They outlast a reset, as a
//! pressed button does.

use core::{cell::Cell, convert::Infallible};

use critical_section::Mutex;
use embedded_hal::digital::{ErrorType, InputPin};

use crate::{
    outputs,
    regs::{KEPT, LEDS, Reg, UART1, Uart},
    uart::DIVIDER,
};

/// The emergency stop's contact, normally closed to ground with a pull-up. It exists once.
pub(crate) struct Inhibit(());

/// The presence contact. It exists once.
pub(crate) struct Presence(());

/// The feedback contacts. They exist once.
pub(crate) struct Contacts(());

/// Bits of [`Levels`].
const INHIBIT: u32 = 1;
const PRESENCE: u32 = 1 << 1;
/// The contact of output 0 does not follow; the others' bits come after it.
const STUCK: u32 = 1 << 8;
/// It is closed where it does not follow.
const CLOSED: u32 = 1 << 16;

/// The last letter, while its digit is awaited; else 0.
static LETTER: Mutex<Cell<u8>> = Mutex::new(Cell::new(0));

/// Switches the UART on. Called once, by `Board::take`, before its interrupt is enabled.
pub(crate) fn take() -> (Inhibit, Presence, Contacts) {
    UART1.divider.write(DIVIDER);
    UART1.ctrl.write(Uart::CTRL_ON & !Uart::CTRL_TX_INTERRUPT);
    (Inhibit(()), Presence(()), Contacts(()))
}

/// The receive interrupt's handler.
///
/// It acknowledges first and looks afterwards, so a byte that comes in between interrupts again.
pub(crate) extern "C" fn on_receive() {
    UART1.interrupt.write(Uart::RX);
    while UART1.state.read() & Uart::RX_FULL != 0 {
        take_byte(UART1.data.read().to_le_bytes()[0]);
    }
}

fn take_byte(byte: u8) {
    critical_section::with(|cs| {
        let letter = LETTER.borrow(cs);
        let pair = [letter.replace(if byte.is_ascii_lowercase() { byte } else { 0 }), byte];
        let before = levels();
        if let Some(after) = changed(before, pair) {
            // The second word is the first one's complement: RAM says anything when the power comes.
            let [levels, check] = KEPT;
            levels.write(after);
            check.write(!after);
            answer(pair);
        }
    });
}

/// The levels after `pair`, if it sets any.
fn changed(levels: u32, [letter, digit]: [u8; 2]) -> Option<u32> {
    let number = digit.checked_sub(b'0')?;
    let set = |bit: u32, high: bool| if high { levels | bit } else { levels & !bit };
    let (stuck, closed) = match (letter, number) {
        (b'i', 0 | 1) => return Some(set(INHIBIT, number == 1)),
        (b'p', 0 | 1) => return Some(set(PRESENCE, number == 1)),
        (b'f', _) => (false, false),
        (b'o', _) => (true, false),
        (b'c', _) => (true, true),
        _ => return None,
    };
    if usize::from(number) >= outputs::COUNT {
        return None;
    }
    let levels = levels & !((STUCK | CLOSED) << number);
    Some(levels | if stuck { STUCK << number } else { 0 } | if closed { CLOSED << number } else { 0 })
}

fn answer(pair: [u8; 2]) {
    for byte in pair.into_iter().chain(*b"\n") {
        // The emulator takes a byte at once, unless whoever is connected does not read.
        if UART1.state.read() & Uart::TX_FULL != 0 {
            return;
        }
        UART1.data.write(u32::from(byte));
    }
}

fn levels() -> u32 {
    critical_section::with(|_| {
        let [levels, check] = KEPT.map(Reg::read);
        if levels == !check { levels } else { 0 }
    })
}

impl ErrorType for Inhibit {
    type Error = Infallible;
}

impl InputPin for Inhibit {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(levels() & INHIBIT != 0)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(levels() & INHIBIT == 0)
    }
}

impl ErrorType for Presence {
    type Error = Infallible;
}

impl InputPin for Presence {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(levels() & PRESENCE != 0)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(levels() & PRESENCE == 0)
    }
}

impl fencegate_node::Contacts for Contacts {
    fn is_closed(&mut self, output: usize) -> bool {
        let levels = levels();
        if levels & (STUCK << output) == 0 {
            LEDS.read() & (1 << output) != 0
        } else {
            levels & (CLOSED << output) != 0
        }
    }
}
