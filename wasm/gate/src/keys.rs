//! A gate's identity and keys.

use crate::value::wrong;
use fencegate::HolderId;
use fencegate_wire::{BaseKey, Credential, Domain, GateId, Key, Keyring, Provisioning, Role};
use js_sys::Error;
use wasm_bindgen::prelude::wasm_bindgen;

/// A gate's identity and all of its keys. Nothing of them is ever shown.
#[wasm_bindgen(skip_typescript)]
#[derive(Clone, Debug)]
pub struct Keys {
    gate: GateId,
    ring: Keyring,
}

#[wasm_bindgen]
impl Keys {
    /// Those of an operator's key file. All that is random comes from the caller: this module has no such source.
    ///
    /// # Errors
    /// A JavaScript `Error` where a part has another length, or the identity is nobody's.
    #[wasm_bindgen(constructor, skip_typescript)]
    pub fn new(gate: &[u8], id: u8, instance: u64, root: &[u8], operator: &[u8]) -> Result<Self, Error> {
        let key = |bytes: &[u8]| bytes.try_into().map(Key::new).map_err(|_| wrong("a key has 32 bytes"));
        let gate = gate.try_into().map(GateId).map_err(|_| wrong("an identity has 8 bytes"))?;
        if gate == GateId::FACTORY {
            return Err(wrong("an identity of zeros is nobody's"));
        }
        Ok(Self { gate, ring: Keyring { root: key(root)?, operator: key(operator)?, instance, id } })
    }
}

impl Keys {
    pub(crate) const fn gate(&self) -> GateId {
        self.gate
    }

    /// The key of a principal.
    pub(crate) fn base(&self, role: Role) -> BaseKey {
        self.ring.base(role)
    }

    /// What `who` speaks with.
    pub(crate) fn credential(&self, who: &str) -> Result<Credential, Error> {
        let role = match who {
            "operator" => Role::Operator,
            "observer" => Role::Observer,
            name => Role::Holder(HolderId::new(name).map_err(|why| wrong(&why.to_string()))?),
        };
        Ok(Credential::new(self.gate, role, self.ring.id, &self.base(role), Domain::Gate))
    }

    /// What the gate in the page's emulator is provisioned with: the same as any other emulator's.
    pub(crate) fn provisioning(&self) -> Provisioning {
        Provisioning::emulator(self.gate, self.ring.clone())
    }
}

/// What speaks with a blank board: everybody has it.
pub(crate) fn factory() -> Credential {
    Credential::new(GateId::FACTORY, Role::Operator, 0, &BaseKey::FACTORY, Domain::Gate)
}
