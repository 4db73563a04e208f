//! The holder's side: core's holder, and its conversation with the gate.

use super::{Drive, Event, Lease, Packet, US, World};
use crate::bench::{holder, raise};
use fencegate::{Deadline, Duration, Epoch, Instant, Output};
use fencegate_wire::{
    Answer, Challenge, Client, Credential, Operation, Output as Said, Reply, Request, Sealed, Timing, Unverified, seal,
};

impl World {
    fn holder_time(&self) -> Instant {
        Instant::from_micros(self.holder.read(self.now))
    }

    pub(super) fn by_holder(&mut self, lease: &mut Lease, event: &Event) {
        if self.random.once_in(60) {
            self.paused = self.now + self.random.below(self.ttl());
        }
        let now = self.holder_time();
        match *event {
            Event::Granted(request, stamp) => {
                lease.holder.granted(now, request, stamp, None);
            }
            Event::Renewed(request) => lease.holder.renewed(now, request, None),
            Event::FromGate { number, challenge, issued, raised } => {
                if let Some(stamp) = raised {
                    lease.holder.raised(now, stamp);
                    lease.raise = None;
                }
                if number == lease.conversation {
                    lease.challenge = Some((challenge, now.as_micros(), self.now - issued));
                    let rest = if self.random.once_in(2) { self.ttl() / 3 } else { 10_000 * US };
                    let rest = self.random.below(rest);
                    self.next_act(lease, rest);
                }
            }
            Event::HolderActs(number) if number == lease.conversation => self.act(lease),
            _ => {}
        }
        self.poll_holder(lease);
    }

    fn poll_holder(&mut self, lease: &mut Lease) {
        loop {
            let delay = self.delay();
            let arrives = !self.random.once_in(40);
            match lease.holder.poll(self.holder_time()) {
                Output::SendAcquire(request) if arrives && lease.over.is_none() => {
                    self.after(delay, Event::AtCoordinator(request, None, self.now));
                }
                Output::SendRenewal(request, stamp) if arrives => {
                    self.after(delay, Event::AtCoordinator(request, Some(stamp), self.now));
                }
                Output::Raise(stamp) => {
                    lease.raise = Some(stamp);
                    self.next_act(lease, 0);
                }
                Output::Wait(at) => {
                    if let Some(at) = at {
                        self.at(self.holder.when(at.as_micros()).max(self.now + US), Event::HolderWakes);
                    }
                    return;
                }
                // Whoever is frozen lets go of nothing: the dead man's switch has to.
                _ => {}
            }
        }
    }

    /// What the wire's client makes of an operation once it has received a challenge.
    fn sealed(&self, operation: Operation, challenge: Challenge, received: Instant) -> Request {
        let (a, gate) = (holder("a"), &self.bench.provisioning.gate);
        let keys = self.bench.keys(a);
        let credential = Credential { gate: gate.gate, role: a, key_id: gate.keys.id, keys: keys.clone() };
        let mut client = Client::new(credential, 0, Timing::default());
        client.begin(operation, Deadline::at(Instant::from_micros(u64::MAX)));
        let said = |client: &mut Client| {
            let Said::Send(mut frame) = client.poll(received) else { panic!("it says nothing") };
            let last = frame.len() - 1;
            let said = Unverified::read(&mut frame[1..last]).unwrap().verify(&keys.request).unwrap();
            (*said.header(), said.body::<Sealed>().unwrap().request)
        };
        let (asked, _) = said(&mut client);
        let answer = Answer { challenge, reply: Reply::Challenge };
        let (mut answer, _) = seal(&asked.reply(), &keys.answer, &answer).unwrap();
        let last = answer.len() - 1;
        client.receive(received, &mut answer[1..last]);
        said(&mut client).1
    }

    fn next_act(&mut self, lease: &mut Lease, rest: u64) {
        lease.conversation += 1;
        self.after(rest, Event::HolderActs(lease.conversation));
    }

    /// Says the next thing to the gate: a challenge first, then the raise, then drives.
    fn act(&mut self, lease: &mut Lease) {
        let now = self.holder_time();
        let Some(stamp) = lease.holder.stamp() else { return };
        let mut drive = None;
        let (challenge, request) = match lease.challenge.take() {
            None => (None, Request::Challenge),
            Some((challenge, ..)) if lease.raise.is_some() => (Some(challenge), raise(0, stamp.token.get())),
            Some((challenge, received, way)) => {
                let Ok(permit) = lease.holder.may_act(now, Duration::ZERO) else {
                    let rest = self.ttl() / 10;
                    return self.next_act(lease, rest);
                };
                let deadline = permit.deadline();
                drive = Some(Drive { deadline: deadline.instant().as_micros(), received, way });
                let (stamp, values) = ((Epoch(0), stamp.token), [1].into_iter().collect());
                let operation = Operation::drive(0, stamp, values, deadline, self.schedule.window());
                (Some(challenge), self.sealed(operation, challenge, Instant::from_micros(received)))
            }
        };
        let patience = self.ttl() / 10;
        self.next_act(lease, patience); // unless an answer comes before
        let (token, number) = (stamp.token.get(), lease.conversation);
        let delay = self.delay();
        if !self.random.once_in(40) {
            self.after(delay, Event::AtGate(Packet { token, number, challenge, request, frame: None, drive }));
        }
    }
}
