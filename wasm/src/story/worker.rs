//! A worker of a story: core's holder, the loop around it, and what can befall the process.

use super::clock::Clock;
use super::event::{Kind, cancelled};
use super::scenario::{Scenario, What, When, WorkerPlan};
use super::world::{Due, Message, Side, World};
use fencegate::{Denied, Duration, Holder, Instant, Output, Stamp};
use std::rc::Rc;

/// Whoever is done does not ask again within the story.
const NEVER: Duration = Duration::from_micros(1 << 40);

/// What a worker's process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Running,
    /// Nothing of the process runs.
    Frozen,
    /// The work hangs; whoever renews lives.
    Hung,
    Dead,
}

/// The write in hand, under the stamp that its permit carried.
#[derive(Clone, Debug)]
pub(crate) struct Hand {
    pub(crate) stamp: Stamp,
    /// Prepared, and about to leave; only a process that does not run keeps it so.
    ready: bool,
}

/// What waits for the resource's answer.
#[derive(Clone, Debug)]
struct Waiting {
    try_: u64,
    message: Message,
}

#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) holder: Holder,
    pub(crate) clock: Clock,
    pub(crate) condition: Condition,
    /// How many nodes of the coordinator it reaches.
    pub(crate) reach: u64,
    /// The number of its last wish to be called.
    pub(crate) wish: u64,
    pub(crate) hand: Option<Hand>,
    waiting: Option<Waiting>,
    tries: u64,
    inbox: Vec<Message>,
    /// How much of the job is done.
    pub(crate) written: usize,
    /// How many writes it has begun, finished or not.
    begun: u64,
    finished: bool,
    /// No new write before this.
    rests_until: u64,
    /// When it last asked for the lease.
    asked: u64,
}

impl Worker {
    pub(crate) fn new(plan: &WorkerPlan, scenario: &Scenario) -> Self {
        let holder = Holder::new(scenario.schedule, plan.id);
        Self {
            holder: scenario.progress.map_or(holder.clone(), |limit| holder.progress_within(limit)),
            clock: Clock::off_by(plan.drift),
            condition: Condition::Running,
            reach: scenario.nodes,
            wish: 0,
            hand: None,
            waiting: None,
            tries: 0,
            inbox: Vec::new(),
            written: 0,
            begun: 0,
            finished: false,
            rests_until: 0,
            asked: 0,
        }
    }

    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }
}

impl World {
    fn local(&self, who: usize) -> Instant {
        self.clock_of(who).reads(self.now)
    }

    fn runs(&self, who: usize) -> bool {
        matches!(self.workers[who].condition, Condition::Running | Condition::Hung)
    }

    /// Does what the holder says until it waits, and then looks for work.
    pub(crate) fn poll(&mut self, who: usize) {
        while self.runs(who) {
            let now = self.local(who);
            match self.workers[who].holder.poll(now) {
                Output::SendAcquire(request) => {
                    self.workers[who].asked = self.now;
                    self.tell_worker(who, Kind::Asks, "asks for the lease");
                    self.send(Side::Worker(who), Side::Coordinator, 0, 0, Message::Acquire(request));
                }
                Output::Raise(stamp) => {
                    self.tell_worker(
                        who,
                        Kind::Raises,
                        format!("raises the fence to {}, before anything else", stamp.token),
                    );
                    self.ask_resource(who, Message::Raise(stamp), 0);
                }
                Output::SendRenewal(request, stamp) => {
                    self.tell_worker(who, Kind::Renews, "renews");
                    self.send(Side::Worker(who), Side::Coordinator, 0, 0, Message::Renew(request, stamp));
                }
                Output::Cancel(cause) => {
                    self.tell_worker(who, Kind::Cancelled, cancelled(cause));
                    // Who hangs does not hear it: only the fence is left.
                    if self.workers[who].condition == Condition::Running {
                        self.workers[who].hand = None;
                        self.workers[who].holder.stopped(now);
                    }
                }
                Output::SendRelease(stamp) => {
                    let scenario = Rc::clone(&self.scenario);
                    let name = &scenario.workers[who].name;
                    self.tell_all(name, Kind::Releases, "gives the lease back", Some(stamp), None, None);
                    self.send(Side::Worker(who), Side::Coordinator, 0, 0, Message::Release(stamp));
                }
                Output::Wait(until) => {
                    self.workers[who].wish += 1;
                    if let Some(until) = until {
                        let at = self.clock_of(who).when(until).max(self.now + 1);
                        self.schedule(at, Due::Poll(who, self.workers[who].wish));
                    }
                    break;
                }
            }
        }
        self.try_work(who);
    }

