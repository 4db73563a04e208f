//! Frames without sense, by the million, at both ends of the cable: a host that awaits an answer believes none of them
//! and still hears its own, and a gate neither answers them nor does anything.
//!
//! `FENCEGATE_SOAK=1` makes it ten million at each end.

use fencegate::{Deadline, Duration, Epoch, FenceRecord, GrantRecord, HolderId, Instant, Limits, RaiseBudget, Token};
use fencegate_node::{Board, DOMAIN, Gate, Inputs, Memory, Remembered, Step};
use fencegate_tests::{Random, is_soak, seed};
use fencegate_wire::{
    Answer, BaseKey, Challenge, ChannelConfig, Client, Credential, Deframer, Framed, GateConfig, GateId, GateStatus,
    Header, Key, Keyring, Nonce, Operation, Output, OutputConfig, Provisioning, Reason, Refused, Reply, Request, Role,
    Sealed, Timing, Unverified, Version, seal,
};

const GATE: GateId = GateId(*b"press-07");
/// Longer than any frame.
const LONGEST: usize = 300;

fn frames() -> u32 {
    if is_soak() { 10_000_000 } else { 200_000 }
}

fn keyring() -> Keyring {
    Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 }
}

fn holder(name: &str) -> Role {
    Role::Holder(HolderId::new(name).unwrap())
}

fn base(role: Role) -> BaseKey {
    keyring().base(role)
}

/// A payload as it goes onto the line, with a right check value and the right stuffing, whatever it says.
fn stuffed(payload: &[u8]) -> Vec<u8> {
    let check = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC).checksum(payload).to_le_bytes();
    [&[0], &cobs::encode_vec(&[payload, &check].concat())[..], &[0]].concat()
}

/// A frame that none of `valid` is: noise, or one of them damaged, with or without its check value mended.
fn damaged(random: &mut Random, valid: &[Vec<u8>]) -> Vec<u8> {
    loop {
        let one = &valid[random.index(valid.len())];
        let other = &valid[random.index(valid.len())];
        let frame = match random.below(6) {
            0 => {
                let len = random.index(LONGEST);
                random.bytes(len)
            }
            1 => {
                let mut bytes = one.clone();
                let at = random.index(bytes.len());
                bytes[at] ^= 1 << random.below(8);
                bytes
            }
            2 => one[..random.index(one.len())].to_vec(),
            3 => {
                let at = random.index(one.len().min(other.len()));
                [&one[..at], &other[at..]].concat()
            }
            4 => {
                // The check value is right: the seal alone is not.
                let mut payload = cobs::decode_vec(&one[1..one.len() - 1]).unwrap();
                payload.truncate(payload.len() - 4);
                let at = random.index(payload.len());
                payload[at] ^= 1 << random.below(8);
                stuffed(&payload)
            }
            _ => {
                let len = random.index(LONGEST);
                stuffed(&random.bytes(len))
            }
        };
        // Noise that holds no whole frame of theirs.
        let ended = [&frame[..], &[0]].concat();
        if ended.split(|byte| *byte == 0).all(|part| valid.iter().all(|valid| part != &valid[1..valid.len() - 1])) {
            return ended;
        }
    }
}

#[test]
fn a_host_believes_none_of_millions_of_frames_and_hears_its_answer() {
    let mut random = Random(seed("decoder"));
    let credential = Credential::new(GATE, holder("a"), 0, &base(holder("a")), DOMAIN);
    let mut client = Client::new(credential.clone(), random.next(), Timing::default());
    let mut line = Deframer::new();
    let now = Instant::from_micros(1);
    let give_up = Deadline::after(now, Duration::from_secs(1_000)).unwrap();
    let mut old: Vec<Vec<u8>> = vec![];
    let (mut said, mut asked, mut heard) = (0, None, 0_u32);
    while said < frames() {
        match client.poll(now) {
            Output::Idle | Output::Done(_) => {
                client.begin(Operation::new(Request::Status), give_up);
                continue;
            }
            Output::Send(frame) => {
                let mut frame = frame.to_vec();
                let len = frame.len();
                asked = Some(*Unverified::read(&mut frame[1..len - 1]).unwrap().claim());
                continue;
            }
            Output::Wait(_) => {}
            Output::Failed(failure) => panic!("{failure:?}"),
        }
        let header = asked.unwrap();
        let challenge = Challenge { boot: 7, tick: random.next() };
        let answer =
            seal(&header.reply(), &credential.keys.answer, &Answer { challenge, reply: status() }).unwrap().0.to_vec();
        // Other hosts' answers, answers to what this one has asked before, its own question, and the answer itself.
        let theirs = Header { nonce: Nonce(random.next().to_le_bytes()), ..header.reply() };
        let refused = Refused { reason: Reason::Stale, by: None, wait: Duration::ZERO };
        let refusal = Answer { challenge, reply: Reply::Refused(refused) };
        let others = seal(&theirs, &credential.keys.answer, &refusal).unwrap().0.to_vec();
        let reflected = seal(&header, &credential.keys.request, &refusal).unwrap().0.to_vec();
        let forged = seal(&header.reply(), &base(holder("b")).answer(DOMAIN), &refusal).unwrap().0.to_vec();
        let wrong: Vec<Vec<u8>> = old.iter().cloned().chain([others, reflected, forged]).collect();
        let valid = [&wrong[..], std::slice::from_ref(&answer)].concat();
        for _ in 0..=random.below(2_000) {
            said += 1;
            let frame =
                if random.once_in(8) { wrong[random.index(wrong.len())].clone() } else { damaged(&mut random, &valid) };
            hear(&mut client, &mut line, now, &frame);
            assert!(matches!(client.poll(now), Output::Wait(_)), "{frame:02x?}");
        }
        hear(&mut client, &mut line, now, &[&[0], &answer[..]].concat());
        assert_eq!(client.poll(now), Output::Done(status()));
        heard += 1;
        old.push(answer);
        old.truncate(3);
    }
    println!("counted: at a host {said} frames without sense around {heard} answers");
}

