//! The lease as the work sees it.

use super::{BootClock, Clock};
use fencegate::{Deadline, Denied, Duration, Holder, Instant, Permit, Stamp};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// What the runner and the work share.
pub(super) struct Shared<K> {
    pub(super) clock: K,
    holder: Mutex<Holder>,
    /// The work has told the holder something.
    pub(super) told: Notify,
    pub(super) cancelled: CancellationToken,
    /// What the work began under: no cancellation has tripped since as long as it is not outdated by one.
    began: OnceLock<Permit>,
    pub(super) deadline: watch::Sender<Deadline>,
}

impl<K> Shared<K> {
    pub(super) fn new(clock: K, holder: Holder) -> Self {
        Self {
            clock,
            holder: Mutex::new(holder),
            told: Notify::new(),
            cancelled: CancellationToken::new(),
            began: OnceLock::new(),
            deadline: watch::Sender::new(Deadline::at(Instant::from_micros(0))),
        }
    }

    /// The work begins.
    pub(super) fn began_under(&self, permit: Permit) {
        let _ = self.began.set(permit); // work begins once
    }

    /// No call of the holder's leaves it half changed, so that a panic elsewhere does not poison it.
    pub(super) fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clock> Shared<K> {
    /// Asks or tells the holder something, as of now. The clock is read once the holder is locked: one that was read before
    /// would lie behind that of another thread which got in between, and a clock that runs backwards is a fault for good.
    pub(super) fn at<T>(&self, does: impl FnOnce(&mut Holder, Instant) -> T) -> T {
        let mut holder = self.holder();
        let now = self.clock.now();
        does(&mut holder, now)
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
    ///
    /// To ask for it is to look at the clock: it has tripped by the time it is here where that is due, whatever has become of
    /// the runner since, or of the machine. So ask anew before each action; one that was taken along trips when the runner
    /// gets to it.
    pub fn cancelled(&self) -> &CancellationToken {
        let token = &self.shared.cancelled;
        if !token.is_cancelled()
            && let Some(began) = self.shared.began.get()
            && let Err(Denied::NoLease | Denied::Tripped | Denied::Fault(_)) = self.covers(began)
        {
            token.cancel();
            self.shared.told.notify_one();
        }
        token
    }

    /// A permit for an action that takes `work` from now until its effect is over: ask before each one.
    ///
    /// # Errors
    /// [`Denied`] says what is missing.
    pub fn may_act(&self, work: Duration) -> Result<Permit, Denied> {
        if self.cancelled().is_cancelled() {
            return Err(Denied::Tripped);
        }
        let permit = self.shared.at(|holder, now| holder.may_act(now, work));
        self.shared.told.notify_one();
        permit.and_then(|permit| if permit.stamp() == self.stamp { Ok(permit) } else { Err(Denied::NoLease) })
    }

    /// Whether work under `permit` may go on.
    ///
    /// # Errors
    /// [`Denied`] says why not.
    pub fn covers(&self, permit: &Permit) -> Result<(), Denied> {
        self.shared.at(|holder, now| holder.covers(now, permit))
    }

    /// The work gets on. Say it from where the work is done, never from a timer of its own.
    pub fn progress(&self) {
        self.shared.at(Holder::progress);
        self.shared.told.notify_one();
    }

    /// Gives the lease up gracefully, so that others get their turn: nothing new begins under it ([`Denied::Ending`]) and it
    /// is not renewed any more; the work in hand may be finished inside the window as it is now, and the lease is released
    /// once the work has returned. It is no cancellation; where the window ends first, that trips as ever.
    pub fn hand_over(&self) {
        self.shared.at(|holder, now| holder.hand_over(now, Duration::ZERO));
        self.shared.told.notify_one();
    }
}
