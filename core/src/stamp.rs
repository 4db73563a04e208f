//! What orders the holders of a resource.

use crate::HolderId;
use core::fmt;
use core::num::NonZeroU64;

/// A fencing token: a number from 1 that the coordinator hands out with a lease, higher each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Token(NonZeroU64);

impl Token {
    /// The token `n`; `None` for zero, which is no token.
    pub const fn new(n: u64) -> Option<Self> {
        match NonZeroU64::new(n) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The operator's count of how often the coordinator's own counter went backwards (a restore from a backup): token
/// 1501 of the next epoch outranks token 2000 of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a holder's every command carries, bound at the acquisition as a whole: epoch, token and holder.
///
/// Stamps are ordered by epoch, then token. The holder breaks no tie: two holders with one token is a mistake that
/// the fence refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stamp {
    /// The operator's epoch at the acquisition.
    pub epoch: Epoch,
    /// The coordinator's token for this lease.
    pub token: Token,
    /// Who acquired it.
    pub holder: HolderId,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} token {} of {}", self.epoch, self.token, self.holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_stamp_in_words() {
        let (token, holder) = (Token::new(34).unwrap(), HolderId::new("press-b").unwrap());
        assert_eq!((Token::new(0), token.get()), (None, 34));
        assert_eq!(Stamp { epoch: Epoch(2), token, holder }.to_string(), "epoch 2 token 34 of press-b");
        assert_eq!(std::format!("{token:>4}|{:>4}|", Epoch(2)), "  34|   2|");
    }
}
