//! Random walks: the actors of the model check over hours of simulated time, on clocks that drift and wander, with a
//! network that delays, loses and repeats, partitions, pauses, crashes, hangs, restarts and power cuts.
//!
//! A walk is made of its seed alone. One that fails prints the command that walks it again.

#[expect(dead_code, reason = "some of it is for the checker alone")]
#[path = "model/config.rs"]
mod config;
#[path = "model/message.rs"]
mod message;
#[path = "model/stores.rs"]
mod stores;
#[expect(dead_code, reason = "some of it is for the checker alone")]
#[path = "model/world.rs"]
mod world;

use config::{Config, Fault};
use fencegate_tests::Random;
use message::{Destination, Message};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};
use world::{Action, Condition, Left, World};

/// Real time in a tick: 10 ms.
const TICK_US: u64 = 10_000;
/// How far off each clock may be: 1 %.
const CLOCK_PPM: u64 = 10_000;
const HOURS: u32 = 12;

/// A clock's rate for a while: its slowest, its fastest, or between.
fn rate(random: &mut Random) -> u64 {
    let most = TICK_US * CLOCK_PPM / 1_000_000;
    TICK_US - most
        + match random.below(4) {
            0 => 0,
            1 => 2 * most,
            _ => random.below(2 * most + 1),
        }
}

/// What a walk has met.
#[derive(Debug, Default)]
struct Met {
    leases: u64,
    commands: u64,
    pauses: u64,
    crashes: u64,
    hangs: u64,
    cuts: u64,
    restores: u64,
}

/// T = 10 s, 2 % for both clocks together, a round trip of 0.2 s planned for.
fn config(fault: Option<Fault>) -> Config {
    Config {
        holders: 3,
        ttl: 10_000_000,
        drift_ppb: 2 * CLOCK_PPM * 1_000,
        rtt: 200_000,
        poll: 500_000,
        progress: 20_000_000,
        hold: 120_000_000,
        rates: [TICK_US; 3],
        coordinator_rate: TICK_US,
        horizon: u32::MAX,
        in_flight: 64,
        resource: true,
        fault,
        ..Config::new("walk")
    }
}

struct Walk {
    random: Random,
    config: Config,
    world: World,
    rates: [u64; 4],
    /// Until when each holder is cut off from everybody, paused, down or hung.
    away: [u32; 3],
    cut_off: [u32; 3],
    met: Met,
    restores: bool,
}

impl Walk {
    fn new(seed: u64, fault: Option<Fault>, restores: bool) -> Self {
        let config = config(fault);
        let mut random = Random(seed);
        let world = World::new(&config);
        let rates = std::array::from_fn(|_| rate(&mut random));
        Self { random, config, world, rates, away: [0; 3], cut_off: [0; 3], met: Met::default(), restores }
    }

    fn apply(&mut self, action: Action) {
        self.world.left = Left {
            losses: 9,
            repeats: 9,
            pauses: 9,
            crashes: 9,
            restarts: 9,
            hangs: 9,
            cuts: 9,
            restores: 9,
            acts: 9,
            stops: 9,
            hand_overs: 9,
        };
        self.world.apply(&self.config, action);
    }

    /// One tick: time passes, then some of what can happen does.
    fn step(&mut self) {
        if self.random.once_in(500) {
            let clock = usize::try_from(self.random.below(4)).expect("four");
            self.rates[clock] = rate(&mut self.random);
        }
        let [coordinator, rates @ ..] = self.rates;
        self.world.pass(&self.config, &rates, coordinator);
        self.messages();
        for who in 0..3 {
            self.holder(who);
        }
        self.stores();
        if self.restores && self.random.once_in(100_000) && self.is_settled() {
            self.met.restores += 1;
            self.apply(Action::Restore);
        }
    }

    fn is_settled(&self) -> bool {
        self.world.coordinator.storing.is_none() && self.world.resource.storing.is_none()
    }

    /// One message in fifty hangs in some queue for the better part of a minute.
    fn is_held_back(message: &Message) -> bool {
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        hasher.finish().is_multiple_of(50)
    }

    fn messages(&mut self) {
        for message in self.world.network.clone() {
            let pace = if Self::is_held_back(&message) { 3_000 } else { 3 };
            let cut_off = self.cut_off[usize::from(message.who)] > self.world.tick;
            if self.random.once_in(2_000) || (cut_off && self.random.once_in(50)) {
                self.apply(Action::Lose(message));
            } else if !cut_off && self.world.can_deliver(&message) && self.random.once_in(pace) {
                let repeated = self.random.once_in(100);
                self.apply(if repeated { Action::Repeat(message) } else { Action::Deliver(message) });
                self.met.commands += u64::from(message.destination() == Destination::Resource);
            }
        }
    }

