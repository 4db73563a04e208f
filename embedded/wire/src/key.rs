//! Keys: who may say what, and in which direction.
//!
//! ```text
//! root ──HMAC("holder" ‖ instance ‖ name)──▶ base key of one holder ──┐
//!   └───HMAC("observer" ‖ instance)────────▶ base key of observers ───┼──HMAC("request" ‖ domain)──▶ towards the gate
//! operator ─HMAC("operator" ‖ instance)────▶ base key of the operator ┘  HMAC("answer" ‖ domain)───▶ from the gate
//! ```

use fencegate::HolderId;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// HMAC over SHA-256 (RFC 2104, FIPS 180-4).
pub(crate) type HmacSha256 = Hmac<Sha256>;

/// 32 secret bytes. `Debug` says nothing of them, and `defmt::Format` is missing on purpose: no log can be given a key, nor
/// anything that holds one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; Self::LEN]);

impl Key {
    /// Bytes of a key.
    pub const LEN: usize = 32;

    /// The key made of `bytes`, which come from a good random source or from [`Key::expose`].
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The secret itself, for a key file and for nothing else.
    pub const fn expose(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// HMAC of the parts under this key.
    fn derive(&self, parts: &[&[u8]]) -> Self {
        let mut mac = self.mac();
        for part in parts {
            mac.update(part);
        }
        Self(mac.finalize().into_bytes().into())
    }

    pub(crate) fn mac(&self) -> HmacSha256 {
        // 32 bytes are no longer than SHA-256's block of 64, which is zero-padded (RFC 2104, §2).
        let mut block = [0; 64];
        block[..Self::LEN].copy_from_slice(&self.0);
        let mac = HmacSha256::new(&block.into());
        block.zeroize();
        mac
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Role {
    /// A holder of leases, by name: raises, drives, releases.
    Holder(HolderId),
    /// The operator: moves epochs, rearms, provisions.
    Operator,
    /// Reads and watches.
    Observer,
}

/// Which kind of image the keys are for. A demonstration that leaves the check out must not obey a real key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Domain {
    /// A gate.
    #[default]
    Gate,
    /// The demonstration image without fencing.
    Demonstration,
}

impl Domain {
    const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Gate => b"fencegate 1",
            Self::Demonstration => b"fencegate demonstration 1",
        }
    }
}

/// The key of one principal, from which the keys of both directions follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseKey(pub Key);

/// The keys of one principal's two directions: what was said to the gate cannot be played back as its answer.
#[derive(Clone, Debug)]
pub struct DirectionKeys {
    /// Seals requests.
    pub request: Key,
    /// Seals answers.
    pub answer: Key,
}

impl BaseKey {
    /// The key of a line on which nothing is provisioned yet. Everybody knows it: the first provisioning needs a
    /// point-to-point line.
    pub const FACTORY: Self = Self(Key::new([0; Key::LEN]));

    /// The keys of both directions.
    pub fn directions(&self, domain: Domain) -> DirectionKeys {
        DirectionKeys { request: self.request(domain), answer: self.answer(domain) }
    }

    /// The key of what is said to the gate.
    pub fn request(&self, domain: Domain) -> Key {
        self.0.derive(&[b"request", domain.as_bytes()])
    }

    /// The key of what the gate says.
    pub fn answer(&self, domain: Domain) -> Key {
        self.0.derive(&[b"answer", domain.as_bytes()])
    }
}

/// What a gate, or an operator's key file, knows: every principal's key follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyring {
    /// The root of the holders' and the observers' keys.
    pub root: Key,
    /// The operator's key, which does not follow from the root.
    pub operator: Key,
    /// Counts or randomizes provisionings: a gate whose boot counter was wiped does not meet its old keys again.
    pub instance: u64,
    /// Which keys these are, for rotation: a host that still has others is told apart by its frames' key id, and not
    /// obeyed.
    pub id: u8,
}

impl Keyring {
    /// The key of `role`. A holder's follows from its name alone, so that all its instances share one.
    pub fn base(&self, role: Role) -> BaseKey {
        let instance = self.instance.to_le_bytes();
        BaseKey(match role {
            Role::Holder(holder) => self.root.derive(&[b"holder", &instance, &holder.name().to_padded()]),
            Role::Observer => self.root.derive(&[b"observer", &instance]),
            Role::Operator => self.operator.derive(&[b"operator", &instance]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(text: &str) -> Role {
        Role::Holder(HolderId::new(text).unwrap())
    }

    #[test]
    fn every_principal_direction_instance_and_domain_has_a_key_of_its_own() {
        let mut keys = Vec::new();
        for instance in [1, 2] {
            let ring = Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance, id: 0 };
            for role in [holder("a"), holder("b"), Role::Operator, Role::Observer] {
                for domain in [Domain::Gate, Domain::Demonstration] {
                    let DirectionKeys { request, answer } = ring.base(role).directions(domain);
                    keys.extend([*request.expose(), *answer.expose()]);
                }
            }
            assert_eq!(ring.base(holder("a#1")), ring.base(holder("a#2")), "instances of one holder share its key");
        }
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    /// The keys that PROTOCOL.md shows, reckoned by another program.
    #[test]
    fn the_keys_are_the_documents() {
        let documented = include_str!("../PROTOCOL.md").split("```keys\n").nth(1).unwrap().split("```").next().unwrap();
        let documented: Vec<&str> = documented.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        let ring = Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 };
        let roles = [holder("press-a#9f3c"), Role::Observer, Role::Operator];
        let keys = roles.map(|role| ring.base(role).directions(Domain::Gate)).map(|keys| [keys.request, keys.answer]);
        let hex = |key: &Key| key.expose().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        assert_eq!(keys.iter().flatten().map(hex).collect::<Vec<_>>(), documented);
    }

    #[test]
    fn the_mac_is_the_standards() {
        // RFC 4231, test case 1 has a key of 20 bytes, which zero-padding to 32 leaves the same key.
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let tag = Key::new(key).derive(&[b"Hi ", b"There"]);
        assert_eq!(tag.expose()[..8], [0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53]);
    }

    #[test]
    fn a_key_shows_nothing_of_itself() {
        assert_eq!(format!("{:?}", Key::new([0x41; 32])), "Key(…)");
    }
}
