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
//! 01      boots: how many; for how many of them a time of running has made up
//! 02      stage: 0 underway, 1 done, 2 replacing
//! 03      which channels wait for a rearm: serial, and a bit each for an inhibit and for a contact; none where it is not there
//! 10 + n  mark of channel n: 0 and its `GrantRecord`, or 1 and the `FenceRecord` that was lost
//! 40 + n  output n, `OutputConfig`   ┐ generation 0: of a serial that is even
//! 50 + n  channel n, `ChannelConfig` ┘
//! 60 + n  output n                   ┐ generation 1: of a serial that is odd
//! 70 + n  channel n                  ┘
//! ```
//!
//! A later firmware reads this layout: once it has been released, format 1 stays what it is, and `store/tests/golden.rs`
//! keeps its bytes. A record of another format is damaged, so that an earlier firmware fails closed. One that is to have
//! records of a new kind, which an earlier firmware would not look for, raises the format of the provisioning's record with
//! them.
//!
//! A log that skips a damaged newest record returns the older one without a word; only the second copy shows that. So
//! a record counts as stored when both copies have it and both were read back, and at boot the later of the two is
//! believed and written to *both* wherever they differ or one is damaged: a half-programmed record may read
//! differently the next time. First everything is written to the copy that lacks it, and the other is left alone until
//! then, so that a cut at any instant leaves one that is whole. Nothing is erased because it looks corrupt, unless the
//! other copy has all of it; and marks and boot counter are looked for in every word of it before, since half-erased
//! markers may hide them from the log. What is being erased says so until nothing is left of it (`store/erase.rs`).
//!
//! What is latched is the exception to the later of two: a rearm lets go, and one that only one copy has was answered to
//! nobody. So where the copies differ, what either holds is held, and stored anew under the next number.
//!
//! A provisioning replaces another at one instant: its outputs and channels go into the generation that is not in force,
//! and the one record of the whole then says which is. The marks belong to the board and to no provisioning.
//!
//! Each half needs two pages of 4 KiB at the least (words of 4 or 8 bytes), or as much in more pages and one besides.

mod copies;
mod erase;
mod log;
mod pages;
mod provision;
mod record;

use embedded_storage_async::nor_flash::NorFlash;
use fencegate::{Epoch, FenceRecord};
use fencegate_wire::Provisioning;

use self::copies::{Loaded, Verdict};
use self::log::{Copy, Logs};
use self::record::{Boots, Census, Key, Mark, OVERHEAD, PIECE, Stage, Whole, encode};
use crate::entry::{Entry, Stored};
use crate::latched::Latched;
use crate::memory::{Life, Memory, Remembered};

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
    /// It has no place on this board: a mark for a channel that it does not have, or below one that a failed store has left; or
    /// anything where the provisioning is lost or was not read yet.
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

/// Where a boot counter begins again that was lost: no board boots so often.
const FAR: u32 = 1 << 31;

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
    /// The boots as stored.
    boots: Boots,
    /// Whether the boot counter was lost, and with it the trust in everything that goes up.
    distrusted: bool,
    /// Whether the copies could be mended, and the counter be read: else no boot is counted, and so nothing is obeyed; and
    /// nothing is stored but what is latched.
    storable: bool,
    /// How many records were mended at boot.
    mended: u8,
}

impl<F: NorFlash> Store<F> {
    /// A store over the whole of `flash`: at least two pages of 4 KiB for each of two copies, words of 4 to 32 bytes.
    /// Shorter words do not compile; [`Words`](crate::Words) makes longer ones of them.
    pub const fn new(flash: F) -> Self {
        Self {
            logs: Logs::new(flash),
            state: State::Closed,
            stage: None,
            begun: false,
            boots: Boots { count: 0, rested: 0 },
            distrusted: false,
            storable: false,
            mended: 0,
        }
    }

    /// Reads what the board is, and mends the copies where they differ or one is damaged. Where nothing is to be mended
    /// it writes nothing: a boot loop in which nobody speaks costs no wear.
    pub async fn boot(&mut self) -> Boot {
        let (mut provisioning, mut memory) = (Provisioning::nobodys(), Memory::nothing());
        match self.read(&mut provisioning, &mut memory).await {
            Life::Gate => Boot::Gate(provisioning, memory),
            Life::Blank => Boot::Blank,
            Life::Lost => Boot::Lost,
        }
    }

