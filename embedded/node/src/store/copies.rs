//! What the two copies say together, and how they are made to say the same.

use core::cmp::Ordering;
use embedded_storage_async::nor_flash::NorFlash;
use serde::{Serialize, de::DeserializeOwned};

use super::log::{Copy, Logs};
use super::record::{Boots, Census, Key, Kind, Mark, Whole, decode, encode};
use super::{Store, StoreError};
use crate::latched::Latched;

/// How often everything is compared again after something was mended. A log that is mended repairs itself first, and may
/// lose in that what was read of it before.
const PASSES: u8 = 4;

/// How often what was not read back as it was written is written once more.
const TRIES: u8 = 3;

/// What the store knows of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loaded<T> {
    /// It is there, the same in both copies.
    Found(T),
    /// It is there in one copy, and the other could not be mended.
    Unmended(T),
    /// It was never there.
    Never,
    /// It was there, or ought to be, and cannot be trusted. Where the copies contradict each other, this is one's.
    Lost(Option<T>),
}

/// What the copies say under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    /// This copy has the later value, or the only one.
    Later(Copy),
    Contradiction,
    Never,
    Lost,
}

impl<F: NorFlash> Logs<F> {
    /// Reads both copies into their slots, and compares them.
    pub(super) async fn compare(&mut self, key: Key) -> Verdict {
        self.fetch(Copy::A, key).await;
        self.fetch(Copy::B, key).await;
        match (self.a.value(), self.b.value()) {
            ([], []) if self.a.is_missing() && self.b.is_missing() => Verdict::Never,
            ([], []) => Verdict::Lost,
            ([], _) => Verdict::Later(Copy::B),
            (_, []) => Verdict::Later(Copy::A),
            (a, b) if a == b => Verdict::Same,
            // Neither is taken for the other's: what either holds is held.
            _ if key == Key::LATCHED => Verdict::Contradiction,
            (a, b) => match key.order(a, b) {
                Some(Ordering::Less) => Verdict::Later(Copy::B),
                Some(_) => Verdict::Later(Copy::A),
                None => Verdict::Contradiction,
            },
        }
    }

    /// Stores what is in the slot of A in both copies, and reads it back from both, into both slots.
    ///
    /// The first record after a boot, or after a write that failed, is written twice: what comes to lie on a half-programmed
    /// word reads as it was written now, and otherwise at the next boot. Both copies have it before either has it again, so
    /// that one that is cut off while it turns a page wants nothing of the other. (But for the stage, which is a board's first
    /// of all, and of which no more is to be there.)
    pub(super) async fn store(&mut self, key: Key) -> Result<(), StoreError> {
        let doubtful = core::mem::replace(&mut self.doubtful, true);
        self.torn = true;
        for _ in 0..=u8::from(doubtful && key != Key::STAGE) {
            for copy in Copy::BOTH {
                self.append(Copy::A, copy, key).await?;
            }
        }
        // A word that was half-programmed may have read as erased, and is not what was written to it now. The next is.
        for copy in [Copy::B, Copy::A] {
            let mut tries = 0;
            loop {
                // The other slot has what was written.
                self.read_back(copy, key).await;
                let damaged = self.a.is_damaged() || self.b.is_damaged();
                if self.a.value() == self.b.value() && !damaged {
                    break;
                }
                if tries == TRIES {
                    return Err(StoreError::ReadBack);
                }
                self.append(copy.other(), copy, key).await?;
                tries += 1;
            }
        }
        (self.doubtful, self.torn) = (doubtful && key == Key::STAGE, false);
        Ok(())
    }

    /// Whether neither copy has anything under a key.
    pub(super) async fn is_gone(&mut self, key: Key) -> bool {
        self.compare(key).await == Verdict::Never
    }

    /// Removes a record from both copies. An empty value does it: to mark it as erased in place is more than every flash
    /// can do, and it would be the one write into what is already written.
    pub(super) async fn remove(&mut self, key: Key) -> Result<(), StoreError> {
        self.a.fill(|_| Some(0))?;
        self.store(key).await
    }
}

