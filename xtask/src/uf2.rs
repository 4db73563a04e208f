//! UF2: an image that a board's boot loader takes as a file dragged onto its drive. Blocks of 512 bytes, each with the
//! address of its 256 (the format's specification is at <https://github.com/microsoft/uf2>).

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSegment};
use std::collections::BTreeMap;

/// The chip's family, which its boot loader looks for.
pub const RP2040: u32 = 0xe48b_ff56;

/// Bytes of a block that are the image's.
const PAYLOAD: u32 = 256;
const MAGIC: [u32; 3] = [0x0a32_4655, 0x9e5d_5157, 0x0ab1_6f30];
/// Flag: the last word of the head is the chip's family.
const FAMILY: u32 = 0x2000;
/// Bytes between a block's payload and its last word.
const PADDING: usize = 476 - PAYLOAD as usize;

/// The UF2 image of an ELF file.
pub fn of_elf(elf: &[u8], family: u32) -> Result<Vec<u8>> {
    let file = object::read::elf::ElfFile32::<object::Endianness>::parse(elf).context("reading an image")?;
    let mut pages: BTreeMap<u32, [u8; PAYLOAD as usize]> = BTreeMap::new();
    for segment in file.segments() {
        // Where it lies in flash, and not where it is copied to.
        let at = segment.elf_program_header().p_paddr.get(file.endian());
        for (address, byte) in (u64::from(at)..).zip(segment.data()?) {
            let address = u32::try_from(address)?;
            let page = pages.entry(address / PAYLOAD * PAYLOAD).or_insert([0; PAYLOAD as usize]);
            page[(address % PAYLOAD) as usize] = *byte;
        }
    }
    ensure!(!pages.is_empty(), "the image is empty");
    let count = u32::try_from(pages.len())?;
    let mut blocks = Vec::new();
    for (number, (address, page)) in (0..).zip(pages) {
        let head = [MAGIC[0], MAGIC[1], FAMILY, address, PAYLOAD, number, count, family];
        blocks.extend(head.iter().flat_map(|word| word.to_le_bytes()));
        blocks.extend(page);
        blocks.extend([0; PADDING]);
        blocks.extend(MAGIC[2].to_le_bytes());
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file for Arm with one segment: `bytes`, loaded at `at` and run elsewhere.
    fn elf(at: u32, bytes: &[u8]) -> Vec<u8> {
        let mut elf = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let head: [u16; 18] = [2, 40, 1, 0, 0, 0, 52, 0, 0, 0, 0, 0, 52, 32, 1, 40, 0, 0];
        elf.extend(head.iter().flat_map(|half| half.to_le_bytes()));
        let len = u32::try_from(bytes.len()).unwrap();
        let segment = [1, 84, 0x2000_0000, at, len, len, 5, 4];
        elf.extend(segment.iter().flat_map(|word: &u32| word.to_le_bytes()));
        elf.extend(bytes);
        elf
    }

    fn word(block: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(block[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn each_block_has_the_fields_of_the_specification() {
        let bytes: Vec<u8> = (0..300_u32).map(|n| n.to_le_bytes()[0]).collect();
        let image = of_elf(&elf(0x1000_0080, &bytes), RP2040).unwrap();
        let blocks: Vec<&[u8]> = image.chunks(512).collect();
        assert_eq!((image.len(), blocks.len()), (1_024, 2), "128 bytes of the first page, 172 of the second");
        for (n, block) in blocks.iter().enumerate() {
            let n32 = u32::try_from(n).unwrap();
            assert_eq!((word(block, 0), word(block, 4), word(block, 508)), (0x0a32_4655, 0x9e5d_5157, 0x0ab1_6f30));
            assert_eq!(word(block, 8), 0x2000, "only: the last word of the head is the family");
            assert_eq!(word(block, 12), 0x1000_0000 + 256 * n32);
            assert_eq!(
                (word(block, 16), word(block, 20), word(block, 24), word(block, 28)),
                (256, n32, 2, 0xe48b_ff56)
            );
            assert_eq!(block[288..508], [0; 220]);
        }
        assert_eq!(blocks[0][32..160], [0; 128], "what no segment fills is 0");
        assert_eq!(blocks[0][160..288], bytes[..128]);
        assert_eq!(blocks[1][32..204], bytes[128..]);
        assert_eq!(blocks[1][204..288], [0; 84]);
    }

    #[test]
    fn what_is_no_image_is_an_error() {
        assert!(of_elf(b"hello", RP2040).is_err());
        assert!(of_elf(&elf(0x1000_0000, b""), RP2040).unwrap_err().to_string().contains("empty"));
    }
}