    /// [`Self::boot`] in place: what it says of a gate counts where it says that there is one.
    pub(crate) async fn read(&mut self, provisioning: &mut Provisioning, memory: &mut Memory) -> Life {
        (self.state, self.stage, self.begun, self.mended) = (State::Closed, None, false, 0);
        memory.storable = self.mend().await;
        (self.storable, self.logs.torn) = (memory.storable, !memory.storable);
        memory.mended = self.mended;
        let verdict = self.logs.compare(Key::GATE).await;
        let census = match self.logs.said::<Whole>(verdict) {
            // Where it could not be mended, it still says who may ask; nothing else could be trusted.
            Loaded::Found(whole) | Loaded::Unmended(whole) => {
                let census = whole.census();
                provisioning.gate = whole.config;
                census
            }
            Loaded::Never | Loaded::Lost(_) => {
                if self.was_never_a_gate().await {
                    self.state = State::Blank;
                    return Life::Blank;
                }
                return Life::Lost;
            }
        };
        if !self.assemble(census, provisioning).await || provisioning.check().is_err() {
            return Life::Lost;
        }
        self.state = State::Gate(census);
        let verdict = self.logs.compare(Key::STAGE).await;
        if let Loaded::Found(stage) = self.logs.said(verdict) {
            self.stage = Some(stage);
        }
        let verdict = self.logs.compare(Key::BOOTS).await;
        let stored = match self.logs.said(verdict) {
            Loaded::Found(boots) => Some(boots),
            Loaded::Never if self.stage == Some(Stage::Underway) => Some(Boots::default()),
            _ => None,
        };
        self.boots = stored.unwrap_or_default();
        let boots = stored.and_then(|stored| stored.count.checked_add(1));
        self.distrusted = boots.is_none();
        memory.boots = if let Some(boots) = boots {
            boots
        } else {
            let anew = self.begin_anew().await;
            // Without a number of its own nothing is to be counted, and nothing obeyed.
            memory.storable &= anew.is_some();
            anew.unwrap_or(FAR)
        };
        self.storable = memory.storable;
        if boots.is_none() {
            self.boots.rested = memory.boots;
        }
        memory.restless = memory.boots.saturating_sub(self.boots.rested);
        let verdict = self.logs.compare(Key::LATCHED).await;
        memory.latched = match (verdict, self.logs.said(verdict)) {
            (Verdict::Contradiction, _) => self.logs.either_latched(),
            (_, Loaded::Found(latched) | Loaded::Unmended(latched)) => latched,
            (_, Loaded::Never) => Latched::default(),
            (_, Loaded::Lost(_)) => Latched::UNKNOWN,
        };
        memory.unsure = !matches!(verdict, Verdict::Same | Verdict::Never);
        memory.marks.clear();
        for key in (0..census.channels).map_while(Key::mark) {
            let verdict = self.logs.compare(key).await;
            let mark = match self.logs.said(verdict) {
                Loaded::Found(Mark::Stands(record)) if memory.storable && !self.distrusted => Remembered::Mark(record),
                Loaded::Found(mark) | Loaded::Unmended(mark) | Loaded::Lost(Some(mark)) => {
                    Remembered::Lost(mark.record())
                }
                // Provisioning wrote a first mark for every channel: none is lost storage, and not a fresh gate.
                Loaded::Never | Loaded::Lost(None) => Remembered::Lost(FenceRecord::floor(Epoch(0), 0)),
            };
            let _ = memory.marks.push(mark); // as many as there are channels
        }
        Life::Gate
    }

    /// Stores that this is boot number `boots`, and what the first boot of a provisioning has to tidy up. It comes before
    /// the first frame of a boot is taken: until then nobody could know the number.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing that changes state may be obeyed in this boot.
    pub async fn count(&mut self, boots: u32) -> Result<(), StoreError> {
        let State::Gate(Census { marks, .. }) = self.state else { return Err(StoreError::NoPlace) };
        if !self.storable {
            return Err(StoreError::Flash);
        }
        self.mend_torn().await?;
        if self.distrusted {
            // The next boot will have a counter again. That no mark is to be trusted must not end with this one.
            for key in (0..marks).map_while(Key::mark) {
                let verdict = self.logs.compare(key).await;
                if let Loaded::Found(mark) | Loaded::Unmended(mark) | Loaded::Lost(Some(mark)) =
                    self.logs.said::<Mark>(verdict)
                {
                    self.logs.set(&Mark::Lost(mark.record()))?;
                    self.logs.store(key).await?;
                }
            }
        }
        self.boots.count = boots;
        self.store_boots().await?;
        self.distrusted = false;
        self.finish().await
    }

