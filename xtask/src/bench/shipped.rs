//! What ships, in bytes.

use super::table;
use crate::board::Board;
use crate::gate::Image;
use crate::{page, setup};
use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use object::{Object, ObjectSegment};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Where RAM begins on every Cortex-M (Armv7-M Architecture Reference Manual, B3.1).
const RAM: u64 = 0x2000_0000;

/// Bytes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes {
    /// What lies in flash: code, constants, and the initial values of variables.
    pub(super) flash: u64,
    /// What is taken of RAM for ever: variables with an initial value and without. The stack is not in it.
    pub(super) ram: u64,
}

/// The firmware and the module.
pub(super) fn measure(root: &Path) -> Result<String> {
    setup::ensure(setup::FIRMWARE)?;
    let [mps2, rp2040] = Board::ALL.map(|board| bytes(&Image::Gate.build(root, board)?));
    let (mps2, rp2040) = (mps2?, rp2040?);
    let module = page::module(root)?.join("fencegate_bg.wasm");
    let module = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&module)?;
    let gzip = gzip.finish()?.len();
    let rows = [
        ("firmware mps2, flash", mps2.flash.to_string()),
        ("firmware mps2, static RAM", mps2.ram.to_string()),
        ("firmware rp2040, flash", rp2040.flash.to_string()),
        ("firmware rp2040, static RAM", rp2040.ram.to_string()),
        ("module `.wasm`, raw", module.len().to_string()),
        ("module `.wasm`, gzip -9", gzip.to_string()),
    ];
    Ok(table(["what", "bytes"], rows.map(|(what, bytes)| [what.to_owned(), bytes])))
}

/// The bytes of an ELF file's image, by its loaded segments.
pub(super) fn bytes(elf: &Path) -> Result<Bytes> {
    let data = fs::read(elf).with_context(|| format!("reading {}", elf.display()))?;
    let file = object::File::parse(&*data)?;
    let flash = file.segments().map(|segment| segment.file_range().1).sum();
    let ram = file.segments().filter(|segment| segment.address() >= RAM).map(|segment| segment.size()).sum();
    Ok(Bytes { flash, ram })
}