    /// Begins the next write, if there is one, and a permit for it.
    pub(crate) fn try_work(&mut self, who: usize) {
        let now = self.local(who);
        let job = &self.scenario.workers[who];
        let work = job.work;
        let worker = &mut self.workers[who];
        if worker.condition != Condition::Running
            || worker.hand.is_some()
            || worker.waiting.is_some()
            || worker.written >= job.job.len()
            || self.now < worker.rests_until
        {
            return;
        }
        // How long the write takes at the most, on the holder's own clock.
        let longest = Duration::from_micros(work + work / 2);
        match worker.holder.may_act(now, longest) {
            Ok(permit) => {
                worker.begun += 1;
                worker.hand = Some(Hand { stamp: permit.stamp(), ready: false });
                worker.holder.progress(now);
                let text = job.job[worker.written].clone();
                let name = job.name.clone();
                self.schedule(self.now + work, Due::Ready(who));
                self.tell_all(
                    &name,
                    Kind::Begins,
                    "looks at its lease and begins",
                    Some(permit.stamp()),
                    Some(text),
                    None,
                );
            }
            // There will be time again after the next acknowledgement, which calls.
            Err(Denied::Time { .. } | Denied::Tripped | Denied::NotRaised | Denied::NoLease | Denied::Ending) => {}
            Err(Denied::Fault(_)) => worker.written = job.job.len(),
        }
    }

    /// The write in hand is prepared. Whatever befalls the worker just now does so after its last check.
    pub(crate) fn ready(&mut self, who: usize) {
        let Some(hand) = &mut self.workers[who].hand else { return };
        hand.ready = true;
        let nth = When::Write(self.workers[who].begun);
        let mut held = 0;
        for at in 0..self.scenario.happenings.len() {
            let happening = &self.scenario.happenings[at];
            if happening.who != who || happening.when != nth {
                continue;
            }
            match (happening.what, happening.lasts) {
                (What::Hold, lasts) => held = lasts,
                (what, lasts) => self.strike(who, what, lasts),
            }
        }
        if self.workers[who].condition == Condition::Running {
            self.write(who, held);
        }
    }

    /// Sends the write in hand.
    fn write(&mut self, who: usize, held: u64) {
        let Some(Hand { stamp, ready: true }) = self.workers[who].hand else { return };
        self.workers[who].hand = None;
        let scenario = Rc::clone(&self.scenario);
        let name = &scenario.workers[who].name;
        let text = scenario.workers[who].job[self.workers[who].written].clone();
        self.tell_all(name, Kind::Writes, "writes", Some(stamp), Some(text.clone()), None);
        if held > 0 {
            self.tell_all(name, Kind::Held, "its write is held back in the network", Some(stamp), None, None);
        }
        self.ask_resource(who, Message::Write { stamp, text }, held);
    }

    fn ask_resource(&mut self, who: usize, message: Message, held: u64) {
        let worker = &mut self.workers[who];
        worker.tries += 1;
        let try_ = worker.tries;
        worker.waiting = Some(Waiting { try_, message: message.clone() });
        self.send(Side::Worker(who), Side::Resource, held, try_, message);
        let patience = 2 * self.scenario.workers[who].delay + self.scenario.store + self.scenario.rtt + held;
        self.schedule(self.now + patience, Due::Retry(who, try_));
    }

    /// No answer from the resource: a raise is tried again while it is wanted, a write is looked at anew.
    pub(crate) fn retry(&mut self, who: usize, try_: u64) {
        if !self.runs(who) {
            return;
        }
        let Some(waiting) = self.workers[who].waiting.take_if(|waiting| waiting.try_ == try_) else { return };
        match waiting.message {
            Message::Raise(stamp) if self.workers[who].holder.stamp() == Some(stamp) => {
                self.ask_resource(who, Message::Raise(stamp), 0);
            }
            _ => self.poll(who),
        }
    }

