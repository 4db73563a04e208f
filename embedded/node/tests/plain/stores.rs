//! What is stored, and what a store changes once it is over.

use super::{Asked, CHANNELS, Channel, Drive, LONGEST, Latched, Mark, OPERATOR, Plain, Said, TERMS, What, outlast};

/// For how long a flash that could not store what is latched is left alone at first; each time for twice as long.
const LATCH_AGAIN: u64 = 1_000_000;

impl Plain {
    /// What is latched once a channel is rearmed.
    pub(crate) fn rearmed(&self, n: usize) -> Latched {
        std::array::from_fn(|other| if other == n { None } else { self.held(other) })
    }

    /// What is to be latched now, if anything is; where it has to wait, it has the right of way.
    pub(crate) fn latch(&mut self) -> Option<Latched> {
        let held = std::array::from_fn(|n| self.held(n));
        let is_safe = self.channels.iter().all(|c| c.drive == Drive::Safe);
        if (held == self.latched && !self.unsure) || self.now < self.latch_again || (self.mends && !is_safe) {
            return None;
        }
        self.want(CHANNELS);
        (!self.is_held_up(CHANNELS)).then_some(held)
    }

    /// That is stored, or it is not.
    pub(crate) fn latched(&mut self, held: Option<Latched>) {
        (self.unsure, self.mends) = (held.is_none(), held.is_none());
        if let Some(held) = held {
            (self.latched, self.latch_again, self.latch_failures) = (held, 0, 0);
        } else {
            (self.void, self.latch_again) = (self.last, self.now + (LATCH_AGAIN << self.latch_failures));
            self.latch_failures = (self.latch_failures + 1).min(8);
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
        self.mends = entry.is_none();
        let Some(entry) = entry else {
            self.void = self.last;
            self.let_go(n, now);
            (self.channels[n].lost, self.channels[n].used) = (true, [None; 2]);
            return Said::Refused("storage");
        };
        let (in_time, no_room) = (self.has_least_times(asked), end.is_some_and(|end| self.has_no_room(n, end)));
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
            let late = [("expired", end <= now), ("fault", c.fault.is_some()), ("rate", !in_time), ("busy", no_room)];
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