impl<F> Logs<F> {
    /// What both copies say, as they were compared.
    pub(super) fn said<T: DeserializeOwned>(&self, verdict: Verdict) -> Loaded<T> {
        let copy = if let Verdict::Later(copy) = verdict { copy } else { Copy::A };
        match (verdict, decode(self.slot(copy).value())) {
            (Verdict::Same, Some(value)) => Loaded::Found(value),
            (Verdict::Later(_), Some(value)) => Loaded::Unmended(value),
            (Verdict::Never, _) => Loaded::Never,
            (_, value) => Loaded::Lost(value),
        }
    }

    /// What either copy has latched, as they were compared.
    pub(super) fn either_latched(&self) -> Latched {
        match (decode::<Latched>(self.a.value()), decode::<Latched>(self.b.value())) {
            (Some(a), Some(b)) => a.or(b),
            _ => Latched::UNKNOWN,
        }
    }

    /// Fills the slot of A with a record, to be stored.
    pub(super) fn set(&mut self, value: &impl Serialize) -> Result<(), StoreError> {
        self.a.fill(|bytes| encode(value, bytes))
    }
}

impl<F: NorFlash> Store<F> {
    /// Makes the copies the same in all that is in force; whether that went well.
    pub(super) async fn mend(&mut self) -> bool {
        // A bit for each key under which this copy was ahead of the other.
        let mut later = [0_u128; 2];
        // To clear one takes as long as all its pages take to erase: where it is of no use, no second time either.
        let mut cleared = [false; 2];
        self.logs.forget();
        for (copy, cleared) in Copy::BOTH.into_iter().zip(&mut cleared) {
            if self.logs.is_unsettled(copy).await {
                if !self.logs.is_being_erased(copy).await {
                    // Where it cannot be written anew, what is there is made the best of.
                    let _ = self.mend_from(&[copy], Some(&mut later)).await;
                }
                *cleared = self.clear(copy, &mut later).await;
                if !*cleared {
                    let _ = self.logs.finish_turn(copy).await;
                }
            }
            let _ = self.leave_torn_page(copy).await;
        }
        // The other one may be whole only now.
        for (copy, cleared) in Copy::BOTH.into_iter().zip(&mut cleared) {
            if self.logs.is_being_erased(copy).await {
                *cleared = self.clear(copy, &mut later).await;
                if !*cleared {
                    return false;
                }
            }
        }
        for _ in 0..PASSES {
            match self.mend_from(&Copy::BOTH, Some(&mut later)).await {
                Ok(mended) => {
                    self.mended = self.mended.saturating_add(mended);
                    if mended == 0 {
                        for copy in Copy::BOTH {
                            let _ = self.leave_torn_page(copy).await;
                        }
                        let mended = self.mend_both(later).await.is_ok();
                        self.logs.learn().await;
                        return mended;
                    }
                }
                Err(copy) => {
                    let [a, b] = &mut cleared;
                    let cleared = if copy == Copy::A { a } else { b };
                    if *cleared || !self.clear(copy, &mut later).await {
                        return false;
                    }
                    *cleared = true;
                }
            }
        }
        false
    }

    /// Mends what a store that failed has left, which is what a cut leaves, before anything else is written.
    /// (What was staged of a provisioning is then begun anew: a copy is mended from the other in all that is in force, and
    /// cleared of the rest.)
    pub(super) async fn mend_torn(&mut self) -> Result<(), StoreError> {
        if !self.logs.torn {
            return Ok(());
        }
        self.begun = false;
        // What could not be mended once is not tried again before the next boot: it takes long, and nobody is heard meanwhile.
        self.storable = self.storable && self.mend().await;
        self.logs.torn = !self.storable;
        if self.storable { Ok(()) } else { Err(StoreError::Flash) }
    }

