//! The gate as a state machine without I/O: frames and the time go in, answers, outputs and records to store come out.
//!
//! A request passes these stations in this order; the first that stops it names the reason: channel, role, authority,
//! range, storage, fence, freshness, window, fault, budget, and whether a store now could delay another channel. What
//! raises, releases or moves an epoch leaves as a [`Pending`](crate::Pending) to be stored, and comes back with proof.

use crate::challenger::Challenger;
use crate::channel::Channel;
use crate::memory::{Board, Memory, Remembered};
use crate::pending::{Change, Drive, Pending, Step};
use crate::{DOMAIN, FIRMWARE};
use fencegate::{
    Admitted, Budget, Deadline, Duration, Epoch, Fence, FenceRecord, Instant, Limits, Monotonic, Pass, Proof, Stamp,
    Token,
};
use fencegate_wire::{
    Answer, Authority, Challenge, Counters, Fault, GateStatus, Header, MAX_CHANNELS, Provisioning, Reason, Refused,
    Reply, Request, Role, Sealed, Tag, Unverified, Values, seal,
};

/// For how long a store that was refused as `busy` has the right of way: its host asks again within that.
const WANTED: Duration = Duration::from_secs(1);

/// A provisioned gate.
#[derive(Debug)]
pub struct Gate {
    provisioning: Provisioning,
    board: Board,
    storable: bool,
    /// Until when a store that was refused as `busy` is waited for.
    store_wanted: Option<Deadline>,
    channels: heapless::Vec<Channel, MAX_CHANNELS>,
    challenger: Challenger,
    clock: Monotonic,
    budget: Budget,
    counters: Counters,
    fault: Option<Fault>,
}

/// A request whose sender is proven, and when it came.
struct Asked {
    now: Instant,
    header: Header,
    tag: Tag,
    challenge: Option<Challenge>,
}

impl Gate {
    /// The gate at boot: every channel safe.
    pub fn new(provisioning: Provisioning, memory: &Memory, board: Board, now: Instant) -> Self {
        let channels = (provisioning.channels.iter().enumerate())
            .map(|(i, config)| {
                let nothing = Remembered::Lost(FenceRecord::floor(config.epoch, config.floor));
                Channel::new(config.clone(), memory.records.get(i).copied().unwrap_or(nothing))
            })
            .collect();
        let budget = Budget::full(provisioning.raises, now);
        let mut clock = Monotonic::new();
        let fault = clock.read(now).err().map(|_| Fault::Clock);
        let challenger = Challenger::new(memory.boots);
        Self {
            provisioning,
            board,
            storable: memory.storable,
            store_wanted: None,
            channels,
            challenger,
            clock,
            budget,
            counters: Counters::default(),
            fault,
        }
    }

    /// Lets go of every channel whose window is over at `now`, and says when to call again at the latest.
    pub fn poll(&mut self, now: Instant) -> Option<Instant> {
        if self.clock.read(now).is_err() {
            self.fault = Some(Fault::Clock);
        }
        for channel in &mut self.channels {
            if self.fault.is_some() {
                channel.let_go();
            }
            channel.expire(now);
        }
        self.channels.iter().filter_map(Channel::deadline).min()
    }

