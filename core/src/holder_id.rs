//! Who holds a lease.

use core::fmt;
use core::num::NonZeroU32;

/// A holder: `name`, or `name#instance` where the name can run twice (`press-a#9f3c`), since two copies of one
/// machine must not be equal.
///
/// 1 to 16 printable ASCII bytes. A longer one is refused and never cut: two cut names could be the same. It is kept
/// zero-padded in four words, so that comparing two costs four compares on a microcontroller, and an
/// `Option<HolderId>` is no larger than a holder.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HolderId(NonZeroU32, u32, u32, u32);

/// Why a text is no holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BadHolderId {
    /// The name, or the instance after a `#`, has no byte.
    Empty,
    /// More than [`HolderId::MAX_LEN`] bytes.
    TooLong,
    /// A byte that is not printable ASCII.
    NotPrintable,
}

impl fmt::Display for BadHolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a holder's name, and its instance after a #, has at least one character",
            Self::TooLong => "a holder is at most 16 bytes long (it is never cut: two cut names could be the same)",
            Self::NotPrintable => "a holder is made of printable ASCII only",
        })
    }
}

impl core::error::Error for BadHolderId {}

impl HolderId {
    /// The most bytes that a holder has.
    pub const MAX_LEN: usize = 16;

    /// The holder called `text`.
    ///
    /// # Errors
    /// [`BadHolderId`] where it is not 1 to 16 printable ASCII bytes, or has a `#` without a name or an instance.
    pub const fn new(text: &str) -> Result<Self, BadHolderId> {
        let bytes = text.as_bytes();
        if bytes.len() > Self::MAX_LEN {
            return Err(BadHolderId::TooLong);
        }
        let mut padded = [0; Self::MAX_LEN];
        let mut hash = None;
        let mut i = 0;
        while i < bytes.len() {
            if bytes[i] < b' ' || bytes[i] > b'~' {
                return Err(BadHolderId::NotPrintable);
            }
            if bytes[i] == b'#' && hash.is_none() {
                hash = Some(i);
            }
            padded[i] = bytes[i];
            i += 1;
        }
        if let Some(at) = hash
            && (at == 0 || at + 1 == bytes.len())
        {
            return Err(BadHolderId::Empty);
        }
        match Self::from_padded(padded) {
            Some(id) => Ok(id),
            None => Err(BadHolderId::Empty),
        }
    }

    /// The holder as sixteen bytes, zero-padded: what is signed and stored.
    pub const fn to_padded(self) -> [u8; Self::MAX_LEN] {
        let words = [self.0.get().to_le_bytes(), self.1.to_le_bytes(), self.2.to_le_bytes(), self.3.to_le_bytes()];
        match words.as_flattened().first_chunk() {
            Some(bytes) => *bytes,
            None => [0; Self::MAX_LEN], // four words of four bytes are sixteen
        }
    }

    /// Packs bytes that [`Self::new`] has checked; `None` where the first word is empty.
    const fn from_padded(b: [u8; Self::MAX_LEN]) -> Option<Self> {
        match NonZeroU32::new(u32::from_le_bytes([b[0], b[1], b[2], b[3]])) {
            Some(first) => Some(Self(
                first,
                u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
                u32::from_le_bytes([b[8], b[9], b[10], b[11]]),
                u32::from_le_bytes([b[12], b[13], b[14], b[15]]),
            )),
            None => None,
        }
    }

    /// The holder in `bytes`, zero-padded as [`Self::to_padded`] gives it.
    ///
    /// # Errors
    /// [`BadHolderId`] as in [`Self::new`]; a zero byte inside the text is not printable.
    pub fn parse_padded(bytes: &[u8; Self::MAX_LEN]) -> Result<Self, BadHolderId> {
        let len = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        core::str::from_utf8(&bytes[..len]).map_or(Err(BadHolderId::NotPrintable), Self::new)
    }

    /// The part before the `#`: what a key belongs to, so that every instance of a holder shares one.
    #[must_use]
    pub fn name(self) -> Self {
        let mut bytes = self.to_padded();
        if let Some(hash) = bytes.iter().position(|b| *b == b'#') {
            bytes[hash..].fill(0);
        }
        Self::from_padded(bytes).unwrap_or(self)
    }

