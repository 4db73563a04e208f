//! The lease as the work sees it.

use super::{BootClock, Clock};
use fencegate::{Deadline, Denied, Duration, Holder, Instant, Permit, Stamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// What the runner and the work share.
pub(super) struct Shared<K> {
    pub(super) clock: K,
    holder: Mutex<Holder>,
    /// The work has told the holder something.
    pub(super) told: Notify,
    pub(super) cancelled: CancellationToken,
    pub(super) deadline: watch::Sender<Deadline>,
}

impl<K> Shared<K> {
    pub(super) fn new(clock: K, holder: Holder) -> Self {
        Self {
            clock,
            holder: Mutex::new(holder),
            told: Notify::new(),
            cancelled: CancellationToken::new(),
            deadline: watch::Sender::new(Deadline::at(Instant::from_micros(0))),
        }
    }

    /// No call of the holder's leaves it half changed, so that a panic elsewhere does not poison it.
    pub(super) fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lease that work runs under. Clones are the same lease.
pub struct Lease<K = BootClock> {
    pub(super) shared: Arc<Shared<K>>,
    pub(super) stamp: Stamp,
}

impl<K> Clone for Lease<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), stamp: self.stamp }
    }
}

impl<K> std::fmt::Debug for Lease<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl<K: Clock> Lease<K> {
    /// Epoch, token and holder, as they were bound when the lease was acquired: every command carries all three.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// When the window ends, on the runner's clock, as of now. Each answered renewal moves it.
    pub fn deadline(&self) -> Deadline {
        *self.shared.deadline.borrow()
    }

    /// The same, for whoever wants to hear of each move.
    pub fn deadlines(&self) -> watch::Receiver<Deadline> {
        self.shared.deadline.subscribe()
    }

    /// Trips when the work has to stop. It is final.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.shared.cancelled
    }

    /// A permit for an action that takes `work` from now until its effect is over: ask before each one.
    ///
    /// # Errors
    /// [`Denied`] says what is missing.
    pub fn may_act(&self, work: Duration) -> Result<Permit, Denied> {
        if self.shared.cancelled.is_cancelled() {
            return Err(Denied::Tripped);
        }
        let mut holder = self.shared.holder();
        let permit = holder.may_act(self.shared.clock.now(), work);
        drop(holder);
        self.shared.told.notify_one();
        permit.and_then(|permit| if permit.stamp() == self.stamp { Ok(permit) } else { Err(Denied::NoLease) })
    }

    /// Whether work under `permit` may go on.
    ///
    /// # Errors
    /// [`Denied`] says why not.
    pub fn covers(&self, permit: &Permit) -> Result<(), Denied> {
        self.shared.holder().covers(self.shared.clock.now(), permit)
    }

    /// The work gets on. Say it from where the work is done, never from a timer of its own.
    pub fn progress(&self) {
        self.shared.holder().progress(self.shared.clock.now());
        self.shared.told.notify_one();
    }
}
