//! What the gate says.

use super::{Asker, Denied, Gate};
use crate::FIRMWARE;
use crate::challenger::Used;
use crate::channel::Channel;
use crate::memory::Life;
use crate::pending::Step;
use fencegate::{Duration, Epoch, FenceRecord, Instant};
use fencegate_wire::{
    Answer, Challenge, ChannelStatus, Fault, GateStatus, Header, Reason, Refused, Reply, Role, Tag, seal,
};

impl Gate {
    pub(super) fn status(&self) -> GateStatus {
        // What is latched and not stored would be forgotten: that is lost storage too.
        let lost = self.life == Life::Lost || self.unsure || self.channels.iter().any(Channel::is_lost);
        GateStatus {
            firmware: FIRMWARE,
            boots: self.challenger.boot(),
            channels: u8::try_from(self.channels.len()).unwrap_or(u8::MAX),
            mended: self.mended,
            fault: (self.fault).or(lost.then_some(Fault::Storage)).or(self.inputs.inhibit.then_some(Fault::Inhibited)),
        }
    }

    pub(super) fn channel_status(&self, now: Instant, number: u8) -> Result<ChannelStatus, Reason> {
        let n = usize::from(number);
        let channel = self.channels.get(n).ok_or(Reason::BadChannel)?;
        let (state, fault) = channel.state(self.fault);
        let lines = self.lines.get(self.config.span(n)).unwrap_or_default();
        Ok(ChannelStatus {
            record: channel.record(),
            state,
            values: lines.iter().map(|line| line.value).collect(),
            window_left: channel.left(now),
            cause: channel.cause,
            fault,
        })
    }

    /// Uses a challenge up, and says where the channel stands now.
    pub(super) fn done(&mut self, now: Instant, header: &Header, number: u8, used: Used) -> Reply {
        if let Some(channel) = self.channels.get_mut(usize::from(number)) {
            let slot = if header.role == Role::Operator { &mut channel.operator } else { &mut channel.used };
            *slot = Some(used);
        }
        self.again(now, number)
    }

    /// Where the channel stands now: the answer to what was done, once or again.
    pub(super) fn again(&self, now: Instant, number: u8) -> Reply {
        let channel = self.channels.get(usize::from(number));
        Reply::Done {
            record: channel.map_or(FenceRecord::floor(Epoch(0), 0), Channel::record),
            window_left: channel.map_or(Duration::ZERO, |channel| channel.left(now)),
        }
    }

    /// Refuses, and will refuse an identical request again.
    pub(super) fn refuse_for_good(
        &mut self,
        now: Instant,
        asker: &Asker,
        (tag, challenge): (Tag, Option<Challenge>),
        channel: Option<u8>,
        denied: Denied,
    ) -> Step {
        // One that was never issued, or is too old, would be no good later either.
        if let Some(challenge) = challenge.filter(|c| self.is_good(*c, now))
            && let Some(older) = self.refusals.remember(asker.header.role, channel, tag, denied.reason, challenge)
        {
            self.challenger.void_to(older);
        }
        self.refuse(now, asker, channel, denied)
    }

    pub(super) fn refuse(&mut self, now: Instant, asker: &Asker, channel: Option<u8>, denied: Denied) -> Step {
        let Denied { reason, wait } = denied;
        let counter = &mut self.counters.reasons[reason as usize];
        *counter = counter.saturating_add(1);
        self.log.refuse(now, channel, reason);
        let by = channel.and_then(|number| self.channels.get(usize::from(number))).map(Channel::record);
        self.answer(now, asker, Reply::Refused(Refused { reason, by, wait }))
    }

    pub(super) fn answer(&mut self, now: Instant, asker: &Asker, reply: Reply) -> Step {
        let answer = Answer { challenge: self.challenger.issue(now), reply };
        seal(&asker.header.reply(), &asker.key, &answer).map_or(Step::Silent, |(frame, _)| Step::Answer(frame))
    }
}
