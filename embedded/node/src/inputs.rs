//! What the board's inputs say.

use core::convert::Infallible;
use embedded_hal::digital::{ErrorType, InputPin};

/// The levels of a board's inputs at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inputs {
    /// Whether the inhibit input is open: every output is safe whatever the cable says.
    pub inhibit: bool,
    /// Whether somebody is beside the board.
    pub presence: bool,
    /// Which of the contacts behind the outputs are closed, a bit an output.
    pub closed: u16,
}

impl Inputs {
    /// Whether the contact behind an output is closed.
    pub(crate) const fn is_closed(self, output: usize) -> bool {
        output < 16 && self.closed >> output & 1 != 0
    }
}

/// The feedback contacts behind the outputs.
pub trait Contacts {
    /// Whether the contact behind an output, counted over the whole board, is closed. It is asked only where a feedback
    /// was provisioned.
    fn is_closed(&mut self, output: usize) -> bool;
}

/// An input that is not there: an inhibit that never opens, nobody present, no contact ever closed.
#[derive(Clone, Copy, Debug)]
pub struct Unwired;

impl ErrorType for Unwired {
    type Error = Infallible;
}

impl InputPin for Unwired {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(true)
    }
}

impl Contacts for Unwired {
    fn is_closed(&mut self, _: usize) -> bool {
        false
    }
}
