//! The registers that this board uses, and nothing else that touches memory by address.

use core::ptr::with_exposed_provenance_mut;

use cortex_m::interrupt::InterruptNumber;

/// One 32-bit device register.
///
/// Only this module makes them, at addresses of the AN385's memory map, which is why reading and writing are safe; words
/// of RAM that the linker does not have are among them.
#[derive(Clone, Copy)]
pub(crate) struct Reg(usize);

impl Reg {
    /// Reads the register.
    pub(crate) fn read(self) -> u32 {
        // SAFETY: `self.0` is the aligned address of a device register or a spare word (see the type), always mapped and
        // never memory that Rust knows of; the devices give 32 bits for every read.
        unsafe { with_exposed_provenance_mut::<u32>(self.0).read_volatile() }
    }

    /// Writes the register.
    pub(crate) fn write(self, value: u32) {
        // SAFETY: as in `read`. None of these devices reads or writes memory by itself, so no value can break
        // memory safety.
        unsafe { with_exposed_provenance_mut::<u32>(self.0).write_volatile(value) }
    }
}

/// A CMSDK APB timer: 32 bits, counting down at [`CLOCK_HZ`].
pub(crate) struct Timer {
    /// Control: [`Timer::ENABLE`], [`Timer::INTERRUPT`].
    pub(crate) ctrl: Reg,
    /// The count.
    pub(crate) value: Reg,
    /// What the count starts again from after zero; writing it sets the count too.
    pub(crate) reload: Reg,
    /// Interrupt status; writing 1 clears it.
    pub(crate) interrupt: Reg,
}

impl Timer {
    /// `ctrl`: count.
    pub(crate) const ENABLE: u32 = 1;
    /// `ctrl`: interrupt when the count goes from one to zero.
    pub(crate) const INTERRUPT: u32 = 1 << 3;

    const fn at(base: usize) -> Self {
        Self { ctrl: Reg(base), value: Reg(base + 4), reload: Reg(base + 8), interrupt: Reg(base + 0xC) }
    }
}

/// A CMSDK APB UART: one byte of buffer each way.
pub(crate) struct Uart {
    /// The byte received; writing sends.
    pub(crate) data: Reg,
    /// [`Uart::TX_FULL`], [`Uart::RX_FULL`].
    pub(crate) state: Reg,
    /// Control.
    pub(crate) ctrl: Reg,
    /// Interrupt status, [`Uart::TX`] and [`Uart::RX`]; writing 1 clears a bit.
    pub(crate) interrupt: Reg,
    /// Clock cycles a bit.
    pub(crate) divider: Reg,
}

impl Uart {
    /// `state`: the byte to send has not left yet.
    pub(crate) const TX_FULL: u32 = 1;
    /// `state`: a byte received has not been read yet.
    pub(crate) const RX_FULL: u32 = 1 << 1;
    /// `interrupt`: `TX_FULL` went away.
    pub(crate) const TX: u32 = 1;
    /// `interrupt`: a byte came.
    pub(crate) const RX: u32 = 1 << 1;
    /// `ctrl`: transmitter, receiver and the interrupts of both.
    pub(crate) const CTRL_ON: u32 = 0b1111;
    /// `ctrl`: the transmitter's interrupt, one of [`Uart::CTRL_ON`].
    pub(crate) const CTRL_TX_INTERRUPT: u32 = 1 << 2;

    const fn at(base: usize) -> Self {
        Self {
            data: Reg(base),
            state: Reg(base + 4),
            ctrl: Reg(base + 8),
            interrupt: Reg(base + 0xC),
            divider: Reg(base + 0x10),
        }
    }
}

/// The CMSDK APB watchdog: 32 bits, counting down at [`CLOCK_HZ`].
pub(crate) struct Watchdog {
    /// What the count starts from; writing it starts the count again.
    pub(crate) load: Reg,
    /// Control.
    pub(crate) ctrl: Reg,
    /// Writing anything clears the interrupt and starts the count again.
    pub(crate) interrupt_clear: Reg,
    /// Writing [`Watchdog::UNLOCK`] opens the other registers to writes, anything else closes them.
    pub(crate) lock: Reg,
}

impl Watchdog {
    /// `ctrl`: count, with an interrupt at the first zero and a reset at the second.
    pub(crate) const CTRL_ON: u32 = 0b11;
    /// `lock`: the key.
    pub(crate) const UNLOCK: u32 = 0x1ACC_E551;

    const fn at(base: usize) -> Self {
        Self { load: Reg(base), ctrl: Reg(base + 8), interrupt_clear: Reg(base + 0xC), lock: Reg(base + 0xC00) }
    }
}

/// The clock of every device below.
pub(crate) const CLOCK_HZ: u32 = 25_000_000;

/// Timer 0: the free-running clock.
pub(crate) const TIMER0: Timer = Timer::at(0x4000_0000);
/// Timer 1: the alarm.
pub(crate) const TIMER1: Timer = Timer::at(0x4000_1000);
/// UART 0: the cable.
pub(crate) const UART0: Uart = Uart::at(0x4000_4000);
/// UART 1: the front panel.
pub(crate) const UART1: Uart = Uart::at(0x4000_5000);
/// The watchdog.
pub(crate) const WATCHDOG: Watchdog = Watchdog::at(0x4000_8000);
/// `CFG1` of the serial communication controller: eight user LEDs, of which the low six are the outputs.
pub(crate) const LEDS: Reg = Reg(LEDS_ADDRESS);
/// The address of [`LEDS`], for code that runs before Rust does.
pub(crate) const LEDS_ADDRESS: usize = 0x4002_F004;
/// The last four words of RAM, which `memory.x` keeps from the linker: what outlasts a reset. These two are the panel's.
pub(crate) const KEPT: [Reg; 2] = [Reg(0x203F_FFF8), Reg(0x203F_FFFC)];
/// And these the flash's.
pub(crate) const LEFT_OPEN: [Reg; 2] = [Reg(0x203F_FFF0), Reg(0x203F_FFF4)];

/// The interrupts that this board uses.
#[derive(Clone, Copy)]
pub(crate) enum Irq {
    /// UART 0 received a byte.
    Uart0Rx = 0,
    /// UART 0 can take another byte.
    Uart0Tx = 1,
    /// UART 1 received a byte.
    Uart1Rx = 2,
    /// Timer 1 reached zero.
    Timer1 = 9,
    /// The tasks: the line of GPIO 0's last pin, which stays switched off.
    Tasks = 31,
}

// SAFETY: the numbers are those of the AN385 and never change.
unsafe impl InterruptNumber for Irq {
    fn number(self) -> u16 {
        self as u16
    }
}
