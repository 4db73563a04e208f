//! A gate on a bench: its clock, its inputs, its flash and its cable are the test's.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod cable;
pub(crate) mod random;

use fencegate::{Drift, Duration, Epoch, FenceRecord, GrantRecord, HolderId, Instant, Limits, RaiseBudget, Token};
use fencegate_node::{Board, DOMAIN, Entry, Gate, Inputs, Latched, Memory, Remembered, Step, StoreError, Stored};
use fencegate_wire::{
    Answer, Authority, Challenge, ChannelConfig, ChannelStatus, Deframer, DirectionKeys, Event, Framed, GateConfig,
    GateId, GateStatus, Header, Key, Keyring, Nonce, OutputConfig, Provisioning, Reason, Reply, Request, Role, Sealed,
    Unverified, seal,
};
use std::cell::RefCell;
use std::collections::HashMap;

/// A millisecond in microseconds.
pub(crate) const MS: u64 = 1_000;
/// The longest that storing an entry takes on this bench.
pub(crate) const WORST_STORE: Duration = Duration::from_millis(20);
/// The board on this bench.
const BOARD: Board = Board { outputs: 8, worst_store: WORST_STORE, drops: false };

/// Three channels: one output, one output under the gate's own authority, two outputs; ε 100 ppm, L 5 ms.
pub(crate) fn provisioning() -> Provisioning {
    let channel = ChannelConfig::new();
    Provisioning {
        gate: GateConfig {
            gate: GateId(*b"press-07"),
            keys: Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 },
            drift: Drift::from_ppm(100),
            lateness: Duration::from_millis(5),
            longest_window: Duration::from_secs(60),
            raises: RaiseBudget { burst: 5, every: Duration::from_secs(10) },
            epoch_jump: Limits::EPOCH_JUMP,
            warning: Duration::ZERO,
        },
        channels: [
            channel.clone(),
            ChannelConfig { authority: Authority::Own, ..channel.clone() },
            ChannelConfig { outputs: 2, ..channel },
        ]
        .into_iter()
        .collect(),
        outputs: core::iter::repeat_n(OutputConfig::switch(), 4).collect(),
    }
}

/// A gate, its flash, and a cable.
pub(crate) struct Bench {
    pub(crate) gate: Gate,
    /// The gate's clock.
    pub(crate) now: u64,
    pub(crate) inputs: Inputs,
    /// What the next boot finds.
    pub(crate) marks: Vec<Remembered>,
    /// And whether only one copy has the last of it.
    pub(crate) latched: (Latched, bool),
    /// How long storing takes, or `None` where it fails.
    pub(crate) storing: Option<u64>,
    /// A power cut in the middle of the next store: whether its entry had got in.
    pub(crate) cut: Option<bool>,
    /// The same in the middle of storing what is latched.
    pub(crate) latch_cut: Option<bool>,
    /// Whether a store that fails has got into one copy: then the next boot finds it.
    pub(crate) half: bool,
    /// A stop is pressed and pulled out again during the next store.
    pub(crate) blip: bool,
    /// How often something was stored.
    pub(crate) stores: u64,
    /// Every frame that was ever put onto the line towards the gate.
    pub(crate) line: Vec<Vec<u8>>,
    pub(crate) provisioning: Provisioning,
    board: Board,
    pub(crate) boots: u32,
    nonce: u64,
    keys: RefCell<HashMap<Role, DirectionKeys>>,
}

