//! Reading a plain object: every field by its contract name, and nothing that is not in the contract.

use crate::names::name;
use crate::wrong::Wrong;
use fencegate::{Drift, Duration, Start};
use js_sys::{Array, BigInt, Number, Object, Reflect, Symbol};
use wasm_bindgen::{JsCast, JsValue};

/// The fields of an input object, each read exactly once.
///
/// Only the object's own fields count, so that nothing inherited becomes an input; one that is `undefined` is absent.
pub(crate) struct Fields(Vec<(&'static str, JsValue)>);

impl Fields {
    /// Takes the object apart and refuses a field that is not among `known`: a misspelt one would otherwise be a
    /// default that nobody asked for. So would everything in a `Map` or in form data, which have no fields of their own.
    ///
    /// `what` is the argument's name, for where it is no such object.
    pub(crate) fn of(what: &'static str, input: &JsValue, known: &[&'static str]) -> Result<Self, Wrong> {
        if !input.is_object() || Reflect::has(input, &Symbol::iterator()).unwrap_or(true) {
            return Err(Wrong::not_an_object(what));
        }
        let mut fields = Vec::new();
        for entry in Object::entries(input.unchecked_ref()).iter() {
            let entry: Array = entry.unchecked_into();
            let (key, value) = (entry.get(0), entry.get(1));
            match known.iter().find(|known| name(known) == key) {
                None => return Err(Wrong::unknown_field(key.as_string().unwrap_or_default(), known)),
                Some(_) if value.is_undefined() => {}
                Some(name) => fields.push((*name, value)),
            }
        }
        Ok(Self(fields))
    }

    /// What is in that field, if it is there.
    pub(crate) fn get(&self, field: &str) -> Option<&JsValue> {
        self.0.iter().find(|(name, _)| *name == field).map(|(_, value)| value)
    }

    /// The whole number in that field.
    pub(crate) fn whole(&self, field: &'static str) -> Result<Option<u64>, Wrong> {
        self.get(field).map(|value| whole(field, value)).transpose()
    }

    /// The whole number in a field that nothing stands in for.
    pub(crate) fn required(&self, field: &'static str) -> Result<u64, Wrong> {
        self.whole(field)?.ok_or_else(|| Wrong::missing(field))
    }

    /// T, which nothing stands in for.
    pub(crate) fn ttl(&self) -> Result<Duration, Wrong> {
        self.required("ttl_us").map(Duration::from_micros)
    }

    /// ε, which nothing stands in for: a drift of zero is a claim that somebody must make.
    pub(crate) fn drift(&self) -> Result<Drift, Wrong> {
        self.required("drift_ppb").map(Drift::from_ppb)
    }

    /// A duration that is zero where it is left out.
    pub(crate) fn duration(&self, field: &'static str) -> Result<Duration, Wrong> {
        self.whole(field).map(|us| Duration::from_micros(us.unwrap_or(0)))
    }

    /// When the holder's timer starts; at send where it is left out.
    pub(crate) fn start(&self) -> Result<Start, Wrong> {
        match self.get("start") {
            None => Ok(Start::Send),
            Some(value) if *value == "send" => Ok(Start::Send),
            Some(value) if *value == "grant" => Ok(Start::Grant),
            Some(_) => Err(Wrong::not_a_start()),
        }
    }
}

/// Yes or no, text, and one of some words: what only a story's scenario has.
impl Fields {
    pub(crate) fn flag(&self, field: &'static str) -> Result<Option<bool>, Wrong> {
        self.get(field).map(|value| value.as_bool().ok_or_else(|| Wrong::not_a_flag(field))).transpose()
    }

    pub(crate) fn text(&self, field: &'static str) -> Result<Option<String>, Wrong> {
        self.get(field).map(|value| value.as_string().ok_or_else(|| Wrong::not_text(field))).transpose()
    }

    /// Which of `words` it is.
    pub(crate) fn word(&self, field: &'static str, words: &[&str]) -> Result<Option<usize>, Wrong> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        let at = words.iter().position(|word| *word == text);
        at.map(Some).ok_or_else(|| Wrong::none_of(field, words))
    }
}

/// A whole number below zero or above, in 64 bits.
pub(crate) fn signed(field: &'static str, value: &JsValue) -> Result<i64, Wrong> {
    i64::try_from(integer(field, value)?).map_err(|_| Wrong::beyond_64_bits(field))
}

/// A whole number from 0 to 2⁶⁴−1, as a number that is exact or as a `BigInt`.
///
/// By hand and not by serde: the float formatting in its error messages is as large as the rest of the module.
pub(crate) fn whole(field: &'static str, value: &JsValue) -> Result<u64, Wrong> {
    u64::try_from(integer(field, value)?).map_err(|_| Wrong::beyond_64_bits(field))
}

fn integer(field: &'static str, value: &JsValue) -> Result<BigInt, Wrong> {
    match value.dyn_ref::<BigInt>() {
        Some(big) => Ok(big.clone()),
        None if !Number::is_integer(value) => Err(Wrong::not_an_integer(field)),
        None if !Number::is_safe_integer(value) => Err(Wrong::inexact(field)),
        None => BigInt::new(value).map_err(|_| Wrong::not_an_integer(field)),
    }
}
