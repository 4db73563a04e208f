//! What the gate in an emulator is provisioned with, wherever that runs: one source for the host's end and for the page's.

use crate::key::Keyring;
use crate::provisioning::{Authority, ChannelConfig, GateConfig, OutputConfig, Provisioning};
use crate::seal::GateId;
use fencegate::{Drift, Duration, Limits, RaiseBudget};

impl Provisioning {
    /// Of the gate in an emulator, which has six outputs: channels 0 to 2 take tokens from outside, channel 3 is its own
    /// authority, channel 4 takes tokens from outside and has two outputs.
    pub fn emulator(gate: GateId, keys: Keyring) -> Self {
        let own = ChannelConfig { authority: Authority::Own, ..ChannelConfig::new() };
        let two = ChannelConfig { outputs: 2, ..ChannelConfig::new() };
        let outside = ChannelConfig::new;
        Self {
            gate: GateConfig {
                gate,
                keys,
                drift: Drift::from_ppm(100),
                lateness: Duration::from_millis(5),
                longest_window: Duration::from_secs(60),
                // Nothing wears out in an emulator.
                raises: RaiseBudget { burst: 1_000_000, every: Duration::from_millis(1) },
                epoch_jump: Limits::EPOCH_JUMP,
                warning: Duration::ZERO,
            },
            channels: [outside(), outside(), outside(), own, two].into_iter().collect(),
            outputs: core::iter::repeat_n(OutputConfig::switch(), 6).collect(),
        }
    }
}
