//! What was refused is not done later, whatever the line still holds of it; and who was told to wait gets its turn.

mod bench;

use bench::*;
use fencegate::{Duration, Epoch, FenceRecord, Token};
use fencegate_node::Remembered;
use fencegate_wire::{ChannelConfig, OutputConfig, Reason, Request, Role, SafeAction, Sealed, seal};
use serde::Serialize;

/// Sends a frame once more: it is refused again, for the same reason or since its challenge is used up.
fn is_refused_again(b: &mut Bench, who: Role, frame: Vec<u8>, reason: Reason) {
    let refused = verdict(&b.send(who, frame).unwrap().reply);
    assert!(refused == Some(reason) || refused == Some(Reason::Replay), "{refused:?} after {reason:?}");
}

/// The first of so many that the gate does not remember each.
#[test]
fn the_first_of_many_refused_hosts_is_not_obeyed_later() {
    let mut b = Bench::new();
    for token in 1..=5 {
        assert_eq!(b.ask(holder("z"), raise(0, token)), None);
    }
    let mut queue = vec![];
    for who in ["a", "b", "c", "d", "e", "f", "g"] {
        let challenge = b.challenge(holder(who));
        let frame = b.seal(holder(who), Some(challenge), drive(0, 6, 60_000, &[1]));
        assert_eq!(verdict(&b.send(holder(who), frame.clone()).unwrap().reply), Some(Reason::Rate));
        queue.push((holder(who), frame));
    }
    b.at(12_000);
    for (who, frame) in queue {
        is_refused_again(&mut b, who, frame, Reason::Rate);
        assert_eq!(b.pins()[0], 0);
    }
    assert_eq!(b.ask(holder("a"), drive(0, 6, 60_000, &[1])), None, "asked anew it is done");
}

#[test]
fn nor_is_one_host_that_asked_on_every_channel() {
    let mut b = Bench::with(|p| {
        p.channels = core::iter::repeat_n(ChannelConfig::new(), 8).collect();
        p.outputs = core::iter::repeat_n(OutputConfig::switch(), 8).collect();
    });
    for token in 1..=5 {
        assert_eq!(b.ask(holder("z"), raise(0, token)), None);
    }
    let mut queue = vec![];
    for channel in 0..8 {
        let challenge = b.challenge(holder("a"));
        let frame = b.seal(holder("a"), Some(challenge), drive(channel, 6, 60_000, &[1]));
        assert_eq!(verdict(&b.send(holder("a"), frame.clone()).unwrap().reply), Some(Reason::Rate));
        queue.push(frame);
    }
    b.at(12_000);
    for frame in queue {
        is_refused_again(&mut b, holder("a"), frame, Reason::Rate);
        assert_eq!(b.pins(), [0; 8]);
    }
}

/// A challenger that gave up does not get the lease when it is free at last.
#[test]
fn a_lease_that_was_held_is_not_granted_later_to_who_gave_up() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("z"), acquire(1, 5_000)), None);
    let challenge = b.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), acquire(1, 50_000));
    assert_eq!(verdict(&b.send(holder("a"), frame.clone()).unwrap().reply), Some(Reason::Held));
    for who in ["b", "c", "d", "e", "f"] {
        assert_eq!(b.ask(holder(who), acquire(1, 5_000)), Some(Reason::Held));
    }
    b.at(20_000);
    is_refused_again(&mut b, holder("a"), frame, Reason::Held);
    assert_eq!(b.ask(holder("b"), acquire(1, 5_000)), None);
}

/// What lost storage refused moves nothing after the operator has set an epoch.
#[test]
fn the_operators_epoch_does_not_bring_back_what_lost_storage_refused() {
    let mut b = Bench::new();
    b.marks[0] = Remembered::Lost(FenceRecord::floor(Epoch(0), 0));
    b.power_cut();
    let challenge = b.challenge(holder("b"));
    let (token, window) = (Token::new(5).unwrap(), Duration::from_secs(60));
    let request = Request::Drive { channel: 0, epoch: Epoch(1), token, window, values: [1].into_iter().collect() };
    let frame = b.seal(holder("b"), Some(challenge), request.clone());
    let kept = b.challenge(holder("b"));
    let unsent = b.seal(holder("b"), Some(kept), request);
    assert_eq!(verdict(&b.send(holder("b"), frame.clone()).unwrap().reply), Some(Reason::Storage));
    assert_eq!(b.ask(Role::Operator, epoch(0, 1, 0)), None);
    b.at(20_000);
    for frame in [frame, unsent] {
        is_refused_again(&mut b, holder("b"), frame, Reason::Storage);
        assert_eq!(b.pins()[0], 0);
    }
}

#[test]
fn a_stamp_that_was_not_granted_yet_is_not_obeyed_once_it_is() {
    let mut b = Bench::new();
    let spare = b.challenge(holder("b"));
    let challenge = b.challenge(holder("b"));
    let frame = b.seal(holder("b"), Some(challenge), drive(1, 1, 60_000, &[1]));
    assert_eq!(verdict(&b.send(holder("b"), frame.clone()).unwrap().reply), Some(Reason::Authority));
    assert_eq!(b.ask_with(holder("b"), spare, acquire(1, 50_000)), Some(Reason::Replay), "older than what was refused");
    assert_eq!(b.ask(holder("b"), acquire(1, 50_000)), None);
    is_refused_again(&mut b, holder("b"), frame, Reason::Authority);
    assert_eq!(b.pins()[1], 0);
}

