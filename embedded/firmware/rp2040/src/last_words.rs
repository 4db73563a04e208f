//! What is left when nothing else is: outputs low, a line in the log, a reset of the whole chip.

use core::panic::PanicInfo;

use cortex_m_rt::{ExceptionFrame, exception};
use embassy_rp::pac;

use crate::outputs;

/// Resets the chip, with the outputs low until then.
///
/// By the watchdog, and not by the processor's own request: that one leaves pins and PIO as they are.
fn give_up() -> ! {
    // Every domain but the two oscillators', as for a watchdog that bites.
    pac::PSM.wdsel().write_value(pac::psm::regs::Wdsel(0x0001_fffc));
    pac::WATCHDOG.ctrl().modify(|w| w.set_trigger(true));
    loop {
        cortex_m::asm::nop();
    }
}

/// Nothing may drive an output after this, so interrupts go first (one instruction).
fn be_safe() {
    cortex_m::interrupt::disable();
    outputs::all_low();
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    be_safe();
    // A message that would have to be formatted is left out; where it happened says which one it is.
    let message = info.message().as_str().unwrap_or_default();
    if let Some(place) = info.location() {
        defmt::error!("panic: {=str} ({=str}, line {=u32})", message, place.file(), place.line());
    }
    give_up()
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    be_safe();
    defmt::error!("hard fault at {=u32:#x}, called from {=u32:#x}", frame.pc(), frame.lr());
    give_up()
}

#[exception]
unsafe fn DefaultHandler(exception: i16) -> ! {
    be_safe();
    defmt::error!("unexpected exception {=i16}", exception);
    give_up()
}
