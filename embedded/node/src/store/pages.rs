//! What is on the pages of a copy, whatever its log makes of it.

use core::cmp::Ordering;
use core::ops::Range;
use crc::{Algorithm, CRC_16_IBM_SDLC, Crc, NoTable};
use embedded_storage_async::nor_flash::NorFlash;

use super::log::{BUFFER, Copy, Logs, log_check};
use super::record::{CHECK, Key, VALUE, is_sound};
use super::{FAR, StoreError};

/// What is erased at a time. (Whole pages of more than 4 GiB are no flash's.)
pub(super) fn erase_size<F: NorFlash>() -> u32 {
    u32::try_from(F::ERASE_SIZE).unwrap_or(u32::MAX)
}

/// What is written at a time.
pub(super) fn word_size<F: NorFlash>() -> u32 {
    u32::try_from(Logs::<F>::WORD).unwrap_or(u32::MAX)
}

/// Where the marker of a full page is.
pub(super) fn last_word<F: NorFlash>(page: u32) -> u32 {
    page.saturating_add(erase_size::<F>().saturating_sub(word_size::<F>()))
}

/// The length of a record, by its head: after the check value of what follows comes the length, and that one's own check value
/// (CRC-16F/4.2, never all ones); `None` where they do not agree.
fn length(head: &[u8]) -> Option<usize> {
    const LENGTH_CHECK: Crc<u16, NoTable> =
        Crc::<u16, NoTable>::new(&Algorithm { poly: 0x1a2e_u16.reverse_bits(), init: 0xffff, ..CRC_16_IBM_SDLC });
    let [low, high, check @ ..] = *head.get(4..8)?.first_chunk::<4>()?;
    let agrees = LENGTH_CHECK.checksum(&[low, high]).min(0xfffe) == u16::from_le_bytes(check);
    agrees.then(|| u16::from_le_bytes([low, high]).into())
}

impl<F: NorFlash> Logs<F> {
    /// Bytes of a record's head.
    const HEAD: usize = 8_usize.next_multiple_of(Self::WORD);

    /// A bit for each key under which a copy seems to have something. What this misses is looked for by the store that moves it.
    pub(super) async fn keys(&mut self, copy: Copy) -> u128 {
        let header = Self::HEAD;
        let mut keys = 0;
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let Ok(page) = usize::try_from(page) else { break };
            let mut at = page + Self::WORD;
            while at + header + Self::WORD < page + F::ERASE_SIZE {
                let Ok(bytes) = self.read(at, header + Self::WORD).await else {
                    at += Self::WORD;
                    continue;
                };
                if bytes.iter().all(|byte| *byte == 0xff) {
                    break;
                }
                // As the log does: what has no length is gone past by a word.
                let len = length(bytes);
                if let (Some(_), Some(key)) = (len, bytes.get(header)) {
                    keys |= 1_u128.checked_shl((*key).into()).unwrap_or(0);
                }
                at += len.map_or(Self::WORD, |len| header + len.next_multiple_of(Self::WORD));
            }
        }
        keys
    }

    /// Whether a page of a copy is marked as full and not as begun, by half the bits of the first bytes. The log erases
    /// such a page as soon as it comes upon it, if only to read; were it in both copies, the board would be blank.
    pub(super) async fn looks_half_erased(&mut self, copy: Copy) -> bool {
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
    /// on some parts. What is settled has one page that is being filled; a copy that was being cleared has another that says
    /// so, or nothing at all.
    pub(super) async fn is_unsettled(&mut self, copy: Copy) -> bool {
        let range = self.range(copy);
        let (mut first, mut filling, mut any) = (None, false, false);
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
            any |= filling;
            let _ = first.get_or_insert(begun);
        }
        // A read that failed once is not believed.
        let unreadable = self.fold(range.clone(), (), |(), _| ()).await.is_none()
            && self.fold(range, (), |(), _| ()).await.is_none();
        !any || filling && first == Some(Some(true)) || unreadable
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

    /// Whether no record of a copy is damaged, of those that are still there.
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
        let header = Self::HEAD;
        while at + header <= end {
            let Ok(bytes) = self.read(at, header).await else { return false };
            if bytes.iter().all(|byte| *byte == 0xff) {
                let [at, end] = [at, end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
                return self.is_erased(at..end).await;
            }
            let (Some(check), Some(len)) = (bytes.first_chunk().map(|check| u32::from_le_bytes(*check)), length(bytes))
            else {
                return false;
            };
            at += header;
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
    /// Says whether every word could be read: what is in one that cannot may be higher.
    ///
    /// # Errors
    /// Where one is of a later firmware's format, which may be higher than all that can be read here.
    pub(super) async fn highest(&mut self, copy: Copy, key: Key) -> Result<bool, StoreError> {
        self.slot_mut(copy).fill(|_| Some(0))?;
        let mut readable = true;
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let page = usize::try_from(page).map_err(|_| StoreError::Flash)?;
            let end = page + F::ERASE_SIZE - Self::WORD;
            for at in (page + Self::WORD..end).step_by(Self::WORD) {
                let len = match self.whole_at(at, end, key).await {
                    Ok(Some(len)) => len,
                    Ok(None) => continue,
                    Err(_) => {
                        readable = false;
                        continue;
                    }
                };
                let Self { a, b, buffer, .. } = self;
                let slot = if copy == Copy::A { a } else { b };
                let value = buffer.get(1..len).unwrap_or_default();
                if is_sound(value) && !key.is(value) {
                    return Err(StoreError::Flash);
                }
                if key.is(value)
                    && (slot.value().is_empty() || key.order(value, slot.value()) == Some(Ordering::Greater))
                {
                    slot.fill(|bytes| {
                        bytes.get_mut(..value.len()).map(|b| b.copy_from_slice(value)).map(|()| value.len())
                    })?;
                }
            }
        }
        Ok(readable)
    }

    /// Reads a record that is whole by itself at `at`, and under `key`, into the buffer; how long it is there with its key.
    async fn whole_at(&mut self, at: usize, end: usize, key: Key) -> Result<Option<usize>, StoreError> {
        let header = Self::HEAD;
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

    /// Whether a page is begun and not full.
    pub(super) async fn is_filling(&mut self, page: u32) -> bool {
        self.is_begun(page).await && self.is_open(page).await
    }

    /// Whether the page at `page` is not full for sure.
    pub(super) async fn is_open(&mut self, page: u32) -> bool {
        self.marker(last_word::<F>(page)).await == Some(false)
    }

    /// Whether a marker is there; `None` where it neither is nor is not, or cannot be read.
    pub(super) async fn marker(&mut self, at: u32) -> Option<bool> {
        let bytes = self.buffer.get_mut(..Self::WORD)?;
        self.flash.read(at, bytes).await.ok()?;
        match bytes {
            _ if bytes.iter().all(|byte| *byte == 0) => Some(true),
            _ if bytes.iter().all(|byte| *byte == 0xff) => Some(false),
            _ => None,
        }
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
}
