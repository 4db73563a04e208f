//! What people report of the dead man's switches they have, each as a test that this one does not do it.

mod bench;

use bench::random::{Again, Random, seeds};
use bench::*;
use fencegate::Duration;
use fencegate_node::Remembered;
use fencegate_wire::{Cause, Challenge, ChannelState, OutputConfig, Reason, Request, Role, SafeAction};

/// Something that happens to a gate.
type Deed = fn(&mut Bench);

const REARM: Request = Request::Rearm { channel: 0 };

/// "It only counts a command that changes something: the same value again, and it trips."
#[test]
fn equal_values_sent_again_keep_the_output_up_and_cost_no_flash() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    let stores = b.stores;
    for ms in (300..60_000).step_by(300) {
        b.run_to_us(ms * MS);
        assert_eq!(b.pins()[0], 1, "after {ms} ms");
        assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    }
    assert_eq!(b.stores, stores, "acting under the stamp in force writes nothing");
    b.run_to_us(61_000 * MS);
    assert_eq!(b.pins()[0], 0, "and when they end it lets go");
}

/// "Any traffic on the bus resets the time-out."
#[test]
fn only_a_valid_command_of_that_channel_feeds_it() {
    let feeders: [(&str, Deed); 11] = [
        ("silence", |_| ()),
        ("status", |b| drop((b.status(0), b.gate_status(), b.events(), b.silent()))),
        ("challenges", |b| assert_eq!(b.challenge(holder("a")).boot, 1)),
        ("junk", |b| assert!(b.hear(&[&[0x55; 300][..], &[0, 1, 2, 0]].concat()).is_empty())),
        ("forgeries", |b| {
            let challenge = b.challenge(holder("a"));
            let mut frame = b.seal(holder("a"), Some(challenge), drive(0, 1, 60_000, &[1]));
            frame[30] ^= 1;
            assert!(b.hear(&frame).is_empty());
        }),
        ("a stale command", |b| assert_eq!(b.ask(holder("a"), drive(0, 0xf, 60_000, &[1])), Some(Reason::Stale))),
        ("another holder's", |b| assert_eq!(b.ask(holder("b"), drive(0, 16, 60_000, &[1])), Some(Reason::WrongHolder))),
        ("a value out of range", |b| assert_eq!(b.ask(holder("a"), drive(0, 16, 60_000, &[2])), Some(Reason::Range))),
        ("a window that is over", |b| assert_eq!(b.ask(holder("a"), drive(0, 16, 1, &[1])), Some(Reason::Expired))),
        ("another channel's", |b| assert_eq!(b.ask(holder("a"), drive(2, 1, 60_000, &[1, 1])), None)),
        ("its own command once more", |b| {
            let frame = b.line[1].clone(); // the one that drives
            assert!(b.send(holder("a"), frame).is_some());
        }),
    ];
    for (what, feed) in feeders {
        let mut b = Bench::new();
        assert_eq!(b.ask(holder("a"), drive(0, 16, 2_000, &[1])), None);
        let end = b.deadline().unwrap();
        for us in (0..end).step_by(usize::try_from(50 * MS).unwrap()) {
            b.run_to_us(us);
            feed(&mut b);
            assert_eq!(b.pins()[0], 1, "{what} shortens nothing either");
        }
        b.run_to_us(end);
        assert_eq!(b.pins()[0], 0, "{what} fed it");
        assert_eq!(b.status(0).cause, Cause::Window);
    }
}

/// "The time-out begins with the first command": the first one of all has one, and before it everything is safe.
#[test]
fn it_is_armed_before_the_first_command() {
    let mut b = Bench::new();
    for ms in 0..100 {
        b.at(ms * 1_000);
        assert_eq!((b.pins(), b.status(0).state, b.status(0).cause), (vec![0; 4], ChannelState::Safe, Cause::Boot));
        if ms == 50 {
            assert_eq!(b.ask(holder("a"), raise(0, 1)), None, "a raise drives nothing");
        }
    }
    assert_eq!(b.ask(holder("a"), drive(0, 1, 500, &[1])), None);
    let now = b.now;
    b.run_to_us(now + 500 * MS);
    assert_eq!(b.pins()[0], 0);
}

