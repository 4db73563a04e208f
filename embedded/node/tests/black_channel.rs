//! What a hostile or merely bad cable can do, and what answers it: one test a row of the design's table.

mod bench;

use bench::cable::{flipped, frame, payload};
use bench::random::{Again, Random, seeds, soak};
use bench::*;
use fencegate::{Duration, Epoch, FenceRecord, Instant, Token};
use fencegate_node::Remembered;
use fencegate_wire::{
    Challenge, ChannelState, Fault, GateId, Provisioning, Reason, Reply, Request, Role, SafeAction, Sealed, seal,
};

/// One frame of each kind of request, and a gate that would do what it says.
struct Kind {
    bench: Bench,
    role: Role,
    request: Request,
    frame: Vec<u8>,
    /// How many frames it was not to hear.
    unheard: u32,
}

impl Kind {
    fn new(role: Role, request: Request, prepare: impl FnOnce(&mut Bench)) -> Self {
        let mut bench = Bench::new();
        prepare(&mut bench);
        let challenge = bench.challenge(role);
        let frame = bench.seal(role, request.changes().then_some(challenge), request.clone());
        Self { bench, role, request, frame, unheard: 0 }
    }

    /// All fifteen.
    fn all() -> Vec<Self> {
        let (a, operator) = (holder("a"), Role::Operator);
        let nothing = |_: &mut Bench| ();
        let beside = |b: &mut Bench| b.inputs.presence = true;
        let whole = provisioning();
        let config = whole.gate.clone();
        let kinds = vec![
            Self::new(a, Request::Challenge, nothing),
            Self::new(Role::Observer, Request::Status, nothing),
            Self::new(Role::Observer, Request::Channel { channel: 2 }, nothing),
            Self::new(operator, Request::Counters, nothing),
            Self::new(a, raise(0, 33), nothing),
            Self::new(a, drive(0, 33, 2_000, &[1]), nothing),
            Self::new(a, release(0, 33), |b| assert_eq!(b.ask(a, drive(0, 33, 60_000, &[1])), None)),
            Self::new(operator, epoch(0, 1, 0), nothing),
            Self::new(operator, Request::Rearm { channel: 0 }, |b| {
                for level in [true, false] {
                    b.inputs.inhibit = level;
                    b.poll();
                }
            }),
            Self::new(a, acquire(1, 10_000), nothing),
            Self::new(a, renew(1, 1), |b| assert_eq!(b.ask(a, acquire(1, 10_000)), None)),
            Self::new(operator, Request::Log { from: 0 }, nothing),
            Self::new(operator, Request::SetOutput { output: 0, config: whole.outputs[0].clone() }, beside),
            Self::new(operator, Request::SetChannel { channel: 0, config: whole.channels[0].clone() }, beside),
            Self::new(operator, Request::Provision { config, channels: 3, outputs: 4 }, |b| {
                b.inputs.presence = true;
                assert!(provisioning().requests().take(7).all(|piece| b.ask(operator, piece).is_none()));
            }),
        ];
        let number = |kind: &Self| postcard::to_slice(&kind.request, &mut [0; 250]).unwrap()[0];
        let mut numbers: Vec<u8> = kinds.iter().map(number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..15).collect::<Vec<_>>(), "one of each");
        kinds
    }

    /// Everything of the gate that a frame could have changed.
    fn state(&self) -> (Vec<i32>, Vec<Remembered>, u64, Option<u64>) {
        let b = &self.bench;
        (b.pins(), b.marks.clone(), b.stores, b.deadline())
    }

    /// Whatever `bytes` are, the gate stays silent and as it is.
    fn must_not_hear(&mut self, bytes: &[u8], what: &str) {
        self.unheard += 1;
        let before = self.state();
        assert_eq!(self.bench.hear(bytes), Vec::<Vec<u8>>::new(), "{:?}, {what}", self.request);
        assert_eq!(self.state(), before, "{:?}, {what}", self.request);
    }

    /// And then does what it was asked in the first place: nothing of it was used up.
    fn must_be_done_at_last(mut self) -> u32 {
        let answer = self.bench.send(self.role, self.frame.clone()).expect("an answer");
        assert!(!matches!(answer.reply, Reply::Refused(_)), "{:?}: {:?}", self.request, answer.reply);
        self.unheard
    }
}