#[test]
fn a_provisioning_that_nobody_stood_beside_is_not_taken_once_somebody_does() {
    let mut b = Bench::new();
    let first = provisioning().requests().next().unwrap();
    let challenge = b.challenge(Role::Operator);
    let frame = b.seal(Role::Operator, Some(challenge), first);
    assert_eq!(verdict(&b.send(Role::Operator, frame.clone()).unwrap().reply), Some(Reason::Presence));
    b.inputs.presence = true;
    b.at(20_000);
    is_refused_again(&mut b, Role::Operator, frame, Reason::Presence);
}

/// A holder whose windows are just longer than a store does not keep the others' stores, nor the operator, waiting.
#[test]
fn windows_a_little_longer_than_a_store_let_stores_in_between() {
    for window in (21..200).step_by(7) {
        let mut b = Bench::new();
        assert_eq!(b.ask(holder("a"), raise(0, 1)), None);
        let waited = (0..2_000_u64).find(|n| {
            b.at_us(1_000_000 + n * 10_000);
            b.ask(holder("a"), drive(0, 1, window, &[1]));
            b.at_us(1_000_000 + n * 10_000 + 4_000);
            n % 5 == 0 && b.ask(holder("b"), raise(2, 7)).is_none()
        });
        assert!(waited.is_some_and(|n| n <= 50), "windows of {window} ms: {waited:?} drives, and never a store");
    }
}

/// Nor does one that raises with every drive, for as long as its budget lasts; nor do two that take turns.
#[test]
fn windows_under_ever_higher_stamps_let_stores_in_between() {
    let rearm = Request::Rearm { channel: 1 };
    for (asker, request) in [
        (holder("b"), acquire(1, 5_000)),
        (Role::Operator, epoch(1, 1, 0)),
        (Role::Operator, epoch(0, 1, 0)),
        (Role::Operator, rearm.clone()),
    ] {
        for (window, two) in (10..115).step_by(7).flat_map(|window| [(window, false), (window, true)]) {
            let mut b = Bench::with(|p| p.gate.raises.burst = 10_000);
            b.inputs.inhibit = true;
            b.poll();
            b.inputs.inhibit = false;
            for channel in (0..3).filter(|channel| *channel != 1 || request != rearm) {
                assert_eq!(b.ask(Role::Operator, Request::Rearm { channel }), None);
            }
            let driven = |b: &mut Bench, n: u64| {
                b.at_us(1_000_000 + n * 10_000);
                let (who, channel, values) = if two && n % 2 == 1 { ("c", 2, &[1, 1][..]) } else { ("a", 0, &[1][..]) };
                let driven = b.ask(holder(who), drive(channel, n + 1, window, values)).is_none();
                b.at_us(1_000_000 + n * 10_000 + 4_000);
                driven
            };
            let waited = (0..2_000).find(|n| {
                let _ = driven(&mut b, *n);
                n % 5 == 0 && b.ask(asker, request.clone()).is_none()
            });
            let waited = waited.filter(|n| *n <= 50);
            assert!(waited.is_some(), "{request:?}, windows of {window} ms, {two}: never");
            // Who came in between keeps nobody out, and who gave up does so for a second.
            let stamped = !matches!(request, Request::Epoch { channel: 0, .. });
            let again = (50..160).find(|n| driven(&mut b, *n));
            assert!(again.is_some_and(|n| n < 60) || !stamped, "{request:?}, windows of {window} ms, {two}: {again:?}");
        }
    }
}

/// Who waits and gives up keeps the windows of a holder that raises waiting for a second, and its raises not at all.
#[test]
fn a_store_that_nobody_asks_for_any_more_is_waited_for_for_a_second() {
    let mut b = Bench::with(|p| p.gate.raises.burst = 10_000);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 24, &[1])), None);
    assert_eq!(b.ask(holder("b"), raise(2, 7)), Some(Reason::Busy));
    let mut token = 1;
    while b.now < 1_000 * MS {
        token += 1;
        assert_eq!(b.ask(holder("a"), drive(0, token, 24, &[1])), Some(Reason::Busy));
        assert_eq!((b.pins()[0], b.status(0).record.token), (0, token), "the raise stands");
        assert_eq!(b.ask(holder("a"), drive(0, token, 24, &[1])), Some(Reason::Busy), "as if it had stood before");
        b.at(b.now / MS + 50);
    }
    b.at(1_010);
    assert_eq!(b.ask(holder("a"), drive(0, token + 1, 24, &[1])), None);

    // Its own store is done, and its drive with it.
    assert_eq!(b.ask(holder("b"), drive(2, 7, 24, &[1, 1])), Some(Reason::Busy));
    b.at(1_060);
    assert_eq!(b.ask(holder("b"), drive(2, 7, 24, &[1, 1])), None);
    b.at(1_120);
    assert_eq!(b.ask(holder("a"), drive(0, token + 1, 24, &[1])), None, "and nobody waits any more");
}

