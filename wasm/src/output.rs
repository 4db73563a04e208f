//! Answers as plain objects, their integers numbers while these are exact.

mod serializer;

use crate::names::name;
use js_sys::{BigInt, Error, Number, Object, Reflect};
use serde::Serialize;
use wasm_bindgen::JsValue;

/// The answer as an object with the contract's field names.
pub(crate) fn plain<T: Serialize>(answer: &T) -> Result<JsValue, Error> {
    answer.serialize(serializer::Js).map_err(|serializer::Unknown(why)| Error::new(&why))
}

/// A plain object that is made field by field, for answers that are no single value of the core's.
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
