//! The two that decide, store and only then act: the coordinator and the resource; and what becomes of them when the
//! power is cut in between.

use super::config::{Config, Fault};
use super::message::{Message, Text};
use super::world::{Coordinator, Resource, World, at, id, key};
use fencegate::{
    Admitted, Duration, Epoch, Fence, FenceRecord, GrantDenied, GrantProof, GrantRecord, GrantTerms, Grantor, Limits,
    Proof, Stamp,
};

impl World {
    /// The coordinator decides on a request that it has to store something for, and stores it: at once where nothing
    /// could come in between.
    pub(crate) fn decide(&mut self, config: &Config, message: Message) {
        let now = self.coordinator.clock;
        let mut coordinator = self.coordinator.clone();
        let answer = Self::settle(config, &mut coordinator, message, now);
        match answer {
            Ok(answer) if self.left.cuts > 0 => {
                if config.fault == Some(Fault::AnswersBeforeStoring) {
                    self.reply(config, message, answer);
                }
                self.coordinator.storing = Some((message, now));
            }
            Ok(_) => self.store(config, message, now, true),
            Err(answer) => self.reply(config, message, answer),
        }
    }

    /// Decides at `decided`, stores, commits now: the answer, which is an error where nothing had to be stored.
    fn settle(config: &Config, coordinator: &mut Coordinator, message: Message, decided: u64) -> Result<Text, Text> {
        let Coordinator { grantor, medium, clock, .. } = coordinator;
        let (decided, now) = (at(decided), at(*clock));
        match message.text {
            Text::Acquire(request) => {
                let id = id(usize::from(message.who), message.instance);
                let granting = grantor.acquire(decided, id, config.schedule().ttl()).map_err(|denied| {
                    let wait = if let GrantDenied::Held { wait } = denied { wait } else { Duration::ZERO };
                    Text::Refused(request, wait.as_micros())
                })?;
                *medium = granting.record();
                let granted = grantor.commit(now, granting, GrantProof::read_back(*medium)).expect("it was stored");
                Ok(Text::Granted(request, granted.stamp))
            }
            Text::Release(asked) => {
                let stamp = match config.fault {
                    Some(Fault::ReleasesWhateverIsHeld) => grantor.current(now).unwrap_or(asked),
                    _ => asked,
                };
                let release = grantor.release(decided, stamp).map_err(|_| Text::Released(asked))?;
                *medium = release.record();
                grantor.commit_release(now, release, GrantProof::read_back(*medium)).expect("it was stored");
                Ok(Text::Released(asked))
            }
            _ => Err(message.text),
        }
    }

    pub(crate) fn store(&mut self, config: &Config, message: Message, decided: u64, answers: bool) {
        let Ok(answer) = Self::settle(config, &mut self.coordinator, message, decided) else { return };
        if let Text::Released(stamp) = answer {
            let mark = self.coordinator.medium.mark;
            self.seen.freed_another |= (mark.epoch.0, mark.token) != key(stamp);
        }
        if answers {
            self.reply(config, message, answer);
        }
    }

    /// The coordinator loses its power and boots from what it has stored.
    pub(crate) fn cut(&mut self, config: &Config) {
        self.left.cuts -= 1;
        let Coordinator { grantor, medium, clock, storing } = &mut self.coordinator;
        let record = match config.fault {
            Some(Fault::BootsFree) => {
                GrantRecord { ttl: Duration::ZERO, mark: FenceRecord { released: true, ..medium.mark } }
            }
            _ => *medium,
        };
        *grantor = Grantor::boot(Some(record), config.terms(), at(*clock)).expect("terms");
        *storing = None;
    }

    /// The resource decides on a stamp.
    pub(crate) fn admit(&mut self, config: &Config, message: Message, stamp: Stamp) {
        if config.fault == Some(Fault::NoFence) {
            return self.effect(config, message, stamp);
        }
        match self.resource.fence.admit(stamp) {
            Admitted::Current(pass) => self.effect(config, message, pass.stamp()),
            Admitted::Raise(_) if self.left.cuts > 0 => {
                if config.fault == Some(Fault::ActsBeforeStoring) {
                    self.effect(config, message, stamp);
                }
                self.resource.storing = Some(message);
            }
            Admitted::Raise(_) => self.store_raise(config, message, true),
            Admitted::Refused(_) => {
                let granted = self.coordinator.grantor.record().map(|record| (record.mark.epoch.0, record.mark.token));
                self.seen.locked_out |= granted == Some(key(stamp));
                self.reply(config, message, Text::Fenced(stamp));
            }
        }
    }

    pub(crate) fn store_raise(&mut self, config: &Config, message: Message, acts: bool) {
        let (Text::Raise(stamp) | Text::Write(stamp)) = message.text else { return };
        let Resource { fence, medium, .. } = &mut self.resource;
        let Admitted::Raise(raise) = fence.admit(stamp) else { return };
        *medium = raise.record();
        let pass = fence.commit(raise, Proof::read_back(*medium)).expect("it was stored");
        self.seen.highest = self.seen.highest.max(key(stamp));
        if acts {
            self.effect(config, message, pass.stamp());
        }
    }

    /// A command takes effect.
    fn effect(&mut self, config: &Config, message: Message, stamp: Stamp) {
        self.seen.stale_effect |= key(stamp) < self.seen.highest;
        self.seen.highest = self.seen.highest.max(key(stamp));
        if let Text::Raise(_) = message.text {
            self.reply(config, message, Text::Raised(stamp));
        }
    }

    pub(crate) fn resource_cut(&mut self) {
        self.left.cuts -= 1;
        self.resource.fence = Fence::new(self.resource.medium, Limits::default());
        self.resource.storing = None;
    }

    /// The coordinator is restored from its very first backup. The operator gives fence and coordinator an epoch above
    /// any ever used.
    pub(crate) fn restore(&mut self, config: &Config) {
        self.left.restores -= 1;
        let epoch = Epoch(self.resource.fence.record().epoch.0 + 1);
        let Coordinator { grantor, medium, clock, .. } = &mut self.coordinator;
        let now = at(*clock);
        *medium = GrantRecord::floor(Epoch(0), 0);
        *grantor = Grantor::boot(Some(*medium), config.terms(), now).expect("terms");
        if config.fault == Some(Fault::NoNewEpoch) {
            return;
        }
        let raised = self.resource.fence.raise_epoch(epoch, 0).expect("higher");
        self.resource.medium = raised.record();
        self.resource.fence.commit_epoch(raised, Proof::read_back(self.resource.medium)).expect("it was stored");
        let raised = grantor.raise_epoch(now, epoch, 0).expect("higher");
        *medium = raised.record();
        grantor.commit_epoch(now, raised, GrantProof::read_back(*medium)).expect("it was stored");
    }
}

impl Config {
    pub(crate) fn terms(&self) -> GrantTerms {
        GrantTerms {
            drift: fencegate::Drift::from_ppb(self.coordinator_drift_ppb),
            lock_delay: Duration::from_micros(self.lock_delay),
            longest_ttl: Duration::from_micros(self.ttl),
            epoch_jump: fencegate::Limits::EPOCH_JUMP,
        }
    }
}
