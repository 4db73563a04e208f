//! The gate as a state machine without I/O: frames, levels and the time go in, answers, outputs and entries to store
//! come out.
//!
//! A request passes stations in the order of [`Reason`]; the first that stops it names the reason. What raises, grants,
//! releases, moves an epoch or provisions leaves as a [`Pending`](crate::Pending) to be stored, and comes back with the
//! evidence that it was.

mod answer;
mod lease;
mod operator;
mod stamped;
mod tick;

use crate::challenger::{Challenger, Used};
use crate::channel::{Channel, Guard, is_unused};
use crate::inputs::Inputs;
use crate::latched::Latched;
use crate::line::Line;
use crate::log::Log;
use crate::memory::{Board, Life, Memory, Remembered};
use crate::pending::{Change, Pending, Step};
use crate::refusals::Refusals;
use crate::store::StoreError;
use crate::{DOMAIN, Stored};
use fencegate::{Budget, Deadline, Duration, FenceRecord, Instant, Monotonic};
use fencegate_wire::{
    BaseKey, Cause, Challenge, Counters, Fault, Header, Key, MAX_CHANNELS, MAX_GATE_OUTPUTS, Provisioning, Reason,
    Reply, Request, Role, Sealed, Tag, Unverified, What,
};

/// For how long a flash that could not store what is latched is left alone.
const LATCH_AGAIN: Duration = Duration::from_secs(1);
/// How often that pause doubles at the most: up to some four minutes.
const LATCH_FAILURES: u8 = 8;

/// For how long a store that was refused as `busy` has the right of way: its host asks again within that.
const WANTED: Duration = Duration::from_secs(1);

/// A gate, or a board that is to become one.
#[derive(Debug)]
pub struct Gate {
    life: Life,
    config: Provisioning,
    board: Board,
    storable: bool,
    /// Whether the last store has failed, so that the next one mends first, which may take as long as a boot.
    mends: bool,
    mended: u8,
    /// Until when each store that was refused as `busy` is waited for: those of each channel's holders, and at the end those
    /// of the operator and the gate itself.
    store_wanted: [Deadline; MAX_CHANNELS + 1],
    channels: heapless::Vec<Channel, MAX_CHANNELS>,
    lines: heapless::Vec<Line, MAX_GATE_OUTPUTS>,
    inputs: Inputs,
    challenger: Challenger,
    refusals: Refusals,
    clock: Monotonic,
    budget: Budget,
    counters: Counters,
    log: Log,
    fault: Option<Fault>,
    /// Which channels wait for a rearm, as stored last; whether the flash may say otherwise; and until when it is left alone
    /// because to store it has failed.
    latched: Latched,
    unsure: bool,
    latch_again: Option<Deadline>,
    /// How often that has failed in a row.
    latch_failures: u8,
    staged: Staged,
}

/// How far a provisioning has come.
#[derive(Clone, Copy, Debug, Default)]
struct Staged {
    /// Which outputs have been described since the boot, a bit each.
    outputs: u16,
    /// Which channels.
    channels: u8,
    /// The last request of it that was done.
    used: Option<Used>,
}

/// A request whose sender is proven, and when it came.
struct Asked {
    now: Instant,
    header: Header,
    tag: Tag,
    challenge: Option<Challenge>,
}

/// Whom an answer goes to, and the key that seals it.
struct Asker {
    header: Header,
    key: Key,
}

/// A refusal, and for how long the lease stays held, where that is why.
#[derive(Clone, Copy)]
struct Denied {
    reason: Reason,
    wait: Duration,
}

impl From<Reason> for Denied {
    fn from(reason: Reason) -> Self {
        Self { reason, wait: Duration::ZERO }
    }
}

enum Decided {
    Reply(Reply),
    Store(Pending),
}

impl Gate {
    /// The gate at boot: every channel safe.
    pub fn new(config: Provisioning, memory: &Memory, board: Board, now: Instant) -> Self {
        let mut gate = Self::blank(board, false, now);
        gate.config = config;
        gate.begin(Life::Gate, memory, now);
        gate
    }

