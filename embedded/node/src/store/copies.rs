//! What the two copies say together, and how they are made to say the same.

use core::cmp::Ordering;
use embedded_storage_async::nor_flash::NorFlash;
use serde::{Serialize, de::DeserializeOwned};

use super::log::{Copy, Logs};
use super::record::{Key, Stage, Whole, decode, encode};
use super::{Store, StoreError};

/// How often everything is compared again after something was mended. A log that is mended repairs itself first, and may
/// lose in that what was read of it before.
const PASSES: u8 = 4;

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
enum Verdict {
    Same,
    /// This copy has the later value, or the only one.
    Later(Copy),
    Contradiction,
    Never,
    Lost,
}

impl<F: NorFlash> Logs<F> {
    /// Reads both copies into their slots, and compares them.
    async fn compare(&mut self, key: Key) -> Verdict {
        self.fetch(Copy::A, key).await;
        self.fetch(Copy::B, key).await;
        match (self.a.value(), self.b.value()) {
            ([], []) if self.a.is_missing() && self.b.is_missing() => Verdict::Never,
            ([], []) => Verdict::Lost,
            ([], _) => Verdict::Later(Copy::B),
            (_, []) => Verdict::Later(Copy::A),
            (a, b) if a == b => Verdict::Same,
            (a, b) => match key.order(a, b) {
                Some(Ordering::Less) => Verdict::Later(Copy::B),
                Some(_) => Verdict::Later(Copy::A),
                None => Verdict::Contradiction,
            },
        }
    }

    /// Reads both copies back, and compares them with what the slot of A was filled with and both were told to store.
    async fn read_back(&mut self, key: Key) -> Result<(), StoreError> {
        self.fetch(Copy::B, key).await;
        // What was written is in the slot of A until now.
        let same = |logs: &Self| logs.a.value() == logs.b.value() && !logs.a.is_damaged() && !logs.b.is_damaged();
        if !same(self) {
            return Err(StoreError::ReadBack);
        }
        self.fetch(Copy::A, key).await;
        if same(self) { Ok(()) } else { Err(StoreError::ReadBack) }
    }

    /// Stores what is in the slot of A in both copies.
    async fn store(&mut self, key: Key) -> Result<(), StoreError> {
        for copy in Copy::BOTH {
            self.append(Copy::A, copy, key).await?;
        }
        self.read_back(key).await
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

impl<F: NorFlash> Store<F> {
    /// Writes a record to both copies, and hands back what was read from both.
    pub(super) async fn store<T>(&mut self, key: Key, value: &T) -> Result<T, StoreError>
    where
        T: Serialize + DeserializeOwned,
    {
        self.logs.a.fill(|bytes| encode(value, bytes))?;
        self.store_filled(key).await
    }

    /// Writes what the slot of A was filled with to both copies, and hands back what was read from both.
    pub(super) async fn store_filled<T: DeserializeOwned>(&mut self, key: Key) -> Result<T, StoreError> {
        self.logs.store(key).await?;
        decode(self.logs.a.value()).ok_or(StoreError::ReadBack)
    }

    /// What both copies say.
    pub(super) async fn load<T: DeserializeOwned>(&mut self, key: Key) -> Loaded<T> {
        let verdict = self.logs.compare(key).await;
        let copy = if let Verdict::Later(copy) = verdict { copy } else { Copy::A };
        match (verdict, decode(self.logs.slot(copy).value())) {
            (Verdict::Same, Some(value)) => Loaded::Found(value),
            (Verdict::Later(_), Some(value)) => Loaded::Unmended(value),
            (Verdict::Never, _) => Loaded::Never,
            (_, value) => Loaded::Lost(value),
        }
    }

    /// Makes the copies the same in all that is in force; whether that went well.
    pub(super) async fn mend(&mut self) -> bool {
        for copy in Copy::BOTH {
            let unsettled = self.logs.is_unsettled(copy).await;
            if unsettled != Ok(false) {
                let _ = self.clear(copy).await; // where not, what is there is made the best of
            }
        }
        // A bit for each key under which this copy was ahead of the other.
        let mut later = [0_u128; 2];
        for pass in 0..PASSES {
            match self.mend_the_earlier(&mut later).await {
                Ok(mended) => {
                    if pass == 0 {
                        self.mended = mended;
                    }
                    if mended == 0 {
                        return self.mend_the_later(later).await.is_ok();
                    }
                }
                Err(copy) => {
                    if !self.clear(copy).await {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Erases a copy, provided that the other one has everything; whether it did.
    async fn clear(&mut self, copy: Copy) -> bool {
        self.is_whole(copy.other()).await && self.logs.erase(copy).await.is_ok()
    }

    /// Writes to each copy what only the other has, and leaves the other alone; says how much that was, or which copy it
    /// could not write to.
    async fn mend_the_earlier(&mut self, later: &mut [u128; 2]) -> Result<u8, Copy> {
        let mut mended = 0_u8;
        let mut mend = async |logs: &mut Logs<F>, key: Key| {
            if let Verdict::Later(copy) = logs.compare(key).await {
                logs.append(copy, copy.other(), key).await.map_err(|_| copy.other())?;
                let [a, b] = &mut *later;
                *(if copy == Copy::A { a } else { b }) |= 1 << key.number();
                mended = mended.saturating_add(1);
            }
            Ok(())
        };
        mend(&mut self.logs, Key::GATE).await?;
        // Without it, what else there is belongs to nothing.
        self.logs.fetch(Copy::A, Key::GATE).await;
        if let Some(whole) = decode::<Whole>(self.logs.a.value()) {
            for key in whole.census().keys() {
                mend(&mut self.logs, key).await?;
            }
        }
        Ok(mended)
    }

    /// Writes once more what a copy had and the other had not: it may be half-programmed, and read like this only today.
    async fn mend_the_later(&mut self, later: [u128; 2]) -> Result<(), StoreError> {
        for (copy, bits) in Copy::BOTH.into_iter().zip(later) {
            for key in Key::all().filter(|key| bits >> key.number() & 1 == 1) {
                self.logs.fetch(copy.other(), key).await;
                self.logs.append(copy.other(), copy, key).await?;
                if self.logs.compare(key).await != Verdict::Same {
                    return Err(StoreError::ReadBack);
                }
            }
        }
        Ok(())
    }

    /// Whether `copy` alone has all that makes a gate.
    async fn is_whole(&mut self, copy: Copy) -> bool {
        self.logs.fetch(copy, Key::GATE).await;
        let Some(whole) = decode::<Whole>(self.logs.slot(copy).value()) else { return false };
        for key in whole.census().keys() {
            self.logs.fetch(copy, key).await;
            if self.logs.slot(copy).value().is_empty() {
                return false;
            }
        }
        true
    }

    pub(super) async fn has(&mut self, copy: Copy, key: Key, stage: Stage) -> bool {
        self.logs.fetch(copy, key).await;
        decode::<Stage>(self.logs.slot(copy).value()) == Some(stage)
    }

    pub(super) async fn is_missing(&mut self, copy: Copy, key: Key) -> bool {
        self.logs.fetch(copy, key).await;
        self.logs.slot(copy).is_missing()
    }
}
