//! The trips of others: what people have stumbled over in the systems that do this job today, each as a test of the core.
//!
//! A timer longer than 2³¹−1 ms, which fires at once in a browser, is the page's to test; the core sets no timer.

use fencegate::{
    Admitted, Cause, Deadline, Denied, Drift, Duration, Epoch, Fence, FenceRecord, GrantDenied, GrantProof,
    GrantRecord, GrantTerms, Grantor, Holder, HolderId, Instant, Limits, Output, Permit, Plan, Proof, Refusal, Request,
    Schedule, Stamp, Token,
};

fn ms(ms: u32) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1_000)
}

fn stamp(epoch: u32, token: u64, holder: &str) -> Stamp {
    Stamp { epoch: Epoch(epoch), token: Token::new(token).unwrap(), holder: HolderId::new(holder).unwrap() }
}

/// T = 9 s, 1,000 ppm, d = 100 ms: a window of 8.991 s, a heartbeat of 2.9 s, cancellation after 3 s.
fn schedule() -> Schedule {
    Plan::for_ttl(ms(9_000)).drift(Drift::from_ppm(1_000)).round_trip(ms(100)).build().unwrap()
}

fn holder() -> Holder {
    Holder::new(schedule(), HolderId::new("a").unwrap())
}

fn acquire(holder: &mut Holder, now: u64) -> Request {
    match holder.poll(at(now)) {
        Output::SendAcquire(request) => request,
        other => panic!("at {now} ms: {other:?}"),
    }
}

fn renewal(holder: &mut Holder, now: u64) -> Request {
    match holder.poll(at(now)) {
        Output::SendRenewal(request, _) => request,
        other => panic!("at {now} ms: {other:?}"),
    }
}

fn grant(holder: &mut Holder, now: u64, request: Request, stamp: Stamp) {
    holder.granted(at(now), request, stamp, None);
    assert_eq!(holder.poll(at(now)), Output::Raise(stamp));
    holder.raised(at(now), stamp);
}

/// A holder that has asked at 0 and holds token 33 since 50 ms.
fn held() -> Holder {
    let mut holder = holder();
    let request = acquire(&mut holder, 0);
    grant(&mut holder, 50, request, stamp(0, 33, "a"));
    holder
}

fn act(holder: &mut Holder, now: u64, work: u32) -> Result<Permit, Denied> {
    holder.may_act(at(now), ms(work))
}

fn grantor(record: GrantRecord) -> Grantor {
    let terms = GrantTerms {
        drift: Drift::ZERO,
        lock_delay: Duration::ZERO,
        longest_ttl: ms(60_000),
        epoch_jump: Limits::EPOCH_JUMP,
    };
    Grantor::boot(Some(record), terms, at(0)).unwrap()
}

fn give(grantor: &mut Grantor, now: u64, holder: &str) -> Stamp {
    let granting = grantor.acquire(at(now), HolderId::new(holder).unwrap(), ms(9_000)).unwrap();
    let proof = GrantProof::read_back(granting.record());
    grantor.commit(at(now), granting, proof).unwrap().stamp
}

#[test]
fn a_validity_window_with_the_sign_of_the_drift_wrong() {
    assert!(schedule().window() < ms(9_000), "drift shortens what the holder has");
    let outlasted = Drift::from_ppm(1_000).outlast(ms(9_000)).unwrap();
    assert!(outlasted > ms(9_000), "and lengthens what others wait");
}

#[test]
fn less_than_for_less_or_equal_at_the_deadline() {
    let end = Deadline::after(at(0), ms(100)).unwrap();
    assert!(!end.is_over(Instant::from_micros(99_999)));
    assert!(end.is_over(at(100)));
    let mut h = held();
    let last = Duration::from_micros(8_991_000 - 50_000 - 1);
    assert!(h.may_act(at(50), last).is_ok());
    assert!(matches!(h.may_act(at(50), ms(8_991 - 50)), Err(Denied::Time { .. })));
}

