//! How a provisioning is stored, and how it takes the place of another.

use core::cmp::Ordering;
use embedded_storage_async::nor_flash::NorFlash;
use fencegate::GrantRecord;
use fencegate_wire::{GateConfig, MAX_CHANNELS, MAX_GATE_OUTPUTS, Provisioning};
use serde::{Serialize, de::DeserializeOwned};

use super::copies::Loaded;
use super::record::{Census, Key, Mark, OVERHEAD, PIECE, Stage, Whole};
use super::{State, Store, StoreError};

impl<F: NorFlash> Store<F> {
    /// The generation in which a provisioning is staged: not the one in force.
    pub(super) const fn staged(&self) -> u8 {
        match self.state {
            State::Gate(census) => 1 - census.generation(),
            State::Blank | State::Closed => 0,
        }
    }

    /// Reads the channels and outputs that `census` counts; whether they are all there. (In place: the future of what
    /// returned a provisioning would hold it twice.)
    pub(super) async fn assemble(&mut self, census: Census, provisioning: &mut Provisioning) -> bool {
        for channel in 0..census.channels {
            let config = self.piece(Key::channel(census.generation(), channel)).await;
            if config.is_none_or(|config| provisioning.channels.push(config).is_err()) {
                return false;
            }
        }
        for output in 0..census.outputs {
            let config = self.piece(Key::output(census.generation(), output)).await;
            if config.is_none_or(|config| provisioning.outputs.push(config).is_err()) {
                return false;
            }
        }
        true
    }

    async fn piece<T: DeserializeOwned>(&mut self, key: Option<Key>) -> Option<T> {
        match self.load(key?).await {
            Loaded::Found(config) | Loaded::Unmended(config) => Some(config),
            Loaded::Never | Loaded::Lost(_) => None,
        }
    }

    /// Stores an output or a channel of the provisioning that is to come.
    pub(super) async fn stage_piece<T>(&mut self, key: Option<Key>, config: &T) -> Result<T, StoreError>
    where
        T: Serialize + DeserializeOwned,
    {
        let key = key.ok_or(StoreError::NoPlace)?;
        self.begin().await?;
        // Two values of one key that both look good could not be told apart if one copy lost the later.
        if !self.logs.is_gone(key).await {
            self.logs.remove(key).await?;
        }
        self.logs.a.fill(|bytes| super::record::encode(config, bytes.get_mut(..PIECE + OVERHEAD)?))?;
        self.store_filled(key).await
    }

    /// Puts the provisioning of which `config` is the whole in force.
    pub(super) async fn commit(&mut self, config: &GateConfig, channels: u8, outputs: u8) -> Result<Whole, StoreError> {
        if usize::from(channels) > MAX_CHANNELS || usize::from(outputs) > MAX_GATE_OUTPUTS {
            return Err(StoreError::Incomplete);
        }
        self.begin().await?;
        let old = if let State::Gate(old) = self.state { Some(old) } else { None };
        let had = old.map_or(0, |old| old.marks);
        let serial = old.map_or(Some(0), |old| old.serial.checked_add(1)).ok_or(StoreError::TooLong)?;
        let census = Census { serial, marks: had.max(channels), channels, outputs };
        self.stage_marks(census, config, had).await?;
        let whole = Whole { serial, marks: census.marks, channels, outputs, config: config.clone() };
        // Whatever comes of it, what is staged from now on is another provisioning.
        self.begun = false;
        let stored = self.store(Key::GATE, &whole).await?;
        if old.is_none() {
            // From here on no damage makes it a blank board. A cut before is as if this were still to come.
            let _ = self.store(Key::BOOTS, &0_u32).await;
        }
        self.state = State::Gate(census);
        Ok(stored)
    }

    /// Checks what is staged, and sees to it that every channel has a mark.
    async fn stage_marks(&mut self, census: Census, config: &GateConfig, had: u8) -> Result<(), StoreError> {
        let mut provisioning =
            Provisioning { gate: config.clone(), channels: heapless::Vec::new(), outputs: heapless::Vec::new() };
        if !self.assemble(census, &mut provisioning).await || provisioning.check().is_err() {
            return Err(StoreError::Incomplete);
        }
        for (channel, config) in (0..).zip(&provisioning.channels) {
            let key = Key::mark(channel).ok_or(StoreError::Incomplete)?;
            let first = GrantRecord::floor(config.epoch, config.floor);
            let raise = match self.load::<Mark>(key).await {
                Loaded::Never => channel >= had,
                Loaded::Found(Mark::Stands(mark)) => mark.mark.order(&first.mark) == Some(Ordering::Less),
                // What is lost stays lost: where it stood nobody knows, and the operator's epoch is the way out.
                Loaded::Found(Mark::Lost(_)) | Loaded::Unmended(_) | Loaded::Lost(_) => false,
            };
            if raise {
                self.store(key, &Mark::Stands(first)).await?;
            }
        }
        Ok(())
    }

    /// Gets ready for a provisioning: nothing of an earlier attempt can be taken for a part of it.
    async fn begin(&mut self) -> Result<(), StoreError> {
        if self.begun {
            return Ok(());
        }
        if !self.logs.has_room() {
            return Err(StoreError::Flash);
        }
        match self.state {
            State::Closed => return Err(StoreError::NoPlace),
            State::Blank => {
                self.store(Key::STAGE, &Stage::Underway).await?;
                self.logs.remove(Key::GATE).await?; // one that was torn could read as a whole one tomorrow
                self.clean().await?;
            }
            State::Gate(_) => {
                let clean = self.stage == Some(Stage::Done);
                self.stage = None;
                self.store(Key::STAGE, &Stage::Replacing).await?;
                if !clean {
                    self.clean().await?;
                }
            }
        }
        self.begun = true;
        Ok(())
    }

    /// Tidies up after a provisioning, whether it came into force or was left off.
    pub(super) async fn finish(&mut self) -> Result<(), StoreError> {
        if self.stage == Some(Stage::Done) {
            return Ok(());
        }
        self.clean().await?;
        self.store(Key::STAGE, &Stage::Done).await?;
        self.stage = Some(Stage::Done);
        Ok(())
    }

    /// Removes the outputs and channels of the generation that is not in force.
    async fn clean(&mut self) -> Result<(), StoreError> {
        if let State::Gate(_) = self.state {
            // First of all the whole that is in force once more: behind it, a later one that was torn stays behind it,
            // though it should read as a whole one tomorrow.
            if let Loaded::Found(whole) = self.load::<Whole>(Key::GATE).await {
                self.store(Key::GATE, &whole).await?;
            }
        }
        for key in Key::pieces(self.staged()) {
            if !self.logs.is_gone(key).await {
                self.logs.remove(key).await?;
            }
        }
        Ok(())
    }
}
