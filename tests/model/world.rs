//! The world around the real types: holders, a coordinator that is a `Grantor` with a store, a resource that is a
//! `Fence` with a store, and the network between them. One [`Action`] changes it at a time; who chooses the actions
//! (the checker, all of them; a walk, at random) is not its business.
//!
//! Real time passes in ticks. Each clock moves by its own number of microseconds a tick, so drift is exact. A message
//! may stay under way for as long as anything does; one that never arrives is lost.

use super::config::{Config, Fault};
use super::message::{Destination, Message, Text};
use fencegate::{
    Duration, Epoch, Fence, FenceRecord, GrantRecord, Grantor, Holder, HolderId, Instant, Limits, Output, Stamp,
};

pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Condition {
    Running,
    /// Runs no instruction; its clock goes on.
    Paused,
    /// The worker reports nothing and obeys nothing; whoever polls goes on.
    Hung,
    /// Gone for good.
    Crashed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) holder: Holder,
    pub(crate) clock: u64,
    pub(crate) condition: Condition,
    /// How often its process was started again.
    pub(crate) instance: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Coordinator {
    pub(crate) grantor: Grantor,
    pub(crate) medium: GrantRecord,
    pub(crate) clock: u64,
    /// A request whose record is being stored, and when it was decided.
    pub(crate) storing: Option<(Message, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    pub(crate) fence: Fence,
    pub(crate) medium: FenceRecord,
    /// A request whose record is being stored.
    pub(crate) storing: Option<Message>,
}

/// What is left of everything that can go wrong, or be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Left {
    pub(crate) losses: u8,
    pub(crate) repeats: u8,
    pub(crate) pauses: u8,
    pub(crate) crashes: u8,
    pub(crate) restarts: u8,
    pub(crate) hangs: u8,
    pub(crate) cuts: u8,
    pub(crate) restores: u8,
    pub(crate) acts: u8,
    pub(crate) stops: u8,
    pub(crate) hand_overs: u8,
}

/// What has been seen, for the properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one property")]
pub(crate) struct Seen {
    /// The highest stamp that has taken effect or is stored, as epoch and token.
    pub(crate) highest: (u32, u64),
    /// An older stamp took effect after that.
    pub(crate) stale_effect: bool,
    /// A release took a lease from somebody else than who released.
    pub(crate) freed_another: bool,
    /// The coordinator's own latest stamp was refused as too low.
    pub(crate) locked_out: bool,
    /// Cancellation tripped or a lease was lost.
    pub(crate) cancelled: bool,
    /// Some holder has had a lease; every holder has (bits).
    pub(crate) held: u8,
    /// When a holder first crashed or hung.
    pub(crate) fell_silent: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) tick: u32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) coordinator: Coordinator,
    pub(crate) resource: Resource,
    pub(crate) network: Vec<Message>,
    pub(crate) left: Left,
    pub(crate) seen: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A tick of real time passes, and whoever runs is polled. Where clocks wander, the bits say which run fast in it: the
    /// first holder's (1), and the coordinator's (2).
    Tick(u8),
    Deliver(Message),
    Lose(Message),
    /// The message arrives and another copy is still under way.
    Repeat(Message),
    /// The worker asks for a permit and sends a write under it.
    Act(u8),
    Pause(u8),
    Resume(u8),
    Crash(u8),
    /// A crashed process is started again: a new instance that remembers nothing.
    Restart(u8),
    Hang(u8),
    Stop(u8),
    HandOver(u8),
    /// The coordinator's store is done.
    Store,
    /// Power cuts at the coordinator: idle or before the store, and after the store but before the answer.
    Cut,
    CutStored,
    /// The same at the resource.
    ResourceStore,
    ResourceCut,
    ResourceCutStored,
    /// The coordinator's memory goes back to its beginning, and the operator raises the epoch everywhere.
    Restore,
}

