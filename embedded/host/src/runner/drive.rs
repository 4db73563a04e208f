//! The loop: the holder's outputs become calls, and their answers its events.

mod calls;

use super::lease::Shared;
use super::{Clock, Held, Lease, NotHeld, Report, Runner};
use crate::coordinator::{Acquired, Coordinator, CoordinatorError, Renewed, Resource};
use calls::overdue;
use fencegate::{Cause, Duration, Epoch, Holder, Instant, Output, Request, Schedule, Stamp};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// What a call has come to.
enum Event {
    Acquired(Request, Result<Acquired, CoordinatorError>),
    Renewed(Request, Result<Renewed, CoordinatorError>),
    /// No answer in half a heartbeat; it may still come.
    Late(Request),
    Released(Stamp, Result<(), CoordinatorError>),
    Raised(Stamp),
    NotRaised(String),
    Fenced(Stamp, String),
    /// The lock is not held under this stamp any more; `None`: by nobody.
    Changed(Option<Stamp>),
}

/// How long the answers to acquires that nobody wants any more are waited for at the most, and then for what they brought to
/// be given back; a heartbeat, where that is shorter.
const LAST: Duration = Duration::from_secs(5);

pub(super) struct Drive<K> {
    shared: Arc<Shared<K>>,
    coordinator: Arc<dyn Coordinator>,
    resources: Vec<Arc<dyn Resource>>,
    schedule: Schedule,
    work: Duration,
    patience: Option<Duration>,
    progress: Option<Duration>,
    epoch: Option<Epoch>,
    reports: Option<UnboundedSender<Report>>,
    /// Acquires under way, and grants that are being given back.
    asked: JoinSet<()>,
    given: JoinSet<()>,
    /// The last of those acquires.
    asking: Option<Request>,
    calls: JoinSet<()>,
    renewals: Vec<AbortHandle>,
    watching: Option<AbortHandle>,
    events: (UnboundedSender<Event>, UnboundedReceiver<Event>),
    began: Instant,
    /// Since when the service has been asked for the lease without any answer.
    silent: Option<Instant>,
    /// Whether it has answered that another has it.
    held: bool,
    error: Option<String>,
    /// Until when the fences of a lease that was granted may be raised, while one of them is not.
    raising: Option<Instant>,
    /// Why one is not, as it was heard last.
    not_raised: Option<String>,
    /// Why no work will begin.
    given_up: Option<NotHeld>,
    /// Since when nobody wants a lease any more.
    unwanted: Option<Instant>,
    /// The lease that the work began under.
    under: Option<Stamp>,
    cancelled: Option<Cause>,
    /// Whether the work has ended: what comes then is no cancellation of it.
    finished: bool,
    released: bool,
    /// The lease that the holder has had given back last.
    given_back: Option<Stamp>,
}

impl<K: Clock> Drive<K> {
    pub(super) fn new(runner: Runner<K>) -> Self {
        let Runner { coordinator, resources, holder, work, patience, progress, epoch, reports, clock, .. } = runner;
        let (schedule, began) = (holder.schedule(), clock.now());
        Self {
            shared: Arc::new(Shared::new(clock, holder)),
            coordinator,
            resources,
            schedule,
            work,
            patience,
            progress,
            epoch,
            reports,
            asked: JoinSet::new(),
            given: JoinSet::new(),
            asking: None,
            calls: JoinSet::new(),
            renewals: Vec::new(),
            watching: None,
            events: mpsc::unbounded_channel(),
            began,
            silent: None,
            held: false,
            error: None,
            raising: None,
            not_raised: None,
            given_up: None,
            unwanted: None,
            under: None,
            cancelled: None,
            finished: false,
            released: false,
            given_back: None,
        }
    }

