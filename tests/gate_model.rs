//! The model check of a gate on its cable: the real gate, two holders' real clients, a coordinator that grants a lease to
//! one of them at a time, clocks that drift apart as far as they may, and a cable and a power supply that do what they
//! like, in every order.
//!
//! A gate and a client are no values that could be copied, on purpose: an act is done once. So a state is the way there,
//! and what it is told apart by is everything that it has come to. `FENCEGATE_SOAK=1` walks a step further.

#[path = "gate_model/world.rs"]
mod world;

use fencegate_tests::is_soak;
use stateright::{Checker, HasDiscoveries, Model, Path, Property};
use std::hash::{Hash, Hasher};
use std::time::Instant;
use world::{Action, Config, Mistake, Seen, World};

const ALONE: &str = "the output is never driven once the coordinator could have granted the lease to another";
const ORDER: &str = "no lower token drives after a higher one is stored";
const ONCE: &str = "no frame drives twice";
const DRIVEN: &str = "both holders have driven";

/// A way from the beginning, and what it has come to.
#[derive(Clone, Debug)]
struct State {
    way: Vec<Action>,
    /// How many steps there are since the beginning.
    steps: usize,
    told_apart_by: u64,
    seen: Seen,
    next: Vec<Action>,
}

impl State {
    fn at(config: &Config, way: Vec<Action>, steps: usize) -> Self {
        let mut world = World::new(config);
        for action in &way {
            world.take(*action);
        }
        let next = if steps < config.steps { world.actions() } else { vec![] };
        Self { told_apart_by: world.told_apart_by(), seen: world.seen, next, way, steps }
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.told_apart_by == other.told_apart_by
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.told_apart_by.hash(hasher);
    }
}

/// How the stories begin: with nothing; with a holder that drives; with another that has taken over from it.
fn beginnings() -> [Vec<Action>; 3] {
    use Action::{Command, Grant, Tick, ToGate, ToHosts};
    let drives = |who| [Grant(who), Command(who), ToGate(0), ToHosts(0), ToGate(0)];
    [vec![], drives(0).to_vec(), [&drives(0)[..], &[ToHosts(0), Tick, Tick, Tick], &drives(1)].concat()]
}

#[derive(Clone)]
struct Check(Config);

impl Model for Check {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        beginnings().into_iter().map(|way| State::at(&self.0, way, 0)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(&state.next);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let way = state.way.iter().copied().chain([action]).collect();
        Some(State::at(&self.0, way, state.steps + 1))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ALONE, |check: &Self, state: &State| !check.0.claims_alone || !state.seen.overlap),
            Property::always(ORDER, |_, state: &State| !state.seen.stale),
            Property::always(ONCE, |_, state: &State| !state.seen.again),
            Property::sometimes(DRIVEN, |_, state: &State| state.seen.driven == [true; 2]),
        ]
    }
}

/// Visits everything that a configuration can come to.
#[track_caller]
fn holds(config: &Config) {
    let start = Instant::now();
    let config = Config { steps: config.steps + usize::from(is_soak()), ..config.clone() };
    let checker = Check(config.clone()).checker().threads(1).spawn_bfs().join();
    println!(
        "counted: {}: {} states within {} steps, {:.1} s",
        config.name,
        checker.unique_state_count(),
        config.steps,
        start.elapsed().as_secs_f64()
    );
    for (name, path) in checker.discoveries() {
        assert_eq!(name, DRIVEN, "{name}: not after {}", story(path));
    }
    assert!(checker.is_done());
    assert!(checker.discovery(DRIVEN).is_some(), "{DRIVEN}: never");
}

/// Finds that a property fails.
#[track_caller]
fn fails(config: &Config, property: &'static str) {
    let checker =
        Check(config.clone()).checker().threads(1).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{}: {property} holds", config.name));
    println!("counted: {}: found after {} states: {}", config.name, checker.unique_state_count(), story(path));
}

fn story(path: Path<State, Action>) -> String {
    let actions: Vec<_> = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
    actions.join(", ")
}

#[test]
fn everything_late_and_out_of_order() {
    holds(&Config { steps: 7, ..Config::new("late") });
}

#[test]
fn everything_twice() {
    holds(&Config { repeats: 1, ..Config::new("twice") });
}

#[test]
fn power_cuts() {
    holds(&Config { cuts: 1, ..Config::new("cuts") });
}

#[test]
fn slow_stores() {
    holds(&Config { slow: 1, ..Config::new("slow stores") });
}

/// A holder that was frozen does not know what time it is. The fence alone stops it.
#[test]
fn zombies() {
    let zombies = Config { zombies: true, claims_alone: false, ..Config::new("zombies") };
    holds(&zombies);
    holds(&Config { cuts: 1, name: "zombies and power cuts", ..zombies });
}

/// What the checker is worth: each mistake, made on purpose, is found.
#[test]
fn each_mistake_is_found() {
    let with = |name, mistake| Config { mistake: Some(mistake), ..Config::new(name) };
    fails(&with("a holder that knows nothing of drift", Mistake::NoDrift), ALONE);
    fails(&with("a gate that knows nothing of drift", Mistake::GateWithoutDrift), ALONE);
    fails(&Config { zombies: true, steps: 7, ..Config::new("a holder that looks at no clock") }, ALONE);
    let zombies = Config { zombies: true, claims_alone: false, cuts: 1, ..Config::new("") };
    let mistake = Some(Mistake::NotStored);
    fails(&Config { name: "a mark that is not stored", mistake, ..zombies.clone() }, ORDER);
    let mistake = Some(Mistake::NotCounted);
    fails(&Config { name: "a boot that is not counted", mistake, repeats: 2, ..zombies }, ONCE);
}
