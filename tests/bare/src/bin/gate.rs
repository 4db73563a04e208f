//! What a gate does to one frame, in instructions and bytes: counted as in `count.rs`, for the whole way from the stuffed
//! frame to the sealed answer.
//!
//! Frames are sealed outside of the count. A line is `kind`, a tab, a name, a tab, a number.

#![no_std]
#![no_main]

use fencegate::{Drift, Duration, Epoch, GrantRecord, HolderId, Instant, Limits, RaiseBudget, Token};
use fencegate_bare::timer::{self, NANOSECONDS_A_TICK};
use fencegate_node::{Board, DOMAIN, Gate, Inputs, Memory, Remembered, Step, Stored};
use fencegate_wire::{
    Answer, Authority, Challenge, ChannelConfig, Frame, GateConfig, GateId, Header, Key, Keyring, Nonce, OutputConfig,
    Provisioning, Request, Role, Sealed, Unverified, seal,
};
use semihosting::println;

fencegate_bare::image!(count);

const ROUNDS: u64 = 100;

/// The gate of the emulator: five channels, the fourth its own authority, the last with two outputs.
fn provisioning() -> Provisioning {
    let mut channels: heapless::Vec<ChannelConfig, 8> = core::iter::repeat_n(ChannelConfig::new(), 5).collect();
    channels[3].authority = Authority::Own;
    channels[4].outputs = 2;
    Provisioning {
        gate: GateConfig {
            gate: GateId(*b"press-07"),
            keys: Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 },
            drift: Drift::from_ppm(100),
            lateness: Duration::from_millis(5),
            longest_window: Duration::from_secs(60),
            raises: RaiseBudget { burst: 1_000_000, every: Duration::from_millis(1) },
            epoch_jump: Limits::EPOCH_JUMP,
            warning: Duration::ZERO,
        },
        channels,
        outputs: core::iter::repeat_n(OutputConfig::switch(), 6).collect(),
    }
}

/// A gate, and a host that counts what it costs.
struct Bench {
    gate: Gate,
    provisioning: Provisioning,
    now: u64,
    nonce: u64,
    ticks: u64,
    answer: usize,
}

impl Bench {
    fn new() -> Self {
        let provisioning = provisioning();
        let fresh = Remembered::Mark(GrantRecord::floor(Epoch(0), 0));
        let memory = Memory { boots: 1, marks: core::iter::repeat_n(fresh, 5).collect(), ..Memory::nothing() };
        let board = Board { outputs: 6, worst_store: Duration::from_millis(20), drops: false };
        let gate = Gate::new(provisioning.clone(), &memory, board, Instant::from_micros(0));
        Self { gate, provisioning, now: 0, nonce: 0, ticks: 0, answer: 0 }
    }

    fn seal(&mut self, role: Role, challenge: Option<Challenge>, request: Request) -> Frame {
        self.nonce += 1;
        let GateConfig { gate, keys, .. } = &self.provisioning.gate;
        let header = Header { answer: false, role, key_id: 0, gate: *gate, nonce: Nonce(self.nonce.to_le_bytes()) };
        match seal(&header, &keys.base(role).directions(DOMAIN).request, &Sealed { challenge, request }) {
            Ok((frame, _)) => frame,
            Err(_) => wrong("a request that does not fit"),
        }
    }

    /// Counts what the gate does to a frame, a store of no time included where it asks for one.
    fn send(&mut self, frame: &Frame) -> Option<Frame> {
        let mut bytes = frame.clone();
        let last = bytes.len() - 1;
        self.now += 1_000;
        let now = Instant::from_micros(self.now);
        self.gate.poll(now, Inputs::default());
        let begun = timer::ticks();
        let mut step = self.gate.receive(now, &mut bytes[1..last]);
        if let Step::Store(pending) = step {
            let entry = pending.entry();
            step = self.gate.stored(now, pending, Ok(Stored::read_back(entry)));
        }
        self.ticks += u64::from(timer::ticks().wrapping_sub(begun));
        match step {
            Step::Answer(frame) => {
                self.answer = frame.len();
                Some(frame)
            }
            _ => None,
        }
    }

