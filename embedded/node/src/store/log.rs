//! The two logs in the flash: what they have under a key.

use core::ops::Range;
use crc::{Algorithm, CRC_32_ISCSI, Crc, NoTable};
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use sequential_storage::cache::key_pointers::ArrayKeyPointers;
use sequential_storage::cache::{Cache, Uncached};
use sequential_storage::map::{MapConfig, MapStorage};

use super::StoreError;
use super::record::{KEYS, Key, VALUE, longest};

/// Bytes of the longest key and value, rounded up to the longest word.
pub(super) const BUFFER: usize = (1 + VALUE).next_multiple_of(32);

/// The check value that the log puts around a key and its value: Castagnoli's polynomial with a beginning of its own. It
/// is in the log's layout, which `store/tests/golden.rs` keeps.
const LOG_CHECK: Crc<u32, NoTable> =
    Crc::<u32, NoTable>::new(&Algorithm { init: 0xeeee_eeee_u32.reverse_bits(), ..CRC_32_ISCSI });

/// What stands before `data` in the log: never 0, which means removed, nor does it begin as an erased word does.
pub(super) const fn log_check(data: &[u8]) -> u32 {
    match LOG_CHECK.checksum(data) {
        0 => 1,
        check if matches!(check & 0xff, 0 | 0xff) => check ^ 1,
        check => check,
    }
}

/// Where a copy's records lie, all of them. A page that is reclaimed has the log look up each record in it, by a search from
/// the latest page back: what was stored long ago, as a provisioning is, lies together and behind everything, and without
/// this a store that moves it would read the whole log once for every one of them.
type Places = Cache<Uncached, Uncached, ArrayKeyPointers<u8, KEYS>, u8>;

/// One of the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    A,
    B,
}

impl Copy {
    pub(super) const BOTH: [Self; 2] = [Self::A, Self::B];

    pub(super) const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// What a copy held under a key when it was last read, or what is to be written.
#[derive(Debug)]
pub(super) struct Slot {
    bytes: [u8; VALUE],
    len: usize,
    damaged: bool,
}

impl Slot {
    const EMPTY: Self = Self { bytes: [0; VALUE], len: 0, damaged: false };

    /// The value; empty where there is none, or where it was removed.
    pub(super) fn value(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) const fn is_missing(&self) -> bool {
        self.len == 0 && !self.damaged
    }

    const fn spoil(&mut self) {
        (self.len, self.damaged) = (0, true);
    }

    /// Takes what the log has under `key`.
    fn take(&mut self, key: Key, value: Option<&[u8]>) {
        self.spoil();
        match value {
            None | Some([]) => self.damaged = false,
            Some(value) if key.is(value) => {
                if let Some(bytes) = self.bytes.get_mut(..value.len()) {
                    bytes.copy_from_slice(value);
                    (self.len, self.damaged) = (value.len(), false);
                }
            }
            Some(_) => {}
        }
    }

    pub(super) const fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Lets `write` fill it.
    pub(super) fn fill(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Result<(), StoreError> {
        (self.len, self.damaged) = (0, false);
        self.len = write(&mut self.bytes).ok_or(StoreError::TooLong)?;
        Ok(())
    }
}

/// No places yet.
fn nowhere() -> Places {
    Cache::new(Uncached, Uncached, ArrayKeyPointers::new())
}

/// A flash of which it is noticed whether it was changed.
struct Watched<'a, F> {
    flash: &'a mut F,
    changed: bool,
}

impl<F: ErrorType> ErrorType for Watched<'_, F> {
    type Error = F::Error;
}

impl<F: ReadNorFlash> ReadNorFlash for Watched<'_, F> {
    const READ_SIZE: usize = F::READ_SIZE;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), F::Error> {
        self.flash.read(offset, bytes).await
    }

    fn capacity(&self) -> usize {
        self.flash.capacity()
    }
}

impl<F: NorFlash> NorFlash for Watched<'_, F> {
    const WRITE_SIZE: usize = F::WRITE_SIZE;
    const ERASE_SIZE: usize = F::ERASE_SIZE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), F::Error> {
        self.changed = true;
        self.flash.erase(from, to).await
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), F::Error> {
        self.changed = true;
        self.flash.write(offset, bytes).await
    }
}

/// The flash, and what was last read of each copy. It knows bytes alone, so that the log's code is there once.
#[derive(Debug)]
pub(super) struct Logs<F> {
    pub(super) flash: F,
    pub(super) a: Slot,
    pub(super) b: Slot,
    pub(super) buffer: [u8; BUFFER],
    /// Of each copy; `None` where what is there was not looked at since something else than a store has changed it, or
    /// since a store has failed.
    places: [Option<Places>; 2],
    /// Whether the next record may come to lie on a word that a cut, or a write that failed, has half-programmed, and that
    /// reads as erased for now.
    pub(super) doubtful: bool,
    /// Whether a store was begun and did not come to its end.
    pub(super) torn: bool,
}

impl<F> Logs<F> {
    pub(super) const fn slot_mut(&mut self, copy: Copy) -> &mut Slot {
        match copy {
            Copy::A => &mut self.a,
            Copy::B => &mut self.b,
        }
    }