#[test]
fn a_deadline_counted_from_the_first_of_several_tries() {
    let mut h = holder();
    let first = acquire(&mut h, 0);
    h.lost(at(1_000), first, 0);
    let second = acquire(&mut h, 5_000);
    grant(&mut h, 5_100, second, stamp(0, 33, "a"));
    assert_eq!(act(&mut h, 5_100, 1).unwrap().deadline(), Deadline::at(at(5_000 + 8_991)));

    // And the other way round: the answer to the first try gives no more than the first try's window.
    let mut h = holder();
    let first = acquire(&mut h, 0);
    h.lost(at(1_000), first, 0);
    acquire(&mut h, 5_000);
    h.granted(at(5_100), first, stamp(0, 33, "a"), None);
    assert_eq!(h.deadline(), Some(Deadline::at(at(8_991))));
}

#[test]
fn a_window_that_grew_because_a_servers_timer_did() {
    let mut h = holder();
    let request = acquire(&mut h, 0);
    h.granted(at(50), request, stamp(0, 33, "a"), Some(ms(3_600_000)));
    assert_eq!(h.deadline(), Some(Deadline::at(at(8_991))));
}

#[test]
fn renewal_that_dies_after_one_error() {
    let mut h = held();
    let mut now = 2_900;
    let mut tries = 0;
    while h.stamp().is_some() {
        match h.poll(at(now)) {
            Output::SendRenewal(request, _) => {
                tries += 1;
                h.lost(at(now), request, 0);
            }
            Output::Wait(until) => now = until.unwrap().as_micros().div_ceil(1_000),
            _ => {}
        }
    }
    assert_eq!((tries, now), (5, 8_991), "until the end of the window, and not beyond");
}

#[test]
fn renewal_that_outlives_the_release() {
    let mut h = held();
    let late = renewal(&mut h, 2_900);
    h.stop(at(2_950));
    assert_eq!(h.poll(at(2_950)), Output::Cancel(Cause::Stopped));
    assert_eq!(h.poll(at(2_950)), Output::SendRelease(stamp(0, 33, "a")));
    h.released(at(3_000), stamp(0, 33, "a"));
    h.renewed(at(3_010), late, None);
    assert_eq!((h.stamp(), h.poll(at(3_600_000))), (None, Output::Wait(None)));
}

#[test]
fn release_that_hits_the_next_owner() {
    let mut g = grantor(GrantRecord::floor(Epoch(0), 32));
    let a = give(&mut g, 0, "a");
    let b = give(&mut g, 9_000, "b");
    assert!(matches!(g.release(at(9_001), a), Err(GrantDenied::Refused(refused)) if refused.reason == Refusal::Stale));
    assert_eq!(g.current(at(9_001)), Some(b));

    let mut fence = Fence::new(g.record().unwrap().mark, Limits::default());
    assert_eq!(fence.release(a).unwrap_err().reason, Refusal::Stale);
    let release = fence.release(b).unwrap();
    let proof = Proof::read_back(release.record());
    fence.commit_release(release, proof).unwrap();
}

/// The permit carries the stamp of its own acquisition, and nothing hands out a later one.
#[test]
fn a_token_fetched_later_instead_of_bound_to_the_acquisition() {
    let mut h = held();
    let permit = act(&mut h, 100, 10).unwrap();
    assert_eq!(h.poll(at(9_000)), Output::Cancel(Cause::Expired));
    let request = acquire(&mut h, 9_000);
    grant(&mut h, 9_050, request, stamp(0, 35, "a"));
    assert_eq!(permit.stamp(), stamp(0, 33, "a"), "what was begun under 33 stays under 33");
    assert_eq!(h.covers(at(9_060), &permit), Err(Denied::NoLease));

    let fence = Fence::new(
        FenceRecord { epoch: Epoch(0), token: 35, holder: HolderId::new("a").ok(), released: false },
        Limits::default(),
    );
    assert!(matches!(fence.admit(permit.stamp()), Admitted::Refused(_)));
}

