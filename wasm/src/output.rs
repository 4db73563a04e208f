//! Answers as plain objects, their integers numbers while these are exact.

use crate::names::name;
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

/// A plain object that is made field by field. For answers that are no single value of the core's: serde's machinery for
/// them would be larger than the objects are.
pub(crate) struct Plain(Object);

impl Plain {
    pub(crate) fn new() -> Self {
        Self(Object::new())
    }

    pub(crate) fn set(self, field: &'static str, value: impl Into<JsValue>) -> Self {
        self.put(&name(field), &value.into());
        self
    }

    fn put(&self, field: &JsValue, value: &JsValue) {
        // Fails only for a frozen or sealed object, which one made by `new` is not.
        let _ = Reflect::set(&self.0, field, value);
    }

    pub(crate) fn text(self, field: &'static str, text: &str) -> Self {
        self.set(field, text)
    }

    pub(crate) fn flag(self, field: &'static str, yes: bool) -> Self {
        self.set(field, yes)
    }

    pub(crate) fn whole(self, field: &'static str, whole: u64) -> Self {
        self.set(field, number(whole))
    }

    pub(crate) fn maybe(self, field: &'static str, whole: Option<u64>) -> Self {
        self.set(field, whole.map_or(JsValue::NULL, number))
    }

    pub(crate) fn done(self) -> JsValue {
        self.0.into()
    }
}

/// A number while it is exact, else a `BigInt`.
pub(crate) fn number(whole: u64) -> JsValue {
    Number::try_from(whole).map_or_else(|_| BigInt::from(whole).into(), JsValue::from)
}
