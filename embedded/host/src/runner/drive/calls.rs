//! The calls, each a task of its own that ends in an event.

use super::{Drive, Event, LAST};
use crate::coordinator::{CoordinatorError, RaiseError};
use crate::runner::Clock;
use fencegate::{Duration, Request, Schedule, Stamp};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

impl<K: Clock> Drive<K> {
    pub(super) fn acquire(&mut self, request: Request) {
        self.silent.get_or_insert(self.shared.clock.now());
        self.asking = Some(request);
        let (coordinator, schedule, events) = (Arc::clone(&self.coordinator), self.schedule, self.events.0.clone());
        self.asked.spawn(async move {
            let call = coordinator.acquire(schedule.ttl());
            let answer = patiently(call, request, &schedule, &events).await;
            let _ = events.send(Event::Acquired(request, answer));
        });
    }

    pub(super) fn renew(&mut self, request: Request, stamp: Stamp) {
        let (coordinator, schedule, events) = (Arc::clone(&self.coordinator), self.schedule, self.events.0.clone());
        self.renewals.retain(|renewal| !renewal.is_finished());
        self.renewals.push(self.calls.spawn(async move {
            let call = coordinator.renew(stamp, schedule.ttl());
            let answer = patiently(call, request, &schedule, &events).await;
            let _ = events.send(Event::Renewed(request, answer));
        }));
    }

    pub(super) fn release(&mut self, stamp: Stamp) {
        self.renewals.drain(..).for_each(|renewal| renewal.abort());
        self.unwatch();
        self.given_back = Some(stamp);
        let (coordinator, schedule, events) = (Arc::clone(&self.coordinator), self.schedule, self.events.0.clone());
        self.calls.spawn(async move {
            let call = timeout(schedule.heartbeat().into(), coordinator.release(stamp)).await;
            let call = call.unwrap_or_else(|_| Err(overdue()));
            let _ = events.send(Event::Released(stamp, call));
        });
    }

    /// Gives back a lease that was granted to a request which the holder knows no more: it would be held by nobody. Once; at
    /// worst it lapses.
    pub(super) fn give_back(&mut self, stamp: Stamp) {
        let (coordinator, within) = (Arc::clone(&self.coordinator), self.schedule.heartbeat().min(LAST));
        self.given.spawn(async move {
            let _ = timeout(within.into(), coordinator.release(stamp)).await;
        });
    }

    pub(super) fn raise(&mut self, stamp: Stamp) {
        let (resources, schedule, events) = (self.resources.clone(), self.schedule, self.events.0.clone());
        self.calls.spawn(async move {
            for resource in resources {
                loop {
                    match timeout(schedule.cancel_after().into(), resource.raise(stamp)).await {
                        Ok(Ok(())) => break,
                        Ok(Err(RaiseError::Refused(why))) => {
                            let _ = events.send(Event::Fenced(stamp, why));
                            return;
                        }
                        Ok(Err(error @ RaiseError::NoAnswer(_))) => {
                            let _ = events.send(Event::NotRaised(error.to_string()));
                        }
                        Err(_elapsed) => {
                            let _ = events.send(Event::NotRaised("no answer in time".to_owned()));
                        }
                    }
                    tokio::time::sleep(eighth(schedule.heartbeat()).into()).await;
                    if events.is_closed() {
                        return;
                    }
                }
            }
            let _ = events.send(Event::Raised(stamp));
        });
    }

    /// Hears of the lock's end sooner than the schedule would, where the service tells.
    pub(super) fn watch(&mut self, stamp: Option<Stamp>) {
        self.unwatch();
        let (coordinator, schedule, events) = (Arc::clone(&self.coordinator), self.schedule, self.events.0.clone());
        self.watching = Some(self.calls.spawn(async move {
            while coordinator.changed(stamp).await.is_err() {
                tokio::time::sleep(schedule.heartbeat().into()).await;
            }
            let _ = events.send(Event::Changed(stamp));
        }));
    }

    /// Nothing of ours keeps the lease alive any more.
    pub(super) fn let_lapse(&mut self) {
        self.renewals.drain(..).for_each(|renewal| renewal.abort());
        self.unwatch();
        self.coordinator.let_lapse();
    }

    fn unwatch(&mut self) {
        if let Some(watching) = self.watching.take() {
            watching.abort();
        }
    }
}

/// Waits for an answer, says so when it is overdue, and gives it up when it can no longer count.
async fn patiently<T>(
    mut call: Pin<Box<dyn Future<Output = Result<T, CoordinatorError>> + Send + '_>>,
    request: Request,
    schedule: &Schedule,
    events: &UnboundedSender<Event>,
) -> Result<T, CoordinatorError> {
    let half = Duration::from_micros(schedule.heartbeat().as_micros() / 2);
    if let Ok(answer) = timeout(half.into(), &mut call).await {
        return answer;
    }
    let _ = events.send(Event::Late(request));
    timeout(schedule.ttl().into(), call).await.unwrap_or_else(|_| Err(overdue()))
}

pub(super) fn overdue() -> CoordinatorError {
    CoordinatorError::NoAnswer("none in time".to_owned())
}

fn eighth(d: Duration) -> Duration {
    Duration::from_micros((d.as_micros() / 8).max(1))
}
