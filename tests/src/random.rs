//! Random numbers from seeds that are printed.

use std::time::{SystemTime, UNIX_EPOCH};

/// `SplitMix64` (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub const fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// An index below `n`.
    ///
    /// # Panics
    /// Where `n` is zero.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).expect("below a usize")
    }

    /// Whether something happens that happens once in `n` times.
    pub const fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// So many random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()[0]).take(n).collect()
    }
}

/// Whether the full counts are asked for: `FENCEGATE_SOAK`.
pub fn is_soak() -> bool {
    std::env::var_os("FENCEGATE_SOAK").is_some()
}

/// The seed that was asked for with `FENCEGATE_SEED`, or one that never comes again; printed with how to repeat it.
///
/// # Panics
/// Where `FENCEGATE_SEED` is no number.
pub fn seed(test: &str) -> u64 {
    let seed = std::env::var("FENCEGATE_SEED").map_or_else(
        |_| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::from(since.subsec_nanos())),
        |seed| seed.parse().expect("FENCEGATE_SEED is a number"),
    );
    println!("seed {seed}; again: FENCEGATE_SEED={seed} cargo test -p fencegate-tests --test {test} -- --nocapture");
    seed
}
