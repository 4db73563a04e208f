//! What must survive a power cut, in two independent copies in separate halves of the flash.
//!
//! ```text
//! flash   0 ─────────────── half ─────────────── end     each half a log of records (`sequential-storage`), its wear
//!         │     copy A        │      copy B       │      levelled over all its pages
//!
//! value   ┌────────┬──────────────────┬─────────────┐
//!         │ format │ body (postcard)  │ CRC-32 (LE) │    nothing at all: removed
//!         │   1    │                  │ of both     │
//!         └────────┴──────────────────┴─────────────┘
//!
//! key     body
//! 00      the provisioning in force: serial, marks, channels, outputs (of 4 to 1 bytes), `GateConfig`
//! 01      boot counter
//! 02      stage: 0 underway, 1 done, 2 replacing
//! 10 + n  mark of channel n: 0 and its `GrantRecord`, or 1 and the `FenceRecord` that was lost
//! 40 + n  output n, `OutputConfig`   ┐ generation 0: of a serial that is even
//! 50 + n  channel n, `ChannelConfig` ┘
//! 60 + n  output n                   ┐ generation 1: of a serial that is odd
//! 70 + n  channel n                  ┘
//! ```
//!
//! A later firmware reads this layout: format 1 stays what it is, and `store/tests/golden.rs` keeps its bytes. A record
//! of another format is damaged, so that an earlier firmware fails closed.
//!
//! A log that skips a damaged newest record returns the older one without a word; only the second copy shows that. So
//! a record counts as stored when both copies have it and both were read back, and at boot the later of the two is
//! believed and written to *both* wherever they differ or one is damaged: a half-programmed record may read
//! differently the next time. First everything is written to the copy that lacks it, and the other is left alone until
//! then, so that a cut at any instant leaves one that is whole. Nothing is erased because it looks corrupt, unless the
//! other copy has all of it.
//!
//! A provisioning replaces another at one instant: its outputs and channels go into the generation that is not in force,
//! and the one record of the whole then says which is. The marks belong to the board and to no provisioning.
//!
//! Each half needs two pages of 4 KiB at the least (words of 4 or 8 bytes), or as much in more pages and one besides.

mod copies;
mod log;
mod provision;
mod record;

use embedded_storage_async::nor_flash::NorFlash;
use fencegate::{Epoch, FenceRecord};
use fencegate_wire::Provisioning;

use self::copies::Loaded;
use self::log::{Copy, Logs};
use self::record::{Census, Key, Mark, Stage, Whole};
use crate::entry::{Entry, Stored};
use crate::memory::{Memory, Remembered};

/// Why something is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The flash failed, is full or too small, or its log cannot be read.
    Flash,
    /// What was read back is not what was written.
    ReadBack,
    /// The record is longer than any may be: an output or a channel whose times are beyond all use.
    TooLong,
    /// The end of a provisioning that lacks something, or that no gate could work with. Nothing has changed.
    Incomplete,
    /// It has no place on this board: a mark for a channel that it does not have, or anything where the provisioning is
    /// lost or was not read yet.
    NoPlace,
}

/// What a board is, by its flash.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "without a heap there is nothing to box it in; there is one of them")]
pub enum Boot {
    /// A provisioned gate.
    Gate(Provisioning, Memory),
    /// A board that never was one.
    Blank,
    /// A board that was one, and whose provisioning is lost.
    Lost,
}

/// What the board is, as far as storing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not read yet, or lost.
    Closed,
    /// Never a gate; records of an earlier attempt may be there.
    Blank,
    /// A gate, and what belongs to the provisioning in force.
    Gate(Census),
}

/// The store of one gate.
#[derive(Debug)]
pub struct Store<F> {
    logs: Logs<F>,
    state: State,
    /// How far the provisioning is, as stored; `None` where that has to be written anew.
    stage: Option<Stage>,
    /// Whether outputs and channels can be taken: what was there of another attempt is removed.
    begun: bool,
    /// Whether the boot counter was lost, and with it the trust in everything that goes up.
    distrusted: bool,
    /// How many records were mended at boot.
    mended: u8,
}

impl<F: NorFlash> Store<F> {
    /// A store over the whole of `flash`: at least two pages of 4 KiB for each of two copies, words of 4 to 32 bytes.
    /// Shorter words do not compile; [`Words`](crate::Words) makes longer ones of them.
    pub const fn new(flash: F) -> Self {
        Self { logs: Logs::new(flash), state: State::Closed, stage: None, begun: false, distrusted: false, mended: 0 }
    }

