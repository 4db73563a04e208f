//! The two logs in the flash, in bytes.

use core::cmp::Ordering;
use core::ops::Range;
use crc::{Algorithm, CRC_32_ISCSI, Crc, NoTable};
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use sequential_storage::cache::key_pointers::ArrayKeyPointers;
use sequential_storage::cache::{Cache, Uncached};
use sequential_storage::map::{MapConfig, MapStorage};

use super::record::{CHECK, KEYS, Key, VALUE, is_sound, longest};
use super::{FAR, StoreError};

/// Bytes of the longest key and value, rounded up to the longest word.
const BUFFER: usize = (1 + VALUE).next_multiple_of(32);

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

/// What is erased at a time. (Whole pages of more than 4 GiB are no flash's.)
fn erase_size<F: NorFlash>() -> u32 {
    u32::try_from(F::ERASE_SIZE).unwrap_or(u32::MAX)
}

/// Where the marker of a full page is.
fn last_word<F: NorFlash>(page: u32) -> u32 {
    let word = u32::try_from(F::WRITE_SIZE.max(F::READ_SIZE)).unwrap_or(u32::MAX);
    page.saturating_add(erase_size::<F>().saturating_sub(word))
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
    buffer: [u8; BUFFER],
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
    const fn slot_mut(&mut self, copy: Copy) -> &mut Slot {
        match copy {
            Copy::A => &mut self.a,
            Copy::B => &mut self.b,
        }
    }

    const fn places_mut(&mut self, copy: Copy) -> &mut Option<Places> {
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

    /// A bit for each key under which a copy seems to have something. What this misses is only looked for later.
    async fn keys(&mut self, copy: Copy) -> u128 {
        let header = 8_usize.next_multiple_of(Self::WORD);
        let mut keys = 0;
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let Ok(page) = usize::try_from(page) else { break };
            let mut at = page + Self::WORD;
            while at + header + Self::WORD < page + F::ERASE_SIZE {
                let Ok(bytes) = self.read(at, header + Self::WORD).await else { break };
                let (Some([low, high]), Some(key)) = (bytes.get(4..6), bytes.get(header)) else { break };
                let len = usize::from(u16::from_le_bytes([*low, *high]));
                if len == 0xffff {
                    break;
                }
                keys |= 1_u128.checked_shl((*key).into()).unwrap_or(0);
                at += header + len.next_multiple_of(Self::WORD);
            }
        }
        keys
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

    /// Whether a page of a copy is marked as full and not as begun, by half the bits of the first bytes. The log erases
    /// such a page as soon as it comes upon it, if only to read; were it in both copies, the board would be blank.
    async fn looks_half_erased(&mut self, copy: Copy) -> bool {
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let mut marked = [true; 2];
            for (marked, at) in marked.iter_mut().zip([0, F::ERASE_SIZE - F::READ_SIZE]) {
                let at = usize::try_from(page).unwrap_or(usize::MAX).saturating_add(at);
                let Ok(bytes) = self.read(at, F::READ_SIZE).await else { return true };
                *marked = bytes.iter().map(|byte| byte.count_zeros()).sum::<u32>() >= 4;
            }
            if marked == [false, true] {
                return true;
            }
        }
        false
    }

    /// Whether a copy's log is between two states, as a cut while a page was opened, closed or erased leaves it. Such a log
    /// may be another tomorrow, since the markers of its pages may read either way; and to repair itself it erases a page
    /// whose records it takes to be in another. Nor does it get past a word that cannot be read, as one that was torn cannot
    /// on some parts.
    pub(super) async fn is_unsettled(&mut self, copy: Copy) -> bool {
        let range = self.range(copy);
        let (mut first, mut filling) = (None, false);
        for page in range.clone().step_by(F::ERASE_SIZE) {
            let begun = self.marker(page).await;
            let full = self.marker(last_word::<F>(page)).await;
            let settled = match (begun, full) {
                (Some(false), Some(false)) => self.is_erased(page..page.saturating_add(erase_size::<F>())).await,
                // The page behind the one that is being filled is kept erased.
                (Some(true), Some(_)) => !filling,
                _ => false,
            };
            if !settled {
                return true;
            }
            filling = (begun, full) == (Some(true), Some(false));
            let _ = first.get_or_insert(begun);
        }
        filling && first == Some(Some(true)) || self.fold(range, (), |(), _| ()).await.is_none()
    }

    /// Whether there is half a record in the page that a copy is filling.
    pub(super) async fn is_torn(&mut self, copy: Copy) -> bool {
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            if self.is_filling(page).await {
                return !self.is_clean(page).await;
            }
        }
        false
    }

    /// Whether no record of a copy is damaged, of those that were ever written and are still there.
    pub(super) async fn is_spotless(&mut self, copy: Copy) -> bool {
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            if !self.is_clean(page).await {
                return false;
            }
        }
        true
    }

    /// Whether what is written in a page are whole records up to one place, and nothing behind it.
    async fn is_clean(&mut self, page: u32) -> bool {
        let Ok(mut at) = usize::try_from(page) else { return false };
        let end = at + F::ERASE_SIZE - Self::WORD;
        at += Self::WORD;
        let header = 8_usize.next_multiple_of(Self::WORD);
        while at + header <= end {
            let Ok(bytes) = self.read(at, header).await else { return false };
            if bytes.iter().all(|byte| *byte == 0xff) {
                let [at, end] = [at, end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
                return self.is_erased(at..end).await;
            }
            // After the check value comes the length.
            let (check, len) = match bytes {
                [a, b, c, d, low, high, ..] => {
                    (u32::from_le_bytes([*a, *b, *c, *d]), u16::from_le_bytes([*low, *high]))
                }
                _ => return false,
            };
            at += header;
            let len = usize::from(len);
            let padded = len.next_multiple_of(Self::WORD);
            if at + padded > end {
                return false;
            }
            // What is longer is a later firmware's, and not ours to judge.
            if padded <= BUFFER {
                let Ok(data) = self.read(at, padded).await else { return false };
                if log_check(data.get(..len).unwrap_or_default()) != check {
                    return false;
                }
            }
            at += padded;
        }
        true
    }

    /// Looks at every word of a copy for records under `key` that are whole by themselves, whatever the log makes of their
    /// pages, and puts the highest into the copy's slot. Whole is what the log's check value says, which has the key in it:
    /// an erase that was cut off may have made another key of it.
    ///
    /// # Errors
    /// Where one is of a later firmware's format, or a word cannot be read: what is there may be higher than all that can be.
    pub(super) async fn highest(&mut self, copy: Copy, key: Key) -> Result<(), StoreError> {
        (self.slot_mut(copy).len, self.slot_mut(copy).damaged) = (0, false);
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let page = usize::try_from(page).map_err(|_| StoreError::Flash)?;
            let end = page + F::ERASE_SIZE - Self::WORD;
            for at in (page + Self::WORD..end).step_by(Self::WORD) {
                let Some(len) = self.whole_at(at, end, key).await? else { continue };
                let Self { a, b, buffer, .. } = self;
                let slot = if copy == Copy::A { a } else { b };
                let value = buffer.get(1..len).unwrap_or_default();
                if is_sound(value) && !key.is(value) {
                    return Err(StoreError::Flash);
                }
                if key.is(value) && (slot.len == 0 || key.order(value, slot.value()) == Some(Ordering::Greater)) {
                    slot.fill(|bytes| {
                        bytes.get_mut(..value.len()).map(|b| b.copy_from_slice(value)).map(|()| value.len())
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Reads a record that is whole by itself at `at`, and under `key`, into the buffer; how long it is there with its key.
    async fn whole_at(&mut self, at: usize, end: usize, key: Key) -> Result<Option<usize>, StoreError> {
        let header = 8_usize.next_multiple_of(Self::WORD);
        if at + header + Self::WORD > end {
            return Ok(None);
        }
        let (check, len, number) = match self.read(at, header + Self::WORD).await? {
            head @ [a, b, c, d, low, high, ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]), u16::from_le_bytes([*low, *high]), head.get(header))
            }
            _ => return Err(StoreError::Flash),
        };
        let (len, ours) = (usize::from(len), number == Some(&key.number()));
        let padded = len.next_multiple_of(Self::WORD);
        if !ours || len > 1 + VALUE || padded > BUFFER || at + header + padded > end {
            return Ok(None);
        }
        let data = self.read(at + header, padded).await?.get(..len).unwrap_or_default();
        Ok((log_check(data) == check).then_some(len))
    }

    /// Reads what is at `at` past any cache.
    async fn read(&mut self, at: usize, len: usize) -> Result<&[u8], StoreError> {
        let at = u32::try_from(at).map_err(|_| StoreError::Flash)?;
        let bytes = self.buffer.get_mut(..len).ok_or(StoreError::Flash)?;
        self.flash.read(at, bytes).await.map_err(|_| StoreError::Flash)?;
        Ok(bytes)
    }

    /// Whether the page at `page` has been begun for sure.
    pub(super) async fn is_begun(&mut self, page: u32) -> bool {
        self.marker(page).await == Some(true)
    }

    /// Whether a marker is there; `None` where it neither is nor is not, or cannot be read.
    async fn marker(&mut self, at: u32) -> Option<bool> {
        let bytes = self.buffer.get_mut(..Self::WORD)?;
        self.flash.read(at, bytes).await.ok()?;
        match bytes {
            _ if bytes.iter().all(|byte| *byte == 0) => Some(true),
            _ if bytes.iter().all(|byte| *byte == 0xff) => Some(false),
            _ => None,
        }
    }

    /// Erases a copy, so that it can be written anew from the other: the page that was written last comes last, so that
    /// what a cut leaves is never an earlier state of it.
    pub(super) async fn erase(&mut self, copy: Copy) -> Result<(), StoreError> {
        *self.places_mut(copy) = None;
        let range = self.range(copy);
        let size = erase_size::<F>();
        let next = |page: u32| if page + size < range.end { page + size } else { range.start };
        let mut last = None;
        for page in range.clone().step_by(F::ERASE_SIZE) {
            let filling = self.is_filling(page).await;
            if filling && !self.is_filling(next(page)).await {
                last = Some(page);
                break;
            }
            // Where none is being filled, it is the one before what is erased.
            let erased = self.is_erased(next(page)..next(page) + size).await;
            if last.is_none() && erased && !self.is_erased(page..page + size).await {
                last = Some(page);
            }
        }
        let mut page = next(last.unwrap_or(range.end.saturating_sub(size)));
        for _ in range.clone().step_by(F::ERASE_SIZE) {
            if !self.is_erased(page..page + size).await {
                self.flash.erase(page, page + size).await.map_err(|_| StoreError::Flash)?;
            }
            page = next(page);
        }
        Ok(())
    }

    /// Whether a page is begun and not full.
    async fn is_filling(&mut self, page: u32) -> bool {
        self.marker(page).await == Some(true) && self.marker(last_word::<F>(page)).await == Some(false)
    }

    pub(super) async fn is_erased(&mut self, range: Range<u32>) -> bool {
        self.fold(range, true, |erased, bytes| erased && bytes.iter().all(|byte| *byte == 0xff)).await == Some(true)
    }

    /// A number made of everything that the flash holds, in the upper half of what a boot counter can be.
    pub(super) async fn fingerprint(&mut self) -> Option<u32> {
        let whole = 0..self.range(Copy::B).end;
        let digest = self.fold(whole, CHECK.digest(), |mut digest, bytes| {
            digest.update(bytes);
            digest
        });
        Some(digest.await?.finalize() >> 2 | FAR) // with room above, to count from there
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
