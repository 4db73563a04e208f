//! The board as its parts.

use cortex_m::peripheral::NVIC;

use crate::{
    flash::{self, Flash},
    outputs::{self, Output},
    panel::{self, Contacts, Inhibit, Presence},
    regs::Irq,
    time_driver,
    uart::{self, Rx, Tx},
    watchdog::{self, Watchdog},
};

/// Everything that this board gives to a program.
pub(crate) struct Board {
    /// From the cable.
    pub(crate) rx: Rx,
    /// To the cable.
    pub(crate) tx: Tx,
    /// Storage that outlasts a power cut.
    pub(crate) flash: Flash,
    /// The outputs, all low.
    pub(crate) outputs: [Output; outputs::COUNT],
    /// High while the emergency stop is pressed.
    pub(crate) inhibit: Inhibit,
    /// High while somebody is at the board.
    pub(crate) presence: Presence,
    /// The contacts behind the outputs.
    pub(crate) contacts: Contacts,
    /// The watchdog, not started.
    pub(crate) watchdog: Watchdog,
}

impl Board {
    /// Starts the clock and the UART and hands out the parts.
    ///
    /// # Panics
    ///
    /// The second time: the parts exist once.
    pub(crate) fn take() -> Self {
        let mut core = cortex_m::Peripherals::take().expect("the board is taken once");

        time_driver::init();
        let (rx, tx) = uart::take();
        let (inhibit, presence, contacts) = panel::take();
        // SAFETY: the handlers are in the vector table and what they use is set up. No critical section works by
        // priority, so setting one breaks none.
        unsafe {
            // The alarm interrupts the UARTs (a queue of bytes does not make a deadline late), and both the tasks.
            core.NVIC.set_priority(Irq::Timer1, 0x00);
            core.NVIC.set_priority(Irq::Uart0Rx, 0x80);
            core.NVIC.set_priority(Irq::Uart0Tx, 0x80);
            core.NVIC.set_priority(Irq::Uart1Rx, 0x80);
            core.NVIC.set_priority(Irq::Tasks, 0xE0);
            NVIC::unmask(Irq::Timer1);
            NVIC::unmask(Irq::Uart0Rx);
            NVIC::unmask(Irq::Uart0Tx);
            NVIC::unmask(Irq::Uart1Rx);
        }

        Self {
            rx,
            tx,
            flash: flash::take(),
            outputs: outputs::take(),
            inhibit,
            presence,
            contacts,
            watchdog: watchdog::take(),
        }
    }
}
