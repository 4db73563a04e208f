//! What a gate is told at boot: by its board, and by its store.

use crate::latched::Latched;
use fencegate::{Duration, FenceRecord, GrantRecord};
use fencegate_wire::MAX_CHANNELS;

/// What a board promises about itself.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    /// How many outputs it has.
    pub outputs: usize,
    /// The longest that storing one entry may take, the erase of a page in each copy included.
    pub worst_store: Duration,
    /// Whether its outputs become 0 at the end of their window by hardware alone ([`Output::DROPS`](crate::Output::DROPS)).
    pub drops: bool,
}

/// What a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    /// It never was a gate: it knows only the factory key, which everybody knows, and obeys nothing but a provisioning.
    Blank,
    /// It was one, and its provisioning is lost: it obeys nothing at all.
    Lost,
    /// It is one.
    Gate,
}

/// What the store has found of the gate at boot.
#[derive(Clone, Debug)]
pub struct Memory {
    /// How often the gate has booted, this time included; where that was lost, a number that no other boot has had. It
    /// is not stored yet: [`Store::count`](crate::Store::count) does that once somebody speaks.
    pub boots: u32,
    /// For how many of them, this one included, no time of running has made up, as far as it is worth storing.
    pub restless: u32,
    /// Whether anything can be stored at all. Where not, nothing that changes state is obeyed, the operator's epoch
    /// included: the next boot would not know of it.
    pub storable: bool,
    /// How many records were damaged in one copy, or differed, and were mended.
    pub mended: u8,
    /// Which channels wait for a rearm.
    pub latched: Latched,
    /// Whether that has to be stored anew: the copies differ, or it was lost.
    pub unsure: bool,
    /// Where each channel's fence stands.
    pub marks: heapless::Vec<Remembered, MAX_CHANNELS>,
}

impl Memory {
    /// What is known before the store was read.
    pub const fn nothing() -> Self {
        let latched = Latched { serial: 0, inhibited: 0, astray: 0 };
        Self { boots: 0, restless: 0, storable: true, mended: 0, latched, unsure: false, marks: heapless::Vec::new() }
    }
}

/// What is left of a channel's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// Where the fence stands, in both copies, and how long a lease of the channel's own authority may still run.
    Mark(GrantRecord),
    /// It was lost. This could still be read, and the fence stood there or higher.
    Lost(FenceRecord),
}
