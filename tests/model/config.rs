//! What is checked: how many actors, for how long, with how much going wrong.

use super::world::Left;
use fencegate::{Drift, Duration, Plan, Schedule};

/// A mistake that the checker must find. Each is made by the world around the types, which do not offer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The resource acts on whatever arrives.
    NoFence,
    /// The resource acts on a raise before it is stored.
    ActsBeforeStoring,
    /// A worker goes on at the deadline itself.
    EqualityIsValid,
    /// A holder starts its timer when the answer arrives.
    CountsFromTheAnswer,
    /// The coordinator answers before it has stored.
    AnswersBeforeStoring,
    /// The coordinator takes nothing to be held when it boots.
    BootsFree,
    /// The coordinator deletes the lease whoever holds it.
    ReleasesWhateverIsHeld,
    /// The coordinator's memory went back and nobody raised the epoch.
    NoNewEpoch,
}

/// One configuration. Times are microseconds on some clock, but for the horizon, which is in ticks of real time.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) holders: usize,
    pub(crate) ttl: u64,
    /// What holders believe of both clocks together.
    pub(crate) drift_ppb: u64,
    pub(crate) rtt: u64,
    pub(crate) poll: u64,
    pub(crate) attempts: u64,
    /// Within what a worker reports progress; 0: not tied to it.
    pub(crate) progress: u64,
    /// The longest hold; 0: none.
    pub(crate) hold: u64,
    /// How far each holder's clock moves in a tick.
    pub(crate) rates: [u64; 3],
    pub(crate) coordinator_rate: u64,
    /// By how much more the first holder's clock and the coordinator's may move in any tick.
    pub(crate) wander: u64,
    pub(crate) coordinator_drift_ppb: u64,
    pub(crate) lock_delay: u64,
    pub(crate) horizon: u32,
    /// The most messages under way at once.
    pub(crate) in_flight: usize,
    /// Nothing fails: every answer comes within so many ticks of its request.
    pub(crate) answer_within: Option<u32>,
    /// Whether raises and writes go to a resource over the network; else a raise is done at once.
    pub(crate) resource: bool,
    pub(crate) left: Left,
    pub(crate) fault: Option<Fault>,
    /// After how many ticks of silence of one holder the other must have the lease.
    pub(crate) takeover: Option<u32>,
}

impl Config {
    /// Two holders, a lease of three ticks, clocks that agree, nothing under way for longer than anything else.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            holders: 2,
            ttl: 30,
            drift_ppb: 0,
            rtt: 1,
            poll: 20,
            attempts: 3,
            progress: 0,
            hold: 0,
            rates: [10; 3],
            coordinator_rate: 10,
            wander: 0,
            coordinator_drift_ppb: 0,
            lock_delay: 0,
            horizon: 6,
            in_flight: 2,
            answer_within: None,
            resource: false,
            left: Left {
                losses: 0,
                repeats: 0,
                pauses: 0,
                crashes: 0,
                restarts: 0,
                hangs: 0,
                cuts: 0,
                restores: 0,
                acts: 0,
                stops: 0,
                hand_overs: 0,
            },
            fault: None,
            takeover: None,
        }
    }

    pub(crate) fn schedule(&self) -> Schedule {
        Plan::for_ttl(Duration::from_micros(self.ttl))
            .drift(Drift::from_ppb(self.drift_ppb))
            .round_trip(Duration::from_micros(self.rtt))
            .attempts(self.attempts)
            .poll(Duration::from_micros(self.poll))
            .build()
            .expect("a plan that holders can live by")
    }
}
