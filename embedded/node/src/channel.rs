//! One channel: what one stamp governs.

use crate::challenger::Used;
use crate::memory::Remembered;
use fencegate::{Act, Admitted, Deadline, Duration, Fence, FenceRecord, GrantTerms, Grantor, Instant, Limits, Stamp};
use fencegate_wire::{Authority, Cause, Challenge, ChannelConfig, ChannelState, Fault, Reason, Tag, Values};

/// Who says which stamp is in force.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    /// The fence, which remembers the highest stamp from outside.
    Fence(Fence),
    /// The channel's own authority; its storage may be lost.
    Grantor(Grantor),
    /// Nobody: the fence's storage was lost.
    Lost,
}

/// What a channel's outputs are doing. Only an [`Act`] drives them, and an act needs a stored stamp and an open window.
#[derive(Debug)]
enum Drive {
    /// Every output has its safe value.
    Safe,
    /// The holder's values, until the act's deadline.
    Driven { act: Act, values: Values },
    /// On their way from these values to their safe ones, until `done`.
    LettingGo { from: Values, since: Instant, done: Instant },
}

/// One channel of a gate.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) guard: Guard,
    /// Where a guard that is lost was last seen; it stood there or higher.
    seen: FenceRecord,
    drive: Drive,
    /// How long the longest of its safe actions takes.
    action: Duration,
    pub(crate) cause: Cause,
    /// What keeps it safe until the operator rearms it.
    pub(crate) fault: Option<Fault>,
    /// The last challenge that was issued before that began: a rearm under it, or an older one, was not for this fault.
    since: u64,
    /// Whether a contact of its outputs does not follow.
    astray: bool,
    /// Whether its rearm is being stored, and nothing has happened since that it would not be for.
    pub(crate) rearming: bool,
    /// Whether the end of the window that is running has been warned of.
    warned: bool,
    /// Until when something that was refused as busy has the right of way over who drives it.
    pub(crate) wanted: Option<Deadline>,
    /// The last request that was done under the stamp in force.
    pub(crate) used: Option<Used>,
    /// The operator's last request that was done.
    pub(crate) operator: Option<Used>,
}

impl Channel {
    /// A channel at boot, safe.
    pub(crate) fn new(
        config: &ChannelConfig,
        (terms, limits): (GrantTerms, Limits),
        action: Duration,
        remembered: Remembered,
        latched: Option<Fault>,
        now: Instant,
    ) -> Self {
        let (mark, seen) = match remembered {
            Remembered::Mark(mark) => (Some(mark), mark.mark),
            Remembered::Lost(seen) => (None, seen),
        };
        let guard = match (config.authority, mark) {
            (Authority::Outside, Some(mark)) => Guard::Fence(Fence::new(mark.mark, limits)),
            // Terms or a mark that no clock can count are none that this gate has stored.
            (Authority::Own, mark) => Grantor::boot(mark, terms, now).map_or(Guard::Lost, Guard::Grantor),
            (Authority::Outside, None) => Guard::Lost,
        };
        let (drive, cause) = (Drive::Safe, Cause::Boot);
        // A boot forgets whether a window ended: where that is to be looked at, it did.
        let fault = latched.or(config.rearm_after_window.then_some(Fault::Expired));
        let (wanted, used, operator) = (None, None, None);
        // What was latched in another boot has no challenge of this one before it.
        let (since, astray, rearming, warned) = (0, false, false, false);
        Self { guard, seen, drive, action, cause, fault, since, astray, rearming, warned, wanted, used, operator }
    }

    /// Whether its storage was lost.
    pub(crate) const fn is_lost(&self) -> bool {
        match &self.guard {
            Guard::Fence(_) => false,
            Guard::Grantor(grantor) => grantor.record().is_none(),
            Guard::Lost => true,
        }
    }

    /// The demonstration's fence forgets everything before each request: this is the check left out.
    #[cfg(feature = "demonstration")]
    pub(crate) fn forget(&mut self, config: &ChannelConfig, limits: Limits) {
        if let Guard::Fence(_) = self.guard {
            self.guard = Guard::Fence(Fence::new(FenceRecord::floor(config.epoch, config.floor), limits));
        }
    }

