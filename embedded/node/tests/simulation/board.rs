//! The gate's side: its board, its cable, its stores, and what makes it boot.

use super::{Event, HANG, Lease, LeftOut, Outlasted, Packet, US, World};
use crate::bench::{self, WORST_STORE, raise, verdict};
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

    /// Somebody raises the fence of another channel, which stores.
    pub(super) fn neighbour(&mut self) {
        self.board_time();
        self.neighbour += 1;
        let n = bench::holder("n");
        let asked = self.bench.ask(n, raise(2, self.neighbour));
        assert!(matches!(asked, None | Some(Reason::Busy)), "{asked:?}");
        self.settle();
    }

    pub(super) fn poll(&mut self) {
        let due = self.bench.deadline().unwrap_or(0) + self.config.lateness;
        self.bench.now = self.gate.read(self.now).max(self.bench.now);
        if self.bench.now > due {
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
    }

    /// The real time at which the gate is: a store takes it ahead of everybody else.
    pub(super) fn board_now(&self) -> u64 {
        self.now.max(self.gate.when(self.bench.now))
    }

    pub(super) fn look(&mut self) {
        let driven = self.bench.pins()[0] != 0;
        if self.driven && !driven {
            self.off = self.board_now() + self.gate.span(self.config.reaction);
        }
        self.driven = driven;
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
        if self.driven {
            self.off = self.now + self.gate.span(self.config.reaction);
        }
        self.driven = false;
        self.hung = false;
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
