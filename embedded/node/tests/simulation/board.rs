//! The gate's side: its board, its cable, its stores, and what makes it boot.

use super::clock::Outlasted;
use super::{Event, HANG, Lease, LeftOut, Packet, US, World};
use crate::bench::{self, WORST_STORE, drive, raise, verdict};
use fencegate::Duration;
use fencegate_wire::{Reason, Request};

impl World {
    /// The gate takes the time, and sets its outputs before it turns to anything else.
    pub(super) fn board_time(&mut self) {
        self.bench.now = self.gate.read(self.now).max(self.bench.now);
        self.bench.poll();
        self.look();
        let most = WORST_STORE.as_micros();
        self.bench.storing = Some(if self.random.once_in(3) { most } else { self.random.below(most + 1) });
    }

    pub(super) fn at_gate(&mut self, lease: &mut Lease, mut packet: Packet) {
        self.board_time();
        let a = bench::holder("a");
        let frame = packet.frame.take().unwrap_or_else(|| {
            if let (LeftOut::Challenge, Request::Drive { window, .. }, Some(challenge)) =
                (self.config.left_out, &mut packet.request, packet.challenge)
            {
                let waited = self.bench.now.saturating_sub(challenge.tick);
                *window = Duration::from_micros(window.as_micros() + waited);
            }
            if let (true, Request::Drive { window, .. }) = (self.config.greedy, &mut packet.request) {
                *window = Duration::from_micros(u64::MAX);
            }
            self.bench.seal(a, packet.challenge, packet.request.clone())
        });
        let before = self.driven;
        let answer = self.bench.send(a, frame.clone()).expect("an answer");
        self.settle();
        let issued = self.board_now();
        let current = packet.token == lease.token;
        if !current && self.driven && !before {
            self.violation = Some(format!("a frame of token {} drives in the time of {}", packet.token, lease.token));
        }
        let done = packet.request.changes() && verdict(&answer.reply).is_none();
        if current && done && packet.drive.is_some() && self.driven {
            lease.outcome.drives += 1;
            lease.last_drive = packet.drive;
        }
        let raised = lease.raise.filter(|_| done && current && packet.drive.is_none());
        let (number, challenge) = (packet.number, answer.challenge);
        if self.random.once_in(10) {
            // The line says it once more.
            let delay = self.delay();
            self.after(delay, Event::AtGate(Packet { frame: Some(frame), drive: None, ..packet }));
        }
        if current && !self.random.once_in(40) {
            let sent = self.busy;
            let delay = self.delay();
            self.at(sent + delay, Event::FromGate { number, challenge, issued, raised });
        }
    }

    /// Somebody raises the fence of another channel, which stores, and now and then drives it.
    pub(super) fn neighbour(&mut self) {
        self.board_time();
        let n = bench::holder("n");
        let wanted = match self.random.below(4) {
            0 if self.neighbour > 0 => None, // under the stamp that it has
            any => {
                self.neighbour += 1;
                (any > 1).then(|| raise(2, self.neighbour))
            }
        };
        self.neighbour_due = None; // a higher stamp lets go before it is stored
        let window = 10 + u32::try_from(self.random.below(1_000)).unwrap();
        let wanted = wanted.unwrap_or_else(|| drive(2, self.neighbour, window, &[1, 1]));
        let asked = self.bench.ask(n, wanted);
        assert!(matches!(asked, None | Some(Reason::Busy | Reason::Expired)), "{asked:?}");
        self.settle();
        let driven = self.bench.pins()[2] != 0;
        let left = driven.then(|| self.bench.status(2).window_left.as_micros());
        self.neighbour_due = left.map(|left| self.bench.now + left + self.config.lateness);
    }

    pub(super) fn poll(&mut self) {
        let due = self.bench.deadline().unwrap_or(0) + self.config.lateness;
        self.bench.now = self.gate.read(self.now).max(self.bench.now);
        if self.bench.now > due && !self.config.drops {
            let late = self.bench.now - due;
            self.violation = Some(format!("a store has held the dead man's switch up for {late} µs"));
        }
        self.bench.poll();
        self.settle();
    }

    /// Looks at the outputs after anything that the gate did; the next poll is as late as it may be.
    pub(super) fn settle(&mut self) {
        self.look();
        self.busy = self.board_now() + 50 * US;
        self.watch += 1;
        let lateness = match self.random.below(3) {
            0 => 0,
            1 => self.config.lateness,
            _ => self.random.below(self.config.lateness + 1),
        };
        if let Some(deadline) = self.bench.deadline() {
            self.at(self.gate.when(deadline + lateness), Event::Poll(self.watch));
        }
        let end = self.bench.gate.ends().next().flatten();
        self.drop = end.map(|end| self.gate.when(end.as_micros()));
        if let Some(end) = self.drop {
            self.at(end, Event::Drop(self.watch));
        }
    }

    /// The real time at which the gate is: a store takes it ahead of everybody else.
    pub(super) fn board_now(&self) -> u64 {
        self.now.max(self.gate.when(self.bench.now))
    }

    pub(super) fn look(&mut self) {
        let pins = self.bench.pins();
        if pins[0] == 0 {
            // Its hardware may have been there before.
            let now = self.board_now();
            self.fall(self.drop.map_or(now, |end| end.min(now)));
        }
        self.driven = pins[0] != 0;
        if pins[2] == 0
            && let Some(due) = self.neighbour_due.take()
            && self.bench.now > due
            && !self.config.drops
        {
            self.violation = Some(format!("the neighbour's outputs were {} µs late", self.bench.now - due));
        }
    }

    /// The output that was driven is let go of.
    pub(super) fn fall(&mut self, at: u64) {
        if core::mem::take(&mut self.driven) {
            self.off = at + self.gate.span(self.config.reaction);
        }
    }

    /// The board's task stops for good. It has fed the watchdog a moment ago, with what was left.
    pub(super) fn hang(&mut self) {
        if self.hung {
            return;
        }
        self.hung = true;
        let now = self.gate.read(self.now).max(self.bench.now);
        let reset = self.bench.gate.hang_by().map_or(now + HANG, |by| by.as_micros().clamp(now, now + HANG));
        self.at(self.gate.when(reset), Event::Watchdog);
    }

    /// The watchdog, or a power cut: the outputs fall, and the gate boots.
    pub(super) fn reset(&mut self, lease: &mut Lease) {
        self.fall(self.now);
        self.hung = false;
        self.neighbour_due = None;
        self.bench.power_cut();
        self.gate.origin = self.now;
        lease.reset = true;
        if self.config.own && lease.over.is_some() && !lease.ended {
            let over = self.gate.when(Duration::from_micros(self.config.ttl).outlasted(self.config.drift[2]));
            self.is_over_at(lease, over);
        }
        self.settle();
    }
}