    /// Where the fence stands; where storage was lost, what is left of it.
    pub(crate) fn record(&self) -> FenceRecord {
        match &self.guard {
            Guard::Fence(fence) => fence.record(),
            Guard::Grantor(grantor) => grantor.record().map_or(self.seen, |record| record.mark),
            Guard::Lost => self.seen,
        }
    }

    /// Decides on a stamp.
    pub(crate) fn admit(&self, stamp: Stamp) -> Result<Admitted, Reason> {
        let admitted = match &self.guard {
            Guard::Fence(fence) => fence.admit(stamp),
            // What it granted is in force or is not; nothing raises it from outside, and no leap is to be looked at.
            Guard::Grantor(grantor) => {
                let mark = grantor.record().ok_or(Reason::Storage)?.mark;
                Fence::new(mark, Limits::default()).admit(stamp)
            }
            Guard::Lost => return Err(Reason::Storage),
        };
        match admitted {
            Admitted::Refused(refused) => Err(refused.reason.into()),
            Admitted::Raise(_) if matches!(self.guard, Guard::Grantor(_)) => Err(Reason::Authority),
            admitted => Ok(admitted),
        }
    }

    /// Until when a lease of the channel's own authority runs; `None` where its stamps come from outside.
    pub(crate) const fn lease(&self) -> Option<Deadline> {
        match &self.guard {
            Guard::Grantor(grantor) => Some(grantor.ends()),
            _ => None,
        }
    }

