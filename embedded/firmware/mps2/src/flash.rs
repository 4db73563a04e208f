//! A NOR flash in a file of the host, through semihosting.
//!
//! | | |
//! |---|---|
//! | capacity | 128 KiB, 32 pages of 4 KiB |
//! | read | any byte |
//! | program | words of 4 bytes, in any order and again; it only clears bits |
//! | erase | a page; all bits set |
//!
//! Each call reaches the file before it returns, in one host write for each 256 bytes, so it survives a SIGKILL of the
//! emulator (not a power cut of the host: nothing syncs). Such a kill tears a call between host writes, and never
//! a word. The calls never yield to other tasks: like many a real flash, this one keeps its processor busy.
//!
//! The file is opened anew for each call: what the program does is what the file is at that moment, and a reset in
//! between leaves no handle behind in the emulator, which never closes any.

use core::ffi::CStr;

use embedded_storage_async::nor_flash::{ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash};
use semihosting::{
    experimental::env,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
};

const CAPACITY: usize = 128 * 1024;
const PAGE: usize = 4096;
const WORD: usize = 4;
/// Bytes in one host write.
const CHUNK: usize = 256;
/// Longest file name, with its ending zero and room for [`UNFINISHED`].
const NAME: usize = 256;
/// Longest command line: the program's name and the file's.
const COMMAND_LINE: usize = 2 * NAME;
/// What a file's name ends in while it is being made.
const UNFINISHED: &[u8] = b".new";

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// The range does not begin and end where words or pages do.
    NotAligned,
    /// The range does not lie within the capacity.
    OutOfBounds,
    /// The range does not lie within the file, which is shorter than the capacity.
    Missing,
    /// The emulator was given no file name, or one that is too long.
    NoName,
    /// The host refused.
    Host(ErrorKind),
}

impl NorFlashError for Error {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::NotAligned => NorFlashErrorKind::NotAligned,
            Self::OutOfBounds => NorFlashErrorKind::OutOfBounds,
            Self::Missing | Self::NoName | Self::Host(_) => NorFlashErrorKind::Other,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Missing,
            kind => Self::Host(kind),
        }
    }
}

/// The flash. It exists once.
pub(crate) struct Flash {
    /// Not in here, since it is long, and what a task is given is moved a few times.
    name: &'static Result<Name, Error>,
}

/// Names the file and makes it, all erased, if it does not exist. Called once, by `Board::take`.
///
/// Whatever goes wrong here goes wrong again, as an error, in every later call.
pub(crate) fn take() -> Flash {
    let Some(name) = cortex_m::singleton!(: Result<Name, Error> = Err(Error::NoName)) else {
        return Flash { name: &Err(Error::NoName) };
    };
    *name = Name::from_arguments();
    if let Ok(name) = name
        && let Err(Error::Host(ErrorKind::NotFound)) = name.open()
    {
        // The calls will tell.
        let _ = name.create();
    }
    Flash { name }
}

impl Flash {
    /// Opens the file at `offset`, if `len` bytes from there are within the capacity and the file.
    fn open(&self, offset: u32, len: usize, unit: usize) -> Result<File, Error> {
        let start = offset as usize;
        if !start.is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(Error::NotAligned);
        }
        let end = start.checked_add(len).filter(|&end| end <= CAPACITY).ok_or(Error::OutOfBounds)?;
        let mut file = self.name.as_ref().map_err(|&error| error)?.open()?;
        // Neither does a read invent what is missing, nor does a write lengthen the file.
        if file.metadata()?.len() < end as u64 {
            return Err(Error::Missing);
        }
        file.seek(SeekFrom::Start(u64::from(offset)))?;
        Ok(file)
    }
}

impl ErrorType for Flash {
    type Error = Error;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        self.open(offset, bytes.len(), Self::READ_SIZE)?.read_exact(bytes)?;
        Ok(())
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = WORD;
    const ERASE_SIZE: usize = PAGE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Error> {
        let len = to.checked_sub(from).ok_or(Error::OutOfBounds)? as usize;
        let mut file = self.open(from, len, PAGE)?;
        write_erased(&mut file, len)?;
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        let mut file = self.open(offset, bytes.len(), WORD)?;
        let mut position = u64::from(offset);
        let mut cells = [0; CHUNK];
        for chunk in bytes.chunks(CHUNK) {
            let cells = &mut cells[..chunk.len()];
            file.read_exact(cells)?;
            for (cell, byte) in cells.iter_mut().zip(chunk) {
                *cell &= byte;
            }
            file.seek(SeekFrom::Start(position))?;
            file.write_all(cells)?;
            position += chunk.len() as u64;
        }
        Ok(())
    }
}

/// Writes `len` erased bytes, a multiple of [`CHUNK`].
fn write_erased(file: &mut File, len: usize) -> io::Result<()> {
    for _ in 0..len / CHUNK {
        file.write_all(&[0xFF; CHUNK])?;
    }
    Ok(())
}

/// A host file's name, ended by a zero.
struct Name([u8; NAME]);

impl Name {
    /// The emulator's first argument after the program's own name. Blanks end it unless it is in quotes.
    fn from_arguments() -> Result<Self, Error> {
        let arguments = env::args::<COMMAND_LINE>()?;
        let name = (&arguments).nth(1).and_then(Result::ok).ok_or(Error::NoName)?;
        Self::new(&[name.as_bytes()])
    }

    /// Joins the parts.
    fn new(parts: &[&[u8]]) -> Result<Self, Error> {
        let mut name = [0; NAME];
        let mut bytes = parts.iter().flat_map(|part| part.iter());
        for slot in &mut name[..NAME - 1] {
            let Some(&byte) = bytes.next() else { break };
            *slot = byte;
        }
        if bytes.next().is_some() || name[0] == 0 {
            return Err(Error::NoName);
        }
        Ok(Self(name))
    }

    fn as_c_str(&self) -> Result<&CStr, Error> {
        CStr::from_bytes_until_nul(&self.0).map_err(|_| Error::NoName)
    }

    /// Opens the file as it is.
    fn open(&self) -> Result<File, Error> {
        Ok(OpenOptions::new().read(true).write(true).open(self.as_c_str()?)?)
    }

    /// Makes the file, all erased: under another name first, so that a kill half-way does not leave a short one.
    fn create(&self) -> Result<(), Error> {
        let unfinished = Self::new(&[self.as_c_str()?.to_bytes(), UNFINISHED])?;
        let unfinished = unfinished.as_c_str()?;
        write_erased(&mut File::create(unfinished)?, CAPACITY)?;
        fs::rename(unfinished, self.as_c_str()?)?;
        Ok(())
    }
}