    /// Erases a copy, provided that the other one has everything, and as late as this one; whether it did.
    async fn clear(&mut self, copy: Copy, later: &mut [u128; 2]) -> bool {
        // What is written to the other one may make it repair itself first: then all of it is looked at once more.
        let salvaged = match self.salvage(copy, later).await {
            Ok(0) => true,
            Ok(_) => self.salvage(copy, later).await == Ok(0),
            Err(_) => false,
        };
        salvaged
            && !self.logs.is_being_erased(copy.other()).await
            && self.is_whole(copy.other()).await
            && self.mend_from(&[copy], None).await == Ok(0)
            && self.logs.erase(copy).await.is_ok()
    }

    /// Writes to the other copy what only goes up and is higher anywhere in this one: where a page's markers are half
    /// erased, the log may read nothing at all, or an earlier page first, and where the other copy has rotted this one
    /// alone knows better. Says how much that was.
    async fn salvage(&mut self, copy: Copy, later: &mut [u128; 2]) -> Result<u8, StoreError> {
        self.logs.fetch(copy.other(), Key::GATE).await;
        let whole = decode::<Whole>(self.logs.slot(copy.other()).value()).ok_or(StoreError::Flash)?;
        let census = whole.census();
        // What cannot be read here may be higher than what can. Where nothing of the other one is damaged, that has all that
        // was ever acknowledged, but for what rotted so long ago that its page was reclaimed since.
        let spotless = self.logs.is_spotless(copy.other()).await;
        let erasing = self.logs.is_being_erased(copy).await;
        let mut salvaged = 0_u8;
        for key in
            Key::all().filter(|key| matches!(key.kind(), Kind::Boots | Kind::Latched | Kind::Mark) && census.has(*key))
        {
            let readable = self.logs.highest(copy.other(), key).await? & self.logs.highest(copy, key).await?;
            if !readable && !spotless {
                return Err(StoreError::Flash);
            }
            self.logs.fetch(copy.other(), key).await;
            let (here, there) = (self.logs.slot(copy).value(), self.logs.slot(copy.other()).value());
            let higher = there.is_empty() || key.order(here, there) == Some(Ordering::Greater);
            if here.is_empty() || !higher {
                continue;
            }
            // Where the other copy has nothing, and this one was being erased, what is left here may be from long before.
            let ancient = erasing && there.is_empty();
            let from = match key.kind() {
                // A boot counter that was lost once began anew anywhere, and what is left of the one before may be higher.
                Kind::Boots if ancient || decode::<Boots>(here).is_some_and(|boots| boots.count >> 31 == 1) => continue,
                Kind::Mark if ancient => {
                    let mark = decode::<Mark>(here).ok_or(StoreError::Flash)?;
                    self.logs.set(&Mark::Lost(mark.record()))?;
                    Copy::A
                }
                Kind::Latched => {
                    let here = decode::<Latched>(here).ok_or(StoreError::Flash)?;
                    let held = match decode::<Latched>(there) {
                        _ if ancient => here.or(Latched::UNKNOWN),
                        // A rearm that is in one copy only was answered to nobody.
                        _ if !here.is_any() => continue,
                        // What either holds is held: after a loss its numbers began anew, and an old one is higher.
                        Some(there) => here.or(there),
                        None => here,
                    };
                    self.logs.set(&held)?;
                    Copy::A
                }
                _ => copy,
            };
            self.logs.append(from, copy.other(), key).await?;
            let [a, b] = &mut *later;
            *(if copy == Copy::A { a } else { b }) |= 1 << key.number();
            salvaged = salvaged.saturating_add(1);
        }
        Ok(salvaged)
    }