    /// The TTL with which that was granted.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        match &self.guard {
            Guard::Grantor(grantor) => grantor.record().map(|record| record.ttl),
            _ => None,
        }
    }

    /// For how long a lease of the channel's own authority keeps it from being granted anew.
    pub(crate) const fn wait(&self, now: Instant) -> Duration {
        match &self.guard {
            Guard::Grantor(grantor) => grantor.wait(now),
            _ => Duration::ZERO,
        }
    }

    /// Takes a fence whose record the operator has just stored anew.
    pub(crate) fn restore(&mut self, proof: fencegate::Proof, limits: Limits) {
        self.guard = Guard::Fence(Fence::from_proof(proof, limits));
    }

    /// Storage can no longer be trusted: safe, until the operator sets an epoch.
    pub(crate) fn lose(&mut self, now: Instant) {
        self.let_go(now, Cause::Fault);
        self.seen = self.record();
        match &mut self.guard {
            Guard::Grantor(grantor) => grantor.lose_storage(),
            guard => *guard = Guard::Lost,
        }
        (self.used, self.operator) = (None, None);
    }

    /// Drives the outputs.
    pub(crate) fn drive(&mut self, act: Act, values: Values) {
        self.warned = false;
        self.drive = Drive::Driven { act, values };
    }

    /// Lets go of the outputs.
    pub(crate) fn let_go(&mut self, now: Instant, cause: Cause) {
        if let Drive::Driven { values, .. } = &self.drive {
            self.cause = cause;
            self.drive = match now.checked_add(self.action) {
                Some(done) if done > now => Drive::LettingGo { from: values.clone(), since: now, done },
                _ => Drive::Safe,
            };
        }
    }

    /// Takes a fault, which holds it until it is rearmed; `last` is the last challenge that was issued. One that holds it
    /// already does not begin anew.
    pub(crate) fn hold(&mut self, fault: Fault, last: u64) {
        if self.fault.replace(fault) != Some(fault) {
            self.since = last;
        }
    }

    /// Takes whether a contact of its outputs does not follow. Once all of them do, whatever rearm was asked for before was for
    /// less than it has had since.
    pub(crate) const fn takes_contacts(&mut self, astray: bool, last: u64) {
        if self.astray && !astray {
            self.since = last;
        }
        self.astray = astray;
        self.rearming &= !astray;
    }

    /// Whether a rearm under `challenge` was meant for what holds it.
    pub(crate) const fn is_for(&self, challenge: Challenge) -> bool {
        challenge.tick > self.since
    }

    /// Sets every output to its safe value, whatever the way there: the clock cannot be trusted.
    pub(crate) fn drop(&mut self) {
        if !matches!(self.drive, Drive::Safe) {
            self.cause = Cause::Fault;
            self.drive = Drive::Safe;
        }
    }

    /// Lets go if the window is over at `now`; whether it was that.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        match &self.drive {
            Drive::Driven { act, .. } if act.deadline().is_over(now) => {
                // The way to the safe state begins when the window ended, however late this call is.
                let end = act.deadline().instant();
                self.let_go(end, Cause::Window);
                self.arrive(now);
                true
            }
            _ => {
                self.arrive(now);
                false
            }
        }
    }

    fn arrive(&mut self, now: Instant) {
        if let Drive::LettingGo { done, .. } = self.drive
            && now >= done
        {
            self.drive = Drive::Safe;
        }
    }

    /// Whether the window's end is as near as `before`, for the first time.
    pub(crate) fn warn(&mut self, now: Instant, before: Duration) -> bool {
        let near = self.is_driven() && !before.is_zero() && self.left(now) <= before;
        near && !core::mem::replace(&mut self.warned, near)
    }

    /// When the warning of the window's end is due.
    pub(crate) fn warning(&self, before: Duration) -> Option<Instant> {
        match &self.drive {
            Drive::Driven { act, .. } if !self.warned && !before.is_zero() => {
                Some(Instant::from_micros(act.deadline().instant().as_micros().saturating_sub(before.as_micros())))
            }
            _ => None,
        }
    }

    /// By when the outputs let go, or have their safe values; `None` where they have them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.drive {
            Drive::Safe => None,
            Drive::Driven { act, .. } => Some(act.deadline().instant()),
            Drive::LettingGo { done, .. } => Some(*done),
        }
    }

    pub(crate) const fn is_driven(&self) -> bool {
        matches!(self.drive, Drive::Driven { .. })
    }

    /// Whether the outputs are on their way to their safe values.
    pub(crate) const fn is_letting_go(&self) -> bool {
        matches!(self.drive, Drive::LettingGo { .. })
    }

    /// What an output is to be set to: its value from the holder, the one it comes from and since when, or its safe one.
    pub(crate) fn wanted(&self, output: usize) -> Wanted {
        match &self.drive {
            Drive::Safe => Wanted::Safe,
            Drive::Driven { values, .. } => values.get(output).map_or(Wanted::Safe, |value| Wanted::Value(*value)),
            Drive::LettingGo { from, since, .. } => {
                from.get(output).map_or(Wanted::Safe, |from| Wanted::From(*from, *since))
            }
        }
    }

    /// What is left of the window at `now`.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        match &self.drive {
            Drive::Driven { act, .. } => act.left(now),
            Drive::Safe | Drive::LettingGo { .. } => Duration::ZERO,
        }
    }

    /// Whether the request with this tag is the last that was done.
    pub(crate) fn has_done(&self, tag: Tag) -> bool {
        [self.used, self.operator].iter().flatten().any(|used| used.tag == Some(tag))
    }

    /// Whether it is driven, and what keeps it from being.
    pub(crate) fn state(&self, gate: Option<Fault>) -> (ChannelState, Option<Fault>) {
        let fault = gate.or(self.is_lost().then_some(Fault::Storage)).or(self.fault);
        match (&self.drive, fault) {
            (_, Some(_)) => (ChannelState::Fault, fault),
            // On its way it is not safe yet.
            (Drive::Driven { .. } | Drive::LettingGo { .. }, None) => (ChannelState::Driven, None),
            (Drive::Safe, None) => (ChannelState::Safe, None),
        }
    }
}

/// What an output is to be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Its safe value.
    Safe,
    /// The holder's.
    Value(i32),
    /// On its way to the safe value: from this one, since then.
    From(i32, Instant),
}

/// Whether `challenge` is newer than the last one used.
pub(crate) fn is_unused(used: Option<Used>, challenge: Challenge) -> bool {
    used.is_none_or(|used| challenge > used.challenge)
}
