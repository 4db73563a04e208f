//! Each test is a story told in seconds of the grantor's clock, which may be off by 1 %: ten seconds are outlasted
//! after 10.101011 of them.

use super::*;
use crate::Token;

const TEN: u64 = 10_101_011;

fn at(s: u64) -> Instant {
    Instant::from_micros(s * 1_000_000)
}

fn us(us: u64) -> Instant {
    Instant::from_micros(us)
}

fn secs(s: u32) -> Duration {
    Duration::from_secs(s)
}

fn id(holder: &str) -> HolderId {
    HolderId::new(holder).unwrap()
}

fn stamp(epoch: u32, token: u64, holder: &str) -> Stamp {
    Stamp { epoch: Epoch(epoch), token: Token::new(token).unwrap(), holder: id(holder) }
}

fn terms(lock_delay: u32) -> GrantTerms {
    GrantTerms {
        drift: Drift::from_ppm(10_000),
        lock_delay: secs(lock_delay),
        longest_ttl: secs(60),
        epoch_jump: Limits::EPOCH_JUMP,
    }
}

fn fresh() -> Grantor {
    Grantor::boot(Some(GrantRecord::floor(Epoch(0), 0)), terms(0), at(0)).unwrap()
}

/// Grants through a store that works.
fn grant(grantor: &mut Grantor, now: Instant, holder: &str, ttl: u32) -> Stamp {
    let granting = grantor.acquire(now, id(holder), secs(ttl)).unwrap();
    let proof = GrantProof::read_back(granting.record());
    let granted = grantor.commit(now, granting, proof).unwrap();
    assert_eq!(granted.ttl, secs(ttl));
    granted.stamp
}

fn release(grantor: &mut Grantor, now: Instant, stamp: Stamp) {
    let release = grantor.release(now, stamp).unwrap();
    let proof = GrantProof::read_back(release.record());
    grantor.commit_release(now, release, proof).unwrap();
}

fn epoch(grantor: &mut Grantor, now: Instant, epoch: u32, floor: u64) {
    let epoch = grantor.raise_epoch(now, Epoch(epoch), floor).unwrap();
    let proof = GrantProof::read_back(epoch.record());
    grantor.commit_epoch(now, epoch, proof).unwrap();
}

fn held(grantor: &mut Grantor, now: Instant, holder: &str) -> Duration {
    match grantor.acquire(now, id(holder), secs(1)) {
        Err(GrantDenied::Held { wait }) => wait,
        other => panic!("not held: {other:?}"),
    }
}

fn refusal(denied: GrantDenied) -> Refusal {
    let GrantDenied::Refused(Refused { reason, .. }) = denied else { panic!("{denied:?}") };
    reason
}

#[test]
fn a_challenger_waits_the_holders_ttl_on_a_slow_clock_to_the_last_microsecond() {
    let mut g = fresh();
    assert_eq!(grant(&mut g, at(1), "a", 10), stamp(0, 1, "a"));
    assert_eq!(g.current(at(1)), Some(stamp(0, 1, "a")));
    let free = 1_000_000 + TEN;
    assert_eq!(held(&mut g, at(2), "b"), Duration::from_micros(TEN - 1_000_000), "asking for one second helps nobody");
    assert_eq!(held(&mut g, us(free - 1), "b"), Duration::from_micros(1));
    assert_eq!(g.current(us(free - 1)), Some(stamp(0, 1, "a")));
    assert_eq!(g.current(us(free)), None);
    assert_eq!(grant(&mut g, us(free), "b", 1), stamp(0, 2, "b"));
}

#[test]
fn its_own_holder_is_refused_too_since_it_renews() {
    let mut g = fresh();
    let a = grant(&mut g, at(0), "a", 10);
    held(&mut g, at(5), "a");
    assert_eq!(g.renew(at(5), a), Ok(Granted { stamp: a, ttl: secs(10) }));
    assert_eq!(held(&mut g, at(6), "b"), Duration::from_micros(TEN - 1_000_000), "renewed for its own TTL from 5 on");
}