    /// The challenge of an answer.
    fn challenge(&mut self, role: Role) -> Challenge {
        let ask = self.seal(role, None, Request::Challenge);
        let Some(mut frame) = self.send(&ask) else { wrong("no answer") };
        let last = frame.len() - 1;
        let key = self.provisioning.gate.keys.base(role).directions(DOMAIN).answer;
        let answer = Unverified::read(&mut frame[1..last]).ok().and_then(|frame| frame.verify(&key));
        match answer.and_then(|answer| answer.body::<Answer>()) {
            Some(answer) => answer.challenge,
            None => wrong("an answer that is not authentic"),
        }
    }

    fn line(&mut self, name: &str, mut frame: impl FnMut(&mut Self, u64) -> Frame) {
        let (mut ticks, mut len) = (0, 0);
        for round in 0..ROUNDS {
            let frame = frame(self, round);
            self.ticks = 0;
            self.send(&frame);
            ticks += self.ticks;
            len = frame.len();
        }
        println!("instructions\t{name}\t{}", ticks * NANOSECONDS_A_TICK / ROUNDS);
        println!("frame\t{name}\t{len}");
        println!("answer\t{name}\t{}", self.answer);
    }
}

fn wrong(what: &str) -> ! {
    println!("wrong\t{what}\t0");
    semihosting::process::exit(1)
}

fn count() {
    timer::start();
    let Ok(holder) = HolderId::new("press-a#9f3c") else { wrong("a holder") };
    let role = Role::Holder(holder);
    let mut b = Bench::new();
    let token = |n| Token::new(n).unwrap_or_else(|| wrong("a token"));
    let drive = |n| Request::Drive {
        channel: 0,
        epoch: Epoch(0),
        token: token(n),
        window: Duration::from_secs(2),
        values: [1].into_iter().collect(),
    };
    b.line("a challenge", |b, _| b.seal(role, None, Request::Challenge));
    b.line("a channel's state", |b, _| b.seal(Role::Observer, None, Request::Channel { channel: 0 }));
    b.line("a raise, without the flash", |b, n| {
        let challenge = b.challenge(role);
        b.seal(role, Some(challenge), Request::Raise { channel: 0, epoch: Epoch(0), token: token(1_000 + n) })
    });
    b.line("a drive, accepted", |b, _| {
        let challenge = b.challenge(role);
        b.seal(role, Some(challenge), drive(1_000 + ROUNDS - 1))
    });
    let challenge = b.challenge(role);
    let again = b.seal(role, Some(challenge), drive(1_000 + ROUNDS - 1));
    b.send(&again);
    b.line("a drive, repeated", |_, _| again.clone());
    b.line("a drive, refused as stale", |b, _| {
        let challenge = b.challenge(role);
        b.seal(role, Some(challenge), drive(33))
    });
    // The window of each is over at once; its refusal is remembered.
    b.line("a drive, refused as expired (remembered)", |b, _| {
        let challenge = b.challenge(role);
        let mut over = drive(1_000 + ROUNDS - 1);
        if let Request::Drive { window, .. } = &mut over {
            *window = Duration::ZERO;
        }
        b.seal(role, Some(challenge), over)
    });
    let mut forged = again.clone();
    b.line("noise", |_, n| {
        forged[20] = if n % 2 == 0 { 0x55 } else { 0xaa };
        forged.clone()
    });
    println!("bytes\t`Gate`\t{}", size_of::<Gate>());
    println!("bytes\t`Provisioning`\t{}", size_of::<Provisioning>());
    println!("bytes\t`Step`\t{}", size_of::<Step>());
    semihosting::process::exit(0)
}
