//! Answers as plain objects, their integers numbers while these are exact.
//!
//! A serializer of our own, since serde-wasm-bindgen knows two ways for a `u64`, and the contract wants a third: always a
//! `BigInt`, or an error above 2⁵³−1. Narrowing its objects afterwards made the module a tenth larger.

use js_sys::{Array, BigInt, Error, Number, Object, Reflect};
use serde::ser::{Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};
use std::fmt;
use wasm_bindgen::JsValue;

/// The answer as an object with the contract's field names.
pub(crate) fn plain<T: Serialize>(answer: &T) -> Result<JsValue, Error> {
    answer.serialize(Plain).map_err(|NoAnswer| Error::new("an answer has a form that none should have"))
}

/// What has no place in an answer: a float, bytes, a variant with fields. The contract has none.
#[derive(Debug)]
struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no part of an answer")
    }
}

impl std::error::Error for NoAnswer {}

impl serde::ser::Error for NoAnswer {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Plain;

/// A list that is being filled.
struct List(Array);

/// An object that is being filled, and the key of the value to come.
struct Fields(Object, JsValue);

impl Fields {
    fn new() -> Self {
        Self(Object::new(), JsValue::UNDEFINED)
    }

    fn set(&self, key: &JsValue, value: &JsValue) -> Result<(), NoAnswer> {
        Reflect::set(&self.0, key, value).map(drop).map_err(|_| NoAnswer)
    }
}

macro_rules! no_answer {
    ($($method:ident($($kind:ty),*) -> $ok:ty;)+) => {
        $(fn $method(self, $(_: $kind),*) -> Result<$ok, NoAnswer> {
            Err(NoAnswer)
        })+
    };
}

impl Serializer for Plain {
    type Ok = JsValue;
    type Error = NoAnswer;
    type SerializeSeq = List;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeTuple = Impossible<JsValue, NoAnswer>;
    type SerializeTupleStruct = Impossible<JsValue, NoAnswer>;
    type SerializeTupleVariant = Impossible<JsValue, NoAnswer>;
    type SerializeStructVariant = Impossible<JsValue, NoAnswer>;

    fn serialize_u64(self, whole: u64) -> Result<JsValue, NoAnswer> {
        Ok(Number::try_from(whole).map_or_else(|_| BigInt::from(whole).into(), JsValue::from))
    }

    fn serialize_bool(self, yes: bool) -> Result<JsValue, NoAnswer> {
        Ok(yes.into())
    }

    fn serialize_str(self, text: &str) -> Result<JsValue, NoAnswer> {
        Ok(text.into())
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, text: &T) -> Result<JsValue, NoAnswer> {
        Ok(text.to_string().into())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<JsValue, NoAnswer> {
        Ok(name.into())
    }

    fn serialize_none(self) -> Result<JsValue, NoAnswer> {
        Ok(JsValue::NULL)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<JsValue, NoAnswer> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<JsValue, NoAnswer> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List, NoAnswer> {
        Ok(List(Array::new()))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields, NoAnswer> {
        Ok(Fields::new())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, NoAnswer> {
        Ok(Fields::new())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<JsValue, NoAnswer> {
        Err(NoAnswer)
    }

    no_answer! {
        serialize_i8(i8) -> JsValue;
        serialize_i16(i16) -> JsValue;
        serialize_i32(i32) -> JsValue;
        serialize_i64(i64) -> JsValue;
        serialize_u8(u8) -> JsValue;
        serialize_u16(u16) -> JsValue;
        serialize_u32(u32) -> JsValue;
        serialize_f32(f32) -> JsValue;
        serialize_f64(f64) -> JsValue;
        serialize_char(char) -> JsValue;
        serialize_bytes(&[u8]) -> JsValue;
        serialize_unit() -> JsValue;
        serialize_unit_struct(&'static str) -> JsValue;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}

impl SerializeSeq for List {
    type Ok = JsValue;
    type Error = NoAnswer;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoAnswer> {
        self.0.push(&value.serialize(Plain)?);
        Ok(())
    }

    fn end(self) -> Result<JsValue, NoAnswer> {
        Ok(self.0.into())
    }
}

impl SerializeMap for Fields {
    type Ok = JsValue;
    type Error = NoAnswer;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoAnswer> {
        self.1 = key.serialize(Plain)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoAnswer> {
        self.set(&self.1, &value.serialize(Plain)?)
    }

    fn end(self) -> Result<JsValue, NoAnswer> {
        Ok(self.0.into())
    }
}

impl SerializeStruct for Fields {
    type Ok = JsValue;
    type Error = NoAnswer;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), NoAnswer> {
        self.set(&key.into(), &value.serialize(Plain)?)
    }

    fn end(self) -> Result<JsValue, NoAnswer> {
        Ok(self.0.into())
    }
}