/// A holder that drives on and on, where safe takes a while, does not keep its successor and the operator out.
#[test]
fn a_successor_gets_in_where_the_way_to_the_safe_state_is_long() {
    for (asker, request) in [
        (holder("b"), raise(0, 2)),
        (holder("b"), drive(0, 2, 2_000, &[1])),
        (holder("b"), release(0, 2)),
        (Role::Operator, epoch(0, 1, 0)),
    ] {
        let keep = SafeAction::Keep { time: Duration::from_millis(290) };
        let mut b = Bench::with(|p| p.outputs[0].action = keep);
        assert_eq!(b.ask(holder("a"), raise(0, 1)), None);
        let waited = (0..6_000_u64).find(|n| {
            b.at_us(1_000_000 + n * 10_000);
            b.ask(holder("a"), drive(0, 1, 2_000, &[1]));
            b.at_us(1_000_000 + n * 10_000 + 5_000);
            n % 5 == 0 && b.ask(asker, request.clone()).is_none()
        });
        assert!(waited.is_some_and(|n| n <= 50), "{request:?}: {waited:?} drives of the old holder");
    }
}

/// Says something that a later host may say; `range` is the answer, and it has done nothing.
fn is_out_of_range(b: &mut Bench, who: Role, body: &impl Serialize, what: &str) {
    let before = (b.pins(), b.marks.clone(), b.latched, b.stores, b.deadline());
    let frame = seal(&b.header(who), &b.keys(who).request, body).unwrap().0.to_vec();
    for again in ["", " again"] {
        let refused = verdict(&b.send(who, frame.clone()).unwrap().reply);
        assert_eq!(refused, Some(Reason::Range), "{who:?}: {what}{again}");
        assert_eq!((b.pins(), b.marks.clone(), b.latched, b.stores, b.deadline()), before, "{who:?}: {what}{again}");
    }
}

/// An older firmware fails closed: of a request that it does not know, or that says more than it can read, it does no part.
#[test]
fn what_a_later_host_says_is_out_of_range_as_a_whole() {
    let (a, operator) = (holder("a"), Role::Operator);
    let mut b = Bench::new();
    b.inputs.presence = true;
    assert_eq!(b.ask(a, drive(0, 33, 60_000, &[1])), None);
    assert_eq!(b.ask(a, acquire(1, 60_000)), None);
    let [first, other] = [a, operator].map(|who| b.challenge(who));
    for who in [a, operator, Role::Observer] {
        for number in (15_u16..300).chain([u16::MAX]) {
            // Alone, and with what a drive would say.
            is_out_of_range(&mut b, who, &(None::<()>, number), &format!("request {number}"));
            let fields = (0_u8, 0_u32, 34_u64, 60_000_000_u64, [1_u8, 2]);
            is_out_of_range(&mut b, who, &(Some(first), number, fields), &format!("request {number}"));
        }
    }
    let requests = [
        (a, Request::Challenge),
        (Role::Observer, Request::Status),
        (Role::Observer, Request::Channel { channel: 0 }),
        (operator, Request::Counters),
        (a, raise(0, 34)),
        (a, drive(0, 33, 2_000, &[1])),
        (a, release(0, 33)),
        (operator, epoch(0, 1, 0)),
        (operator, Request::Rearm { channel: 0 }),
        (a, acquire(1, 10_000)),
        (a, renew(1, 1)),
        (operator, Request::Log { from: 0 }),
    ];
    for (who, request) in requests.into_iter().chain(provisioning().requests().map(|piece| (operator, piece))) {
        let challenge = request.changes().then_some(if who == a { first } else { other });
        let sealed = Sealed { challenge, request };
        let what = format!("{sealed:?} and more");
        is_out_of_range(&mut b, who, &(&sealed, 0_u8), &what);
        is_out_of_range(&mut b, who, &(&sealed, [0xff_u8; 16]), &what);
        // (Twice a gate's whole is more than a frame holds.)
        if !matches!(sealed.request, Request::Provision { .. }) {
            is_out_of_range(&mut b, who, &(&sealed, &sealed), "the same twice in one");
        }
    }
    // Each is counted, and none of their challenges was used up: they are good for what can be read.
    assert_eq!(b.count(Reason::Range), 2 * (3 * 286 * 2 + 3 * (12 + 8) - 1));
    assert_eq!(b.ask_with(a, first, drive(0, 33, 60_000, &[0])), None);
    assert_eq!(b.ask_with(operator, other, epoch(0, 1, 0)), None);
}

/// Whoever has a key has any number of instances. They are one: being refused as ever another one uses up nobody else's
/// challenge.
#[test]
fn the_instances_of_one_holder_push_nobody_out() {
    let mut b = Bench::new();
    let challenge = b.challenge(holder("a"));
    for n in 0..9 {
        assert_eq!(b.ask(holder(&format!("b#{n}")), acquire(0, 1_000)), Some(Reason::Authority));
    }
    assert_eq!(b.ask_with(holder("a"), challenge, raise(0, 1)), None);
}