#[test]
fn a_token_that_goes_backwards_after_a_restore() {
    let mut h = holder();
    let request = acquire(&mut h, 0);
    grant(&mut h, 50, request, stamp(0, 2_000, "a"));
    assert_eq!(h.poll(at(9_000)), Output::Cancel(Cause::Expired));
    let request = acquire(&mut h, 9_000);
    h.granted(at(9_050), request, stamp(0, 1_501, "a"), None);
    assert_eq!(h.poll(at(9_050)), Output::Cancel(Cause::NotNewer));
    assert!(matches!(act(&mut h, 9_050, 1), Err(Denied::NoLease)));

    // The operator raises the epoch, and the same number outranks 2,000.
    let mut fence = Fence::new(
        FenceRecord { epoch: Epoch(0), token: 2_000, holder: HolderId::new("a").ok(), released: false },
        Limits::default(),
    );
    let epoch = fence.raise_epoch(Epoch(1), 1_500).unwrap();
    let proof = Proof::read_back(epoch.record());
    fence.commit_epoch(epoch, proof).unwrap();
    assert!(matches!(fence.admit(stamp(1, 1_501, "a")), Admitted::Raise(_)));
}

#[test]
fn milliseconds_that_wrap_when_turned_into_nanoseconds() {
    let longest = std::time::Duration::from_millis(u64::MAX);
    assert_eq!(Duration::floor_from(longest), None, "not some other number");
    let year = std::time::Duration::from_hours(400 * 365 * 24);
    assert!(year.as_nanos() > u128::from(i64::MAX.cast_unsigned()));
    assert_eq!(Duration::floor_from(year).map(Duration::as_micros), Some(400 * 365 * 86_400_000_000));
    assert!(Plan::for_ttl(Duration::from_micros(u64::MAX)).round_trip(ms(1)).build().is_err());
}

/// The core has no clock: one that counts on in suspend has jumped when the machine wakes up, and a jump is time.
#[test]
fn an_instant_blind_to_suspend() {
    let mut h = held();
    let permit = act(&mut h, 100, 10).unwrap();
    let waking = 100 + 3_600_000;
    assert!(matches!(act(&mut h, waking, 0), Err(Denied::NoLease)));
    assert_eq!(h.covers(at(waking), &permit), Err(Denied::NoLease));
    assert_eq!(h.poll(at(waking)), Output::Cancel(Cause::Expired));
}

#[test]
fn a_high_water_mark_written_late_and_lost_at_a_power_cut() {
    let stored = FenceRecord::floor(Epoch(0), 0);
    let mut fence = Fence::new(stored, Limits::default());
    let Admitted::Raise(raise) = fence.admit(stamp(0, 34, "b")) else { panic!() };
    // Cut before the store: nothing has acted under 34, and 33 may.
    let rebooted = Fence::new(stored, Limits::default());
    assert!(matches!(rebooted.admit(stamp(0, 33, "a")), Admitted::Raise(_)));
    // Cut after it, and before the commit: 33 is fenced out.
    let stored = raise.record();
    let rebooted = Fence::new(stored, Limits::default());
    assert!(matches!(rebooted.admit(stamp(0, 33, "a")), Admitted::Refused(_)));
    // A pass needs the proof of what was stored.
    assert!(fence.commit(raise, Proof::read_back(FenceRecord::floor(Epoch(0), 0))).is_err());

    let mut g = grantor(GrantRecord::floor(Epoch(0), 0));
    let granting = g.acquire(at(0), HolderId::new("a").unwrap(), ms(9_000)).unwrap();
    assert_eq!(g.current(at(0)), None, "nobody is told a token that is not stored");
    drop(granting);
}

#[test]
fn a_sender_reset_to_zero_that_is_locked_out_and_the_reset_that_then_lets_replays_in() {
    let old = FenceRecord { epoch: Epoch(0), token: 900, holder: HolderId::new("a").ok(), released: false };
    let mut fence = Fence::new(old, Limits::default());
    let Admitted::Refused(refused) = fence.admit(stamp(0, 1, "a")) else { panic!() };
    assert_eq!((refused.reason, refused.by), (Refusal::Stale, old), "locked out, and told by what");

    let epoch = fence.raise_epoch(Epoch(1), 0).unwrap();
    let proof = Proof::read_back(epoch.record());
    fence.commit_epoch(epoch, proof).unwrap();
    assert!(matches!(fence.admit(stamp(1, 1, "a")), Admitted::Raise(_)), "the cure lets the sender in");
    for replayed in [stamp(0, 900, "a"), stamp(0, 901, "a"), stamp(0, u64::MAX, "b")] {
        assert!(matches!(fence.admit(replayed), Admitted::Refused(_)), "and nothing of before: {replayed}");
    }
}