    /// Stores that the boot that was counted has made up for so many.
    ///
    /// # Errors
    /// [`StoreError`]; then they count as restless still.
    pub(crate) async fn rest(&mut self, boots: u32) -> Result<(), StoreError> {
        if !self.storable {
            return Err(StoreError::NoPlace);
        }
        self.mend_torn().await?;
        let before = self.boots;
        self.boots.rested = before.rested.saturating_add(boots).min(before.count);
        let rested = self.store_boots().await;
        if rested.is_err() {
            self.boots = before;
        }
        rested
    }

    /// A number that no other boot has had, as far as what is left of the flash differs from what it was then: two boots of
    /// one number would accept each other's challenges. It is far above every count that can be read anywhere, one from after
    /// an earlier loss among them: of two that a cut uncovers the greater is believed, and the last count before the loss is
    /// one that cannot be read. `None` where the flash cannot be, or none is left above.
    async fn begin_anew(&mut self) -> Option<u32> {
        let mut number = self.logs.fingerprint().await?;
        for copy in Copy::BOTH {
            if self.logs.highest(copy, Key::BOOTS).await.is_ok()
                && let Some(boots) = record::decode::<Boots>(self.logs.slot(copy).value())
            {
                number = number.max(boots.count.checked_add(1 << 16)?);
            }
        }
        Some(number)
    }

    async fn store_boots(&mut self) -> Result<(), StoreError> {
        self.logs.set(&self.boots)?;
        self.logs.store(Key::BOOTS).await
    }

    /// Stores one entry in both copies, and reads both back past any cache.
    ///
    /// The outputs and channels of a provisioning come in any order, and [`Entry::Gate`] last. Until that is stored the
    /// earlier provisioning is in force, or the board is blank, whatever happens.
    ///
    /// # Errors
    /// [`StoreError`]; then a copy may have the earlier value or the new one, and the next boot may find either.
    pub async fn put(&mut self, entry: &Entry) -> Result<Stored, StoreError> {
        // A stop must outlast even a flash that cannot be mended, if anything can be made of it.
        let failed_before = self.logs.torn;
        let mended = self.mend_torn().await;
        if !matches!(entry, Entry::Latched(_)) {
            mended?;
        }
        let mut census = None;
        let key = match entry {
            Entry::Mark { channel, .. } => {
                let State::Gate(Census { marks, .. }) = self.state else { return Err(StoreError::NoPlace) };
                Key::mark(*channel).filter(|_| *channel < marks)
            }
            Entry::Latched(_) => matches!(self.state, State::Gate(_)).then_some(Key::LATCHED),
            Entry::Output { output, .. } => Key::output(self.staged(), *output),
            Entry::Channel { channel, .. } => Key::channel(self.staged(), *channel),
            Entry::Gate { config, channels, outputs } => {
                census = Some(self.complete(config, *channels, *outputs).await?);
                // Whatever comes of it, what is staged from now on is another provisioning.
                self.begun = false;
                Some(Key::GATE)
            }
        };
        let key = key.ok_or(StoreError::NoPlace)?;
        if let Entry::Output { .. } | Entry::Channel { .. } = entry {
            self.vacate(key).await?;
        }
        // (The demonstration's fence goes back by itself.)
        if !cfg!(feature = "demonstration")
            && let Entry::Mark { mark, .. } = entry
        {
            // What failed has come into force where it was mended: what is lower may not come behind it.
            let verdict = self.logs.compare(key).await;
            if let Loaded::Found(found) = self.logs.said::<Mark>(verdict)
                && found.record().order(&mark.mark) == Some(core::cmp::Ordering::Greater)
            {
                return Err(StoreError::NoPlace);
            }
        }
        self.logs.a.fill(|bytes| write(entry, census, bytes))?;
        if failed_before && key == Key::LATCHED {
            // It holds where one copy has it, and the first may be the one that takes nothing.
            let _ = self.logs.append(Copy::A, Copy::B, key).await;
        }
        let before = self.state;
        if census.is_some() {
            self.state = State::Closed; // until it is known which provisioning is in force
        }
        self.logs.store(key).await?;
        self.logs.torn = !self.storable; // what is latched on copies that could not be mended has not mended them
        let stored = read_back(entry, self.logs.a.value()).map(Stored::read_back).ok_or(StoreError::ReadBack)?;
        if let Some(census) = census {
            if before == State::Blank {
                // From here on no damage makes it a blank board. A cut before is as if this were still to come.
                self.boots = Boots::default();
                let _ = self.store_boots().await;
            }
            self.state = State::Gate(census);
        }
        Ok(stored)
    }

