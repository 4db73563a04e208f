mod damaged;

use super::*;
use crate::key::{Domain, Key, Keyring, Role};
use crate::message::Refused;
use crate::seal::GateId;
use fencegate::{FenceRecord, HolderId};

/// The other end of the line, answering by hand.
struct Line {
    client: Client,
    keys: crate::key::DirectionKeys,
    now: u64,
    boot: u32,
}

const DONE: Reply = Reply::Done { record: FenceRecord::floor(Epoch(0), 0), window_left: Duration::ZERO };

fn refused(reason: Reason) -> Reply {
    Reply::Refused(Refused { reason, by: None, wait: Duration::ZERO })
}

impl Line {
    fn new() -> Self {
        let ring = Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 };
        let role = Role::Holder(HolderId::new("a").unwrap());
        let credential = Credential::new(GateId(*b"press-07"), role, ring.id, &ring.base(role), Domain::Gate);
        let keys = credential.keys.clone();
        Self { client: Client::new(credential, 0xfeed, Timing::default()), keys, now: 0, boot: 1 }
    }

    fn at(&mut self, ms: u64) -> Instant {
        self.now = ms * 1_000;
        Instant::from_micros(self.now)
    }

    /// Begins to drive a window of two seconds that began at zero.
    fn drive(&mut self, ms: u64) {
        let end = Deadline::at(Instant::from_micros(2_000_000));
        let stamp = (Epoch(0), Token::new(33).unwrap());
        let drive = Operation::drive(0, stamp, Values::from_slice(&[1]).unwrap(), end, Duration::from_secs(2));
        self.at(ms);
        self.client.begin(drive, Deadline::at(Instant::from_micros(5_000_000)));
    }

    /// What the client puts onto the line at `ms`.
    fn sent(&mut self, ms: u64) -> (Header, Sealed, Frame) {
        let now = self.at(ms);
        let Output::Send(frame) = self.client.poll(now) else { panic!("nothing is sent at {ms} ms") };
        let mut bytes = frame.clone();
        let len = bytes.len();
        let unverified = Unverified::read(&mut bytes[1..len - 1]).unwrap();
        let verified = unverified.verify(&self.keys.request).unwrap();
        (*verified.header(), verified.body().unwrap(), frame)
    }

    fn answer(&mut self, ms: u64, header: Header, tick: u64, reply: Reply) {
        let answer = Answer { challenge: Challenge { boot: self.boot, tick }, reply };
        let (mut frame, _) = seal(&header.reply(), &self.keys.answer, &answer).unwrap();
        let len = frame.len();
        let now = self.at(ms);
        self.client.receive(now, &mut frame[1..len - 1]);
    }

    fn poll(&mut self, ms: u64) -> Output {
        let now = self.at(ms);
        self.client.poll(now)
    }
}

fn window(sealed: &Sealed) -> u64 {
    let Request::Drive { window, .. } = &sealed.request else { panic!("{sealed:?} is no drive") };
    window.as_micros()
}

#[test]
fn the_window_is_what_is_left_when_the_challenge_arrives() {
    let mut line = Line::new();
    line.drive(100);
    let (header, sealed, _) = line.sent(100);
    assert_eq!(sealed, Sealed { challenge: None, request: Request::Challenge });
    line.answer(130, header, 7, Reply::Challenge);
    let (header, sealed, _) = line.sent(900); // it slept before it sent; the gate's count began at the challenge
    assert_eq!(sealed.challenge, Some(Challenge { boot: 1, tick: 7 }));
    assert_eq!(window(&sealed), 2_000_000 - 130_000);
    line.answer(910, header, 8, DONE);
    assert_eq!(line.poll(910), Output::Done(DONE));
    assert_eq!(line.poll(911), Output::Idle);

    line.drive(1_000);
    let (_, sealed, _) = line.sent(1_000);
    assert_eq!(sealed.challenge, Some(Challenge { boot: 1, tick: 8 }), "one round trip a command from now on");
    assert_eq!(window(&sealed), 2_000_000 - 910_000);
}

#[test]
fn a_holder_that_slept_past_its_window_still_asks_and_seals_nothing_left() {
    let mut line = Line::new();
    line.drive(0);
    let (header, ..) = line.sent(0);
    line.answer(2_500, header, 7, Reply::Challenge);
    let (header, sealed, _) = line.sent(2_500);
    assert_eq!(window(&sealed), 0);
    line.answer(2_510, header, 8, refused(Reason::Stale));
    assert_eq!(line.poll(2_510), Output::Done(refused(Reason::Stale)));
}

#[test]
fn an_unanswered_frame_is_repeated_to_the_letter_until_time_is_up() {
    let mut line = Line::new();
    line.drive(0);
    let (.., first) = line.sent(0);
    assert_eq!(line.poll(249), Output::Wait(Instant::from_micros(250_000)));
    let (.., again) = line.sent(250);
    assert_eq!(first, again);
    assert_eq!(line.poll(5_000), Output::Failed(Failure::NoAnswer));
    assert_eq!(line.poll(5_001), Output::Idle);
}

