//! The holder: what one process that wants a lease may do, must do, and must stop doing, as a state machine without
//! I/O, clock, thread or callback.
//!
//! Events go in with the time at which they are reported; [`Holder::poll`] hands out what to do, one [`Output`] at a
//! time, until it only wants to wait. Change it once, then poll until it waits: whatever is reported in between is
//! still safe, since every call looks at the time first.
//!
//! What it keeps to, whatever comes in and in whatever order:
//! - A deadline is the sending of an acknowledged request plus the window of the plan (see [`Window`](crate::Window)
//!   for where that comes from). It moves only when the answer to one of the holder's own requests, which are numbered,
//!   comes in before it; nothing that a server says of its own timers moves it.
//! - A [`Permit`] is for work that ends strictly before the deadline. At the deadline itself the lease is over.
//! - Cancellation trips once more than a third of the TTL has passed since the last answer, and is final for the work in
//!   hand. Expiry needs nobody's reply.
//! - What ends is never revived: a later lease has a higher token, and its fence is raised before anything else.
//! - A release comes after the work has stopped, and names its stamp.
//!
//! A machine that was suspended is one whose clock has jumped, and a jump is just time passing, provided that the clock
//! counts on in suspend.

mod event;
mod lease;
mod output;
mod permit;
mod request;

use crate::{Deadline, Duration, Epoch, HolderId, Instant, Monotonic, Schedule, Stamp, Token};
use lease::{Lease, Raised};
pub use output::{Cause, Denied, HolderFault, Output};
pub use permit::Permit;
pub use request::Request;
use request::Unanswered;

/// What a holder is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum State {
    /// Has no lease and asks for none before this instant; `None`: the instant lies past the end of the clock.
    Idle { ask: Option<Instant> },
    /// Has asked, and asks again at this instant where no answer comes.
    Asking { again: Option<Instant> },
    /// Holds a lease.
    Held(Lease),
    /// Gives a lease up: nothing begins and nothing is renewed, and the release waits for the work in hand to stop.
    Ending { stamp: Stamp, deadline: Deadline, rest: Duration },
    /// Has stopped, and asks the coordinator at each of these instants to delete the lease, until it says that it has or
    /// the lease has run out there in any case.
    Releasing { stamp: Stamp, send: Option<Instant>, until: Deadline, rest: Duration },
    /// Can no longer count on its own state.
    Fault(HolderFault),
}

/// What ends a lease beside its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Bounds {
    /// How long the worker may go without reporting progress.
    progress: Option<Duration>,
    /// How long a lease may be held at a stretch.
    hold: Option<Duration>,
}

/// One process that wants a lease: see the crate's front page for the loop around it.
///
/// A holder asks for its lease from the first [`poll`](Self::poll) on, and again whenever it has lost it, until it is
/// told to [`stop`](Self::stop).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Holder {
    id: HolderId,
    schedule: Schedule,
    bounds: Bounds,
    clock: Monotonic,
    state: State,
    unanswered: Unanswered,
    /// The number of the last request.
    number: u64,
    /// How many cancellations there were: permits given before the last one are worth nothing.
    cancellations: u64,
    /// A cancellation that has not been polled yet.
    cancel: Option<Cause>,
    /// Whether the worker has let its time for progress run out, and not been heard of since.
    hangs: bool,
    /// Whether the caller wants no lease any more.
    stopping: bool,
    /// What the last lease was called: the next one has to be higher.
    last: Option<(Epoch, Token)>,
}

impl Holder {
    /// A holder called `id` that lives by `schedule`. Each start of a process is a new instance, with a name of its own.
    pub const fn new(schedule: Schedule, id: HolderId) -> Self {
        Self {
            id,
            schedule,
            bounds: Bounds { progress: None, hold: None },
            clock: Monotonic::new(),
            state: State::Idle { ask: Some(Instant::from_micros(0)) },
            unanswered: Unanswered::new(),
            number: 0,
            cancellations: 0,
            cancel: None,
            hangs: false,
            stopping: false,
            last: None,
        }
    }

    /// Ties the renewal to [`progress`](Self::progress): where `limit` passes without a report, the work is cancelled and
    /// the lease no longer renewed. Without it, a worker that hangs keeps its lease for as long as whoever polls lives.
    #[must_use]
    pub const fn progress_within(mut self, limit: Duration) -> Self {
        self.bounds.progress = Some(limit);
        self
    }

