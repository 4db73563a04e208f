//! The LED on the board (GPIO 25): a flash every two seconds is safe, on is driven, a fast blink is a fault.
//!
//! There is no task behind it: it is set whenever the gate's loop comes by, and stands still when that hangs.

use embassy_rp::gpio::{Level, Output};
use embassy_time::Instant;
use fencegate_node::ChannelState;

/// The LED. It exists once.
pub(crate) struct Lamp(Output<'static>);

impl Lamp {
    /// Makes it of its pin.
    pub(crate) const fn new(pin: Output<'static>) -> Self {
        Self(pin)
    }
}

impl fencegate_node::Lamp for Lamp {
    fn show(&mut self, state: ChannelState) {
        let ms = Instant::now().as_millis();
        let lit = match state {
            ChannelState::Safe => ms % 2_000 < 150,
            ChannelState::Driven => true,
            ChannelState::Fault => ms % 400 < 200,
        };
        self.0.set_level(Level::from(lit));
    }
}
