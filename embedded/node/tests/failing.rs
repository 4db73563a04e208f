//! A flash that fails: what is sealed while nothing can be stored, and what waits for the mending.

mod bench;

use bench::*;
use fencegate::{Duration, Instant};
use fencegate_node::Inputs;
use fencegate_wire::{Fault, Reason, Request, Role};

/// A boot whose number could not be stored comes again with the same one, and with the same ticks of its clock. Whoever has
/// recorded what was refused in the one moves nothing with it in the other.
#[test]
fn what_was_sealed_in_a_boot_that_was_not_counted_is_good_in_no_other() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), raise(0, 5)), None);
    b.power_cut();
    b.gate.not_counted(Instant::from_micros(b.now));
    b.at(10);
    let recorded: Vec<_> = [
        (holder("a"), drive(0, 5, 60_000, &[1])),
        (holder("a"), drive(0, 6, 60_000, &[1])),
        (holder("b"), acquire(1, 1_000)),
        (Role::Operator, epoch(0, 1, 0)),
    ]
    .into_iter()
    .map(|(role, request)| {
        let challenge = b.challenge(role);
        (role, b.seal(role, Some(challenge), request))
    })
    .collect();
    for (role, frame) in &recorded {
        assert_eq!(verdict(&b.send(*role, frame.clone()).unwrap().reply), Some(Reason::Storage));
    }
    assert_eq!((b.gate_status().boots, b.status(0).fault), (0, Some(Fault::Storage)));

    // Now the flash works again: the number was never stored, so this boot has it.
    b.boots -= 1;
    b.power_cut();
    assert_eq!(b.gate_status().boots, 2);
    b.at(10);
    for _ in 0..5 {
        let _ = b.challenge(holder("a")); // ticks as far as those were
    }
    for (role, frame) in recorded {
        assert_eq!(verdict(&b.send(role, frame).unwrap().reply), Some(Reason::Replay));
    }
    assert_eq!((b.pins()[0], b.status(0).record.epoch.0, b.status(0).record.token), (0, 0, 5));
    assert_eq!(b.ask(holder("a"), drive(0, 5, 60_000, &[1])), None);
}

/// After a store that failed the next one mends first, which may take longer than any window that is left. So it waits until
/// nothing is driven, and nobody drives on and on meanwhile.
#[test]
fn a_store_that_mends_first_waits_until_nothing_is_driven() {
    for drops in [false, true] {
        let mut b = if drops { Bench::that_drops(WORST_STORE, |_| ()) } else { Bench::new() };
        assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
        b.storing = None;
        assert_eq!(b.ask(holder("b"), raise(2, 1)), Some(Reason::Storage));
        b.storing = Some(1);
        assert_eq!(b.ask(holder("c"), acquire(1, 1_000)), Some(Reason::Busy));
        assert_eq!(b.ask(Role::Operator, epoch(2, 1, 0)), Some(Reason::Busy));
        assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), Some(Reason::Busy), "the store has waited for long");
        assert_eq!(b.pins()[0], 1, "and its window runs on");
        b.at(990);
        assert_eq!(b.ask(Role::Operator, epoch(2, 1, 0)), Some(Reason::Busy));
        b.at(1_000);
        assert_eq!((b.pins()[0], b.ask(Role::Operator, epoch(2, 1, 0))), (0, None));

        // It is mended: a raise beside a window that is long enough waits no more.
        assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
        assert_eq!(b.ask(holder("c"), acquire(1, 1_000)), None);
        assert_eq!(b.pins()[0], 1);
    }
}

/// No request whose store failed is done later, a piece of a provisioning no more than a raise; nor is any that was sealed
/// before it failed.
#[test]
fn a_store_that_failed_uses_up_every_challenge_whatever_it_was_for() {
    let pieces: Vec<_> = provisioning().requests().map(|piece| (Role::Operator, piece)).collect();
    let requests = [
        (holder("a"), raise(0, 1)),
        (holder("a"), drive(0, 1, 1_000, &[1])),
        (holder("a"), release(0, 1)),
        (holder("a"), acquire(1, 1_000)),
        (Role::Operator, epoch(0, 1, 0)),
        (Role::Operator, Request::Rearm { channel: 2 }),
    ];
    for (who, request) in requests.into_iter().chain(pieces.clone()) {
        let mut b = Bench::new();
        b.inputs.inhibit = true;
        b.poll();
        b.inputs = Inputs { presence: true, ..Inputs::default() };
        if matches!(request, Request::Provision { .. }) {
            for (who, piece) in &pieces[..pieces.len() - 1] {
                assert_eq!(b.ask(*who, piece.clone()), None);
            }
        }
        if matches!(request, Request::Drive { .. }) {
            assert_eq!(b.ask(Role::Operator, Request::Rearm { channel: 0 }), None);
        }
        let kept = b.challenge(holder("c"));
        let challenge = b.challenge(who);
        let frame = b.seal(who, Some(challenge), request.clone());
        b.storing = None;
        assert_eq!(verdict(&b.send(who, frame.clone()).unwrap().reply), Some(Reason::Storage), "{request:?}");
        b.storing = Some(1);
        let stores = b.stores;
        let again = verdict(&b.send(who, frame).unwrap().reply);
        // (Of the end of a provisioning the pieces are forgotten, which comes first.)
        assert!(matches!(again, Some(Reason::Storage | Reason::Replay | Reason::Range)), "{request:?}: {again:?}");
        assert_eq!(b.ask_with(holder("c"), kept, raise(2, 1)), Some(Reason::Replay), "{request:?}");
        assert_eq!(b.stores, stores, "{request:?}");
    }
}

/// What could not be latched is latched once nothing is driven any more, and keeps nobody from driving; it holds its channel
/// until then anyway.
#[test]
fn what_is_to_be_latched_waits_for_the_mending_too() {
    let mut b = Bench::with(|p| p.outputs[0].feedback = Some(Duration::from_millis(100)));
    assert_eq!(b.ask(holder("c"), raise(2, 1)), None);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    b.storing = None;
    b.at(200);
    assert_eq!((b.pins()[0], b.status(0).fault), (0, Some(Fault::Feedback)), "its contact did not follow");
    b.storing = Some(1);
    for n in 1..20 {
        assert_eq!(b.ask(holder("c"), drive(2, 1, 2_000, &[1, 1])), None, "{n}");
        b.at(200 + n * 1_000);
    }
    let stores = b.stores;
    b.at(22_000);
    assert_eq!((b.pins(), b.stores), (vec![0; 4], stores + 1));
    b.power_cut();
    assert_eq!(b.status(0).fault, Some(Fault::Feedback));
}
