//! What is left when nothing else is: outputs low, a line in the log, a reset. One for all boards whose log is `defmt`'s:
//! each has it as a module, and at its own root `all_low` and `reset`.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use cortex_m_rt::{ExceptionFrame, exception};

/// Whether they have begun.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Nothing may drive an output after this, so interrupts go first (one instruction). With that nobody comes in between, and
/// a load and a store do: the Cortex-M0+ has nothing better.
///
/// The second time is a fault of the last words themselves, or of the log where they were its own: it panics when it is
/// entered twice. Nothing more is said then, or there would be no end to it.
fn be_safe() {
    cortex_m::interrupt::disable();
    crate::all_low();
    if BEGUN.load(Ordering::Relaxed) {
        crate::reset();
    }
    BEGUN.store(true, Ordering::Relaxed);
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

/// Unsafe, so that nobody calls it by mistake. It is sound since only the vector table does, with the frame that the
/// processor itself has just stacked, and which is only read.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    be_safe();
    defmt::error!("hard fault at {=u32:#x}, called from {=u32:#x}", frame.pc(), frame.lr());
    crate::reset()
}

/// Unsafe for the same reason. It is sound since only the vector table calls it, with the processor's own number, and it does
/// nothing that is unsafe.
#[exception]
unsafe fn DefaultHandler(exception: i16) -> ! {
    be_safe();
    defmt::error!("unexpected exception {=i16}", exception);
    crate::reset()
}
