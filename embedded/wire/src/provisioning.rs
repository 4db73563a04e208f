//! What makes a board a gate: its identity, its keys, its clock's bounds and its channels.

use crate::key::Keyring;
use crate::message::{MAX_CHANNELS, MAX_OUTPUTS, Values};
use crate::seal::GateId;
use fencegate::{Drift, Duration, Epoch, GateTiming, Limits, PPB, RaiseBudget};
use serde::{Deserialize, Serialize};

/// Everything that is set once, over a point-to-point line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provisioning {
    /// The gate's identity.
    pub gate: GateId,
    /// Its keys.
    pub keys: Keyring,
    /// ε, the bound on the drift of the gate's own clock.
    pub drift: Drift,
    /// L, the gate's worst lateness: interrupt-off time included.
    pub lateness: Duration,
    /// The longest window that it honours, and the age at which a challenge dies.
    pub longest_window: Duration,
    /// How often fences may be raised.
    pub raises: RaiseBudget,
    /// The channels, numbered from 0.
    pub channels: heapless::Vec<ChannelConfig, MAX_CHANNELS>,
}

/// Where a channel's tokens come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Authority {
    /// 0: from a coordinator outside.
    Outside,
    /// 1: from the gate itself.
    Own,
}

/// One channel: what one stamp governs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelConfig {
    /// Where its tokens come from.
    pub authority: Authority,
    /// A, the reaction time of its actuators.
    pub reaction: Duration,
    /// How far a token may leap.
    pub token_jump: u64,
    /// Its first epoch.
    pub epoch: Epoch,
    /// The floor that the first token must exceed.
    pub floor: u64,
    /// Its outputs, driven together.
    pub outputs: heapless::Vec<OutputConfig, MAX_OUTPUTS>,
}

/// One output of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OutputConfig {
    /// The least value that a command may carry.
    pub min: i32,
    /// The greatest value that a command may carry.
    pub max: i32,
    /// The value of the safe state.
    pub safe: i32,
}

/// What is wrong with a provisioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BadProvisioning {
    /// The gate identity is all zeros, which is nobody's.
    Gate,
    /// The drift is 100 % or more.
    Drift,
    /// The longest window leaves nothing after drift, lateness and a channel's reaction.
    LongestWindow,
    /// The raise budget allows none.
    Raises,
    /// No channel, or a channel without outputs.
    Outputs,
    /// A range is empty, or the safe value lies outside it.
    SafeValue,
}

impl Provisioning {
    /// Checks what no gate could work with.
    ///
    /// # Errors
    /// The first [`BadProvisioning`] that applies.
    pub fn check(&self) -> Result<(), BadProvisioning> {
        if self.gate == GateId::FACTORY {
            return Err(BadProvisioning::Gate);
        }
        if self.drift.as_ppb() >= PPB {
            return Err(BadProvisioning::Drift);
        }
        if self.raises.burst == 0 {
            return Err(BadProvisioning::Raises);
        }
        if self.channels.is_empty() {
            return Err(BadProvisioning::Outputs);
        }
        self.channels.iter().try_for_each(|channel| {
            if channel.outputs.is_empty() {
                return Err(BadProvisioning::Outputs);
            }
            if !channel.outputs.iter().all(|o| o.min <= o.safe && o.safe <= o.max) {
                return Err(BadProvisioning::SafeValue);
            }
            match self.timing(channel).window(self.longest_window) {
                Ok(Some(_)) => Ok(()),
                _ => Err(BadProvisioning::LongestWindow),
            }
        })
    }

    /// What a holder's window loses on this gate's `channel`.
    pub const fn timing(&self, channel: &ChannelConfig) -> GateTiming {
        GateTiming {
            drift: self.drift,
            lateness: self.lateness,
            reaction: channel.reaction,
            longest_window: self.longest_window,
        }
    }

    /// How many outputs the channels have together, in their order on the board.
    pub fn outputs(&self) -> usize {
        self.channels.iter().map(|channel| channel.outputs.len()).sum()
    }
}

impl ChannelConfig {
    /// What its fence accepts beyond "higher".
    pub fn limits(&self) -> Limits {
        Limits { token_jump: self.token_jump, ..Limits::default() }
    }

    /// The values of its safe state.
    pub fn safe(&self) -> Values {
        self.outputs.iter().map(|output| output.safe).collect()
    }

    /// Whether `values` has one value an output, each within its range.
    pub fn accepts(&self, values: &[i32]) -> bool {
        values.len() == self.outputs.len()
            && values.iter().zip(&self.outputs).all(|(value, output)| (output.min..=output.max).contains(value))
    }
}
