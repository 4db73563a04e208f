//! The gate as the contract says it, in plain integers: which reason applies, and what is done. Times in microseconds.
//!
//! It says nothing of how the gate goes about it: every reason is looked at by itself, and the first of the contract's
//! order that applies is given.

#![allow(dead_code, reason = "every test file uses a part of it")]

mod outputs;
pub(crate) mod side_by_side;

/// What the gates of these tests are provisioned with.
pub(crate) const LATENESS: u64 = 5_000;
pub(crate) const LONGEST: u64 = 2_000_000;
pub(crate) const WORST_STORE: u64 = 20_000;
pub(crate) const BURST: u64 = 3;
pub(crate) const EVERY: u64 = 1_500_000;
pub(crate) const CHANNELS: usize = 3;
/// How soon a host that was refused as busy asks again.
const AGAIN: u64 = 100_000;
/// The reasons that may pass.
const MAY_PASS: [&str; 8] = ["authority", "storage", "jump", "expired", "fault", "held", "rate", "busy"];
/// For how long a flash that could not store what is latched is left alone.
const LATCH_AGAIN: u64 = 1_000_000;
/// How long a store that was refused as busy has the right of way.
const WANTED: u64 = 1_000_000;

/// What a channel is: its authority, its reaction and safe action, its lock delay.
pub(crate) struct Terms {
    pub(crate) own: bool,
    pub(crate) reaction: u64,
    pub(crate) action: u64,
    pub(crate) lock_delay: u64,
    pub(crate) rearm_after_window: bool,
    pub(crate) outputs: &'static [Output],
}

/// What an output is: from 0, which is safe, to `max`. It may keep its value for a while when it is let go of.
pub(crate) struct Output {
    pub(crate) max: i32,
    pub(crate) keep: u64,
    pub(crate) least_on: u64,
    pub(crate) least_off: u64,
    pub(crate) feedback: Option<u64>,
}

const SWITCH: Output = Output { max: 1, keep: 0, least_on: 0, least_off: 0, feedback: None };
const OUTSIDE: Terms =
    Terms { own: false, reaction: 0, action: 0, lock_delay: 0, rearm_after_window: false, outputs: &[SWITCH] };

pub(crate) const TERMS: [Terms; CHANNELS] = [
    Terms {
        reaction: 2_000,
        outputs: &[Output { max: 3, least_on: 30_000, least_off: 20_000, feedback: Some(50_000), ..SWITCH }],
        ..OUTSIDE
    },
    Terms { own: true, lock_delay: 300_000, ..OUTSIDE },
    Terms {
        action: 40_000,
        rearm_after_window: true,
        outputs: &[Output { keep: 40_000, ..SWITCH }, SWITCH],
        ..OUTSIDE
    },
];

/// Who speaks: a holder by number, or one of these.
pub(crate) const OPERATOR: u8 = 10;
pub(crate) const OBSERVER: u8 = 11;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Raise,
    Drive { window: u64, values: Vec<i32> },
    Release,
    Renew,
    Acquire { ttl: u64 },
    Epoch { floor: u64 },
    Rearm,
}

/// A sealed request. Two with the same number are the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) number: usize,
    pub(crate) who: u8,
    pub(crate) channel: usize,
    pub(crate) epoch: u32,
    pub(crate) token: u64,
    pub(crate) challenge: (u32, u64),
    pub(crate) what: What,
}

/// What is stored of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) epoch: u32,
    pub(crate) token: u64,
    pub(crate) holder: Option<u8>,
    pub(crate) released: bool,
    pub(crate) ttl: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Drive {
    #[default]
    Safe,
    Driven {
        end: u64,
        values: Vec<i32>,
    },
    LettingGo {
        from: Vec<i32>,
        since: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    value: i32,
    since: u64,
    astray: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Feedback,
    Inhibited,
    Expired,
}

/// What holds each channel until the operator rearms it, through boots too.
pub(crate) type Latched = [Option<Fault>; CHANNELS];

#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    pub(crate) mark: Mark,
    pub(crate) lost: bool,
    /// When a lease of its own authority ends, and when it is free.
    pub(crate) ends: u64,
    pub(crate) free: u64,
    drive: Drive,
    fault: Option<Fault>,
    /// A rearm is being stored, and nothing has happened since that it would not be for.
    rearming: bool,
    /// The number and the tick of the last request that was done: a holder's, the operator's.
    used: [Option<(usize, u64)>; 2],
    /// Until when what was refused as busy has the right of way here.
    wanted_until: u64,
    lines: Vec<Line>,
}

