//! serde to JavaScript, for what the core's answers are made of: objects, lists, text, whole numbers, yes or no, null.
//!
//! By hand: serde-wasm-bindgen knows two ways for a `u64`, always a `BigInt` or an error above 2⁵³−1, and the contract
//! wants a number while it is exact and a `BigInt` beyond. What no answer has is an error and not a guess.

use super::{Plain, number};
use crate::names::name;
use js_sys::Array;
use serde::ser::{Error, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};
use std::fmt;
use wasm_bindgen::JsValue;

/// An answer of a kind that none of the core's has.
#[derive(Debug)]
pub(crate) struct Unknown(pub(crate) String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unknown {}

impl Error for Unknown {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self(why.to_string())
    }
}

type Answer = Result<JsValue, Unknown>;

/// One value.
pub(crate) struct Js;

/// An object under way, and the key that waits for its value.
pub(crate) struct Fields(Plain, JsValue);

/// A list under way.
pub(crate) struct Items(Array);

fn none<T>() -> Result<T, Unknown> {
    Err(Unknown("no answer has a value of this kind".to_owned()))
}

macro_rules! unknown {
    ($($method:ident($type:ty)),+) => {
        $(fn $method(self, _: $type) -> Answer { none() })+
    };
}

impl Serializer for Js {
    type Ok = JsValue;
    type Error = Unknown;
    type SerializeSeq = Items;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeTuple = Impossible<JsValue, Unknown>;
    type SerializeTupleStruct = Impossible<JsValue, Unknown>;
    type SerializeTupleVariant = Impossible<JsValue, Unknown>;
    type SerializeStructVariant = Impossible<JsValue, Unknown>;

    unknown!(
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_f32(f32),
        serialize_f64(f64),
        serialize_char(char),
        serialize_bytes(&[u8])
    );

    fn serialize_bool(self, yes: bool) -> Answer {
        Ok(yes.into())
    }

    fn serialize_u8(self, whole: u8) -> Answer {
        Ok(whole.into())
    }

    fn serialize_u16(self, whole: u16) -> Answer {
        Ok(whole.into())
    }

    fn serialize_u32(self, whole: u32) -> Answer {
        Ok(whole.into())
    }

    fn serialize_u64(self, whole: u64) -> Answer {
        Ok(number(whole))
    }

    fn serialize_str(self, text: &str) -> Answer {
        Ok(text.into())
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, shown: &T) -> Answer {
        Ok(shown.to_string().into())
    }

    fn serialize_none(self) -> Answer {
        Ok(JsValue::NULL)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Answer {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Answer {
        Ok(JsValue::NULL)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Answer {
        Ok(JsValue::NULL)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Answer {
        Ok(name(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Answer {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Answer {
        none()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, Unknown> {
        Ok(Items(Array::new()))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unknown> {
        none()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Unknown> {
        none()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unknown> {
        none()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields, Unknown> {
        Ok(Fields(Plain::new(), JsValue::UNDEFINED))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, Unknown> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unknown> {
        none()
    }
}

impl SerializeStruct for Fields {
    type Ok = JsValue;
    type Error = Unknown;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Result<(), Unknown> {
        self.0.put(&name(field), &value.serialize(Js)?);
        Ok(())
    }

    fn end(self) -> Answer {
        Ok(self.0.done())
    }
}

impl SerializeMap for Fields {
    type Ok = JsValue;
    type Error = Unknown;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unknown> {
        self.1 = key.serialize(Js)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unknown> {
        self.0.put(&self.1, &value.serialize(Js)?);
        Ok(())
    }

    fn end(self) -> Answer {
        Ok(self.0.done())
    }
}

impl SerializeSeq for Items {
    type Ok = JsValue;
    type Error = Unknown;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Unknown> {
        self.0.push(&item.serialize(Js)?);
        Ok(())
    }

    fn end(self) -> Answer {
        Ok(self.0.into())
    }
}
