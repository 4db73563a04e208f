//! What is wired to the inputs: the emergency stop, presence, and the contacts behind the outputs.

use core::convert::Infallible;

use embassy_rp::gpio::Input;
use embassy_rp::pac::IO_BANK0;
use embedded_hal::digital::{ErrorType, InputPin};

use crate::outputs;

/// The GPIO of the emergency stop's contact.
pub(crate) const INHIBIT: u8 = 14;

/// Its register, and its place in that.
const LATCH: (usize, usize) = (INHIBIT as usize / 8, INHIBIT as usize % 8);

/// The emergency stop's contact, normally closed to ground, with a pull-up. It exists once.
///
/// The outputs look at it themselves. So that the gate never takes for driven what they have dropped, an opening that was
/// over before anybody asked counts as well: the pin's edge detector keeps it.
pub(crate) struct Inhibit(Input<'static>);

impl Inhibit {
    /// Makes it of its pin.
    pub(crate) const fn new(pin: Input<'static>) -> Self {
        Self(pin)
    }
}

impl ErrorType for Inhibit {
    type Error = Infallible;
}

impl InputPin for Inhibit {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let (register, place) = LATCH;
        let opened = IO_BANK0.intr(register).read().edge_high(place);
        // Cleared by writing a one, only where it was seen, and before the level is read: what opens in between counts now or
        // at the next look.
        if opened {
            IO_BANK0.intr(register).write(|w| w.set_edge_high(place, true));
        }
        Ok(opened || self.0.is_high())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}

/// The presence contact, normally open to 3.3 V, with a pull-down: a broken wire is nobody. It exists once.
pub(crate) struct Presence(Input<'static>);

impl Presence {
    /// Makes it of its pin.
    pub(crate) const fn new(pin: Input<'static>) -> Self {
        Self(pin)
    }
}

impl ErrorType for Presence {
    type Error = Infallible;
}

impl InputPin for Presence {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.is_high())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.is_low())
    }
}

/// The contacts behind the outputs, each to ground, with a pull-up: a broken wire is an open contact. They exist once.
pub(crate) struct Contacts([Input<'static>; outputs::COUNT]);

impl Contacts {
    /// Makes them of their pins, in the order of the outputs.
    pub(crate) const fn new(pins: [Input<'static>; outputs::COUNT]) -> Self {
        Self(pins)
    }
}

impl fencegate_node::Contacts for Contacts {
    fn is_closed(&mut self, output: usize) -> bool {
        self.0.get(output).is_some_and(Input::is_low)
    }
}
