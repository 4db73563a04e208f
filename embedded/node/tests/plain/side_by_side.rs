//! A gate and its model, side by side: what the one answers and does is held against what the other says.

use super::{Asked, CHANNELS, Fault, Latched, Mark, OBSERVER, OPERATOR, Plain, Said, TERMS, What};
use crate::bench::{Bench, holder};
use fencegate::{Drift, Duration, Epoch, FenceRecord, GrantRecord, HolderId, RaiseBudget, Token};
use fencegate_node::Remembered;
use fencegate_wire::{
    Authority, Challenge, ChannelConfig, OutputConfig, Provisioning, Reason, Refused, Reply, Request, Role, SafeAction,
};
use std::collections::BTreeMap;

const US: fn(u64) -> Duration = Duration::from_micros;
pub(crate) const HOLDERS: [&str; 3] = ["a", "b", "a#2"];

/// The model's gate, said to the real one.
fn provision(p: &mut Provisioning) {
    p.gate.drift = Drift::from_ppm(100);
    p.gate.lateness = US(super::LATENESS);
    p.gate.longest_window = US(super::LONGEST);
    p.gate.raises = RaiseBudget { burst: u32::try_from(super::BURST).unwrap(), every: US(super::EVERY) };
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
    let holder = mark.holder.map(|who| HolderId::new(HOLDERS[usize::from(who)]).unwrap());
    FenceRecord { epoch: Epoch(mark.epoch), token: mark.token, holder, released: mark.released }
}

fn record_of(mark: Mark) -> GrantRecord {
    GrantRecord { mark: fence_of(mark), ttl: US(mark.ttl) }
}

/// A gate and its model.
pub(crate) struct SideBySide {
    pub(crate) bench: Bench,
    pub(crate) plain: Plain,
    /// What the model's flash holds, and whether it was lost.
    pub(crate) flash: [(Mark, bool); CHANNELS],
    /// What is latched, and whether only one copy has the last of it.
    pub(crate) latched: (Latched, bool),
    /// The power is cut the next time that something is latched: whether that had got in.
    pub(crate) latch_cut: Option<bool>,
    pub(crate) challenges: Vec<(u32, u64)>,
    pub(crate) sent: Vec<(Asked, Vec<u8>)>,
    /// A run that was asked for by its seed tells its steps.
    tells: bool,
    pub(crate) met: BTreeMap<&'static str, u64>,
}

impl SideBySide {
    pub(crate) fn new() -> Self {
        let flash = [(Mark::default(), false); CHANNELS];
        let (bench, plain) = (Bench::with(provision), Plain::boot(1, flash, ([None; CHANNELS], false)));
        let tells = std::env::var_os("FENCEGATE_SEED").is_some();
        Self {
            bench,
            plain,
            flash,
            latched: ([None; CHANNELS], false),
            latch_cut: None,
            challenges: vec![(1, 0)],
            sent: vec![],
            tells,
            met: BTreeMap::new(),
        }
    }

    pub(crate) fn poll(&mut self) {
        let (now, cut) = (self.bench.now, self.latch_cut.take());
        self.bench.latch_cut = cut;
        self.bench.poll();
        self.bench.latch_cut = None;
        self.plain.now = now;
        self.look();
        self.latch(cut);
    }

    fn look(&mut self) {
        self.plain.poll(self.bench.inputs.inhibit, self.bench.inputs.closed);
    }

    /// Stores what the model has to latch.
    fn latch(&mut self, cut: Option<bool>) {
        let Some(held) = self.plain.latch() else { return };
        let stored = self.bench.storing.is_some();
        self.keep_latched(held, if stored { cut != Some(false) } else { self.bench.half }, stored);
        if stored && cut.is_some() {
            self.met("cut while it latches");
            self.reboot();
        } else {
            self.plain.latched(stored.then_some(held));
        }
        self.look();
    }