    pub(crate) fn hears(&mut self, who: usize, message: Message) {
        match self.workers[who].condition {
            Condition::Dead => return,
            Condition::Frozen => return self.workers[who].inbox.push(message),
            Condition::Running | Condition::Hung => {}
        }
        let now = self.local(who);
        let random = self.random();
        let (reach, elapsed) = (self.workers[who].reach, self.now - self.workers[who].asked);
        let held = self.is_held(reach, elapsed);
        match message {
            Message::Granted(request, stamp, ttl) => {
                let holder = &mut self.workers[who].holder;
                if self.scenario.nodes > 1 && !held {
                    holder.lost(now, request, random);
                    self.tell_worker(who, Kind::Lost, "the grant came too late to be worth anything");
                } else {
                    holder.granted(now, request, stamp, Some(ttl));
                    let is = holder.stamp() == Some(stamp);
                    if self.workers[who].finished {
                        // It had asked before its last write was done.
                        self.workers[who].holder.hand_over(now, NEVER);
                    }
                    let words = if is {
                        format!("has the lease, with token {}", stamp.token)
                    } else {
                        "has no use for the grant any more".into()
                    };
                    let scenario = Rc::clone(&self.scenario);
                    let name = &scenario.workers[who].name;
                    self.tell_all(name, if is { Kind::Granted } else { Kind::Lost }, words, Some(stamp), None, None);
                }
            }
            Message::Renewed(request, ttl) => {
                self.workers[who].holder.renewed(now, request, Some(ttl));
                self.tell_worker(who, Kind::Renewed, "is renewed");
            }
            Message::Refused(request, words) => {
                self.tell_worker(who, Kind::Refused, words);
                self.workers[who].holder.refused(now, request, None, random);
            }
            Message::NoQuorum(request, words) => {
                self.tell_worker(who, Kind::Lost, words);
                self.workers[who].holder.lost(now, request, random);
            }
            Message::Released(stamp) => self.workers[who].holder.released(now, stamp),
            Message::Done { try_ } => self.answered(who, try_, now),
            Message::Fenced { try_, stamp } => {
                let waiting = self.workers[who].waiting.take_if(|waiting| waiting.try_ == try_);
                let write = waiting.is_some_and(|waiting| matches!(waiting.message, Message::Write { .. }));
                if write && self.scenario.workers[who].gives_up {
                    self.workers[who].written = self.scenario.workers[who].job.len();
                    self.workers[who].holder.stop(now);
                }
                self.workers[who].holder.fenced(now, stamp);
            }
            _ => {}
        }
        self.poll(who);
    }

    /// The resource has done what was asked.
    fn answered(&mut self, who: usize, try_: u64, now: Instant) {
        let plan = &self.scenario.workers[who];
        let (rest, all) = (plan.rest, plan.job.len());
        let worker = &mut self.workers[who];
        let Some(waiting) = worker.waiting.take_if(|waiting| waiting.try_ == try_) else { return };
        match waiting.message {
            Message::Raise(stamp) => worker.holder.raised(now, stamp),
            Message::Write { .. } => {
                worker.written += 1;
                worker.holder.progress(now);
                worker.rests_until = self.now + rest;
                if worker.written == all {
                    worker.finished = true;
                    worker.holder.stopped(now);
                    worker.holder.hand_over(now, NEVER);
                    self.tell_worker(who, Kind::Finished, "has written everything");
                } else if rest > 0 {
                    self.schedule(self.now + rest, Due::Work(who));
                }
            }
            _ => {}
        }
    }

    /// A freeze, a hang or a death.
    pub(crate) fn strike(&mut self, who: usize, what: What, lasts: u64) {
        let (condition, kind, words) = match what {
            What::Hang => (Condition::Hung, Kind::Hangs, "hangs in its work; its renewals go on"),
            What::Crash => (Condition::Dead, Kind::Dies, "dies"),
            _ => (Condition::Frozen, Kind::Freezes, "freezes; its last check is behind it"),
        };
        if self.workers[who].condition == Condition::Dead {
            return;
        }
        self.tell_worker(who, kind, words);
        self.workers[who].condition = condition;
        if condition != Condition::Dead {
            self.schedule(self.now + lasts, Due::Wake(who));
        }
    }

    /// It goes on exactly where it was: the write that was about to leave leaves, and only then it looks around.
    pub(crate) fn wake(&mut self, who: usize) {
        if !matches!(self.workers[who].condition, Condition::Frozen | Condition::Hung) {
            return;
        }
        self.workers[who].condition = Condition::Running;
        let stamp = self.workers[who].hand.as_ref().map(|hand| hand.stamp);
        let scenario = Rc::clone(&self.scenario);
        let name = &scenario.workers[who].name;
        self.tell_all(name, Kind::Wakes, "goes on where it was, and has noticed nothing", stamp, None, None);
        self.write(who, 0);
        for message in std::mem::take(&mut self.workers[who].inbox) {
            self.hears(who, message);
        }
        let now = self.local(who);
        self.workers[who].holder.stopped(now);
        if let Some(try_) = self.workers[who].waiting.as_ref().map(|waiting| waiting.try_) {
            let patience = 2 * self.scenario.workers[who].delay + self.scenario.store + self.scenario.rtt;
            self.schedule(self.now + patience, Due::Retry(who, try_));
        }
        self.poll(who);
    }
}
