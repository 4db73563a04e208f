//! Which of the contract's reasons apply to a request.

use super::{
    Asked, BURST, CHANNELS, Drive, EVERY, LATENESS, LONGEST, OPERATOR, Output, Plain, TERMS, WORST_STORE, What,
};

/// How soon a host that was refused as busy asks again.
const AGAIN: u64 = 100_000;

/// How old a rearm's challenge may be.
const REARM_WITHIN: u64 = 10_000_000;

impl Plain {
    /// When a drive would end, by its window counted from its challenge and by the gate's own lease.
    pub(super) fn end(&self, asked: &Asked) -> Option<u64> {
        let What::Drive { window, .. } = asked.what else { return None };
        let (c, terms) = (&self.channels[asked.channel], &TERMS[asked.channel]);
        let taken = LATENESS + terms.reaction + terms.action;
        let window = window.min(LONGEST);
        let left = window.saturating_sub(window.div_ceil(10_000)).saturating_sub(taken);
        let end = if left > 0 { asked.challenge.1 + left } else { 0 };
        Some(if terms.own { end.min(c.ends.saturating_sub(taken)) } else { end })
    }

    pub(super) fn has_least_times(&self, asked: &Asked) -> bool {
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

    /// Whether another's store waits that a drive until `end` would keep waiting.
    pub(super) fn has_no_room(&self, n: usize, end: u64) -> bool {
        let mut others = self.wanted_until.iter().enumerate().filter(|(other, _)| *other != n);
        others.any(|(_, until)| self.now < *until) && (self.mends || end <= self.now + WORST_STORE + AGAIN)
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
    pub(super) fn reason(&mut self, asked: &Asked) -> Option<&'static str> {
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
        let rearm_too_late = *what == Rearm && (tick <= c.fault_since || now.saturating_sub(tick) >= REARM_WITHIN);
        let end = self.end(asked);
        let held_up = if *what == Rearm {
            self.is_held_up(CHANNELS)
        } else {
            self.is_held_up(*channel) || self.has_a_way_to_go(*channel)
        };
        let no_room = end.is_some_and(|end| self.has_no_room(*channel, end));
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
            (
                "replay",
                old || rearm_too_late
                    || used.is_some_and(|(_, used)| tick <= used)
                    || tick <= self.refused_up_to(asked),
            ),
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
                if self.stores(asked) {
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
}
