//! The gate's memory: the last 128 KiB of the flash, 32 sectors of 4 KiB. The image ends before it (`memory.x`).
//!
//! An erase or a program stops the processor with interrupts off: the code itself lies in that flash. A sector's erase
//! takes 45 ms, at most 400. What is driven meanwhile ends by itself ([`crate::outputs`]); bytes that arrive are lost once
//! the UART's 32 are full, and their hosts ask again.
//!
//! Reads go past the cache, through the flash's uncached alias. The driver flushes the cache after each write, but what was
//! cached since then is what was read before, and a store that reads back must see the medium.

use embassy_rp::Peri;
use embassy_rp::flash::{self, Blocking, ERASE_SIZE, Error};
use embassy_rp::peripherals::FLASH;
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

use crate::watchdog;

/// The whole flash, in bytes.
const WHOLE: usize = 2 * 1_024 * 1_024;
/// The gate's part of it.
const CAPACITY: usize = 128 * 1_024;
/// Where that begins.
const BEGIN: u32 = 0x1e_0000;
const _: () = assert!(BEGIN as usize + CAPACITY == WHOLE, "it is the last part");
/// What is erased at a time.
const SECTOR: u32 = 4_096;
const _: () = assert!(SECTOR as usize == ERASE_SIZE);
/// The flash in the address space, neither cached nor allocated (RP2040 data sheet, 2.6.3.1).
const UNCACHED: usize = 0x1300_0000;
/// Bytes in a word of the bus.
const BUS: usize = 4;

/// The flash. It exists once. Its words are single bytes: the gate's store needs [`fencegate_node::Words`] around it.
pub(crate) struct Flash(flash::Flash<'static, FLASH, Blocking, WHOLE>);

impl Flash {
    /// Makes it.
    pub(crate) fn new(flash: Peri<'static, FLASH>) -> Self {
        Self(flash::Flash::new_blocking(flash))
    }
}

/// Whether `len` bytes from `offset` lie within the gate's part.
fn within(offset: u32, len: usize) -> Result<(), Error> {
    let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(len));
    end.filter(|end| *end <= CAPACITY).map(drop).ok_or(Error::OutOfBounds)
}

/// The word of the bus that holds the byte at `offset` of the gate's part, which has such a byte.
fn word(offset: usize) -> [u8; BUS] {
    let at = (UNCACHED + BEGIN as usize + offset) / BUS * BUS;
    // SAFETY: the caller has checked that this lies in the flash, which is always mapped here, is readable for everybody and
    // is never borrowed as Rust memory. Writes and erases block, so none is under way.
    unsafe { (at as *const u32).read_volatile() }.to_le_bytes()
}

impl ErrorType for Flash {
    type Error = Error;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        within(offset, bytes.len())?;
        let mut at = offset as usize;
        // Byte by byte up to the first whole word, a word at a time, and byte by byte again: a boot reads a few times all
        // that there is.
        let (head, rest) = bytes.split_at_mut((at.next_multiple_of(BUS) - at).min(bytes.len()));
        let (words, tail) = rest.as_chunks_mut::<BUS>();
        for byte in head {
            *byte = word(at)[at % BUS];
            at += 1;
        }
        for bytes in words {
            *bytes = word(at);
            at += BUS;
        }
        for byte in tail {
            *byte = word(at)[at % BUS];
            at += 1;
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = flash::WRITE_SIZE;
    const ERASE_SIZE: usize = ERASE_SIZE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Error> {
        within(from, to.checked_sub(from).ok_or(Error::OutOfBounds)? as usize)?;
        if !(from as usize).is_multiple_of(ERASE_SIZE) || !(to as usize).is_multiple_of(ERASE_SIZE) {
            return Err(Error::Unaligned);
        }
        // One at a time, so that interrupts are off for one at a time.
        for sector in (from..to).step_by(ERASE_SIZE) {
            self.0.blocking_erase(BEGIN + sector, BEGIN + sector + SECTOR)?;
            watchdog::go_on();
        }
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        within(offset, bytes.len())?;
        self.0.blocking_write(BEGIN + offset, bytes)?;
        watchdog::go_on();
        Ok(())
    }
}
