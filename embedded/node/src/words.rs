//! Words for a flash that has none.

use embedded_storage_async::nor_flash::{ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash};

/// A flash that is programmed in bytes (the RP2040's driver), in words of `WORD` bytes.
///
/// A log of records tells a torn record from a whole one by the words that it is made of. In words of one byte
/// acknowledged records were lost after power cuts (`sequential-storage`, issue 136), and none was in words of four; so
/// [`Store`](crate::Store) takes no flash with shorter ones. What lies between is only where records begin: a write is
/// handed on whole, in one call, and one that does not begin and end with a word is refused.
#[derive(Clone, Copy, Debug)]
pub struct Words<F, const WORD: usize = 4>(pub F);

/// Why a [`Words`] did not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordsError<E> {
    /// The flash failed.
    Flash(E),
    /// A write does not begin and end with a word.
    NotAligned,
}

impl<E: NorFlashError> NorFlashError for WordsError<E> {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::Flash(error) => error.kind(),
            Self::NotAligned => NorFlashErrorKind::NotAligned,
        }
    }
}

impl<F: ErrorType, const WORD: usize> ErrorType for Words<F, WORD> {
    type Error = WordsError<F::Error>;
}

impl<F: ReadNorFlash, const WORD: usize> ReadNorFlash for Words<F, WORD> {
    const READ_SIZE: usize = F::READ_SIZE;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.0.read(offset, bytes).await.map_err(WordsError::Flash)
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl<F: NorFlash, const WORD: usize> NorFlash for Words<F, WORD> {
    const WRITE_SIZE: usize = {
        assert!(WORD.is_multiple_of(F::WRITE_SIZE), "a word is made of whole words of the flash");
        assert!(F::ERASE_SIZE.is_multiple_of(WORD), "a page is made of whole words");
        WORD
    };
    const ERASE_SIZE: usize = F::ERASE_SIZE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        self.0.erase(from, to).await.map_err(WordsError::Flash)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        let aligned = |at: usize| at.is_multiple_of(Self::WRITE_SIZE);
        if !usize::try_from(offset).is_ok_and(aligned) || !aligned(bytes.len()) {
            return Err(WordsError::NotAligned);
        }
        self.0.write(offset, bytes).await.map_err(WordsError::Flash)
    }
}