    /// Whether the board is blank: its flash erased, or a first provisioning cut before its end. Damage of any kind makes
    /// no blank board of a gate: it would obey the factory key. A gate has a record of the whole in both copies, and a boot
    /// counter in both.
    async fn was_never_a_gate(&mut self) -> bool {
        let first = u32::try_from(record::first(Logs::<F>::WORD)).unwrap_or(0);
        let (mut torn, mut bare, mut underway) = ([false; 2], [false; 2], [false; 2]);
        for (n, copy) in Copy::BOTH.into_iter().enumerate() {
            let range = self.logs.range(copy);
            torn[n] = !self.logs.is_begun(range.start).await;
            bare[n] = self.logs.is_erased(range.start.saturating_add(first)..range.end).await;
        }
        let b = self.logs.range(Copy::B).start;
        if bare == [true, true] && self.logs.is_erased(b..b.saturating_add(first)).await {
            return true; // nothing, or the first record of all, torn
        }
        for (n, copy) in Copy::BOTH.into_iter().enumerate() {
            for key in [Key::GATE, Key::BOOTS, Key::STAGE] {
                self.logs.fetch(copy, key).await;
                let slot = self.logs.slot(copy);
                if key == Key::STAGE {
                    underway[n] = matches!(record::decode(slot.value()), Some(Stage::Underway));
                } else if !slot.is_missing() {
                    return false;
                }
            }
        }
        match underway {
            [true, true] => true,
            // What was begun in A had not come to B, or the very first word of B was torn: that of a page's marker.
            [true, false] => torn[1] || bare[1],
            [false, true] => torn[0],
            [false, false] => false,
        }
    }
}

/// Writes an entry's record; how long it is, or `None` where it does not fit.
fn write(entry: &Entry, census: Option<Census>, bytes: &mut [u8]) -> Option<usize> {
    let piece = PIECE + OVERHEAD;
    match entry {
        Entry::Mark { mark, .. } => encode(&Mark::Stands(*mark), bytes),
        Entry::Latched(latched) => encode(latched, bytes),
        Entry::Output { config, .. } => encode(config, bytes.get_mut(..piece)?),
        Entry::Channel { config, .. } => encode(config, bytes.get_mut(..piece)?),
        Entry::Gate { config, .. } => {
            let Census { serial, marks, channels, outputs } = census?;
            encode(&Whole { serial, marks, channels, outputs, config: config.clone() }, bytes)
        }
    }
}

/// What was stored for an entry, as it was read back.
fn read_back(entry: &Entry, bytes: &[u8]) -> Option<Entry> {
    Some(match entry {
        Entry::Mark { channel, .. } => match record::decode(bytes)? {
            Mark::Stands(mark) => Entry::Mark { channel: *channel, mark },
            Mark::Lost(_) => return None,
        },
        Entry::Latched(_) => Entry::Latched(record::decode(bytes)?),
        Entry::Output { output, .. } => Entry::Output { output: *output, config: record::decode(bytes)? },
        Entry::Channel { channel, .. } => Entry::Channel { channel: *channel, config: record::decode(bytes)? },
        Entry::Gate { .. } => {
            let Whole { channels, outputs, config, .. } = record::decode(bytes)?;
            Entry::Gate { config, channels, outputs }
        }
    })
}

#[cfg(test)]
mod tests;
