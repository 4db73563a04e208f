//! How a copy is erased, to be written anew from the other.
//!
//! An erase that is cut off takes records and leaves older ones, in the same page too, and the page's markers may be there
//! still. So a page without records is marked first, and erased last: what a cut leaves of a copy says that it is none, until
//! there is nothing left of it. Where no page is without records, since the log was about to turn one, the newest is closed
//! first, as no log closes it; then the oldest is erased.

use embedded_storage_async::nor_flash::NorFlash;

use super::StoreError;
use super::log::{Copy, Logs};
use super::pages::{erase_size, last_word, word_size};

/// What the log marks a full page with.
const FULL: u8 = 0;

/// What is full to the log, and not marked by it.
const CLOSED: u8 = 0x0f;

impl<F: NorFlash> Logs<F> {
    /// Erases a copy.
    ///
    /// # Errors
    /// [`StoreError::Flash`].
    pub(super) async fn erase(&mut self, copy: Copy) -> Result<(), StoreError> {
        *self.places_mut(copy) = None;
        let marked = self.marked(copy).await;
        // What an erase that was cut off has left may read as erased today.
        let again = marked.is_some() || self.is_erased(self.range(copy)).await;
        let marked = match marked {
            Some(page) => page,
            None => self.unused(copy).await?,
        };
        self.mark(marked, FULL).await?; // once more too: the write may have been torn
        // From the oldest on: of what the other one cannot read any more, the newest can be for as long as may be.
        let mut page = self.next(copy, marked);
        while page != marked {
            if again || !self.is_erased(page..page.saturating_add(erase_size::<F>())).await {
                self.erase_page(page).await?;
            }
            page = self.next(copy, page);
        }
        self.erase_page(marked).await
    }

    /// Ends the erase of a page whose records the log has written to the one that is being filled. Without it such a log is not
    /// to be read: for a copy that cannot be written anew, since the other is gone.
    pub(super) async fn finish_turn(&mut self, copy: Copy) -> Result<(), StoreError> {
        if self.is_being_erased(copy).await {
            return Ok(());
        }
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let oldest = self.next(copy, page);
            let erased = self.is_erased(oldest..oldest.saturating_add(erase_size::<F>())).await;
            if self.is_filling(page).await && !erased && self.marker(oldest).await != Some(true) {
                *self.places_mut(copy) = None;
                return self.erase_page(oldest).await;
            }
        }
        Ok(())
    }

    /// The page that says of its copy that it is being erased: full, without a record and never begun, as no log leaves it.
    async fn marked(&mut self, copy: Copy) -> Option<u32> {
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let full = self.marker(last_word::<F>(page)).await == Some(true);
            if full && self.marker(page).await == Some(false) && self.is_unwritten(page).await {
                return Some(page);
            }
        }
        None
    }

    /// Whether a copy is one whose erase was cut off. Whatever it has may be from long before.
    pub(super) async fn is_being_erased(&mut self, copy: Copy) -> bool {
        let mut closed = false;
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            if self.is_filling(page).await {
                return self.marked(copy).await.is_some();
            }
            closed |= self.is_closed(page).await;
        }
        closed || self.marked(copy).await.is_some()
    }

    /// A page without records. Where there is none the one with the oldest is made one: behind those are none that are older.
    async fn unused(&mut self, copy: Copy) -> Result<u32, StoreError> {
        let (mut empty, mut filling, mut closed, mut torn) = (None, None, None, None);
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            if self.is_unwritten(page).await {
                empty = Some(page);
                continue;
            }
            match (self.marker(page).await, self.marker(last_word::<F>(page)).await) {
                (Some(true), Some(true)) => {}
                // Of two the one behind: the other was about to be full.
                (Some(true), Some(false)) if self.is_filling(self.next(copy, page)).await => {}
                (Some(true), Some(false)) => filling = Some(page),
                // Beside it the next may look like it, whose erase was cut off.
                (Some(true), None) if closed.is_some() && !self.is_closed(page).await => {}
                (Some(true), None) => closed = Some(page),
                _ => torn = Some(page),
            }
        }
        let page = match (empty, filling.or(closed).or(torn)) {
            (Some(page), _) => page,
            (None, Some(newest)) => {
                self.mark(newest, CLOSED).await?;
                self.next(copy, newest)
            }
            (None, None) => self.range(copy).start,
        };
        if !self.is_erased(page..page.saturating_add(erase_size::<F>())).await {
            self.erase_page(page).await?;
        }
        Ok(page)
    }

    /// Whether a page was closed as no log closes it.
    async fn is_closed(&mut self, page: u32) -> bool {
        let Some(word) = self.buffer.get_mut(..Self::WORD) else { return false };
        let read = self.flash.read(last_word::<F>(page), word).await;
        read.is_ok() && word.iter().all(|byte| *byte == CLOSED)
    }

    /// Whether there is nothing in a page but for its markers.
    async fn is_unwritten(&mut self, page: u32) -> bool {
        self.is_erased(page.saturating_add(word_size::<F>())..last_word::<F>(page)).await
    }

    /// The page behind this one, round and round.
    fn next(&self, copy: Copy, page: u32) -> u32 {
        let range = self.range(copy);
        let next = page.saturating_add(erase_size::<F>());
        if next < range.end { next } else { range.start }
    }

    /// Marks a page as full. What takes nothing there any more is erased all the same.
    async fn mark(&mut self, page: u32, with: u8) -> Result<(), StoreError> {
        let word = self.buffer.get_mut(..Self::WORD).ok_or(StoreError::Flash)?;
        word.fill(with);
        let written = self.flash.write(last_word::<F>(page), word).await.is_ok();
        // Some parts refuse to write once more what is there.
        let there = match with {
            FULL => self.marker(last_word::<F>(page)).await == Some(true),
            _ => self.is_closed(page).await,
        };
        if written || there { Ok(()) } else { Err(StoreError::Flash) }
    }

    async fn erase_page(&mut self, page: u32) -> Result<(), StoreError> {
        self.flash.erase(page, page.saturating_add(erase_size::<F>())).await.map_err(|_| StoreError::Flash)
    }
}
