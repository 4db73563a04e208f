//! The resource of a story: core's fence, what it stores, and the ledger of what took effect.

use super::event::{Kind, comparison};
use super::scenario::Scenario;
use super::world::{Due, Message, RESOURCE, Side, World};
use fencegate::{Admitted, Epoch, Fence, FenceRecord, Limits, Proof, Raise, Refused, Stamp};
use std::collections::VecDeque;
use std::rc::Rc;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Landed,
    /// It took effect although a fence would have refused it.
    Corrupted,
    Bounced,
}

impl Verdict {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::Corrupted => "corrupted",
            Self::Bounced => "bounced",
        }
    }
}

/// A line of the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) who: String,
    pub(crate) stamp: Stamp,
    pub(crate) text: String,
    pub(crate) verdict: Verdict,
    pub(crate) words: String,
}

/// The fence, the medium under it, and what was written.
///
/// The fence stands there with fencing off too, and is then not heeded: so the story knows which writes were wrong.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) fence: Fence,
    medium: FenceRecord,
    limits: Limits,
    pub(crate) powered: bool,
    /// The message whose raise is being stored, and those behind it.
    waiting: VecDeque<(Side, u64, Message)>,
    storing: bool,
    pub(crate) ledger: Vec<Entry>,
}

impl Resource {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let limits = Limits { policy: scenario.policy, ..Limits::default() };
        let medium = FenceRecord::floor(Epoch(0), scenario.floor);
        Self {
            fence: Fence::new(medium, limits),
            medium,
            limits,
            powered: true,
            waiting: VecDeque::new(),
            storing: false,
            ledger: Vec::new(),
        }
    }
}

impl World {
    pub(crate) fn resource_hears(&mut self, from: Side, try_: u64, message: Message) {
        if !self.resource.powered {
            return;
        }
        self.resource.waiting.push_back((from, try_, message));
        self.serve();
    }

    /// One after the other: a second decision on the same mark, stored in the other order, would leave the lower one.
    fn serve(&mut self) {
        while !self.resource.storing {
            let Some((from, try_, message)) = self.resource.waiting.front().cloned() else { return };
            let (stamp, text) = match message {
                Message::Raise(stamp) => (stamp, None),
                Message::Write { stamp, text } => (stamp, Some(text)),
                _ => {
                    self.resource.waiting.pop_front();
                    continue;
                }
            };
            match self.resource.fence.admit(stamp) {
                Admitted::Raise(_) if self.scenario.store > 0 => {
                    self.resource.storing = true;
                    self.schedule(self.now + self.scenario.store, Due::Stored);
                    return;
                }
                Admitted::Raise(raise) => {
                    self.commit(raise);
                    self.done(from, try_, stamp, text, None);
                }
                Admitted::Current(_) => self.done(from, try_, stamp, text, None),
                Admitted::Refused(refused) => self.done(from, try_, stamp, text, Some(refused)),
            }
            self.resource.waiting.pop_front();
        }
    }

    /// What a store does, and then the commit.
    fn commit(&mut self, raise: Raise) {
        let record = raise.record();
        self.resource.medium = record;
        if self.resource.fence.commit(raise, Proof::read_back(record)).is_ok() {
            let words = format!("the fence stands at {}", record.token);
            self.tell_all(RESOURCE, Kind::Raised, words, None, None, Some(record));
        }
    }

    /// The raise of the message in front is stored.
    pub(crate) fn stored(&mut self) {
        if !std::mem::take(&mut self.resource.storing) {
            return; // a power cut came first
        }
        let Some((from, try_, message)) = self.resource.waiting.pop_front() else { return };
        let (stamp, text) = match message {
            Message::Raise(stamp) => (stamp, None),
            Message::Write { stamp, text } => (stamp, Some(text)),
            _ => return,
        };
        // Nothing moves the fence while a raise is stored, except the operator, whose epoch beats it.
        match self.resource.fence.admit(stamp) {
            Admitted::Raise(raise) => {
                self.commit(raise);
                self.done(from, try_, stamp, text, None);
            }
            Admitted::Current(_) => self.done(from, try_, stamp, text, None),
            Admitted::Refused(refused) => self.done(from, try_, stamp, text, Some(refused)),
        }
        self.serve();
    }

    /// Enters a write into the ledger, and answers.
    fn done(&mut self, from: Side, try_: u64, stamp: Stamp, text: Option<String>, refused: Option<Refused>) {
        let who = self.name(from).to_owned();
        let verdict = match refused {
            None => Verdict::Landed,
            Some(_) if self.scenario.fencing => Verdict::Bounced,
            Some(_) => Verdict::Corrupted,
        };
        let why = refused.map(|refused| comparison(stamp, refused));
        let by = refused.map(|refused| refused.by);
        let (kind, words) = match (verdict, &why, &text) {
            (Verdict::Bounced, Some(why), Some(_)) => (Some(Kind::Bounced), format!("refuses the write: {why}")),
            (Verdict::Bounced, Some(why), None) => (Some(Kind::Bounced), format!("refuses the raise: {why}")),
            (Verdict::Corrupted, Some(why), Some(_)) => {
                (Some(Kind::Corrupted), format!("takes the write, since nobody looks: {why}"))
            }
            (_, _, Some(_)) => (Some(Kind::Landed), "takes the write".to_owned()),
            _ => (None, String::new()),
        };
        if let Some(kind) = kind {
            self.tell_all(RESOURCE, kind, words, Some(stamp), text.clone(), by);
        }
        if let Some(text) = text {
            let words = why.unwrap_or_default();
            self.resource.ledger.push(Entry { at: self.now, who, stamp, text, verdict, words });
        }
        let answer = if verdict == Verdict::Bounced { Message::Fenced { try_, stamp } } else { Message::Done { try_ } };
        self.send(Side::Resource, from, 0, 0, answer);
    }

    /// A write from outside of the story arrives.
    pub(crate) fn script(&mut self, at: usize) {
        let scenario = Rc::clone(&self.scenario);
        let write = &scenario.writes[at];
        self.tell_all(&write.who, Kind::Writes, "writes", Some(write.stamp), Some(write.text.clone()), None);
        self.resource_hears(Side::Outside(at), 0, Message::Write { stamp: write.stamp, text: write.text.clone() });
    }

    pub(crate) fn power_cut(&mut self, lasts: u64) {
        self.resource.powered = false;
        self.resource.storing = false;
        self.resource.waiting.clear();
        self.tell(RESOURCE, Kind::PowerCut, "loses power");
        self.schedule(self.now + lasts, Due::Boot);
    }

    pub(crate) fn boot(&mut self) {
        self.resource.powered = true;
        self.resource.fence = Fence::new(self.resource.medium, self.resource.limits);
        let record = self.resource.medium;
        let words = format!("boots; what it has stored says {}", record.token);
        self.tell_all(RESOURCE, Kind::Boots, words, None, None, Some(record));
    }

    pub(crate) fn raise_resource_epoch(&mut self, epoch: Epoch, floor: u64) -> bool {
        let Ok(raise) = self.resource.fence.raise_epoch(epoch, floor) else { return false };
        let record = raise.record();
        self.resource.medium = record;
        self.resource.fence.commit_epoch(raise, Proof::read_back(record)).is_ok()
    }
}
