//! What a holder asks under its stamp: raise, drive, release.

use super::{Asked, Decided, Denied, Gate, Guard, pending};
use crate::Stored;
use crate::channel::Channel;
use crate::pending::{Change, Drive, Mark};
use fencegate::{Admitted, Deadline, Duration, Epoch, Instant, Pass, Stamp, Token};
use fencegate_wire::{Authority, Cause, Challenge, Reason, Role, Values, What};

/// How soon a host that was refused as `busy` asks again, with room for the line.
const AGAIN: Duration = Duration::from_millis(100);

impl Gate {
    /// A raise, and a drive with what it wants.
    pub(super) fn raise(
        &mut self,
        asked: &Asked,
        number: u8,
        epoch: Epoch,
        token: Token,
        drive: Option<(Duration, Values)>,
    ) -> Result<Decided, Denied> {
        let stamp = self.stamp(asked, number, epoch, token)?;
        if drive.as_ref().is_some_and(|(_, values)| !self.config.accepts(usize::from(number), values)) {
            return Err(Reason::Range.into());
        }
        let channel = self.channel(number)?;
        let admitted = channel.admit(stamp)?;
        // A new stamp begins anew.
        let used = if matches!(admitted, Admitted::Current(_)) { channel.used } else { None };
        let challenge = self.fresh(asked, Some(number), used)?;
        // The gate's own lease may be over although nobody else has it yet.
        if self.channel(number)?.lease().is_some_and(|lease| lease.is_over(asked.now)) {
            return Err(Reason::Expired.into());
        }
        let drive = match drive {
            Some((window, values)) => {
                let drive = self.drive(asked.now, number, challenge, window, values)?;
                self.armed(number)?;
                if let Admitted::Current(_) = admitted {
                    self.has_had_its_time(asked.now, number, &drive)?;
                }
                Some(drive)
            }
            None if self.fault.is_some() => return Err(Reason::Fault.into()),
            None => None,
        };
        match admitted {
            Admitted::Current(pass) => {
                if let Some(drive) = drive {
                    self.has_room(asked.now, number, &drive)?;
                    self.act(asked.now, number, pass, drive)?;
                }
                let used = crate::challenger::Used { tag: Some(asked.tag), challenge };
                Ok(Decided::Reply(self.done(asked.now, &asked.header, number, used)))
            }
            Admitted::Raise(raise) => {
                let free = self.may_store(asked.now, number);
                let free = free.and_then(|()| self.let_go(asked.now, number, Cause::Raised));
                self.taken_over(asked.now, number, free)?;
                self.budget.spend();
                Ok(pending(asked, challenge, Change::Mark(number, Mark::Raise(raise, drive))))
            }
            Admitted::Refused(refused) => Err(Reason::from(refused.reason).into()),
        }
    }

    pub(super) fn release(&mut self, asked: &Asked, number: u8, epoch: Epoch, token: Token) -> Result<Decided, Denied> {
        let stamp = self.stamp(asked, number, epoch, token)?;
        let channel = self.channel(number)?;
        let current = matches!(channel.admit(stamp)?, Admitted::Current(_));
        let used = if current { channel.used } else { None };
        let challenge = self.fresh(asked, Some(number), used)?;
        if current {
            // Safe never waits: the outputs go at once, whatever becomes of the record.
            let free = self.let_go(asked.now, number, Cause::Released);
            let free = free.and_then(|()| self.not_busy(asked.now, Some(number)));
            self.taken_over(asked.now, number, free)?;
        } else {
            // A stamp that never raised is raised and spent in one; until then the outputs are another holder's.
            let free = self.may_store(asked.now, number);
            let free = free.and_then(|()| self.let_go(asked.now, number, Cause::Raised));
            self.taken_over(asked.now, number, free)?;
            self.budget.spend();
        }
        let mark = match &mut self.channel_mut(number)?.guard {
            Guard::Fence(fence) => Mark::Release(fence.release(stamp).map_err(|refused| Reason::from(refused.reason))?),
            Guard::Grantor(grantor) => Mark::GrantRelease(grantor.release(asked.now, stamp).map_err(Denied::from)?),
            Guard::Lost => return Err(Reason::Storage.into()),
        };
        Ok(pending(asked, challenge, Change::Mark(number, mark)))
    }