/// One frame of each kind, damaged in many ways one after the other and never heard; whole, it is done at last.
fn damaged(what: &str, damage: impl Fn(&mut Kind)) {
    let unheard = Kind::all().into_iter().map(|mut kind| {
        damage(&mut kind);
        kind.must_be_done_at_last()
    });
    println!("counted: {} {what}", unheard.sum::<u32>());
}

#[test]
fn corruption() {
    damaged("frames with a flipped bit", |kind| {
        let whole = kind.frame.clone();
        for bit in 8..8 * (whole.len() - 1) {
            kind.must_not_hear(&flipped(&whole, bit), &format!("bit {bit}"));
        }
        // And where the check value has been made to fit, so that nothing but the authenticator is left.
        let bytes = payload(&whole);
        let forged = kind.bench.silent().1;
        for bit in 0..8 * bytes.len() {
            kind.must_not_hear(&frame(&flipped(&bytes, bit)), &format!("forged bit {bit}"));
        }
        assert!(kind.bench.silent().1 - forged >= 8 * 33, "gate, nonce, tag and more had no other fault than the tag");
    });
}

#[test]
fn corruption_that_cuts_frames_short() {
    damaged("frames cut short or made longer", |kind| {
        let whole = kind.frame.clone();
        for at in 1..whole.len() - 1 {
            kind.must_not_hear(&[&whole[..at], &[0]].concat(), &format!("the first {at} bytes"));
            kind.must_not_hear(&[&[0], &whole[at + 1..]].concat(), &format!("all but the first {at} bytes"));
        }
        let bytes = payload(&whole);
        for at in 0..bytes.len() {
            kind.must_not_hear(&frame(&bytes[..at]), &format!("{at} bytes with a check value"));
            kind.must_not_hear(&frame(&[&bytes[..], &bytes[..=at]].concat()), &format!("{at} bytes more"));
        }
    });
}

#[test]
fn corruption_that_splices_frames() {
    let mut kinds = Kind::all();
    for n in 0..kinds.len() {
        for other in 0..kinds.len() {
            // Sealed for the same gate, and with a nonce of its own; of the same kind too.
            let (role, request) = (kinds[other].role, kinds[other].request.clone());
            let kind = &mut kinds[n];
            let challenge = kind.bench.challenge(role);
            let tail = kind.bench.seal(role, request.changes().then_some(challenge), request);
            let (head, tail) = (payload(&kind.frame), payload(&tail));
            // Every beginning of the one before every end of the other: as long as a frame was, longer and shorter.
            for at in 1..=head.len() {
                for from in 0..tail.len() {
                    let spliced = [&head[..at], &tail[from..]].concat();
                    if spliced != head && spliced != tail {
                        kind.must_not_hear(&frame(&spliced), &format!("{at} bytes and {from} off"));
                    }
                }
            }
        }
    }
    let unheard: u32 = kinds.into_iter().map(Kind::must_be_done_at_last).sum();
    println!("counted: {unheard} spliced frames");
}

/// Junk of any kind, with whole frames in it: the gate hears the frames and nothing else.
#[test]
fn corruption_and_the_next_frame_is_heard() {
    for seed in seeds(4) {
        let _again = Again { seed, test: "black_channel" };
        let mut random = Random(seed);
        let mut b = Bench::new();
        for n in 0..if soak() { 100_000 } else { 500 } {
            let junk: Vec<u8> = (0..random.below(300)).map(|_| random.next().to_le_bytes()[0]).collect();
            assert!(b.hear(&[&junk[..], &[0]].concat()).is_empty());
            let request = b.seal(Role::Observer, None, Request::Status);
            let answers = b.hear(&[&junk[..], &request].concat());
            assert!(answers.into_iter().any(|answer| b.open(Role::Observer, answer).is_some()), "after junk {n}");
        }
        assert_eq!((b.pins(), b.stores, b.silent().1), (vec![0; 4], 0, 0));
        assert!(b.silent().0 > 500, "seed {seed}: counted as noise");
    }
}