/// What an instance of a holder is called.
pub(crate) fn id(who: usize, instance: u16) -> HolderId {
    let name = if instance == 0 { NAMES[who].to_string() } else { format!("{}#{instance}", NAMES[who]) };
    HolderId::new(&name).expect("a name")
}

fn holder(config: &Config, who: usize, instance: u16) -> Holder {
    let mut holder = Holder::new(config.schedule(), id(who, instance));
    if config.progress > 0 {
        holder = holder.progress_within(Duration::from_micros(config.progress));
    }
    if config.hold > 0 {
        holder = holder.longest_hold(Duration::from_micros(config.hold));
    }
    holder
}

pub(crate) fn key(stamp: Stamp) -> (u32, u64) {
    (stamp.epoch.0, stamp.token.get())
}

pub(crate) fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

impl World {
    pub(crate) fn new(config: &Config) -> Self {
        let node = |who| Node { holder: holder(config, who, 0), clock: 0, condition: Condition::Running, instance: 0 };
        let medium = GrantRecord::floor(Epoch(0), 0);
        let record = FenceRecord::floor(Epoch(0), 0);
        let mut world = Self {
            tick: 0,
            nodes: (0..config.holders).map(node).collect(),
            coordinator: Coordinator {
                grantor: Grantor::boot(Some(medium), config.terms(), at(0)).expect("terms"),
                medium,
                clock: 0,
                storing: None,
            },
            resource: Resource { fence: Fence::new(record, Limits::default()), medium: record, storing: None },
            network: Vec::new(),
            left: config.left,
            seen: Seen::default(),
        };
        (0..config.holders).for_each(|who| world.drain(config, who));
        world
    }

    pub(crate) fn can_deliver(&self, message: &Message) -> bool {
        match message.destination() {
            Destination::Coordinator => self.coordinator.storing.is_none(),
            Destination::Resource => self.resource.storing.is_none(),
            Destination::Holder => self.nodes[usize::from(message.who)].condition != Condition::Paused,
        }
    }

    /// Lets one thing happen.
    pub(crate) fn apply(&mut self, config: &Config, action: Action) {
        match action {
            Action::Tick(fast) => {
                let mut rates = config.rates;
                rates[0] += u64::from(fast & 1) * config.wander;
                self.pass(config, &rates, config.coordinator_rate + u64::from(fast >> 1) * config.wander);
            }
            Action::Deliver(message) => {
                self.take(message);
                self.deliver(config, message);
            }
            Action::Repeat(message) => {
                self.left.repeats -= 1;
                self.deliver(config, message);
            }
            Action::Lose(message) => {
                self.left.losses -= 1;
                self.take(message);
            }
            Action::Act(who) => {
                self.left.acts -= 1;
                self.act(config, usize::from(who));
            }
            Action::Pause(who) => {
                self.left.pauses -= 1;
                self.nodes[usize::from(who)].condition = Condition::Paused;
            }
            Action::Resume(who) => {
                self.nodes[usize::from(who)].condition = Condition::Running;
                self.drain(config, usize::from(who));
            }
            Action::Crash(who) => {
                self.left.crashes -= 1;
                self.nodes[usize::from(who)].condition = Condition::Crashed;
                self.seen.fell_silent = self.seen.fell_silent.or(config.takeover.map(|_| self.tick));
            }
            Action::Restart(who) => {
                self.left.restarts -= 1;
                let Node { holder: old, condition, instance, .. } = &mut self.nodes[usize::from(who)];
                *instance += 1;
                *old = holder(config, usize::from(who), *instance);
                *condition = Condition::Running;
                self.drain(config, usize::from(who));
            }
            Action::Hang(who) => {
                self.left.hangs -= 1;
                self.nodes[usize::from(who)].condition = Condition::Hung;
                self.seen.fell_silent = self.seen.fell_silent.or(config.takeover.map(|_| self.tick));
            }
            Action::Stop(who) => {
                self.left.stops -= 1;
                self.tell(config, usize::from(who), Holder::stop);
            }
            Action::HandOver(who) => {
                self.left.hand_overs -= 1;
                let rest = config.schedule().heartbeat();
                self.tell(config, usize::from(who), |holder, now| holder.hand_over(now, rest));
            }
            Action::Store => {
                if let Some((message, decided)) = self.coordinator.storing.take() {
                    self.store(config, message, decided, config.fault != Some(Fault::AnswersBeforeStoring));
                }
            }
            Action::Cut => self.cut(config),
            Action::CutStored => {
                if let Some((message, decided)) = self.coordinator.storing {
                    self.store(config, message, decided, false);
                }
                self.cut(config);
            }
            Action::ResourceStore => {
                if let Some(message) = self.resource.storing.take() {
                    self.store_raise(config, message, config.fault != Some(Fault::ActsBeforeStoring));
                }
            }
            Action::ResourceCut => self.resource_cut(),
            Action::ResourceCutStored => {
                if let Some(message) = self.resource.storing {
                    self.store_raise(config, message, false);
                }
                self.resource_cut();
            }
            Action::Restore => self.restore(config),
        }
    }