    /// A board that never was a gate, or (`lost`) one whose provisioning is lost.
    pub fn blank(board: Board, lost: bool, now: Instant) -> Self {
        let config = Provisioning::nobodys();
        let mut clock = Monotonic::new();
        let fault = clock.read(now).err().map(|_| Fault::Clock);
        Self {
            life: if lost { Life::Lost } else { Life::Blank },
            lines: heapless::Vec::new(),
            budget: Budget::full(config.gate.raises, now),
            config,
            board,
            storable: true,
            mends: false,
            mended: 0,
            store_wanted: [Deadline::at(Instant::from_micros(0)); MAX_CHANNELS + 1],
            channels: heapless::Vec::new(),
            inputs: Inputs::default(),
            challenger: Challenger::new(0),
            refusals: Refusals::new(),
            clock,
            counters: Counters::default(),
            log: Log::new(),
            fault,
            latched: Latched::default(),
            unsure: false,
            latch_again: None,
            latch_failures: 0,
            staged: Staged::default(),
        }
    }

    /// Makes a board that was [`Self::blank`] what its store says that it is; of a gate, the store has read the
    /// provisioning already.
    pub(crate) fn begin(&mut self, life: Life, memory: &Memory, now: Instant) {
        self.life = life;
        if life != Life::Gate {
            self.config = Provisioning::nobodys();
            return;
        }
        for (n, channel) in self.config.channels.iter().enumerate() {
            let nothing = Remembered::Lost(FenceRecord::floor(channel.epoch, channel.floor));
            let remembered = memory.marks.get(n).copied().unwrap_or(nothing);
            let action = self.config.outputs_of(n).iter().map(|output| output.action.time()).max();
            let action = action.unwrap_or(Duration::ZERO);
            let latched = memory.latched.fault(n);
            let rules = (self.config.terms(n), self.config.limits(n));
            let channel = Channel::new(channel, rules, action, remembered, latched, now);
            let _ = self.channels.push(channel); // as many
        }
        self.lines.extend(self.config.outputs.iter().map(|output| Line::new(output, now)));
        self.budget = Budget::full(self.config.gate.raises, now);
        self.challenger = Challenger::new(memory.boots);
        self.storable = memory.storable;
        self.mended = memory.mended;
        (self.latched, self.unsure) = (memory.latched, memory.unsure);
        self.log.write(now, None, What::Booted { boots: memory.boots });
        if memory.mended > 0 {
            self.log.write(now, None, What::Mended { records: memory.mended });
        }
    }

    /// Where the store puts a provisioning, before [`Self::begin`].
    pub(crate) const fn config_mut(&mut self) -> &mut Provisioning {
        &mut self.config
    }

    /// The boot counter that no challenge may carry before it is stored; `None` for a board that is no gate.
    pub const fn boots(&self) -> Option<u32> {
        match self.life {
            Life::Gate => Some(self.challenger.boot()),
            Life::Blank | Life::Lost => None,
        }
    }

    /// The boot counter could not be stored: the next boot may have the same number, so nothing can be trusted, and nothing
    /// that is sealed in this one may be good in that. Its challenges, and its status, have the number 0, which no boot is
    /// counted as.
    pub fn not_counted(&mut self, now: Instant) {
        self.storable = false;
        self.challenger = Challenger::new(0);
        for channel in &mut self.channels {
            channel.lose(now);
        }
    }

    /// Whether the next store may take as long as a boot: nothing is driven meanwhile.
    pub(crate) const fn mends(&self) -> bool {
        self.mends
    }

