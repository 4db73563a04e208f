//! Making a new gate out of a blank one.

use crate::client::{CallError, GateClient};
use crate::keyfile::KeyFile;
use crate::transport::Line;
use fencegate::{Deadline, Drift, Duration, Epoch, Limits, RaiseBudget};
use fencegate_wire::{
    Authority, BaseKey, ChannelConfig, Credential, Domain, GateId, Key, Keyring, Operation, OutputConfig, Provisioning,
    Reply, Request, Role,
};
use std::io;

/// What the gate in an emulator is provisioned with, its identity and its keys fresh from the system's random source:
/// channels 0 to 2 take tokens from outside, channel 3 is its own authority, channel 4 takes tokens from outside and
/// has two outputs.
///
/// # Errors
/// Where the system has no random numbers.
pub fn emulator() -> io::Result<Provisioning> {
    let output = OutputConfig { min: 0, max: 1, safe: 0 };
    let channel = |authority, outputs| ChannelConfig {
        authority,
        reaction: Duration::ZERO,
        token_jump: Limits::TOKEN_JUMP,
        epoch: Epoch(0),
        floor: 0,
        outputs: std::iter::repeat_n(output, outputs).collect(),
    };
    Ok(Provisioning {
        gate: GateId(random()?),
        keys: Keyring { root: Key::new(random()?), operator: Key::new(random()?), instance: getrandom::u64()? },
        drift: Drift::from_ppm(100),
        lateness: Duration::from_millis(5),
        longest_window: Duration::from_secs(60),
        // Nothing wears out in an emulator.
        raises: RaiseBudget { burst: 1_000_000, every: Duration::from_millis(1) },
        channels: [
            channel(Authority::Outside, 1),
            channel(Authority::Outside, 1),
            channel(Authority::Outside, 1),
            channel(Authority::Own, 1),
            channel(Authority::Outside, 2),
        ]
        .into_iter()
        .collect(),
    })
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Provisions the blank gate at the other end of a point-to-point line, whose key everybody knows, and hands back
/// what the operator's key file holds. Whoever must not lose the keys of a gate to a power cut right after this
/// writes that file first ([`KeyFile::of`]).
///
/// # Errors
/// Where the gate does not answer, which is what one does that is no longer blank, or refuses.
pub async fn provision(
    line: impl Line,
    provisioning: &Provisioning,
    domain: Domain,
    give_up: Deadline,
) -> Result<KeyFile, CallError> {
    let credential = Credential::new(GateId::FACTORY, Role::Operator, &BaseKey::FACTORY, domain);
    let mut gate = GateClient::new(line, credential).map_err(CallError::Line)?;
    match gate.call(Operation::new(Request::Provision(provisioning.clone())), give_up).await? {
        Reply::Provisioned => Ok(KeyFile::of(provisioning, domain)),
        Reply::Refused(refused) => Err(CallError::Refused(refused)),
        _ => Err(CallError::Unexpected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulators_gate_is_the_contracts() {
        let gate = emulator().unwrap();
        assert_eq!(gate.check(), Ok(()));
        let authorities: Vec<_> = gate.channels.iter().map(|channel| channel.authority).collect();
        let own = Authority::Own;
        let outside = Authority::Outside;
        assert_eq!(authorities, [outside, outside, outside, own, outside]);
        let outputs: Vec<_> = gate.channels.iter().map(|channel| channel.outputs.len()).collect();
        assert_eq!(outputs, [1, 1, 1, 1, 2]);
        assert!(gate.channels.iter().all(|channel| channel.safe().iter().all(|value| *value == 0)));
    }

    #[test]
    fn every_new_gate_has_its_own_keys() {
        let (one, other) = (emulator().unwrap(), emulator().unwrap());
        assert_ne!(one.gate, other.gate);
        assert_ne!(one.keys.root, other.keys.root);
        assert_ne!(one.keys.operator, other.keys.operator);
        assert_ne!(one.keys.root, one.keys.operator);
    }
}