#[test]
fn repetition() {
    for mut kind in Kind::all() {
        let first = kind.bench.send(kind.role, kind.frame.clone()).expect("an answer").reply;
        let (pins, marks, stores, deadline) = kind.state();
        for _ in 0..3 {
            kind.bench.now += MS;
            let again = kind.bench.send(kind.role, kind.frame.clone()).expect("answered again").reply;
            if kind.request.changes() {
                let record = |reply: &Reply| match reply {
                    Reply::Done { record, .. } => Some(*record),
                    Reply::Provisioned => None,
                    other => panic!("{other:?}"),
                };
                assert_eq!(record(&again), record(&first));
            }
            assert_eq!(kind.state(), (pins.clone(), marks.clone(), stores, deadline), "{:?} again", kind.request);
        }
    }
}

#[test]
fn wrong_order_and_insertion() {
    let mut b = Bench::new();
    let challenges: Vec<Challenge> = (0..4).map(|_| b.challenge(holder("a"))).collect();
    assert_eq!(b.ask_with(holder("a"), challenges[1], drive(0, 33, 2_000, &[1])), None);
    for (challenge, request) in [
        (challenges[0], drive(0, 33, 2_000, &[0])), // overtaken by the one above
        (challenges[1], drive(0, 33, 2_000, &[0])), // the same challenge twice under one stamp
        (challenges[1], release(0, 33)),
        (challenges[1], raise(0, 33)),
    ] {
        assert_eq!(b.ask_with(holder("a"), challenge, request), Some(Reason::Replay));
        assert_eq!(b.pins()[0], 1);
    }
    assert_eq!(b.ask_with(holder("a"), challenges[3], drive(0, 33, 2_000, &[0])), None);
    assert_eq!(b.ask_with(holder("a"), challenges[2], drive(0, 33, 2_000, &[1])), Some(Reason::Replay));
    assert_eq!(b.pins()[0], 0, "the last word stands");
    // A raise that was stored, and its drive too late: that challenge is used too.
    let mut b = Bench::new();
    b.storing = Some(300 * MS);
    let challenge = b.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), drive(0, 33, 200, &[1]));
    assert_eq!(verdict(&b.send(holder("a"), frame.clone()).unwrap().reply), Some(Reason::Expired));
    assert_eq!(b.ask_with(holder("a"), challenge, drive(0, 33, 2_000, &[1])), Some(Reason::Replay));
    assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), Some(Reason::Expired), "as it was answered before");
    assert_eq!((b.status(0).record, b.pins()[0]), (fence(0, 33, "a"), 0));
}

#[test]
fn delay() {
    // w′ of two seconds, counted from the challenge: 2 s − 100 ppm − L.
    let life = 2_000_000 - 200 - 5_000;
    for (held_back, done) in [(life - 1, None), (life, Some(Reason::Expired)), (59_999_999, Some(Reason::Expired))] {
        let mut b = Bench::new();
        let challenge = b.challenge(holder("a"));
        let frame = b.seal(holder("a"), Some(challenge), drive(0, 33, 2_000, &[1]));
        b.storing = Some(0); // the store takes no time, so that the last microsecond can be seen
        b.at_us(challenge.tick + held_back);
        assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), done, "held back for {held_back} µs");
        assert_eq!(b.pins()[0], i32::from(done.is_none()));
        assert_eq!(b.deadline(), done.is_none().then_some(challenge.tick + life));
    }
    // What carries no window dies with the longest one.
    for (held_back, done) in [(59_999_999, None), (60_000_000, Some(Reason::Replay))] {
        let mut b = Bench::new();
        let challenge = b.challenge(holder("a"));
        let frame = b.seal(holder("a"), Some(challenge), raise(0, 33));
        b.at_us(challenge.tick + held_back);
        assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), done);
        assert_eq!(b.stores, u64::from(done.is_none()));
    }
}