    pub(super) const fn places_mut(&mut self, copy: Copy) -> &mut Option<Places> {
        let [a, b] = &mut self.places;
        match copy {
            Copy::A => a,
            Copy::B => b,
        }
    }

    pub(super) const fn slot(&self, copy: Copy) -> &Slot {
        match copy {
            Copy::A => &self.a,
            Copy::B => &self.b,
        }
    }
}

impl<F: NorFlash> Logs<F> {
    /// The log's word.
    pub(super) const WORD: usize = if F::WRITE_SIZE > F::READ_SIZE { F::WRITE_SIZE } else { F::READ_SIZE };

    // The log's records must not be torn within a word (at one-byte words acknowledged ones were), and must fit.
    const _WORD: () = assert!(Self::WORD >= 4 && Self::WORD <= 32 && F::ERASE_SIZE >= 4 * longest(Self::WORD));

    pub(super) const fn new(flash: F) -> Self {
        let () = Self::_WORD;
        Self {
            flash,
            a: Slot::EMPTY,
            b: Slot::EMPTY,
            buffer: [0; BUFFER],
            places: [const { None }; 2],
            doubtful: true,
            torn: false,
        }
    }

    /// Forgets where records lie: what is read next is looked for as a boot looks for it.
    pub(super) fn forget(&mut self) {
        self.places = [const { None }; 2];
    }

    /// Looks for all that is there, so that no store has to.
    pub(super) async fn learn(&mut self) {
        for copy in Copy::BOTH {
            let there = self.keys(copy).await;
            for key in Key::all().filter(|key| there >> key.number() & 1 == 1) {
                self.fetch(copy, key).await;
            }
        }
    }

    /// Reads what `copy` holds under `key`, past any cache of the flash, into the copy's slot.
    pub(super) async fn fetch(&mut self, copy: Copy, key: Key) {
        let range = self.range(copy);
        if self.looks_half_erased(copy).await {
            *self.places_mut(copy) = None;
            self.slot_mut(copy).spoil();
            return;
        }
        // Gone where this fails.
        let places = self.places_mut(copy).take();
        let Self { flash, a, b, buffer, .. } = self;
        let slot = if copy == Copy::A { a } else { b };
        slot.spoil();
        let Ok(config) = MapConfig::try_new(range) else { return };
        let mut map = MapStorage::<u8, _, _>::new(flash, config, places.unwrap_or_else(nowhere));
        if let Ok(value) = map.fetch_item::<&[u8]>(buffer, &key.number()).await {
            slot.take(key, value);
            *self.places_mut(copy) = Some(map.destroy().1);
        }
    }

    /// The same, where it was just stored, and looked for as a boot looks for it.
    pub(super) async fn read_back(&mut self, copy: Copy, key: Key) {
        let range = self.range(copy);
        let Self { flash, a, b, buffer, .. } = self;
        let slot = if copy == Copy::A { a } else { b };
        slot.spoil();
        let Ok(config) = MapConfig::try_new(range) else { return };
        let flash = Watched { flash, changed: false };
        let mut map = MapStorage::<u8, _, _>::new(flash, config, Cache::new_uncached());
        if let Ok(value) = map.fetch_item::<&[u8]>(buffer, &key.number()).await {
            slot.take(key, value);
        }
        // The log repairs itself where it has to, and that moves records.
        if map.destroy().0.changed {
            self.forget();
        }
    }

    /// Appends what is in the slot of `from` to the log of `to`. An empty value removes the record.
    pub(super) async fn append(&mut self, from: Copy, to: Copy, key: Key) -> Result<(), StoreError> {
        if self.looks_half_erased(to).await {
            *self.places_mut(to) = None;
            return Err(StoreError::Flash);
        }
        let range = self.range(to);
        // Gone where this fails.
        let places = self.places_mut(to).take();
        let Self { flash, a, b, buffer, .. } = self;
        let value = match from {
            Copy::A => a.value(),
            Copy::B => b.value(),
        };
        let config = MapConfig::try_new(range).map_err(|_| StoreError::Flash)?;
        let mut map = MapStorage::<u8, _, _>::new(flash, config, places.unwrap_or_else(nowhere));
        map.store_item(buffer, &key.number(), &value).await.map_err(|_| StoreError::Flash)?;
        *self.places_mut(to) = Some(map.destroy().1);
        Ok(())
    }

    /// Whether two whole provisionings fit in a copy, and the marks besides: one page is always empty, and of each other
    /// one as much may stay unused as a record is long.
    pub(super) fn has_room(&self) -> bool {
        let pages = self.flash.capacity() / F::ERASE_SIZE / 2;
        let waste = if pages > 2 { longest(Self::WORD) } else { 0 };
        pages.saturating_sub(1) * (F::ERASE_SIZE - 2 * Self::WORD - waste) >= super::record::most(Self::WORD)
    }

    /// The half of the flash that a copy has to itself.
    pub(super) fn range(&self, copy: Copy) -> Range<u32> {
        let erase = F::ERASE_SIZE;
        let pages = self.flash.capacity() / erase / 2;
        let half = u32::try_from(pages * erase).unwrap_or(0); // 0 leaves no range, which no map accepts
        match copy {
            Copy::A => 0..half,
            Copy::B => half..half.saturating_mul(2),
        }
    }
}
