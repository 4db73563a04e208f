//! The story's world: what is under way, what is due next, and who it comes to.

use super::clock::Clock;
use super::coordinator::Coordinator;
use super::event::{Event, Kind};
use super::resource::Resource;
use super::scenario::{Scenario, What, When};
use super::worker::Worker;
use fencegate::{Duration, FenceRecord, Request, Stamp};
use std::borrow::Cow;
use std::rc::Rc;

/// A limit on everything: no watchable story has more steps.
const MOST_STEPS: u32 = 20_000;

/// Who a message comes from, or goes to, other than a worker.
pub(crate) const COORDINATOR: &str = "coordinator";
pub(crate) const RESOURCE: &str = "resource";

/// What goes over the network.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Acquire(Request),
    Renew(Request, Stamp),
    Release(Stamp),
    Raise(Stamp),
    Write {
        stamp: Stamp,
        text: String,
    },
    Granted(Request, Stamp, Duration),
    Renewed(Request, Duration),
    Refused(Request, Cow<'static, str>),
    NoQuorum(Request, String),
    Released(Stamp),
    /// The resource's answer to a raise or a write; which try it is that it answers.
    Done {
        try_: u64,
    },
    Fenced {
        try_: u64,
        stamp: Stamp,
    },
}

impl Message {
    const fn name(&self) -> &'static str {
        match self {
            Self::Acquire(_) => "acquire",
            Self::Renew(..) => "renew",
            Self::Release(_) => "release",
            Self::Raise(_) => "raise",
            Self::Write { .. } => "write",
            Self::Granted(..) => "granted",
            Self::Renewed(..) => "renewed",
            Self::Refused(..) | Self::NoQuorum(..) => "refused",
            Self::Released(_) => "released",
            Self::Done { .. } => "done",
            Self::Fenced { .. } => "fenced",
        }
    }

    /// The stamp that it carries.
    const fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Renew(_, stamp)
            | Self::Release(stamp)
            | Self::Raise(stamp)
            | Self::Write { stamp, .. }
            | Self::Granted(_, stamp, _)
            | Self::Released(stamp)
            | Self::Fenced { stamp, .. } => Some(*stamp),
            _ => None,
        }
    }
}

/// Where a message is bound for. `None` as a worker: somebody outside of the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Worker(usize),
    Coordinator,
    Resource,
    Outside(usize),
}

/// What is due at some instant.
#[derive(Clone, Debug)]
pub(crate) enum Due {
    /// A worker's holder wants to be called; a later wish makes an earlier one void.
    Poll(usize, u64),
    /// A worker may look for its next write.
    Work(usize),
    /// A write is prepared and about to leave.
    Ready(usize),
    /// A freeze or a hang is over.
    Wake(usize),
    /// A worker has waited long enough for the resource's answer to its try of that number.
    Retry(usize, u64),
    Deliver {
        from: Side,
        to: Side,
        sent: u64,
        try_: u64,
        message: Message,
    },
    Happen(usize),
    Script(usize),
    /// The coordinator's clock has come to the end of a lease.
    Ends(Stamp),
    /// What the resource has decided is stored.
    Stored,
    Boot,
    Heal(usize),
}

/// Everything there is, at one instant.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) scenario: Rc<Scenario>,
    pub(crate) now: u64,
    pub(crate) due: Vec<(u64, u64, Due)>,
    /// Orders what is due at one instant as it came up.
    next: u64,
    steps: u32,
    pub(crate) workers: Vec<Worker>,
    pub(crate) coordinator: Coordinator,
    pub(crate) resource: Resource,
    pub(crate) events: Vec<Event>,
    random: u32,
}

impl World {
    pub(crate) fn new(scenario: &Rc<Scenario>) -> Self {
        let mut world = Self {
            now: 0,
            due: Vec::new(),
            next: 0,
            steps: 0,
            workers: scenario.workers.iter().map(|plan| Worker::new(plan, scenario)).collect(),
            coordinator: Coordinator::new(scenario),
            resource: Resource::new(scenario),
            events: Vec::new(),
            // Any number but zero: the same story is told the same way each time.
            random: 0x9E37_79B9,
            scenario: Rc::clone(scenario),
        };
        for (at, happening) in scenario.happenings.iter().enumerate() {
            if let When::At(us) = happening.when {
                world.schedule(us, Due::Happen(at));
            }
        }
        for (at, write) in scenario.writes.iter().enumerate() {
            world.schedule(write.at, Due::Script(at));
        }
        for (at, worker) in scenario.workers.iter().enumerate() {
            world.schedule(worker.starts, Due::Poll(at, 0));
        }
        world
    }

    pub(crate) fn schedule(&mut self, at: u64, due: Due) {
        self.next += 1;
        self.due.push((at, self.next, due));
    }

    /// What is next, if it comes by `until` and before the story's end.
    fn next_due(&self, until: u64) -> Option<usize> {
        let next = self.due.iter().enumerate().min_by_key(|(_, (at, order, _))| (*at, *order));
        next.filter(|(_, (at, ..))| *at <= until && *at <= self.scenario.until && self.steps < MOST_STEPS)
            .map(|(i, _)| i)
    }

