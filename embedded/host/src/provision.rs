//! Making a new gate out of a blank one.

use crate::client::{CallError, GateClient};
use crate::keyfile::KeyFile;
use crate::transport::Line;
use fencegate::Deadline;
use fencegate_wire::{BaseKey, Credential, Domain, GateId, Key, Keyring, Provisioning, Role};
use std::io;

/// What the gate in an emulator is provisioned with ([`Provisioning::emulator`]), its identity and its keys fresh from the
/// system's random source.
///
/// # Errors
/// Where the system has no random numbers.
pub fn emulator() -> io::Result<Provisioning> {
    Ok(Provisioning::emulator(new_identity()?, new_keys(0)?))
}

/// A gate's identity, fresh from the system's random source.
///
/// # Errors
/// Where the system has no random numbers.
pub fn new_identity() -> io::Result<GateId> {
    loop {
        let identity = GateId(random()?);
        if identity != GateId::FACTORY {
            return Ok(identity);
        }
    }
}

/// A gate's keys, all of them fresh from the system's random source, with their number `id`.
///
/// # Errors
/// Where the system has no random numbers.
pub fn new_keys(id: u8) -> io::Result<Keyring> {
    Ok(Keyring { root: Key::new(random()?), operator: Key::new(random()?), instance: getrandom::u64()?, id })
}

/// The keys of a spare that takes the place of a gate with `old`: the same root and operator's key in a new instance, so
/// that what was recorded of the old gate convinces nobody, under the next number.
///
/// # Errors
/// Where the system has no random numbers.
pub fn replacing(old: &Keyring) -> io::Result<Keyring> {
    let mut keys = Keyring { instance: getrandom::u64()?, ..old.clone() };
    while keys.instance == old.instance {
        keys.instance = getrandom::u64()?;
    }
    keys.id = next_id(old.id);
    Ok(keys)
}

/// The number of the keys that come after those of number `id`. It only has to differ from it: after 255 comes 0.
pub const fn next_id(id: u8) -> u8 {
    id.wrapping_add(1)
}

/// What speaks with a blank board: everybody has it.
pub fn factory(domain: Domain) -> Credential {
    Credential::new(GateId::FACTORY, Role::Operator, 0, &BaseKey::FACTORY, domain)
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
    let mut gate = GateClient::new(line, factory(domain)).map_err(CallError::Line)?;
    gate.provision(provisioning, give_up).await?;
    Ok(KeyFile::of(provisioning, domain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencegate::{Drift, Duration};
    use fencegate_wire::Authority;

    #[test]
    fn the_emulators_gate_is_the_contracts() {
        let gate = emulator().unwrap();
        assert_eq!(gate.check(), Ok(()));
        let authorities: Vec<_> = gate.channels.iter().map(|channel| channel.authority).collect();
        let (own, outside) = (Authority::Own, Authority::Outside);
        assert_eq!(authorities, [outside, outside, outside, own, outside]);
        let outputs: Vec<_> = gate.channels.iter().map(|channel| channel.outputs).collect();
        assert_eq!(outputs, [1, 1, 1, 1, 2]);
        assert!(gate.outputs.iter().all(|output| (output.min, output.max, output.safe) == (0, 1, 0)));
        for (n, channel) in gate.channels.iter().enumerate() {
            let timing = gate.timing(n).unwrap();
            assert_eq!((timing.drift, timing.lateness), (Drift::from_ppm(100), Duration::from_millis(5)));
            assert_eq!((timing.reaction, timing.longest_window), (Duration::ZERO, Duration::from_secs(60)));
            assert_eq!((channel.lock_delay, channel.rearm_after_window), (Duration::ZERO, false));
        }
    }

    #[test]
    fn every_new_gate_has_its_own_keys() {
        let (one, other) = (emulator().unwrap().gate, emulator().unwrap().gate);
        assert_ne!(one.gate, other.gate);
        assert_ne!(one.keys.root, other.keys.root);
        assert_ne!(one.keys.operator, other.keys.operator);
        assert_ne!(one.keys.root, one.keys.operator);
        assert_ne!(one.keys.instance, other.keys.instance);
    }

    #[test]
    fn a_spares_keys_are_the_old_ones_in_a_new_instance() {
        let old = new_keys(255).unwrap();
        let new = replacing(&old).unwrap();
        assert_eq!((&new.root, &new.operator, new.id), (&old.root, &old.operator, 0));
        assert_ne!(new.instance, old.instance);
        assert_ne!(new.base(Role::Operator), old.base(Role::Operator), "nothing recorded of the old one is believed");
    }
}
