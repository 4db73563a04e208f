//! The model check: the real `Holder`, `Grantor` and `Fence` in a world where everything that can go wrong does, in
//! every order.
//!
//! A configuration names its actors, its ticks and its messages under way, and visits the whole of its space; with
//! `FENCEGATE_SOAK=1` each runs for a tick longer, in about four times the states. The last part makes one mistake each, which the checker must
//! find.

#[path = "model/choices.rs"]
mod choices;
#[path = "model/config.rs"]
mod config;
#[path = "model/message.rs"]
mod message;
#[path = "model/stores.rs"]
mod stores;
#[path = "model/world.rs"]
mod world;

use config::{Config, Fault};
use stateright::{Checker, HasDiscoveries, Model, Path, Property};
use std::time::Instant;
use world::{Action, Condition, Left, World};

const ORDER: &str = "no older stamp takes effect after a newer one is stored";
const ALONE: &str = "nobody acts once the coordinator could grant the lease to another";
const OWN: &str = "a release never frees a successor";
const HEARD: &str = "the fence takes the stamp that the coordinator has granted last";
const QUIET: &str = "while nothing fails nothing is cancelled";
const TAKEN: &str = "a dead or hung holder's lease becomes available";
const HELD: &str = "every holder has had the lease";

#[derive(Clone)]
struct Check(Config);

impl Model for Check {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.0)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(&self.0, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.apply(&self.0, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::<Self>::always(ORDER, |_, world| !world.seen.stale_effect),
            Property::<Self>::always(OWN, |_, world| !world.seen.freed_another),
            Property::<Self>::always(HEARD, |_, world| !world.seen.locked_out),
            Property::<Self>::sometimes(HELD, |check, world| world.seen.held + 1 == 1 << check.0.holders),
        ];
        // A coordinator that has forgotten whom it granted what can only be answered by the fence.
        if self.0.left.restores == 0 {
            properties.push(Property::<Self>::always(ALONE, |check, world| !world.overlaps(&check.0)));
        }
        if self.0.answer_within.is_some() && self.0.takeover.is_none() {
            properties.push(Property::<Self>::always(QUIET, |_, world| !world.seen.cancelled));
        }
        if self.0.takeover.is_some() {
            properties.push(Property::<Self>::always(TAKEN, |check, world| {
                let late =
                    world.seen.fell_silent.zip(check.0.takeover).is_some_and(|(t, ticks)| world.tick > t + ticks);
                !late || world.leader().is_some_and(|who| world.nodes[who].condition == Condition::Running)
            }));
        }
        properties
    }
}

/// Visits the whole space of a configuration: no property fails, and every holder has had the lease somewhere in it.
#[track_caller]
fn holds(config: &Config) {
    let start = Instant::now();
    let longer = u32::from(std::env::var_os("FENCEGATE_SOAK").is_some());
    let config = Config { horizon: config.horizon + longer, ..config.clone() };
    let checker = Check(config.clone()).checker().threads(1).spawn_dfs().join();
    println!(
        "counted: {}: {} states, depth {}; {} holders, {} ticks, {} messages under way; {:.1} s",
        config.name,
        checker.unique_state_count(),
        checker.max_depth(),
        config.holders,
        config.horizon,
        config.in_flight,
        start.elapsed().as_secs_f64()
    );
    for (name, path) in checker.discoveries() {
        assert_eq!(name, HELD, "{name} fails after {}", story(path));
    }
    assert!(checker.is_done());
    assert!(checker.discovery(HELD).is_some(), "{HELD}: never");
}

/// Finds that a property fails.
#[track_caller]
fn fails(config: &Config, property: &'static str) {
    let start = Instant::now();
    let checker =
        Check(config.clone()).checker().threads(1).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{}: {property} holds", config.name));
    println!(
        "counted: {}: found after {} states, {:.1} s: {}",
        config.name,
        checker.unique_state_count(),
        start.elapsed().as_secs_f64(),
        story(path)
    );
}

fn story(path: Path<World, Action>) -> String {
    let actions: Vec<_> = path.into_actions().iter().map(|action| format!("    {action:?}")).collect();
    format!("\n{}", actions.join("\n"))
}

/// What can go wrong in a configuration, named; everything else does not.
fn left(change: impl FnOnce(&mut Left)) -> Left {
    let mut left = Left::default();
    change(&mut left);
    left
}

#[test]
fn everything_late() {
    holds(&Config { horizon: 7, ..Config::new("late") });
}

#[test]
fn everything_late_and_more_of_it() {
    holds(&Config { horizon: 5, in_flight: 3, ..Config::new("later") });
}

#[test]
fn a_message_is_lost() {
    holds(&Config { left: left(|l| l.losses = 1), ..Config::new("lost") });
}

#[test]
fn a_message_is_repeated() {
    holds(&Config { left: left(|l| l.repeats = 1), ..Config::new("repeated") });
}

#[test]
fn a_holder_pauses() {
    holds(&Config { left: left(|l| l.pauses = 1), horizon: 5, ..Config::new("paused") });
}

#[test]
fn a_holder_crashes_and_is_started_again() {
    holds(&Config { left: left(|l| (l.crashes, l.restarts) = (1, 1)), horizon: 5, ..Config::new("crashed") });
}

#[test]
fn holders_stop_and_hand_over() {
    let left = left(|l| (l.stops, l.hand_overs) = (1, 1));
    holds(&Config { left, horizon: 4, ..Config::new("ended") });
}

#[test]
fn power_cuts_at_the_coordinator_lengthen_leases() {
    holds(&Config { left: left(|l| l.cuts = 2), horizon: 5, ..Config::new("failover") });
}

