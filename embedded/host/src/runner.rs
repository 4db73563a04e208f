//! A worker's lease, from asking for it to giving it back: core's [`Holder`] driven on tokio against a [`Coordinator`].
//!
//! [`Runner::hold`] acquires, raises the fence at every [`Resource`], lets the work begin, renews on schedule, cancels,
//! and releases once the work has ended. What it promises:
//! - The work begins after every resource has stored the raise, and under a permit.
//! - The window counts from when the request was sent, on the boot-time [`clock`] (sleep included; that page
//!   says what is read elsewhere), and only an answer to a request of its own lengthens it.
//! - An answer that does not come in half a heartbeat is taken for lost and asked for again, on another connection where there
//!   can be one (at ZooKeeper the session is one). If it comes all the same, it counts from its own sending.
//! - [`Lease::cancelled`] trips as core says ([`Cause`]), and on the caller's own token, which SIGTERM may trip
//!   ([`stop_on_sigterm`]). It asks. What must not outlive the window needs a check of its own ([`Lease::may_act`]) or
//!   somebody who kills it.
//! - A lease whose cancellation has tripped for want of an answer ([`Cause::Unanswered`]) is renewed for as long as the work takes
//!   to stop. Work that may not listen says [`Lease::hand_over`] when it is asked: then it has the window as it is, and no more.
//! - Who holds the lock is heard of while waiting for it, and at no other time ([`Report::HeldByAnother`], from an answer to an
//!   acquire). What tells of a loss does not say to whom, and a lease that is lost is not asked for again: its successor is learnt
//!   of by another `hold`, or from the fence.
//! - The fences are raised within a TTL of the grant, or for as long as the caller would wait, if that is longer; else the
//!   lease is given back.
//! - The release comes after the work has ended, compares the stamp, and is tried until it is answered or the TTL is over.
//!   Renewals that are still under way are dropped before it.
//! - Who ends before there is a lease waits for the answers that are still out, for a heartbeat or five seconds at the most, and
//!   gives back what they bring. What comes later lapses.
//! - Dropping the future of `hold` drops the work and leaves the lease to lapse; so does a window that ends under work that
//!   goes on.
//! - The work is polled by the task that renews. Work that blocks its thread stops the renewals too: that is safe, and costs the
//!   lease; use `tokio::task::spawn_blocking` for it.

mod drive;
mod lease;
#[cfg(unix)]
mod signal;
#[cfg(test)]
mod tests;

use crate::clock;
use crate::coordinator::{Coordinator, CoordinatorError, Resource};
use drive::Drive;
use fencegate::{Cause, Deadline, Duration, Epoch, Holder, HolderId, Instant, PlanInput, Stamp, Unfit};
pub use lease::Lease;
#[cfg(unix)]
pub use signal::stop_on_sigterm;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

/// The clock that a runner lives by.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The present, rounded up to a microsecond.
    fn now(&self) -> Instant;

    /// Ends at `at`, or soon after it.
    fn until(&self, at: Instant) -> impl Future<Output = ()> + Send;
}

/// The machine's time since boot, its sleep included.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Instant {
        clock::now()
    }

    /// Tokio's timers stand still while the machine sleeps, so it looks at the clock at least this often: a machine that
    /// has slept finds out so soon.
    async fn until(&self, at: Instant) {
        const GLANCE: Duration = Duration::from_millis(250);
        loop {
            let left = Deadline::at(at).left(clock::now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(GLANCE).into()).await;
        }
    }
}

/// What happened to a lease, for whoever watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Another holds the lock.
    HeldByAnother {
        /// For how long at the most, where the service says so.
        wait: Option<Duration>,
        /// Who that is, where the service says so.
        by: Option<HolderId>,
    },
    /// The lease was granted, and ends then unless it is renewed.
    Granted(Stamp, Deadline),
    /// Every resource has stored the raise.
    Raised(Stamp),
    /// A resource did not; it is asked again while the lease lasts.
    NotRaised(String),
    /// The lease was renewed, and ends then.
    Renewed(Deadline),
    /// An answer is overdue, or there was an error instead of one.
    NoAnswer(String),
    /// The work was asked to stop.
    Cancelled(Cause),
    /// The service has deleted the lease.
    Released,
}

/// What became of work that began.
#[derive(Debug)]
pub struct Held<T> {
    /// What the work returned.
    pub output: T,
    /// The lease that it began under.
    pub stamp: Stamp,
    /// Why it was asked to stop, if it was: the first reason.
    pub cancelled: Option<Cause>,
    /// Whether the service has said that the lease is gone; `false` where it lapses by itself.
    pub released: bool,
}

