//! Stories told on the host: what the holders, the grantor and the fence make of a world that goes wrong.

use super::event::{Event, Kind};
use super::resource::Verdict;
use super::scenario::{Happening, Scenario, What, When, WorkerPlan};
use super::world::World;
use fencegate::HolderId;

const SECOND: u64 = 1_000_000;

fn worker(name: &str, job: &[&str], starts: u64) -> WorkerPlan {
    WorkerPlan {
        id: HolderId::new(name).unwrap(),
        name: name.to_owned(),
        job: job.iter().map(|&line| line.to_owned()).collect(),
        starts,
        work: SECOND / 2,
        rest: 0,
        delay: 20_000,
        drift: 0,
        gives_up: false,
    }
}

fn two(happenings: Vec<Happening>) -> Scenario {
    Scenario::of(10 * SECOND, vec![worker("a", &["one", "two"], 0), worker("b", &["three"], SECOND)], happenings)
}

fn on_write(what: What, who: usize, n: u64, lasts: u64) -> Happening {
    Happening { what, when: When::Write(n), who, lasts, nodes: 0, token: 0 }
}

fn told(scenario: Scenario) -> World {
    let mut world = World::new(&scenario.into());
    while world.step(u64::MAX) {}
    world
}

fn ledger(world: &World) -> Vec<(&str, u64, Verdict)> {
    world.resource.ledger.iter().map(|e| (&*e.text, e.stamp.token.get(), e.verdict)).collect()
}

fn of(world: &World, kind: Kind) -> Vec<&Event> {
    world.events.iter().filter(|event| event.kind == kind).collect()
}

#[test]
fn a_clean_run_goes_one_after_the_other() {
    let world = told(two(vec![]));
    let landed = [("one", 33), ("two", 33), ("three", 34)].map(|(text, token)| (text, token, Verdict::Landed));
    assert_eq!(ledger(&world), landed);
    assert_eq!(of(&world, Kind::Released).len(), 2);
    assert_eq!((of(&world, Kind::Cancelled).len(), of(&world, Kind::Expired).len()), (0, 0));
}

#[test]
fn a_pause_before_a_write_bounces_or_corrupts() {
    for fencing in [true, false] {
        let mut scenario = two(vec![on_write(What::Freeze, 0, 2, 15 * SECOND)]);
        scenario.fencing = fencing;
        let world = told(scenario);
        let late = if fencing { Verdict::Bounced } else { Verdict::Corrupted };
        let (first, then) = (("one", 33, Verdict::Landed), ("three", 34, Verdict::Landed));
        assert_eq!(ledger(&world)[..3], [first, then, ("two", 33, late)]);
        let entry = &world.resource.ledger[2];
        assert_eq!(entry.words, "33 < 34: stale");
        let expiry = of(&world, Kind::Expired)[0].at;
        assert!(expiry < entry.at && world.resource.ledger[1].at > expiry);
        if fencing {
            assert_eq!(ledger(&world)[3..], [("two", 35, Verdict::Landed)], "and with a lease of its own it is done");
        }
    }
}

#[test]
fn a_clock_within_its_bound_never_outlives_the_lease() {
    for (holder, coordinator) in [(-500_000, 500_000), (500_000, -500_000), (0, 0)] {
        let mut scenario = two(vec![on_write(What::Partition, 0, 9, 0)]);
        scenario.workers[0].drift = holder;
        scenario.coordinator_drift = coordinator;
        // Cut off from the very start: the window ends before the lease does.
        scenario.happenings = vec![Happening {
            what: What::Partition,
            when: When::At(SECOND),
            who: 0,
            lasts: 30 * SECOND,
            nodes: 0,
            token: 0,
        }];
        scenario.workers[0].job = vec!["one".to_owned(); 60];
        let world = told(scenario);
        let over = of(&world, Kind::Cancelled).iter().find(|e| e.words.contains("window")).unwrap().at;
        let expired = of(&world, Kind::Expired)[0].at;
        assert!(over <= expired, "{holder} {coordinator}: {over} {expired}");
        assert!(world.resource.ledger.iter().all(|entry| entry.verdict == Verdict::Landed));
    }
}

#[test]
fn each_kind_has_a_word_of_its_own() {
    let mut words: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Kind::ALL.len());
}

#[test]
fn the_same_scenario_tells_the_same_story() {
    let tell = || format!("{:?}", told(two(vec![on_write(What::Hang, 0, 1, 25 * SECOND)])).events);
    assert_eq!(tell(), tell());
}

#[test]
fn a_cut_while_a_raise_is_stored_leaves_the_old_stamp_and_the_story_goes_on() {
    let mut scenario = two(vec![]);
    scenario.store = 300_000;
    scenario.happenings =
        vec![Happening { what: What::PowerCut, when: When::At(150_000), who: 0, lasts: SECOND, nodes: 0, token: 0 }];
    let world = told(scenario);
    assert_eq!(of(&world, Kind::Boots)[0].words, "boots; what it has stored says 0");
    assert_eq!(ledger(&world).len(), 3, "the raise was asked for again: {:?}", world.events);
}

#[test]
fn what_never_ends_is_broken_off() {
    let mut scenario = two(vec![]);
    scenario.schedule = fencegate::Plan::for_ttl(fencegate::Duration::from_micros(100))
        .round_trip(fencegate::Duration::from_micros(1))
        .build()
        .unwrap();
    let world = told(scenario);
    assert_eq!(of(&world, Kind::BrokenOff).len(), 1);
}
