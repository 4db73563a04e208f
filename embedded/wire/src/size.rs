//! How long the messages get, reckoned by the compiler: every number at its longest varint, every list full, held
//! against what a frame takes. A field that is added somewhere is added here, or the tests below say so.

use crate::event::MAX_EVENTS;
use crate::frame::{CHECK_LEN, MAX_PAYLOAD};
use crate::key::Key;
use crate::message::{MAX_OUTPUTS, Reason};
use crate::seal::{HEADER_LEN, TAG_LEN};
use fencegate::HolderId;

/// How long postcard's varint of `n` is: seven bits a byte.
const fn varint(n: u64) -> usize {
    let mut len = 1;
    let mut rest = n >> 7;
    while rest > 0 {
        len += 1;
        rest >>= 7;
    }
    len
}

/// The longer of two.
const fn longer(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// The longest of some.
const fn longest(mut of: &[usize]) -> usize {
    let mut most = 0;
    while let [first, rest @ ..] = of {
        most = longer(most, *first);
        of = rest;
    }
    most
}

// Numbers and what has one byte: a `u8`, a `bool`, the number of a variant, whether an option is there, a short length.
const BYTE: usize = 1;
const U16: usize = varint(u16::MAX as u64);
const U32: usize = varint(u32::MAX as u64);
const U64: usize = varint(u64::MAX);
/// Zigzag.
const I32: usize = U32;

// What messages are made of.
const TIME: usize = U64;
const STAMP: usize = U32 + U64;
const HOLDER: usize = BYTE + HolderId::MAX_LEN;
const VALUES: usize = BYTE + (MAX_OUTPUTS + 1) * I32;
/// Epoch, token, holder, whether released.
const RECORD: usize = STAMP + BYTE + HOLDER + BYTE;
const FAULT: usize = BYTE + BYTE;
const CHALLENGE: usize = U32 + U64;
const KEYRING: usize = Key::LEN + Key::LEN + U64 + BYTE;

/// The longest body of every request, by its number.
const REQUESTS: [usize; 15] = [
    BYTE,                                                                             // Challenge
    BYTE,                                                                             // Status
    BYTE + BYTE,                                                                      // Channel
    BYTE,                                                                             // Counters
    BYTE + BYTE + STAMP,                                                              // Raise
    BYTE + BYTE + STAMP + TIME + VALUES,                                              // Drive
    BYTE + BYTE + STAMP,                                                              // Release
    BYTE + BYTE + STAMP,                                                              // Epoch
    BYTE + BYTE,                                                                      // Rearm
    BYTE + BYTE + TIME,                                                               // Acquire
    BYTE + BYTE + STAMP,                                                              // Renew
    BYTE + U32,                                                                       // Log
    BYTE + BYTE + 3 * I32 + BYTE + (BYTE + I32 + TIME) + 2 * TIME + (BYTE + TIME),    // SetOutput
    BYTE + BYTE + BYTE + BYTE + TIME + U64 + STAMP + TIME + BYTE,                     // SetChannel
    BYTE + 8 + KEYRING + U64 + TIME + TIME + (U32 + TIME) + U32 + TIME + BYTE + BYTE, // Provision
];

/// The longest event: number, time, channel, and what happened to whom.
const EVENT: usize = U32 + TIME + (BYTE + BYTE) + (BYTE + longer(U64 + HOLDER, BYTE + U16));

/// The longest body of every reply, by its number.
const REPLIES: [usize; 8] = [
    BYTE,                                                // Challenge
    BYTE + 3 * BYTE + U32 + BYTE + BYTE + FAULT,         // Status
    BYTE + RECORD + BYTE + VALUES + TIME + BYTE + FAULT, // Channel
    BYTE + Reason::ALL.len() * U32 + U32 + U32,          // Counters
    BYTE + RECORD + TIME,                                // Done
    BYTE + BYTE + (BYTE + RECORD) + TIME,                // Refused
    BYTE,                                                // Provisioned
    BYTE + BYTE + MAX_EVENTS * EVENT,                    // Log
];

/// What every payload has beside its body.
const AROUND: usize = HEADER_LEN + TAG_LEN + CHECK_LEN;

/// What a request's body has before it: perhaps a challenge. An answer always has one.
const BEFORE_REQUEST: usize = BYTE + CHALLENGE;

const _: () = assert!(AROUND + BEFORE_REQUEST + longest(&REQUESTS) <= MAX_PAYLOAD);
const _: () = assert!(AROUND + CHALLENGE + longest(&REPLIES) <= MAX_PAYLOAD);
// The figures of PROTOCOL.md.
const _: () =
    assert!(AROUND + BEFORE_REQUEST + longest(&REQUESTS) == 217 && AROUND + CHALLENGE + longest(&REPLIES) == 207);

// A drive and its answer as they are day by day: the gate's 16 383rd boot, fifty days after it; a token of etcd's after
// 268 million writes; a window of four minutes; one output that is on or off; a holder's name of full length.
const BOOT: usize = varint(16_383);
const TICK: usize = varint(50 * 86_400 * 1_000_000);
const TOKEN: usize = varint(268_000_000);
const WINDOW: usize = varint(240_000_000);
/// A payload this short is stuffed with one byte; two zeros stand around it.
const LINE: usize = AROUND + 3;
const DRIVE: usize = BYTE + BOOT + TICK + BYTE + BYTE + BYTE + TOKEN + WINDOW + (BYTE + BYTE);
const DONE: usize = BOOT + TICK + BYTE + BYTE + TOKEN + BYTE + HOLDER + BYTE + WINDOW;
const _: () = assert!(LINE + DRIVE <= 80 && LINE + DONE <= 96);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, What};
    use crate::frame::MAX_FRAME;
    use crate::key::{Keyring, Role};
    use crate::message::{
        Answer, Cause, Challenge, ChannelState, ChannelStatus, Counters, Fault, GateStatus, Refused, Reply, Request,
        Sealed, Values, Version,
    };
    use crate::provisioning::{Authority, ChannelConfig, GateConfig, OutputConfig, SafeAction};
    use crate::seal::{GateId, Header, Nonce, seal};
    use fencegate::{Drift, Duration, Epoch, FenceRecord, Instant, RaiseBudget, Token};

    const CHANNEL: u8 = u8::MAX;
    const EPOCH: Epoch = Epoch(u32::MAX);
    const LONG: Duration = Duration::from_micros(u64::MAX);
    const CHALLENGED: Challenge = Challenge { boot: u32::MAX, tick: u64::MAX };

    fn token() -> Token {
        Token::new(u64::MAX).unwrap()
    }

    fn holder() -> HolderId {
        HolderId::new("sixteen-bytes-xx").unwrap()
    }

    fn values() -> Values {
        [i32::MIN; MAX_OUTPUTS + 1].into_iter().collect()
    }

    fn record() -> FenceRecord {
        FenceRecord { epoch: EPOCH, token: u64::MAX, holder: Some(holder()), released: true }
    }

    /// Every request with all of its fields at their longest, by its number.
    fn requests() -> [Request; REQUESTS.len()] {
        let (channel, epoch, token) = (CHANNEL, EPOCH, token());
        let output = OutputConfig {
            min: i32::MIN,
            max: i32::MIN,
            safe: i32::MIN,
            powered: true,
            action: SafeAction::Hold { value: i32::MIN, time: LONG },
            least_on: LONG,
            least_off: LONG,
            feedback: Some(LONG),
        };
        let what = ChannelConfig {
            authority: Authority::Own,
            outputs: u8::MAX,
            reaction: LONG,
            token_jump: u64::MAX,
            epoch,
            floor: u64::MAX,
            lock_delay: LONG,
            rearm_after_window: true,
        };
        let key = || Key::new([u8::MAX; Key::LEN]);
        let gate = GateConfig {
            gate: GateId([u8::MAX; 8]),
            keys: Keyring { root: key(), operator: key(), instance: u64::MAX, id: u8::MAX },
            drift: Drift::from_ppb(u64::MAX),
            lateness: LONG,
            longest_window: LONG,
            raises: RaiseBudget { burst: u32::MAX, every: LONG },
            epoch_jump: u32::MAX,
            warning: LONG,
        };
        [
            Request::Challenge,
            Request::Status,
            Request::Channel { channel },
            Request::Counters,
            Request::Raise { channel, epoch, token },
            Request::Drive { channel, epoch, token, window: LONG, values: values() },
            Request::Release { channel, epoch, token },
            Request::Epoch { channel, epoch, floor: u64::MAX },
            Request::Rearm { channel },
            Request::Acquire { channel, ttl: LONG },
            Request::Renew { channel, epoch, token },
            Request::Log { from: u32::MAX },
            Request::SetOutput { output: u8::MAX, config: output },
            Request::SetChannel { channel, config: what },
            Request::Provision { config: gate, channels: u8::MAX, outputs: u8::MAX },
        ]
    }

    /// Every reply with all of its fields at their longest, by its number.
    fn replies() -> [Reply; REPLIES.len()] {
        let status = GateStatus {
            firmware: Version(u8::MAX, u8::MAX, u8::MAX),
            boots: u32::MAX,
            channels: u8::MAX,
            mended: u8::MAX,
            fault: Some(Fault::Expired),
        };
        let channel = ChannelStatus {
            record: record(),
            state: ChannelState::Fault,
            values: values(),
            window_left: LONG,
            cause: Cause::Fault,
            fault: Some(Fault::Expired),
        };
        let counters = Counters { reasons: [u32::MAX; Reason::ALL.len()], noise: u32::MAX, forged: u32::MAX };
        let event = Event {
            number: u32::MAX,
            at: Instant::from_micros(u64::MAX),
            channel: Some(CHANNEL),
            what: What::Granted { token: u64::MAX, holder: holder() },
        };
        [
            Reply::Challenge,
            Reply::Status(status),
            Reply::Channel(channel),
            Reply::Counters(counters),
            Reply::Done { record: record(), window_left: LONG },
            Reply::Refused(Refused { reason: Reason::Presence, by: Some(record()), wait: LONG }),
            Reply::Provisioned,
            Reply::Log([event; MAX_EVENTS].into_iter().collect()),
        ]
    }

    fn len(body: &impl serde::Serialize) -> usize {
        postcard::to_slice(body, &mut [0; 512]).unwrap().len()
    }

    fn header() -> Header {
        Header { answer: false, role: Role::Holder(holder()), key_id: 1, gate: GateId([1; 8]), nonce: Nonce([1; 8]) }
    }

    fn on_the_line(body: &impl serde::Serialize) -> usize {
        seal(&header(), &Key::new([9; 32]), body).unwrap().0.len()
    }

    #[test]
    fn the_longest_of_every_message_is_as_long_as_was_reckoned() {
        for (request, reckoned) in requests().into_iter().zip(REQUESTS) {
            assert_eq!(len(&request), reckoned, "{request:?}");
            let sealed = Sealed { challenge: Some(CHALLENGED), request };
            assert_eq!(len(&sealed), BEFORE_REQUEST + reckoned);
            assert!(on_the_line(&sealed) <= MAX_FRAME);
        }
        for (reply, reckoned) in replies().into_iter().zip(REPLIES) {
            assert_eq!(len(&reply), reckoned, "{reply:?}");
            let answer = Answer { challenge: CHALLENGED, reply };
            assert_eq!(len(&answer), CHALLENGE + reckoned);
            assert!(on_the_line(&answer) <= MAX_FRAME);
        }
    }

    #[test]
    fn no_event_is_longer_than_that_of_a_grant() {
        let (token, holder) = (u64::MAX, holder());
        for what in [
            What::Booted { boots: u32::MAX },
            What::Mended { records: u8::MAX },
            What::Raised { token, holder },
            What::Driven { token, holder },
            What::Warned,
            What::Ended,
            What::Released { token, holder },
            What::Epoch { epoch: EPOCH },
            What::Granted { token, holder },
            What::Refused { reason: Reason::Presence, times: u16::MAX },
            What::Fault { fault: Fault::Expired },
            What::Rearmed,
            What::Provisioned,
        ] {
            let at = Instant::from_micros(u64::MAX);
            assert!(len(&Event { number: u32::MAX, at, channel: Some(CHANNEL), what }) <= EVENT, "{what:?}");
        }
    }

    #[test]
    fn no_way_to_a_safe_value_is_longer_than_a_hold() {
        let hold = len(&SafeAction::Hold { value: i32::MIN, time: LONG });
        for action in [SafeAction::AtOnce, SafeAction::Keep { time: LONG }, SafeAction::Ramp { time: LONG }] {
            assert!(len(&action) < hold, "{action:?}");
        }
    }

    #[test]
    fn a_drive_and_its_answer_have_the_reckoned_length_on_the_line() {
        let challenge = Challenge { boot: 16_383, tick: 50 * 86_400 * 1_000_000 };
        let token = Token::new(268_000_000).unwrap();
        let window = Duration::from_secs(240);
        let values = [1].into_iter().collect();
        let request = Request::Drive { channel: 0, epoch: Epoch(0), token, window, values };
        let drive = on_the_line(&Sealed { challenge: Some(challenge), request });
        assert_eq!((drive, drive <= 80), (LINE + DRIVE, true));
        let record = FenceRecord { epoch: Epoch(0), token: token.get(), holder: Some(holder()), released: false };
        let done = on_the_line(&Answer { challenge, reply: Reply::Done { record, window_left: window } });
        assert_eq!((done, done <= 96), (LINE + DONE, true));
    }
}
