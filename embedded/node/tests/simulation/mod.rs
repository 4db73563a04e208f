//! One gate, its coordinator and its holders, each on a clock of its own, in virtual time: every delay, pause, store and
//! lateness that the design allows for, and a few that it does not count on.
//!
//! Real time is in nanoseconds, and nobody in it can read it; clocks show whole microseconds.

mod board;
mod clock;
mod holder;

use crate::bench::random::Random;
use crate::bench::{self, Bench, WORST_STORE, acquire, renew};
use clock::{Clock, Outlasted};
use fencegate::{Drift, Duration, Epoch, Holder, HolderId, Plan, Request as Asking, Schedule, Stamp, Token};
use fencegate_wire::{Authority, Challenge, Provisioning, Reply, Request, SafeAction};
use std::collections::BTreeMap;

pub(crate) const US: u64 = 1_000;
/// The most with which a board's watchdog is loaded.
const HANG: u64 = 2_000_000;

/// Something that the design demands and that is left out, to see that the simulation would notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LeftOut {
    #[default]
    Nothing,
    /// The board is late, and the provisioning says that it never is.
    Lateness,
    /// The actuator takes its time, and the provisioning says that it takes none.
    Reaction,
    /// The gate's clock drifts, and the provisioning says that it does not.
    Drift,
    /// The window counts from when the request arrived instead of when its challenge was issued.
    Challenge,
    /// A store may begin however little is left of another channel's window.
    RightOfWay,
}

#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// T in microseconds.
    pub(crate) ttl: u64,
    /// What is promised of the clocks, in ppb: the holder's, the coordinator's, the gate's.
    pub(crate) drift: [u64; 3],
    /// L and A in microseconds of the gate's clock.
    pub(crate) lateness: u64,
    pub(crate) reaction: u64,
    /// For how long the output keeps its value when it is let go of: a part of A.
    pub(crate) keep: u64,
    /// Whether the board's outputs drop by themselves at the end of their window.
    pub(crate) drops: bool,
    /// Whether the gate grants its leases itself.
    pub(crate) own: bool,
    /// Whether holders claim the longest window there is, whatever they have left.
    pub(crate) greedy: bool,
    pub(crate) left_out: LeftOut,
}

/// What a lease came to: the share of it that was lost beyond a round trip, where it ended with its window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) drives: u64,
    pub(crate) cost: Option<f64>,
}

/// A request on its way to the gate.
#[derive(Clone, Debug)]
struct Packet {
    token: u64,
    number: u64,
    challenge: Option<Challenge>,
    request: Request,
    frame: Option<Vec<u8>>,
    drive: Option<Drive>,
}

/// What a drive was sealed under.
#[derive(Clone, Copy, Debug)]
struct Drive {
    /// The holder's deadline, and when it received the challenge, on its clock.
    deadline: u64,
    received: u64,
    /// How long the challenge took from the gate, in real time.
    way: u64,
}

#[derive(Clone, Debug)]
enum Event {
    HolderWakes,
    HolderActs(u64),
    /// A request for a lease, or its renewal, comes to the coordinator; when it was sent.
    AtCoordinator(Asking, Option<Stamp>, u64),
    Granted(Asking, Stamp),
    Renewed(Asking),
    AtGate(Packet),
    FromGate {
        number: u64,
        challenge: Challenge,
        issued: u64,
        raised: Option<Stamp>,
    },
    Poll(u64),
    /// The board's hardware ends the output's window.
    Drop(u64),
    Watchdog,
    Neighbour,
    Hang,
    Cut,
    /// The coordinator could grant the lease to somebody else from now on.
    Over(u64),
}

/// What is known of the lease that runs.
struct Lease {
    token: u64,
    holder: Holder,
    /// How often the coordinator will still be reached.
    renewals: u64,
    /// When it is over, as things stand, and how often that has changed.
    over: Option<u64>,
    number: u64,
    /// The request that it counts from: when it was sent on the holder's clock, and how long it took.
    from: (u64, u64),
    granted: u64,
    raise: Option<Stamp>,
    challenge: Option<(Challenge, u64, u64)>,
    conversation: u64,
    last_drive: Option<Drive>,
    reset: bool,
    ended: bool,
    outcome: Outcome,
}

pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) config: Config,
    schedule: Schedule,
    bench: Bench,
    gate: Clock,
    holder: Clock,
    coordinator: Clock,
    now: u64,
    queue: BTreeMap<(u64, bool, u64), Event>,
    order: u64,
    /// Until when the gate has its hands full.
    busy: u64,
    hung: bool,
    watch: u64,
    paused: u64,
    driven: bool,
    /// When the actuator is safe that was let go of last.
    off: u64,
    /// When the board's hardware ends its window.
    drop: Option<u64>,
    tokens: u64,
    neighbour: u64,
    /// When the neighbour's outputs are safe at the latest, on the gate's clock, while it drives them.
    neighbour_due: Option<u64>,
    violation: Option<String>,
}

