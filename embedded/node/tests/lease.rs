//! A channel that is its own authority: acquire, renew, release, and what a boot means to a lease.

mod bench;

use bench::*;
use fencegate::{Duration, FenceRecord};
use fencegate_node::Remembered;
use fencegate_wire::{Reason, Reply, Request, Role, What};

/// ⌈10 s / (1 − 100 ppm)⌉: how long a lease of ten seconds lasts on the gate's clock.
const TEN_SECONDS: u64 = 10_001_001;

fn granted(reply: &Reply) -> u64 {
    match reply {
        Reply::Done { record: FenceRecord { token, .. }, .. } => *token,
        other => panic!("{other:?}"),
    }
}

fn wait(reply: &Reply) -> u64 {
    match reply {
        Reply::Refused(refused) if refused.reason == Reason::Held => refused.wait.as_micros(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lease_is_granted_renewed_used_and_released() {
    let mut b = Bench::new();
    assert_eq!(granted(&b.reply(holder("a"), acquire(1, 10_000))), 1);
    assert_eq!(b.ask(holder("a"), drive(1, 1, 10_000, &[1])), None);
    assert_eq!(b.pins(), [0, 1, 0, 0]);
    assert_eq!(b.ask(holder("b"), drive(1, 1, 10_000, &[1])), Some(Reason::WrongHolder));
    assert_eq!(b.ask(holder("b"), drive(1, 2, 10_000, &[1])), Some(Reason::Authority), "it granted no such stamp");
    assert_eq!(b.ask(holder("b"), raise(1, 2)), Some(Reason::Authority));
    assert_eq!(b.ask(holder("b"), renew(1, 2)), Some(Reason::Authority));
    assert_eq!(b.ask(holder("a"), raise(1, 1)), None, "its own stamp is in force");
    b.at(6_000);
    assert_eq!(b.ask(holder("a"), renew(1, 1)), None);
    assert_eq!(b.ask(holder("a"), drive(1, 1, 10_000, &[1])), None);
    b.at(15_000);
    assert_eq!(b.pins()[1], 1);
    assert_eq!(b.ask(holder("a"), release(1, 1)), None);
    assert_eq!(b.pins()[1], 0);
    assert_eq!(b.ask(holder("a"), renew(1, 1)), Some(Reason::Released));
    assert_eq!(granted(&b.reply(holder("b"), acquire(1, 1_000))), 2, "a release saves the wait");
    assert_eq!(b.ask(holder("a"), release(1, 1)), Some(Reason::Stale), "and never frees the next one's");
    let granted = |what: &What| matches!(what, What::Granted { .. });
    assert_eq!(b.events().iter().filter(|event| granted(&event.what)).count(), 2);
}

#[test]
fn who_asks_meanwhile_is_told_how_long_to_wait() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), acquire(1, 10_000)), None);
    let begun = b.now;
    for asker in ["b", "a", "a#2"] {
        let reply = b.reply(holder(asker), acquire(1, 1_000));
        assert_eq!(b.now + wait(&reply), begun + TEN_SECONDS, "{asker} waits the holder's TTL, not its own");
    }
    let challenge = b.challenge(holder("b"));
    let asked = b.seal(holder("b"), Some(challenge), acquire(1, 1_000));
    for _ in 0..2 {
        b.now += 1_000 * MS;
        let reply = b.send(holder("b"), asked.clone()).unwrap().reply;
        assert_eq!(
            b.now + wait(&reply),
            begun + TEN_SECONDS,
            "an answer that is repeated is right when it is repeated"
        );
    }
    b.at_us(begun + TEN_SECONDS - 1);
    assert_eq!(wait(&b.reply(holder("b"), acquire(1, 1_000))), 1);
    b.at_us(begun + TEN_SECONDS);
    assert_eq!(b.ask(holder("a"), renew(1, 1)), Some(Reason::Expired), "equality is expiry: no lease is revived");
    assert_eq!(b.ask(holder("a"), drive(1, 1, 1_000, &[1])), Some(Reason::Expired));
    assert_eq!(granted(&b.reply(holder("b"), acquire(1, 1_000))), 2);
    assert_eq!(b.ask(holder("a"), drive(1, 1, 1_000, &[1])), Some(Reason::Stale));
}

/// Whatever window a holder claims, its output is safe before the lease can go to anybody else.
#[test]
fn a_window_never_outlasts_the_lease() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), acquire(1, 10_000)), None);
    let begun = b.now;
    assert_eq!(b.ask(holder("a"), drive(1, 1, 60_000, &[1])), None);
    b.at_us(begun + TEN_SECONDS - 5 * MS - 1);
    assert_eq!(b.pins()[1], 1);
    b.at_us(begun + TEN_SECONDS - 5 * MS);
    assert_eq!(b.pins()[1], 0, "L before its end");
}

#[test]
fn a_boot_lengthens_a_lease_and_never_shortens_one() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), acquire(1, 10_000)), None);
    b.at(9_000);
    b.power_cut();
    assert_eq!(wait(&b.reply(holder("b"), acquire(1, 1_000))), TEN_SECONDS - b.now);
    assert_eq!(b.ask(holder("a"), renew(1, 1)), None, "the holder goes on");
    assert_eq!(b.ask(holder("a"), drive(1, 1, 1_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), release(1, 1)), None);
    b.power_cut();
    assert_eq!(granted(&b.reply(holder("b"), acquire(1, 1_000))), 2, "a release is stored");
}

