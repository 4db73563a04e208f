//! How a copy is erased, to be written anew from the other.
//!
//! An erase that is cut off takes records and leaves older ones, in the same page too, and the page's markers may be there
//! still. So a page without records is marked first, and erased last: what a cut leaves of a copy says that it is none, until
//! there is nothing left of it.

use embedded_storage_async::nor_flash::NorFlash;

use super::StoreError;
use super::log::{Copy, Logs};
use super::pages::{erase_size, last_word, word_size};

impl<F: NorFlash> Logs<F> {
    /// Erases a copy.
    ///
    /// # Errors
    /// [`StoreError::Flash`].
    pub(super) async fn erase(&mut self, copy: Copy) -> Result<(), StoreError> {
        *self.places_mut(copy) = None;
        let marked = self.marked_page(copy).await?;
        for page in self.range(copy).step_by(F::ERASE_SIZE).filter(|page| *page != marked) {
            self.erase_page(page).await?;
        }
        self.erase_page(marked).await
    }

    /// The page that says of its copy that it is being erased: one that is full and was never begun, as no log leaves it.
    async fn marked_page(&mut self, copy: Copy) -> Result<u32, StoreError> {
        let (mut empty, mut newest) = (None, None);
        for page in self.range(copy).step_by(F::ERASE_SIZE) {
            let last = last_word::<F>(page);
            if self.is_erased(page.saturating_add(word_size::<F>())..last).await {
                empty = Some(page);
                if self.marker(page).await == Some(false) && !self.is_open(page).await {
                    // It was marked before, by a write that may have been torn.
                    return self.mark(page).await.map(|()| page);
                }
            } else if self.is_open(page).await && !self.is_open(self.next(copy, page)).await {
                newest = Some(page);
            }
        }
        // Where none is empty, what comes after the newest is the oldest, and behind its records there are none.
        let page = match (empty, newest) {
            (Some(page), _) => page,
            (None, Some(page)) => self.next(copy, page),
            (None, None) => self.range(copy).start,
        };
        self.erase_page(page).await?;
        self.mark(page).await.map(|()| page)
    }

    /// The page behind this one, round and round.
    fn next(&self, copy: Copy, page: u32) -> u32 {
        let range = self.range(copy);
        let next = page.saturating_add(erase_size::<F>());
        if next < range.end { next } else { range.start }
    }

    /// Marks a page as the log marks a full one.
    async fn mark(&mut self, page: u32) -> Result<(), StoreError> {
        let last = last_word::<F>(page);
        let word = self.buffer.get_mut(..Self::WORD).ok_or(StoreError::Flash)?;
        word.fill(0);
        self.flash.write(last, word).await.map_err(|_| StoreError::Flash)?;
        if self.marker(last).await == Some(true) { Ok(()) } else { Err(StoreError::Flash) }
    }

    async fn erase_page(&mut self, page: u32) -> Result<(), StoreError> {
        self.flash.erase(page, page.saturating_add(erase_size::<F>())).await.map_err(|_| StoreError::Flash)
    }
}
