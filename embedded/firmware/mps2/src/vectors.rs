//! What happens at reset, interrupts, faults and panics.
//!
//! Three ways lead out of a program that has gone wrong (a panic, a fault, an exception that nobody expects) and all
//! do the same: outputs low first, then a word to the host, then a reset. A hang is the watchdog's.

use core::{arch::global_asm, panic::PanicInfo};

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};
use semihosting::io::{self, Write};

use crate::{
    executor, outputs, panel,
    regs::{Irq, LEDS_ADDRESS},
    time_driver, uart,
};

// The first instructions after reset, before RAM is set up: all outputs low. In assembly because no Rust may run
// before its statics exist.
global_asm!(
    ".section .text.__pre_init,\"ax\",%progbits",
    ".global __pre_init",
    ".type __pre_init,%function",
    ".thumb_func",
    "__pre_init:",
    "    movw r0, #{low}",
    "    movt r0, #{high}",
    "    movs r1, #0",
    "    str  r1, [r0]",
    "    bx   lr",
    ".size __pre_init, . - __pre_init",
    low = const LEDS_ADDRESS & 0xFFFF,
    high = const LEDS_ADDRESS >> 16,
);

/// The interrupt vectors: the AN385 has 32 lines, and this board enables five.
// SAFETY: cortex-m-rt places this section right behind the exceptions and asks for this symbol; a missing handler
// is a null vector, of an interrupt that is never enabled.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Option<extern "C" fn()>; 32] = {
    let mut vectors: [Option<extern "C" fn()>; 32] = [None; 32];
    vectors[Irq::Uart0Rx as usize] = Some(uart::on_receive);
    vectors[Irq::Uart0Tx as usize] = Some(uart::on_transmit);
    vectors[Irq::Uart1Rx as usize] = Some(panel::on_receive);
    vectors[Irq::Timer1 as usize] = Some(time_driver::on_alarm);
    vectors[Irq::Tasks as usize] = Some(executor::on_tasks);
    vectors
};

/// One of the last words.
enum Word<'a> {
    Text(&'a str),
    Number(u32),
}

/// Outputs low, last words, reset.
///
/// The words are put together without `core::fmt`, for size. They go to the host's standard error as they are: whoever
/// looks needs no image to read them, and the log may be what has gone wrong.
fn give_up(why: &[Word<'_>]) -> ! {
    // Nothing may drive an output after this, so interrupts go first (one instruction).
    cortex_m::interrupt::disable();
    outputs::all_low();
    if let Ok(mut host) = io::stderr() {
        // Whether anybody hears them changes nothing.
        let _ = say(&mut host, why);
    }
    SCB::sys_reset()
}

fn say(host: &mut io::Stderr, words: &[Word<'_>]) -> io::Result<()> {
    host.write_all(b"fencegate-mps2: ")?;
    for word in words {
        match word {
            Word::Text(text) => host.write_all(text.as_bytes())?,
            Word::Number(number) => host.write_all(&hexadecimal(*number))?,
        }
    }
    host.write_all(b"\n")
}

/// `0x` and eight digits.
fn hexadecimal(number: u32) -> [u8; 10] {
    let mut text = *b"0x00000000";
    for (place, digit) in text[2..].iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (4 * place)) as usize % 16];
    }
    text
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    use Word::{Number, Text};
    // A message that would have to be formatted is left out; where it happened says which one it is.
    let message = info.message().as_str().unwrap_or_default();
    match info.location() {
        Some(place) => give_up(&[
            Text("panic: "),
            Text(message),
            Text(" ("),
            Text(place.file()),
            Text(", line "),
            Number(place.line()),
            Text(")"),
        ]),
        None => give_up(&[Text("panic: "), Text(message)]),
    }
}

/// Memory, bus and usage faults end here too: none of them is enabled on its own.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    use Word::{Number, Text};
    give_up(&[Text("hard fault at "), Number(frame.pc()), Text(", called from "), Number(frame.lr())])
}

#[exception]
unsafe fn DefaultHandler(exception: i16) -> ! {
    // Negative for the processor's own, else the interrupt's number.
    give_up(&[Word::Text("unexpected exception "), Word::Number(i32::from(exception).cast_unsigned())])
}

/// The watchdog's first zero, half-way to its reset: see [`crate::watchdog`] for why nothing is to be done.
#[exception]
unsafe fn NonMaskableInt() {}