#[test]
fn loss() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), None);
    let end = b.deadline().unwrap();
    b.run_to_us(end - 1);
    assert_eq!(b.pins()[0], 1);
    b.run_to_us(end);
    assert_eq!(b.pins()[0], 0, "nobody has said anything since");
}

#[test]
fn masquerade() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 60_000, &[1])), None);
    let requests = [drive(0, 34, 2_000, &[0]), release(0, 33), epoch(0, 1, 0), Request::Status];
    let speakers = [holder("a"), holder("b"), Role::Operator, Role::Observer];
    for speaker in speakers {
        for key in speakers.into_iter().filter(|key| *key != speaker) {
            for request in requests.clone() {
                let challenge = b.challenge(key);
                let (header, key) = (b.header(speaker), b.keys(key).request);
                let sealed = Sealed { challenge: Some(challenge), request };
                let (_, forged) = b.silent();
                assert!(b.send(speaker, seal(&header, &key, &sealed).unwrap().0.to_vec()).is_none());
                assert_eq!((b.silent().1, b.pins()[0]), (forged + 1, 1), "unanswered, and counted");
            }
        }
    }
    assert_eq!(b.status(0).record, fence(0, 33, "a"));
}

#[test]
fn reflection() {
    for mut kind in Kind::all() {
        let answers = kind.bench.hear(&kind.frame.clone());
        assert_eq!(answers.len(), 1);
        let (_, forged) = kind.bench.silent();
        kind.must_not_hear(&answers[0], "its own answer");
        // The same bytes as if a host had said them: only the tag is left to tell.
        let mut bytes = payload(&answers[0]);
        assert_ne!(bytes[1] & 0x80, 0);
        bytes[1] &= 0x7f;
        kind.must_not_hear(&frame(&bytes), "its own answer as a request");
        let mut asked = payload(&kind.frame);
        asked[1] |= 0x80;
        kind.must_not_hear(&frame(&asked), "the request as an answer");
        // Whoever has the key of the requests has not thereby that of the answers.
        let (header, key) = (kind.bench.header(kind.role).reply(), kind.bench.keys(kind.role).request);
        let challenge = kind.request.changes().then(|| kind.bench.challenge(kind.role));
        let sealed = seal(&header, &key, &Sealed { challenge, request: kind.request.clone() }).unwrap().0;
        kind.must_not_hear(&sealed, "a request that says of itself that it is an answer");
        assert_eq!(kind.bench.silent().1, forged + 4, "each counted");
    }
    // The other way: a host does not take its own request for the gate's answer.
    let mut b = Bench::new();
    let request = b.seal(holder("a"), None, Request::Challenge);
    assert!(b.open(holder("a"), request).is_none());
}

#[test]
fn wrong_address() {
    let mut b = Bench::new();
    // Another gate that happens to have the same keys.
    let mut other = Bench::with(|p| p.gate.gate = GateId(*b"press-08"));
    let challenge = other.challenge(holder("a"));
    assert_eq!(b.challenge(holder("a")), challenge, "and the same time of day");
    let frame = b.seal(holder("a"), Some(challenge), drive(0, 33, 2_000, &[1]));
    assert!(other.send(holder("a"), frame.clone()).is_none());
    assert_eq!((other.silent().1, other.pins()[0]), (1, 0));
    // The channel is inside the authenticated part: what was meant for one moves no other.
    assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), None);
    assert_eq!(b.pins(), [1, 0, 0, 0]);
    assert_eq!(b.ask(holder("a"), drive(3, 33, 2_000, &[1])), Some(Reason::BadChannel));
    assert_eq!(b.ask(holder("a"), drive(2, 33, 2_000, &[1])), Some(Reason::Range), "two outputs, one value");
}