    /// Whether nothing happens any more.
    pub(crate) fn is_over(&self) -> bool {
        self.next_due(u64::MAX).is_none()
    }

    /// Lets the next thing happen that is due by `until`; `false` where there is none.
    pub(crate) fn step(&mut self, until: u64) -> bool {
        let Some(i) = self.next_due(until) else { return false };
        let (at, _, due) = self.due.swap_remove(i);
        self.now = at;
        self.steps += 1;
        if self.steps == MOST_STEPS {
            self.tell(COORDINATOR, Kind::BrokenOff, "more happens than can be told");
            return true;
        }
        match due {
            Due::Poll(who, wish) if self.workers[who].wish == wish => self.poll(who),
            Due::Work(who) => self.try_work(who),
            Due::Ready(who) => self.ready(who),
            Due::Wake(who) => self.wake(who),
            Due::Retry(who, try_) => self.retry(who, try_),
            Due::Deliver { from, to, try_, message, .. } => match to {
                Side::Worker(who) => self.hears(who, message),
                Side::Coordinator => self.coordinator_hears(from, &message),
                Side::Resource => self.resource_hears(from, try_, message),
                Side::Outside(_) => {}
            },
            Due::Happen(at) => self.happen(at),
            Due::Script(at) => self.script(at),
            Due::Ends(stamp) => self.ends(stamp),
            Due::Stored => self.stored(),
            Due::Boot => self.boot(),
            Due::Heal(who) => {
                self.workers[who].reach = self.scenario.nodes;
                self.tell_worker(who, Kind::Heals, "reaches every node again");
            }
            Due::Poll(..) => {}
        }
        true
    }

    /// Puts a message on its way; it takes the worker's delay and `more`.
    pub(crate) fn send(&mut self, from: Side, to: Side, more: u64, try_: u64, message: Message) {
        let delay = match (from, to) {
            (Side::Worker(who), _) | (_, Side::Worker(who)) => self.scenario.workers[who].delay,
            _ => 0,
        };
        let sent = self.now;
        self.schedule(self.now + delay + more, Due::Deliver { from, to, sent, try_, message });
    }

    /// Any 32 bits; xorshift (Marsaglia, 2003).
    pub(crate) const fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    pub(crate) fn name(&self, side: Side) -> &str {
        match side {
            Side::Worker(who) => &self.scenario.workers[who].name,
            Side::Outside(at) => &self.scenario.writes[at].who,
            Side::Coordinator => COORDINATOR,
            Side::Resource => RESOURCE,
        }
    }

    pub(crate) fn tell(&mut self, who: &str, kind: Kind, words: impl Into<Cow<'static, str>>) {
        self.tell_all(who, kind, words, None, None, None);
    }

    pub(crate) fn tell_worker(&mut self, who: usize, kind: Kind, words: impl Into<Cow<'static, str>>) {
        let stamp = self.workers[who].holder.stamp();
        let scenario = Rc::clone(&self.scenario);
        self.tell_all(&scenario.workers[who].name, kind, words, stamp, None, None);
    }

    pub(crate) fn tell_all(
        &mut self,
        who: &str,
        kind: Kind,
        words: impl Into<Cow<'static, str>>,
        stamp: Option<Stamp>,
        text: Option<String>,
        by: Option<FenceRecord>,
    ) {
        self.events.push(Event { at: self.now, who: who.to_owned(), kind, words: words.into(), stamp, text, by });
    }

    /// Something that the scenario has in store.
    fn happen(&mut self, at: usize) {
        let scenario = Rc::clone(&self.scenario);
        let happening = &scenario.happenings[at];
        let who = happening.who;
        match happening.what {
            What::Freeze | What::Hang | What::Crash => self.strike(who, happening.what, happening.lasts),
            // Only of a write, and so done where it leaves.
            What::Hold => {}
            What::Partition => {
                self.workers[who].reach = happening.nodes.min(self.scenario.nodes);
                let (reach, nodes) = (self.workers[who].reach, self.scenario.nodes);
                self.tell_worker(who, Kind::Parts, format!("is cut off: it reaches {reach} of {nodes} nodes"));
                self.schedule(self.now + happening.lasts, Due::Heal(who));
            }
            What::PowerCut => self.power_cut(happening.lasts),
            What::Failover => self.fail_over(),
            What::Restore => self.restore(happening.token),
            What::Epoch => self.raise_epoch(happening.token),
        }
    }

    /// The messages that are under way: from, to, what, when it was sent, when it arrives, whose stamp.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = (&str, &str, &'static str, u64, u64, Option<Stamp>)> {
        self.due.iter().filter_map(|(at, _, due)| match due {
            Due::Deliver { from, to, sent, message, .. } => {
                Some((self.name(*from), self.name(*to), message.name(), *sent, *at, message.stamp()))
            }
            _ => None,
        })
    }

    pub(crate) fn clock_of(&self, who: usize) -> Clock {
        self.workers[who].clock
    }
}
