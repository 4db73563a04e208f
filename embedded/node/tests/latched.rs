//! What an inhibit or a contact has latched, through resets, power cuts and a flash that fails: it holds its channel until
//! the operator's rearm is stored and answered.

mod bench;

use bench::*;
use fencegate::{Duration, Instant};
use fencegate_wire::{Fault, Reason, Request, Role};

const REARM: Request = Request::Rearm { channel: 0 };

/// Neither a reset nor a power cut is a rearm, and what a rearm has ended is over for good.
#[test]
fn a_stop_is_there_after_a_power_cut_until_somebody_rearms() {
    let mut b = Bench::with(|p| p.outputs[0].feedback = Some(Duration::from_millis(50)));
    b.inputs.inhibit = true;
    b.poll();
    b.inputs.inhibit = false;
    let before = b.stores;
    for _ in 0..3 {
        b.power_cut();
        b.poll();
        assert_eq!(b.status(0).fault, Some(Fault::Inhibited));
        assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), Some(Reason::Fault));
    }
    assert_eq!(b.stores, before, "it is stored once, however often the board boots");
    assert_eq!(b.ask(Role::Operator, REARM), None);
    b.power_cut();
    assert_eq!((b.status(0).fault, b.status(1).fault), (None, Some(Fault::Inhibited)), "each channel by itself");
    // A contact that does not follow, the same.
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    b.run_to_us(b.now + 61 * MS);
    assert_eq!(b.status(0).fault, Some(Fault::Feedback));
    b.power_cut();
    assert_eq!(b.status(0).fault, Some(Fault::Feedback));
    assert_eq!(b.ask(Role::Operator, REARM), None);
    b.power_cut();
    assert_eq!(b.status(0).fault, None);
}

/// What is latched is stored, and so is a rearm before it is answered: neither holds a driven channel up, nor is either
/// believed where the flash fails.
#[test]
fn a_latch_and_a_rearm_are_stores_like_any() {
    let mut b = Bench::with_board(Duration::from_millis(500), |p| {
        p.outputs[0].feedback = Some(Duration::from_millis(50));
    });
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(2, 1, 400, &[1, 1])), None);
    let (driven, stores) = (b.now, b.stores);
    b.run_to_us(driven + 61 * MS);
    assert_eq!((b.status(0).fault, b.stores), (Some(Fault::Feedback), stores), "the other window is too short");
    b.run_to_us(driven + 401 * MS);
    assert_eq!((b.pins()[2], b.stores), (0, stores + 1));
    assert_eq!(b.ask(holder("a"), drive(2, 1, 400, &[1, 1])), None);
    assert_eq!(b.ask(Role::Operator, REARM), Some(Reason::Busy));
    b.run_to_us(b.now + 401 * MS);
    // A cut before its answer leaves it armed or not, as the store was.
    for (got_in, fault) in [(false, Some(Fault::Feedback)), (true, None)] {
        b.cut = Some(got_in);
        let challenge = b.challenge(Role::Operator);
        let rearm = b.seal(Role::Operator, Some(challenge), REARM);
        assert_eq!(b.send(Role::Operator, rearm), None);
        assert_eq!(b.status(0).fault, fault);
    }
}

fn stop(b: &mut Bench) {
    for level in [true, false] {
        b.inputs.inhibit = level;
        b.poll();
    }
}

/// A stop that is pressed and pulled out again while a rearm is stored is one that the rearm was not for.
#[test]
fn a_stop_during_a_rearms_store_wants_a_rearm_of_its_own() {
    let mut b = Bench::new();
    stop(&mut b);
    b.blip = true;
    assert_eq!(b.ask(Role::Operator, REARM), Some(Reason::Fault));
    assert_eq!(b.status(0).fault, Some(Fault::Inhibited));
    b.power_cut();
    assert_eq!(b.status(0).fault, Some(Fault::Inhibited), "it is latched once more");
}

/// A store that failed may be in one copy, and what the next boot would find is not known: so it is stored anew, and a rearm
/// is too, whatever was stored last.
#[test]
fn after_a_latch_or_a_rearm_that_could_not_be_stored_nothing_is_taken_for_stored() {
    for half in [false, true] {
        let mut b = Bench::new();
        (b.storing, b.half) = (None, half);
        stop(&mut b);
        assert_eq!(b.gate_status().fault, Some(Fault::Storage), "what is not latched would be forgotten");
        b.storing = Some(1);
        let old = b.challenge(holder("a"));
        assert_eq!(b.ask(Role::Operator, REARM), None);
        b.power_cut();
        assert_eq!(b.status(0).fault, None, "an acknowledged rearm is stored");
        assert_eq!(b.ask_with(holder("a"), old, raise(0, 1)), Some(Reason::Replay));

        stop(&mut b);
        let old = b.challenge(holder("a"));
        b.storing = None;
        assert_eq!(b.ask(Role::Operator, REARM), Some(Reason::Storage));
        assert_eq!(b.ask_with(holder("a"), old, raise(0, 1)), Some(Reason::Replay), "a store failed");
        (b.storing, b.half) = (Some(1), false);
        stop(&mut b);
        let stores = b.stores;
        b.run_to_us(b.now + 900 * MS);
        assert_eq!(b.stores, stores, "a flash that has failed is left alone for a while");
        b.run_to_us(b.now + 200 * MS);
        assert_eq!((b.stores, b.gate_status().fault), (stores + 1, None));
        b.power_cut();
        assert_eq!(b.status(0).fault, Some(Fault::Inhibited));
    }
}

/// A rearm that was refused may be in one copy. What the other has holds, and so does what came after.
#[test]
fn a_rearm_that_was_refused_does_not_come_into_force_with_the_next_boot() {
    let mut b = Bench::new();
    stop(&mut b);
    (b.storing, b.half) = (None, true);
    assert_eq!(b.ask(Role::Operator, REARM), Some(Reason::Storage));
    stop(&mut b);
    b.storing = Some(1);
    b.power_cut();
    assert_eq!(b.status(0).fault, Some(Fault::Inhibited));
}

#[test]
fn a_stop_is_latched_in_a_boot_that_could_not_be_counted_and_under_whatever_else_holds_the_channel() {
    let mut b = Bench::with(|p| p.channels[1].rearm_after_window = true);
    b.gate.not_counted(Instant::from_micros(b.now));
    stop(&mut b);
    b.provisioning.channels[1].rearm_after_window = false; // provisioned anew
    b.power_cut();
    for channel in 0..3 {
        assert_eq!(b.status(channel).fault, Some(Fault::Inhibited), "channel {channel}");
    }
}

#[test]
fn a_channel_that_is_provisioned_away_and_back_is_held_as_it_was() {
    let mut b = Bench::new();
    stop(&mut b);
    let all = b.provisioning.clone();
    b.provisioning.channels.truncate(1);
    b.provisioning.outputs.truncate(1);
    b.power_cut();
    assert_eq!(b.ask(Role::Operator, REARM), None);
    b.provisioning = all;
    b.power_cut();
    assert_eq!((b.status(0).fault, b.status(2).fault), (None, Some(Fault::Inhibited)));
}
