//! The gate as the contract and the protocol say it, in plain integers: which reason applies, and what is done. Times in
//! microseconds.
//!
//! From the contract alone: every reason is looked at by itself, and the first of its order that applies is given
//! (`reasons`); what a stamp, a window, a lease, a budget and a fault are; what is stored, and what that changes (`stores`);
//! what the outputs do (`outputs`). There are no keys, frames, tags or flash in it: a sealed request is a number, a store a
//! value that comes back.
//!
//! What follows the gate's own way of going about it, because a host or the next boot can tell: how many refusals it
//! remembers, and what is used up when one gives way; for how long whoever was refused as `busy` has the right of way;
//! that it lets go before it stores; when it latches a fault, and tries that again. Another gate could differ there and
//! keep the contract.

#![allow(dead_code, reason = "every test file uses a part of it")]

mod outputs;
mod reasons;
mod requests;
pub(crate) mod side_by_side;
mod stores;
mod terms;

pub(crate) use terms::{BURST, CHANNELS, EVERY, LATENESS, LONGEST, Output, TERMS, WORST_STORE};

/// Who speaks: a holder by number, or one of these.
pub(crate) const OPERATOR: u8 = 10;
pub(crate) const OBSERVER: u8 = 11;
/// Which holder is another instance of holder 0.
const SECOND_OF_A: u8 = 2;

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
    /// The tick of the last challenge before that began.
    fault_since: u64,
    /// Whether a contact of its outputs does not follow.
    astray: bool,
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
    /// Until when a store that was refused as busy has the right of way: of each channel, and the operator's and the gate's.
    wanted_until: [u64; CHANNELS + 1],
    inhibited: bool,
    /// What is latched in the flash.
    latched: Latched,
    /// Whether the flash may say otherwise, and until when it is left alone.
    unsure: bool,
    latch_again: u64,
    latch_failures: u32,
    /// Whether the last store has failed: the next one mends first, which takes nobody knows how long.
    mends: bool,
    /// The last four refusals for what may pass, one a key and channel: whose, where, up to which tick, number, why.
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
        let (last, void, earning_since, wanted_until) = (0, 0, 0, [0; CHANNELS + 1]);
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
            latch_failures: 0,
            mends: false,
            refused: vec![],
            channels,
        }
    }

    fn is_astray(&self, n: usize) -> bool {
        let late = |line: &Line, within: u64| line.astray.is_some_and(|since| self.now - since >= within);
        let mut lines = self.channels[n].lines.iter().zip(TERMS[n].outputs);
        lines.any(|(line, output)| output.feedback.is_some_and(|within| late(line, within)))
    }

    /// Whether a store now could delay a channel other than `own`, or one on its way to its safe values.
    fn is_held_up(&self, own: usize) -> bool {
        self.channels.iter().enumerate().any(|(n, c)| match c.drive {
            Drive::Safe => false,
            Drive::Driven { end, .. } => n != own && (self.mends || end - self.now <= WORST_STORE),
            Drive::LettingGo { .. } => true,
        })
    }

    /// Whether this channel, let go of now, would not be safe at once.
    fn has_a_way_to_go(&self, n: usize) -> bool {
        matches!(self.channels[n].drive, Drive::Driven { .. }) && TERMS[n].action > 0
    }

    /// What holds a channel, if it is to outlive a boot.
    fn held(&self, n: usize) -> Option<Fault> {
        self.channels[n].fault.filter(|fault| *fault != Fault::Expired)
    }

    /// Whether a rearm of this channel changes what is stored, or may.
    fn rearm_stores(&self, n: usize) -> bool {
        self.unsure || self.latched[n].is_some()
    }
}