pub(crate) fn holder(name: &str) -> Role {
    Role::Holder(HolderId::new(name).unwrap())
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// A gate provisioned otherwise.
    pub(crate) fn with(change: impl FnOnce(&mut Provisioning)) -> Self {
        Self::booted_at(0, change)
    }

    /// A gate whose clock shows `now` microseconds when it boots.
    pub(crate) fn booted_at(now: u64, change: impl FnOnce(&mut Provisioning)) -> Self {
        Self::made(now, BOARD, change)
    }

    /// A gate on a board that says of itself that storing takes at most so long.
    pub(crate) fn with_board(worst_store: Duration, change: impl FnOnce(&mut Provisioning)) -> Self {
        Self::made(0, Board { worst_store, ..BOARD }, change)
    }

    /// A gate on a board whose outputs drop by themselves.
    pub(crate) fn that_drops(worst_store: Duration, change: impl FnOnce(&mut Provisioning)) -> Self {
        Self::made(0, Board { worst_store, drops: true, ..BOARD }, change)
    }

    fn made(now: u64, board: Board, change: impl FnOnce(&mut Provisioning)) -> Self {
        let mut provisioning = provisioning();
        change(&mut provisioning);
        assert_eq!(provisioning.check(), Ok(()));
        let floor = |c: &ChannelConfig| Remembered::Mark(GrantRecord::floor(c.epoch, c.floor));
        let marks: Vec<_> = provisioning.channels.iter().map(floor).collect();
        let latched = (Latched::default(), false);
        let gate = Self::boot(&provisioning, board, 1, (&marks, latched), now);
        Self {
            gate,
            now,
            inputs: Inputs::default(),
            latched,
            marks,
            storing: Some(1),
            cut: None,
            latch_cut: None,
            half: false,
            blip: false,
            stores: 0,
            line: vec![],
            provisioning,
            board,
            boots: 1,
            nonce: 0,
            keys: RefCell::default(),
        }
    }

    fn boot(
        provisioning: &Provisioning,
        board: Board,
        boots: u32,
        (marks, (latched, unsure)): (&[Remembered], (Latched, bool)),
        now: u64,
    ) -> Gate {
        let marks = marks.iter().copied().collect();
        let memory = Memory { boots, latched, unsure, marks, ..Memory::nothing() };
        Gate::new(provisioning.clone(), &memory, board, Instant::from_micros(now))
    }

    /// A power cut: the clock begins again, the flash stays.
    pub(crate) fn power_cut(&mut self) {
        self.boots += 1;
        self.now = 0;
        self.gate = Self::boot(&self.provisioning, self.board, self.boots, (&self.marks, self.latched), 0);
    }

    /// The keys of a role: a host derives them once.
    pub(crate) fn keys(&self, role: Role) -> DirectionKeys {
        let mut known = self.keys.borrow_mut();
        known.entry(role).or_insert_with(|| self.provisioning.gate.keys.base(role).directions(DOMAIN)).clone()
    }

    /// Lets the clock go on to `ms` since the boot.
    pub(crate) fn at(&mut self, ms: u64) {
        self.at_us(ms * MS);
    }

    pub(crate) fn at_us(&mut self, us: u64) {
        self.now = self.now.max(us);
        self.poll();
    }

    /// What a board does between two frames: the inputs, the windows, and what is to be latched, in no time.
    pub(crate) fn poll(&mut self) -> Option<Instant> {
        let wake = self.look();
        let Some(entry) = self.gate.latch(Instant::from_micros(self.now)) else { return wake };
        if self.storing.is_some()
            && let Some(got_in) = self.latch_cut.take()
        {
            if got_in {
                self.keep(&entry);
            }
            self.power_cut();
            return self.look();
        }
        if self.storing.is_some() {
            self.keep(&entry);
        } else if self.half {
            self.keep_half(&entry);
        }
        let stored = self.storing.map(|_| Stored::read_back(entry)).ok_or(StoreError::Flash);
        let _ = self.gate.latched(Instant::from_micros(self.now), stored);
        self.look()
    }

    fn look(&mut self) -> Option<Instant> {
        self.gate.poll(Instant::from_micros(self.now), self.inputs)
    }

    /// Lets the clock go on to `us`, with a poll whenever the gate wants one.
    pub(crate) fn run_to_us(&mut self, us: u64) {
        while let Some(next) = self.poll().map(Instant::as_micros).filter(|next| *next < us) {
            self.now = next.max(self.now + 1);
        }
        self.at_us(us);
    }

    /// When the first channel lets go, or has its safe values; `None` where all have them. It is told from what the board
    /// feeds its watchdog with: that is L later, and where all channels drop by themselves a store more.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let store = if self.board.drops { self.board.worst_store.as_micros() } else { 0 };
        self.gate.hang_by().map(|by| by.as_micros() - self.gate.lateness().as_micros() - store)
    }

    pub(crate) fn header(&mut self, role: Role) -> Header {
        self.nonce += 1;
        let GateConfig { gate, keys, .. } = &self.provisioning.gate;
        Header { answer: false, role, key_id: keys.id, gate: *gate, nonce: Nonce(self.nonce.to_le_bytes()) }
    }

    /// Seals a request with the sender's key.
    pub(crate) fn seal(&mut self, role: Role, challenge: Option<Challenge>, request: Request) -> Vec<u8> {
        let header = self.header(role);
        seal(&header, &self.keys(role).request, &Sealed { challenge, request }).unwrap().0.to_vec()
    }

    /// Puts a frame onto the line; the gate's answer.
    pub(crate) fn send(&mut self, role: Role, mut frame: Vec<u8>) -> Option<Answer> {
        self.line.push(frame.clone());
        let len = frame.len();
        let answer = self.receive(&mut frame[1..len - 1])?;
        self.open(role, answer)
    }

    /// What the gate answers to the stuffed bytes between two zeros.
    fn receive(&mut self, frame: &mut [u8]) -> Option<Vec<u8>> {
        self.poll();
        let mut step = self.gate.receive(Instant::from_micros(self.now), frame);
        if let Step::Store(pending) = step {
            let stored = match (self.storing, self.cut.take()) {
                (Some(_), Some(got_in)) => {
                    if got_in {
                        self.keep(&pending.entry());
                    }
                    self.power_cut();
                    return None;
                }
                (Some(takes), None) => {
                    self.now += takes;
                    self.keep(&pending.entry());
                    Ok(Stored::read_back(pending.entry()))
                }
                (None, _) => {
                    if self.half {
                        self.keep_half(&pending.entry());
                    }
                    Err(StoreError::Flash)
                }
            };
            if core::mem::take(&mut self.blip) {
                let before = self.inputs;
                self.inputs.inhibit = true;
                self.look();
                self.inputs = before;
            }
            self.look();
            step = self.gate.stored(Instant::from_micros(self.now), pending, stored);
        }
        self.poll();
        let (Step::Answer(frame) | Step::Restart(frame)) = step else { return None };
        Some(frame.to_vec())
    }

    /// A store that has failed, and got into one copy: of marks the next boot believes the higher, and it holds what either
    /// copy has latched.
    fn keep_half(&mut self, entry: &Entry) {
        match entry {
            Entry::Latched(latched) => self.latched = (self.latched.0.or(*latched), true),
            entry => self.keep(entry),
        }
    }

    fn keep(&mut self, entry: &Entry) {
        self.stores += 1;
        match entry {
            Entry::Mark { channel, mark } => self.marks[usize::from(*channel)] = Remembered::Mark(*mark),
            Entry::Latched(latched) => self.latched = (*latched, false),
            _ => {}
        }
    }

    /// What an answer says to `role`; `None` where it is for somebody else.
    pub(crate) fn open(&self, role: Role, mut answer: Vec<u8>) -> Option<Answer> {
        let len = answer.len();
        let unverified = Unverified::read(&mut answer[1..len - 1]).unwrap();
        Some(unverified.verify(&self.keys(role).answer)?.body().unwrap())
    }

    /// Bytes on the line, whatever they are, as a board takes them off it; the gate's answers.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut deframer = Deframer::new();
        let mut answers = vec![];
        for byte in bytes {
            match deframer.push(*byte) {
                None => {}
                Some(Framed::Overlong) => self.gate.noise(),
                Some(Framed::Frame(frame)) => answers.extend(self.receive(frame)),
            }
        }
        answers
    }

    pub(crate) fn challenge(&mut self, role: Role) -> Challenge {
        let frame = self.seal(role, None, Request::Challenge);
        self.send(role, frame).unwrap().challenge
    }

    /// Asks with a fresh challenge; `None` where it was done, else why not.
    pub(crate) fn ask(&mut self, role: Role, request: Request) -> Option<Reason> {
        let challenge = self.challenge(role);
        self.ask_with(role, challenge, request)
    }

    pub(crate) fn ask_with(&mut self, role: Role, challenge: Challenge, request: Request) -> Option<Reason> {
        let frame = self.seal(role, Some(challenge), request);
        let answer = self.send(role, frame).unwrap();
        verdict(&answer.reply)
    }

    /// Asks with a fresh challenge; the whole reply.
    pub(crate) fn reply(&mut self, role: Role, request: Request) -> Reply {
        let challenge = self.challenge(role);
        let frame = self.seal(role, Some(challenge), request);
        self.send(role, frame).unwrap().reply
    }

    pub(crate) fn read(&mut self, request: Request) -> Reply {
        let frame = self.seal(Role::Observer, None, request);
        self.send(Role::Observer, frame).unwrap().reply
    }

    pub(crate) fn status(&mut self, channel: u8) -> ChannelStatus {
        match self.read(Request::Channel { channel }) {
            Reply::Channel(status) => status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn gate_status(&mut self) -> GateStatus {
        match self.read(Request::Status) {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn count(&mut self, reason: Reason) -> u32 {
        match self.read(Request::Counters) {
            Reply::Counters(counters) => counters.reasons[reason as usize],
            other => panic!("{other:?}"),
        }
    }

    /// Noise and forgeries so far.
    pub(crate) fn silent(&mut self) -> (u32, u32) {
        match self.read(Request::Counters) {
            Reply::Counters(counters) => (counters.noise, counters.forged),
            other => panic!("{other:?}"),
        }
    }

    /// Every event that is kept.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let mut events: Vec<Event> = vec![];
        loop {
            let from = events.last().map_or(0, |event| event.number + 1);
            match self.read(Request::Log { from }) {
                Reply::Log(more) if more.is_empty() => return events,
                Reply::Log(more) => events.extend(more),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn pins(&self) -> Vec<i32> {
        self.gate.outputs().collect()
    }
}

/// `None` where it was done, else why not.
pub(crate) fn verdict(reply: &Reply) -> Option<Reason> {
    match reply {
        Reply::Done { .. } | Reply::Provisioned => None,
        Reply::Refused(refused) => Some(refused.reason),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn fence(epoch: u32, token: u64, holder: &str) -> FenceRecord {
    FenceRecord { epoch: Epoch(epoch), token, holder: HolderId::new(holder).ok(), released: false }
}

pub(crate) fn raise(channel: u8, token: u64) -> Request {
    Request::Raise { channel, epoch: Epoch(0), token: Token::new(token).unwrap() }
}

pub(crate) fn release(channel: u8, token: u64) -> Request {
    Request::Release { channel, epoch: Epoch(0), token: Token::new(token).unwrap() }
}

pub(crate) fn drive(channel: u8, token: u64, window_ms: u32, values: &[i32]) -> Request {
    let (epoch, token, window) = (Epoch(0), Token::new(token).unwrap(), Duration::from_millis(window_ms));
    Request::Drive { channel, epoch, token, window, values: values.iter().copied().collect() }
}

pub(crate) fn acquire(channel: u8, ttl_ms: u32) -> Request {
    Request::Acquire { channel, ttl: Duration::from_millis(ttl_ms) }
}

pub(crate) fn renew(channel: u8, token: u64) -> Request {
    Request::Renew { channel, epoch: Epoch(0), token: Token::new(token).unwrap() }
}

pub(crate) const fn epoch(channel: u8, epoch: u32, floor: u64) -> Request {
    Request::Epoch { channel, epoch: Epoch(epoch), floor }
}
