//! What must survive a power cut, in two independent copies in separate halves of the flash.
//!
//! ```text
//! flash   0 ─────────────── half ─────────────── end     each half a log of records (`sequential-storage`), its wear
//!         │     copy A        │      copy B       │      levelled over all its pages
//!
//! record  key        0 provisioning   1 boot counter   16+n fence of channel n
//!         value      ┌────────┬──────────────────┬─────────────┐
//!                    │ format │ body (postcard)  │ CRC-32 (LE) │
//!                    │   1    │                  │ of both     │
//!                    └────────┴──────────────────┴─────────────┘
//! ```
//!
//! A log that skips a damaged newest record returns the older one without a word; only the second copy shows that. So
//! a record counts as stored when both copies have it and both were read back, and at boot the later of the two is
//! believed and written to *both* wherever they differ or one is damaged: a half-programmed record may read
//! differently the next time. Nothing is erased because it looks corrupt.

use core::cmp::Ordering;
use core::ops::Range;
use crc::{CRC_32_ISO_HDLC, Crc, NoTable};
use embedded_storage_async::nor_flash::NorFlash;
use fencegate::{FenceRecord, Proof};
use fencegate_wire::{MAX_CHANNELS, Provisioning};
use sequential_storage::cache::Cache;
use sequential_storage::map::{MapConfig, MapStorage};
use serde::{Serialize, de::DeserializeOwned};

use crate::gate::Memory;

const CHECK: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// The records' format. A record of another number is damaged to this firmware: it fails closed.
const FORMAT: u8 = 1;
const OVERHEAD: usize = 1 + 4;

/// Bytes of the largest record, its key and what rounding to a flash word of 32 bytes adds.
const BUFFER: usize = 1024;

const PROVISIONING: u8 = 0;
const BOOTS: u8 = 1;
const FENCE: u8 = 16;

/// Why something is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The flash failed, is full, or its log cannot be read.
    Flash,
    /// What was read back is not what was written.
    ReadBack,
    /// The record exceeds the buffer.
    TooLong,
}

/// What the store knows of something.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Loaded<T> {
    /// It is there, the same in both copies.
    Found(T),
    /// It is there in one copy, and the other could not be mended.
    Unmended(T),
    /// It was never there.
    Never,
    /// It was there, or ought to be, and cannot be trusted.
    Lost,
}

/// What a board is, by its flash.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "without a heap there is nothing to box it in; there is one of them")]
pub enum Boot {
    /// A provisioned gate.
    Gate(Provisioning, Memory),
    /// A board that never was one.
    Blank,
    /// A board that was one, and whose provisioning is lost.
    Lost,
}

/// One of the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copy {
    A,
    B,
}

/// What one copy holds under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found<T> {
    Value(T),
    Missing,
    Damaged,
}

/// The store of one gate.
#[derive(Debug)]
pub struct Store<F> {
    flash: F,
    buffer: [u8; BUFFER],
}

impl<F: NorFlash> Store<F> {
    // The log's records must not be torn within a word (at one-byte words acknowledged ones were), and must fit.
    const _WORD: () = assert!(F::WRITE_SIZE >= 4 && F::WRITE_SIZE <= 32 && F::ERASE_SIZE >= 2 * BUFFER);

    /// A store over the whole of `flash`.
    pub const fn new(flash: F) -> Self {
        let () = Self::_WORD;
        Self { flash, buffer: [0; BUFFER] }
    }

    /// Reads what the board is, mends the copies, and counts the boot.
    pub async fn boot(&mut self) -> Boot {
        let (provisioning, mended) = match self.load::<Provisioning>(PROVISIONING, |_, _| None).await {
            Loaded::Found(provisioning) => (provisioning, true),
            // It still says who may ask; a flash that cannot be mended says nothing else that could be trusted.
            Loaded::Unmended(provisioning) => (provisioning, false),
            Loaded::Never if self.was_never_a_gate().await => return Boot::Blank,
            Loaded::Never | Loaded::Lost => return Boot::Lost,
        };
        let boots = match self.load::<u32>(BOOTS, |a, b| Some(a.cmp(b))).await {
            Loaded::Found(boots) => boots.checked_add(1),
            Loaded::Never => Some(1),
            Loaded::Unmended(_) | Loaded::Lost => None,
        };
        // A boot that cannot be counted could repeat the challenges of another: then no fence can be trusted either.
        let counted = match boots {
            Some(boots) if mended => self.put(BOOTS, &boots).await.is_ok(),
            _ => false,
        };
        let mut records = heapless::Vec::new();
        for channel in 0..provisioning.channels.len() {
            let key = FENCE + u8::try_from(channel).unwrap_or(u8::MAX - FENCE);
            let record = match self.load::<FenceRecord>(key, FenceRecord::order).await {
                Loaded::Found(record) if counted => Some(record),
                // Provisioning wrote a first record for every channel: none is lost storage, and not a fresh gate.
                _ => None,
            };
            let _ = records.push(record); // as many as there are channels
        }
        Boot::Gate(provisioning, Memory { boots: boots.unwrap_or(u32::MAX), records })
    }

    /// Stores where a channel's fence stands. The proof is made of what was read back.
    ///
    /// # Errors
    /// [`StoreError`]; then either copy may have the old record or the new one.
    pub async fn put_fence(&mut self, channel: u8, record: FenceRecord) -> Result<Proof, StoreError> {
        let key = FENCE.checked_add(channel).ok_or(StoreError::TooLong)?;
        self.put(key, &record).await.map(Proof::read_back)
    }