/// The gate.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) now: u64,
    pub(crate) boot: u32,
    /// The tick of the last challenge that was issued.
    pub(crate) last: u64,
    void: u64,
    raises: u64,
    earning_since: u64,
    wanted_until: u64,
    inhibited: bool,
    /// What is latched in the flash.
    latched: Latched,
    /// Whether the flash may say otherwise, and until when it is left alone.
    unsure: bool,
    latch_again: u64,
    /// The last four refusals for what may pass, one a host and channel: who, where, up to which tick, number, why.
    refused: Vec<(u8, usize, u64, usize, &'static str)>,
    pub(crate) channels: [Channel; CHANNELS],
}

/// What the answer has to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Done,
    Refused(&'static str),
    /// To be stored first, at whatever time that is over.
    Stored,
}

fn outlast(ttl: u64) -> u64 {
    (ttl * 10_000).div_ceil(9_999) // a clock that is up to 100 ppm too fast
}

impl Plain {
    pub(crate) fn boot(boot: u32, marks: [(Mark, bool); CHANNELS], (latched, unsure): (Latched, bool)) -> Self {
        let channels = std::array::from_fn(|n| {
            let (mark, lost) = marks[n];
            let ends = if lost { 0 } else { outlast(mark.ttl) };
            let free = if ends > 0 { ends + TERMS[n].lock_delay } else { 0 };
            Channel {
                mark,
                lost,
                ends,
                free,
                fault: latched[n].or(TERMS[n].rearm_after_window.then_some(Fault::Expired)),
                lines: vec![Line::default(); TERMS[n].outputs.len()],
                ..Channel::default()
            }
        });
        let (last, void, earning_since, wanted_until) = (0, 0, 0, 0);
        Self {
            now: 0,
            boot,
            last,
            void,
            raises: BURST,
            earning_since,
            wanted_until,
            inhibited: false,
            latched,
            unsure,
            latch_again: 0,
            refused: vec![],
            channels,
        }
    }

    /// When a drive would end, by its window counted from its challenge and by the gate's own lease.
    fn end(&self, asked: &Asked) -> Option<u64> {
        let What::Drive { window, .. } = asked.what else { return None };
        let (c, terms) = (&self.channels[asked.channel], &TERMS[asked.channel]);
        let taken = LATENESS + terms.reaction + terms.action;
        let window = window.min(LONGEST);
        let left = window.saturating_sub(window.div_ceil(10_000)).saturating_sub(taken);
        let end = if left > 0 { asked.challenge.1 + left } else { 0 };
        Some(if terms.own { end.min(c.ends.saturating_sub(taken)) } else { end })
    }

    fn has_least_times(&self, asked: &Asked) -> bool {
        let What::Drive { values, .. } = &asked.what else { return true };
        let c = &self.channels[asked.channel];
        c.lines.iter().zip(TERMS[asked.channel].outputs).zip(values).all(|((line, output), value)| {
            let least = match (line.value != 0, *value != 0) {
                (false, true) => output.least_off,
                (true, false) => output.least_on,
                _ => 0,
            };
            self.now - line.since >= least
        })
    }

    fn is_astray(&self, n: usize) -> bool {
        let late = |line: &Line, within: u64| line.astray.is_some_and(|since| self.now - since >= within);
        let mut lines = self.channels[n].lines.iter().zip(TERMS[n].outputs);
        lines.any(|(line, output)| output.feedback.is_some_and(|within| late(line, within)))
    }

    fn budget(&mut self) -> u64 {
        let earned = (self.now - self.earning_since) / EVERY;
        if self.raises + earned >= BURST {
            (self.raises, self.earning_since) = (BURST, self.now);
        } else {
            (self.raises, self.earning_since) = (self.raises + earned, self.earning_since + earned * EVERY);
        }
        self.raises
    }

