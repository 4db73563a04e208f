//! The boards that have an emulator, and what of them differs for whoever stands around them.

use crate::setup::Need;
use clap::ValueEnum;

/// A board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Board {
    /// Arm MPS2 with the AN385 image, a Cortex-M3, in QEMU.
    Mps2,
    /// Raspberry Pi Pico, a Cortex-M0+, in rp2040js.
    Rp2040,
}

impl Board {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Mps2, Self::Rp2040];

    /// The folder in `embedded/firmware/`, and the end of its package's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mps2 => "mps2",
            Self::Rp2040 => "rp2040",
        }
    }

    /// The board of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|board| board.name() == name)
    }

    /// What its emulator needs.
    pub const fn emulator(self) -> &'static [Need] {
        match self {
            Self::Mps2 => &[Need::AptPackage { package: "qemu-system-arm", probe: "qemu-system-arm" }],
            Self::Rp2040 => &[Need::Node, Need::NpmPackages { dir: "embedded/firmware/rp2040/emulator" }],
        }
    }

    /// What its emulator's monitor ends an answer with.
    pub const fn prompt(self) -> &'static str {
        match self {
            Self::Mps2 => "(qemu) ",
            Self::Rp2040 => "(rp2040) ",
        }
    }

    /// What its emulator's monitor is asked for the outputs: the answer has them behind `: 0x`, bit n for output n.
    pub const fn pins(self) -> &'static str {
        match self {
            // SCC `CFG1` (`embedded/firmware/mps2/src/outputs.rs`).
            Self::Mps2 => "xp /1wx 0x4002f004",
            Self::Rp2040 => "pins",
        }
    }
}