fn status() -> Reply {
    Reply::Status(GateStatus { firmware: Version(0, 1, 0), boots: 7, channels: 5, mended: 0, fault: None })
}

fn hear(client: &mut Client, line: &mut Deframer, now: Instant, bytes: &[u8]) {
    for byte in bytes {
        if let Some(Framed::Frame(frame)) = line.push(*byte) {
            client.receive(now, frame);
        }
    }
}

/// Asks a gate for a challenge.
fn challenged(gate: &mut Gate, now: Instant) -> Challenge {
    let header = Header { answer: false, role: Role::Observer, key_id: 0, gate: GATE, nonce: Nonce(*b"no-nonce") };
    let body = Sealed { challenge: None, request: Request::Challenge };
    let mut frame = seal(&header, &base(Role::Observer).request(DOMAIN), &body).unwrap().0;
    let len = frame.len();
    let Step::Answer(mut answer) = gate.receive(now, &mut frame[1..len - 1]) else { panic!("no challenge") };
    let len = answer.len();
    let answer = Unverified::read(&mut answer[1..len - 1]).unwrap().verify(&base(Role::Observer).answer(DOMAIN));
    answer.unwrap().body::<Answer>().unwrap().challenge
}

#[test]
fn a_gate_does_nothing_under_millions_of_frames() {
    let mut random = Random(seed("decoder"));
    let channel = ChannelConfig::new();
    let provisioning = Provisioning {
        gate: GateConfig {
            gate: GATE,
            keys: keyring(),
            drift: fencegate::Drift::from_ppm(100),
            lateness: Duration::from_millis(5),
            longest_window: Duration::from_secs(60),
            raises: RaiseBudget { burst: 5, every: Duration::from_secs(10) },
            epoch_jump: Limits::EPOCH_JUMP,
            warning: Duration::ZERO,
        },
        channels: [channel.clone(), channel].into_iter().collect(),
        outputs: std::iter::repeat_n(OutputConfig::switch(), 2).collect(),
    };
    let floor = Remembered::Mark(GrantRecord::floor(Epoch(0), 0));
    let memory = Memory { boots: 1, marks: [floor; 2].into_iter().collect(), ..Memory::nothing() };
    let now = Instant::from_micros(1_000);
    let board = Board { outputs: 2, worst_store: Duration::from_millis(20), drops: false };
    let mut gate = Gate::new(provisioning, &memory, board, now);
    let challenge = Some(challenged(&mut gate, now));
    let (epoch, token) = (Epoch(0), Token::new(33).unwrap());
    let drive =
        Request::Drive { channel: 0, epoch, token, window: Duration::from_secs(1), values: [1].into_iter().collect() };
    let valid: Vec<Vec<u8>> = [
        (holder("a"), drive),
        (holder("a"), Request::Raise { channel: 1, epoch, token }),
        (holder("b"), Request::Release { channel: 1, epoch, token }),
        (Role::Operator, Request::Epoch { channel: 0, epoch: Epoch(1), floor: 0 }),
        (Role::Observer, Request::Status),
    ]
    .map(|(role, request)| {
        let header = Header { answer: false, role, key_id: 0, gate: GATE, nonce: Nonce(random.next().to_le_bytes()) };
        let body = Sealed { challenge, request };
        seal(&header, &base(role).request(DOMAIN), &body).unwrap().0.to_vec()
    })
    .to_vec();
    let mut line = Deframer::new();
    for _ in 0..frames() {
        let frame = damaged(&mut random, &valid);
        for byte in &frame {
            match line.push(*byte) {
                Some(Framed::Frame(frame)) => assert!(matches!(gate.receive(now, frame), Step::Silent)),
                Some(Framed::Overlong) => gate.noise(),
                None => {}
            }
        }
    }
    gate.poll(now, Inputs::default());
    assert!(gate.outputs().all(|value| value == 0) && gate.hang_by().is_none());
    // It still hears who is proven, and nothing of all that has used anything up.
    for byte in [&[0], &valid[1][..]].concat() {
        if let Some(Framed::Frame(frame)) = line.push(byte) {
            let Step::Store(pending) = gate.receive(now, frame) else { panic!("the raise is not taken") };
            let fence = FenceRecord { epoch, token: 33, holder: HolderId::new("a").ok(), released: false };
            let mark = GrantRecord { mark: fence, ttl: Duration::ZERO };
            assert_eq!(pending.entry(), fencegate_node::Entry::Mark { channel: 1, mark });
        }
    }
    println!("counted: at a gate {} frames without sense", frames());
}