#[test]
fn a_lease_that_has_run_out_is_not_revived() {
    let mut g = fresh();
    let a = grant(&mut g, at(0), "a", 10);
    assert_eq!(g.clone().renew(us(TEN), a), Err(GrantDenied::Expired));
    assert!(g.renew(us(TEN - 1), a).is_ok());
    let b = grant(&mut g, at(30), "b", 10);
    assert_eq!(refusal(g.renew(at(31), a).unwrap_err()), Refusal::Stale);
    assert_eq!(refusal(g.renew(at(31), Stamp { holder: id("c"), ..b }).unwrap_err()), Refusal::WrongHolder);
    assert_eq!(g.renew(at(31), stamp(0, 3, "b")), Err(GrantDenied::NotGranted));
    assert_eq!(g.renew(at(31), stamp(9, 1, "b")), Err(GrantDenied::NotGranted));
    assert_eq!(g.renew(at(31), stamp(0, u64::MAX, "b")), Err(GrantDenied::NotGranted));
}

#[test]
fn a_release_frees_at_once_and_never_the_next_holder() {
    let mut g = fresh();
    let a = grant(&mut g, at(0), "a", 10);
    assert_eq!(refusal(g.release(at(1), Stamp { holder: id("b"), ..a }).unwrap_err()), Refusal::WrongHolder);
    release(&mut g, at(1), a);
    assert_eq!(refusal(g.release(at(1), a).unwrap_err()), Refusal::Released);
    assert_eq!(refusal(g.renew(at(1), a).unwrap_err()), Refusal::Released);
    let b = grant(&mut g, at(1), "b", 10);
    assert_eq!(b.token.get(), 2);
    assert_eq!(refusal(g.release(at(2), a).unwrap_err()), Refusal::Stale);
    assert_eq!(g.current(at(2)), Some(b));
}

#[test]
fn nothing_is_free_before_the_release_is_stored() {
    let mut g = fresh();
    let a = grant(&mut g, at(0), "a", 10);
    let release = g.release(at(1), a).unwrap();
    assert_eq!(g.acquire(at(1), id("b"), secs(1)), Err(GrantDenied::Busy));
    assert_eq!(g.renew(at(1), a), Err(GrantDenied::Busy));
    // The power is cut before the store: the lease still runs, and in full.
    let before = g.record();
    let mut g = Grantor::boot(before, terms(0), at(0)).unwrap();
    assert_eq!(held(&mut g, at(0), "b"), Duration::from_micros(TEN));
    // Cut after it: it is free.
    let mut g = Grantor::boot(Some(release.record()), terms(5), at(0)).unwrap();
    grant(&mut g, at(0), "b", 10);
}

#[test]
fn a_lock_delay_follows_a_lease_that_ran_out_and_no_release() {
    let mut g = Grantor::boot(Some(GrantRecord::floor(Epoch(0), 0)), terms(5), at(0)).unwrap();
    let a = grant(&mut g, at(0), "a", 10);
    assert_eq!(g.renew(us(TEN), a), Err(GrantDenied::Expired), "it is the holder's no longer");
    assert_eq!(held(&mut g, us(TEN), "b"), secs(5));
    let b = grant(&mut g, us(TEN + 5_000_000), "b", 10);
    release(&mut g, at(16), b);
    let c = grant(&mut g, at(16), "c", 10);
    // A release that comes in the delay says that its holder has stopped.
    assert_eq!(held(&mut g, at(27), "d"), Duration::from_micros(5_000_000 - (11_000_000 - TEN)));
    release(&mut g, at(27), c);
    grant(&mut g, at(27), "d", 10);
}

#[test]
fn a_reboot_can_lengthen_a_lease_and_never_shorten_one() {
    let mut g = fresh();
    let a = grant(&mut g, at(0), "a", 10);
    let mut g = Grantor::boot(g.record(), terms(0), at(3)).unwrap();
    assert_eq!(held(&mut g, at(3), "b"), Duration::from_micros(TEN), "in full from boot");
    assert!(g.renew(at(4), a).is_ok(), "and its holder keeps it");
    assert_eq!(held(&mut g, at(4), "b"), Duration::from_micros(TEN));
    let mut g = Grantor::boot(g.record(), terms(2), at(0)).unwrap();
    assert_eq!(held(&mut g, at(0), "b"), Duration::from_micros(TEN + 2_000_000));
}

