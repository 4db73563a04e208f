//! A NOR flash whose power fails at any byte.

use crate::words::Words;
use core::cmp::Ordering;
use core::ops::Range;
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash};

/// `SplitMix64` (Steele, Lea and Flood, 2014).
#[derive(Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    /// A byte of which each bit is set `n` times in 256.
    fn bits(&mut self, n: usize) -> u8 {
        (0..8).fold(0, |byte, bit| byte | u8::from(self.below(256) < n) << bit)
    }
}

/// The power that it takes to write a byte. To erase one takes 1.
pub(super) const BYTE: usize = 64;

/// The bits of a flash, and its power.
#[derive(Clone)]
pub(super) struct Chip {
    pub(super) bytes: Vec<u8>,
    /// Bits that are neither programmed nor erased: each reads either way, at each boot anew, until it is erased, or
    /// programmed to 0. To program it to 1 leaves it what it is.
    pub(super) weak: Vec<u8>,
    pub(super) any_weak: bool,
    /// How weak bits read in this boot.
    pub(super) noise: u64,
    /// How much power there is before it fails: [`BYTE`] for each that is written, 1 for each that is erased.
    pub(super) power: usize,
    /// How often each page was erased.
    pub(super) erases: Vec<u32>,
    pub(super) reads: usize,
    /// How much power there was when each erase began.
    pub(super) erasing: Vec<usize>,
    /// Where the power could fail: how much of it there was before each byte of each write and each erase.
    pub(super) places: Option<Vec<usize>>,
    /// Weak bits read anew at each read, and not at each boot alone.
    pub(super) fickle: bool,
    /// Where it takes nothing any more.
    pub(super) worn: Range<usize>,
    /// Whether the power has failed: nothing more happens then. With `None` the processor goes on for as long as it wants to
    /// write, on a supply that is too low for the flash: each further write and erase is torn at its beginning.
    pub(super) dead: Option<bool>,
}

impl Chip {
    /// A chip as it left the factory.
    pub(super) fn erased<F: Part>() -> Self {
        Self::with_pages::<F>(F::PAGES)
    }

    pub(super) fn with_pages<F: Part>(pages: usize) -> Self {
        let len = F::ERASE_SIZE * pages;
        Self {
            bytes: vec![0xff; len],
            weak: vec![0; len],
            any_weak: false,
            noise: 0,
            power: usize::MAX,
            erases: vec![0; pages],
            reads: 0,
            erasing: vec![],
            places: None,
            fickle: false,
            worn: 0..0,
            dead: Some(false),
        }
    }

    /// Spends the power that `bytes` take, at `each` of them; what does not find enough finds how many bytes it was enough for.
    fn spend(&mut self, bytes: usize, each: usize) -> Result<(), usize> {
        let power = self.power;
        self.places.iter_mut().for_each(|places| places.extend((0..bytes).map(|done| power - done * each)));
        self.power = power.saturating_sub(bytes * each);
        if power >= bytes * each {
            return Ok(());
        }
        self.dead = self.dead.map(|_| true);
        Err(power / each)
    }

    /// Whether anything that is written there has any effect.
    fn takes(&self, at: usize) -> bool {
        !self.worn.contains(&at) && self.dead != Some(true)
    }

    fn cut(&self, at: usize) -> Random {
        Random(self.noise ^ (at as u64) << 20 ^ 0x5bd1_e995)
    }

    /// The power fails while `word` is programmed, after `done` of its bytes: those are done and those behind it not yet
    /// begun; or, where all are programmed together, each bit of each is done, begun or not yet begun.
    fn tear(&mut self, at: usize, word: &[u8], done: usize) {
        let mut random = self.cut(at);
        self.any_weak = true;
        let together = random.below(2) == 0;
        for (n, byte) in word.iter().enumerate() {
            let at = at + n;
            let change = self.bytes[at] & !byte;
            let (begun, done) = match n.cmp(&done) {
                Ordering::Less if !together => (0xff, 0xff),
                Ordering::Greater if !together => (0, 0),
                _ => (random.bits(160), random.bits(96)),
            };
            self.bytes[at] &= !(change & begun & done);
            self.weak[at] |= change & begun & !done;
        }
    }

    /// The power fails while a page is erased, after as long as `done` of its bytes take: its bits rise together, or one after
    /// the other, or all have risen but a few, which may read as risen too.
    fn tear_page(&mut self, page: Range<usize>, done: usize) {
        let mut random = self.cut(page.start + done);
        self.any_weak = true;
        let (together, few) = (random.below(2) == 0, random.below(4) == 0);
        let len = page.len();
        for (n, at) in page.enumerate() {
            let zeros = !self.bytes[at] | self.weak[at];
            let reached = |done: usize| if n < done { 0xff } else { 0 };
            let (risen, settled) = if few {
                (0xff, if random.below(1_000) == 0 { random.bits(192) } else { 0xff })
            } else if together {
                (random.bits(done * 256 / len), random.bits(done * 128 / len))
            } else {
                (reached(done), reached(done.saturating_sub(len / 16)))
            };
            self.bytes[at] |= zeros & risen;
            self.weak[at] = zeros & risen & !settled;
        }
    }
}