    /// What the outputs are to be set to, in their order on the board.
    pub fn outputs(&self) -> impl Iterator<Item = i32> + '_ {
        self.lines.iter().map(|line| line.value)
    }

    /// L: how long after a deadline an output may still be driven.
    pub const fn lateness(&self) -> Duration {
        self.config.gate.lateness
    }

    /// Counts what was no frame.
    pub const fn noise(&mut self) {
        self.counters.noise = self.counters.noise.saturating_add(1);
    }

    /// Takes a stuffed frame off the line. Call [`Self::poll`] before, and again after.
    pub fn receive(&mut self, now: Instant, frame: &mut [u8]) -> Step {
        let Ok(unverified) = Unverified::read(frame) else {
            self.noise();
            return Step::Silent;
        };
        let claim = *unverified.claim();
        let ours = !claim.answer && claim.gate == self.config.gate.gate && claim.key_id == self.config.gate.keys.id;
        let base = ours.then(|| self.base(claim.role)).flatten();
        let verified = base.and_then(|base| Some((unverified.verify(&base.request(DOMAIN))?, base)));
        let Some((verified, base)) = verified else {
            self.counters.forged = self.counters.forged.saturating_add(1);
            return Step::Silent;
        };
        let (header, tag) = (*verified.header(), verified.tag());
        let reader = Asker { header, key: base.answer(DOMAIN) };
        // What this version cannot read carries some value out of the range that it knows.
        let Some(Sealed { challenge, request }) = verified.body() else {
            return self.refuse(now, &reader, None, Reason::Range.into());
        };
        let channel = request.channel();
        let asked = Asked { now, header, tag, challenge };
        let decided = match self.answered(&asked, &request) {
            // The identical request is answered again and never done again, nor done at last where it was refused.
            Some(again) => again.map(Decided::Reply),
            None => self.decide(&asked, request),
        };
        match decided {
            Ok(Decided::Reply(reply)) => self.answer(now, &reader, reply),
            Ok(Decided::Store(pending)) => Step::Store(pending),
            Err(denied) => self.refuse_for_good(now, &reader, (tag, challenge), channel, denied),
        }
    }

    /// Takes a change back with the evidence that it is stored, or why it is not.
    pub fn stored(&mut self, now: Instant, pending: Pending, stored: Result<Stored, StoreError>) -> Step {
        let Pending { change, header, tag, challenge } = pending;
        self.takes(&stored);
        let Some(base) = self.base(header.role) else { return Step::Silent };
        let reader = Asker { header, key: base.answer(DOMAIN) };
        match change {
            Change::Mark(number, mark) => {
                let settled = match stored {
                    Ok(stored) => self.commit(now, number, mark, &stored),
                    Err(_) => Err(Reason::Storage),
                };
                if matches!(settled, Err(Reason::Storage)) {
                    self.challenger.void();
                    if let Some(channel) = self.channels.get_mut(usize::from(number)) {
                        channel.lose(now);
                    }
                    self.log.write(now, Some(number), What::Fault { fault: Fault::Storage });
                }
                match settled {
                    Ok(()) => {
                        let reply = self.done(now, &header, number, Used { tag: Some(tag), challenge });
                        self.answer(now, &reader, reply)
                    }
                    Err(reason) => {
                        // The raise stands although its drive does not: its challenge has done one thing, and does no
                        // other.
                        if let Some(channel) = self.channels.get_mut(usize::from(number)).filter(|c| !c.is_lost()) {
                            channel.used = Some(Used { tag: None, challenge });
                        }
                        self.refuse_for_good(now, &reader, (tag, Some(challenge)), Some(number), reason.into())
                    }
                }
            }
            Change::Rearm(number, _) => self.rearmed(now, &reader, number, (tag, challenge), stored),
            change => self.staged(now, &reader, Used { tag: Some(tag), challenge }, &change, stored.err()),
        }
    }

    /// What becomes of a request that came before.
    fn answered(&self, asked: &Asked, request: &Request) -> Option<Result<Reply, Denied>> {
        if self.staged.used.is_some_and(|used| used.tag == Some(asked.tag)) {
            return Some(Ok(Reply::Provisioned));
        }
        let number = request.channel();
        let channel = number.and_then(|number| self.channels.get(usize::from(number)));
        if let Some(number) = number
            && channel.is_some_and(|channel| channel.has_done(asked.tag))
        {
            return Some(Ok(self.again(asked.now, number)));
        }
        Some(Err(match (self.refusals.reason(asked.tag)?, channel) {
            // Of how long that is, the first answer says nothing any more.
            (Reason::Held, Some(channel)) => Denied { reason: Reason::Held, wait: channel.wait(asked.now) },
            (reason, _) => reason.into(),
        }))
    }

    fn decide(&mut self, asked: &Asked, request: Request) -> Result<Decided, Denied> {
        if self.life != Life::Gate && request.channel().is_some() {
            return Err(Reason::NotProvisioned.into());
        }
        if let Some(number) = request.channel() {
            let channel = self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)?;
            #[cfg(feature = "demonstration")]
            if let Some(config) = self.config.channels.get(usize::from(number)) {
                channel.forget(config, self.config.limits(usize::from(number)));
            }
            let _ = channel;
        }
        let reply = match request {
            Request::Challenge => Reply::Challenge,
            Request::Status => Reply::Status(self.status()),
            Request::Counters => Reply::Counters(self.counters),
            Request::Log { from } => Reply::Log(self.log.since(from)),
            Request::Channel { channel } => Reply::Channel(self.channel_status(asked.now, channel)?),
            Request::Raise { channel, epoch, token } => return self.raise(asked, channel, epoch, token, None),
            Request::Drive { channel, epoch, token, window, values } => {
                return self.raise(asked, channel, epoch, token, Some((window, values)));
            }
            Request::Release { channel, epoch, token } => return self.release(asked, channel, epoch, token),
            Request::Acquire { channel, ttl } => return self.acquire(asked, channel, ttl),
            Request::Renew { channel, epoch, token } => return self.renew(asked, channel, epoch, token),
            Request::Epoch { channel, epoch, floor } => return self.epoch(asked, channel, epoch, floor),
            Request::Rearm { channel } => return self.rearm(asked, channel),
            provisioning => return self.provision(asked, provisioning),
        };
        Ok(Decided::Reply(reply))
    }

    /// The request's challenge, if it is of this boot, younger than the longest window, not used up, and newer than the
    /// last one that counts.
    fn fresh(&self, asked: &Asked, channel: Option<u8>, used: Option<Used>) -> Result<Challenge, Reason> {
        let refused = self.refusals.used(asked.header.role, channel);
        asked
            .challenge
            .filter(|c| self.is_good(*c, asked.now) && refused.is_none_or(|refused| *c > refused))
            .filter(|c| is_unused(used, *c))
            .ok_or(Reason::Replay)
    }

    /// Whether a challenge is of this boot, younger than the longest window, and not used up for everybody.
    fn is_good(&self, challenge: Challenge, now: Instant) -> bool {
        self.challenger.is_fresh(challenge, now, self.config.gate.longest_window)
    }

    /// No store may begin that could outlast the window of a driven channel, other than its `own`, which lets go first, and
    /// those whose end needs no processor; nor hold up one on its way to its safe state. One that mends first may outlast
    /// any window, and the watchdog with it. Who is let through waits no more, and whoever else does goes on waiting.
    fn not_busy(&mut self, now: Instant, own: Option<u8>) -> Result<(), Reason> {
        let busy = (self.channels.iter().enumerate()).any(|(n, channel)| {
            let short = self.mends || channel.left(now) <= self.board.worst_store && !self.drops(n);
            channel.is_letting_go() || (channel.is_driven() && short && Some(n) != own.map(usize::from))
        });
        if let Some(wanted) = self.store_wanted.get_mut(own.map_or(MAX_CHANNELS, usize::from)) {
            *wanted = Deadline::after(now, WANTED).filter(|_| busy).unwrap_or(Deadline::at(now));
        }
        if busy { Err(Reason::Busy) } else { Ok(()) }
    }

    /// Lets a channel go, and sees that it is not still on its way before something is stored.
    fn let_go(&mut self, now: Instant, number: u8, cause: Cause) -> Result<(), Reason> {
        let channel = self.channels.get_mut(usize::from(number)).ok_or(Reason::BadChannel)?;
        channel.let_go(now, cause);
        if channel.is_letting_go() { Err(Reason::Busy) } else { Ok(()) }
    }

    /// What was refused as busy waits for its turn on this channel: until its host has asked again, whoever drove it lets
    /// it. Otherwise a holder that drives on and on would keep its successor, and the operator, out for ever.
    fn taken_over(&mut self, now: Instant, number: u8, free: Result<(), Reason>) -> Result<(), Reason> {
        if free == Err(Reason::Busy)
            && let Some(channel) = self.channels.get_mut(usize::from(number))
        {
            channel.wanted = Deadline::after(now, WANTED);
        }
        free
    }

    /// The key that `role` speaks with; on a board that is no gate the factory's, for the operator alone.
    fn base(&self, role: Role) -> Option<BaseKey> {
        match self.life {
            Life::Gate => Some(self.config.gate.keys.base(role)),
            Life::Blank | Life::Lost => (role == Role::Operator).then_some(BaseKey::FACTORY),
        }
    }
}

fn pending(asked: &Asked, challenge: Challenge, change: Change) -> Decided {
    Decided::Store(Pending { change, header: asked.header, tag: asked.tag, challenge })
}
