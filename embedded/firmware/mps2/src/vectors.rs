//! What happens at reset, interrupts, faults and panics.
//!
//! Three ways lead out of a program that has gone wrong (a panic, a fault, an exception that nobody expects) and all
//! do the same: outputs low first, then a word to the host, then a reset. A hang is the watchdog's.

use core::{arch::global_asm, fmt, panic::PanicInfo};

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};
use semihosting::eprintln;

use crate::{
    executor, outputs,
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

/// The interrupt vectors: the AN385 has 32 lines, and this board enables four.
// SAFETY: cortex-m-rt places this section right behind the exceptions and asks for this symbol; a missing handler
// is a null vector, of an interrupt that is never enabled.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Option<extern "C" fn()>; 32] = {
    let mut vectors: [Option<extern "C" fn()>; 32] = [None; 32];
    vectors[Irq::Uart0Rx as usize] = Some(uart::on_receive);
    vectors[Irq::Uart0Tx as usize] = Some(uart::on_transmit);
    vectors[Irq::Timer1 as usize] = Some(time_driver::on_alarm);
    vectors[Irq::Tasks as usize] = Some(executor::on_tasks);
    vectors
};

/// Outputs low, last words, reset.
fn give_up(why: fmt::Arguments<'_>) -> ! {
    // Nothing may drive an output after this, so interrupts go first (one instruction).
    cortex_m::interrupt::disable();
    outputs::all_low();
    eprintln!("fencegate-mps2: {why}");
    SCB::sys_reset()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    give_up(format_args!("{info}"))
}

/// Memory, bus and usage faults end here too: none of them is enabled on its own.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    give_up(format_args!("hard fault at {:#010x}, called from {:#010x}", frame.pc(), frame.lr()))
}

#[exception]
unsafe fn DefaultHandler(exception: i16) -> ! {
    give_up(format_args!("unexpected exception {exception}"))
}

/// The watchdog's first zero, half-way to its reset: see [`crate::watchdog`] for why nothing is to be done.
#[exception]
unsafe fn NonMaskableInt() {}