/// "On a lost link it went to full speed."
#[test]
fn the_fall_back_is_never_more_power() {
    let ms = Duration::from_millis;
    let mut tried = 0;
    for (min, max) in [(0, 1), (0, 100), (-100, 100), (20, 100), (-100, -20), (i32::MIN, i32::MAX)] {
        for safe in [min, -20, 0, 20, max] {
            for action in [
                SafeAction::AtOnce,
                SafeAction::Keep { time: ms(100) },
                SafeAction::Hold { value: safe, time: ms(100) },
                SafeAction::Hold { value: max, time: ms(100) },
                SafeAction::Ramp { time: ms(100) },
            ] {
                let output = OutputConfig { min, max, safe, action, ..OutputConfig::switch() };
                if output.check().is_err() {
                    continue; // nobody has said that it may be more
                }
                for value in [min, min / 2 + max / 2, max, 0, 20, -20].into_iter().filter(|v| (min..=max).contains(v)) {
                    tried += 1;
                    let mut b = Bench::with(|p| p.outputs[0] = output.clone());
                    assert_eq!(b.pins()[0], safe);
                    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[value])), None);
                    let end = b.deadline().unwrap();
                    assert_eq!(b.pins()[0], value);
                    for us in (end..=end + 101 * MS).step_by(500) {
                        b.at_us(us);
                        let now = b.pins()[0];
                        assert!(now.unsigned_abs() <= value.unsigned_abs(), "{now} instead of {value}: {output:?}");
                    }
                    assert_eq!(b.pins()[0], safe);
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

/// "A time-out of 0 switches it off", "0xFFFF means for ever".
#[test]
fn a_request_for_no_time_out_does_not_exist() {
    let longest = 60_000_000 - 6_000 - 5_000; // the longest window, less 100 ppm, less L
    for window in [u64::MAX, u64::MAX - 1, i64::MAX as u64, u64::from(u32::MAX), 60_000_001, 60_000_000] {
        let mut b = Bench::new();
        let challenge = b.challenge(holder("a"));
        let mut request = drive(0, 1, 0, &[1]);
        let Request::Drive { window: w, .. } = &mut request else { unreachable!() };
        *w = Duration::from_micros(window);
        assert_eq!(b.ask_with(holder("a"), challenge, request), None);
        assert_eq!(b.deadline(), Some(challenge.tick + longest), "{window} µs is clamped");
        b.run_to_us(challenge.tick + longest - 1);
        assert_eq!(b.pins()[0], 1);
        b.run_to_us(challenge.tick + longest);
        assert_eq!(b.pins()[0], 0);
    }
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 1, 0, &[1])), Some(Reason::Expired), "zero is no time at all");
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 0, &[1])), Some(Reason::Expired));
    let now = b.now;
    b.run_to_us(now + 1_000 * MS);
    assert_eq!(b.pins()[0], 0, "nor did it switch the running one off");
}

/// "When the link came back it went on as before."
#[test]
fn the_last_command_never_comes_back_by_itself() {
    let ends: [(&str, Deed); 6] = [
        ("the window's end", |b| b.run_to_us(3_000 * MS)),
        ("an inhibit", |b| {
            for level in [true, false] {
                b.inputs.inhibit = level;
                b.poll();
            }
            assert_eq!(b.ask(Role::Operator, REARM), None);
        }),
        ("a boot", Bench::power_cut),
        ("a release", |b| assert_eq!(b.ask(holder("a"), release(0, 1)), None)),
        ("another's raise", |b| assert_eq!(b.ask(holder("b"), raise(0, 2)), None)),
        ("an epoch", |b| assert_eq!(b.ask(Role::Operator, epoch(0, 1, 0)), None)),
    ];
    for (what, end) in ends {
        let mut b = Bench::new();
        let spare = b.challenge(holder("a"));
        assert_eq!(b.ask(holder("a"), drive(0, 1, 2_000, &[1])), None);
        let driven = b.line.last().unwrap().clone();
        let held_back = b.seal(holder("a"), Some(spare), drive(0, 1, 60_000, &[1]));
        end(&mut b);
        assert_eq!(b.pins()[0], 0);
        for n in 0..200 {
            let now = b.now;
            b.run_to_us(now + 17 * MS);
            b.status(0);
            let frame = if n % 2 == 0 { driven.clone() } else { held_back.clone() };
            b.send(holder("a"), frame);
            assert_eq!(b.pins()[0], 0, "it came back after {what}");
        }
        assert_ne!(b.status(0).state, ChannelState::Driven);
    }
}