    /// A tick of real time, in which clocks move by these.
    pub(crate) fn pass(&mut self, config: &Config, rates: &[u64], coordinator_rate: u64) {
        self.tick += 1;
        self.coordinator.clock += coordinator_rate;
        for (node, rate) in self.nodes.iter_mut().zip(rates) {
            node.clock += rate;
        }
        (0..self.nodes.len()).for_each(|who| self.drain(config, who));
    }

    /// Whether the worker would be let to act: what [`Fault`]s of the worker's own are about.
    pub(crate) fn permits(&self, config: &Config, who: usize) -> bool {
        let Node { holder, clock, condition, .. } = &self.nodes[who];
        if *condition == Condition::Crashed {
            return false;
        }
        match config.fault {
            Some(Fault::EqualityIsValid) => holder.deadline().is_some_and(|end| end.instant() >= at(*clock)),
            _ => holder.clone().may_act(at(*clock), Duration::ZERO).is_ok(),
        }
    }

    /// Whether the coordinator would grant the lease to somebody else.
    pub(crate) fn is_free(&self) -> bool {
        let other = HolderId::new("other").expect("a name");
        self.coordinator.grantor.clone().acquire(at(self.coordinator.clock), other, Duration::from_micros(1)).is_ok()
    }

    /// Whether a holder counts on a lease that the coordinator could grant, or has granted, to another.
    pub(crate) fn overlaps(&self, config: &Config) -> bool {
        (0..self.nodes.len()).any(|who| {
            let Node { holder, clock, condition, .. } = &self.nodes[who];
            let inside = *condition != Condition::Crashed
                && (holder.deadline().is_some_and(|end| !end.is_over(at(*clock))) || self.permits(config, who));
            let current = self.coordinator.grantor.record().map(|record| (record.mark.epoch.0, record.mark.token));
            inside && (holder.stamp().map(key) != current || self.is_free())
        })
    }

    /// The holder of the lease that runs at the coordinator.
    pub(crate) fn leader(&self) -> Option<usize> {
        let stamp = self.coordinator.grantor.current(at(self.coordinator.clock))?;
        (self.nodes.iter()).position(|node| node.holder.id() == stamp.holder)
    }

    fn take(&mut self, message: Message) {
        if let Some(i) = self.network.iter().position(|other| *other == message) {
            self.network.remove(i);
        }
    }

    /// Puts a message on the line; one that the line has no room for is lost.
    fn send(&mut self, config: &Config, who: usize, text: Text, due: u32) {
        let instance = self.nodes[who].instance;
        self.put(config, Message { who: u8::try_from(who).expect("a few"), instance, text, due });
    }

    pub(crate) fn reply(&mut self, config: &Config, to: Message, text: Text) {
        self.put(config, Message { text, ..to });
    }

    fn put(&mut self, config: &Config, message: Message) {
        if self.network.len() < config.in_flight {
            self.network.push(message);
            self.network.sort_unstable_by_key(Message::key);
        }
    }

