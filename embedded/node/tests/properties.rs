//! Random sequences of everything that can happen to a gate, against a model of it in plain integers.
//!
//! A run is made of its seed alone. One that fails prints the command that runs it again.

mod bench;
mod plain;

use bench::random::{Again, Random, seeds, soak};
use bench::*;
use fencegate::{Drift, Duration, Epoch, FenceRecord, GrantRecord, Instant, RaiseBudget, Token};
use fencegate_node::Remembered;
use fencegate_wire::{
    Authority, Challenge, ChannelConfig, OutputConfig, Provisioning, Refused, Reply, Request, Role, SafeAction,
};
use plain::{Asked, CHANNELS, Mark, OBSERVER, OPERATOR, Plain, Said, TERMS, What};
use std::collections::BTreeMap;

const US: fn(u64) -> Duration = Duration::from_micros;
const HOLDERS: [&str; 3] = ["a", "b", "a#2"];

/// The model's gate, said to the real one.
fn provision(p: &mut Provisioning) {
    p.gate.drift = Drift::from_ppm(100);
    p.gate.lateness = US(plain::LATENESS);
    p.gate.longest_window = US(plain::LONGEST);
    p.gate.raises = RaiseBudget { burst: u32::try_from(plain::BURST).unwrap(), every: US(plain::EVERY) };
    p.channels = (TERMS.iter())
        .map(|terms| ChannelConfig {
            authority: if terms.own { Authority::Own } else { Authority::Outside },
            outputs: u8::try_from(terms.outputs.len()).unwrap(),
            reaction: US(terms.reaction),
            lock_delay: US(terms.lock_delay),
            rearm_after_window: terms.rearm_after_window,
            ..ChannelConfig::new()
        })
        .collect();
    p.outputs = (TERMS.iter().flat_map(|terms| terms.outputs))
        .map(|output| OutputConfig {
            max: output.max,
            action: if output.keep > 0 { SafeAction::Keep { time: US(output.keep) } } else { SafeAction::AtOnce },
            least_on: US(output.least_on),
            least_off: US(output.least_off),
            feedback: output.feedback.map(US),
            ..OutputConfig::switch()
        })
        .collect();
}

fn role(who: u8) -> Role {
    match who {
        OPERATOR => Role::Operator,
        OBSERVER => Role::Observer,
        n => holder(HOLDERS[usize::from(n)]),
    }
}

fn request(asked: &Asked) -> Request {
    let (channel, epoch) = (u8::try_from(asked.channel).unwrap(), Epoch(asked.epoch));
    let token = Token::new(asked.token).unwrap();
    match &asked.what {
        What::Raise => Request::Raise { channel, epoch, token },
        What::Drive { window, values } => {
            let values = values.iter().copied().collect();
            Request::Drive { channel, epoch, token, window: US(*window), values }
        }
        What::Release => Request::Release { channel, epoch, token },
        What::Renew => Request::Renew { channel, epoch, token },
        What::Acquire { ttl } => Request::Acquire { channel, ttl: US(*ttl) },
        What::Epoch { floor } => Request::Epoch { channel, epoch, floor: *floor },
        What::Rearm => Request::Rearm { channel },
    }
}

fn fence_of(mark: Mark) -> FenceRecord {
    let holder = mark.holder.map(|who| fencegate::HolderId::new(HOLDERS[usize::from(who)]).unwrap());
    FenceRecord { epoch: Epoch(mark.epoch), token: mark.token, holder, released: mark.released }
}

fn record_of(mark: Mark) -> GrantRecord {
    GrantRecord { mark: fence_of(mark), ttl: US(mark.ttl) }
}

