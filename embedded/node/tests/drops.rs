//! A board whose outputs drop by hardware: what then needs no processor, and what still does.

mod bench;

use bench::*;
use fencegate::{Duration, Instant};
use fencegate_wire::{ChannelState, Reason, SafeAction};

/// The longest store: two erases of 400 ms, and some words.
const SLOW: Duration = Duration::from_millis(900);

fn ends(b: &Bench) -> Vec<Option<u64>> {
    b.gate.ends().map(|end| end.map(Instant::as_micros)).collect()
}

/// When a channel's window ends, as the gate tells who asks.
fn end_of(b: &mut Bench, channel: u8) -> u64 {
    b.now + b.status(channel).window_left.as_micros()
}

#[test]
fn a_store_waits_for_no_window_that_ends_by_hardware() {
    for (drops, verdict) in [(true, None), (false, Some(Reason::Busy))] {
        let mut b = if drops { Bench::that_drops(SLOW, |_| ()) } else { Bench::with_board(SLOW, |_| ()) };
        assert_eq!(b.ask(holder("a"), drive(0, 1, 800, &[1])), None);
        let end = end_of(&mut b, 0);
        b.storing = Some(900 * MS);
        assert_eq!(b.ask(holder("b"), raise(2, 1)), verdict);
        if drops {
            assert!(b.now > end, "the store has outlasted the window");
            assert_eq!((b.pins()[0], b.status(0).state), (0, ChannelState::Safe));
        }
    }
}

#[test]
fn the_hardware_is_told_each_end_and_a_hang_ends_a_store_later() {
    let mut b = Bench::that_drops(SLOW, |_| ());
    assert_eq!((ends(&b), b.gate.hang_by()), (vec![None; 4], None));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 10_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(2, 1, 5_000, &[0, 1])), None);
    let short = end_of(&mut b, 2);
    let [long, None, first, second] = ends(&b)[..] else { panic!("{:?}", ends(&b)) };
    assert_eq!((first, second), (Some(short), Some(short)), "a channel's outputs end together");
    assert!(long > first);
    assert_eq!(b.gate.hang_by().unwrap().as_micros(), short + 5 * MS + 900 * MS);
    // Another window, another end; and none without one.
    assert_eq!(b.ask(holder("a"), drive(2, 1, 1_000, &[0, 1])), None);
    assert!(ends(&b)[2] < first);
    assert_eq!(b.ask(holder("a"), release(2, 1)), None);
    assert_eq!(ends(&b)[2..], [None, None]);
}

/// An output that is safe at another value than 0, or not at once, ends by the processor alone.
#[test]
fn what_takes_more_than_dropping_is_as_on_any_board() {
    let actions: [fn(&mut fencegate_wire::OutputConfig); 2] = [
        |output| (output.safe, output.powered) = (1, true),
        |output| output.action = SafeAction::Keep { time: Duration::from_millis(50) },
    ];
    for change in actions {
        // The second of the two outputs of channel 2.
        let mut b = Bench::that_drops(SLOW, |p| change(&mut p.outputs[3]));
        assert_eq!(b.ask(holder("a"), drive(2, 1, 800, &[1, 0])), None);
        let end = end_of(&mut b, 2);
        assert_eq!(ends(&b), [None, None, Some(end), None], "the first still drops");
        assert_eq!(b.gate.hang_by().unwrap().as_micros(), end + 5 * MS);
        assert_eq!(b.ask(holder("b"), raise(0, 1)), Some(Reason::Busy));
    }
}

#[test]
fn the_lamp_shows_the_worst() {
    let mut b = Bench::new();
    assert_eq!(b.gate.shows(), ChannelState::Safe);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 10_000, &[1])), None);
    assert_eq!(b.gate.shows(), ChannelState::Driven);
    b.inputs.inhibit = true;
    b.gate.poll(Instant::from_micros(b.now), b.inputs);
    assert_eq!(b.gate.shows(), ChannelState::Fault);
    b.inputs.inhibit = false;
    b.gate.poll(Instant::from_micros(b.now), b.inputs);
    assert_eq!(b.gate.shows(), ChannelState::Fault, "it waits for a rearm");
}
