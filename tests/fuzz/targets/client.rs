//! The client's half of a conversation against a gate that answers anything, at any time: it never sends without being
//! asked, ends each operation in time, and believes only what its gate has sealed for its own request.
#![no_main]

use arbitrary::Arbitrary;
use fencegate::{Deadline, Duration, HolderId, Instant};
use fencegate_wire::{
    Answer, BaseKey, Client, Credential, Deframer, Domain, Framed, GateId, Header, Key, Operation, Output, Request,
    Role, Timing, Unverified, seal,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// A new operation, read off these bytes, that has this long.
    Begin(&'a [u8], u32),
    /// This much time passes.
    Wait(u32),
    /// Bytes come in that nobody has sealed.
    Noise(&'a [u8]),
    /// The gate answers the last request with what these bytes say.
    Answer(&'a [u8]),
}

/// The stuffed bytes of a frame, as a deframer gives them.
fn stuffed(line: &[u8]) -> Vec<u8> {
    let mut deframer = Deframer::new();
    for byte in line {
        if let Some(Framed::Frame(frame)) = deframer.push(*byte) {
            return frame.to_vec();
        }
    }
    Vec::new()
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let role = Role::Holder(HolderId::new("press-a#1").unwrap());
    let credential = Credential::new(GateId([1; 8]), role, 0, &BaseKey(Key::new([2; Key::LEN])), Domain::Gate);
    let mut client = Client::new(credential.clone(), 3, Timing::default());
    let (mut now, mut give_up) = (Instant::from_micros(0), Deadline::at(Instant::from_micros(0)));
    let mut asked: Option<Header> = None;
    let mut busy = false;
    for step in steps {
        match step {
            Step::Begin(bytes, us) => {
                let Ok((request, _)) = postcard::take_from_bytes::<Request>(bytes) else { continue };
                give_up = Deadline::after(now, Duration::from_micros(us.into())).unwrap();
                client.begin(Operation::new(request), give_up);
                (asked, busy) = (None, true);
            }
            Step::Wait(us) => now = now.checked_add(Duration::from_micros(us.into())).unwrap(),
            Step::Noise(bytes) => client.receive(now, &mut stuffed(bytes)),
            Step::Answer(bytes) => {
                let Ok((answer, _)) = postcard::take_from_bytes::<Answer>(bytes) else { continue };
                let Some(header) = asked else { continue };
                let Ok((frame, _)) = seal(&header.reply(), &credential.keys.answer, &answer) else { continue };
                client.receive(now, &mut stuffed(&frame));
            }
        }
        for calls in 0.. {
            assert!(calls < 4, "it never waits");
            match client.poll(now) {
                Output::Send(frame) => {
                    assert!(busy && !give_up.is_over(now));
                    let mut frame = stuffed(&frame);
                    let claimed = Unverified::read(&mut frame).unwrap();
                    asked = Some(*claimed.claim());
                    assert!(claimed.verify(&credential.keys.request).is_some());
                }
                Output::Wait(until) => {
                    assert!(busy && until > now && until <= give_up.instant());
                    break;
                }
                Output::Done(_) => {
                    assert!(busy && asked.is_some(), "an answer to nothing");
                    busy = false;
                }
                Output::Failed(_) => {
                    assert!(busy);
                    busy = false;
                }
                Output::Idle => {
                    assert!(!busy);
                    break;
                }
            }
        }
    }
});