    fn holder(&mut self, who: u8) {
        let i = usize::from(who);
        let over = self.world.tick >= self.away[i];
        let action = match self.world.nodes[i].condition {
            Condition::Paused if over => Some(Action::Resume(who)),
            Condition::Crashed if over => Some(Action::Restart(who)),
            // Somebody notices, and restarts it.
            Condition::Hung if over => Some(Action::Crash(who)),
            Condition::Running => self.mishap(who).or_else(|| {
                (self.random.once_in(20) && self.world.permits(&self.config, i)).then_some(Action::Act(who))
            }),
            _ => None,
        };
        if let Some(action) = action {
            self.apply(action);
        }
        if self.random.once_in(60_000) {
            self.cut_off[i] = self.world.tick + 1 + u32::try_from(self.random.below(3_000)).expect("small");
        }
    }

    /// Something that happens to a holder, or that it does, every few minutes.
    fn mishap(&mut self, who: u8) -> Option<Action> {
        let minutes = |n: u64| n * 60_000_000 / TICK_US;
        let (action, longest) = if self.random.once_in(minutes(2)) {
            self.met.pauses += 1;
            (Action::Pause(who), 3_000)
        } else if self.random.once_in(minutes(10)) {
            self.met.crashes += 1;
            (Action::Crash(who), 2_000)
        } else if self.random.once_in(minutes(20)) {
            self.met.hangs += 1;
            (Action::Hang(who), 10_000)
        } else if self.random.once_in(minutes(5)) {
            return Some(Action::HandOver(who));
        } else {
            return None;
        };
        let i = usize::from(who);
        self.away[i] = self.world.tick + 1 + u32::try_from(self.random.below(longest)).expect("small");
        Some(action)
    }

    fn stores(&mut self) {
        if self.random.once_in(30_000) {
            self.met.cuts += 1;
            let stored = self.random.once_in(2) && self.world.coordinator.storing.is_some();
            self.apply(if stored { Action::CutStored } else { Action::Cut });
        }
        if self.random.once_in(30_000) {
            self.met.cuts += 1;
            let stored = self.random.once_in(2) && self.world.resource.storing.is_some();
            self.apply(if stored { Action::ResourceCutStored } else { Action::ResourceCut });
        }
        if self.world.coordinator.storing.is_some() && self.random.once_in(3) {
            let before = self.world.coordinator.medium.mark;
            self.apply(Action::Store);
            self.met.leases += u64::from(before.token < self.world.coordinator.medium.mark.token);
        }
        if self.world.resource.storing.is_some() && self.random.once_in(3) {
            self.apply(Action::ResourceStore);
        }
    }

    /// What must never be.
    fn violation(&self) -> Option<&'static str> {
        let seen = &self.world.seen;
        if seen.stale_effect {
            Some("an older stamp took effect after a newer one was stored")
        } else if seen.freed_another {
            Some("a release freed a successor")
        } else if seen.locked_out {
            Some("the fence refused what the coordinator had granted last")
        } else if !self.restores && self.world.overlaps(&self.config) {
            Some("a holder counted on a lease that the coordinator could grant to another")
        } else {
            None
        }
    }
}

fn walk(seed: u64, restores: bool) {
    let mut walk = Walk::new(seed, None, restores);
    let ticks = u32::try_from(u64::from(HOURS) * 3_600_000_000 / TICK_US).expect("hours");
    let mut leaderless = 0;
    let mut longest = 0;
    while walk.world.tick < ticks {
        walk.step();
        if let Some(violation) = walk.violation() {
            panic!(
                "seed {seed}, tick {}: {violation}\n\
                 again: FENCEGATE_SEED={seed} cargo test -p fencegate-tests --test walks -- --nocapture\n{:#?}",
                walk.world.tick, walk.world
            );
        }
        leaderless = if walk.world.leader().is_some() { 0 } else { leaderless + 1 };
        longest = longest.max(leaderless);
    }
    println!("counted: seed {seed}: {HOURS} h, longest without a leader {} ms, {:?}", longest * 10, walk.met);
    assert!(walk.met.leases > 50 && walk.met.commands > 1_000, "seed {seed}: nothing much happened: {:?}", walk.met);
}

/// The seeds to walk: the one that was asked for, or some that stay the same and one that never comes again.
fn seeds() -> Vec<u64> {
    if let Ok(seed) = std::env::var("FENCEGATE_SEED") {
        return vec![seed.parse().expect("FENCEGATE_SEED is a number")];
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let many = if std::env::var_os("FENCEGATE_SOAK").is_some() { 100 } else { 4 };
    (1..=many).chain([u64::from(now) + 1_000]).collect()
}

#[test]
fn hours_of_everything() {
    for seed in seeds() {
        walk(seed, false);
    }
}

#[test]
fn hours_with_a_coordinator_whose_memory_goes_back() {
    for seed in seeds() {
        walk(seed, true);
    }
}

/// The walk is worth something: with a mistake made, it finds it.
#[test]
fn a_walk_without_a_fence_comes_to_grief() {
    let mut walk = Walk::new(1, Some(Fault::NoFence), false);
    while walk.violation().is_none() {
        walk.step();
        assert!(walk.world.tick < 10_000_000, "nothing found");
    }
    println!("after {} s: {:?}", u64::from(walk.world.tick) * TICK_US / 1_000_000, walk.violation());
}
