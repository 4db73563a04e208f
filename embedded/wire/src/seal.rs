//! Sealing: a header, a body and a tag that proves who sent both. The layout is drawn in `PROTOCOL.md`.

use crate::frame::{self, Frame, MAX_FRAME, Noise};
use crate::key::{BaseKey, DirectionKeys, Domain, Key, Role};
use fencegate::HolderId;
use hmac::Mac;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The protocol version that this crate speaks.
const VERSION: u8 = 1;
const ANSWER: u8 = 0x80;
pub(crate) const HEADER_LEN: usize = 35;
pub(crate) const TAG_LEN: usize = 16;

// The layout that PROTOCOL.md draws: version, role, key id, gate, holder, nonce.
const _: () = assert!(HEADER_LEN == 1 + 1 + 1 + 8 + HolderId::MAX_LEN + 8);

/// Which gate: eight random bytes from its provisioning, or zeros before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GateId(pub [u8; 8]);

impl GateId {
    /// A gate that nobody has provisioned yet.
    pub const FACTORY: Self = Self([0; 8]);
}

impl core::fmt::Display for GateId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A number that the host has never used before: an old answer convinces nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Nonce(pub [u8; 8]);

/// The authenticator of one sealed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tag([u8; TAG_LEN]);

/// What stands before a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Header {
    /// Whether the gate says it.
    pub answer: bool,
    /// Who speaks, or who is answered.
    pub role: Role,
    /// Which of the principal's keys: [`crate::Keyring::id`].
    pub key_id: u8,
    /// The gate that is meant, or that answers.
    pub gate: GateId,
    /// The request's nonce.
    pub nonce: Nonce,
}

impl Header {
    /// The header of the answer to this request.
    #[must_use]
    pub const fn reply(mut self) -> Self {
        self.answer = true;
        self
    }

    fn encode(&self) -> [u8; HEADER_LEN] {
        let (role, holder) = match self.role {
            Role::Holder(holder) => (1, holder.to_padded()),
            Role::Operator => (2, [0; HolderId::MAX_LEN]),
            Role::Observer => (3, [0; HolderId::MAX_LEN]),
        };
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = VERSION;
        bytes[1] = role | if self.answer { ANSWER } else { 0 };
        bytes[2] = self.key_id;
        bytes[3..11].copy_from_slice(&self.gate.0);
        bytes[11..27].copy_from_slice(&holder);
        bytes[27..].copy_from_slice(&self.nonce.0);
        bytes
    }

    /// The header in `bytes`; `None` where the version, the role or the holder is none that this crate knows.
    fn decode(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let part = |from: usize| bytes.get(from..)?.first_chunk().copied();
        let holder: [u8; HolderId::MAX_LEN] = *bytes.get(11..)?.first_chunk()?;
        let role = match bytes[1] & !ANSWER {
            1 => Role::Holder(HolderId::parse_padded(&holder).ok()?),
            2 if holder == [0; HolderId::MAX_LEN] => Role::Operator,
            3 if holder == [0; HolderId::MAX_LEN] => Role::Observer,
            _ => return None,
        };
        (bytes[0] == VERSION).then_some(Self {
            answer: bytes[1] & ANSWER != 0,
            role,
            key_id: bytes[2],
            gate: GateId(part(3)?),
            nonce: Nonce(part(27)?),
        })
    }
}

/// Who a host is to a gate: everything that its requests are sealed with.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The gate.
    pub gate: GateId,
    /// As whom.
    pub role: Role,
    /// Which of its keys they are.
    pub key_id: u8,
    /// With which keys.
    pub keys: DirectionKeys,
}

impl Credential {
    /// The credential of `role` at `gate`.
    pub fn new(gate: GateId, role: Role, key_id: u8, base: &BaseKey, domain: Domain) -> Self {
        Self { gate, role, key_id, keys: base.directions(domain) }
    }
}

/// A body that does not fit a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TooLong;

/// Seals `body` under `key` into a frame.
///
/// # Errors
/// [`TooLong`] where the body does not fit.
pub fn seal(header: &Header, key: &Key, body: &impl Serialize) -> Result<(Frame, Tag), TooLong> {
    let mut frame = frame::begin();
    frame.extend_from_slice(&header.encode()).map_err(|_| TooLong)?;
    let start = frame.len();
    frame.resize_default(MAX_FRAME).map_err(|_| TooLong)?;
    let len = postcard::to_slice(body, &mut frame[start..]).map_err(|_| TooLong)?.len();
    frame.truncate(start + len);
    let mut mac = key.mac();
    mac.update(&frame[frame::PAYLOAD..]);
    let full: [u8; 32] = mac.finalize().into_bytes().into();
    let mut tag = [0; TAG_LEN];
    tag.copy_from_slice(&full[..TAG_LEN]);
    frame.extend_from_slice(&tag).map_err(|_| TooLong)?;
    frame::close(&mut frame).ok_or(TooLong)?;
    Ok((frame, Tag(tag)))
}

/// A frame that is no noise and not yet believed. Its header is a claim, good for choosing the key and nothing else.
#[derive(Debug)]
pub struct Unverified<'a> {
    header: Header,
    signed: &'a [u8],
    tag: Tag,
}

