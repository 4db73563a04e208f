//! Chance: seeds that stay the same, one that never comes again, and how to have the same run again.

use std::time::{SystemTime, UNIX_EPOCH};

/// `SplitMix64` (Steele, Lea and Flood, 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Whether something happens that happens once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()].clone()
    }
}

/// Whether the full counts are asked for.
pub(crate) fn soak() -> bool {
    std::env::var_os("FENCEGATE_SOAK").is_some()
}

/// The seeds to run: the one that was asked for, or so many that stay the same and one that never comes again.
pub(crate) fn seeds(many: u64) -> Vec<u64> {
    if let Ok(seed) = std::env::var("FENCEGATE_SEED") {
        return vec![seed.parse().expect("FENCEGATE_SEED is a number")];
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    (1..=many).chain([u64::from(now) + 1_000_000_000]).collect()
}

/// Prints, where the test fails meanwhile, how to have the same run again.
pub(crate) struct Again {
    pub(crate) seed: u64,
    pub(crate) test: &'static str,
}

impl Drop for Again {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, test } = self;
            eprintln!("again: FENCEGATE_SEED={seed} cargo test -p fencegate-node --test {test}");
        }
    }
}
