//! What must survive a power cut, in two independent copies in separate halves of the flash.
//!
//! ```text
//! flash   0 ─────────────── half ─────────────── end     each half a log of records (`sequential-storage`), its wear
//!         │     copy A        │      copy B       │      levelled over all its pages
//!
//! record  key        0 provisioning   1 boot counter   2 stage of the provisioning   16+n fence of channel n
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
use crc::{CRC_32_ISO_HDLC, Crc, Digest, NoTable};
use embedded_storage_async::nor_flash::NorFlash;
use fencegate::{Epoch, FenceRecord, Proof};
use fencegate_wire::Provisioning;
use sequential_storage::cache::Cache;
use sequential_storage::map::{MapConfig, MapStorage};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::memory::{Memory, Remembered};

const CHECK: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// The records' format. A record of another number is damaged to this firmware: it fails closed.
const FORMAT: u8 = 1;
const OVERHEAD: usize = 1 + 4;

/// The bytes at the start of copy A within which the very first record of a provisioning lies, page header included.
const FIRST: usize = 64;

/// Bytes of the largest record, its key and what rounding to a flash word of 32 bytes adds.
const BUFFER: usize = 1024;

const PROVISIONING: u8 = 0;
const BOOTS: u8 = 1;
const STAGE: u8 = 2;
const FENCE: u8 = 16;

/// How far a provisioning has come. It is the first record that a board ever gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// The records of a new gate are being written: without all of them the board is still blank.
    Underway,
    /// The gate has booted: whatever is missing from now on is lost.
    Done,
}

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
            Loaded::Never | Loaded::Lost if self.was_never_a_gate().await => return Boot::Blank,
            Loaded::Never | Loaded::Lost => return Boot::Lost,
        };
        let new = self.load::<Stage>(STAGE, |_, _| Some(Ordering::Less)).await == Loaded::Found(Stage::Underway);
        let (boots, known) = match self.load::<u32>(BOOTS, |a, b| Some(a.cmp(b))).await {
            Loaded::Found(boots) => (boots.checked_add(1), true),
            Loaded::Never if new => (Some(1), true),
            Loaded::Unmended(boots) => (boots.checked_add(1), false),
            Loaded::Never | Loaded::Lost => (None, false),
        };
        // A number that no other boot has had, as far as what is left of the flash differs from what it was then: two
        // boots of one number would accept each other's challenges.
        let boots = match boots {
            Some(boots) => boots,
            None => self.fingerprint().await,
        };
        let mut storable = mended && self.put(BOOTS, &boots).await.is_ok();
        if new {
            storable = storable && self.put(STAGE, &Stage::Done).await.is_ok();
        }
        let trusted = storable && known;
        let mut records = heapless::Vec::new();
        for channel in 0..provisioning.channels.len() {
            let key = FENCE + u8::try_from(channel).unwrap_or(u8::MAX - FENCE);
            let record = match self.load::<FenceRecord>(key, FenceRecord::order).await {
                Loaded::Found(record) if trusted => Remembered::Fence(record),
                Loaded::Found(record) | Loaded::Unmended(record) => Remembered::Lost(record),
                // Provisioning wrote a first record for every channel: none is lost storage, and not a fresh gate.
                Loaded::Never | Loaded::Lost => Remembered::Lost(FenceRecord::floor(Epoch(0), 0)),
            };
            let _ = records.push(record); // as many as there are channels
        }
        Boot::Gate(provisioning, Memory { boots, storable, records })
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
        self.put(STAGE, &Stage::Underway).await?;
        for (channel, config) in (0..).zip(&provisioning.channels) {
            let _ = self.put_fence(channel, FenceRecord::floor(config.epoch, config.floor)).await?;
        }
        self.put(PROVISIONING, provisioning).await.map(|_| ())
    }

    /// Whether the board is blank: its flash erased, or a first provisioning cut before its end. Damage of any kind makes
    /// no blank board of a gate: it would obey the factory key.
    async fn was_never_a_gate(&mut self) -> bool {
        let (a, b) = (self.range(Copy::A), self.range(Copy::B));
        let after_first = a.start.saturating_add(u32::try_from(FIRST).unwrap_or(0))..a.end;
        let (rest_of_a, of_b) = (self.is_erased(after_first).await, self.is_erased(b.clone()).await);
        if rest_of_a && of_b {
            return true; // nothing, or the first record of all, torn
        }
        let after_first = b.start.saturating_add(u32::try_from(FIRST).unwrap_or(0))..b.end;
        let underway = Found::Value(Stage::Underway);
        let begun_in_b = self.get::<Stage>(Copy::B, STAGE).await == underway || self.is_erased(after_first).await;
        begun_in_b
            && self.get::<Stage>(Copy::A, STAGE).await == underway
            && self.get::<u32>(Copy::A, BOOTS).await == Found::Missing
            && self.get::<u32>(Copy::B, BOOTS).await == Found::Missing
    }

    async fn is_erased(&mut self, range: Range<u32>) -> bool {
        self.fold(range, true, |erased, bytes| erased && bytes.iter().all(|byte| *byte == 0xff)).await == Some(true)
    }

    /// A number made of everything that the flash holds, in the upper half of what a boot counter can be.
    async fn fingerprint(&mut self) -> u32 {
        let whole = 0..self.range(Copy::B).end;
        let digest = self.fold(whole, CHECK.digest(), |mut digest, bytes| {
            digest.update(bytes);
            digest
        });
        digest.await.map_or(u32::MAX, Digest::<u32, NoTable>::finalize) | (1 << 31)
    }

    /// Folds `step` over the bytes of `range`; `None` where the flash cannot be read.
    async fn fold<T>(&mut self, range: Range<u32>, start: T, step: impl Fn(T, &[u8]) -> T) -> Option<T> {
        let mut value = start;
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(u32::try_from(BUFFER).unwrap_or(1));
            let bytes = self.buffer.get_mut(..usize::try_from(len).ok()?)?;
            self.flash.read(at, bytes).await.ok()?;
            value = step(value, bytes);
            at += len;
        }
        Some(value)
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