    /// Takes a mark that is stored.
    pub(super) fn commit(&mut self, now: Instant, number: u8, mark: Mark, stored: &Stored) -> Result<(), Reason> {
        let channel = self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)?;
        channel.wanted = None;
        let record = stored.fence().ok_or(Reason::Storage)?;
        let what = match (mark, &mut channel.guard) {
            (Mark::Raise(raise, drive), Guard::Fence(fence)) => {
                let pass = fence.commit(raise, record).map_err(|_| Reason::Storage)?;
                let stamp = pass.stamp();
                let what = What::Raised { token: stamp.token.get(), holder: stamp.holder };
                self.log.write(now, Some(number), what);
                return match drive {
                    // In the order of the reasons: the window first, then a fault, then the outputs' least times, which
                    // begin as the raise lets go of them, then who waits: what is raised is raised, or it would wait for
                    // them for ever.
                    Some(drive) if drive.deadline.is_over(now) => Err(Reason::Expired),
                    Some(drive) => {
                        self.armed(number)?;
                        self.has_had_its_time(now, number, &drive)?;
                        self.has_room(now, number, &drive)?;
                        self.act(now, number, pass, drive)
                    }
                    None => Ok(()),
                };
            }
            (Mark::Release(release), Guard::Fence(fence)) => {
                fence.commit_release(release, record).map_err(|_| Reason::Storage)?;
                released(channel)
            }
            (Mark::Epoch(epoch), Guard::Fence(fence)) => {
                fence.commit_epoch(epoch, record).map_err(|_| Reason::Storage)?;
                What::Epoch { epoch: channel.record().epoch }
            }
            (Mark::Restore(_), Guard::Lost) => {
                self.challenger.void();
                channel.restore(record, self.config.limits(usize::from(number)));
                What::Epoch { epoch: channel.record().epoch }
            }
            (mark, Guard::Grantor(grantor)) => {
                let grant = stored.grant().ok_or(Reason::Storage)?;
                match mark {
                    Mark::Grant(granting) => {
                        let granted = grantor.commit(now, granting, grant).map_err(|_| Reason::Storage)?;
                        What::Granted { token: granted.stamp.token.get(), holder: granted.stamp.holder }
                    }
                    Mark::GrantRelease(release) => {
                        grantor.commit_release(now, release, grant).map_err(|_| Reason::Storage)?;
                        released(channel)
                    }
                    Mark::GrantEpoch(epoch) => {
                        if grantor.record().is_none() {
                            self.challenger.void();
                        }
                        grantor.commit_epoch(now, epoch, grant).map_err(|_| Reason::Storage)?;
                        What::Epoch { epoch: channel.record().epoch }
                    }
                    _ => return Err(Reason::Storage),
                }
            }
            _ => return Err(Reason::Storage),
        };
        self.log.write(now, Some(number), what);
        Ok(())
    }

    /// The stamp of a holder's request, once channel, role and authority are right.
    pub(super) fn stamp(&self, asked: &Asked, number: u8, epoch: Epoch, token: Token) -> Result<Stamp, Reason> {
        let channel = self.channel(number)?;
        let Role::Holder(holder) = asked.header.role else { return Err(Reason::Role) };
        let granted = channel.record();
        if self.is_own(number) && (epoch, token.get()) > (granted.epoch, granted.token) {
            return Err(Reason::Authority);
        }
        Ok(Stamp { epoch, token, holder })
    }

    /// A drive's deadline: counted from when its challenge was issued, and no later than a lease of the gate's own ends.
    fn drive(
        &self,
        now: Instant,
        number: u8,
        challenge: Challenge,
        window: Duration,
        values: Values,
    ) -> Result<Drive, Reason> {
        let timing = self.config.timing(usize::from(number)).ok_or(Reason::Expired)?;
        let left = timing.window(window).ok().flatten().ok_or(Reason::Expired)?;
        let mut end = Deadline::after(Instant::from_micros(challenge.tick), left).ok_or(Reason::Expired)?;
        if let Some(lease) = self.channel(number)?.lease() {
            let taken = timing.lateness.checked_add(timing.reaction).ok_or(Reason::Expired)?;
            let last = lease.instant().as_micros().saturating_sub(taken.as_micros());
            end = end.min(Deadline::at(Instant::from_micros(last)));
        }
        if end.is_over(now) { Err(Reason::Expired) } else { Ok(Drive { deadline: end, values }) }
    }

    /// Whether each output has had its least time.
    fn has_had_its_time(&self, now: Instant, number: u8, drive: &Drive) -> Result<(), Reason> {
        let span = self.config.span(usize::from(number));
        let lines = self.lines.get(span.clone()).unwrap_or_default();
        let outputs = self.config.outputs.get(span).unwrap_or_default();
        let mut changes = lines.iter().zip(outputs).zip(&drive.values);
        let may = changes.all(|((line, config), value)| line.may_become(config, *value, now));
        if may { Ok(()) } else { Err(Reason::Rate) }
    }

    /// Whether no fault keeps the channel safe.
    fn armed(&self, number: u8) -> Result<(), Reason> {
        let faulty = self.fault.is_some() || self.channel(number)?.fault.is_some();
        if faulty { Err(Reason::Fault) } else { Ok(()) }
    }

    /// Whether a mark of this channel may be stored now: within the budget, and without delaying another channel.
    pub(super) fn may_store(&mut self, now: Instant, number: u8) -> Result<(), Reason> {
        if !self.budget.allows(now) {
            return Err(Reason::Rate);
        }
        self.not_busy(now, Some(number))
    }

    /// Outputs on their way to their safe values get there first, and so does who waits to take the channel over. And
    /// while another store waits for its turn, no drive is taken whose window is not longer than a store and the time until
    /// it is asked for again, and none at all where it mends first: a holder that drives so again and again would keep the
    /// gate busy for ever.
    fn has_room(&self, now: Instant, number: u8, drive: &Drive) -> Result<(), Reason> {
        let waits = |until: Deadline| !until.is_over(now);
        let room = self.board.worst_store.checked_add(AGAIN).filter(|_| !self.mends);
        let mut others = self.store_wanted.iter().enumerate().filter(|(n, _)| *n != usize::from(number));
        let short = others.any(|(_, until)| waits(*until)) && room.is_none_or(|room| drive.deadline.left(now) <= room);
        let channel = self.channel(number)?;
        if short || channel.is_letting_go() || channel.wanted.is_some_and(waits) { Err(Reason::Busy) } else { Ok(()) }
    }

    /// The last station: the time, once more, and then the outputs.
    fn act(&mut self, now: Instant, number: u8, pass: Pass, drive: Drive) -> Result<(), Reason> {
        let stamp = pass.stamp();
        let act = pass.act(now, drive.deadline).map_err(|_| Reason::Expired)?;
        let channel = self.channel_mut(number)?;
        let began = !channel.is_driven();
        channel.drive(act, drive.values);
        if began {
            self.log.write(now, Some(number), What::Driven { token: stamp.token.get(), holder: stamp.holder });
        }
        Ok(())
    }

    pub(super) fn is_own(&self, number: u8) -> bool {
        self.config.channels.get(usize::from(number)).is_some_and(|channel| channel.authority == Authority::Own)
    }

    pub(super) fn channel(&self, number: u8) -> Result<&Channel, Reason> {
        self.channels.get(usize::from(number)).ok_or(Reason::BadChannel)
    }

    pub(super) fn channel_mut(&mut self, number: u8) -> Result<&mut Channel, Reason> {
        self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)
    }
}

fn released(channel: &Channel) -> What {
    let record = channel.record();
    match record.holder {
        Some(holder) => What::Released { token: record.token, holder },
        None => What::Epoch { epoch: record.epoch }, // a release always has a holder
    }
}