    /// Gives the lease up once it has been held for `limit`, counted from when it was asked for, so that others get
    /// their turn.
    #[must_use]
    pub const fn longest_hold(mut self, limit: Duration) -> Self {
        self.bounds.hold = Some(limit);
        self
    }

    /// Who this is.
    pub const fn id(&self) -> HolderId {
        self.id
    }

    /// What it lives by.
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The stamp of the lease that is held or being given up, as of the last call.
    pub const fn stamp(&self) -> Option<Stamp> {
        match &self.state {
            State::Held(lease) => Some(lease.stamp),
            State::Ending { stamp, .. } => Some(*stamp),
            _ => None,
        }
    }

    /// When that lease is over.
    pub const fn deadline(&self) -> Option<Deadline> {
        match &self.state {
            State::Held(lease) => Some(lease.deadline),
            State::Ending { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }

    /// Whether a holder that was told to stop has nothing left to do: the process may end.
    pub const fn is_done(&self) -> bool {
        self.stopping && self.cancel.is_none() && matches!(self.state, State::Idle { .. } | State::Fault(_))
    }

    /// What to do next at `now`. Call it after every event and at the instant that [`Output::Wait`] names, and do what
    /// it says until it waits.
    pub fn poll(&mut self, now: Instant) -> Output {
        self.advance(now);
        if let Some(cause) = self.cancel.take() {
            return Output::Cancel(cause);
        }
        let willing = self.is_willing();
        match &mut self.state {
            State::Held(lease) if lease.raised == Raised::No => {
                lease.raised = Raised::Asked;
                Output::Raise(lease.stamp)
            }
            State::Held(lease) if lease.is_due(now) => {
                lease.sent(now, &self.schedule);
                let stamp = lease.stamp;
                self.send(now).map_or_else(|fault| self.poll_fault(fault), |r| Output::SendRenewal(r, stamp))
            }
            State::Idle { ask: Some(at) } | State::Asking { again: Some(at) } if now >= *at && willing => {
                self.state = State::Asking { again: now.checked_add(self.schedule.cancel_after()) };
                self.send(now).map_or_else(|fault| self.poll_fault(fault), Output::SendAcquire)
            }
            State::Releasing { stamp, send, .. } if send.is_some_and(|at| now >= at) => {
                *send = now.checked_add(self.schedule.heartbeat());
                Output::SendRelease(*stamp)
            }
            _ => Output::Wait(self.wake()),
        }
    }

    /// A permit for `work`: the longest time from `now` until its effect is over.
    ///
    /// # Errors
    /// [`Denied`] says what is missing.
    pub fn may_act(&mut self, now: Instant, work: Duration) -> Result<Permit, Denied> {
        self.advance(now);
        let lease = match &mut self.state {
            State::Fault(fault) => return Err(Denied::Fault(*fault)),
            State::Idle { .. } | State::Asking { .. } | State::Releasing { .. } => return Err(Denied::NoLease),
            State::Ending { .. } => return Err(Denied::Ending),
            State::Held(lease) => lease,
        };
        if lease.tripped || self.cancel.is_some() {
            return Err(Denied::Tripped);
        }
        if lease.raised != Raised::Yes {
            return Err(Denied::NotRaised);
        }
        match now.checked_add(work) {
            Some(ends) if !lease.deadline.is_over(ends) => {
                lease.working = true;
                Ok(Permit { stamp: lease.stamp, deadline: lease.deadline, ends, after: self.cancellations })
            }
            _ => Err(Denied::Time { left: lease.deadline.left(now) }),
        }
    }

    /// Whether work under `permit` may go on at `now`: for a worker whose work has several steps and who does not hear of
    /// an [`Output::Cancel`] at once.
    ///
    /// # Errors
    /// [`Denied`]: the lease is gone, cancellation has tripped since the permit was given, or its window is over.
    pub fn covers(&mut self, now: Instant, permit: &Permit) -> Result<(), Denied> {
        self.advance(now);
        if let State::Fault(fault) = self.state {
            return Err(Denied::Fault(fault));
        }
        if self.stamp() != Some(permit.stamp) {
            return Err(Denied::NoLease);
        }
        if permit.after != self.cancellations {
            return Err(Denied::Tripped);
        }
        if permit.deadline.is_over(now) {
            return Err(Denied::Time { left: Duration::ZERO });
        }
        Ok(())
    }

    /// Whether it would ask for a lease at all.
    const fn is_willing(&self) -> bool {
        !self.stopping && !self.hangs
    }

    /// When it wants to be polled, if nothing happens before.
    fn wake(&self) -> Option<Instant> {
        match &self.state {
            State::Idle { ask } => ask.filter(|_| self.is_willing()),
            State::Asking { again } => *again,
            State::Held(lease) => lease.wake(&self.schedule, &self.bounds),
            State::Ending { deadline, .. } => Some(deadline.instant()),
            State::Releasing { send, until, .. } => lease::earlier(*send, Some(until.instant())),
            State::Fault(_) => None,
        }
    }

    /// Lets time pass up to `now`. Every call begins with it; `false` where no event counts any more.
    fn advance(&mut self, now: Instant) -> bool {
        if matches!(self.state, State::Fault(_)) {
            return false;
        }
        if self.clock.read(now).is_err() {
            self.fail(HolderFault::ClockRanBackwards);
        }
        match &mut self.state {
            State::Held(lease) => {
                self.hangs |= lease.hangs(now, &self.bounds);
                match lease.cause(now, &self.schedule, &self.bounds) {
                    Some(Cause::Expired) => self.lose(Cause::Expired, Some(now)),
                    Some(Cause::Unanswered) => {
                        lease.tripped = true;
                        self.cancel(Cause::Unanswered);
                    }
                    Some(cause) => self.end(now, Some(cause), self.schedule.ask_again()),
                    None => {}
                }
            }
            State::Ending { deadline, rest, .. } if deadline.is_over(now) => {
                let ask = now.checked_add(*rest);
                self.lose(Cause::Expired, ask);
            }
            State::Releasing { until, rest, .. } if until.is_over(now) => {
                self.state = State::Idle { ask: now.checked_add(*rest) };
            }
            // Nobody wants it any more, and the answer to what was asked for has had its time.
            State::Asking { again } if self.stopping && again.is_none_or(|at| now >= at) => {
                self.state = State::Idle { ask: None };
            }
            _ => {}
        }
        !matches!(self.state, State::Fault(_))
    }

    /// A new request, sent at `now`. Nothing wraps: a holder that has used up all numbers is one that cannot go on.
    fn send(&mut self, now: Instant) -> Result<Request, HolderFault> {
        self.number = self.number.checked_add(1).ok_or(HolderFault::NumbersEnded)?;
        let request = Request::from_number(self.number);
        self.unanswered.push(request, now);
        Ok(request)
    }

    fn poll_fault(&mut self, fault: HolderFault) -> Output {
        self.fail(fault);
        self.cancel.take().map_or(Output::Wait(None), Output::Cancel)
    }

    /// Cancels the work in hand, and every permit given so far.
    fn cancel(&mut self, cause: Cause) {
        self.cancel = Some(cause);
        match self.cancellations.checked_add(1) {
            Some(cancellations) => self.cancellations = cancellations,
            None => self.state = State::Fault(HolderFault::NumbersEnded),
        }
    }

    /// The lease is gone.
    fn lose(&mut self, cause: Cause, ask: Option<Instant>) {
        self.state = State::Idle { ask };
        self.unanswered.forget();
        self.cancel(cause);
    }

    /// Gives the lease up: with a cause at once, without one when the work in hand is done.
    fn end(&mut self, now: Instant, cause: Option<Cause>, rest: Duration) {
        match self.state {
            State::Held(Lease { stamp, working: false, .. }) => self.release(now, stamp, rest),
            State::Held(Lease { stamp, deadline, .. }) => self.state = State::Ending { stamp, deadline, rest },
            State::Ending { .. } => {}
            _ => return,
        }
        if let Some(cause) = cause {
            self.cancel(cause);
        }
    }

    /// Has the coordinator delete the lease, for as long as it could still be there.
    fn release(&mut self, now: Instant, stamp: Stamp, rest: Duration) {
        self.unanswered.forget();
        match Deadline::after(now, self.schedule.ttl()) {
            Some(until) => self.state = State::Releasing { stamp, send: Some(now), until, rest },
            None => self.fail(HolderFault::ClockEnded),
        }
    }

    /// A fault is the safe state, for good.
    fn fail(&mut self, fault: HolderFault) {
        if self.stamp().is_some() {
            self.cancel = Some(Cause::Fault(fault));
        }
        self.state = State::Fault(fault);
    }
}

#[cfg(test)]
mod tests;