    /// Does what a holder says, until it waits.
    fn drain(&mut self, config: &Config, who: usize) {
        let due = config.answer_within.map_or(u32::MAX, |ticks| self.tick + ticks);
        loop {
            let Node { holder, clock, condition, .. } = &mut self.nodes[who];
            let now = at(*clock);
            let hung = match condition {
                Condition::Paused | Condition::Crashed => return,
                Condition::Hung => true,
                Condition::Running => false,
            };
            if config.progress > 0 && !hung {
                holder.progress(now);
            }
            match holder.poll(now) {
                Output::SendAcquire(request) => self.send(config, who, Text::Acquire(request), due),
                Output::SendRenewal(request, stamp) => self.send(config, who, Text::Renew(request, stamp), due),
                Output::SendRelease(stamp) => self.send(config, who, Text::Release(stamp), due),
                Output::Raise(stamp) if config.resource => self.send(config, who, Text::Raise(stamp), due),
                Output::Raise(stamp) => holder.raised(now, stamp),
                Output::Cancel(_) => {
                    self.seen.cancelled = config.answer_within.is_some();
                    if !hung {
                        holder.stopped(now);
                    }
                }
                Output::Wait(_) => return,
            }
        }
    }

    fn tell(&mut self, config: &Config, who: usize, event: impl FnOnce(&mut Holder, Instant)) {
        let Node { holder, clock, condition, .. } = &mut self.nodes[who];
        if *condition != Condition::Crashed {
            event(holder, at(*clock));
            self.drain(config, who);
        }
    }

    fn act(&mut self, config: &Config, who: usize) {
        let Node { holder, clock, .. } = &mut self.nodes[who];
        let now = at(*clock);
        let stamp = match holder.may_act(now, Duration::ZERO) {
            Ok(permit) => Some(permit.stamp()),
            Err(_) => holder.stamp().filter(|_| config.fault == Some(Fault::EqualityIsValid)),
        };
        holder.stopped(now);
        if let Some(stamp) = stamp {
            self.send(config, who, Text::Write(stamp), u32::MAX);
        }
        self.drain(config, who);
    }

    fn deliver(&mut self, config: &Config, message: Message) {
        let who = usize::from(message.who);
        if message.destination() == Destination::Holder && message.instance != self.nodes[who].instance {
            return;
        }
        match message.text {
            Text::Acquire(_) | Text::Release(_) => self.decide(config, message),
            Text::Renew(request, stamp) => {
                let answer = match self.coordinator.grantor.renew(at(self.coordinator.clock), stamp) {
                    Ok(_) => Text::Renewed(request),
                    Err(_) => Text::Refused(request, 0),
                };
                self.reply(config, message, answer);
            }
            Text::Raise(stamp) | Text::Write(stamp) => self.admit(config, message, stamp),
            Text::Granted(request, stamp) => self.tell(config, who, |holder, now| {
                if config.fault == Some(Fault::CountsFromTheAnswer) {
                    holder.sent(now, request);
                }
                holder.granted(now, request, stamp, None);
            }),
            Text::Renewed(request) => self.tell(config, who, |holder, now| {
                if config.fault == Some(Fault::CountsFromTheAnswer) {
                    holder.sent(now, request);
                }
                holder.renewed(now, request, None);
            }),
            Text::Refused(request, wait) => self.tell(config, who, |holder, now| {
                holder.refused(now, request, Some(Duration::from_micros(wait)), 0);
            }),
            Text::Released(stamp) => self.tell(config, who, |holder, now| holder.released(now, stamp)),
            Text::Raised(stamp) => self.tell(config, who, |holder, now| holder.raised(now, stamp)),
            Text::Fenced(stamp) => self.tell(config, who, |holder, now| holder.fenced(now, stamp)),
        }
        if let Text::Granted(..) = message.text
            && self.nodes[who].holder.stamp().is_some()
        {
            self.seen.held |= 1 << who;
        }
    }
}
