//! What is stored, and the evidence that it is.

use crate::latched::Latched;
use fencegate::{GrantProof, GrantRecord, Proof};
use fencegate_wire::{ChannelConfig, GateConfig, OutputConfig};

/// One thing to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Where a channel's fence stands.
    Mark {
        /// Which channel.
        channel: u8,
        /// Its fence, and how long a lease of its own authority may run after a boot.
        mark: GrantRecord,
    },
    /// Which channels wait for a rearm.
    Latched(Latched),
    /// What an output is to be after the next [`Entry::Gate`].
    Output {
        /// Which, counted over the whole gate.
        output: u8,
        /// What it is to be.
        config: OutputConfig,
    },
    /// What a channel is to be after the next [`Entry::Gate`].
    Channel {
        /// Which.
        channel: u8,
        /// What it is to be.
        config: ChannelConfig,
    },
    /// The end of a provisioning: from the next boot on the gate is what this and the entries before it say.
    Gate {
        /// What it is as a whole.
        config: GateConfig,
        /// How many channels it has.
        channels: u8,
        /// How many outputs they have together.
        outputs: u8,
    },
}

/// Evidence that an entry is in both copies of the store, read back past any cache.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Stored(Entry);

impl Stored {
    /// For a store alone: `entry` is what it has just *read back* from the medium, past any cache.
    pub const fn read_back(entry: Entry) -> Self {
        Self(entry)
    }

    /// The proof for a fence; `None` where something else was stored.
    pub(crate) const fn fence(&self) -> Option<Proof> {
        match self.0 {
            Entry::Mark { mark, .. } => Some(Proof::read_back(mark.mark)),
            _ => None,
        }
    }

    /// Which channels wait for a rearm, as stored; `None` where something else was.
    pub(crate) const fn latched(&self) -> Option<Latched> {
        match self.0 {
            Entry::Latched(latched) => Some(latched),
            _ => None,
        }
    }

    /// The proof for a grantor; `None` where something else was stored.
    pub(crate) const fn grant(&self) -> Option<GrantProof> {
        match self.0 {
            Entry::Mark { mark, .. } => Some(GrantProof::read_back(mark)),
            _ => None,
        }
    }
}