    /// Makes the board a gate: first the channels' first records, and last of all the provisioning, so that a cut
    /// before the end leaves a board that was never one.
    ///
    /// # Errors
    /// [`StoreError`]; the board is then as blank as before.
    pub async fn provision(&mut self, provisioning: &Provisioning) -> Result<(), StoreError> {
        for (channel, config) in (0..).zip(&provisioning.channels) {
            let _ = self.put_fence(channel, FenceRecord::floor(config.epoch, config.floor)).await?;
        }
        self.put(PROVISIONING, provisioning).await.map(|_| ())
    }

    /// Whether no record is there that only a running gate writes, and none that cannot be read.
    async fn was_never_a_gate(&mut self) -> bool {
        for copy in [Copy::A, Copy::B] {
            if self.get::<u32>(copy, BOOTS).await != Found::Missing {
                return false;
            }
            for channel in (FENCE..).take(MAX_CHANNELS) {
                match self.get::<FenceRecord>(copy, channel).await {
                    Found::Missing => {}
                    Found::Value(record) if record.holder.is_none() => {}
                    Found::Value(_) | Found::Damaged => return false,
                }
            }
        }
        true
    }

    /// The later of the two copies, written to both where they differ or one is damaged.
    ///
    /// `order` compares two different values; `None` says that they contradict each other.
    async fn load<T: Serialize + DeserializeOwned + PartialEq>(
        &mut self,
        key: u8,
        order: impl Fn(&T, &T) -> Option<Ordering>,
    ) -> Loaded<T> {
        let a = self.get::<T>(Copy::A, key).await;
        let b = self.get::<T>(Copy::B, key).await;
        let value = match (a, b) {
            (Found::Value(a), Found::Value(b)) if a == b => return Loaded::Found(a),
            (Found::Value(a), Found::Value(b)) => match order(&a, &b) {
                Some(Ordering::Less) => b,
                Some(_) => a,
                None => return Loaded::Lost,
            },
            (Found::Value(value), _) | (_, Found::Value(value)) => value,
            (Found::Missing, Found::Missing) => return Loaded::Never,
            _ => return Loaded::Lost,
        };
        match self.put(key, &value).await {
            Ok(value) => Loaded::Found(value),
            Err(_) => Loaded::Unmended(value),
        }
    }

    /// Writes a record to both copies, and hands back what was read from both.
    async fn put<T: Serialize + DeserializeOwned + PartialEq>(&mut self, key: u8, value: &T) -> Result<T, StoreError> {
        for copy in [Copy::A, Copy::B] {
            let mut bytes = [0; BUFFER - 64]; // leaves room for the key and the word that the log rounds up to
            let len = encode(value, &mut bytes).ok_or(StoreError::TooLong)?;
            let range = self.range(copy);
            let config = MapConfig::try_new(range).map_err(|_| StoreError::Flash)?;
            let mut map = MapStorage::<u8, _, _>::new(&mut self.flash, config, Cache::new_uncached());
            map.store_item(&mut self.buffer, &key, &&bytes[..len]).await.map_err(|_| StoreError::Flash)?;
        }
        let a = self.get::<T>(Copy::A, key).await;
        let b = self.get::<T>(Copy::B, key).await;
        match (a, b) {
            (Found::Value(a), Found::Value(b)) if a == *value && b == a => Ok(a),
            _ => Err(StoreError::ReadBack),
        }
    }

    async fn get<T: DeserializeOwned>(&mut self, copy: Copy, key: u8) -> Found<T> {
        let range = self.range(copy);
        let Ok(config) = MapConfig::try_new(range) else { return Found::Damaged };
        let mut map = MapStorage::<u8, _, _>::new(&mut self.flash, config, Cache::new_uncached());
        match map.fetch_item::<&[u8]>(&mut self.buffer, &key).await {
            Ok(Some(bytes)) => decode(bytes).map_or(Found::Damaged, Found::Value),
            Ok(None) => Found::Missing,
            Err(_) => Found::Damaged,
        }
    }

    /// The half of the flash that a copy has to itself.
    fn range(&self, copy: Copy) -> Range<u32> {
        let erase = F::ERASE_SIZE;
        let pages = self.flash.capacity() / erase / 2;
        let half = u32::try_from(pages * erase).unwrap_or(0); // 0 leaves no range, which no map accepts
        match copy {
            Copy::A => 0..half,
            Copy::B => half..half.saturating_mul(2),
        }
    }
}

fn encode(value: &impl Serialize, bytes: &mut [u8]) -> Option<usize> {
    let room = bytes.len().checked_sub(OVERHEAD)?;
    *bytes.first_mut()? = FORMAT;
    let end = 1 + postcard::to_slice(value, bytes.get_mut(1..=room)?).ok()?.len();
    let check = CHECK.checksum(bytes.get(..end)?).to_le_bytes();
    bytes.get_mut(end..end + check.len())?.copy_from_slice(&check);
    Some(end + check.len())
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (signed, check) = bytes.split_last_chunk::<4>()?;
    let (format, body) = signed.split_first()?;
    if *format != FORMAT || CHECK.checksum(signed).to_le_bytes() != *check {
        return None;
    }
    postcard::take_from_bytes(body).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

#[cfg(test)]
mod tests;
