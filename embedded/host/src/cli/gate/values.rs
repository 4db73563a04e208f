//! What a stamp and a command consist of, as typed.

use super::super::units::{self, UnitError};
use fencegate::{Epoch, Token};
use fencegate_wire::Values;
use std::fmt;

/// What can be wrong with one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum BadValue {
    /// Not the number that it should be.
    Number(UnitError),
    /// A number above the type's highest.
    TooLarge(u32),
    /// Zero is no token.
    ZeroToken,
    /// One of a command's values is none.
    Value,
    /// Not a channel with its epoch and floor.
    First,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(error) => error.fmt(f),
            Self::TooLarge(highest) => write!(f, "the highest is {highest}"),
            Self::ZeroToken => f.write_str("zero is no token; a coordinator's tokens begin at 1"),
            Self::Value => f.write_str("signed integers of 32 bits, joined by commas and without spaces: 1,0"),
            Self::First => f.write_str("a channel, its first epoch and its floor, without spaces: 0=3:500"),
        }
    }
}

impl std::error::Error for BadValue {}

pub(in crate::cli) fn channel(text: &str) -> Result<u8, BadValue> {
    let n = units::parse_count(text).map_err(BadValue::Number)?;
    u8::try_from(n).map_err(|_| BadValue::TooLarge(u8::MAX.into()))
}

pub(in crate::cli) fn epoch(text: &str) -> Result<Epoch, BadValue> {
    let n = units::parse_count(text).map_err(BadValue::Number)?;
    u32::try_from(n).map(Epoch).map_err(|_| BadValue::TooLarge(u32::MAX))
}

pub(super) fn token(text: &str) -> Result<Token, BadValue> {
    Token::new(units::parse_count(text).map_err(BadValue::Number)?).ok_or(BadValue::ZeroToken)
}

/// Reads `1,0`. Of more values than any channel has outputs, one too many is enough for the gate to refuse them.
pub(super) fn values(text: &str) -> Result<Values, BadValue> {
    let mut values = Values::new();
    for value in text.split(',') {
        let value = value.parse().map_err(|_| BadValue::Value)?;
        let _ = values.push(value); // full: there is one too many already
    }
    Ok(values)
}

/// Where a channel's fence begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub(super) channel: u8,
    pub(super) epoch: Epoch,
    pub(super) floor: u64,
}

/// Reads `CHANNEL=EPOCH:FLOOR`.
pub(super) fn first(text: &str) -> Result<First, BadValue> {
    let (number, stamp) = text.split_once('=').ok_or(BadValue::First)?;
    let (of, floor) = stamp.split_once(':').ok_or(BadValue::First)?;
    let floor = units::parse_count(floor).map_err(BadValue::Number)?;
    Ok(First { channel: channel(number)?, epoch: epoch(of)?, floor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencegate_wire::MAX_OUTPUTS;

    #[test]
    fn values_are_signed_integers_joined_by_commas() {
        let read = |text| values(text).map(|values| values.to_vec());
        assert_eq!(read("1"), Ok(vec![1]));
        assert_eq!(read("-1,0"), Ok(vec![-1, 0]));
        assert_eq!(read("2147483647,-2147483648"), Ok(vec![i32::MAX, i32::MIN]));
        for text in ["", ",", "1,", "1 ,0", "1.5", "2147483648", "one"] {
            assert_eq!(read(text), Err(BadValue::Value), "{text}");
        }
        let many = ["0"; MAX_OUTPUTS].join(",");
        assert_eq!(read(&many).map(|values| values.len()), Ok(MAX_OUTPUTS));
        for more in [",0", ",0,0", ",0,0,0,0,0,0,0,0,0"] {
            let values = values(&format!("{many}{more}"));
            assert_eq!(values.map(|values| values.len()), Ok(MAX_OUTPUTS + 1), "{more}");
        }
        assert_eq!(values(&format!("{many},0,0,one")), Err(BadValue::Value));
    }

    #[test]
    fn where_a_fence_begins_is_a_channel_an_epoch_and_a_floor() {
        assert_eq!(first("2=3:500"), Ok(First { channel: 2, epoch: Epoch(3), floor: 500 }));
        for text in ["", "2", "2=3", "2:3=5", "=:"] {
            assert!(first(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_taken_whole_or_not_at_all() {
        assert_eq!(token("18446744073709551615").map(Token::get), Ok(u64::MAX));
        assert_eq!(token("0"), Err(BadValue::ZeroToken));
        assert_eq!(token("-1"), Err(BadValue::Number(UnitError::Sign)));
        assert_eq!(token("18446744073709551616"), Err(BadValue::Number(UnitError::TooLarge)));
        assert_eq!((channel("255"), channel("256")), (Ok(255), Err(BadValue::TooLarge(255))));
        assert_eq!(epoch("4294967295"), Ok(Epoch(u32::MAX)));
        assert_eq!(epoch("4294967296"), Err(BadValue::TooLarge(u32::MAX)));
    }
}
