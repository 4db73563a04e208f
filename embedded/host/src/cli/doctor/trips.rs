//! Round trips, measured.

use super::super::hold;
use super::super::output::Failure;
use fencegate::{Duration, HolderId, Instant, Stamp};
use fencegate_host::clock;
use fencegate_host::coordinator::gate::GateChannel;
use fencegate_host::coordinator::{Acquired, Coordinator, CoordinatorError, Renewed};
use serde::Serialize;
use std::path::Path;

/// How long the lock that is measured with may outlive a doctor who is killed. A ZooKeeper has to give sessions of twice that.
const TTL: Duration = Duration::from_secs(5);

/// Some calls.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Trips {
    /// How many.
    pub(super) calls: u64,
    #[serde(rename = "median_us")]
    pub(super) median: Duration,
    /// Connecting included.
    #[serde(rename = "worst_us")]
    pub(super) worst: Duration,
}

impl Trips {
    fn of(mut trips: Vec<Duration>) -> Result<Self, Failure> {
        trips.sort_unstable();
        match (trips.get(trips.len() / 2), trips.last()) {
            (Some(median), Some(worst)) => {
                Ok(Self { calls: u64::try_from(trips.len()).unwrap_or(u64::MAX), median: *median, worst: *worst })
            }
            _ => Err(Failure::new(3, "no call was answered")),
        }
    }
}

/// This doctor's own name: that of the key it has, where that is a single holder's.
pub(super) fn id(key_file: Option<&Path>) -> Result<HolderId, Failure> {
    match hold::whose(key_file)? {
        // A long name leaves no place for an instance. It does without: nothing is renewed, released or undone by the name
        // alone, so that another doctor of this name is only one more who has to wait.
        Some(holder) => Ok(hold::instance(&holder.to_string()).unwrap_or(holder)),
        None => hold::instance("doctor"),
    }
}

fn since(start: Instant) -> Duration {
    clock::now().since(start).unwrap_or_default()
}

fn failed(error: &CoordinatorError) -> Failure {
    let status = if matches!(error, CoordinatorError::Unfit(_)) { 2 } else { 3 };
    Failure::new(status, format_args!("coordinator: {error}"))
}

fn overdue() -> Failure {
    Failure::new(3, "coordinator: no answer within 5 s")
}

/// An acquire, as many renewals, a release.
pub(super) async fn coordinator(coordinator: &dyn Coordinator, id: HolderId, samples: u64) -> Result<Trips, Failure> {
    let start = clock::start();
    let granted = tokio::time::timeout(TTL.into(), coordinator.acquire(TTL)).await.map_err(|_| overdue())?;
    let Acquired::Granted(grant) = granted.map_err(|error| failed(&error))? else {
        let why = "coordinator: another holds the lock (--lock): another doctor, or one that was killed just now";
        return Err(Failure::new(3, why));
    };
    let acquired = since(start);
    let stamp = Stamp { epoch: grant.epoch, token: grant.token, holder: id };
    let renewals = renewals(coordinator, stamp, samples).await;
    // Whatever has come of them: the next doctor would wait for it.
    let _ = tokio::time::timeout(TTL.into(), coordinator.release(stamp)).await; // it lapses else
    let mut trips = renewals?;
    trips.push(acquired);
    Trips::of(trips)
}

async fn renewals(coordinator: &dyn Coordinator, stamp: Stamp, samples: u64) -> Result<Vec<Duration>, Failure> {
    let mut trips = Vec::new();
    for _ in 0..samples {
        let start = clock::start();
        let renewed = tokio::time::timeout(TTL.into(), coordinator.renew(stamp, TTL)).await.map_err(|_| overdue())?;
        if renewed.map_err(|error| failed(&error))? == Renewed::Gone {
            return Err(Failure::new(3, "coordinator: the lock was taken back while it was measured"));
        }
        trips.push(since(start));
    }
    Ok(trips)
}

/// As many questions on one connection.
pub(super) async fn gate(gate: &GateChannel, samples: u64) -> Result<Trips, Failure> {
    let trips = gate.round_trips(samples).await;
    Trips::of(trips.map_err(|error| Failure::new(3, format_args!("gate: {error}")))?)
}