    /// What the outputs are to be set to, in their order on the board.
    pub fn outputs(&self) -> impl Iterator<Item = i32> + '_ {
        self.channels.iter().flat_map(Channel::values)
    }

    /// L: how long after a deadline an output may still be driven.
    pub const fn lateness(&self) -> Duration {
        self.provisioning.lateness
    }

    /// Counts what was no frame.
    pub const fn noise(&mut self) {
        self.counters.noise = self.counters.noise.saturating_add(1);
    }

    /// Takes a stuffed frame off the line. Call [`Self::poll`] before, and again after.
    pub fn receive(&mut self, now: Instant, frame: &mut [u8]) -> Step {
        let Ok(unverified) = Unverified::read(frame) else {
            self.noise();
            return Step::Silent;
        };
        let claim = *unverified.claim();
        let ours = !claim.answer && claim.gate == self.provisioning.gate && claim.key_id == 0;
        let key = ours.then(|| self.provisioning.keys.base(claim.role).directions(DOMAIN).request);
        let Some(verified) = key.and_then(|key| unverified.verify(&key)) else {
            self.counters.forged = self.counters.forged.saturating_add(1);
            return Step::Silent;
        };
        let (header, tag) = (*verified.header(), verified.tag());
        // What this version cannot read carries some value out of the range that it knows.
        let Some(Sealed { challenge, request }) = verified.body() else {
            return self.refuse(now, &header, None, Reason::Range);
        };
        let asked = Asked { now, header, tag, challenge };
        let channel = channel_of(&request);
        let answered = channel.and_then(|n| self.channels.get(usize::from(n))).and_then(|c| c.answered(tag));
        let decided = match (answered, channel) {
            // The identical request is answered again and never done again, nor done at last where it was refused.
            (Some(Ok(())), Some(number)) => Ok(Decided::Reply(self.again(now, number))),
            (Some(Err(reason)), _) => Err(reason),
            _ => self.decide(&asked, request),
        };
        match decided {
            Ok(Decided::Reply(reply)) => self.answer(now, &header, reply),
            Ok(Decided::Store(pending)) => Step::Store(pending),
            Err(reason) => self.refuse_for_good(now, &header, tag, channel, reason),
        }
    }

    /// Takes a change back with the proof that it is stored, or without where storing failed.
    pub fn stored(&mut self, now: Instant, pending: Pending, proof: Option<Proof>) -> Step {
        let Pending { channel, change, header, tag, challenge } = pending;
        let decision = if let Some(proof) = proof {
            self.settle(now, channel, change, proof)
        } else {
            let last = self.challenger.last();
            if let Some(channel) = self.channels.get_mut(usize::from(channel)) {
                channel.lose(last);
            }
            Err(Reason::Storage)
        };
        match decision {
            Ok(()) => {
                let reply = self.done(now, channel, tag, challenge);
                self.answer(now, &header, reply)
            }
            Err(reason) => self.refuse_for_good(now, &header, tag, Some(channel), reason),
        }
    }

    fn settle(&mut self, now: Instant, channel: u8, change: Change, proof: Proof) -> Result<(), Reason> {
        let faulty = self.fault.is_some();
        let channel = self.channels.get_mut(usize::from(channel)).ok_or(Reason::BadChannel)?;
        let limits = channel.config.limits();
        if let Change::Restore(_) = change {
            channel.restore(Fence::from_proof(proof, limits));
            return Ok(());
        }
        let fence = channel.fence_mut().ok_or(Reason::Storage)?;
        match change {
            Change::Raise(raise, drive) => {
                let pass = fence.commit(raise, proof).map_err(|_| Reason::Storage)?;
                match drive {
                    Some(_) if faulty => Err(Reason::Fault),
                    Some(drive) => act(channel, now, pass, drive),
                    None => Ok(()),
                }
            }
            Change::Release(release) => fence.commit_release(release, proof).map_err(|_| Reason::Storage),
            Change::Epoch(epoch) => fence.commit_epoch(epoch, proof).map_err(|_| Reason::Storage),
            Change::Restore(_) => Ok(()),
        }
    }

    fn decide(&mut self, asked: &Asked, request: Request) -> Result<Decided, Reason> {
        let reply = match request {
            Request::Challenge => Reply::Challenge,
            Request::Status => Reply::Status(GateStatus {
                firmware: FIRMWARE,
                boots: self.challenger.boot(),
                channels: u8::try_from(self.channels.len()).unwrap_or(u8::MAX),
                fault: self.fault.or(self.channels.iter().any(Channel::is_lost).then_some(Fault::Storage)),
            }),
            Request::Counters => Reply::Counters(self.counters),
            Request::Channel { channel } => {
                let channel = self.channels.get(usize::from(channel)).ok_or(Reason::BadChannel)?;
                Reply::Channel(channel.status(asked.now, self.fault))
            }
            Request::Raise { channel, epoch, token } => return self.raise(asked, channel, epoch, token, None),
            Request::Drive { channel, epoch, token, window, values } => {
                return self.raise(asked, channel, epoch, token, Some((window, values)));
            }
            Request::Release { channel, epoch, token } => return self.release(asked, channel, epoch, token),
            Request::Epoch { channel, epoch, floor } => return self.epoch(asked, channel, epoch, floor),
            // A gate that is one already is provisioned anew only with somebody beside it.
            Request::Provision(_) if asked.header.role == Role::Operator => return Err(Reason::Presence),
            Request::Provision(_) => return Err(Reason::Role),
        };
        Ok(Decided::Reply(reply))
    }

    /// A raise, and a drive with what it wants.
    fn raise(
        &mut self,
        asked: &Asked,
        number: u8,
        epoch: Epoch,
        token: Token,
        drive: Option<(Duration, Values)>,
    ) -> Result<Decided, Reason> {
        let stamp = self.stamp(asked, number, epoch, token)?;
        let channel = self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)?;
        if drive.as_ref().is_some_and(|(_, values)| !channel.config.accepts(values)) {
            return Err(Reason::Range);
        }
        let admitted = match channel.fence().ok_or(Reason::Storage)?.admit(stamp) {
            Admitted::Refused(refused) => return Err(refused.reason.into()),
            admitted => admitted,
        };
        let challenge = self.fresh(asked, number, matches!(admitted, Admitted::Current(_)))?;
        let drive = match drive {
            Some((window, values)) => Some(self.drive(asked.now, number, challenge, window, values)?),
            None => None,
        };
        self.healthy()?;
        match admitted {
            Admitted::Current(pass) => {
                if let Some(drive) = drive {
                    self.leaves_room_to_store(asked.now, &drive)?;
                    let channel = self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)?;
                    act(channel, asked.now, pass, drive)?;
                }
                Ok(Decided::Reply(self.done(asked.now, number, asked.tag, challenge)))
            }
            Admitted::Raise(raise) => {
                if !self.budget.allows(asked.now) {
                    return Err(Reason::Rate);
                }
                self.not_busy(asked.now, Some(number))?;
                self.budget.spend();
                self.let_go(number);
                Ok(pending(asked, number, challenge, Change::Raise(raise, drive)))
            }
            Admitted::Refused(refused) => Err(refused.reason.into()),
        }
    }

    fn release(&mut self, asked: &Asked, number: u8, epoch: Epoch, token: Token) -> Result<Decided, Reason> {
        let stamp = self.stamp(asked, number, epoch, token)?;
        let channel = self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)?;
        let fence = channel.fence().ok_or(Reason::Storage)?;
        let release = fence.release(stamp).map_err(|refused| Reason::from(refused.reason))?;
        let current = fence.current() == Some(stamp);
        let challenge = self.fresh(asked, number, current)?;
        if current {
            // Safe never waits: the outputs go at once, whatever becomes of the record.
            self.let_go(number);
            self.not_busy(asked.now, None)?;
        } else {
            // A stamp that never raised is raised and spent in one; until then the outputs are another holder's.
            if !self.budget.allows(asked.now) {
                return Err(Reason::Rate);
            }
            self.not_busy(asked.now, Some(number))?;
            self.budget.spend();
            self.let_go(number);
        }
        Ok(pending(asked, number, challenge, Change::Release(release)))
    }

    fn epoch(&mut self, asked: &Asked, number: u8, epoch: Epoch, floor: u64) -> Result<Decided, Reason> {
        let channel = self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)?;
        if asked.header.role != Role::Operator {
            return Err(Reason::Role);
        }
        // Above such a floor no token could follow.
        if floor >= Limits::FIRST_TOKEN - 1 {
            return Err(Reason::Range);
        }
        let seen = channel.record().epoch;
        let change = match channel.fence() {
            Some(fence) => Change::Epoch(fence.raise_epoch(epoch, floor).map_err(|r| Reason::from(r.reason))?),
            None if !self.storable || epoch == Epoch(0) => return Err(Reason::Storage),
            None if epoch <= seen => return Err(Reason::Stale),
            None => Change::Restore(FenceRecord::floor(epoch, floor)),
        };
        // Where the fence is lost, an epoch that was set before the loss would be taken again.
        let challenge = self.fresh(asked, number, matches!(change, Change::Restore(_)))?;
        self.let_go(number);
        self.not_busy(asked.now, None)?;
        Ok(pending(asked, number, challenge, change))
    }

    /// The stamp of a holder's request, once channel, role and authority are right.
    fn stamp(&self, asked: &Asked, number: u8, epoch: Epoch, token: Token) -> Result<Stamp, Reason> {
        let channel = self.channels.get(usize::from(number)).ok_or(Reason::BadChannel)?;
        let Role::Holder(holder) = asked.header.role else { return Err(Reason::Role) };
        let granted = channel.record();
        if channel.config.authority == Authority::Own && (epoch, token.get()) > (granted.epoch, granted.token) {
            return Err(Reason::Authority);
        }
        Ok(Stamp { epoch, token, holder })
    }

    /// The request's challenge, if it is of this boot, younger than the longest window, and not yet used under this
    /// stamp (`same_stamp`; a new stamp begins anew).
    fn fresh(&self, asked: &Asked, number: u8, same_stamp: bool) -> Result<Challenge, Reason> {
        let channel = self.channels.get(usize::from(number)).ok_or(Reason::BadChannel)?;
        asked
            .challenge
            .filter(|c| self.challenger.is_fresh(*c, asked.now, self.provisioning.longest_window))
            .filter(|c| !same_stamp || channel.is_unused(*c))
            .ok_or(Reason::Replay)
    }

    /// A drive's deadline, counted from when its challenge was issued.
    fn drive(
        &self,
        now: Instant,
        number: u8,
        challenge: Challenge,
        window: Duration,
        values: Values,
    ) -> Result<Drive, Reason> {
        let channel = self.channels.get(usize::from(number)).ok_or(Reason::BadChannel)?;
        let left = self.provisioning.timing(&channel.config).window(window).ok().flatten();
        left.and_then(|left| Deadline::after(Instant::from_micros(challenge.tick), left))
            .filter(|deadline| !deadline.is_over(now))
            .map(|deadline| Drive { deadline, values })
            .ok_or(Reason::Expired)
    }

    const fn healthy(&self) -> Result<(), Reason> {
        if self.fault.is_some() { Err(Reason::Fault) } else { Ok(()) }
    }

    /// No store may begin that could outlast the window of a driven channel, other than `own`, which lets go first.
    fn not_busy(&mut self, now: Instant, own: Option<u8>) -> Result<(), Reason> {
        let busy = (self.channels.iter().enumerate())
            .filter(|(i, _)| Some(*i) != own.map(usize::from))
            .any(|(_, channel)| channel.deadline().is_some() && channel.left(now) <= self.board.worst_store);
        self.store_wanted = if busy { Deadline::after(now, WANTED) } else { None };
        if busy { Err(Reason::Busy) } else { Ok(()) }
    }

    /// While a store waits for its turn, no drive is taken whose window is as short as a store: a holder that drives so
    /// again and again would keep the gate busy for ever, for the operator too.
    fn leaves_room_to_store(&self, now: Instant, drive: &Drive) -> Result<(), Reason> {
        let wanted = self.store_wanted.is_some_and(|until| !until.is_over(now));
        if wanted && drive.deadline.left(now) <= self.board.worst_store { Err(Reason::Busy) } else { Ok(()) }
    }

    fn let_go(&mut self, number: u8) {
        if let Some(channel) = self.channels.get_mut(usize::from(number)) {
            channel.let_go();
        }
    }

    fn done(&mut self, now: Instant, number: u8, tag: Tag, challenge: Challenge) -> Reply {
        if let Some(channel) = self.channels.get_mut(usize::from(number)) {
            channel.use_up(tag, challenge);
        }
        self.again(now, number)
    }

    /// Where the channel stands now: the answer to what was done, once or again.
    fn again(&self, now: Instant, number: u8) -> Reply {
        let channel = self.channels.get(usize::from(number));
        Reply::Done {
            record: channel.map_or(FenceRecord::floor(Epoch(0), 0), Channel::record),
            window_left: channel.map_or(Duration::ZERO, |channel| channel.left(now)),
        }
    }

    /// Refuses, and will refuse an identical request again.
    fn refuse_for_good(
        &mut self,
        now: Instant,
        header: &Header,
        tag: Tag,
        channel: Option<u8>,
        reason: Reason,
    ) -> Step {
        if let Some(channel) = channel.and_then(|number| self.channels.get_mut(usize::from(number))) {
            channel.refuse(tag, reason);
        }
        self.refuse(now, header, channel, reason)
    }

    fn refuse(&mut self, now: Instant, header: &Header, channel: Option<u8>, reason: Reason) -> Step {
        count(&mut self.counters, reason);
        let by = channel.and_then(|number| self.channels.get(usize::from(number))).map(Channel::record);
        self.answer(now, header, Reply::Refused(Refused { reason, by }))
    }

    fn answer(&mut self, now: Instant, header: &Header, reply: Reply) -> Step {
        let answer = Answer { challenge: self.challenger.issue(now), reply };
        let key = self.provisioning.keys.base(header.role).directions(DOMAIN).answer;
        seal(&header.reply(), &key, &answer).map_or(Step::Silent, |(frame, _)| Step::Answer(frame))
    }
}

enum Decided {
    Reply(Reply),
    Store(Pending),
}

fn pending(asked: &Asked, channel: u8, challenge: Challenge, change: Change) -> Decided {
    Decided::Store(Pending { channel, change, header: asked.header, tag: asked.tag, challenge })
}

/// The last station: the time, once more, and then the outputs.
fn act(channel: &mut Channel, now: Instant, pass: Pass, drive: Drive) -> Result<(), Reason> {
    let act = pass.act(now, drive.deadline).map_err(|_| Reason::Expired)?;
    channel.drive(act, drive.values);
    Ok(())
}

pub(crate) const fn count(counters: &mut Counters, reason: Reason) {
    let counter = &mut counters.reasons[reason as usize];
    *counter = counter.saturating_add(1);
}

const fn channel_of(request: &Request) -> Option<u8> {
    match request {
        Request::Challenge | Request::Status | Request::Counters | Request::Provision(_) => None,
        Request::Channel { channel }
        | Request::Raise { channel, .. }
        | Request::Drive { channel, .. }
        | Request::Release { channel, .. }
        | Request::Epoch { channel, .. } => Some(*channel),
    }
}

#[cfg(test)]
mod tests;