    /// Reads what the board is, and mends the copies where they differ or one is damaged. Where nothing is to be mended
    /// it writes nothing: a boot loop in which nobody speaks costs no wear.
    pub async fn boot(&mut self) -> Boot {
        (self.state, self.stage, self.begun, self.mended) = (State::Closed, None, false, 0);
        let mended = self.mend().await;
        let whole = match self.load::<Whole>(Key::GATE).await {
            // Where it could not be mended, it still says who may ask; nothing else could be trusted.
            Loaded::Found(whole) | Loaded::Unmended(whole) => whole,
            Loaded::Never | Loaded::Lost(_) if self.was_never_a_gate().await => {
                self.state = State::Blank;
                return Boot::Blank;
            }
            Loaded::Never | Loaded::Lost(_) => return Boot::Lost,
        };
        let census = whole.census();
        let mut provisioning =
            Provisioning { gate: whole.config, channels: heapless::Vec::new(), outputs: heapless::Vec::new() };
        if !self.assemble(census, &mut provisioning).await || provisioning.check().is_err() {
            return Boot::Lost;
        }
        self.state = State::Gate(census);
        if let Loaded::Found(stage) = self.load(Key::STAGE).await {
            self.stage = Some(stage);
        }
        let boots = match self.load::<u32>(Key::BOOTS).await {
            Loaded::Found(boots) => boots.checked_add(1),
            Loaded::Never if self.stage == Some(Stage::Underway) => Some(1),
            _ => None,
        };
        self.distrusted = boots.is_none();
        // A number that no other boot has had, as far as what is left of the flash differs from what it was then: two
        // boots of one number would accept each other's challenges.
        let boots = match boots {
            Some(boots) => boots,
            None => self.logs.fingerprint().await,
        };
        let mut marks = heapless::Vec::new();
        for channel in (0..).take(provisioning.channels.len()) {
            let mark = match self.load_mark(channel).await {
                Loaded::Found(Mark::Stands(record)) if mended && !self.distrusted => Remembered::Mark(record),
                Loaded::Found(mark) | Loaded::Unmended(mark) | Loaded::Lost(Some(mark)) => {
                    Remembered::Lost(mark.record())
                }
                // Provisioning wrote a first mark for every channel: none is lost storage, and not a fresh gate.
                Loaded::Never | Loaded::Lost(None) => Remembered::Lost(FenceRecord::floor(Epoch(0), 0)),
            };
            let _ = marks.push(mark); // as many as there are channels
        }
        Boot::Gate(provisioning, Memory { boots, storable: mended, mended: self.mended, marks })
    }

    /// Stores that this is boot number `boots`, and what the first boot of a provisioning has to tidy up. It comes before
    /// the first frame of a boot is taken: until then nobody could know the number.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing that changes state may be obeyed in this boot.
    pub async fn count(&mut self, boots: u32) -> Result<(), StoreError> {
        let State::Gate(Census { marks, .. }) = self.state else { return Err(StoreError::NoPlace) };
        if self.distrusted {
            // The next boot will have a counter again. That no mark is to be trusted must not end with this one.
            for channel in 0..marks {
                if let (Some(key), Loaded::Found(mark)) = (Key::mark(channel), self.load_mark(channel).await) {
                    self.store(key, &Mark::Lost(mark.record())).await?;
                }
            }
        }
        self.store(Key::BOOTS, &boots).await?;
        self.distrusted = false;
        self.finish().await
    }

    /// Stores one entry in both copies, and reads both back past any cache.
    ///
    /// The outputs and channels of a provisioning come in any order, and [`Entry::Gate`] last. Until that is stored the
    /// earlier provisioning is in force, or the board is blank, whatever happens.
    ///
    /// # Errors
    /// [`StoreError`]; then a copy may have the earlier value or the new one, and the next boot may find either.
    pub async fn put(&mut self, entry: &Entry) -> Result<Stored, StoreError> {
        let read_back = match entry {
            Entry::Mark { channel, mark } => {
                let State::Gate(Census { marks, .. }) = self.state else { return Err(StoreError::NoPlace) };
                let key = Key::mark(*channel).filter(|_| *channel < marks).ok_or(StoreError::NoPlace)?;
                match self.store(key, &Mark::Stands(*mark)).await? {
                    Mark::Stands(mark) => Entry::Mark { channel: *channel, mark },
                    Mark::Lost(_) => return Err(StoreError::ReadBack),
                }
            }
            Entry::Output { output, config } => {
                let config = self.stage_piece(Key::output(self.staged(), *output), config).await?;
                Entry::Output { output: *output, config }
            }
            Entry::Channel { channel, config } => {
                let config = self.stage_piece(Key::channel(self.staged(), *channel), config).await?;
                Entry::Channel { channel: *channel, config }
            }
            Entry::Gate { config, channels, outputs } => {
                let whole = self.commit(config, *channels, *outputs).await?;
                Entry::Gate { config: whole.config, channels: whole.channels, outputs: whole.outputs }
            }
        };
        Ok(Stored::read_back(read_back))
    }

    async fn load_mark(&mut self, channel: u8) -> Loaded<Mark> {
        match Key::mark(channel) {
            Some(key) => self.load(key).await,
            None => Loaded::Never,
        }
    }

    /// Whether the board is blank: its flash erased, or a first provisioning cut before its end. Damage of any kind makes
    /// no blank board of a gate: it would obey the factory key. A gate has a record of the whole in both copies, and a boot
    /// counter in both.
    async fn was_never_a_gate(&mut self) -> bool {
        let first = u32::try_from(record::first(Logs::<F>::WORD)).unwrap_or(0);
        let [a, b] = Copy::BOTH.map(|copy| self.logs.range(copy));
        let after_first = |range: &core::ops::Range<u32>| range.start.saturating_add(first)..range.end;
        if self.logs.is_erased(after_first(&a)).await && self.logs.is_erased(b.clone()).await {
            return true; // nothing, or the first record of all, torn
        }
        for copy in Copy::BOTH {
            for key in [Key::GATE, Key::BOOTS] {
                if !self.is_missing(copy, key).await {
                    return false;
                }
            }
        }
        let underway = [self.is_underway(Copy::A).await, self.is_underway(Copy::B).await];
        let torn = [!self.logs.is_begun(a.start).await, !self.logs.is_begun(b.start).await];
        match underway {
            [true, true] => true,
            // What was begun in A had not come to B, or the very first word of B was torn: that of a page's marker.
            [true, false] => torn[1] || self.logs.is_erased(after_first(&b)).await,
            [false, true] => torn[0],
            [false, false] => false,
        }
    }

    async fn is_underway(&mut self, copy: Copy) -> bool {
        matches!(self.read(copy, Key::STAGE).await, Some(Stage::Underway))
    }
}

#[cfg(test)]
mod tests;
