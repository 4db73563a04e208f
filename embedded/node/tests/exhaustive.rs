//! Every sequence of a few steps: two holders, an operator, a cable, a clock and a power supply do all that they can to a
//! gate, in every order, and at each step the gate does what its model says.
//!
//! The gate is no value that could be copied, on purpose: an act is done once. So a state is the way there, walked again
//! for every step from it, and what it is told apart by is the model, which is one.

mod bench;
mod plain;

use bench::random::soak;
use plain::side_by_side::SideBySide;
use plain::{Asked, OPERATOR, What};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Holder 0 or 1 drives channel 0 or 2, or raises it first where it is another's.
    Drive {
        who: u8,
        channel: usize,
    },
    /// The lease of a channel of its own authority: asked for, used, renewed.
    Acquire(u8),
    DriveOwn,
    Renew,
    /// Whoever holds a channel releases it.
    Release(usize),
    Rearm(usize),
    Epoch,
    /// A drive under the first challenge of all.
    OldChallenge,
    /// The line says the last frame, or the first one, once more.
    LastAgain,
    FirstAgain,
    /// An inhibit opens, or closes.
    Inhibit,
    /// The contact of the first output closes or opens by itself.
    Contact,
    /// Time comes to where the next thing ends, or goes on by a microsecond.
    NextEnd,
    Tick,
    /// The next store fails, or the power is cut in it, before or after the entry has got in.
    /// (The first of them may have got into one copy.)
    StoreFails {
        half: bool,
    },
    CutInStore(bool),
    /// A stop is pressed and pulled out again during it.
    StopInStore,
    PowerCut,
}

const STEPS: [Step; 25] = [
    Step::Drive { who: 0, channel: 0 },
    Step::Drive { who: 1, channel: 0 },
    Step::Drive { who: 0, channel: 2 },
    Step::Drive { who: 1, channel: 2 },
    Step::Acquire(0),
    Step::Acquire(1),
    Step::DriveOwn,
    Step::Renew,
    Step::Release(0),
    Step::Release(2),
    Step::Rearm(0),
    Step::Rearm(2),
    Step::Epoch,
    Step::OldChallenge,
    Step::LastAgain,
    Step::FirstAgain,
    Step::Inhibit,
    Step::Contact,
    Step::NextEnd,
    Step::Tick,
    Step::StoreFails { half: false },
    Step::StoreFails { half: true },
    Step::StopInStore,
    Step::CutInStore(false),
    Step::CutInStore(true),
];

/// How long a drive's window is: long enough for a store, short enough to end soon.
const WINDOW: u64 = 120_000;

fn take(both: &mut SideBySide, step: Step) {
    let own = 1;
    let newest = *both.challenges.last().unwrap();
    let ask = |both: &mut SideBySide, who, channel: usize, above: u64, challenge, what| {
        let mark = both.plain.channels[channel].mark;
        let (epoch, token) = (mark.epoch, (mark.token + above).max(1));
        both.say(&Asked { number: both.sent.len(), who, channel, epoch, token, challenge, what });
    };
    let drive = |channel| What::Drive { window: WINDOW, values: if channel == 2 { vec![1, 1] } else { vec![1] } };
    match step {
        Step::Drive { who, channel } => {
            let mark = both.plain.channels[channel].mark;
            let above = u64::from(mark.holder != Some(who) || mark.released);
            ask(both, who, channel, above, newest, drive(channel));
        }
        Step::Acquire(who) => ask(both, who, own, 0, newest, What::Acquire { ttl: 2 * WINDOW }),
        Step::DriveOwn | Step::Renew => {
            let who = both.plain.channels[own].mark.holder.unwrap_or(0);
            let what = if step == Step::Renew { What::Renew } else { drive(own) };
            ask(both, who, own, 0, newest, what);
        }
        Step::Release(channel) => {
            let who = both.plain.channels[channel].mark.holder.unwrap_or(0);
            ask(both, who, channel, 0, newest, What::Release);
        }
        Step::Rearm(channel) => ask(both, OPERATOR, channel, 0, newest, What::Rearm),
        Step::Epoch => {
            let epoch = both.plain.channels[0].mark.epoch + 1;
            let what = What::Epoch { floor: 0 };
            let number = both.sent.len();
            both.say(&Asked { number, who: OPERATOR, channel: 0, epoch, token: 1, challenge: newest, what });
        }
        Step::OldChallenge => {
            let first = both.challenges[1.min(both.challenges.len() - 1)];
            ask(both, 0, 0, 0, first, drive(0));
        }
        Step::LastAgain | Step::FirstAgain => {
            let frame = if step == Step::LastAgain { both.sent.last() } else { both.sent.first() };
            if let Some((asked, frame)) = frame.cloned() {
                both.exchange(&asked, frame);
            }
        }
        Step::Inhibit => both.bench.inputs.inhibit ^= true,
        Step::Contact => both.bench.inputs.closed ^= 1,
        Step::NextEnd => {
            let now = both.bench.now;
            both.bench.now = both.plain.ends().into_iter().filter(|end| *end > now).min().unwrap_or(now);
        }
        Step::Tick => both.bench.now += 1,
        Step::StoreFails { half } => (both.bench.storing, both.bench.half) = (None, half),
        Step::StopInStore => both.bench.blip = true,
        Step::CutInStore(got_in) => both.bench.cut = Some(got_in),
        Step::PowerCut => both.cut(None),
    }
    both.poll();
    both.compare();
}

