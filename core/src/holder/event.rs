//! What happens to a holder. Every event comes with the time at which it is reported, and passes that time first: what
//! is over by then is over, whatever the event says.

use super::lease::{Lease, Raised};
use super::request::jitter;
use super::{Cause, Holder, HolderFault, Request, State};
use crate::{Deadline, Duration, Instant, Stamp};

impl Holder {
    /// A request is leaving at `now`: call it *before* the first byte does, and only where that is later than the poll
    /// that asked for it (a connection had to be made first). The timer then runs from here. It counts once a request:
    /// of a request that is sent again, the answer might be to the first sending.
    pub fn sent(&mut self, now: Instant, request: Request) {
        if !self.advance(now) || !self.unanswered.tell(request, now) || !self.unanswered.is_latest(request) {
            return;
        }
        match &mut self.state {
            State::Held(lease) => lease.sent(now, &self.schedule),
            State::Asking { again } => *again = now.checked_add(self.schedule.cancel_after()),
            _ => {}
        }
    }

    /// The coordinator has granted the lease that `request` asked for, under `stamp`, for `ttl` where it says so.
    ///
    /// A shorter TTL than was asked for is given back, since the plan does not fit it; a longer one changes nothing. So is
    /// a lease whose window is already over, or whose stamp is not above the last one's (it would be the old lease
    /// revived), or that nobody wants any more.
    pub fn granted(&mut self, now: Instant, request: Request, stamp: Stamp, ttl: Option<Duration>) {
        if !self.advance(now)
            || !matches!(self.state, State::Idle { .. } | State::Asking { .. })
            || stamp.holder != self.id
        {
            return;
        }
        let Some(sent) = self.unanswered.take(request) else { return };
        let Some(deadline) = Deadline::after(sent, self.schedule.window()) else {
            return self.fail(HolderFault::ClockEnded);
        };
        let key = (stamp.epoch, stamp.token);
        let wrong = if self.is_short(ttl) {
            Some(Cause::ShorterTtl)
        } else if self.last.is_some_and(|last| key <= last) {
            Some(Cause::NotNewer)
        } else {
            None
        };
        if wrong.is_some() || deadline.is_over(now) || !self.is_willing() {
            self.release(now, stamp, self.schedule.ask_again());
            if let Some(cause) = wrong {
                self.cancel(cause);
            }
            return;
        }
        self.unanswered.forget();
        self.last = Some(key);
        self.state = State::Held(Lease::new(stamp, deadline, sent, now, &self.schedule));
    }

    /// The coordinator has renewed the lease on `request`, for `ttl` where it says so. The window now ends at the sending
    /// of that request plus its length, if that is later than it ended before.
    pub fn renewed(&mut self, now: Instant, request: Request, ttl: Option<Duration>) {
        if !self.advance(now) {
            return;
        }
        let short = self.is_short(ttl);
        let State::Held(lease) = &mut self.state else { return };
        let Some(sent) = self.unanswered.take_up_to(request) else { return };
        match Deadline::after(sent, self.schedule.window()) {
            None => self.fail(HolderFault::ClockEnded),
            Some(_) if short => self.end(now, Some(Cause::ShorterTtl), self.schedule.ask_again()),
            Some(deadline) => lease.renewed(now, deadline),
        }
    }

    /// The coordinator has answered `request` with no: another holds the lease (it may say for how long), or it is no
    /// longer ours to renew. An answer that means "try again" is not this but [`lost`](Self::lost).
    ///
    /// The next try comes after what the coordinator says (`wait`, up to a TTL) and a pause spread by `random`, any 32 bits
    /// that differ from holder to holder. Both count from when `request` was sent, which is no later than when the
    /// coordinator said it: so a lease that becomes free is asked for within `poll`.
    pub fn refused(&mut self, now: Instant, request: Request, wait: Option<Duration>, random: u32) {
        if !self.advance(now) {
            return;
        }
        let Some(sent) = self.unanswered.take(request) else { return };
        let pause = jitter(self.schedule.ask_again(), random);
        match self.state {
            State::Held(_) => self.lose(Cause::Refused, now.checked_add(pause)),
            State::Asking { .. } => {
                let wait = wait.unwrap_or_default().min(self.schedule.ttl());
                let ask = sent.checked_add(wait).and_then(|at| at.checked_add(pause));
                self.state = State::Idle { ask: ask.map(|at| at.max(now)) };
            }
            _ => {}
        }
    }

