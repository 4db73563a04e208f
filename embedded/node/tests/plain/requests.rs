//! What becomes of a request: it is done, refused, or stored first.

use super::{Asked, CHANNELS, Drive, LONGEST, OPERATOR, Plain, SECOND_OF_A, Said, TERMS, What, outlast};

/// The reasons that may pass.
const MAY_PASS: [&str; 8] = ["authority", "storage", "jump", "expired", "fault", "held", "rate", "busy"];
/// How long a store that was refused as busy has the right of way.
const WANTED: u64 = 1_000_000;

impl Plain {
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
        let (stores, above) = (self.stores(asked), self.is_above(asked));
        let safe_first = match asked.what {
            What::Release => !above,
            What::Epoch { .. } => true,
            _ => false,
        };
        if stores && matches!(reason, None | Some("busy")) {
            let now = self.now;
            if asked.what == What::Rearm {
                self.want(CHANNELS);
            } else if safe_first {
                // Safe never waits for anything.
                self.let_go(n, now);
                if !matches!(self.channels[n].drive, Drive::LettingGo { .. }) {
                    self.want(if asked.what == What::Release { n } else { CHANNELS });
                }
            } else {
                self.want(n);
                if !self.is_held_up(n) {
                    self.let_go(n, now);
                }
            }
            if asked.what != What::Rearm && reason.is_some() {
                self.channels[n].wanted_until = now + WANTED;
            }
        }
        if let Some(reason) = reason {
            return self.refuse(asked, reason);
        }
        if stores {
            if asked.what == What::Rearm {
                self.channels[n].rearming = true;
            } else if !safe_first {
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

    /// Whether its stamp is above the channel's.
    pub(super) fn is_above(&self, asked: &Asked) -> bool {
        let mark = &self.channels[asked.channel].mark;
        (asked.epoch, asked.token) > (mark.epoch, mark.token)
    }

    /// Whether doing it stores something.
    pub(super) fn stores(&self, asked: &Asked) -> bool {
        match asked.what {
            What::Raise | What::Drive { .. } => self.is_above(asked),
            What::Release | What::Acquire { .. } | What::Epoch { .. } => true,
            What::Rearm => self.rearm_stores(asked.channel),
            What::Renew => false,
        }
    }

    /// Who has to wait for others' windows is waited for.
    pub(super) fn want(&mut self, n: usize) {
        self.wanted_until[n] = if self.is_held_up(n) { self.now + WANTED } else { 0 };
    }

    pub(super) fn refused_up_to(&self, asked: &Asked) -> u64 {
        let of = |refused: &&(u8, usize, u64, usize, &str)| (refused.0, refused.1) == (key(asked.who), asked.channel);
        self.refused.iter().find(of).map_or(0, |refused| refused.2)
    }

    pub(super) fn refuse(&mut self, asked: &Asked, reason: &'static str) -> Said {
        let (boot, tick) = asked.challenge;
        let good =
            boot == self.boot && self.void < tick && tick <= self.last && self.now.saturating_sub(tick) < LONGEST;
        if good && asked.channel < CHANNELS && MAY_PASS.contains(&reason) {
            let tick = tick.max(self.refused_up_to(asked));
            self.refused.retain(|refused| (refused.0, refused.1) != (key(asked.who), asked.channel));
            self.refused.push((key(asked.who), asked.channel, tick, asked.number, reason));
            if self.refused.len() > 4 {
                // What gives way is used up for everybody.
                self.void = self.void.max(self.refused.remove(0).2);
            }
        }
        Said::Refused(reason)
    }
}

/// Whose key it speaks under: all instances of a holder have one.
const fn key(who: u8) -> u8 {
    if who == SECOND_OF_A { 0 } else { who }
}