#[test]
fn the_lock_delay_follows_a_lease_that_ran_out() {
    let mut b = Bench::with(|p| p.channels[1].lock_delay = Duration::from_secs(3));
    assert_eq!(b.ask(holder("a"), acquire(1, 10_000)), None);
    let begun = b.now;
    b.at_us(begun + TEN_SECONDS);
    assert_eq!(b.now + wait(&b.reply(holder("b"), acquire(1, 1_000))), begun + TEN_SECONDS + 3_000_000);
    b.at_us(begun + TEN_SECONDS + 3_000_000);
    assert_eq!(b.ask(holder("b"), acquire(1, 1_000)), None);
    assert_eq!(b.ask(holder("b"), release(1, 2)), None);
    assert_eq!(b.ask(holder("a"), acquire(1, 1_000)), None, "a release saves it");
}

#[test]
fn the_operators_epoch_goes_for_its_own_leases_too() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), acquire(1, 10_000)), None);
    let begun = b.now;
    assert_eq!(b.ask(holder("a"), drive(1, 1, 10_000, &[1])), None);
    assert_eq!(b.ask(Role::Operator, epoch(1, 7, 100)), None);
    assert_eq!(b.pins()[1], 0);
    assert_eq!(b.ask(holder("a"), renew(1, 1)), Some(Reason::Stale));
    assert_eq!(b.now + wait(&b.reply(holder("b"), acquire(1, 1_000))), begun + TEN_SECONDS, "what runs runs out");
    b.at_us(begun + TEN_SECONDS);
    let reply = b.reply(holder("b"), acquire(1, 1_000));
    assert!(matches!(reply, Reply::Done { record, .. } if record == fence(7, 101, "b")), "{reply:?}");
}

#[test]
fn lost_storage_grants_nothing_until_an_operators_epoch() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), acquire(1, 10_000)), None);
    b.marks[1] = Remembered::Lost(fence(0, 1, "a"));
    b.power_cut();
    for request in [acquire(1, 1_000), renew(1, 1), drive(1, 1, 1_000, &[1]), release(1, 1)] {
        assert_eq!(b.ask(holder("a"), request.clone()), Some(Reason::Storage), "{request:?}");
    }
    assert_eq!(b.ask(Role::Operator, Request::Rearm { channel: 1 }), Some(Reason::Storage), "no rearm cures it");
    assert_eq!(b.ask(Role::Operator, epoch(1, 1, 0)), None);
    assert!(wait(&b.reply(holder("b"), acquire(1, 1_000))) > 59_000_000, "a lease of the longest TTL may still run");
    b.storing = None;
    b.at(70_000);
    assert_eq!(b.ask(holder("b"), acquire(1, 1_000)), Some(Reason::Storage));
    b.storing = Some(1);
    assert_eq!(
        b.ask(holder("b"), acquire(1, 1_000)),
        Some(Reason::Storage),
        "a store that failed is not trusted again"
    );
}

/// What was recorded of a lease that has been given back does not take it again.
#[test]
fn an_old_request_for_a_lease_takes_none() {
    let mut b = Bench::new();
    let challenge = b.challenge(holder("a"));
    let recorded = b.seal(holder("a"), Some(challenge), acquire(1, 10_000));
    let answer = b.send(holder("a"), recorded.clone()).unwrap().reply;
    assert_eq!(b.send(holder("a"), recorded.clone()).unwrap().reply, answer, "a repetition is answered again");
    assert_eq!(b.ask(holder("a"), release(1, 1)), None);
    assert_eq!(verdict(&b.send(holder("a"), recorded.clone()).unwrap().reply), Some(Reason::Replay));
    assert_eq!(b.ask(holder("b"), acquire(1, 1_000)), None);
    assert_eq!(b.ask(holder("b"), release(1, 2)), None);
    assert_eq!(verdict(&b.send(holder("a"), recorded).unwrap().reply), Some(Reason::Replay), "whoever was here since");
    assert_eq!(b.ask(holder("b"), acquire(1, 1_000)), None);
}

#[test]
fn leases_spend_the_raise_budget_and_renewals_do_not() {
    let mut b = Bench::new();
    for token in 1..=5 {
        assert_eq!(b.ask(holder("a"), acquire(1, 1_000)), None);
        let stores = b.stores;
        assert_eq!(b.ask(holder("a"), renew(1, token)), None);
        assert_eq!(b.stores, stores, "a renewal writes nothing");
        assert_eq!(b.ask(holder("a"), release(1, token)), None, "safe never waits");
    }
    assert_eq!(b.ask(holder("a"), acquire(1, 1_000)), Some(Reason::Rate));
    b.at(11_000);
    assert_eq!(b.ask(holder("a"), acquire(1, 1_000)), None);
}

/// Provisioned anew with a shorter longest window, the gate lets a longer lease run out, and says why it renews it no more,
/// whatever else is wrong with the asking.
#[test]
fn a_lease_that_is_longer_than_the_gate_grants_now_is_not_renewed() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), acquire(1, 30_000)), None);
    assert_eq!(b.ask(holder("a"), renew(1, 1)), None);
    b.provisioning.gate.longest_window = Duration::from_secs(10);
    b.power_cut();
    let used = b.challenge(holder("a"));
    assert_eq!(b.ask_with(holder("a"), used, drive(1, 1, 1_000, &[1])), None, "it runs on");
    assert_eq!(b.ask_with(holder("a"), used, renew(1, 1)), Some(Reason::Range), "and not: a replay");
    assert_eq!(b.ask(holder("b"), renew(1, 1)), Some(Reason::WrongHolder));
}