/// What a power cut looks like to whoever is not there any more.
#[derive(Debug)]
pub(super) struct Dead;

impl NorFlashError for Dead {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

/// A chip with words of `WORD` bytes, which reads `READ` at a time, and pages of 4 KiB.
pub(super) struct Nor<const WORD: usize, const READ: usize = 1>(Chip);

impl<const WORD: usize, const READ: usize> Nor<WORD, READ> {
    pub(super) fn chip(&self) -> &Chip {
        &self.0
    }
}

impl<const WORD: usize, const READ: usize> ErrorType for Nor<WORD, READ> {
    type Error = Dead;
}

impl<const WORD: usize, const READ: usize> ReadNorFlash for Nor<WORD, READ> {
    const READ_SIZE: usize = READ;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Dead> {
        let chip = &mut self.0;
        let start = offset as usize;
        assert!(start.is_multiple_of(READ) && bytes.len().is_multiple_of(READ), "whole reads");
        bytes.copy_from_slice(chip.bytes.get(start..start + bytes.len()).ok_or(Dead)?);
        chip.reads += 1;
        if chip.fickle {
            chip.noise = chip.noise.wrapping_add(0x1234_5678_9abc);
        }
        if chip.any_weak {
            for (at, byte) in (start..).zip(bytes) {
                if chip.weak[at] != 0 {
                    *byte ^= chip.weak[at] & Random(chip.noise ^ at as u64).next().to_le_bytes()[0];
                }
            }
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.erases.len() * Self::ERASE_SIZE
    }
}

impl<const WORD: usize, const READ: usize> NorFlash for Nor<WORD, READ> {
    const WRITE_SIZE: usize = WORD;
    const ERASE_SIZE: usize = 4096;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Dead> {
        let chip = &mut self.0;
        let (from, to) = (from as usize, to as usize);
        assert!(from.is_multiple_of(4096) && to == from + 4096, "a page");
        let _ = chip.bytes.get(to - 1).filter(|_| chip.takes(from)).ok_or(Dead)?;
        chip.erasing.push(chip.power);
        if let Err(done) = chip.spend(4096, 1) {
            chip.tear_page(from..to, done);
            return Err(Dead);
        }
        chip.bytes[from..to].fill(0xff);
        chip.weak[from..to].fill(0);
        chip.erases[from / 4096] += 1;
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Dead> {
        let chip = &mut self.0;
        let start = offset as usize;
        assert!(start.is_multiple_of(WORD) && bytes.len().is_multiple_of(WORD), "whole words");
        let _ = chip.bytes.get(start..start + bytes.len()).filter(|_| chip.takes(start)).ok_or(Dead)?;
        for (at, word) in (start..).step_by(WORD).zip(bytes.chunks(WORD)) {
            if let Err(done) = chip.spend(WORD, BYTE) {
                chip.tear(at, word, done);
                return Err(Dead);
            }
            for (at, byte) in (at..).zip(word) {
                chip.bytes[at] &= byte;
                chip.weak[at] &= byte;
            }
        }
        Ok(())
    }
}

/// A flash to test on.
pub(super) trait Part: NorFlash + From<Chip> + Into<Chip> {
    /// How many pages it has unless more are asked for.
    const PAGES: usize;
    /// Whether its words are an adapter's.
    const ADAPTED: bool = false;

    /// What it is called in what a run has counted.
    fn name() -> String {
        if Self::ADAPTED { "bytes behind the adapter".to_owned() } else { format!("words of {}", Self::WRITE_SIZE) }
    }
}

impl<const WORD: usize, const READ: usize> From<Chip> for Nor<WORD, READ> {
    fn from(chip: Chip) -> Self {
        Self(chip)
    }
}

impl<const WORD: usize, const READ: usize> From<Nor<WORD, READ>> for Chip {
    fn from(nor: Nor<WORD, READ>) -> Self {
        nor.0
    }
}

impl<const WORD: usize, const READ: usize> Part for Nor<WORD, READ> {
    const PAGES: usize = if WORD > 8 || READ > 8 { 6 } else { 4 };
}

impl From<Chip> for Words<Nor<1>> {
    fn from(chip: Chip) -> Self {
        Self(Nor(chip))
    }
}

impl From<Words<Nor<1>>> for Chip {
    fn from(words: Words<Nor<1>>) -> Self {
        words.0.0
    }
}

impl Part for Words<Nor<1>> {
    const PAGES: usize = 4;
    const ADAPTED: bool = true;
}