    /// `request` or its answer is lost, as far as the caller can tell (an error, a timeout). Should the answer come all
    /// the same, it counts. The next try comes after a pause spread by `random`, sooner than without this call.
    pub fn lost(&mut self, now: Instant, request: Request, random: u32) {
        if !self.advance(now) || !self.unanswered.is_latest(request) {
            return;
        }
        match &mut self.state {
            State::Held(lease) => lease.lost(now, random, &self.schedule),
            State::Asking { again } => {
                let retry = now.checked_add(jitter(self.schedule.ask_again(), random));
                *again = super::lease::earlier(*again, retry);
            }
            _ => {}
        }
    }

    /// The coordinator has deleted the lease of `stamp`, or says that it is not there any more.
    pub fn released(&mut self, now: Instant, stamp: Stamp) {
        if !self.advance(now) {
            return;
        }
        if let State::Releasing { stamp: ours, rest, .. } = self.state
            && ours == stamp
        {
            self.state = State::Idle { ask: now.checked_add(rest) };
        }
    }

    /// The coordinator has taken back the lease of `stamp`.
    pub fn revoked(&mut self, now: Instant, stamp: Stamp) {
        if self.advance(now) && self.stamp() == Some(stamp) {
            self.lose(Cause::Revoked, now.checked_add(self.schedule.ask_again()));
        }
    }

    /// Every resource has stored the raise to `stamp`.
    pub fn raised(&mut self, now: Instant, stamp: Stamp) {
        if !self.advance(now) {
            return;
        }
        if let State::Held(lease) = &mut self.state
            && lease.stamp == stamp
            && lease.raised == Raised::Asked
        {
            lease.raised = Raised::Yes;
        }
    }

    /// A resource has refused `stamp`, since it has seen a higher one or the stamp's release: this lease is worth nothing.
    pub fn fenced(&mut self, now: Instant, stamp: Stamp) {
        if self.advance(now) && self.stamp() == Some(stamp) {
            self.end(now, Some(Cause::Fenced), self.schedule.ask_again());
        }
    }

    /// The worker gets on. A watchdog thread that renews must not say it on a worker's behalf.
    pub fn progress(&mut self, now: Instant) {
        if !self.advance(now) {
            return;
        }
        if let State::Held(lease) = &mut self.state {
            lease.reported(now);
        }
        self.hangs = false;
    }

    /// Everything begun under a permit has stopped. After it a lease that is being given up is released.
    pub fn stopped(&mut self, now: Instant) {
        if !self.advance(now) {
            return;
        }
        self.hangs = false;
        match &mut self.state {
            State::Held(lease) => lease.working = false,
            State::Ending { stamp, rest, .. } => {
                let (stamp, rest) = (*stamp, *rest);
                self.release(now, stamp, rest);
            }
            _ => {}
        }
    }

    /// Gives the lease up gracefully and lets others have it: nothing new begins and nothing is renewed, the work in hand
    /// may be finished inside its window, and [`stopped`](Self::stopped) releases. It is asked for again `rest` later. A
    /// holder without a lease only puts off asking, and takes what it has already asked for.
    pub fn hand_over(&mut self, now: Instant, rest: Duration) {
        if !self.advance(now) {
            return;
        }
        match self.state {
            State::Held(_) => self.end(now, None, rest),
            State::Idle { .. } | State::Asking { .. } => self.state = State::Idle { ask: now.checked_add(rest) },
            _ => {}
        }
    }

    /// The process is to end (SIGTERM): cancels the work in hand, releases once it has stopped, and asks for nothing any
    /// more; what it has asked for already is given back when it comes. [`is_done`](Self::is_done) says when nothing is left to do.
    pub fn stop(&mut self, now: Instant) {
        self.stopping = true;
        if self.advance(now) {
            self.end(now, Some(Cause::Stopped), self.schedule.ask_again());
        }
    }

    fn is_short(&self, ttl: Option<Duration>) -> bool {
        ttl.is_some_and(|ttl| ttl < self.schedule.ttl())
    }
}