impl<'a> Unverified<'a> {
    /// Reads a stuffed frame, which is decoded in place.
    ///
    /// # Errors
    /// [`Noise`] where it is no frame of this protocol's version.
    pub fn read(frame: &'a mut [u8]) -> Result<Self, Noise> {
        let payload: &'a [u8] = frame::decode(frame)?;
        let at = payload.len().checked_sub(TAG_LEN).filter(|at| *at >= HEADER_LEN).ok_or(Noise)?;
        let (signed, tag) = payload.split_at_checked(at).ok_or(Noise)?;
        let header = signed.first_chunk().and_then(Header::decode).ok_or(Noise)?;
        Ok(Self { header, signed, tag: Tag(*tag.first_chunk().ok_or(Noise)?) })
    }

    /// What the sender claims.
    pub const fn claim(&self) -> &Header {
        &self.header
    }

    /// Believes the frame if its tag was made with `key`; the comparison takes the same time whatever differs.
    pub fn verify(self, key: &Key) -> Option<Verified<'a>> {
        let mut mac = key.mac();
        mac.update(self.signed);
        mac.verify_truncated_left(&self.tag.0).ok()?;
        Some(Verified { header: self.header, body: self.signed.get(HEADER_LEN..)?, tag: self.tag })
    }
}

/// A frame whose sender is proven.
#[derive(Debug)]
pub struct Verified<'a> {
    header: Header,
    body: &'a [u8],
    tag: Tag,
}

impl Verified<'_> {
    /// Who sent it.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Its authenticator, by which an identical repetition is known.
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// What it says; `None` where this version cannot read it, or bytes are left over.
    pub fn body<T: DeserializeOwned>(&self) -> Option<T> {
        postcard::take_from_bytes(self.body).ok().filter(|(_, rest)| rest.is_empty()).map(|(body, _)| body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            answer: false,
            role: Role::Holder(HolderId::new("press-a#9f3c").unwrap()),
            key_id: 0,
            gate: GateId(*b"press-07"),
            nonce: Nonce([7; 8]),
        }
    }

    const KEY: Key = Key::new([9; 32]);

    /// The stuffed bytes between the zeros.
    fn inner(frame: &mut Frame) -> &mut [u8] {
        let len = frame.len();
        &mut frame[1..len - 1]
    }

    /// A frame of any payload.
    fn framed(payload: &[u8]) -> Frame {
        let mut frame = frame::begin();
        frame.extend_from_slice(payload).unwrap();
        frame::close(&mut frame).unwrap();
        frame
    }

    #[test]
    fn what_was_sealed_is_read_back_whole() {
        let (mut frame, tag) = seal(&header(), &KEY, &(1_u8, -5_i32, u64::MAX)).unwrap();
        let unverified = Unverified::read(inner(&mut frame)).unwrap();
        assert_eq!(unverified.claim(), &header());
        let verified = unverified.verify(&KEY).unwrap();
        assert_eq!((verified.header(), verified.tag()), (&header(), tag));
        assert_eq!(verified.body(), Some((1_u8, -5_i32, u64::MAX)));
        assert_eq!(verified.body::<(u8, i32)>(), None, "a body that says more than we read is not ours to act on");
    }

    /// The bytes that PROTOCOL.md shows: an older gate and a newer host agree on them for ever.
    #[test]
    fn a_frame_has_the_documented_bytes() {
        use crate::message::{Challenge, Request, Sealed};
        use fencegate::{Duration, Epoch, Token};
        let request = Request::Drive {
            channel: 0,
            epoch: Epoch(0),
            token: Token::new(34).unwrap(),
            window: Duration::from_secs(2),
            values: [1].into_iter().collect(),
        };
        let sealed = Sealed { challenge: Some(Challenge { boot: 1, tick: 1_000_000 }), request };
        let (frame, _) = seal(&header(), &KEY, &sealed).unwrap();
        let hex = frame.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        let documented = include_str!("../PROTOCOL.md").split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
        assert_eq!(hex, documented.replace(['\n', ' '], ""));
    }

    #[test]
    fn another_key_or_any_changed_byte_is_forged() {
        let (mut frame, _) = seal(&header(), &KEY, &42_u8).unwrap();
        assert!(Unverified::read(inner(&mut frame.clone())).unwrap().verify(&Key::new([8; 32])).is_none());
        let payload = frame::decode(inner(&mut frame)).unwrap().to_vec();
        for at in 0..payload.len() {
            let mut forged = payload.clone();
            forged[at] ^= 1;
            let mut frame = framed(&forged); // with a check value that fits
            if let Ok(unverified) = Unverified::read(inner(&mut frame)) {
                assert!(unverified.verify(&KEY).is_none(), "byte {at}");
            }
        }
    }

    #[test]
    fn short_frames_are_noise() {
        for len in 0..HEADER_LEN + TAG_LEN {
            let mut frame = framed(&vec![1; len]);
            assert!(Unverified::read(inner(&mut frame)).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn a_body_that_does_not_fit_is_an_error() {
        assert_eq!(seal(&header(), &KEY, &[[0xff_u8; 32]; 8]).unwrap_err(), TooLong);
    }
}
