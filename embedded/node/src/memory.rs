//! What a gate is told at boot: by its board, and by its store.

use fencegate::{Duration, FenceRecord};
use fencegate_wire::MAX_CHANNELS;

/// What a board promises about itself.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    /// How many outputs it has.
    pub outputs: usize,
    /// The longest that storing one record may take, the erase of a page included.
    pub worst_store: Duration,
}

/// What the store has found of the gate at boot.
#[derive(Clone, Debug)]
pub struct Memory {
    /// How often the gate has booted, this time included; where that was lost, a number that no other boot has had.
    pub boots: u32,
    /// Whether anything can be stored at all. Where not, nothing that changes state is obeyed, the operator's epoch
    /// included: the next boot would not know of it.
    pub storable: bool,
    /// Where each channel's fence stands.
    pub records: heapless::Vec<Remembered, MAX_CHANNELS>,
}

/// What is left of a channel's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// Where the fence stands, in both copies.
    Fence(FenceRecord),
    /// It was lost. This could still be read, and the fence stood there or higher.
    Lost(FenceRecord),
}
