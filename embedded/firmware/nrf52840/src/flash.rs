//! The gate's memory: the last 128 KiB of the flash, 32 pages of 4 KiB. The image ends before it (`memory.x`).
//!
//! An erase or a program stops the processor, since the code lies in that flash: 85 ms for a page. There is no data cache:
//! a read is of the medium.

use embassy_nrf::nvmc::{Error, FLASH_SIZE, Nvmc, PAGE_SIZE};
use embedded_storage::nor_flash::{NorFlash as _, ReadNorFlash as _};
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

use crate::watchdog;

/// The gate's part, in bytes.
const CAPACITY: u32 = 128 * 1_024;
/// Where that begins.
const BEGIN: u32 = 0x000e_0000;
const _: () = assert!((BEGIN + CAPACITY) as usize == FLASH_SIZE, "it is the last part");
/// What is erased at a time.
const PAGE: u32 = 4_096;

/// The flash. It exists once.
pub(crate) struct Flash(pub(crate) Nvmc<'static>);

/// Where `len` bytes from `offset` of the gate's part lie in the flash.
fn place(offset: u32, len: usize) -> Result<u32, Error> {
    let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
    end.filter(|end| *end <= CAPACITY).map(|_| BEGIN + offset).ok_or(Error::OutOfBounds)
}

impl ErrorType for Flash {
    type Error = Error;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        watchdog::go_on();
        self.0.read(place(offset, bytes.len())?, bytes)
    }

    fn capacity(&self) -> usize {
        CAPACITY as usize
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE_SIZE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Error> {
        place(from, to.checked_sub(from).ok_or(Error::OutOfBounds)? as usize)?;
        // One at a time, so that the processor stands for one at a time.
        for page in (from..to).step_by(PAGE_SIZE) {
            self.0.erase(BEGIN + page, BEGIN + page + PAGE)?;
            watchdog::go_on();
        }
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(place(offset, bytes.len())?, bytes).map(|()| watchdog::go_on())
    }
}
