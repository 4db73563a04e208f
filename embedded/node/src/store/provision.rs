//! How a provisioning is stored, and how it takes the place of another.

use core::cmp::Ordering;
use embedded_storage_async::nor_flash::NorFlash;
use fencegate::{Duration, Epoch, GrantRecord};
use fencegate_wire::{ChannelConfig, GateConfig, MAX_CHANNELS, MAX_GATE_OUTPUTS, OutputConfig, Provisioning};
use serde::de::DeserializeOwned;

use super::copies::{Loaded, Verdict};
use super::log::Logs;
use super::record::{Census, Key, Kind, Mark, Stage};
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
        provisioning.channels.clear();
        provisioning.outputs.clear();
        for key in Key::pieces(census.generation()).filter(|key| census.has(*key)) {
            let verdict = self.logs.compare(key).await;
            if !self.logs.assemble(key, verdict, provisioning) {
                return false;
            }
        }
        provisioning.channels.len() == usize::from(census.channels)
            && provisioning.outputs.len() == usize::from(census.outputs)
    }

    /// Makes room for an output or a channel of the provisioning that is to come.
    pub(super) async fn vacate(&mut self, key: Key) -> Result<(), StoreError> {
        self.begin().await?;
        // Two values of one key that both look good could not be told apart if one copy lost the later.
        self.clear_key(key).await
    }

    /// Removes what is under a key, if anything is.
    async fn clear_key(&mut self, key: Key) -> Result<(), StoreError> {
        if self.logs.is_gone(key).await { Ok(()) } else { self.logs.remove(key).await }
    }

    /// Checks the provisioning of which `config` is the whole, and sees to it that every channel has a mark; what is to
    /// be stored for it to be in force.
    pub(super) async fn complete(
        &mut self,
        config: &GateConfig,
        channels: u8,
        outputs: u8,
    ) -> Result<Census, StoreError> {
        if usize::from(channels) > MAX_CHANNELS || usize::from(outputs) > MAX_GATE_OUTPUTS {
            return Err(StoreError::Incomplete);
        }
        self.begin().await?;
        let old = if let State::Gate(old) = self.state { Some(old) } else { None };
        let had = old.map_or(0, |old| old.marks);
        let serial = old.map_or(Some(0), |old| old.serial.checked_add(1)).ok_or(StoreError::TooLong)?;
        let census = Census { serial, marks: had.max(channels), channels, outputs };
        self.check(census, config).await?;
        // First what is refused: of that nothing is stored.
        for stores in [false, true] {
            for channel in 0..channels {
                let key = Key::mark(channel).ok_or(StoreError::Incomplete)?;
                let failed = |error| if stores { StoreError::Flash } else { error };
                let wanted = self.piece(Key::channel(census.generation(), channel)).await.map_err(failed)?;
                let ChannelConfig { epoch, floor, .. } = wanted;
                let is_new = old.is_none_or(|old| channel >= old.marks);
                let floor = GrantRecord::floor(epoch, floor);
                let mark = self.due(key, floor, config, old.is_none(), is_new).await.map_err(failed)?;
                let Some(mark) = mark else { continue };
                // Also where it is as it was: what a cut has left in one copy may be gone tomorrow.
                if stores {
                    self.logs.set(&Mark::Stands(mark))?;
                    self.logs.store(key).await?;
                }
            }
        }
        Ok(census)
    }

    /// Checks that what `census` counts is staged, and is a gate. (One piece after the other: the future of what had the whole
    /// provisioning would be the longest of all.)
    async fn check(&mut self, census: Census, config: &GateConfig) -> Result<(), StoreError> {
        config.check().map_err(|_| StoreError::Incomplete)?;
        let mut output = 0;
        for channel in 0..census.channels {
            let channel = self.piece::<ChannelConfig>(Key::channel(census.generation(), channel)).await?;
            let mut action = Duration::ZERO;
            for _ in 0..channel.outputs {
                let own = self.piece::<OutputConfig>(Key::output(census.generation(), output)).await?;
                own.check().map_err(|_| StoreError::Incomplete)?;
                action = action.max(own.action.time());
                output += 1;
            }
            config.check_channel(&channel, action).map_err(|_| StoreError::Incomplete)?;
        }
        if census.channels > 0 && output == census.outputs { Ok(()) } else { Err(StoreError::Incomplete) }
    }

    /// An output or a channel as it is staged.
    async fn piece<T: DeserializeOwned>(&mut self, key: Option<Key>) -> Result<T, StoreError> {
        let verdict = self.logs.compare(key.ok_or(StoreError::Incomplete)?).await;
        self.logs.there(verdict).ok_or(StoreError::Incomplete)
    }

    /// Where a channel's mark has to stand for a provisioning to be in force; `None` where it is lost.
    async fn due(
        &mut self,
        key: Key,
        floor: GrantRecord,
        config: &GateConfig,
        new_gate: bool,
        new_channel: bool,
    ) -> Result<Option<GrantRecord>, StoreError> {
        // What a provisioning finds granted runs on: by this gate, by whoever gave the stamps of a channel whose tokens came
        // from outside, over outputs that were another channel's, or by the gate whose place a board takes. Nobody knows for
        // how long, but that it is not more than the longest window. Only on a new gate nothing is.
        let nothing = new_gate && floor == GrantRecord::floor(Epoch(0), 0);
        let unknown = if nothing { Duration::ZERO } else { config.longest_window };
        let verdict = self.logs.compare(key).await;
        Ok(Some(match self.logs.said::<Mark>(verdict) {
            Loaded::Never | Loaded::Lost(_) if new_channel => GrantRecord { ttl: unknown, ..floor },
            Loaded::Found(Mark::Stands(mark)) | Loaded::Unmended(Mark::Stands(mark)) => {
                let stands = mark.mark.order(&floor.mark) != Some(Ordering::Less);
                let leap = floor.mark.epoch.0.saturating_sub(mark.mark.epoch.0);
                if !stands && !new_channel && leap > config.epoch_jump {
                    return Err(StoreError::Incomplete);
                }
                GrantRecord { ttl: mark.ttl.max(unknown), mark: if stands { mark.mark } else { floor.mark } }
            }
            // What is lost stays lost: where it stood nobody knows, and the operator's epoch is the way out.
            Loaded::Never | Loaded::Found(Mark::Lost(_)) | Loaded::Unmended(Mark::Lost(_)) | Loaded::Lost(_) => {
                return Ok(None);
            }
        }))
    }

    /// Gets ready for a provisioning: nothing of an earlier attempt can be taken for a part of it.
    async fn begin(&mut self) -> Result<(), StoreError> {
        if self.begun {
            return Ok(());
        }
        if !self.logs.has_room() {
            return Err(StoreError::Flash);
        }
        let stage = match self.state {
            State::Closed => return Err(StoreError::NoPlace),
            State::Blank => Stage::Underway,
            State::Gate(_) => Stage::Replacing,
        };
        let clean = self.stage == Some(Stage::Done);
        self.stage = None;
        self.logs.forget(); // nothing is driven: there is time to look for everything as a boot does
        self.logs.set(&stage)?;
        self.logs.store(Key::STAGE).await?;
        if stage == Stage::Underway {
            self.logs.remove(Key::GATE).await?; // one that was torn could read as a whole one tomorrow
        }
        if !clean {
            self.clean().await?;
        }
        self.logs.learn().await; // this provisioning may come to nothing, and raises go on
        self.begun = true;
        Ok(())
    }

    /// Tidies up after a provisioning, whether it came into force or was left off.
    pub(super) async fn finish(&mut self) -> Result<(), StoreError> {
        if self.stage == Some(Stage::Done) {
            return Ok(());
        }
        self.clean().await?;
        self.logs.set(&Stage::Done)?;
        self.logs.store(Key::STAGE).await?;
        self.stage = Some(Stage::Done);
        Ok(())
    }

    /// Removes the outputs and channels of the generation that is not in force.
    async fn clean(&mut self) -> Result<(), StoreError> {
        if let State::Gate(_) = self.state {
            // First of all the whole that is in force once more: behind it, a later one that was torn stays behind it,
            // though it should read as a whole one tomorrow. It is in the slot of A as it was compared.
            if self.logs.compare(Key::GATE).await == Verdict::Same {
                self.logs.store(Key::GATE).await?;
            }
        }
        for key in Key::pieces(self.staged()) {
            self.clear_key(key).await?;
        }
        Ok(())
    }
}

impl<F> Logs<F> {
    /// Adds what was compared to a provisioning; whether it was there, and there was room.
    fn assemble(&self, key: Key, verdict: Verdict, provisioning: &mut Provisioning) -> bool {
        match key.kind() {
            Kind::Output => self.there(verdict).is_some_and(|output| provisioning.outputs.push(output).is_ok()),
            Kind::Channel => self.there(verdict).is_some_and(|channel| provisioning.channels.push(channel).is_ok()),
            _ => false,
        }
    }

    fn there<T: DeserializeOwned>(&self, verdict: Verdict) -> Option<T> {
        match self.said(verdict) {
            Loaded::Found(config) | Loaded::Unmended(config) => Some(config),
            Loaded::Never | Loaded::Lost(_) => None,
        }
    }
}
