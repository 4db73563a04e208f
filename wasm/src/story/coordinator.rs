//! The lock service of a story: core's grantor, which a quorum of nodes keeps together.

use super::clock::Clock;
use super::event::Kind;
use super::scenario::Scenario;
use super::world::{COORDINATOR, Due, Message, Side, World};
use fencegate::{
    Drift, Duration, Epoch, GrantDenied, GrantProof, GrantRecord, GrantTerms, Grantor, Instant, Limits, RedlockInput,
    Stamp, quorum,
};

/// The grantor, its clock, and what it has stored so far.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    pub(crate) grantor: Grantor,
    pub(crate) clock: Clock,
    terms: GrantTerms,
    stored: Vec<GrantRecord>,
    /// When the lease ends in the story's time, if it is not renewed.
    pub(crate) ends: u64,
}

impl Coordinator {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        // It trusts its own clock, as lock services do: the holder's margin is what pays for the drift of both.
        let terms = GrantTerms {
            drift: Drift::ZERO,
            lock_delay: Duration::ZERO,
            longest_ttl: scenario.schedule.ttl(),
            epoch_jump: Limits::EPOCH_JUMP,
        };
        let clock = Clock::off_by(scenario.coordinator_drift);
        let record = GrantRecord::floor(Epoch(0), scenario.first_token - 1);
        let grantor = boot(record, terms, clock.reads(0));
        Self { grantor, clock, terms, stored: vec![record], ends: 0 }
    }

    /// What a store does: keeps the record, and reads it back.
    fn keep(&mut self, record: GrantRecord) -> GrantProof {
        self.stored.push(record);
        GrantProof::read_back(record)
    }
}

/// A grantor as it comes up. The terms are those of a schedule, whose TTL fits, and a story's clock has just begun.
fn boot(record: GrantRecord, terms: GrantTerms, now: Instant) -> Grantor {
    Grantor::boot(Some(record), terms, now).unwrap_or_else(|_| unreachable!("a schedule's TTL can be reckoned with"))
}

impl World {
    fn coordinator_now(&self) -> Instant {
        self.coordinator.clock.reads(self.now)
    }

    pub(crate) fn coordinator_hears(&mut self, from: Side, message: &Message) {
        let Side::Worker(who) = from else { return };
        let now = self.coordinator_now();
        let reach = self.workers[who].reach;
        let needed = quorum(self.scenario.nodes).map_or(1, |q| q.quorum);
        let answer = match *message {
            Message::Acquire(request) | Message::Renew(request, _) if reach < needed => {
                let words = format!("{reach} of {} nodes answer, {needed} are needed", self.scenario.nodes);
                (reach > 0).then_some(Message::NoQuorum(request, words))
            }
            Message::Release(_) if reach < needed => None,
            Message::Acquire(request) => Some(match self.acquire(who, now) {
                Ok((stamp, ttl)) => Message::Granted(request, stamp, ttl),
                // For how long is not told, as most services do not: whoever wants it asks again and again.
                Err(GrantDenied::Held { .. }) => Message::Refused(request, "another holds the lease".into()),
                Err(why) => Message::Refused(request, why.to_string().into()),
            }),
            Message::Renew(request, stamp) => Some(match self.coordinator.grantor.renew(now, stamp) {
                Ok(granted) => {
                    self.runs_until(now, granted.stamp, granted.ttl);
                    Message::Renewed(request, granted.ttl)
                }
                Err(why) => Message::Refused(request, why.to_string().into()),
            }),
            Message::Release(stamp) => {
                if let Ok(release) = self.coordinator.grantor.release(now, stamp) {
                    let proof = self.coordinator.keep(release.record());
                    if self.coordinator.grantor.commit_release(now, release, proof).is_ok() {
                        self.tell_all(COORDINATOR, Kind::Released, "deletes the lease", Some(stamp), None, None);
                    }
                }
                Some(Message::Released(stamp))
            }
            _ => None,
        };
        if let Some(answer) = answer {
            self.send(Side::Coordinator, from, 0, 0, answer);
        }
    }

    fn acquire(&mut self, who: usize, now: Instant) -> Result<(Stamp, Duration), GrantDenied> {
        let (id, ttl) = (self.scenario.workers[who].id, self.scenario.schedule.ttl());
        let granting = self.coordinator.grantor.acquire(now, id, ttl)?;
        let proof = self.coordinator.keep(granting.record());
        let granted = self.coordinator.grantor.commit(now, granting, proof).map_err(|_| GrantDenied::Storage)?;
        self.runs_until(now, granted.stamp, granted.ttl);
        Ok((granted.stamp, granted.ttl))
    }

    fn runs_until(&mut self, now: Instant, stamp: Stamp, ttl: Duration) {
        let Some(end) = now.checked_add(ttl) else { return };
        self.coordinator.ends = self.coordinator.clock.when(end);
        self.schedule(self.coordinator.ends, Due::Ends(stamp));
    }

    /// A lease may have run out here; a renewal, a release or the next grant makes it another story.
    pub(crate) fn ends(&mut self, stamp: Stamp) {
        let record = self.coordinator.grantor.record();
        let own = record.is_some_and(|r| r.mark.token == stamp.token.get() && !r.mark.released);
        if own
            && self.now == self.coordinator.ends
            && self.coordinator.grantor.current(self.coordinator_now()).is_none()
        {
            self.tell_all(COORDINATOR, Kind::Expired, "the lease has run out", Some(stamp), None, None);
        }
    }

    /// Asynchronous replication: the last grant has not arrived at the replica that takes over.
    pub(crate) fn fail_over(&mut self) {
        let stored = &mut self.coordinator.stored;
        if stored.len() > 1 {
            stored.pop();
        }
        let Some(&record) = stored.last() else { return };
        self.coordinator.grantor = boot(record, self.coordinator.terms, self.coordinator_now());
        let words = format!("its replica takes over and lags: the last token it knows is {}", record.mark.token);
        self.tell(COORDINATOR, Kind::FailsOver, words);
    }

    pub(crate) fn restore(&mut self, token: u64) {
        let record = GrantRecord::floor(Epoch(0), token);
        self.coordinator.grantor = boot(record, self.coordinator.terms, self.coordinator_now());
        self.coordinator.stored.push(record);
        self.tell(COORDINATOR, Kind::Restored, format!("is restored from a backup: its last token is {token} again"));
    }

    /// The operator's command, to the coordinator and to the resource.
    pub(crate) fn raise_epoch(&mut self, floor: u64) {
        let now = self.coordinator_now();
        let Some(record) = self.coordinator.grantor.record() else { return };
        let Some(epoch) = record.mark.epoch.0.checked_add(1).map(Epoch) else { return };
        let Ok(raise) = self.coordinator.grantor.raise_epoch(now, epoch, floor) else { return };
        let proof = self.coordinator.keep(raise.record());
        if self.coordinator.grantor.commit_epoch(now, raise, proof).is_ok() && self.raise_resource_epoch(epoch, floor) {
            self.tell(
                "operator",
                Kind::Epoch,
                format!("raises the epoch to {epoch}, at the coordinator and at the resource"),
            );
        }
    }

    /// What a grant of `reach` nodes is worth, as core's Redlock reckons it.
    pub(crate) fn is_held(&self, reach: u64, elapsed: u64) -> bool {
        let mut redlock = RedlockInput::new(self.scenario.schedule.ttl(), self.scenario.nodes);
        redlock.granted = reach;
        redlock.elapsed = Duration::from_micros(elapsed);
        redlock.redlock().is_ok_and(|redlock| redlock.held)
    }
}