    /// The contract's reasons in its order, and whether each applies.
    fn reason(&mut self, asked: &Asked) -> Option<&'static str> {
        use What::{Acquire, Drive as Driving, Epoch, Raise, Rearm, Release, Renew};
        let budget = self.budget();
        let Asked { who, channel, epoch, token, what, .. } = asked;
        let Some(c) = self.channels.get(*channel) else { return Some("bad_channel") };
        let (terms, mark, now) = (&TERMS[*channel], &c.mark, self.now);
        let (stamp, at) = ((*epoch, *token), (mark.epoch, mark.token));
        let stamped = matches!(what, Raise | Driving { .. } | Release | Renew);
        let of_operator = matches!(what, Epoch { .. } | Rearm);
        let (above, equal) = (stamped && stamp > at, stamped && stamp == at);
        let in_force = equal && mark.holder == Some(*who) && !mark.released;
        let leap = if mark.holder.is_some() { token.saturating_sub(mark.token) > 1 << 48 } else { *token >= 1 << 63 };
        let used = match what {
            _ if of_operator => c.used[1],
            _ if above => None,
            _ => c.used[0],
        };
        let (boot, tick) = asked.challenge;
        let old = boot != self.boot || tick <= self.void || now.saturating_sub(tick) >= LONGEST;
        let end = self.end(asked);
        let rearms = *what == Rearm && self.rearm_stores(*channel);
        let stores = above || rearms || matches!(what, Release | Acquire { .. } | Epoch { .. });
        let held_up = if rearms {
            self.is_held_up(CHANNELS)
        } else {
            self.is_held_up(*channel) || self.has_a_way_to_go(*channel)
        };
        let no_room = now < self.wanted_until && end.is_some_and(|end| end <= now + WORST_STORE + AGAIN);
        [
            ("role", if of_operator { *who != OPERATOR } else { *who >= OPERATOR }),
            ("authority", if terms.own { above } else { matches!(what, Acquire { .. } | Renew) }),
            (
                "range",
                match what {
                    Driving { values, .. } => {
                        let fits = |(value, output): (&i32, &Output)| (0..=output.max).contains(value);
                        values.len() != terms.outputs.len() || !values.iter().zip(terms.outputs).all(fits)
                    }
                    Acquire { ttl } => *ttl == 0 || *ttl > LONGEST,
                    Epoch { floor } => *floor >= (1 << 63) - 1,
                    _ => false,
                },
            ),
            ("storage", c.lost && !(matches!(what, Epoch { .. }) && *epoch > 0)),
            (
                "stale",
                match what {
                    Epoch { .. } => *epoch <= mark.epoch,
                    _ => stamped && (stamp < at || (equal && mark.holder.is_none())),
                },
            ),
            ("wrong_holder", equal && mark.holder.is_some_and(|holder| holder != *who)),
            ("released", equal && mark.released),
            (
                "jump",
                match what {
                    Epoch { .. } => !c.lost && epoch.saturating_sub(mark.epoch) > 65_536,
                    _ => above && (*epoch > mark.epoch || leap),
                },
            ),
            ("replay", old || used.is_some_and(|(_, used)| tick <= used) || tick <= self.refused_up_to(asked)),
            (
                "expired",
                end.is_some_and(|end| end <= now)
                    || (terms.own && matches!(what, Raise | Driving { .. } | Renew) && c.ends <= now),
            ),
            (
                "fault",
                match what {
                    Driving { .. } => c.fault.is_some(),
                    Rearm => self.inhibited || self.is_astray(*channel),
                    _ => false,
                },
            ),
            ("held", matches!(what, Acquire { .. }) && c.free > now),
            (
                "rate",
                ((above || matches!(what, Acquire { .. })) && budget == 0) || (!above && !self.has_least_times(asked)),
            ),
            (
                "busy",
                if stores {
                    held_up
                } else {
                    end.is_some()
                        && (matches!(c.drive, Drive::LettingGo { .. })
                            || (in_force && (no_room || now < c.wanted_until)))
                },
            ),
        ]
        .into_iter()
        .find_map(|(reason, applies)| applies.then_some(reason))
    }

    /// Whether a store now could delay a channel other than `own`, or one on its way to its safe values.
    fn is_held_up(&self, own: usize) -> bool {
        self.channels.iter().enumerate().any(|(n, c)| match c.drive {
            Drive::Safe => false,
            Drive::Driven { end, .. } => n != own && end - self.now <= WORST_STORE,
            Drive::LettingGo { .. } => true,
        })
    }

    /// Whether this channel, let go of now, would not be safe at once.
    fn has_a_way_to_go(&self, n: usize) -> bool {
        matches!(self.channels[n].drive, Drive::Driven { .. }) && TERMS[n].action > 0
    }

    pub(crate) fn ask(&mut self, asked: &Asked) -> Said {
        let number = asked.number;
        if let Some(c) = self.channels.get(asked.channel) {
            if c.used.iter().flatten().any(|(used, _)| *used == number) {
                return Said::Done;
            }
            if let Some((.., reason)) = self.refused.iter().find(|refused| refused.3 == number) {
                return self.refuse(asked, reason);
            }
        }
        let reason = self.reason(asked);
        let Some(n) = Some(asked.channel).filter(|n| *n < CHANNELS) else { return Said::Refused("bad_channel") };
        let mark = &self.channels[n].mark;
        let above = (asked.epoch, asked.token) > (mark.epoch, mark.token);
        let safe_first = match asked.what {
            What::Release => !above,
            What::Epoch { .. } => true,
            _ => false,
        };
        let stores = safe_first
            || matches!(asked.what, What::Acquire { .. })
            || (above && matches!(asked.what, What::Raise | What::Drive { .. } | What::Release));
        let rearms = asked.what == What::Rearm && self.rearm_stores(n);
        if rearms && matches!(reason, None | Some("busy")) {
            self.want(CHANNELS);
        }
        if rearms && reason.is_none() {
            self.channels[n].rearming = true;
            return Said::Stored;
        }
        if stores && matches!(reason, None | Some("busy")) {
            let now = self.now;
            if safe_first {
                // Safe never waits for anything.
                self.let_go(n, now);
                if !matches!(self.channels[n].drive, Drive::LettingGo { .. }) {
                    self.want(n);
                }
            } else {
                self.want(n);
                if !self.is_held_up(n) {
                    self.let_go(n, now);
                }
            }
        }
        if stores && reason == Some("busy") {
            self.channels[n].wanted_until = self.now + WANTED;
        }
        if let Some(reason) = reason {
            return self.refuse(asked, reason);
        }
        if stores {
            if !safe_first {
                self.raises -= 1;
            }
            return Said::Stored;
        }
        let tick = asked.challenge.1;
        let end = self.end(asked);
        let now = self.now;
        let c = &mut self.channels[n];
        match &asked.what {
            What::Drive { values, .. } => c.drive = Drive::Driven { end: end.unwrap(), values: values.clone() },
            What::Renew => {
                c.ends = now + outlast(c.mark.ttl);
                c.free = c.ends + TERMS[n].lock_delay;
            }
            What::Rearm if c.fault.take().is_some() => self.void = self.last,
            _ => {}
        }
        c.used[usize::from(asked.who == OPERATOR)] = Some((asked.number, tick));
        Said::Done
    }

    /// Who has to wait for others' windows is waited for.
    fn want(&mut self, n: usize) {
        self.wanted_until = if self.is_held_up(n) { self.now + WANTED } else { 0 };
    }

    fn refused_up_to(&self, asked: &Asked) -> u64 {
        let of = |refused: &&(u8, usize, u64, usize, &str)| (refused.0, refused.1) == (asked.who, asked.channel);
        self.refused.iter().find(of).map_or(0, |refused| refused.2)
    }

    fn refuse(&mut self, asked: &Asked, reason: &'static str) -> Said {
        let (boot, tick) = asked.challenge;
        let good =
            boot == self.boot && self.void < tick && tick <= self.last && self.now.saturating_sub(tick) < LONGEST;
        if good && asked.channel < CHANNELS && MAY_PASS.contains(&reason) {
            let tick = tick.max(self.refused_up_to(asked));
            self.refused.retain(|refused| (refused.0, refused.1) != (asked.who, asked.channel));
            self.refused.push((asked.who, asked.channel, tick, asked.number, reason));
            if self.refused.len() > 4 {
                // What gives way is used up for everybody.
                self.void = self.void.max(self.refused.remove(0).2);
            }
        }
        Said::Refused(reason)
    }

    /// What is latched once a channel is rearmed.
    pub(crate) fn rearmed(&self, n: usize) -> Latched {
        std::array::from_fn(|other| if other == n { None } else { self.held(other) })
    }

    /// What holds a channel, if it is to outlive a boot.
    fn held(&self, n: usize) -> Option<Fault> {
        self.channels[n].fault.filter(|fault| *fault != Fault::Expired)
    }

    /// Whether a rearm of this channel changes what is stored, or may.
    fn rearm_stores(&self, n: usize) -> bool {
        self.unsure || self.latched[n].is_some()
    }

    /// What is to be latched now, if anything is; where it has to wait, it has the right of way.
    pub(crate) fn latch(&mut self) -> Option<Latched> {
        let held = std::array::from_fn(|n| self.held(n));
        if (held == self.latched && !self.unsure) || self.now < self.latch_again {
            return None;
        }
        self.want(CHANNELS);
        (!self.is_held_up(CHANNELS)).then_some(held)
    }

    /// That is stored, or it is not.
    pub(crate) fn latched(&mut self, held: Option<Latched>) {
        self.unsure = held.is_none();
        if let Some(held) = held {
            (self.latched, self.latch_again) = (held, 0);
        } else {
            (self.void, self.latch_again) = (self.last, self.now + LATCH_AGAIN);
        }
    }

    /// The rearm's store is over, at the present.
    pub(crate) fn stored_rearm(&mut self, asked: &Asked, stored: Option<Latched>) -> Said {
        let n = asked.channel;
        self.latched(stored);
        let rearming = core::mem::take(&mut self.channels[n].rearming);
        if stored.is_none() {
            return self.refuse(asked, "storage");
        }
        if !rearming {
            return self.refuse(asked, "fault");
        }
        if self.channels[n].fault.take().is_some() {
            self.void = self.last;
        }
        self.channels[n].used[1] = Some((asked.number, asked.challenge.1));
        Said::Done
    }

    /// What is stored for a request.
    pub(crate) fn entry(&self, asked: &Asked) -> Mark {
        let Channel { mark, lost, free, .. } = &self.channels[asked.channel];
        let stamp = Mark { epoch: asked.epoch, token: asked.token, holder: Some(asked.who), released: false, ttl: 0 };
        match asked.what {
            What::Release => Mark { released: true, ..stamp },
            What::Acquire { ttl } => Mark { epoch: mark.epoch, token: mark.token + 1, ttl, ..stamp },
            What::Epoch { floor } => {
                let ttl = match TERMS[asked.channel].own {
                    false => 0,
                    true if *lost => LONGEST,
                    true if *free <= self.now => 0,
                    true => mark.ttl,
                };
                Mark { token: floor, holder: None, ttl, ..stamp }
            }
            _ => stamp,
        }
    }

    /// The store is over, at the present: `entry` is stored, or it is not.
    pub(crate) fn stored(&mut self, asked: &Asked, entry: Option<Mark>) -> Said {
        let (n, now, end) = (asked.channel, self.now, self.end(asked));
        let Some(entry) = entry else {
            self.void = self.last;
            self.let_go(n, now);
            (self.channels[n].lost, self.channels[n].used) = (true, [None; 2]);
            return Said::Refused("storage");
        };
        let in_time = self.has_least_times(asked);
        let c = &mut self.channels[n];
        let lost = core::mem::take(&mut c.lost);
        if lost {
            self.void = self.last;
        }
        c.mark = entry;
        c.wanted_until = 0;
        match asked.what {
            _ if !TERMS[n].own => {}
            What::Release => (c.ends, c.free) = (now, now),
            What::Epoch { .. } if !lost => {}
            _ => {
                c.ends = now + outlast(entry.ttl);
                c.free = c.ends + TERMS[n].lock_delay;
            }
        }
        if let What::Drive { values, .. } = &asked.what {
            let end = end.unwrap();
            let late = [("expired", end <= now), ("fault", c.fault.is_some()), ("rate", !in_time)];
            let late = late.into_iter().find_map(|(reason, applies)| applies.then_some(reason));
            if let Some(reason) = late {
                // The raise was done, and its challenge is used up.
                c.used[0] = Some((usize::MAX, asked.challenge.1));
                return self.refuse(asked, reason);
            }
            c.drive = Drive::Driven { end, values: values.clone() };
        }
        c.used[usize::from(asked.who == OPERATOR)] = Some((asked.number, asked.challenge.1));
        Said::Done
    }
}
