//! What goes over the line, for one who looks.

use crate::keys::{Keys, factory};
use crate::value::{self, Plain};
use fencegate_wire::{Answer, Deframer, Domain, Framed, GateId, Key, Role, Sealed, Unverified};
use js_sys::Array;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// Cuts one direction of a line into frames and tells what each of them says. The seals prove; nothing is secret.
#[wasm_bindgen(skip_typescript)]
#[derive(Debug)]
pub struct Decoder {
    keys: Keys,
    deframer: Deframer,
    /// Bytes since the last frame's end.
    bytes: u32,
}

#[wasm_bindgen]
impl Decoder {
    /// A decoder that can prove what the gate of these keys hears and says, and what a blank board does.
    #[wasm_bindgen(constructor, skip_typescript)]
    pub fn new(keys: &Keys) -> Self {
        Self { keys: keys.clone(), deframer: Deframer::new(), bytes: 0 }
    }

    /// The frames that `bytes` end.
    #[wasm_bindgen(skip_typescript)]
    pub fn push(&mut self, bytes: &[u8]) -> Array {
        let told = Array::new();
        for byte in bytes {
            self.bytes = self.bytes.saturating_add(1);
            if let Some(framed) = self.deframer.push(*byte) {
                // The last of them is the zero that ends the frame.
                told.push(&tell(&self.keys, framed).whole("bytes", self.bytes.into()).done());
                self.bytes = 0;
            }
        }
        told
    }
}

fn tell(keys: &Keys, framed: Framed<'_>) -> Plain {
    let Framed::Frame(frame) = framed else { return Plain::of("noise") };
    let Ok(unverified) = Unverified::read(frame) else { return Plain::of("noise") };
    let claim = *unverified.claim();
    let who = match claim.role {
        _ if claim.gate == GateId::FACTORY => "blank board".to_owned(),
        Role::Holder(holder) => holder.to_string(),
        Role::Operator => "operator".to_owned(),
        Role::Observer => "observer".to_owned(),
    };
    let plain = Plain::of(if claim.answer { "answer" } else { "request" }).set("who", who);
    let told = key(keys, claim.gate, claim.role, claim.answer).and_then(|key| {
        let verified = unverified.verify(&key)?;
        if claim.answer {
            verified.body::<Answer>().map(|answer| value::reply(&answer.reply))
        } else {
            verified.body::<Sealed>().map(|sealed| value::request(&sealed.request))
        }
    });
    plain.set("said", told.unwrap_or(JsValue::NULL))
}

/// The key that seals such a frame, where we have it.
fn key(keys: &Keys, gate: GateId, role: Role, answer: bool) -> Option<Key> {
    let directions = if gate == GateId::FACTORY {
        factory().keys
    } else if gate == keys.gate() {
        keys.base(role).directions(Domain::Gate)
    } else {
        return None;
    };
    Some(if answer { directions.answer } else { directions.request })
}
