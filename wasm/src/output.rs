//! Answers as plain objects, their integers numbers while these are exact.

use js_sys::{Array, BigInt, Error, Number, Object, Reflect};
use serde::Serialize;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::{JsCast, JsValue};

/// The answer as an object with the contract's field names.
///
/// serde-wasm-bindgen knows two ways for a `u64`: always a `BigInt`, or an error above 2⁵³−1. The contract wants a
/// number while it is exact and a `BigInt` beyond, so everything goes out as a `BigInt` and what fits is narrowed.
pub(crate) fn plain<T: Serialize>(answer: &T) -> Result<JsValue, Error> {
    let big = Serializer::json_compatible().serialize_large_number_types_as_bigints(true);
    let object = answer.serialize(&big).map_err(|e| Error::new(&e.to_string()))?;
    narrow(&object)?;
    Ok(object)
}

/// Replaces each `BigInt` in the object or list, at any depth, by the number that equals it, where one does.
fn narrow(parent: &JsValue) -> Result<(), Error> {
    for entry in Object::entries(parent.unchecked_ref()).iter() {
        let entry: Array = entry.unchecked_into();
        let (key, value) = (entry.get(0), entry.get(1));
        if value.is_object() {
            narrow(&value)?;
        }
        let whole = value.dyn_into::<BigInt>().ok().and_then(|big| u64::try_from(big).ok());
        if let Some(number) = whole.and_then(|whole| Number::try_from(whole).ok()) {
            Reflect::set(parent, &key, &number).map_err(Error::from)?;
        }
    }
    Ok(())
}
