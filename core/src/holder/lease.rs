//! A lease as its holder sees it.

use super::{Bounds, Cause};
use crate::{Deadline, Duration, Instant, Schedule, Stamp};

/// Where the raise of the fence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) enum Raised {
    /// Not yet asked for.
    No,
    /// Asked for, and not yet known to be done.
    Asked,
    /// Done.
    Yes,
}

/// A lease that is held: when it ends, and what is due before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) struct Lease {
    pub(super) stamp: Stamp,
    pub(super) deadline: Deadline,
    pub(super) raised: Raised,
    /// Whether cancellation has tripped and no answer has come since.
    pub(super) tripped: bool,
    /// Whether work may be in hand: a permit was given, and nobody has said since that everything has stopped.
    pub(super) working: bool,
    /// When the acquire was sent: the longest hold counts from here.
    since: Instant,
    /// When the last answer was received.
    heard: Instant,
    /// When the worker last reported progress.
    progress: Instant,
    /// When to send the next renewal; `None` past the end of the clock.
    renew: Option<Instant>,
    /// How many renewals in a row are known to be lost.
    losses: u8,
}

impl Lease {
    /// A lease granted at `now` to a request sent at `since`.
    pub(super) const fn new(stamp: Stamp, deadline: Deadline, since: Instant, now: Instant, s: &Schedule) -> Self {
        Self {
            stamp,
            deadline,
            raised: Raised::No,
            tripped: false,
            working: false,
            since,
            heard: now,
            progress: now,
            renew: since.checked_add(s.heartbeat()),
            losses: 0,
        }
    }

    /// Whether a renewal is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.renew.is_some_and(|at| now >= at)
    }

    /// A renewal has gone out at `now`; the next is due a heartbeat later, whether this one is answered or not.
    pub(super) const fn sent(&mut self, now: Instant, s: &Schedule) {
        self.renew = now.checked_add(s.heartbeat());
    }

    /// The latest renewal is known to be lost: the next try comes after a pause of h/8, then h/4, then h/2, jittered,
    /// and never later than the heartbeat.
    pub(super) fn lost(&mut self, now: Instant, random: u32, s: &Schedule) {
        self.losses = self.losses.saturating_add(1).min(4);
        let pause = Duration::from_micros((s.heartbeat().as_micros() >> (4 - self.losses)).max(1));
        let retry = now.checked_add(super::request::jitter(pause, random));
        self.renew = earlier(self.renew, retry);
    }

    /// The answer to a renewal that was sent at `sent` has come in at `now`.
    pub(super) fn renewed(&mut self, now: Instant, deadline: Deadline) {
        self.deadline = self.deadline.max(deadline);
        self.heard = now;
        self.tripped = false;
        self.losses = 0;
    }

    pub(super) const fn reported(&mut self, now: Instant) {
        self.progress = now;
    }

    /// Whether the worker hangs.
    pub(super) fn hangs(&self, now: Instant, bounds: &Bounds) -> bool {
        bounds.progress.is_some_and(|limit| has_passed(now, self.progress, limit))
    }

    /// Whether cancellation trips, and why.
    pub(super) fn cause(&self, now: Instant, s: &Schedule, bounds: &Bounds) -> Option<Cause> {
        if self.deadline.is_over(now) {
            Some(Cause::Expired)
        } else if self.hangs(now, bounds) {
            Some(Cause::NoProgress)
        } else if bounds.hold.is_some_and(|limit| has_passed(now, self.since, limit)) {
            Some(Cause::HeldLongest)
        } else if !self.tripped && now.since(self.heard).is_ok_and(|silence| silence > s.cancel_after()) {
            Some(Cause::Unanswered)
        } else {
            None
        }
    }

    /// When something is due next.
    pub(super) fn wake(&self, s: &Schedule, bounds: &Bounds) -> Option<Instant> {
        let silence = s.cancel_after().checked_add(Duration::from_micros(1));
        [
            self.renew,
            silence.and_then(|silence| self.heard.checked_add(silence)).filter(|_| !self.tripped),
            bounds.progress.and_then(|limit| self.progress.checked_add(limit)),
            bounds.hold.and_then(|limit| self.since.checked_add(limit)),
        ]
        .into_iter()
        .fold(Some(self.deadline.instant()), earlier)
    }
}

/// Whether `limit` has passed since `start`. Equality is expiry.
fn has_passed(now: Instant, start: Instant, limit: Duration) -> bool {
    now.since(start).is_ok_and(|passed| passed >= limit)
}

/// The earlier of two instants that may never come.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