/// "A command in the very tick in which it expired kept it up." One whose own window is over in that tick does nothing. One
/// that came with a later challenge has a new window: it drives until that ends, and the old one has ended.
#[test]
fn expiry_and_a_command_in_the_same_tick_leave_it_safe() {
    // A drive that its challenge leaves so long: 100 ppm and L more.
    let lasting = |left: u64| {
        let window = ((left + 5 * MS) * 10_000).div_ceil(9_999);
        assert_eq!(window - window.div_ceil(10_000) - 5 * MS, left);
        let mut request = drive(0, 1, 0, &[1]);
        let Request::Drive { window: w, .. } = &mut request else { unreachable!() };
        *w = Duration::from_micros(window);
        request
    };
    let driven = || {
        let mut b = Bench::new();
        b.storing = Some(0);
        assert_eq!(b.ask(holder("a"), drive(0, 1, 2_000, &[1])), None);
        let end = b.deadline().unwrap();
        (b, end)
    };
    for polled in [false, true] {
        for challenged in [0, 1, MS, 1_900 * MS] {
            for (beyond, said) in [(0, Some(Reason::Expired)), (1, None)] {
                let (mut b, end) = driven();
                b.now += challenged;
                let challenge = b.challenge(holder("a"));
                let command = lasting(end + beyond - challenge.tick);
                b.now = end;
                if polled {
                    b.poll();
                    assert_eq!(b.pins()[0], 0, "the first poll of that tick lets go");
                }
                assert_eq!(b.ask_with(holder("a"), challenge, command), said, "it ends {beyond} µs later");
                assert_eq!(b.status(0).cause, Cause::Window, "the old window has ended, and that is written down");
                assert_eq!(b.pins()[0], i32::from(said.is_none()));
                b.at_us(end + beyond);
                assert_eq!(b.pins()[0], 0);
            }
        }
    }
    // So with what drives nothing: it keeps nothing up either.
    for command in [drive(0, 1, 2_000, &[0]), raise(0, 1), drive(0, 1, 0, &[1])] {
        let (mut b, end) = driven();
        let challenge = b.challenge(holder("a"));
        b.now = end;
        b.ask_with(holder("a"), challenge, command.clone());
        assert_eq!((b.pins()[0], b.status(0).cause), (0, Cause::Window), "{command:?}");
    }
    // With a challenge of that very tick, the whole of a new window.
    let (mut b, end) = driven();
    b.now = end;
    assert_eq!(b.ask(holder("a"), drive(0, 1, 2_000, &[1])), None);
    assert_eq!((b.pins()[0], b.status(0).cause), (1, Cause::Window));
    assert!(b.deadline().unwrap() >= end + 1_994 * MS);
}