#[test]
fn replay_across_a_reboot() {
    let mut kinds = Kind::all();
    for kind in kinds.iter_mut().filter(|kind| kind.request.changes()) {
        kind.bench.power_cut();
        // The new boot has issued challenges of the same ticks, and more.
        for _ in 0..100 {
            kind.bench.challenge(kind.role);
        }
        let before = kind.state();
        let reply = kind.bench.send(kind.role, kind.frame.clone()).expect("an answer").reply;
        // What a provisioning puts together was forgotten with the boot, and `range` comes before `replay`.
        let forgotten = matches!(kind.request, Request::Provision { .. });
        let reason = if forgotten { Reason::Range } else { Reason::Replay };
        assert_eq!(verdict(&reply), Some(reason), "{:?}", kind.request);
        assert_eq!(kind.state(), before);
        if forgotten {
            assert!(provisioning().requests().take(7).all(|piece| kind.bench.ask(kind.role, piece).is_none()));
            let reply = kind.bench.send(kind.role, kind.frame.clone()).expect("an answer").reply;
            assert_eq!(verdict(&reply), Some(Reason::Replay), "with all its pieces");
        }
    }
    // Under the very stamp that is in force, with a window that would still be open.
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), raise(0, 33)), None);
    let challenge = b.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), drive(0, 33, 60_000, &[1]));
    b.power_cut();
    b.at_us(challenge.tick + 1);
    b.challenge(holder("a"));
    assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), Some(Reason::Replay));
    // A wiped boot counter meets a new provisioning instance, whose keys are others.
    let mut wiped = Bench::with(|p| p.gate.keys.instance += 1);
    let old = b.line.clone();
    assert!(old.into_iter().all(|frame| wiped.send(holder("a"), frame).is_none()));
}

/// The watchdog is loaded with what [`fencegate_node::Gate::hang_by`] leaves: a hang at any instant ends with the window, as
/// a deadline does that is kept as late as may be. Where the outputs drop by themselves the window is over without it, and
/// it waits for a store more.
#[test]
fn hang() {
    let by = |b: &Bench| b.gate.hang_by().map(Instant::as_micros);
    for drops in [false, true] {
        let made: fn(Duration, fn(&mut Provisioning)) -> Bench =
            if drops { Bench::that_drops } else { Bench::with_board };
        let after = if drops { WORST_STORE.as_micros() } else { 0 };
        let mut b = made(WORST_STORE, |_| ());
        assert_eq!(by(&b), None, "nothing is driven");
        let driven = |b: &mut Bench, channel, window: u32, values: &[i32]| {
            let challenge = b.challenge(holder("a"));
            assert_eq!(b.ask_with(holder("a"), challenge, drive(channel, 1, window, values)), None);
            let window = u64::from(window) * MS;
            challenge.tick + window - window / 10_000 + after // less 100 ppm
        };
        let long = driven(&mut b, 0, 10_000, &[1]);
        assert_eq!(by(&b), Some(long));
        let short = driven(&mut b, 2, 1_000, &[1, 1]);
        assert_eq!(by(&b), Some(short), "the shortest counts");
        // Whatever else comes, fed at any instant, it ends with the window.
        for ms in (0..990).step_by(10) {
            b.at(ms);
            b.hear(b"\0junk\0");
            b.status(0);
            assert_eq!(b.ask(holder("b"), drive(0, 1, 60_000, &[1])), Some(Reason::WrongHolder));
            assert_eq!(by(&b), Some(short));
        }
        b.at_us(short - after - 5 * MS);
        assert_eq!((b.pins(), by(&b)), (vec![1, 0, 0, 0], Some(long)), "the next one");
        let longer = driven(&mut b, 0, 10_000, &[0]);
        assert_eq!(by(&b), Some(longer), "a window runs, whatever the value");
        // What the watchdog does.
        b.power_cut();
        assert_eq!((b.pins(), by(&b)), (vec![0; 4], None), "boot comes up safe");
        // A safe action that hangs half-way ends with the time that was charged for it, by the processor on any board.
        let mut b = made(WORST_STORE, |p| {
            p.outputs[0].action = SafeAction::Keep { time: Duration::from_millis(300) };
        });
        assert_eq!(b.ask(holder("a"), drive(0, 1, 10_000, &[1])), None);
        assert_eq!(b.ask(holder("a"), release(0, 1)), Some(Reason::Busy));
        assert_eq!(by(&b), Some(b.now + 300 * MS + 5 * MS));
    }
}

