//! What a record holds, and under which key.

use crate::latched::Latched;
use core::cmp::Ordering;
use crc::{CRC_32_ISO_HDLC, Crc, NoTable};
use fencegate::{FenceRecord, GrantRecord};
use fencegate_wire::{ChannelConfig, GateConfig, MAX_CHANNELS, MAX_GATE_OUTPUTS, OutputConfig};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(super) const CHECK: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// The records' format. A record of another number is damaged to this firmware: it fails closed.
pub(super) const FORMAT: u8 = 1;

/// What is added to a body: the format and the check value.
pub(super) const OVERHEAD: usize = 1 + 4;

/// Bytes of a serial number, an integer and a time at the longest (LEB128 of 32 and of 64 bits).
const INT: usize = 5;
const LONG: usize = 10;

/// Bytes of the longest body, which is a gate's: serial, three counts, identity, two keys and their instance and number,
/// drift, lateness, longest window, burst, interval, leap of an epoch, warning.
const BODY: usize = INT + 3 + 8 + 2 * 32 + LONG + 1 + INT + LONG + LONG + INT + LONG + INT + LONG;

/// Bytes of the longest value of a record.
pub(super) const VALUE: usize = BODY + OVERHEAD;

/// Bytes of the longest body of a channel's mark: kind, epoch, token, holder, released, TTL.
pub(super) const MARK: usize = 1 + INT + LONG + 18 + 1 + LONG;

/// Bytes of the longest body of an output or a channel. Whatever is longer has times of decades, and is not stored: two
/// provisionings at once would not leave the marks the room that they need.
pub(super) const PIECE: usize = 50;

/// The flash that a record of `body` bytes takes in words of `word` bytes.
const fn record(body: usize, word: usize) -> usize {
    8_usize.next_multiple_of(word) + (1 + OVERHEAD + body).next_multiple_of(word)
}

/// Bytes of the longest record.
pub(super) const fn longest(word: usize) -> usize {
    record(BODY, word)
}

/// Bytes of all that is in force at the most while a provisioning replaces another.
pub(super) const fn most(word: usize) -> usize {
    2 * (MAX_GATE_OUTPUTS + MAX_CHANNELS) * record(PIECE, word)
        + MAX_CHANNELS * record(MARK, word)
        + 2 * record(BODY, word)
        + record(2 * INT, word)
        + record(INT + 2, word)
        + record(1, word)
}

/// Within how many bytes of copy A the very first record of a board lies, though it was torn three times before.
pub(super) const fn first(word: usize) -> usize {
    word + 4 * record(1, word)
}

/// How many keys there are.
pub(super) const KEYS: usize = 4 + MAX_CHANNELS + 2 * (MAX_GATE_OUTPUTS + MAX_CHANNELS);

/// Under which key a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u8);

/// What kind of record a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gate,
    Boots,
    Stage,
    Latched,
    Mark,
    Output,
    Channel,
}

impl Kind {
    /// How many keys there are of this kind, in a generation where they have one.
    const fn most(self) -> usize {
        match self {
            Self::Gate | Self::Boots | Self::Stage | Self::Latched => 1,
            Self::Mark | Self::Channel => MAX_CHANNELS,
            Self::Output => MAX_GATE_OUTPUTS,
        }
    }
}

impl Key {
    pub(super) const GATE: Self = Self(0);
    pub(super) const BOOTS: Self = Self(1);
    pub(super) const STAGE: Self = Self(2);
    pub(super) const LATCHED: Self = Self(3);

    /// Where a channel's fence stands.
    pub(super) const fn mark(channel: u8) -> Option<Self> {
        if (channel as usize) < MAX_CHANNELS { Some(Self(0x10 | channel)) } else { None }
    }

    /// What an output is, in one of the two generations of provisionings.
    pub(super) const fn output(generation: u8, output: u8) -> Option<Self> {
        if (output as usize) < MAX_GATE_OUTPUTS { Some(Self(0x40 | (generation & 1) << 5 | output)) } else { None }
    }

    /// What a channel is, in one of the two generations of provisionings.
    pub(super) const fn channel(generation: u8, channel: u8) -> Option<Self> {
        if (channel as usize) < MAX_CHANNELS { Some(Self(0x50 | (generation & 1) << 5 | channel)) } else { None }
    }

    /// Every key of the outputs and channels of a generation.
    pub(super) fn pieces(generation: u8) -> impl Iterator<Item = Self> {
        Self::all().filter(move |key| key.0 >> 5 == 2 | generation & 1)
    }

