//! What the operator asks: epochs, rearming, provisioning.

use super::{Asked, Asker, Decided, Denied, Gate, Guard, pending};
use crate::Stored;
use crate::challenger::Used;
use crate::memory::Life;
use crate::pending::{Change, Mark, Step};
use crate::store::StoreError;
use fencegate::{Duration, Epoch, Fence, FenceRecord, Instant, Limits};
use fencegate_wire::{
    Cause, Challenge, Fault, MAX_CHANNELS, MAX_GATE_OUTPUTS, Reason, Reply, Request, Role, Tag, What,
};

/// How old a rearm's challenge may be at the most, however long windows are. A person has looked at the machine before it,
/// and what they saw does not stay true for as long as a holder's command may wait: a cable that holds the frame back must
/// not have somebody's leave in store.
const REARM_WITHIN: Duration = Duration::from_secs(10);

impl Gate {
    pub(super) fn epoch(&mut self, asked: &Asked, number: u8, epoch: Epoch, floor: u64) -> Result<Decided, Denied> {
        let channel = self.channel(number)?;
        if asked.header.role != Role::Operator {
            return Err(Reason::Role.into());
        }
        // Above such a floor no token could follow.
        if floor >= Limits::FIRST_TOKEN - 1 {
            return Err(Reason::Range.into());
        }
        let lost = channel.is_lost();
        if lost && (!self.storable || epoch == Epoch(0)) {
            return Err(Reason::Storage.into());
        }
        if !lost {
            let fence = Fence::new(channel.record(), self.config.limits(usize::from(number)));
            let _ = fence.raise_epoch(epoch, floor).map_err(|refused| Reason::from(refused.reason))?;
        } else if epoch <= channel.record().epoch {
            return Err(Reason::Stale.into());
        }
        let challenge = self.fresh(asked, Some(number), channel.operator)?;
        let free = self.let_go(asked.now, number, Cause::Epoch);
        let free = free.and_then(|()| self.not_busy(asked.now, None));
        self.taken_over(asked.now, number, free)?;
        let mark = match &mut self.channel_mut(number)?.guard {
            Guard::Fence(fence) => {
                Mark::Epoch(fence.raise_epoch(epoch, floor).map_err(|refused| Reason::from(refused.reason))?)
            }
            Guard::Grantor(grantor) => Mark::GrantEpoch(grantor.raise_epoch(asked.now, epoch, floor)?),
            Guard::Lost => Mark::Restore(FenceRecord::floor(epoch, floor)),
        };
        Ok(pending(asked, challenge, Change::Mark(number, mark)))
    }

    /// Lets a channel be driven again. What was sealed before is not done after it.
    pub(super) fn rearm(&mut self, asked: &Asked, number: u8) -> Result<Decided, Denied> {
        let channel = self.channel(number)?;
        if asked.header.role != Role::Operator {
            return Err(Reason::Role.into());
        }
        if channel.is_lost() {
            return Err(Reason::Storage.into());
        }
        let challenge = self.fresh(asked, Some(number), channel.operator)?;
        let longest = self.config.gate.longest_window.min(REARM_WITHIN);
        if !channel.is_for(challenge) || !self.challenger.is_fresh(challenge, asked.now, longest) {
            return Err(Reason::Replay.into());
        }
        if self.fault.is_some() || self.inputs.inhibit || self.is_astray(usize::from(number), asked.now) {
            return Err(Reason::Fault.into());
        }
        if self.unsure || self.latched.fault(usize::from(number)).is_some() {
            // A reset after the answer must find it armed, and one before may find it either way.
            self.not_busy(asked.now, None)?;
            let rearmed = |(n, fault)| if n == usize::from(number) { None } else { fault };
            let faults = self.channels.iter().map(|channel| channel.fault).enumerate().map(rearmed);
            let latched = self.latched.next(faults).ok_or(Reason::Storage)?;
            self.channel_mut(number)?.rearming = true;
            return Ok(pending(asked, challenge, Change::Rearm(number, latched)));
        }
        self.arm(asked.now, number)?;
        let used = Used { tag: Some(asked.tag), challenge };
        Ok(Decided::Reply(self.done(asked.now, &asked.header, number, used)))
    }