fn ppb(random: &mut Random, bound: u64) -> u64 {
    1_000_000_000 - bound
        + match random.below(4) {
            0 => 0,
            1 => 2 * bound,
            _ => random.below(2 * bound + 1),
        }
}

impl World {
    pub(crate) fn new(mut random: Random, config: Config) -> Self {
        let [by_holder, by_coordinator, by_gate] = config.drift;
        let other = if config.own { by_gate } else { by_coordinator };
        let schedule = Plan::for_ttl(Duration::from_micros(config.ttl))
            .drift(Drift::from_ppb(by_holder + other))
            .round_trip(Duration::from_micros(config.ttl / 20))
            .build()
            .unwrap();
        let said = |part, value| if config.left_out == part { 0 } else { value };
        let provision = |p: &mut Provisioning| {
            p.gate.drift = Drift::from_ppb(said(LeftOut::Drift, by_gate));
            p.gate.lateness = Duration::from_micros(said(LeftOut::Lateness, config.lateness));
            p.gate.raises.burst = u32::MAX;
            p.channels[0].reaction = Duration::from_micros(said(LeftOut::Reaction, config.reaction));
            p.channels[0].authority = if config.own { Authority::Own } else { Authority::Outside };
            if config.keep > 0 {
                p.outputs[0].action = SafeAction::Keep { time: Duration::from_micros(config.keep) };
            }
        };
        let worst = if config.left_out == LeftOut::RightOfWay { Duration::ZERO } else { WORST_STORE };
        let bench =
            if config.drops { Bench::that_drops(worst, provision) } else { Bench::with_board(worst, provision) };
        let mut clock = |bound| Clock { origin: 0, rate: ppb(&mut random, bound) };
        let (gate, holder, coordinator) = (clock(by_gate), clock(by_holder), clock(by_coordinator));
        Self {
            random,
            config,
            schedule,
            bench,
            gate,
            holder,
            coordinator,
            now: 1_000 * US,
            queue: BTreeMap::new(),
            order: 0,
            busy: 0,
            hung: false,
            watch: 0,
            paused: 0,
            driven: false,
            off: 0,
            drop: None,
            tokens: 0,
            neighbour: 0,
            neighbour_due: None,
            violation: None,
        }
    }