/// Walks a way from the beginning.
fn walk(way: &[Step]) -> SideBySide {
    let mut both = SideBySide::new();
    both.bench.storing = Some(1);
    for step in way {
        let stores = both.bench.storing.is_some();
        take(&mut both, *step);
        if !stores {
            both.bench.storing = Some(1); // one step long it failed
        }
    }
    both
}

/// What a state is told apart by: a hash of everything that can make a difference to what happens next.
fn told_apart_by(both: &SideBySide) -> u64 {
    let ends = [both.sent.first(), both.sent.last()].map(|sent| sent.map(|(asked, _)| asked));
    let challenges = (both.challenges.first(), both.challenges.get(1), both.challenges.last());
    let (inputs, cut) = (both.bench.inputs, both.bench.cut);
    let hardware = (inputs, both.bench.storing, cut, both.bench.half, both.bench.blip, both.bench.boots);
    let mut hasher = DefaultHasher::new();
    format!("{:?} {:?} {:?} {ends:?} {challenges:?} {hardware:?}", both.plain, both.flash, both.latched)
        .hash(&mut hasher);
    hasher.finish()
}

/// How the stories begin: with nothing, or once there is a challenge and the first output has been off for long enough.
fn beginnings() -> Vec<Vec<Step>> {
    let begun = [Step::NextEnd, Step::OldChallenge];
    // Its contact follows.
    let driven = [&begun[..], &[Step::Drive { who: 0, channel: 0 }, Step::Contact]].concat();
    let both = [&driven[..], &[Step::Rearm(2), Step::Drive { who: 0, channel: 2 }]].concat();
    // A lease waits for a window that is shorter than a store by now.
    let waits = [&[Step::Rearm(2)][..], &[Step::NextEnd; 3], &[Step::Acquire(1)]].concat();
    let after = |before: &[Step], then: &[Step]| [before, then].concat();
    vec![
        vec![],
        both.clone(),
        after(&both, &[Step::Acquire(0), Step::DriveOwn]),
        after(&both, &[Step::Inhibit, Step::Inhibit]),
        after(&driven, &[Step::StoreFails { half: false }, Step::Drive { who: 1, channel: 0 }]),
        after(&begun, &[Step::Acquire(1), Step::DriveOwn, Step::NextEnd, Step::NextEnd]),
        after(&driven, &[Step::Release(0), Step::PowerCut]),
        after(&driven, &waits),
    ]
}

#[test]
fn every_short_story() {
    let depth = if soak() { 4 } else { 3 };
    let mut seen = HashSet::new();
    let mut ways = beginnings();
    let mut steps = 0_u64;
    let mut met = BTreeMap::new();
    for _ in 0..depth {
        let mut next = vec![];
        for way in &ways {
            for step in STEPS.into_iter().chain([Step::PowerCut]) {
                let way: Vec<Step> = way.iter().copied().chain([step]).collect();
                let both = std::panic::catch_unwind(|| walk(&way)).unwrap_or_else(|_| panic!("on the way {way:?}"));
                steps += 1;
                for what in both.met.keys() {
                    *met.entry(*what).or_insert(0_u64) += 1;
                }
                if seen.insert(told_apart_by(&both)) {
                    next.push(way);
                }
            }
        }
        ways = next;
    }
    println!("counted: {steps} stories, {} states, met on the way: {met:?}", seen.len());
    for what in ["done", "cut", "storage", "released", "replay", "expired", "fault", "held", "rate", "busy"] {
        assert!(met.contains_key(what), "{what} was never met: {met:?}");
    }
}