    /// What is in the flash now; from a store that has failed it is in one copy, and what either has is held.
    fn keep_latched(&mut self, held: Latched, kept: bool, whole: bool) {
        if !kept {
            return;
        }
        let (before, _) = self.latched;
        let either = |n: usize| match (held[n], before[n]) {
            (Some(Fault::Feedback), _) | (_, Some(Fault::Feedback)) => Some(Fault::Feedback),
            (held, before) => held.or(before),
        };
        self.latched = if whole { (held, false) } else { (std::array::from_fn(either), true) };
    }

    pub(crate) fn reboot(&mut self) {
        self.plain = Plain::boot(self.bench.boots, self.flash, self.latched);
    }

    /// A channel's record is lost, and with it the power.
    pub(crate) fn cut(&mut self, lost: Option<usize>) {
        if let Some(n) = lost {
            self.flash[n].1 = true;
            self.bench.marks[n] = Remembered::Lost(fence_of(self.flash[n].0));
        }
        self.bench.power_cut();
        self.reboot();
    }

    /// Asks, under a new seal.
    pub(crate) fn say(&mut self, asked: &Asked) {
        let (boot, tick) = asked.challenge;
        let frame = self.bench.seal(role(asked.who), Some(Challenge { boot, tick }), request(asked));
        self.sent.push((asked.clone(), frame.clone()));
        self.exchange(asked, frame);
    }

    /// Puts a frame onto the line, and holds what comes back against what the model says.
    pub(crate) fn exchange(&mut self, asked: &Asked, frame: Vec<u8>) {
        let boots = self.bench.boots;
        self.poll();
        let (storing, cut) = (self.bench.storing, self.bench.cut);
        let said = match self.plain.ask(asked) {
            Said::Stored => {
                let rearmed = (asked.what == What::Rearm).then(|| self.plain.rearmed(asked.channel));
                let entry = self.plain.entry(asked);
                if if storing.is_some() { cut != Some(false) } else { self.bench.half } {
                    match rearmed {
                        Some(rearmed) => self.keep_latched(rearmed, true, storing.is_some()),
                        None => self.flash[asked.channel] = (entry, false),
                    }
                }
                if storing.is_some() && cut.is_some() {
                    self.met("cut");
                    assert!(self.bench.send(role(asked.who), frame).is_none());
                    assert_eq!(self.bench.boots, boots + 1, "{asked:?} was to be stored");
                    return self.reboot();
                }
                self.plain.now += storing.unwrap_or(0);
                if self.bench.blip {
                    self.met("a stop during a store");
                    self.plain.poll(true, self.bench.inputs.closed);
                }
                self.look();
                match rearmed {
                    Some(rearmed) => self.plain.stored_rearm(asked, storing.and(Some(rearmed))),
                    None => self.plain.stored(asked, storing.and(Some(entry))),
                }
            }
            said => said,
        };
        self.look();
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
                let reason = Reason::ALL.into_iter().find(|r| r.as_str() == reason).unwrap();
                Reply::Refused(Refused { reason, by: stands, wait: US(wait) })
            }
            Said::Stored => unreachable!(),
        };
        assert_eq!(answer.reply, expected, "{asked:?} at {}", self.bench.now);
        // It is latched once the answer is out: where that fails, the answer's challenge is used up too.
        self.latch(None);
        self.met(match said {
            Said::Refused(reason) => reason,
            _ => "done",
        });
    }

    fn met(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    pub(crate) fn compare(&self) {
        assert_eq!(self.bench.pins(), self.plain.outputs());
        let deadline = (0..CHANNELS).filter_map(|n| self.plain.deadline(n)).min();
        assert_eq!(self.bench.deadline(), deadline);
        for (n, (mark, lost)) in self.flash.into_iter().enumerate() {
            let stored = if lost { Remembered::Lost(fence_of(mark)) } else { Remembered::Mark(record_of(mark)) };
            assert_eq!(self.bench.marks[n], stored, "channel {n}");
        }
    }
}