    /// Every key there is, that of the whole first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..0x80).map(Self).filter(|key| usize::from(key.index()) < key.kind().most())
    }

    /// Which of its kind.
    const fn index(self) -> u8 {
        match self.kind() {
            Kind::Gate | Kind::Boots | Kind::Stage | Kind::Latched => 0,
            Kind::Mark => self.0.wrapping_sub(0x10),
            Kind::Output | Kind::Channel => self.0 & 0xf,
        }
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    pub(super) const fn kind(self) -> Kind {
        match self.0 {
            0 => Kind::Gate,
            1 => Kind::Boots,
            2 => Kind::Stage,
            3 => Kind::Latched,
            4..0x40 => Kind::Mark,
            _ if self.0 & 0x10 == 0 => Kind::Output,
            _ => Kind::Channel,
        }
    }

    /// Whether it is an output or a channel.
    pub(super) const fn is_piece(self) -> bool {
        matches!(self.kind(), Kind::Output | Kind::Channel)
    }

    /// Whether `value` is a record of this kind, whole.
    pub(super) fn is(self, value: &[u8]) -> bool {
        match self.kind() {
            Kind::Gate => decode::<Whole>(value).is_some(),
            Kind::Boots => decode::<Boots>(value).is_some(),
            Kind::Stage => decode::<Stage>(value).is_some(),
            Kind::Latched => decode::<Latched>(value).is_some(),
            Kind::Mark => decode::<Mark>(value).is_some(),
            Kind::Output => decode::<OutputConfig>(value).is_some(),
            Kind::Channel => decode::<ChannelConfig>(value).is_some(),
        }
    }

    /// Which of two different values is the later; `None` where no single history has both.
    pub(super) fn order(self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        match self.kind() {
            Kind::Gate => {
                let (a, b) = (decode::<Whole>(a)?.serial, decode::<Whole>(b)?.serial);
                Some(a.cmp(&b)).filter(|order| order.is_ne())
            }
            Kind::Boots => Some(decode::<Boots>(a)?.cmp(&decode::<Boots>(b)?)),
            Kind::Stage => Some(decode::<Stage>(a)?.cmp(&decode::<Stage>(b)?)),
            Kind::Latched => {
                let (a, b) = (decode::<Latched>(a)?.serial, decode::<Latched>(b)?.serial);
                Some(a.cmp(&b)).filter(|order| order.is_ne())
            }
            Kind::Mark => decode::<Mark>(a)?.order(&decode::<Mark>(b)?),
            // Within one generation nothing is written over: it is removed first.
            Kind::Output | Kind::Channel => None,
        }
    }
}

/// How far a provisioning has come. It is the first record that a board ever gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Stage {
    /// 0: the records of a new gate are being written. Without all of them the board is still blank.
    Underway,
    /// 1: the gate has been spoken to. Whatever is missing from now on is lost.
    Done,
    /// 2: as `Done`, and there are records of a provisioning that is not in force.
    Replacing,
}

/// How often the gate has booted. It is counted before it rests, so that the later of two is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Boots {
    /// The boots in which somebody spoke.
    pub(super) count: u32,
    /// For how many of them a time of running has made up.
    pub(super) rested: u32,
}

/// The provisioning that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Whole {
    /// Its number on this board; its last bit is the generation under which its outputs and channels are.
    pub(super) serial: u32,
    /// The most channels that any provisioning of this board has had: their marks were there.
    pub(super) marks: u8,
    /// How many channels it has.
    pub(super) channels: u8,
    /// How many outputs they have.
    pub(super) outputs: u8,
    /// What the gate is as a whole.
    pub(super) config: GateConfig,
}

/// What records belong to a provisioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) serial: u32,
    pub(super) marks: u8,
    pub(super) channels: u8,
    pub(super) outputs: u8,
}

impl Census {
    /// The last bit of the serial.
    pub(super) const fn generation(self) -> u8 {
        (self.serial & 1) as u8
    }

    /// Whether a key is one of a gate's records in force, other than that of the whole.
    pub(super) const fn has(self, key: Key) -> bool {
        let index = key.index();
        match key.kind() {
            Kind::Gate => false,
            Kind::Boots | Kind::Stage | Kind::Latched => true,
            Kind::Mark => index < self.marks,
            Kind::Output => index < self.outputs && key.0 >> 5 == 2 | self.generation(),
            Kind::Channel => index < self.channels && key.0 >> 5 == 2 | self.generation(),
        }
    }
}

impl Whole {
    pub(super) const fn census(&self) -> Census {
        Census { serial: self.serial, marks: self.marks, channels: self.channels, outputs: self.outputs }
    }
}

/// Where a channel's fence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mark {
    /// 0: there.
    Stands(GrantRecord),
    /// 1: there or higher. It could still be read when the storage could not be trusted any more.
    Lost(FenceRecord),
}

impl Mark {
    pub(super) const fn record(&self) -> FenceRecord {
        match self {
            Self::Stands(record) => record.mark,
            Self::Lost(record) => *record,
        }
    }

    /// Epoch and token as the fence orders them; then what makes others wait longer, and a loss above all.
    fn order(&self, other: &Self) -> Option<Ordering> {
        let rank = |mark: &Self| match mark {
            Self::Stands(record) => (false, record.ttl),
            Self::Lost(_) => (true, fencegate::Duration::ZERO),
        };
        Some(self.record().order(&other.record())?.then(rank(self).cmp(&rank(other))))
    }
}

/// Writes a record's value; how long it is, or `None` where it does not fit.
pub(super) fn encode(value: &impl Serialize, bytes: &mut [u8]) -> Option<usize> {
    let room = bytes.len().checked_sub(OVERHEAD)?;
    let len = postcard::to_slice(value, bytes.get_mut(1..=room)?).ok()?.len();
    close(bytes, 1 + len)
}

/// Puts format and check value around the body that ends at `end`.
fn close(bytes: &mut [u8], end: usize) -> Option<usize> {
    *bytes.first_mut()? = FORMAT;
    let check = CHECK.checksum(bytes.get(..end)?).to_le_bytes();
    bytes.get_mut(end..end + check.len())?.copy_from_slice(&check);
    Some(end + check.len())
}

/// Whether the check value of a record's value is right, whatever its format.
pub(super) fn is_sound(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<4>().is_some_and(|(signed, check)| CHECK.checksum(signed).to_le_bytes() == *check)
}

/// Reads a record's value; `None` where it is damaged, or of another format.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::take_from_bytes(body(bytes)?).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// What is between format and check value, where both are right.
#[inline(never)] // once, and not once for every kind of record
fn body(bytes: &[u8]) -> Option<&[u8]> {
    let (signed, _) = bytes.split_last_chunk::<4>().filter(|_| is_sound(bytes))?;
    signed.split_first().filter(|(format, _)| **format == FORMAT).map(|(_, body)| body)
}