#[test]
fn a_busy_gate_is_asked_again_with_its_new_challenge() {
    let mut line = Line::new();
    line.drive(0);
    let (header, ..) = line.sent(0);
    line.answer(10, header, 7, Reply::Challenge);
    let (header, ..) = line.sent(10);
    line.answer(20, header, 8, refused(Reason::Busy));
    assert_eq!(line.poll(20), Output::Wait(Instant::from_micros(70_000)));
    let (_, sealed, _) = line.sent(70);
    assert_eq!(sealed.challenge, Some(Challenge { boot: 1, tick: 8 }));
    assert_eq!(window(&sealed), 2_000_000 - 20_000);
}

#[test]
fn a_gate_that_stays_busy_has_answered() {
    let mut line = Line::new();
    line.drive(0);
    let (header, ..) = line.sent(0);
    line.answer(10, header, 7, Reply::Challenge);
    let (header, ..) = line.sent(10);
    line.answer(4_990, header, 8, refused(Reason::Busy));
    assert_eq!(line.poll(4_990), Output::Wait(Instant::from_micros(5_000_000)));
    assert_eq!(line.poll(5_000), Output::Done(refused(Reason::Busy)));
}

/// A drive whose challenge has arrived: the header and the body that are now on the line.
fn driving(line: &mut Line) -> (Header, Sealed) {
    line.drive(0);
    let (header, ..) = line.sent(0);
    line.answer(10, header, 7, Reply::Challenge);
    let (header, sealed, _) = line.sent(10);
    (header, sealed)
}

#[test]
fn a_challenge_that_another_hosts_newer_one_overtook_is_replaced() {
    let mut line = Line::new();
    let (mut header, _) = driving(&mut line);
    for (ms, tick) in [(20, 9), (30, 12), (40, 60_000_000)] {
        line.answer(ms, header, tick, refused(Reason::Replay));
        let (again, sealed, _) = line.sent(ms);
        assert_eq!(sealed.challenge, Some(Challenge { boot: 1, tick }), "the refusal brought it: no round trip more");
        assert_eq!(window(&sealed), 2_000_000 - ms * 1_000, "the window is reckoned anew");
        assert_ne!(again.nonce, header.nonce, "an answer to the one before is none to this");
        header = again;
    }
    line.answer(50, header, 60_000_001, DONE);
    assert_eq!(line.poll(50), Output::Done(DONE));
}

#[test]
fn a_gate_that_has_rebooted_is_asked_again_with_a_challenge_of_its_new_boot() {
    let mut line = Line::new();
    let (header, sealed) = driving(&mut line);
    assert_eq!(sealed.challenge, Some(Challenge { boot: 1, tick: 7 }));
    line.boot = 2;
    line.answer(900, header, 3, refused(Reason::Replay));
    let (header, sealed, _) = line.sent(900);
    assert_eq!(sealed.challenge, Some(Challenge { boot: 2, tick: 3 }));
    line.answer(910, header, 4, DONE);
    assert_eq!(line.poll(910), Output::Done(DONE));
}

#[test]
fn a_gate_that_takes_no_challenge_has_refused() {
    let mut line = Line::new();
    let (mut header, _) = driving(&mut line);
    // The second operation has all its tries again.
    for _ in 0..2 {
        for n in 0..u64::from(REPLAYS) {
            line.answer(20, header, 8 + n, refused(Reason::Replay));
            header = line.sent(20).0;
        }
        line.answer(30, header, 99, refused(Reason::Replay));
        assert_eq!(line.poll(30), Output::Done(refused(Reason::Replay)), "the refusal is the answer");
        line.drive(0);
        header = line.sent(0).0;
    }
}

#[test]
fn a_refusal_that_brings_back_the_challenge_it_refuses_is_final() {
    let mut line = Line::new();
    let (header, _) = driving(&mut line);
    line.answer(20, header, 7, refused(Reason::Replay));
    assert_eq!(line.poll(20), Output::Done(refused(Reason::Replay)));
}

#[test]
fn answers_of_others_and_forgeries_convince_nobody() {
    let mut line = Line::new();
    line.drive(0);
    let (header, ..) = line.sent(0);
    let others = Header { nonce: Nonce([0; 8]), ..header };
    line.answer(10, others, 7, refused(Reason::Stale));
    assert_eq!(line.poll(10), Output::Wait(Instant::from_micros(250_000)));
    let real = core::mem::replace(&mut line.keys.answer, Key::new([0; 32]));
    line.answer(20, header, 7, Reply::Challenge);
    assert_eq!(line.poll(20), Output::Wait(Instant::from_micros(250_000)), "the true answer may still come");
    line.keys.answer = real;
    line.answer(30, header, 7, Reply::Challenge);
    assert_eq!(window(&line.sent(30).1), 2_000_000 - 30_000);
    line.keys.answer = Key::new([0; 32]);
    let (header, ..) = line.sent(300);
    line.answer(310, header, 8, DONE);
    assert_eq!(line.poll(5_000), Output::Failed(Failure::NotAuthentic));
}

#[test]
fn a_request_is_no_answer() {
    let mut line = Line::new();
    line.drive(0);
    let (.., mut frame) = line.sent(0);
    let len = frame.len();
    let now = line.at(5);
    line.client.receive(now, &mut frame[1..len - 1]); // reflected
    assert_eq!(line.poll(5), Output::Wait(Instant::from_micros(250_000)));
}
