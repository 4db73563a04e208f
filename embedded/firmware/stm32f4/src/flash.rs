//! The gate's memory: sectors 1 to 4 of the flash, as four pages of 16 KiB. The image lies around them (`memory.x`).
//!
//! Sector 4 has 64 KiB; its first 16 are the fourth page, and the rest is never used (`README.md`). An erase or a program
//! stops the processor, since the code lies in that flash. The data cache is off: a read is of the medium (`main.rs`).

use embassy_stm32::flash::{Blocking, Error, Flash as Device};
use embassy_stm32::pac::FLASH;
use embassy_stm32::pac::flash::vals::Psize;
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

use crate::watchdog;

/// Where sector 1 begins in the flash; and how large 1, 2 and 3 are.
const PAGE: u32 = 16 * 1_024;
/// The gate's part, in bytes.
const CAPACITY: u32 = 4 * PAGE;

/// The flash. It exists once.
pub(crate) struct Flash(pub(crate) Device<'static, Blocking>);

/// Where `len` bytes from `offset` of the gate's part lie in the flash.
fn place(offset: u32, len: usize) -> Result<u32, Error> {
    let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
    end.filter(|end| *end <= CAPACITY).map(|_| PAGE + offset).ok_or(Error::Size)
}

impl ErrorType for Flash {
    type Error = Error;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.blocking_read(place(offset, bytes.len())?, bytes)
    }

    fn capacity(&self) -> usize {
        CAPACITY as usize
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE as usize;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Error> {
        let begin = place(from, to.checked_sub(from).ok_or(Error::Size)? as usize)?;
        // One at a time, so that the processor stands for one at a time.
        for page in (begin..PAGE + to).step_by(PAGE as usize) {
            // The driver erases as many bits at a time as it finds set, leaves eight (twice as long), and locks the register.
            if FLASH.cr().read().lock() {
                FLASH.keyr().write_value(0x4567_0123);
                FLASH.keyr().write_value(0xcdef_89ab);
            }
            FLASH.cr().modify(|w| w.set_psize(Psize::PSIZE32));
            // Sector 4 is four times as large.
            self.0.blocking_erase(page, if page == CAPACITY { 2 * CAPACITY } else { page + PAGE })?;
            watchdog::go_on();
        }
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        self.0.blocking_write(place(offset, bytes.len())?, bytes).map(|()| watchdog::go_on())
    }
}
