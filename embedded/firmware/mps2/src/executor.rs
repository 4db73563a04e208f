//! Where the tasks run: in the handler of an interrupt that no device uses, under every device's priority.
//!
//! embassy's thread-mode executor idles in `WFE`, which QEMU takes for "go on": an idle gate would keep a core of
//! the host busy. This way the thread mode has nothing to do but `WFI`, at which QEMU sleeps. There is no window
//! between looking for work and going to sleep: work is a pending interrupt, and the processor takes it before it waits.

use cortex_m::asm::wfi;
use embassy_executor::{InterruptExecutor, SendSpawner};

use crate::regs::Irq;

static EXECUTOR: InterruptExecutor = InterruptExecutor::new();

/// Starts the tasks that `spawn` spawns, and never returns. Called once, after `Board::take`, which sets the priority.
///
/// Only what a task is given must be `Send`; a future is made where it stays. A task spawns others that are not through
/// `Spawner::for_current_executor`.
pub(crate) fn run(spawn: impl FnOnce(SendSpawner)) -> ! {
    spawn(EXECUTOR.start(Irq::Tasks));
    loop {
        wfi();
    }
}

/// The interrupt handler.
pub(crate) extern "C" fn on_tasks() {
    // SAFETY: this is the handler of `Irq::Tasks`, called from nowhere else; only `EXECUTOR.start` unmasks that
    // interrupt, and only the executor pends it, after it was started.
    unsafe { EXECUTOR.on_interrupt() }
}
