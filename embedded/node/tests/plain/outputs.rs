//! What the model's outputs do as time passes and inputs change.

use super::{Drive, EVERY, Fault, LONGEST, Plain, TERMS, WORST_STORE};

impl Plain {
    pub(super) fn let_go(&mut self, n: usize, at: u64) {
        let c = &mut self.channels[n];
        if let Drive::Driven { values, .. } = &mut c.drive {
            let from = core::mem::take(values);
            c.drive = if TERMS[n].action > 0 { Drive::LettingGo { from, since: at } } else { Drive::Safe };
        }
    }

    /// A fault begins, unless it is the one that is there.
    fn hold(&mut self, n: usize, fault: Fault) {
        let c = &mut self.channels[n];
        if c.fault != Some(fault) {
            (c.fault, c.fault_since) = (Some(fault), self.last);
        }
    }

    /// Time has come to `self.now`, and the inputs are these.
    pub(crate) fn poll(&mut self, inhibit: bool, closed: u16) {
        let now = self.now;
        if inhibit && !self.inhibited {
            self.void = self.last;
        }
        self.inhibited = inhibit;
        for (n, terms) in TERMS.iter().enumerate() {
            if inhibit {
                self.let_go(n, now);
                if self.channels[n].fault != Some(Fault::Feedback) {
                    self.hold(n, Fault::Inhibited);
                }
                self.channels[n].rearming = false;
            }
            match self.channels[n].drive {
                Drive::Driven { end, .. } if end <= now => {
                    self.let_go(n, end);
                    if terms.rearm_after_window && self.channels[n].fault.is_none() {
                        self.hold(n, Fault::Expired);
                    }
                }
                _ => {}
            }
            self.set(n);
            let astray = self.follow(n, closed);
            let c = &mut self.channels[n];
            c.rearming &= !astray;
            if std::mem::replace(&mut c.astray, astray) && !astray {
                c.fault_since = self.last;
            }
            if astray && c.fault != Some(Fault::Feedback) {
                self.let_go(n, now);
                self.hold(n, Fault::Feedback);
                self.set(n);
                // What is let go of has its time again.
                self.channels[n].astray = self.follow(n, closed);
            }
        }
    }

    /// Looks at the contacts behind a channel's outputs; whether one has gone astray for too long.
    fn follow(&mut self, n: usize, closed: u16) -> bool {
        let first: usize = TERMS[..n].iter().map(|terms| terms.outputs.len()).sum();
        for (i, (line, config)) in self.channels[n].lines.iter_mut().zip(TERMS[n].outputs).enumerate() {
            let follows = (closed >> (first + i) & 1 != 0) == (line.value != 0);
            line.astray = line.astray.or(Some(self.now)).filter(|_| config.feedback.is_some() && !follows);
        }
        self.is_astray(n)
    }

    /// Sets a channel's outputs.
    fn set(&mut self, n: usize) {
        let now = self.now;
        let c = &mut self.channels[n];
        if let Drive::LettingGo { since, .. } = c.drive
            && now >= since + TERMS[n].action
        {
            c.drive = Drive::Safe;
        }
        for (i, (line, config)) in c.lines.iter_mut().zip(TERMS[n].outputs).enumerate() {
            let value = match &c.drive {
                Drive::Driven { values, .. } => values[i],
                Drive::LettingGo { from, since } if now < since + config.keep => from[i],
                _ => 0,
            };
            if (value != 0) != (line.value != 0) {
                (line.since, line.astray) = (now, None);
            }
            line.value = value;
        }
    }

    pub(crate) fn outputs(&self) -> Vec<i32> {
        self.channels.iter().flat_map(|c| c.lines.iter().map(|line| line.value)).collect()
    }

    /// When a channel lets go, or has its safe values.
    pub(crate) fn deadline(&self, n: usize) -> Option<u64> {
        match self.channels[n].drive {
            Drive::Safe => None,
            Drive::Driven { end, .. } => Some(end),
            Drive::LettingGo { since, .. } => Some(since + TERMS[n].action),
        }
    }

    /// What is left of a channel's window.
    pub(crate) fn left(&self, n: usize) -> u64 {
        match self.channels[n].drive {
            Drive::Driven { end, .. } => end.saturating_sub(self.now),
            _ => 0,
        }
    }

    /// Instants at which something is over.
    pub(crate) fn ends(&self) -> Vec<u64> {
        let mut ends = vec![self.earning_since + EVERY, self.last + LONGEST, self.latch_again];
        ends.extend(self.wanted_until);
        for (n, c) in self.channels.iter().enumerate() {
            ends.extend([c.ends, c.free]);
            ends.extend(self.deadline(n));
            ends.extend(self.deadline(n).map(|end| end.saturating_sub(WORST_STORE)));
            for (line, output) in c.lines.iter().zip(TERMS[n].outputs) {
                ends.extend([line.since + output.least_on, line.since + output.least_off]);
                ends.extend(line.astray.map(|since| since + output.feedback.unwrap_or(0)));
            }
        }
        ends
    }
}
