//! The world around a gate. One [`Action`] changes it at a time; real time passes in ticks of a second.
//!
//! Whoever drives sets the output to its token, so that the output says by which stamp it is driven.

use fencegate::{
    Deadline, Drift, Duration, Epoch, GrantRecord, HolderId, Instant, Limits, RaiseBudget, Token, WindowInput,
};
use fencegate_node::{Board, DOMAIN, Entry, Gate, Inputs, Memory, Remembered, Step, StoreError, Stored};
use fencegate_wire::{
    ChannelConfig, Client, Credential, GateConfig, GateId, Key, Keyring, Operation, Output, OutputConfig, Provisioning,
    Role, Timing,
};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

const GATE: GateId = GateId(*b"press-07");
const NAMES: [&str; 2] = ["a", "b"];

/// How far a clock goes in a tick: a coordinator's that is a tenth fast, holders' a tenth slow, a gate's a quarter.
const COORDINATOR: u64 = 1_100_000;
const HOLDER: u64 = 900_000;
const GATES: u64 = 750_000;
/// T, on the coordinator's clock: three ticks.
const TTL: u64 = 3 * COORDINATOR;
/// The gate's worst lateness. It is as late as that every time.
const LATENESS: u64 = 10_000;
const WORST_STORE: u64 = 2 * GATES;

/// A mistake that the checker must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    NoDrift,
    GateWithoutDrift,
    NotStored,
    NotCounted,
}

/// What can happen, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) steps: usize,
    pub(crate) in_flight: usize,
    pub(crate) repeats: u8,
    pub(crate) cuts: u8,
    pub(crate) slow: u8,
    /// Holders that look at no clock, and hand a whole window to each command. Then only the fence is left.
    pub(crate) zombies: bool,
    /// Whether it is claimed that nobody drives once another could have the lease.
    pub(crate) claims_alone: bool,
    pub(crate) mistake: Option<Mistake>,
}

impl Config {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            steps: 6,
            in_flight: 2,
            repeats: 0,
            cuts: 0,
            slow: 0,
            zombies: false,
            claims_alone: true,
            mistake: None,
        }
    }
}

/// Something that happens. What is under way is named by its place in the order in which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// A second passes.
    Tick,
    /// The coordinator grants the lease to a holder, or renews it.
    Grant(usize),
    /// A holder commands the gate to drive under its lease.
    Command(usize),
    /// A frame arrives at the gate; once more, later.
    ToGate(usize),
    Repeat(usize),
    /// It arrives, and what it makes the gate store takes two seconds; or is cut off, before or after it has got in.
    Slowly(usize),
    CutOff(usize, bool),
    /// An answer arrives at every host.
    ToHosts(usize),
    /// The gate's power is cut.
    Cut,
}

/// What has been seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) overlap: bool,
    pub(crate) stale: bool,
    pub(crate) again: bool,
    pub(crate) driven: [bool; 2],
}

#[derive(Debug)]
struct Host {
    client: Client,
    clock: u64,
    /// The token of its last lease, and when it asked for it or for its last renewal.
    lease: Option<(u64, u64)>,
}

pub(crate) struct World {
    config: Config,
    provisioning: Provisioning,
    hosts: [Host; 2],
    /// The coordinator's clock, and whose its lease is, under which token and until when.
    coordinator: u64,
    granted: Option<(usize, u64, u64)>,
    minted: u64,
    gate: Gate,
    clock: u64,
    boots: u32,
    mark: GrantRecord,
    /// The highest token that was ever stored, or should have been.
    highest: u64,
    to_gate: Vec<Vec<u8>>,
    to_hosts: Vec<Vec<u8>>,
    /// What the gate has heard so far, and may hear again.
    heard: BTreeSet<Vec<u8>>,
    left: (u8, u8, u8),
    pub(crate) seen: Seen,
}

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

