//! The six outputs: bits 0 to 5 of the LED register, high is driven, low is safe.

use core::convert::Infallible;

use embedded_hal::digital::{ErrorType, OutputPin, StatefulOutputPin};

use crate::regs::LEDS;

/// How many outputs there are.
pub(crate) const COUNT: usize = 6;

/// One output. Each exists once: [`take`] makes them.
pub(crate) struct Output {
    mask: u32,
}

/// Makes the six outputs.
///
/// Called once, by `Board::take`. They have been low since reset.
pub(crate) fn take() -> [Output; COUNT] {
    core::array::from_fn(|bit| Output { mask: 1 << bit })
}

/// Drives every output low, from wherever the program is: it takes no lock and cannot fail.
pub(crate) fn all_low() {
    LEDS.write(0);
}

impl Output {
    /// Changes the one bit. The six share a register, and an output may be driven from an interrupt, so reading and
    /// writing back must not be interrupted.
    fn drive(&mut self, high: bool) {
        critical_section::with(|_| {
            let others = LEDS.read() & !self.mask;
            LEDS.write(others | if high { self.mask } else { 0 });
        });
    }
}

impl ErrorType for Output {
    type Error = Infallible;
}

impl OutputPin for Output {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.drive(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.drive(true);
        Ok(())
    }
}

impl StatefulOutputPin for Output {
    fn is_set_high(&mut self) -> Result<bool, Infallible> {
        Ok(LEDS.read() & self.mask != 0)
    }

    fn is_set_low(&mut self) -> Result<bool, Infallible> {
        Ok(LEDS.read() & self.mask == 0)
    }
}
