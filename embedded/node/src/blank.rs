//! A board that nobody has provisioned, or whose provisioning was lost.

use crate::challenger::Challenger;
use crate::gate::count;
use crate::memory::Board;
use crate::pending::Step;
use crate::{DOMAIN, FIRMWARE};
use fencegate::{Duration, Instant};
use fencegate_wire::{
    Answer, BaseKey, Counters, Credential, Fault, GateId, GateStatus, Header, Reason, Refused, Reply, Request, Role,
    Sealed, Unverified, seal,
};

/// For how long a challenge of a blank board is good.
const FRESH: Duration = Duration::from_secs(60);

/// A blank board: it knows only the factory key, which everybody knows, and obeys nothing but a first provisioning.
#[derive(Debug)]
pub struct Blank {
    board: Board,
    credential: Credential,
    challenger: Challenger,
    counters: Counters,
    lost: bool,
}

impl Blank {
    /// A blank board; `lost` where its flash is not erased, so that it once was a gate. Then it obeys nothing at all.
    pub fn new(board: Board, lost: bool) -> Self {
        let credential = Credential::new(GateId::FACTORY, Role::Operator, &BaseKey::FACTORY, DOMAIN);
        Self { board, credential, challenger: Challenger::new(0), counters: Counters::default(), lost }
    }

    /// Counts what was no frame.
    pub const fn noise(&mut self) {
        self.counters.noise = self.counters.noise.saturating_add(1);
    }

    /// Takes a stuffed frame off the line.
    pub fn receive(&mut self, now: Instant, frame: &mut [u8]) -> Step {
        let Ok(unverified) = Unverified::read(frame) else {
            self.noise();
            return Step::Silent;
        };
        let claim = *unverified.claim();
        let ours = !claim.answer && claim.gate == GateId::FACTORY && claim.role == Role::Operator;
        let Some(verified) = ours.then(|| unverified.verify(&self.credential.keys.request)).flatten() else {
            self.counters.forged = self.counters.forged.saturating_add(1);
            return Step::Silent;
        };
        let header = *verified.header();
        let Some(Sealed { challenge, request }) = verified.body() else {
            return self.refuse(now, &header, Reason::Range);
        };
        match request {
            Request::Challenge => self.answer(now, &header, Reply::Challenge),
            Request::Counters => self.answer(now, &header, Reply::Counters(self.counters)),
            Request::Status => {
                let fault = self.lost.then_some(Fault::Storage);
                let status = GateStatus { firmware: FIRMWARE, boots: 0, channels: 0, fault };
                self.answer(now, &header, Reply::Status(status))
            }
            Request::Provision(provisioning) => {
                if provisioning.check().is_err() || provisioning.outputs() > self.board.outputs {
                    return self.refuse(now, &header, Reason::Range);
                }
                if self.lost {
                    return self.refuse(now, &header, Reason::Storage);
                }
                if !challenge.is_some_and(|c| self.challenger.is_fresh(c, now, FRESH)) {
                    return self.refuse(now, &header, Reason::Replay);
                }
                match self.answer(now, &header, Reply::Provisioned) {
                    Step::Answer(frame) => Step::Provision(provisioning, frame),
                    other => other,
                }
            }
            _ => self.refuse(now, &header, Reason::NotProvisioned),
        }
    }

    fn refuse(&mut self, now: Instant, header: &Header, reason: Reason) -> Step {
        count(&mut self.counters, reason);
        self.answer(now, header, Reply::Refused(Refused { reason, by: None }))
    }

    fn answer(&mut self, now: Instant, header: &Header, reply: Reply) -> Step {
        let answer = Answer { challenge: self.challenger.issue(now), reply };
        seal(&header.reply(), &self.credential.keys.answer, &answer)
            .map_or(Step::Silent, |(frame, _)| Step::Answer(frame))
    }
}
