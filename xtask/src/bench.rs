//! `cargo xtask bench`: what ships, in bytes. The figures are the same on every machine with the same toolchain.

use crate::gate::Image;
use crate::{page, setup};
use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use object::{Object, ObjectSegment};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Where the record is kept.
const RECORD: &str = "tests/BENCH.md";
const BEGIN: &str = "<!-- cargo xtask bench -->";
const END: &str = "<!-- /cargo xtask bench -->";

/// Where RAM begins on every Cortex-M (Armv7-M Architecture Reference Manual, B3.1).
const RAM: u64 = 0x2000_0000;

/// Bytes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bytes {
    /// What lies in flash: code, constants, and the initial values of variables.
    flash: u64,
    /// What is taken of RAM for ever: variables with an initial value and without. The stack is not in it.
    ram: u64,
}

/// Measures everything, prints it and writes it into the record.
pub fn run(root: &Path) -> Result<()> {
    setup::ensure(setup::FIRMWARE)?;
    let firmware = bytes(&Image::Gate.build(root)?)?;
    let module = page::module(root)?.join("fencegate_bg.wasm");
    let module = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&module)?;
    let gzip = gzip.finish()?.len();
    let table = format!(
        "| what | bytes |\n|---|---|\n| firmware mps2, flash | {} |\n| firmware mps2, static RAM | {} |\n\
         | module `.wasm`, raw | {} |\n| module `.wasm`, gzip -9 | {gzip} |\n",
        firmware.flash,
        firmware.ram,
        module.len(),
    );
    print!("{table}");
    let file = root.join(RECORD);
    let record = fs::read_to_string(&file).with_context(|| format!("reading {RECORD}"))?;
    let updated = between(&record, &format!("\n{table}")).with_context(|| format!("{RECORD} has lost its marks"))?;
    fs::write(&file, updated).with_context(|| format!("writing {RECORD}"))
}

/// The record with `table` between the marks.
fn between(record: &str, table: &str) -> Option<String> {
    let (before, rest) = record.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

/// The bytes of an ELF file's image, by its loaded segments.
fn bytes(elf: &Path) -> Result<Bytes> {
    let data = fs::read(elf).with_context(|| format!("reading {}", elf.display()))?;
    let file = object::File::parse(&*data)?;
    let flash = file.segments().map(|segment| segment.file_range().1).sum();
    let ram = file.segments().filter(|segment| segment.address() >= RAM).map(|segment| segment.size()).sum();
    Ok(Bytes { flash, ram })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_written_anew() {
        let record = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        assert_eq!(between(&record, "\nnew\n").unwrap(), format!("before\n{BEGIN}\nnew\n{END}\nafter\n"));
        assert_eq!(between("no marks", "new"), None);
    }
}