/// A gate and its model, side by side.
struct Run {
    random: Random,
    bench: Bench,
    plain: Plain,
    /// What the model's flash holds, and whether it was lost.
    flash: [(Mark, bool); CHANNELS],
    challenges: Vec<(u32, u64)>,
    sent: Vec<(Asked, Vec<u8>)>,
    stuck: bool,
    /// A run that was asked for by its seed tells its steps.
    tells: bool,
    met: BTreeMap<&'static str, u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let flash = [(Mark::default(), false); CHANNELS];
        let (bench, plain) = (Bench::with(provision), Plain::boot(1, flash));
        let (challenges, sent, met) = (vec![(1, 0)], vec![], BTreeMap::new());
        let tells = std::env::var_os("FENCEGATE_SEED").is_some();
        Self { random: Random(seed), bench, plain, flash, challenges, sent, stuck: false, tells, met }
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
            self.bench.inputs.closed = u16::from(self.bench.pins()[0] != 0);
        }
        let open = if self.bench.inputs.inhibit { 5 } else { 150 };
        self.bench.inputs.inhibit ^= self.random.once_in(open);
        self.bench.storing = (!self.random.once_in(200)).then(|| match self.random.below(3) {
            0 => 0,
            1 => plain::WORST_STORE,
            _ => self.random.below(plain::WORST_STORE),
        });
        self.bench.cut = self.random.once_in(60).then(|| self.random.once_in(2));
        if self.random.once_in(300) {
            let n = usize::try_from(self.random.below(3)).unwrap();
            if self.random.once_in(2) {
                self.flash[n].1 = true;
                self.bench.marks[n] = Remembered::Lost(fence_of(self.flash[n].0));
            }
            self.bench.power_cut();
            self.reboot();
        }
        self.poll();
        if self.random.once_in(12) && !self.sent.is_empty() {
            let recent = self.sent.len().saturating_sub(12);
            let (asked, frame) = self.random.pick(&self.sent[recent..]);
            self.exchange(&asked, frame);
        } else {
            let asked = self.ask();
            let (boot, tick) = asked.challenge;
            let frame = self.bench.seal(role(asked.who), Some(Challenge { boot, tick }), request(&asked));
            self.sent.push((asked.clone(), frame.clone()));
            self.exchange(&asked, frame);
        }
        self.compare();
    }

    /// A little, or exactly up to where something ends, or one microsecond beside that.
    fn pass_time(&mut self) {
        let now = self.bench.now;
        let ends: Vec<u64> = self.plain.ends().into_iter().filter(|at| (now..now + 2_500_000).contains(at)).collect();
        self.bench.now = if self.random.once_in(2) && !ends.is_empty() {
            (self.random.pick(&ends) + self.random.below(3)).saturating_sub(1).max(now)
        } else {
            now + self.random.below(30 * MS)
        };
    }

    fn poll(&mut self) {
        self.bench.poll();
        self.plain.now = self.bench.now;
        self.plain.poll(self.bench.inputs.inhibit, self.bench.inputs.closed);
    }

    fn reboot(&mut self) {
        self.plain = Plain::boot(self.bench.boots, self.flash);
    }

    /// Something that somebody could ask, most often something that makes sense.
    fn ask(&mut self) -> Asked {
        let r = &mut self.random;
        let channel = if r.once_in(200) { 3 } else { usize::try_from(r.below(3)).unwrap() };
        let (n, own) = (channel.min(2), channel == 1);
        let mark = self.plain.channels[n].mark;
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
            _ if self.plain.channels[n].lost && r.once_in(3) => What::Epoch { floor: 0 },
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
            0 => r.pick(&self.challenges),
            1 => r.pick(&self.challenges[self.challenges.len().saturating_sub(4)..]),
            _ => *self.challenges.last().unwrap(),
        };
        Asked { number: self.sent.len(), who, channel, epoch, token, challenge, what }
    }

    /// Puts a frame onto the line, and holds what comes back against what the model says.
    fn exchange(&mut self, asked: &Asked, frame: Vec<u8>) {
        let boots = self.bench.boots;
        self.poll();
        let (storing, cut) = (self.bench.storing, self.bench.cut);
        let said = match self.plain.ask(asked) {
            Said::Stored => {
                let entry = storing.is_some().then(|| self.plain.entry(asked));
                if let (Some(entry), true) = (entry, cut != Some(false)) {
                    self.flash[asked.channel] = (entry, false);
                }
                if storing.is_some() && cut.is_some() {
                    self.met("cut");
                    assert!(self.bench.send(role(asked.who), frame).is_none());
                    assert_eq!(self.bench.boots, boots + 1, "{asked:?} was to be stored");
                    return self.reboot();
                }
                self.plain.now += storing.unwrap_or(0);
                self.plain.poll(self.bench.inputs.inhibit, self.bench.inputs.closed);
                self.plain.stored(asked, entry)
            }
            said => said,
        };
        self.plain.poll(self.bench.inputs.inhibit, self.bench.inputs.closed);
        if self.tells {
            println!("{} µs: {asked:?}: {said:?}, {:?}", self.bench.now, self.plain.outputs());
        }
        let answer = self.bench.send(role(asked.who), frame).expect("an answer");
        assert_eq!(self.bench.boots, boots, "{asked:?} was not to be stored");
        assert!((self.plain.last + 1..=self.bench.now.max(self.plain.last + 1)).contains(&answer.challenge.tick));
        assert_eq!(answer.challenge.boot, self.bench.boots);
        self.plain.last = answer.challenge.tick;
        self.challenges.push((answer.challenge.boot, answer.challenge.tick));
        let c = self.plain.channels.get(asked.channel);
        let stands = c.map(|c| fence_of(c.mark));
        let expected = match said {
            Said::Done => Reply::Done { record: stands.unwrap(), window_left: US(self.plain.left(asked.channel)) },
            Said::Refused(reason) => {
                let wait = if reason == "held" { c.unwrap().free.saturating_sub(self.plain.now) } else { 0 };
                let reason = fencegate_wire::Reason::ALL.into_iter().find(|r| r.as_str() == reason).unwrap();
                Reply::Refused(Refused { reason, by: stands, wait: US(wait) })
            }
            Said::Stored => unreachable!(),
        };
        assert_eq!(answer.reply, expected, "{asked:?} at {}", self.bench.now);
        self.met(match said {
            Said::Refused(reason) => reason,
            _ => "done",
        });
    }

    fn met(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    fn compare(&self) {
        assert_eq!(self.bench.pins(), self.plain.outputs());
        let deadline = (0..CHANNELS).filter_map(|n| self.plain.deadline(n)).min();
        assert_eq!(self.bench.gate.deadline().map(Instant::as_micros), deadline);
        for (n, (mark, lost)) in self.flash.into_iter().enumerate() {
            let stored = if lost { Remembered::Lost(fence_of(mark)) } else { Remembered::Mark(record_of(mark)) };
            assert_eq!(self.bench.marks[n], stored, "channel {n}");
        }
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
        println!("seed {seed}: {steps} steps, {:?}", run.met);
        for (what, times) in run.met {
            *met.entry(what).or_default() += times;
        }
    }
    for what in [
        "done",
        "cut",
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
