//! Random sequences of everything that can happen to a gate, against a model of it in plain integers.
//!
//! A run is made of its seed alone. One that fails prints the command that runs it again.

mod bench;
mod plain;

use bench::random::{Again, Random, seeds, soak};
use bench::*;
use plain::side_by_side::SideBySide;
use plain::{Asked, OBSERVER, OPERATOR, TERMS, What};
use std::collections::BTreeMap;

/// A gate and its model, and chance.
struct Run {
    random: Random,
    both: SideBySide,
    stuck: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self { random: Random(seed), both: SideBySide::new(), stuck: false }
    }

    /// Once in so many times each, something happens.
    fn step(&mut self) {
        if self.random.once_in(2) {
            self.pass_time();
        }
        if self.random.once_in(40) {
            self.stuck = self.random.once_in(3);
        }
        if !self.stuck {
            self.both.bench.inputs.closed = u16::from(self.both.bench.pins()[0] != 0);
        }
        let open = if self.both.bench.inputs.inhibit { 5 } else { 150 };
        self.both.bench.inputs.inhibit ^= self.random.once_in(open);
        self.both.bench.storing = (!self.random.once_in(200)).then(|| match self.random.below(3) {
            0 => 0,
            1 => plain::WORST_STORE,
            _ => self.random.below(plain::WORST_STORE),
        });
        self.both.bench.cut = self.random.once_in(60).then(|| self.random.once_in(2));
        self.both.latch_cut = self.random.once_in(4).then(|| self.random.once_in(2));
        self.both.bench.half = self.random.once_in(2);
        self.both.bench.blip = self.random.once_in(30);
        if self.random.once_in(300) {
            let n = usize::try_from(self.random.below(3)).unwrap();
            let lost = self.random.once_in(2).then_some(n);
            self.both.cut(lost);
        }
        self.both.poll();
        if self.random.once_in(12) && !self.both.sent.is_empty() {
            let recent = self.both.sent.len().saturating_sub(12);
            let (asked, frame) = self.random.pick(&self.both.sent[recent..]);
            self.both.exchange(&asked, frame);
        } else {
            let asked = self.ask();
            self.both.say(&asked);
        }
        self.both.compare();
    }

    /// A little, or exactly up to where something ends, or one microsecond beside that.
    fn pass_time(&mut self) {
        let now = self.both.bench.now;
        let ends: Vec<u64> =
            self.both.plain.ends().into_iter().filter(|at| (now..now + 2_500_000).contains(at)).collect();
        self.both.bench.now = if self.random.once_in(2) && !ends.is_empty() {
            (self.random.pick(&ends) + self.random.below(3)).saturating_sub(1).max(now)
        } else {
            now + self.random.below(30 * MS)
        };
    }

    /// Something that somebody could ask, most often something that makes sense.
    fn ask(&mut self) -> Asked {
        let r = &mut self.random;
        let channel = if r.once_in(200) { 3 } else { usize::try_from(r.below(3)).unwrap() };
        let (n, own) = (channel.min(2), channel == 1);
        let mark = self.both.plain.channels[n].mark;
        let window = match r.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => plain::LONGEST + r.below(3) - 1,
            3 => plain::LATENESS + r.below(60_000),
            _ => r.below(400_000),
        };
        let values = |r: &mut Random| {
            let outputs = TERMS[n].outputs;
            let mut values: Vec<i32> = outputs.iter().map(|output| r.pick(&[0, 1, output.max])).collect();
            match r.below(60) {
                0 => values.push(0),
                1 => values[0] = outputs[0].max + 1,
                2 => values[0] = -1,
                _ => {}
            }
            values
        };
        let what = match r.below(30) {
            0..3 => What::Raise,
            3..16 => What::Drive { window, values: values(r) },
            16..19 => What::Release,
            19..24 => {
                if own || r.once_in(20) {
                    What::Acquire { ttl: window }
                } else {
                    What::Raise
                }
            }
            24..27 => {
                if own || r.once_in(20) {
                    What::Renew
                } else {
                    What::Drive { window, values: values(r) }
                }
            }
            27 => What::Epoch { floor: r.pick(&[0, 7, (1 << 63) - 2, (1 << 63) - 1]) },
            _ => What::Rearm,
        };
        let what = match what {
            _ if self.both.plain.channels[n].lost && r.once_in(3) => What::Epoch { floor: 0 },
            what => what,
        };
        let operators = matches!(what, What::Epoch { .. } | What::Rearm);
        let who = match (operators, r.below(12)) {
            (_, 0) => r.pick(&[0, 1, 2, OPERATOR, OBSERVER]),
            (true, _) => OPERATOR,
            (false, 1) => r.pick(&[0, 1, 2]),
            (false, _) => mark.holder.unwrap_or(0),
        };
        let epoch = match (&what, r.below(20)) {
            (What::Epoch { .. }, 0..2) => mark.epoch.saturating_add(65_536 + u32::from(r.once_in(2))),
            (What::Epoch { .. }, 2..17) | (_, 0) => mark.epoch.saturating_add(1),
            (_, 1) => mark.epoch.saturating_sub(1),
            _ => mark.epoch,
        };
        // A fresh or a released stamp needs a higher one.
        let next = u64::from(mark.holder.is_none() || mark.released);
        let step = match r.below(30) {
            0..4 if !own || r.once_in(8) => 1 + r.below(3),
            4 => 1 << 48,
            5 => (1 << 48) + 1,
            6 => 1 << 63,
            _ => next,
        };
        let token = mark.token.saturating_add(step).saturating_sub(u64::from(r.once_in(15))).max(1);
        let challenge = match r.below(8) {
            0 => r.pick(&self.both.challenges),
            1 => r.pick(&self.both.challenges[self.both.challenges.len().saturating_sub(4)..]),
            _ => *self.both.challenges.last().unwrap(),
        };
        Asked { number: self.both.sent.len(), who, channel, epoch, token, challenge, what }
    }
}

#[test]
fn the_gate_does_what_the_contract_says() {
    let steps = if soak() { 1_000_000 } else { 10_000 };
    let mut met = BTreeMap::new();
    let seeds = seeds(5);
    let runs = u64::try_from(seeds.len()).unwrap();
    for seed in seeds {
        let _again = Again { seed, test: "properties" };
        let mut run = Run::new(seed);
        for _ in 0..steps {
            run.step();
        }
        println!("counted: seed {seed}: {steps} steps, {:?}", run.both.met);
        for (what, times) in run.both.met {
            *met.entry(what).or_default() += times;
        }
    }
    for what in [
        "done",
        "cut",
        "cut while it latches",
        "a stop during a store",
        "bad_channel",
        "role",
        "authority",
        "range",
        "storage",
        "stale",
        "wrong_holder",
        "released",
        "jump",
        "replay",
        "expired",
        "fault",
        "held",
        "rate",
        "busy",
    ] {
        let times: u64 = met.get(what).copied().unwrap_or(0);
        assert!(times >= 2 * runs, "{what} was met {times} times: {met:?}");
    }
}
