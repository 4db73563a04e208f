//! What a bad cable makes of an answer, or a later gate: a host that cannot be sure of every bit of it has heard nothing.

use super::*;
use crate::event::{Event, What};
use crate::frame::{self, Deframer, Framed};
use crate::message::{Cause, ChannelState, ChannelStatus, Counters, Fault, GateStatus, Version};

/// One of each.
fn replies() -> Vec<Reply> {
    let record = FenceRecord { epoch: Epoch(1), token: 300, holder: HolderId::new("a#1").ok(), released: false };
    let window_left = Duration::from_millis(1_500);
    let status =
        GateStatus { firmware: Version(0, 1, 0), boots: 7, channels: 5, mended: 1, fault: Some(Fault::Inhibited) };
    let channel = ChannelStatus {
        record,
        state: ChannelState::Driven,
        values: Values::from_slice(&[1, -1]).unwrap(),
        window_left,
        cause: Cause::Raised,
        fault: None,
    };
    let event = |number, what| Event { number, at: Instant::from_micros(70_000), channel: Some(1), what };
    let log = [event(3, What::Ended), event(4, What::Refused { reason: Reason::Stale, times: 500 })];
    let replies = vec![
        Reply::Challenge,
        Reply::Status(status),
        Reply::Channel(channel),
        Reply::Counters(Counters { noise: 3, forged: 1_000, ..Counters::default() }),
        Reply::Done { record, window_left },
        Reply::Refused(Refused { reason: Reason::Stale, by: Some(record), wait: Duration::ZERO }),
        Reply::Provisioned,
        Reply::Log(log.into_iter().collect()),
    ];
    let numbers = replies.iter().map(|reply| postcard::to_slice(reply, &mut [0; 250]).unwrap()[0]);
    assert!(numbers.eq(0..8), "one of each");
    replies
}

/// A client that waits for the answer to a drive, and that request's header.
fn asked() -> (Line, Header) {
    let mut line = Line::new();
    let (header, _) = driving(&mut line);
    (line, header)
}

/// Bytes as a host takes them off the line.
fn hear(line: &mut Line, bytes: &[u8]) {
    let now = line.at(20);
    let mut deframer = Deframer::new();
    for byte in bytes {
        if let Some(Framed::Frame(frame)) = deframer.push(*byte) {
            line.client.receive(now, frame);
        }
    }
}

fn must_not_hear(line: &mut Line, bytes: &[u8], what: &str) {
    hear(line, bytes);
    assert_eq!(line.poll(20), Output::Wait(Instant::from_micros(260_000)), "{what}");
}

/// The frame of a payload, with a check value that fits.
fn framed(payload: &[u8]) -> Frame {
    let mut frame = frame::begin();
    frame.extend_from_slice(payload).unwrap();
    frame::close(&mut frame).unwrap();
    frame
}

/// Damages one answer of each kind in many ways, none of which is taken for it; whole, it is at last.
fn damaged(damage: impl Fn(&mut Line, &[u8], &[u8])) {
    for reply in replies() {
        let (mut line, header) = asked();
        let answer = Answer { challenge: Challenge { boot: 1, tick: 2_000 }, reply: reply.clone() };
        let (whole, _) = seal(&header.reply(), &line.keys.answer, &answer).unwrap();
        let last = whole.len() - 1;
        let payload = frame::decode(&mut whole.clone()[1..last]).unwrap().to_vec();
        damage(&mut line, &whole, &payload);
        hear(&mut line, &whole);
        assert_eq!(line.poll(20), Output::Done(reply));
    }
}

#[test]
fn an_answer_with_one_bit_the_other_way_is_none() {
    damaged(|line, whole, payload| {
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        for bit in 8..8 * (whole.len() - 1) {
            must_not_hear(line, &flipped(whole, bit), &format!("bit {bit}"));
        }
        // And where the check value has been made to fit, so that nothing but the authenticator is left.
        for bit in 0..8 * payload.len() {
            must_not_hear(line, &framed(&flipped(payload, bit)), &format!("forged bit {bit}"));
        }
    });
}

#[test]
fn an_answer_that_was_cut_short_is_none() {
    damaged(|line, whole, payload| {
        for at in 1..whole.len() - 1 {
            must_not_hear(line, &[&whole[..at], &[0]].concat(), &format!("the first {at} bytes"));
            must_not_hear(line, &[&[0], &whole[at + 1..]].concat(), &format!("all but the first {at} bytes"));
        }
        for at in 0..payload.len() {
            must_not_hear(line, &framed(&payload[..at]), &format!("{at} bytes with a check value"));
        }
    });
}

/// It proves that the gate is there, and says nothing that this version could act upon: neither an answer nor a forgery.
#[test]
fn an_answer_of_a_later_gate_is_none_and_its_challenge_is_not_used() {
    let challenge = Challenge { boot: 1, tick: 2_000 };
    let later = |body: &dyn Fn(&Header, &Key) -> Frame| {
        let (mut line, header) = asked();
        let frame = body(&header.reply(), &line.keys.answer);
        must_not_hear(&mut line, &frame, "it cannot be read");
        // The same frame goes out again: of what it sealed, nothing is reckoned anew.
        let (_, sealed, _) = line.sent(260);
        assert_eq!(sealed.challenge, Some(Challenge { boot: 1, tick: 7 }));
        assert_eq!(line.poll(5_000), Output::Failed(Failure::NoAnswer), "whether it was done, nobody knows");
        // The next operation begins with a challenge that it can read.
        let rearm = Operation::new(Request::Rearm { channel: 0 });
        line.client.begin(rearm, Deadline::at(Instant::from_micros(9_000_000)));
        assert_eq!(line.sent(5_100).1, Sealed { challenge: None, request: Request::Challenge });
    };
    for number in (8..300).chain([u16::MAX]) {
        later(&|header, key| seal(header, key, &(challenge, number)).unwrap().0);
        later(&|header, key| seal(header, key, &(challenge, number, [1_u8; 9])).unwrap().0);
    }
    for reply in replies() {
        let answer = Answer { challenge, reply };
        later(&|header, key| seal(header, key, &(&answer, 0_u8)).unwrap().0);
        later(&|header, key| seal(header, key, &(&answer, [0xff_u8; 20])).unwrap().0);
    }
    later(&|header, key| seal(header, key, &challenge).unwrap().0);
    later(&|header, key| seal(header, key, &()).unwrap().0);
}