#[test]
fn a_lock_delay() {
    let left = left(|l| l.hand_overs = 1);
    holds(&Config { lock_delay: 10, left, ..Config::new("lock delay") });
}

#[test]
fn three_holders() {
    let left = left(|l| l.hand_overs = 2);
    holds(&Config { holders: 3, horizon: 4, left, ..Config::new("three") });
}

/// T = 33 µs; ε = 10 % for each clock, so 20 % is believed of both: the window is 26 µs.
fn drifting(name: &'static str) -> Config {
    Config { ttl: 33, drift_ppb: 200_000_000, ..Config::new(name) }
}

#[test]
fn slow_holders_and_a_fast_coordinator() {
    holds(&Config { rates: [9, 9, 9], coordinator_rate: 11, horizon: 7, ..drifting("slow and fast") });
}

#[test]
fn fast_holders_and_a_slow_coordinator() {
    holds(&Config { rates: [11, 11, 11], coordinator_rate: 9, horizon: 7, ..drifting("fast and slow") });
}

#[test]
fn each_clock_its_own_way() {
    let left = left(|l| l.pauses = 1);
    holds(&Config { rates: [9, 11, 10], coordinator_rate: 10, left, ..drifting("mixed") });
}

#[test]
fn clocks_wander_from_tick_to_tick() {
    holds(&Config { rates: [9, 10, 10], coordinator_rate: 9, wander: 2, horizon: 4, ..drifting("wandering") });
}

/// T = 9 µs and a tick is one: a heartbeat is 2, an answer takes up to 1, cancellation trips after more than 3.
fn nothing_fails(name: &'static str) -> Config {
    Config {
        ttl: 9,
        poll: 3,
        rates: [1; 3],
        coordinator_rate: 1,
        horizon: 14,
        in_flight: 8,
        answer_within: Some(1),
        ..Config::new(name)
    }
}

#[test]
fn nothing_fails_and_nothing_is_cancelled() {
    let left = left(|l| l.hand_overs = 1);
    holds(&Config { left, ..nothing_fails("quiet") });
}

/// The plan's takeover: ⌈T·10⁹/(10⁹−ε)⌉ + 2d + poll.
#[test]
fn a_dead_holders_lease_becomes_available() {
    let left = left(|l| l.crashes = 1);
    holds(&Config { left, takeover: Some(9 + 2 + 3), horizon: 22, ..nothing_fails("dead") });
}

/// The hang is noticed within the limit; then the window has to run out, as above.
#[test]
fn a_hung_holders_lease_becomes_available() {
    let left = left(|l| l.hangs = 1);
    holds(&Config { left, progress: 4, takeover: Some(4 + 9 + 2 + 3), horizon: 24, ..nothing_fails("hung") });
}

#[test]
fn nobody_holds_for_ever() {
    holds(&Config { hold: 6, takeover: None, answer_within: None, horizon: 6, ttl: 30, ..Config::new("longest hold") });
}

fn fenced(name: &'static str) -> Config {
    Config { resource: true, in_flight: 3, horizon: 4, left: left(|l| l.acts = 2), ..Config::new(name) }
}

#[test]
fn writes_come_late() {
    holds(&fenced("writes"));
}

#[test]
fn power_cuts_at_the_resource_and_the_coordinator() {
    holds(&Config { left: left(|l| (l.acts, l.cuts) = (1, 1)), in_flight: 2, ..fenced("writes and cuts") });
}

#[test]
fn the_coordinators_memory_goes_back() {
    holds(&Config { left: left(|l| (l.acts, l.restores) = (1, 1)), in_flight: 2, ..fenced("restored") });
}

mod mistakes {
    use super::*;

    #[test]
    fn without_the_fence() {
        fails(&Config { fault: Some(Fault::NoFence), ..fenced("no fence") }, ORDER);
    }

    #[test]
    fn acting_before_storing() {
        let left = left(|l| (l.acts, l.cuts) = (2, 1));
        fails(&Config { fault: Some(Fault::ActsBeforeStoring), left, ..fenced("act, then store") }, ORDER);
    }

    #[test]
    fn an_epsilon_for_one_clock_of_two() {
        let config = Config { rates: [9, 9, 9], coordinator_rate: 11, ..drifting("half an epsilon") };
        fails(&Config { drift_ppb: 100_000_000, ..config }, ALONE);
    }

    #[test]
    fn equality_counted_as_valid() {
        let left = left(|l| l.pauses = 1);
        fails(&Config { fault: Some(Fault::EqualityIsValid), left, ..Config::new("equality") }, ALONE);
    }

    #[test]
    fn the_timer_started_by_the_answer() {
        fails(&Config { fault: Some(Fault::CountsFromTheAnswer), ..Config::new("from the answer") }, ALONE);
    }

    #[test]
    fn answering_before_storing() {
        let left = left(|l| l.cuts = 1);
        fails(&Config { fault: Some(Fault::AnswersBeforeStoring), left, ..Config::new("answer, then store") }, ALONE);
    }

    #[test]
    fn a_boot_that_forgets_what_is_held() {
        let left = left(|l| l.cuts = 1);
        fails(&Config { fault: Some(Fault::BootsFree), left, ..Config::new("free at boot") }, ALONE);
    }

    #[test]
    fn a_release_without_a_stamp() {
        let left = left(|l| l.hand_overs = 1);
        fails(&Config { fault: Some(Fault::ReleasesWhateverIsHeld), left, ..Config::new("release of whatever") }, OWN);
    }

    #[test]
    fn a_restore_without_a_new_epoch() {
        let left = left(|l| (l.acts, l.restores) = (1, 1));
        fails(&Config { fault: Some(Fault::NoNewEpoch), left, ..fenced("no new epoch") }, HEARD);
    }
}