    /// Hands the text to `f`.
    fn with_str<R>(self, f: impl FnOnce(&str) -> R) -> R {
        let bytes = self.to_padded();
        let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        f(core::str::from_utf8(&bytes[..len]).unwrap_or_default())
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| f.pad(text))
    }
}

impl fmt::Debug for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| fmt::Debug::fmt(text, f))
    }
}

impl core::str::FromStr for HolderId {
    type Err = BadHolderId;

    fn from_str(text: &str) -> Result<Self, BadHolderId> {
        Self::new(text)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for HolderId {
    fn format(&self, f: defmt::Formatter<'_>) {
        self.with_str(|text| defmt::write!(f, "{=str}", text));
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for HolderId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_str(|text| serializer.serialize_str(text))
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for HolderId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = HolderId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a holder of 1 to 16 printable ASCII bytes")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<HolderId, E> {
                HolderId::new(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn a_holder_is_taken_whole_or_not_at_all() {
        let longest = HolderId::new("sixteen-bytes-xx").unwrap();
        assert_eq!(longest.to_string(), "sixteen-bytes-xx");
        assert_eq!(HolderId::new("seventeen-bytes-x"), Err(BadHolderId::TooLong));
        assert_eq!(HolderId::new(""), Err(BadHolderId::Empty));
        assert_eq!(HolderId::new("#1"), Err(BadHolderId::Empty));
        assert_eq!(HolderId::new("a#"), Err(BadHolderId::Empty));
        assert_eq!(HolderId::new("a\0b"), Err(BadHolderId::NotPrintable));
        assert_eq!(HolderId::new("é"), Err(BadHolderId::NotPrintable));
    }

    #[test]
    fn a_wrong_one_says_what_a_holder_is() {
        assert_eq!("press-a#9f3c".parse(), HolderId::new("press-a#9f3c"));
        assert_eq!(std::format!("{:?}", HolderId::new("a").unwrap()), "\"a\"");
        assert_eq!(std::format!("{:>3}|", HolderId::new("a").unwrap()), "  a|");
        for (text, says) in [("", "at least one character"), ("seventeen-bytes-x", "16 bytes"), ("é", "printable")] {
            let wrong = text.parse::<HolderId>().unwrap_err().to_string();
            assert!(wrong.contains(says), "{wrong}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn json_is_the_text() {
        let id = HolderId::new("press-a#9f3c").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), r#""press-a#9f3c""#);
        assert_eq!(serde_json::from_str::<HolderId>(r#""press-a#9f3c""#).unwrap(), id);
        let wrong = |json| serde_json::from_str::<HolderId>(json).unwrap_err().to_string();
        assert!(wrong("7").contains("expected a holder of 1 to 16 printable ASCII bytes"), "{}", wrong("7"));
        assert!(wrong(r#""""#).contains("at least one character"));
    }

    #[test]
    fn padding_round_trips_and_hides_nothing() {
        for text in ["a", "abcd", "press-a#9f3c", "sixteen-bytes-xx"] {
            let id = HolderId::new(text).unwrap();
            assert_eq!(HolderId::parse_padded(&id.to_padded()), Ok(id));
        }
        let mut hole = HolderId::new("ab").unwrap().to_padded();
        hole[5] = b'c';
        assert_eq!(HolderId::parse_padded(&hole), Err(BadHolderId::NotPrintable));
        assert_eq!(HolderId::parse_padded(&[0; 16]), Err(BadHolderId::Empty));
        assert_eq!(HolderId::parse_padded(&[0xff; 16]), Err(BadHolderId::NotPrintable));
    }

    #[test]
    fn instances_share_a_name_and_are_not_equal() {
        let (a, b) = (HolderId::new("press-a#1").unwrap(), HolderId::new("press-a#2").unwrap());
        assert_ne!(a, b);
        assert_eq!(a.name(), b.name());
        assert_eq!(a.name(), HolderId::new("press-a").unwrap());
        assert_eq!(size_of::<Option<HolderId>>(), HolderId::MAX_LEN);
    }
}