    /// Takes a rearm that is stored, or why it is not.
    pub(super) fn rearmed(
        &mut self,
        now: Instant,
        asker: &Asker,
        number: u8,
        (tag, challenge): (Tag, Challenge),
        stored: Result<Stored, StoreError>,
    ) -> Step {
        let stored = self.latched(now, stored);
        let channel = self.channels.get_mut(usize::from(number));
        let rearming = channel.is_some_and(|channel| core::mem::take(&mut channel.rearming));
        let armed = match (stored, rearming && self.fault.is_none()) {
            (false, _) => Err(Reason::Storage),
            // Its cause was back meanwhile, and is latched once more.
            (true, false) => Err(Reason::Fault),
            (true, true) => self.arm(now, number),
        };
        match armed {
            Ok(()) => {
                let reply = self.done(now, &asker.header, number, Used { tag: Some(tag), challenge });
                self.answer(now, asker, reply)
            }
            Err(reason) => self.refuse_for_good(now, asker, (tag, Some(challenge)), Some(number), reason.into()),
        }
    }

    /// Ends a channel's fault.
    fn arm(&mut self, now: Instant, number: u8) -> Result<(), Reason> {
        if self.channel_mut(number)?.fault.take().is_some() {
            self.challenger.void();
            self.log.write(now, Some(number), What::Rearmed);
        }
        Ok(())
    }

    /// A piece of a provisioning: for the operator, and on a gate that is one already only with somebody beside it.
    pub(super) fn provision(&mut self, asked: &Asked, request: Request) -> Result<Decided, Denied> {
        if asked.header.role != Role::Operator {
            return Err(Reason::Role.into());
        }
        let outputs = self.board.outputs.min(MAX_GATE_OUTPUTS);
        let change = match request {
            Request::SetOutput { output, config } if usize::from(output) < outputs && config.check().is_ok() => {
                Change::Output(output, config)
            }
            Request::SetChannel { channel, config }
                if usize::from(channel) < MAX_CHANNELS && config.check().is_ok() =>
            {
                Change::Channel(channel, config)
            }
            Request::Provision { config, channels, outputs }
                if config.check().is_ok() && self.is_described(channels, outputs) =>
            {
                Change::Gate(config, channels, outputs)
            }
            _ => return Err(Reason::Range.into()),
        };
        if self.life == Life::Lost || !self.storable {
            return Err(Reason::Storage.into());
        }
        let challenge = self.fresh(asked, None, self.staged.used)?;
        self.not_busy(asked.now, None)?;
        // The first piece tidies up after an earlier attempt, and that is more than one store.
        if !matches!(change, Change::Gate(..)) && !self.is_safe() {
            return Err(Reason::Busy.into());
        }
        if self.life == Life::Gate && !self.inputs.presence {
            return Err(Reason::Presence.into());
        }
        if let Change::Gate(..) = change {
            for number in (0..).take(self.channels.len()) {
                self.let_go(asked.now, number, Cause::Released)?;
            }
        }
        Ok(pending(asked, challenge, change))
    }

    /// Whether each of so many channels and outputs has been described since the boot.
    fn is_described(&self, channels: u8, outputs: u8) -> bool {
        let all = |n: u8| 1_u32.checked_shl(u32::from(n)).map(|bit| bit - 1);
        let covers = |have: u32, n: u8| all(n).is_some_and(|all| n > 0 && have & all == all);
        covers(self.staged.channels.into(), channels) && covers(self.staged.outputs.into(), outputs)
    }

    /// Takes a piece of a provisioning that is stored, or why it is not.
    pub(super) fn staged(
        &mut self,
        now: Instant,
        asker: &Asker,
        used: Used,
        change: &Change,
        failed: Option<StoreError>,
    ) -> Step {
        match failed {
            None => {}
            // All of it together is nothing that a gate could work with.
            Some(StoreError::Incomplete) => return self.refuse(now, asker, None, Reason::Range.into()),
            Some(_) => {
                self.challenger.void();
                self.log.write(now, None, What::Fault { fault: Fault::Storage });
                let step = self.refuse(now, asker, None, Reason::Storage.into());
                return match (change, step) {
                    // Marks may have been raised in the flash already: what stands there is to be read anew.
                    (Change::Gate(..), Step::Answer(frame)) => Step::Restart(frame),
                    (_, step) => step,
                };
            }
        }
        match change {
            Change::Output(output, _) => self.staged.outputs |= 1 << (output & 15),
            Change::Channel(channel, _) => self.staged.channels |= 1 << (channel & 7),
            Change::Gate(..) | Change::Mark(..) | Change::Rearm(..) => {}
        }
        self.staged.used = Some(used);
        let whole = matches!(change, Change::Gate(..));
        if whole {
            self.log.write(now, None, What::Provisioned);
        }
        match self.answer(now, asker, Reply::Provisioned) {
            Step::Answer(frame) if whole => Step::Restart(frame),
            step => step,
        }
    }
}