#[test]
fn a_token_is_stored_before_it_is_answered_and_a_cut_wastes_it() {
    let mut g = fresh();
    let granting = g.acquire(at(0), id("a"), secs(10)).unwrap();
    assert_eq!(g.current(at(0)), None, "decided is not granted");
    // Cut after the store: "a" may or may not have been told, so the lease runs.
    let mut g = Grantor::boot(Some(granting.record()), terms(0), at(0)).unwrap();
    held(&mut g, at(10), "b");
    assert_eq!(grant(&mut g, at(11), "b", 10), stamp(0, 2, "b"));
}

#[test]
fn a_lease_counts_from_the_commit() {
    let mut g = fresh();
    let granting = g.acquire(at(0), id("a"), secs(10)).unwrap();
    let proof = GrantProof::read_back(granting.record());
    g.commit(at(2), granting, proof).unwrap();
    assert_eq!(held(&mut g, at(2), "b"), Duration::from_micros(TEN));
}

#[test]
fn a_store_that_read_back_something_else_is_lost() {
    let mut g = fresh();
    let granting = g.acquire(at(0), id("a"), secs(10)).unwrap();
    let other = GrantRecord { ttl: secs(9), ..granting.record() };
    assert_eq!(g.commit(at(0), granting, GrantProof::read_back(other)), Err(NotStored));
    assert_eq!(g.acquire(at(100), id("a"), secs(10)), Err(GrantDenied::Storage));
    assert_eq!(g.record(), None);

    let mut g = fresh();
    let granting = g.acquire(at(0), id("a"), secs(10)).unwrap();
    let proof = GrantProof::read_back(granting.record());
    g.lose_storage();
    assert_eq!(g.commit(at(0), granting, proof), Err(NotStored), "a proof from before the loss proves nothing");
}

#[test]
fn a_decision_is_committed_where_it_was_made_and_while_it_stands() {
    let mut g = fresh();
    let mut twin = g.clone();
    let granting = twin.acquire(at(0), id("a"), secs(10)).unwrap();
    let proof = GrantProof::read_back(granting.record());
    assert_eq!(g.commit(at(0), granting, proof), Err(NotStored), "nothing was decided here");

    let mut g = fresh();
    let granting = g.acquire(at(0), id("a"), secs(10)).unwrap();
    g.lose_storage();
    let _ = g.raise_epoch(at(0), Epoch(1), 0).unwrap();
    let proof = GrantProof::read_back(granting.record());
    assert_eq!(g.commit(at(0), granting, proof), Err(NotStored), "another decision is open by now");
}

#[test]
fn without_its_storage_it_grants_nothing_until_an_operators_epoch() {
    let mut g = Grantor::boot(None, terms(3), at(0)).unwrap();
    assert_eq!(g.acquire(at(1_000), id("a"), secs(1)), Err(GrantDenied::Storage), "no waiting cures that");
    assert_eq!(g.renew(at(1_000), stamp(0, 1, "a")), Err(GrantDenied::Storage));
    assert_eq!(g.release(at(1_000), stamp(0, 1, "a")), Err(GrantDenied::Storage));
    assert_eq!(refusal(g.raise_epoch(at(1_000), Epoch(0), 0).unwrap_err()), Refusal::Stale);
    epoch(&mut g, at(1_000), 9, 500);
    assert_eq!(g.renew(at(1_000), stamp(0, 1, "a")).map_err(refusal), Err(Refusal::Stale));
    let longest = Duration::from_micros(60_606_061 + 3_000_000);
    assert_eq!(held(&mut g, at(1_000), "a"), longest, "somebody may still be inside the longest window");
    let mut again = Grantor::boot(g.record(), terms(3), at(0)).unwrap();
    assert_eq!(held(&mut again, at(0), "a"), longest, "a reboot makes that no shorter");
    assert_eq!(grant(&mut g, at(1_064), "a", 1), stamp(9, 501, "a"));
}