/// "After 49.7 days it never let go any more." 2³¹ and 2³² µs are 36 and 72 minutes; ms would be 25 and 50 days.
#[test]
fn the_ticks_wrap_changes_nothing() {
    let story = |start: u64| {
        let mut b = Bench::booted_at(start, |p| {
            p.gate.raises.burst = 1_000;
            p.outputs[0].least_on = Duration::from_millis(50);
            p.outputs[2].action = SafeAction::Ramp { time: Duration::from_millis(300) };
            p.outputs[3].feedback = Some(Duration::from_millis(40));
        });
        let mut told = vec![];
        let mut random = Random(1);
        let mut old: Vec<Challenge> = vec![];
        for _ in 0..500 {
            let now = b.now;
            b.run_to_us(now + random.below(40 * MS));
            old.push(b.challenge(holder("a")));
            let challenge = random.pick(&old[old.len().saturating_sub(4)..]);
            let window = 10 + u32::try_from(random.below(400)).unwrap();
            let value = i32::from(random.once_in(2));
            // The stamp in force on each channel, or now and then the next one.
            let token = |b: &Bench, channel: usize, next: bool| match b.marks[channel] {
                Remembered::Mark(mark) => mark.mark.token.max(1) + u64::from(next),
                Remembered::Lost(_) => unreachable!(),
            };
            let next = random.once_in(3);
            let request = match random.below(10) {
                0..3 => drive(0, token(&b, 0, next), window, &[value]),
                3..5 => drive(2, token(&b, 2, next), window, &[value, 0]),
                5 => acquire(1, 200 + window),
                6..8 => drive(1, token(&b, 1, false), window, &[value]),
                8 => renew(1, token(&b, 1, false)),
                _ => release(2, token(&b, 2, false)),
            };
            let said = b.ask_with(holder("a"), challenge, request.clone());
            let left = b.deadline().map(|at| at - b.now);
            told.push(format!("{} {request:?}: {said:?} {:?} {left:?}", b.now - start, b.pins()));
        }
        told
    };
    let once = story(1 << 20);
    let count = |word: &str| once.iter().filter(|line| line.contains(word)).count();
    for word in ["None [1", "None [0, 1", "1, 0] ", "Expired", "Replay", "Rate", "Released"] {
        assert!(count(word) > 2, "{word}: {once:#?}");
    }
    for wrap in [1 << 31, 1 << 32, 1_000 << 31, 1_000 << 32, 1 << 53, 1 << 63] {
        for before in [0, 1, 300 * MS, 1_700 * MS] {
            assert_eq!(story(wrap - before), once, "{before} µs before {wrap}");
        }
    }
    assert_eq!(story(u64::MAX - 100_000 * MS), once, "while the clock still has a longest window ahead of it");
}

/// At its very end the clock has no later instant: whatever would end after it does not begin.
#[test]
fn at_the_end_of_the_clock_nothing_is_driven() {
    for left in [0, 1, 2, 3, MS, 1_000 * MS, 1_994 * MS] {
        let mut b = Bench::booted_at(u64::MAX - left, |_| ());
        b.storing = Some(0);
        let challenge = b.challenge(holder("a"));
        let said = b.ask_with(holder("a"), challenge, drive(0, 1, 2_000, &[1]));
        assert_eq!((said, b.pins()[0]), (Some(Reason::Expired), 0), "{left} µs before the end");
        let held = b.reply(holder("a"), acquire(1, 2_000));
        assert!(verdict(&held).is_some(), "nor is a lease granted: {held:?}");
    }
    let mut b = Bench::booted_at(u64::MAX - 10_000 * MS, |_| ());
    assert_eq!(b.ask(holder("a"), drive(0, 1, 9_000, &[1])), None);
    b.now = u64::MAX;
    b.poll();
    assert_eq!(b.pins()[0], 0, "past the end everything is over");
}

/// "The queue emptied itself into the drive when the emergency stop was released", and without any stop as well.
#[test]
fn five_hundred_queued_commands_in_a_burst() {
    for seed in seeds(3) {
        let _again = Again { seed, test: "reports" };
        let mut random = Random(seed);
        for stop in [true, false] {
            let mut b = Bench::new();
            assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
            let mut queue = vec![];
            for _ in 0..500 {
                let challenge = b.challenge(holder("a"));
                let window = 100 + u32::try_from(random.below(900)).unwrap();
                queue.push(b.seal(holder("a"), Some(challenge), drive(0, 1 + random.below(3), window, &[1])));
                b.now += random.below(4);
            }
            let end = b.deadline().unwrap();
            if stop {
                b.inputs.inhibit = true;
                b.poll();
                b.inputs.inhibit = false;
                assert_eq!(b.ask(Role::Operator, REARM), None);
            } else {
                b.run_to_us(end + 1_000 * MS); // the line was down for longer than any of their windows
            }
            let stores = b.stores;
            let burst = queue.concat();
            let answers = b.hear(&burst);
            assert_eq!(
                (answers.len(), b.pins()[0], b.stores),
                (500, 0, stores),
                "nothing was done, and each was told so"
            );
            for answer in answers {
                let reason = verdict(&b.open(holder("a"), answer).unwrap().reply);
                assert!(matches!(reason, Some(Reason::Replay | Reason::Expired)), "{reason:?}");
            }
        }
    }
}