/// Why no work began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// The caller wanted it no more.
    Stopped,
    /// Another held the lock for as long as the caller would wait.
    HeldByAnother,
    /// The service was not to be reached for a whole TTL; with the last error.
    NoAnswer(String),
    /// The service, or what it is asked for, is not fit; asking again would change nothing.
    Unfit(String),
    /// The lease was gone again before every fence was raised.
    Lost(Cause),
    /// A resource has refused the lease's stamp.
    Fenced(String),
    /// A fence was not raised within a TTL of the grant, nor for as long as the caller would wait; with the last reason.
    NotRaised(String),
    /// The lock keeps no durable order, and cannot protect a resource ([`Runner::for_efficiency`]).
    NoOrder,
    /// The operator's epoch that was given is not the one that is kept beside the lock, which is higher.
    Epoch {
        /// The one that was given.
        given: Epoch,
        /// The one beside the lock.
        kept: Epoch,
    },
}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("asked to stop before the lease was there"),
            Self::HeldByAnother => f.write_str("another holds the lock"),
            Self::NoAnswer(why) => write!(f, "no answer for a whole TTL: {why}"),
            Self::Unfit(why) => f.write_str(why),
            Self::Lost(cause) => write!(f, "the lease was gone before the work began: {cause}"),
            Self::Fenced(why) => write!(f, "a resource has refused the stamp: {why}"),
            Self::NotRaised(why) => write!(f, "a fence could not be raised in time: {why}"),
            Self::NoOrder => f.write_str(
                "the lock keeps no durable order: a fail-over gives it to two holders and takes the token back, so it cannot \
                 protect a resource",
            ),
            Self::Epoch { given, kept } => {
                write!(f, "epoch: {given} is below the one that is kept beside the lock, {kept}")
            }
        }
    }
}

impl std::error::Error for NotHeld {}

/// A lease to be acquired, held while some work runs, and released.
pub struct Runner<K = BootClock> {
    coordinator: Arc<dyn Coordinator>,
    resources: Vec<Arc<dyn Resource>>,
    holder: Holder,
    /// W of the plan: no work begins with less than this left.
    work: Duration,
    patience: Option<Duration>,
    progress: Option<Duration>,
    epoch: Option<Epoch>,
    efficiency: bool,
    reports: Option<UnboundedSender<Report>>,
    clock: K,
}

impl<K: fmt::Debug> fmt::Debug for Runner<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("holder", &self.holder).finish_non_exhaustive()
    }
}

impl Runner {
    /// A lease of `coordinator`'s lock under `plan`, for the holder `id`, which must be this process's alone.
    ///
    /// # Errors
    /// [`Unfit`] where no holder can live by the plan.
    pub fn new(coordinator: Arc<dyn Coordinator>, plan: PlanInput, id: HolderId) -> Result<Self, Unfit> {
        Self::with_clock(coordinator, plan, id, BootClock)
    }
}

impl<K: Clock> Runner<K> {
    /// The same on another clock.
    ///
    /// # Errors
    /// As [`Runner::new`].
    pub fn with_clock(
        coordinator: Arc<dyn Coordinator>,
        mut plan: PlanInput,
        id: HolderId,
        clock: K,
    ) -> Result<Self, Unfit> {
        // The clock rounds up by less than this, and so may the start of a window: it comes off the window.
        const ROUNDING: Duration = Duration::from_micros(1);
        plan.clock_offset = plan.clock_offset.checked_add(ROUNDING).unwrap_or(plan.clock_offset);
        let holder = Holder::new(plan.build()?, id);
        let (resources, work) = (Vec::new(), plan.work);
        let (patience, progress, epoch, efficiency, reports) = (None, None, None, false, None);
        Ok(Self { coordinator, resources, holder, work, patience, progress, epoch, efficiency, reports, clock })
    }

    /// Raises this fence too before the work begins. They are raised in the order in which they are given.
    #[must_use]
    pub fn resource(mut self, resource: Arc<dyn Resource>) -> Self {
        self.resources.push(resource);
        self
    }

    /// Gives up once the lock has been another's for this long, or a fence has not been raised for as long and for a TTL since
    /// the grant. Without it, waits for another for as long as that takes.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// The operator's epoch, where it is not kept beside the lock. It must not be below the one that is.
    #[must_use]
    pub fn epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// The lock is there to save work and not to protect anything: raises fences also under a lock without a durable order
    /// ([`Coordinator::keeps_order`]), which is refused otherwise.
    #[must_use]
    pub fn for_efficiency(mut self) -> Self {
        self.efficiency = true;
        self
    }

    /// Loses the lease where the worker does not report progress ([`Lease::progress`]) for this long, counted from when the work
    /// begins.
    #[must_use]
    pub fn progress_within(mut self, limit: Duration) -> Self {
        self.progress = Some(limit);
        self
    }

    /// Gives the lease up once it has been held for this long, so that others get their turn.
    #[must_use]
    pub fn longest_hold(mut self, limit: Duration) -> Self {
        self.holder = self.holder.longest_hold(limit);
        self
    }

    /// Tells what happens.
    #[must_use]
    pub fn reports(mut self, to: UnboundedSender<Report>) -> Self {
        self.reports = Some(to);
        self
    }

    /// Acquires the lease, runs `work` under it to its end, and releases it. `stop` is the caller's wish that it end: the
    /// work is cancelled by it, or never begins.
    ///
    /// # Errors
    /// [`NotHeld`]: the work did not begin, and nothing is held (or lapses, where the service cannot be reached).
    pub async fn hold<W, F>(self, stop: CancellationToken, work: W) -> Result<Held<F::Output>, NotHeld>
    where
        W: FnOnce(Lease<K>) -> F,
        F: Future,
    {
        if !self.resources.is_empty() && !self.coordinator.keeps_order() && !self.efficiency {
            return Err(NotHeld::NoOrder);
        }
        Drive::new(self).run(stop, work).await
    }
}

impl From<CoordinatorError> for NotHeld {
    fn from(error: CoordinatorError) -> Self {
        match error {
            CoordinatorError::NoAnswer(why) => Self::NoAnswer(why),
            CoordinatorError::Unfit(why) => Self::Unfit(why),
        }
    }
}