    /// Leaves a page with half a record in it for the next one: where that record reads as one today, what came after it
    /// could be hidden behind it tomorrow. Until the page is full it is written to with what the copy has anyway. (Where it is
    /// the only one that is whole it turns no page for that.)
    async fn leave_torn_page(&mut self, copy: Copy) -> Result<(), StoreError> {
        for _ in 0..F::ERASE_SIZE / 64 {
            if !self.logs.is_torn(copy).await || !self.is_whole(copy.other()).await {
                return Ok(());
            }
            let from = match self.logs.compare(Key::GATE).await {
                Verdict::Same => copy,
                Verdict::Later(later) => later,
                // A blank board, or one that is lost.
                Verdict::Contradiction | Verdict::Never | Verdict::Lost => return Ok(()),
            };
            self.logs.append(from, copy, Key::GATE).await?;
        }
        Ok(())
    }

    /// Writes to the other copy what only one of `from` has, or has later, and leaves the one alone; says how much that
    /// was, or which copy could not be written to. Without `later` it counts and writes nothing.
    async fn mend_from(&mut self, from: &[Copy], mut later: Option<&mut [u128; 2]>) -> Result<u8, Copy> {
        // Of two provisionings the later counts, with all that belongs to it; the record of the whole comes last, so that
        // until then a cut changes nothing about which that is.
        let ahead = match self.logs.compare(Key::GATE).await {
            Verdict::Later(copy) => Some(copy),
            _ => None,
        };
        let slot = self.logs.slot(ahead.unwrap_or(Copy::A));
        let census = decode::<Whole>(slot.value()).map(|whole| whole.census());
        let mut mended = 0_u8;
        let held = |key: &Key| *key != Key::GATE && census.is_some_and(|census| census.has(*key));
        for key in Key::all().filter(held).chain([Key::GATE]) {
            let copy = match (self.logs.compare(key).await, ahead) {
                (Verdict::Later(copy), _) => copy,
                (Verdict::Contradiction, Some(copy)) if key.is_piece() => copy,
                _ => continue,
            };
            if !from.contains(&copy) {
                continue;
            }
            if let Some([a, b]) = later.as_deref_mut() {
                self.logs.append(copy, copy.other(), key).await.map_err(|_| copy.other())?;
                *(if copy == Copy::A { a } else { b }) |= 1 << key.number();
            }
            mended = mended.saturating_add(1);
        }
        Ok(mended)
    }

    /// Writes to both copies once more what only one had. There it may be half-programmed, and read like this only today;
    /// and in the other it may have been written over a word that was half-programmed and read as erased.
    async fn mend_both(&mut self, later: [u128; 2]) -> Result<(), StoreError> {
        for (copy, bits) in Copy::BOTH.into_iter().zip(later) {
            let mended = copy.other();
            for key in Key::all().filter(|key| bits >> key.number() & 1 == 1) {
                let mut tries = 0;
                loop {
                    self.logs.fetch(mended, key).await;
                    self.logs.append(mended, mended, key).await?;
                    self.logs.append(mended, copy, key).await?;
                    self.logs.forget();
                    match self.logs.compare(key).await {
                        Verdict::Same => break,
                        _ if tries == TRIES => return Err(StoreError::ReadBack),
                        _ => tries += 1,
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether `copy` alone has all that makes a gate, but for what neither has.
    async fn is_whole(&mut self, copy: Copy) -> bool {
        let mut census: Option<Census> = None;
        for key in Key::all() {
            if key != Key::GATE && !census.is_some_and(|census| census.has(key)) {
                continue;
            }
            self.logs.fetch(copy, key).await;
            let slot = self.logs.slot(copy);
            if key == Key::GATE {
                census = decode::<Whole>(slot.value()).map(|whole| whole.census());
            }
            // Where nothing was ever latched there is no record of it.
            if !slot.value().is_empty() || key == Key::LATCHED && slot.is_missing() {
                continue;
            }
            // What is lost from both copies is nothing to wait for, unless no gate is one without it: a copy that cannot be
            // cleared for its sake would stay torn for good.
            match key.kind() {
                Kind::Boots | Kind::Stage | Kind::Latched => {}
                Kind::Mark => {
                    let looked = self.logs.highest(copy.other(), key).await;
                    if looked.is_err() || !self.logs.slot(copy.other()).value().is_empty() {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        census.is_some()
    }
}