#[test]
fn an_operators_epoch_outranks_and_still_frees_nothing_early() {
    let mut g = fresh();
    let a = grant(&mut g, at(0), "a", 10);
    assert_eq!(refusal(g.raise_epoch(at(1), Epoch(0), 0).unwrap_err()), Refusal::Stale);
    assert_eq!(refusal(g.raise_epoch(at(1), Epoch(70_000), 0).unwrap_err()), Refusal::Jump);
    epoch(&mut g, at(1), 1, 40);
    assert_eq!(refusal(g.renew(at(2), a).unwrap_err()), Refusal::Stale);
    assert_eq!(g.current(at(2)), None);
    assert_eq!(held(&mut g, at(2), "b"), Duration::from_micros(TEN - 2_000_000));
    let mut rebooted = Grantor::boot(g.record(), terms(0), at(0)).unwrap();
    assert_eq!(held(&mut rebooted, at(0), "b"), Duration::from_micros(TEN));
    assert_eq!(grant(&mut g, at(11), "b", 1), stamp(1, 41, "b"));
    // With nothing held, there is nothing to wait for, after a reboot neither.
    epoch(&mut g, at(20), 2, 0);
    let mut g = Grantor::boot(g.record(), terms(0), at(0)).unwrap();
    assert_eq!(grant(&mut g, at(0), "c", 1), stamp(2, 1, "c"));
}

#[test]
fn a_clock_that_ran_backwards_times_nothing_any_more() {
    let mut g = fresh();
    let a = grant(&mut g, at(5), "a", 10);
    assert_eq!(g.renew(at(4), a), Err(GrantDenied::Clock));
    assert_eq!(g.acquire(at(1_000), id("b"), secs(1)), Err(GrantDenied::Clock));

    let mut g = fresh();
    let granting = g.acquire(at(5), id("a"), secs(10)).unwrap();
    let proof = GrantProof::read_back(granting.record());
    assert_eq!(g.commit(at(4), granting, proof), Err(NotStored));
}

#[test]
fn at_the_end_of_a_clock_nothing_is_granted() {
    let end = us(u64::MAX - 5_000_000);
    let mut g = Grantor::boot(Some(GrantRecord::floor(Epoch(0), 0)), terms(0), end).unwrap();
    let granting = g.acquire(end, id("a"), secs(10)).unwrap();
    let proof = GrantProof::read_back(granting.record());
    assert_eq!(g.commit(end, granting, proof), Err(NotStored));

    let before = us(u64::MAX - 15_000_000);
    let mut g = Grantor::boot(Some(GrantRecord::floor(Epoch(0), 0)), terms(0), before).unwrap();
    let a = grant(&mut g, before, "a", 10);
    assert_eq!(g.renew(end, a), Err(GrantDenied::Clock));
    let record = g.record();
    assert_eq!(Grantor::boot(record, terms(0), end), Err(OutOfRange::Instant));
}

#[test]
fn a_lease_that_is_longer_than_the_terms_have_become_runs_out() {
    let mut g = fresh();
    let a = grant(&mut g, at(0), "a", 60);
    let short = GrantTerms { longest_ttl: secs(10), ..terms(0) };
    let mut g = Grantor::boot(g.record(), short, at(0)).unwrap();
    assert_eq!(g.renew(at(1), a), Err(GrantDenied::Ttl));
    assert_eq!(held(&mut g, at(1), "b"), Duration::from_micros(59_606_061), "it is no shorter for that");
}