    fn at(&mut self, when: u64, event: Event) {
        self.order += 1;
        let last = matches!(event, Event::Over(_)); // what happens in that very instant is in time
        self.queue.insert((when, last, self.order), event);
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    fn ttl(&self) -> u64 {
        self.config.ttl * US
    }

    /// How long a message takes: mostly little, sometimes very long.
    fn delay(&mut self) -> u64 {
        let most = match self.random.below(40) {
            0 => 2 * self.ttl(),
            1..5 => self.ttl() / 10,
            _ => 5_000 * US,
        };
        200 * US + self.random.below(most)
    }

    /// One lease, from when its holder asks for it until nobody can count on it any more.
    ///
    /// # Errors
    /// What happened that must never happen.
    pub(crate) fn lease(&mut self) -> Result<Outcome, String> {
        let id = HolderId::new("a").unwrap();
        let mut lease = Lease {
            token: self.tokens + 1,
            holder: Holder::new(self.schedule, id),
            renewals: self.random.below(4),
            over: None,
            number: 0,
            from: (0, 0),
            granted: 0,
            raise: None,
            challenge: None,
            conversation: 0,
            last_drive: None,
            reset: false,
            ended: false,
            outcome: Outcome::default(),
        };
        self.tokens += 1;
        let rest = if self.random.once_in(2) { self.random.below(self.ttl() / 5) } else { 0 };
        self.after(rest, Event::HolderWakes);
        let span = 2 * self.ttl();
        for (once_in, event) in [(2, Event::Neighbour), (40, Event::Hang), (40, Event::Cut)] {
            if self.random.once_in(once_in) {
                let delay = self.random.below(span);
                self.after(delay, event);
            }
        }
        let limit = self.now + 20 * self.ttl();
        while let Some(((now, ..), event)) = self.queue.pop_first() {
            self.now = now.max(self.now);
            self.handle(&mut lease, event);
            if let Some(violation) = self.violation.take() {
                return Err(violation);
            }
            if lease.ended || now > limit {
                break;
            }
        }
        // What is still under way to the gate comes to it in somebody else's time; the board goes on.
        self.queue.retain(|_, event| {
            matches!(event, Event::AtGate(_) | Event::Poll(_) | Event::Drop(_) | Event::Watchdog | Event::Neighbour)
        });
        self.paused = 0;
        Ok(lease.outcome)
    }

    fn handle(&mut self, lease: &mut Lease, event: Event) {
        let by_holder = matches!(
            event,
            Event::HolderWakes | Event::HolderActs(_) | Event::Granted(..) | Event::Renewed(_) | Event::FromGate { .. }
        );
        if by_holder && self.now < self.paused {
            return self.at(self.paused, event);
        }
        let by_gate = matches!(event, Event::AtGate(_) | Event::Neighbour)
            || (self.config.own && matches!(event, Event::AtCoordinator(..)));
        if by_gate && self.hung {
            return; // nobody takes it off the line
        }
        if by_gate && self.now < self.busy {
            return self.at(self.busy, event);
        }
        match event {
            Event::AtCoordinator(request, stamp, sent) => self.at_coordinator(lease, request, stamp, sent),
            Event::AtGate(packet) => self.at_gate(lease, packet),
            Event::Neighbour => self.neighbour(),
            Event::Poll(watch) if watch == self.watch && !self.hung => self.poll(),
            Event::Drop(watch) if watch == self.watch => self.fall(self.now),
            Event::Watchdog if self.hung => self.reset(lease),
            Event::Hang => self.hang(),
            Event::Cut => self.reset(lease),
            Event::Over(number) if number == lease.number => self.over(lease),
            Event::Poll(_) | Event::Drop(_) | Event::Watchdog | Event::Over(_) => {}
            event => self.by_holder(lease, &event),
        }
    }

    /// The coordinator hears of a lease; where the gate is its own, in a conversation that takes no time.
    fn at_coordinator(&mut self, lease: &mut Lease, request: Asking, stamp: Option<Stamp>, sent: u64) {
        if stamp.is_some() && (lease.renewals == 0 || lease.over.is_none_or(|over| self.now >= over)) {
            return;
        }
        let over = if self.config.own {
            self.board_time();
            let a = bench::holder("a");
            let ttl = u32::try_from(self.config.ttl / 1_000).unwrap();
            let wanted = stamp.map_or(acquire(0, ttl), |stamp| renew(0, stamp.token.get()));
            let reply = self.bench.reply(a, wanted);
            self.settle();
            let Reply::Done { record, .. } = reply else { return };
            lease.token = record.token;
            self.gate.when(self.bench.now + Duration::from_micros(self.config.ttl).outlasted(self.config.drift[2]))
        } else {
            self.now + self.coordinator.span(self.config.ttl)
        };
        if stamp.is_none() {
            lease.granted = self.now;
        } else {
            lease.renewals -= 1;
        }
        lease.from = (self.holder.read(sent), self.now - sent);
        self.is_over_at(lease, over);
        let delay = self.delay();
        let granted = Stamp { epoch: Epoch(0), token: Token::new(lease.token).unwrap(), holder: lease.holder.id() };
        let answer = if stamp.is_some() { Event::Renewed(request) } else { Event::Granted(request, granted) };
        if !self.random.once_in(40) {
            self.after(delay, answer);
        }
    }

    fn is_over_at(&mut self, lease: &mut Lease, over: u64) {
        lease.over = Some(over.max(lease.over.unwrap_or(0)));
        lease.number += 1;
        self.at(lease.over.unwrap(), Event::Over(lease.number));
        // A neighbour stores as late as it may, and a little later.
        if self.random.once_in(3) {
            let early = self.random.below(2 * WORST_STORE.as_micros() + 2 * self.config.lateness + 50_000);
            let way = self.config.reaction + self.config.keep;
            self.at(over.saturating_sub((early + way) * US).max(self.now), Event::Neighbour);
        }
    }

    /// Nobody counts on the lease any more: it can be granted to anybody.
    fn over(&mut self, lease: &mut Lease) {
        lease.ended = true;
        let over = self.now;
        if self.driven {
            self.violation = Some(format!("driven when the lease of token {} was over", lease.token));
        } else if self.off > over {
            self.violation =
                Some(format!("safe {} ns after the lease of token {} was over", self.off - over, lease.token));
        }
        // A drive under the last renewal. Where its challenge is older than that, it gains nothing of the renewal: a holder
        // that wants the whole window drives once more.
        let (sent, took) = lease.from;
        let whole = lease.last_drive.filter(|drive| {
            !lease.reset
                && !self.config.greedy
                && drive.deadline == sent + self.schedule.window().as_micros()
                && drive.received >= sent
        });
        if let Some(drive) = whole {
            let lost = over.saturating_sub(self.off).saturating_sub(drive.way + took);
            #[expect(clippy::cast_precision_loss, reason = "a share")]
            let share = lost as f64 / self.ttl() as f64;
            lease.outcome.cost = Some(share);
        }
    }
}