    pub(super) async fn run<W, F>(mut self, stop: CancellationToken, work: W) -> Result<Held<F::Output>, NotHeld>
    where
        W: FnOnce(Lease<K>) -> F,
        F: Future,
    {
        let mut work = Some(work);
        let mut running: Option<Pin<Box<F>>> = None;
        let mut output = None;
        let mut stopping = false;
        loop {
            let wake = self.poll();
            if work.is_some()
                && let Some(lease) = self.begin()
            {
                running = work.take().map(|work| Box::pin(work(lease)));
            }
            if running.is_none() && self.shared.holder().is_done() && self.asked.is_empty() {
                // The last of them may have brought something.
                if let Ok(event) = self.events.1.try_recv() {
                    self.take(event);
                    continue;
                }
                if self.given.is_empty() {
                    return self.end(output);
                }
            }
            let wake = earlier(wake, earlier(self.out_of_patience(), self.last_call()));
            tokio::select! {
                biased;
                // The clock comes first in every turn, and before the work is polled: where the process stood still, or the
                // machine, the work's own timers are due as well, and it is to find its token tripped.
                () = is_due(&self.shared.clock, wake) => self.lose_patience(),
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    self.stop(NotHeld::Stopped);
                }
                Some(event) = self.events.1.recv() => self.take(event),
                ended = finished(&mut running), if running.is_some() => {
                    (running, output) = (None, Some(ended));
                    self.poll(); // a lease that is over by now was over before the work was seen to end
                    self.finished = true;
                    self.unwanted.get_or_insert(self.shared.clock.now());
                    self.shared.at(|holder, now| {
                        holder.stopped(now);
                        holder.stop(now);
                    });
                }
                Some(_) = self.asked.join_next() => {}
                Some(_) = self.given.join_next() => {}
                () = self.shared.told.notified() => {}
                () = sleep(&self.shared.clock, wake) => self.lose_patience(),
            }
            // Ended calls are of no use any more.
            while self.calls.try_join_next().is_some() {}
        }
    }

    /// Does what the holder wants done; when it wants to be asked again.
    fn poll(&mut self) -> Option<Instant> {
        loop {
            let output = self.shared.at(Holder::poll);
            match output {
                Output::SendAcquire(request) => self.acquire(request),
                Output::Raise(stamp) => self.raise(stamp),
                Output::SendRenewal(request, stamp) => self.renew(request, stamp),
                Output::Cancel(cause) => self.cancel(cause),
                Output::SendRelease(stamp) => self.release(stamp),
                Output::Wait(until) => {
                    if let Some(deadline) = self.shared.holder().deadline() {
                        self.shared.deadline.send_if_modified(|old| std::mem::replace(old, deadline) != deadline);
                    }
                    return until;
                }
            }
        }
    }

    /// The lease, once work may begin under it.
    fn begin(&mut self) -> Option<Lease<K>> {
        if self.given_up.is_some() {
            return None;
        }
        let permit = self.shared.at(|holder, now| {
            let permit = holder.may_act(now, self.work).ok()?;
            if let Some(limit) = self.progress {
                // Of raising the fences the work knows nothing: its first limit begins with it.
                holder.progress(now);
                *holder = holder.clone().progress_within(limit);
            }
            Some(permit)
        })?;
        let stamp = permit.stamp();
        self.under = Some(stamp);
        self.shared.began_under(permit);
        Some(Lease { shared: Arc::clone(&self.shared), stamp })
    }

    fn end<T>(mut self, output: Option<T>) -> Result<Held<T>, NotHeld> {
        match (output, self.under) {
            (Some(output), Some(stamp)) => {
                Ok(Held { output, stamp, cancelled: self.cancelled, released: self.released })
            }
            _ => Err(self.given_up.take().unwrap_or(NotHeld::Stopped)),
        }
    }

    /// Ends it all: the work in hand is cancelled; where none has begun, none will, and this is why.
    fn stop(&mut self, why: NotHeld) {
        if self.under.is_none() && self.given_up.is_none() {
            self.given_up = Some(why);
        }
        self.unwanted.get_or_insert(self.shared.clock.now());
        self.shared.at(Holder::stop);
    }

    fn cancel(&mut self, cause: Cause) {
        if self.finished {
            return;
        }
        self.report(Report::Cancelled(cause));
        let gone = self.shared.holder().stamp().is_none();
        if self.under.is_some() {
            self.cancelled.get_or_insert(cause);
            self.shared.cancelled.cancel();
        }
        if matches!(cause, Cause::Expired | Cause::Refused | Cause::Revoked | Cause::Fault(_)) {
            self.let_lapse();
        }
        // A lease that is still there goes on being renewed while the work stops, or until the fences are raised.
        if gone {
            self.stop(NotHeld::Lost(cause));
        }
    }

    /// When it has waited for as long as it would, where it still waits.
    fn out_of_patience(&self) -> Option<Instant> {
        if self.under.is_some() || self.given_up.is_some() {
            return None;
        }
        if self.shared.holder().stamp().is_some() {
            return self.raising;
        }
        let silence = self.silent.and_then(|since| since.checked_add(self.schedule.ttl()));
        let patience = self.patience.filter(|_| self.held).and_then(|patience| self.began.checked_add(patience));
        earlier(silence, patience.filter(|at| *at > self.shared.clock.now()))
    }

    /// Until when acquires that nobody wants any more are waited for.
    fn last_call(&self) -> Option<Instant> {
        let last = self.unwanted.filter(|_| !self.asked.is_empty())?;
        last.checked_add(LAST.min(self.schedule.heartbeat()))
    }

    fn lose_patience(&mut self) {
        if self.last_call().is_some_and(|last| self.shared.clock.now() >= last) {
            while let Ok(event) = self.events.1.try_recv() {
                self.take(event); // what has come has come, however late it is looked at
            }
            self.asked = JoinSet::new();
            if let Some(request) = self.asking.take() {
                self.refused(request, None); // as good as an answer
            }
        }
        if self.under.is_some() || self.given_up.is_some() {
            return;
        }
        let now = self.shared.clock.now();
        if self.shared.holder().stamp().is_some() {
            if self.raising.is_some_and(|until| now >= until) {
                let why = self.not_raised.take().unwrap_or_else(|| "nothing was heard".to_owned());
                self.stop(NotHeld::NotRaised(why));
            }
            return;
        }
        let has_passed = |limit, since| now.since(since).is_ok_and(|passed| passed >= limit);
        let silent = self.silent.is_some_and(|since| has_passed(self.schedule.ttl(), since));
        let waited = self.patience.is_some_and(|patience| has_passed(patience, self.began));
        match &self.error {
            Some(why) if silent => self.stop(NotHeld::NoAnswer(why.clone())),
            None if silent => self.stop(NotHeld::NoAnswer("nothing was heard".to_owned())),
            None if waited && self.held => self.stop(NotHeld::HeldByAnother),
            _ => {}
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Acquired(request, Ok(answer)) => self.acquired(request, answer),
            Event::Renewed(request, Ok(Renewed::Renewed { ttl })) => {
                let moved = self.shared.at(|holder, now| {
                    let before = holder.deadline();
                    holder.renewed(now, request, ttl);
                    holder.deadline().filter(|after| before != Some(*after))
                });
                if let Some(deadline) = moved {
                    self.report(Report::Renewed(deadline));
                }
            }
            Event::Renewed(request, Ok(Renewed::Gone)) => self.refused(request, None),
            Event::Acquired(request, Err(error)) | Event::Renewed(request, Err(error)) => {
                self.unanswered(request, error);
            }
            Event::Late(request) => self.unanswered(request, overdue()),
            Event::Released(stamp, Ok(())) => {
                self.shared.at(|holder, now| holder.released(now, stamp));
                self.released = true;
                self.report(Report::Released);
            }
            Event::Released(_, Err(error)) => {
                self.coordinator.suspect();
                self.report(Report::NoAnswer(error.to_string()));
            }
            Event::Raised(stamp) => {
                self.raising = None;
                self.shared.at(|holder, now| holder.raised(now, stamp));
                self.report(Report::Raised(stamp));
            }
            Event::NotRaised(why) => {
                self.not_raised = Some(why.clone());
                self.report(Report::NotRaised(why));
            }
            Event::Fenced(stamp, why) => {
                if self.under.is_none() {
                    self.given_up.get_or_insert(NotHeld::Fenced(why));
                }
                self.shared.at(|holder, now| holder.fenced(now, stamp));
            }
            Event::Changed(Some(stamp)) => self.shared.at(|holder, now| holder.revoked(now, stamp)),
            Event::Changed(None) => self.shared.at(|holder, now| {
                if holder.stamp().is_none() && self.given_up.is_none() {
                    holder.hand_over(now, Duration::ZERO); // without a lease it only asks at once
                }
            }),
        }
    }

    fn refused(&self, request: Request, wait: Option<Duration>) {
        let random = random();
        self.shared.at(|holder, now| holder.refused(now, request, wait, random));
    }

    fn acquired(&mut self, request: Request, answer: Acquired) {
        self.silent = None;
        self.error = None;
        match answer {
            Acquired::Granted(grant) => {
                let epoch = self.epoch.unwrap_or(grant.epoch);
                let (stamp, now, held) = self.shared.at(|holder, now| {
                    let stamp = Stamp { epoch, token: grant.token, holder: holder.id() };
                    holder.granted(now, request, stamp, grant.ttl);
                    (stamp, now, holder.deadline().filter(|_| holder.stamp() == Some(stamp)))
                });
                if let Some(deadline) = held {
                    // A TTL from now, or for as long as the caller would wait, if that is longer.
                    let patience = self.patience.and_then(|patience| self.began.checked_add(patience));
                    self.raising = now.checked_add(self.schedule.ttl()).max(patience);
                    self.report(Report::Granted(stamp, deadline));
                    self.watch(Some(stamp));
                } else {
                    self.poll(); // it may want it given back
                    if self.given_back != Some(stamp) {
                        self.give_back(stamp);
                    }
                }
                if epoch < grant.epoch {
                    self.stop(NotHeld::Epoch { given: epoch, kept: grant.epoch });
                }
            }
            Acquired::Held { wait, by } => {
                self.held = true;
                self.refused(request, wait);
                self.report(Report::HeldByAnother { wait, by });
                if self.shared.holder().stamp().is_none() && self.given_up.is_none() {
                    self.watch(None);
                }
                self.lose_patience();
            }
        }
    }

    fn unanswered(&mut self, request: Request, error: CoordinatorError) {
        let first = self.shared.holder().stamp().is_none();
        match &error {
            // An answer, and none that another try would change: nothing more of it is to be waited for.
            CoordinatorError::Unfit(_) if first => self.refused(request, None),
            _ => {
                let random = random();
                self.shared.at(|holder, now| holder.lost(now, request, random));
            }
        }
        self.coordinator.suspect();
        self.report(Report::NoAnswer(error.to_string()));
        match error {
            CoordinatorError::Unfit(why) if first => {
                // It says more than that nothing was heard in time.
                self.given_up.take_if(|why| matches!(why, NotHeld::NoAnswer(_)));
                self.stop(NotHeld::Unfit(why));
            }
            CoordinatorError::Unfit(why) | CoordinatorError::NoAnswer(why) => {
                self.error = Some(why);
                self.lose_patience();
            }
        }
    }

    fn report(&self, report: Report) {
        if let Some(to) = &self.reports {
            let _ = to.send(report);
        }
    }
}

impl<K> Drop for Drive<K> {
    /// Also where the caller has dropped `hold` in the middle of it.
    fn drop(&mut self) {
        self.asked.abort_all();
        self.calls.abort_all();
        self.coordinator.let_lapse();
    }
}

/// Spreads those who wait for one lock. Without a random source they ask all at once, which is slower and no less safe.
fn random() -> u32 {
    getrandom::u32().unwrap_or(0)
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

async fn finished<F: Future>(running: &mut Option<Pin<Box<F>>>) -> F::Output {
    match running {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// Ends where it is time by the clock, and wakes nobody: that is [`sleep`]'s.
async fn is_due(clock: &impl Clock, at: Option<Instant>) {
    let is_time = || at.is_some_and(|at| clock.now() >= at);
    std::future::poll_fn(|_| if is_time() { Poll::Ready(()) } else { Poll::Pending }).await;
}

async fn sleep(clock: &impl Clock, until: Option<Instant>) {
    match until {
        Some(at) => clock.until(at).await,
        None => std::future::pending().await,
    }
}