#[test]
fn terms_and_records_that_cannot_be_are_refused_or_read_on_the_safe_side() {
    let floor = GrantRecord::floor(Epoch(0), 0);
    let frozen = GrantTerms { drift: Drift::from_ppb(crate::PPB), ..terms(0) };
    assert_eq!(Grantor::boot(Some(floor), frozen, at(0)), Err(OutOfRange::Drift));
    let endless = GrantTerms { longest_ttl: Duration::from_micros(u64::MAX / 2), ..terms(0) };
    assert_eq!(Grantor::boot(Some(floor), endless, at(0)), Err(OutOfRange::TtlTooLong));
    let exact = GrantTerms {
        drift: Drift::ZERO,
        lock_delay: secs(1),
        longest_ttl: Duration::MAX_ANSWER.less(secs(1)),
        ..terms(0)
    };
    assert!(Grantor::boot(Some(floor), exact, at(0)).is_ok());
    let delayed = GrantTerms { lock_delay: Duration::MAX_ANSWER, ..terms(0) };
    assert_eq!(Grantor::boot(Some(floor), delayed, at(0)), Err(OutOfRange::TtlTooLong));

    let mut g = fresh();
    grant(&mut g, at(0), "a", 10);
    let odd = g.record().map(|record| GrantRecord { ttl: Duration::ZERO, ..record });
    let mut g = Grantor::boot(odd, terms(0), at(0)).unwrap();
    assert_eq!(
        held(&mut g, at(0), "b"),
        Duration::from_micros(60_606_061),
        "held for no time at all is no record of ours"
    );
    // A renewal makes that no shorter, and neither does an operator's epoch, or a boot after that.
    assert_eq!(g.renew(at(0), stamp(0, 1, "a")).map(|granted| granted.ttl), Ok(secs(60)));
    epoch(&mut g, at(1), 1, 0);
    assert_eq!(held(&mut g, at(1), "b"), Duration::from_micros(59_606_061));
    let mut g = Grantor::boot(g.record(), terms(0), at(0)).unwrap();
    assert_eq!(held(&mut g, at(0), "b"), Duration::from_micros(60_606_061));

    let mut g = fresh();
    assert_eq!(g.acquire(at(0), id("a"), Duration::ZERO), Err(GrantDenied::Ttl));
    assert_eq!(g.acquire(at(0), id("a"), Duration::from_micros(60_000_001)), Err(GrantDenied::Ttl));
    grant(&mut g, at(0), "a", 60);
}

#[test]
fn the_last_token_is_not_minted_twice() {
    let mut g = Grantor::boot(Some(GrantRecord::floor(Epoch(0), u64::MAX)), terms(0), at(0)).unwrap();
    assert_eq!(g.acquire(at(0), id("a"), secs(1)), Err(GrantDenied::NoToken));
    epoch(&mut g, at(0), 1, 0);
    assert_eq!(grant(&mut g, at(0), "a", 1), stamp(1, 1, "a"));
}

#[test]
fn each_denial_is_a_sentence_of_its_own() {
    use std::collections::HashSet;
    use std::string::ToString;
    let by = FenceRecord::floor(Epoch(0), 3);
    let denials = [
        GrantDenied::Clock,
        GrantDenied::Busy,
        GrantDenied::Ttl,
        GrantDenied::Storage,
        GrantDenied::Refused(Refused { reason: Refusal::Stale, by }),
        GrantDenied::NotGranted,
        GrantDenied::Expired,
        GrantDenied::Held { wait: secs(1) },
        GrantDenied::NoToken,
    ];
    assert_eq!(denials.map(|denied| denied.to_string()).into_iter().collect::<HashSet<_>>().len(), denials.len());
}

#[test]
fn it_says_when_a_lease_ends_and_how_long_it_is_not_free() {
    let mut grantor = Grantor::boot(Some(GrantRecord::floor(Epoch(0), 0)), terms(3), at(0)).unwrap();
    assert_eq!((grantor.ends(), grantor.wait(at(0))), (Deadline::at(at(0)), Duration::ZERO));
    let lease = grant(&mut grantor, at(1), "a", 10);
    let ends = at(1).checked_add(Duration::from_micros(TEN)).unwrap();
    assert_eq!(grantor.ends(), Deadline::at(ends));
    assert_eq!(grantor.wait(ends), secs(3), "and then the lock delay");
    release(&mut grantor, at(2), lease);
    assert_eq!((grantor.ends(), grantor.wait(at(2))), (Deadline::at(at(2)), Duration::ZERO));
}