impl World {
    pub(crate) fn new(config: &Config) -> Self {
        let keys = Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 };
        let drift = if config.mistake == Some(Mistake::GateWithoutDrift) { 0 } else { 25 };
        let gate = GateConfig {
            gate: GATE,
            keys: keys.clone(),
            drift: Drift::from_ppm(drift * 10_000),
            lateness: Duration::from_micros(LATENESS),
            longest_window: Duration::from_secs(60),
            raises: RaiseBudget { burst: 100, every: Duration::from_secs(1) },
            epoch_jump: Limits::EPOCH_JUMP,
            warning: Duration::ZERO,
        };
        let provisioning = Provisioning {
            gate,
            channels: [ChannelConfig::new()].into_iter().collect(),
            outputs: [OutputConfig { max: 1_000, ..OutputConfig::switch() }].into_iter().collect(),
        };
        let hosts = NAMES.map(|name| {
            let role = Role::Holder(HolderId::new(name).expect("a name"));
            let credential = Credential::new(GATE, role, 0, &keys.base(role), DOMAIN);
            // It sends nothing twice by itself: the cable does.
            let patience = Timing { resend: Duration::from_secs(1_000), ..Timing::default() };
            Host { client: Client::new(credential, 1, patience), clock: 0, lease: None }
        });
        let mark = GrantRecord::floor(Epoch(0), 0);
        Self {
            gate: boot(&provisioning, 1, mark),
            provisioning,
            hosts,
            coordinator: 0,
            granted: None,
            minted: 0,
            clock: 0,
            boots: 1,
            mark,
            highest: 0,
            to_gate: vec![],
            to_hosts: vec![],
            heard: BTreeSet::new(),
            left: (config.repeats, config.cuts, config.slow),
            seen: Seen::default(),
            config: config.clone(),
        }
    }

    /// What can happen.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::Tick];
        let room = self.to_gate.len() < self.config.in_flight;
        for who in 0..2 {
            if self.granted.is_none_or(|(holder, _, ends)| holder == who || self.coordinator >= ends) {
                actions.push(Action::Grant(who));
            }
            if room && self.hosts[who].lease.is_some() {
                actions.push(Action::Command(who));
            }
        }
        let (repeats, cuts, slow) = self.left;
        for n in 0..self.to_gate.len() {
            actions.push(Action::ToGate(n));
            if slow > 0 {
                actions.push(Action::Slowly(n));
            }
            if cuts > 0 {
                actions.extend([Action::CutOff(n, false), Action::CutOff(n, true)]);
            }
        }
        actions.extend((0..self.to_hosts.len()).map(Action::ToHosts));
        if repeats > 0 {
            actions.extend((0..self.heard.len()).map(Action::Repeat));
        }
        if cuts > 0 {
            actions.push(Action::Cut);
        }
        actions
    }

    pub(crate) fn take(&mut self, action: Action) {
        match action {
            Action::Tick => self.pass(GATES),
            Action::Grant(who) => self.grant(who),
            Action::Command(who) => self.command(who),
            Action::ToGate(n) => {
                let frame = self.to_gate.remove(n);
                self.arrive(frame, |_| Ok(()));
            }
            Action::Repeat(n) => {
                self.left.0 -= 1;
                let frame = self.heard.iter().nth(n).cloned();
                self.arrive(frame.expect("it was heard"), |_| Ok(()));
            }
            Action::Slowly(n) => {
                self.left.2 -= 1;
                let frame = self.to_gate.remove(n);
                self.arrive(frame, |world| {
                    world.pass(WORST_STORE);
                    Ok(())
                });
            }
            Action::CutOff(n, got_in) => {
                self.left.1 -= 1;
                let frame = self.to_gate.remove(n);
                self.arrive(frame, |_| Err(got_in));
            }
            Action::ToHosts(n) => {
                let answer = self.to_hosts.remove(n);
                for who in 0..2 {
                    let now = at(self.hosts[who].clock);
                    let mut frame = answer[1..answer.len() - 1].to_vec();
                    self.hosts[who].client.receive(now, &mut frame);
                    self.go_on(who);
                }
            }
            Action::Cut => {
                self.left.1 -= 1;
                self.cut();
            }
        }
        self.look();
    }

    fn grant(&mut self, who: usize) {
        let token = match self.granted {
            Some((holder, token, ends)) if holder == who && self.coordinator < ends => token,
            _ => {
                self.minted += 1;
                self.minted
            }
        };
        self.granted = Some((who, token, self.coordinator + TTL));
        self.hosts[who].lease = Some((token, self.hosts[who].clock));
    }

    fn command(&mut self, who: usize) {
        let host = &mut self.hosts[who];
        let Some((token, since)) = host.lease else { return };
        let drift = if self.config.mistake == Some(Mistake::NoDrift) { 0 } else { 20 };
        let window = WindowInput::new(Duration::from_micros(TTL), Drift::from_ppm(drift * 10_000));
        let window = window.window().expect("a window").window;
        let from = if self.config.zombies { host.clock } else { since };
        let deadline = Deadline::after(at(from), window).expect("a deadline");
        let stamp = (Epoch(0), Token::new(token).expect("a token"));
        let value = i32::try_from(token).expect("few tokens");
        let drive = Operation::drive(0, stamp, [value].into_iter().collect(), deadline, window);
        host.client.begin(drive, Deadline::at(at(u64::MAX)));
        self.go_on(who);
    }

    /// Puts what a client has to say onto the cable.
    fn go_on(&mut self, who: usize) {
        let now = at(self.hosts[who].clock);
        while let Output::Send(frame) = self.hosts[who].client.poll(now) {
            self.to_gate.push(frame.to_vec());
        }
    }

    /// A frame comes to the gate; `storing` is what happens while it stores something, `Err` where the power is cut, and
    /// whether the entry had got in.
    fn arrive(&mut self, frame: Vec<u8>, storing: impl FnOnce(&mut Self) -> Result<(), bool>) {
        let known = self.heard.contains(&frame);
        let before = self.output();
        self.poll();
        let mut bytes = frame[1..frame.len() - 1].to_vec();
        let mut step = self.gate.receive(at(self.clock), &mut bytes);
        self.poll();
        self.heard.insert(frame);
        if let Step::Store(pending) = step {
            let entry = pending.entry();
            let done = storing(self);
            if done != Err(false) {
                self.keep(&entry);
            }
            if done.is_err() {
                self.cut();
                return;
            }
            let stored: Result<Stored, StoreError> = Ok(Stored::read_back(entry));
            step = self.gate.stored(at(self.clock), pending, stored);
            self.poll();
        }
        if let Step::Answer(answer) = step {
            self.to_hosts.push(answer.to_vec());
        }
        self.seen.again |= known && before == 0 && self.output() != 0;
    }

    fn keep(&mut self, entry: &Entry) {
        let Entry::Mark { mark, .. } = entry else { return };
        self.highest = self.highest.max(mark.mark.token);
        if self.config.mistake != Some(Mistake::NotStored) {
            self.mark = *mark;
        }
    }

    fn cut(&mut self) {
        self.boots += u32::from(self.config.mistake != Some(Mistake::NotCounted));
        self.clock = 0;
        self.gate = boot(&self.provisioning, self.boots, self.mark);
    }

    fn poll(&mut self) -> Option<u64> {
        self.gate.poll(at(self.clock), Inputs::default()).map(Instant::as_micros)
    }

    fn output(&self) -> u64 {
        self.gate.outputs().next().and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
    }

    /// So much passes on the gate's clock, and on the others what they make of it.
    fn pass(&mut self, on_the_gate: u64) {
        let end = self.clock + on_the_gate;
        while let Some(wake) = self.poll().filter(|wake| wake + LATENESS < end) {
            self.go_to((wake + LATENESS).max(self.clock + 1));
            self.look();
            self.poll();
        }
        self.go_to(end);
    }

    fn go_to(&mut self, clock: u64) {
        let gone = clock - self.clock;
        self.clock = clock;
        // Against the holder: the coordinator's clock is never behind what it would be, a host's never before.
        self.coordinator += (gone * COORDINATOR).div_ceil(GATES);
        for host in &mut self.hosts {
            host.clock += gone * HOLDER / GATES;
        }
    }

    /// Looks at the output, as it has been up to now.
    fn look(&mut self) {
        let token = self.output();
        if token == 0 {
            return;
        }
        let (holder, current, ends) = self.granted.expect("somebody has a lease");
        self.seen.overlap |= token != current || self.coordinator > ends;
        self.seen.driven[holder] |= token == current;
        self.seen.stale |= token < self.highest;
    }

    /// A hash of everything that can make a difference to what happens next.
    pub(crate) fn told_apart_by(&self) -> u64 {
        // What is only told to those who ask, and makes every moment another, stands between these two.
        let gate = format!("{:?}", self.gate);
        let (before, after) = (gate.find(", counters: "), gate.rfind(", fault: "));
        let (before, after) = (before.expect("its counters"), after.expect("its fault"));
        let outside =
            (&self.hosts, self.coordinator, self.granted, self.minted, self.clock, self.mark, self.highest, self.left);
        let mut hasher = DefaultHasher::new();
        format!("{outside:?} {:?}", (self.boots, &self.to_gate, &self.to_hosts, &self.heard, self.seen))
            .hash(&mut hasher);
        (&gate[..before], &gate[after..]).hash(&mut hasher);
        hasher.finish()
    }
}

fn boot(provisioning: &Provisioning, boots: u32, mark: GrantRecord) -> Gate {
    let marks = [Remembered::Mark(mark)].into_iter().collect();
    let memory = Memory { boots, marks, ..Memory::nothing() };
    let board = Board { outputs: 1, worst_store: Duration::from_micros(WORST_STORE), drops: false };
    Gate::new(provisioning.clone(), &memory, board, at(0))
}
