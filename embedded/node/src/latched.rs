//! Which channels wait for the operator's rearm, through resets and power cuts too.

use fencegate_wire::Fault;
use serde::{Deserialize, Serialize};

/// The channels whose fault outlives its cause, a bit each. It is stored when such a fault begins, and before a rearm that
/// ends it is acknowledged. Between two stores there is an operator's rearm, so that no chattering contact wears the flash
/// out by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Latched {
    /// How often it has changed: within a copy the later counts.
    pub(crate) serial: u32,
    /// Those that an inhibit has made safe.
    pub(crate) inhibited: u8,
    /// Those whose contact did not follow.
    pub(crate) astray: u8,
}

impl Latched {
    /// What is taken for granted where it cannot be read any more: every channel waits for a rearm.
    pub(crate) const UNKNOWN: Self = Self { serial: 0, inhibited: u8::MAX, astray: 0 };

    /// What holds a channel.
    pub(crate) fn fault(self, channel: usize) -> Option<Fault> {
        let holds =
            |bits: u8| u32::try_from(channel).ok().and_then(|n| bits.checked_shr(n)).is_some_and(|b| b & 1 == 1);
        let astray = holds(self.astray).then_some(Fault::Feedback);
        astray.or(holds(self.inhibited).then_some(Fault::Inhibited))
    }

    /// Whether it holds the same channels for the same reasons.
    pub(crate) const fn says(self, other: Self) -> bool {
        self.inhibited == other.inhibited && self.astray == other.astray
    }

    /// What either holds. Where the copies differ, one of them was cut off: a rearm that only one has was answered to nobody,
    /// and may read as never written tomorrow.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let (inhibited, astray) = (self.inhibited | other.inhibited, self.astray | other.astray);
        Self { serial: self.serial.max(other.serial), inhibited, astray }
    }

    /// Whether it holds anything.
    pub(crate) const fn is_any(self) -> bool {
        self.inhibited | self.astray != 0
    }

    /// What follows it where these faults hold the channels; one that the gate has not any more is held as it was. After 2³²
    /// changes there is no later one: every flash is worn out before.
    pub(crate) fn next(self, faults: impl Iterator<Item = Option<Fault>>) -> Option<Self> {
        let mut next = Self { serial: self.serial.checked_add(1)?, ..self };
        for (bit, fault) in (0..8).map(|n| 1 << n).zip(faults) {
            (next.inhibited, next.astray) = (next.inhibited & !bit, next.astray & !bit);
            match fault {
                Some(Fault::Inhibited) => next.inhibited |= bit,
                Some(Fault::Feedback) => next.astray |= bit,
                _ => {}
            }
        }
        Some(next)
    }
}
