//! What is left when nothing else is: outputs low, a line in the log, a reset. One for all boards whose log is `defmt`'s:
//! each has it as a module, and at its own root `all_low` and `reset`.

use core::panic::PanicInfo;

use cortex_m_rt::{ExceptionFrame, exception};

/// Nothing may drive an output after this, so interrupts go first (one instruction).
fn be_safe() {
    cortex_m::interrupt::disable();
    crate::all_low();
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    be_safe();
    // A message that would have to be formatted is left out; where it happened says which one it is.
    let message = info.message().as_str().unwrap_or_default();
    if let Some(place) = info.location() {
        defmt::error!("panic: {=str} ({=str}, line {=u32})", message, place.file(), place.line());
    }
    crate::reset()
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    be_safe();
    defmt::error!("hard fault at {=u32:#x}, called from {=u32:#x}", frame.pc(), frame.lr());
    crate::reset()
}

#[exception]
unsafe fn DefaultHandler(exception: i16) -> ! {
    be_safe();
    defmt::error!("unexpected exception {=i16}", exception);
    crate::reset()
}