#[test]
fn lost_storage() {
    let mut b = Bench::new();
    b.marks[0] = Remembered::Lost(fence(0, 40, "a"));
    b.power_cut();
    assert_eq!((b.status(0).state, b.status(0).fault), (ChannelState::Fault, Some(Fault::Storage)));
    assert_eq!(b.gate_status().fault, Some(Fault::Storage), "and says why");
    for request in [raise(0, 41), drive(0, 41, 2_000, &[1]), release(0, 40), release(0, 41)] {
        assert_eq!(b.ask(holder("a"), request), Some(Reason::Storage));
    }
    b.run_to_us(100_000_000);
    assert_eq!(b.ask(Role::Operator, Request::Rearm { channel: 0 }), Some(Reason::Storage), "no waiting cures it");
    assert_eq!((b.stores, b.pins()[0]), (0, 0));
    assert_eq!(b.ask(Role::Operator, epoch(0, 1, 0)), None, "the operator does");
    let in_1 = Request::Drive {
        channel: 0,
        epoch: Epoch(1),
        token: Token::new(1).unwrap(),
        window: Duration::from_secs(2),
        values: [1].into_iter().collect(),
    };
    assert_eq!(b.ask(holder("a"), in_1), None);
}

/// A store that fails half-way through the part's life: nothing acts under what is not stored. A restart reads the flash anew,
/// and finds the stamp that was or the one that was to be, as both copies agree or were mended: the fault is over then, and
/// the output stays safe until somebody drives it.
#[test]
fn worn_storage() {
    for (request, half) in [raise(0, 34), drive(0, 34, 2_000, &[1]), release(0, 33)]
        .into_iter()
        .flat_map(|request| [false, true].map(|half| (request.clone(), half)))
    {
        let mut b = Bench::new();
        assert_eq!(b.ask(holder("a"), drive(0, 33, 60_000, &[1])), None);
        (b.storing, b.half) = (None, half);
        assert_eq!(b.ask(holder("a"), request.clone()), Some(Reason::Storage), "{request:?}");
        assert_eq!((b.pins()[0], b.status(0).state), (0, ChannelState::Fault));
        assert_eq!(b.ask(holder("a"), drive(0, 33, 60_000, &[1])), Some(Reason::Storage));
        assert_eq!(b.ask(holder("a"), drive(2, 1, 60_000, &[1, 1])), Some(Reason::Storage));
        assert_eq!(b.pins(), [0; 4]);

        b.storing = Some(1);
        b.power_cut();
        assert_eq!((b.status(0).state, b.status(0).fault), (ChannelState::Safe, None), "{request:?}");
        // What was acknowledged, or above it: here whether the one copy that is mended from had it.
        let stands = match request {
            _ if !half => fence(0, 33, "a"),
            Request::Release { .. } => FenceRecord { released: true, ..fence(0, 33, "a") },
            _ => fence(0, 34, "a"),
        };
        assert_eq!(b.status(0).record, stands, "{request:?}");
        assert_eq!(b.ask(holder("b"), raise(0, 32)), Some(Reason::Stale), "nothing older comes back");
        assert_eq!(b.pins(), [0; 4]);
        assert_eq!(b.ask(holder("a"), drive(0, 35, 60_000, &[1])), None);
        assert_eq!(b.pins()[0], 1);
    }
}
