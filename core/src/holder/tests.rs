//! Each test is a story: what was polled at what time, what came back, what did not. Times are milliseconds.
//!
//! T = 9 s between clocks that differ by at most 1,000 ppm, a worst round trip of 100 ms: the window is 8.991 s, a
//! heartbeat 2.9 s, and cancellation trips after more than 3 s of silence.

use super::*;
use crate::{Drift, Plan};
use std::vec::Vec;

mod end;
mod renew;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1_000)
}

fn ms(ms: u32) -> Duration {
    Duration::from_millis(ms)
}

fn stamp(token: u64) -> Stamp {
    Stamp { epoch: Epoch(0), token: Token::new(token).unwrap(), holder: HolderId::new("press-a#1").unwrap() }
}

fn nr(number: u64) -> Request {
    Request::from_number(number)
}

fn fresh() -> Holder {
    let schedule = Plan::for_ttl(ms(9_000)).drift(Drift::from_ppm(1_000)).round_trip(ms(100)).poll(ms(200)).build();
    Holder::new(schedule.unwrap(), HolderId::new("press-a#1").unwrap())
}

/// A holder that was granted token 33 at 50 ms, on a request sent at 0, and has raised the fence.
fn held() -> Holder {
    with_lease(fresh())
}

fn with_lease(mut holder: Holder) -> Holder {
    says!(holder, t = 0, Output::SendAcquire(nr(1)));
    tell!(holder, t = 50, granted(nr(1), stamp(33), None));
    says!(holder, t = 50, Output::Raise(stamp(33)));
    tell!(holder, t = 50, raised(stamp(33)));
    holder
}

/// What the holder wants at `t` before it waits, and until when it does.
fn drain(holder: &mut Holder, t: u64) -> (Vec<Output>, Option<Instant>) {
    let mut outputs = Vec::new();
    loop {
        assert!(outputs.len() < 8, "it never waits: {outputs:?}");
        match holder.poll(at(t)) {
            Output::Wait(until) => {
                assert!(until.is_none_or(|until| until > at(t)), "it would be polled again at once: {until:?}");
                return (outputs, until);
            }
            output => outputs.push(output),
        }
    }
}

/// At `t` the holder says exactly this, and then waits.
macro_rules! says {
    ($holder:ident, t = $t:expr $(, $output:expr)*) => {
        assert_eq!(drain(&mut $holder, $t).0, [$($output),*] as [Output; _], "at {} ms", $t)
    };
}

/// At `t` the holder says nothing, and wants to be polled at `until`.
macro_rules! waits {
    ($holder:ident, t = $t:expr, until = $until:expr) => {
        assert_eq!(drain(&mut $holder, $t), (Vec::new(), Some($until)), "at {} ms", $t)
    };
    ($holder:ident, t = $t:expr, for_ever) => {
        assert_eq!(drain(&mut $holder, $t), (Vec::new(), None), "at {} ms", $t)
    };
}

/// The holder is told at `t`.
macro_rules! tell {
    ($holder:ident, t = $t:expr, $event:ident($($arg:expr),*)) => {
        $holder.$event(at($t) $(, $arg)*)
    };
}

/// What the holder is told at `t` changes nothing but the time.
macro_rules! ignores {
    ($holder:ident, t = $t:expr, $event:ident($($arg:expr),*)) => {{
        let _ = $holder.covers(at($t), &Permit { stamp: stamp(1), deadline: Deadline::at(at(0)), ends: at(0), after: 0 });
        let before = $holder.clone();
        $holder.$event(at($t) $(, $arg)*);
        assert_eq!($holder, before, "{} at {} ms", stringify!($event), $t);
    }};
}

/// The permit for work that may begin at `t`, in a window that ends at `until`.
macro_rules! permit {
    ($holder:ident, t = $t:expr, work = $work:expr, until = $until:expr) => {{
        let permit = $holder.may_act(at($t), ms($work)).unwrap_or_else(|denied| panic!("at {} ms: {denied}", $t));
        assert_eq!(permit.deadline(), Deadline::at(at($until)), "at {} ms", $t);
        assert_eq!(permit.ends(), at($t + $work));
        permit
    }};
}

/// At `t` work may begin, and its window ends at `until`.
macro_rules! acts {
    ($holder:ident, t = $t:expr, work = $work:expr, until = $until:expr) => {
        let _ = permit!($holder, t = $t, work = $work, until = $until);
    };
}

/// At `t` work may not begin.
macro_rules! denied {
    ($holder:ident, t = $t:expr, work = $work:expr, $denied:expr) => {
        assert_eq!($holder.may_act(at($t), ms($work)), Err($denied), "at {} ms", $t)
    };
}

use {acts, denied, ignores, permit, says, tell, waits};

#[test]
fn the_first_lease() {
    let mut h = fresh();
    denied!(h, t = 0, work = 1, Denied::NoLease);
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    waits!(h, t = 0, until = at(3_000));
    denied!(h, t = 10, work = 1, Denied::NoLease);

    tell!(h, t = 50, granted(nr(1), stamp(33), Some(ms(9_000))));
    denied!(h, t = 50, work = 1, Denied::NotRaised);
    says!(h, t = 50, Output::Raise(stamp(33)));
    denied!(h, t = 51, work = 1, Denied::NotRaised);
    tell!(h, t = 60, raised(stamp(33)));

    let permit = permit!(h, t = 60, work = 200, until = 8_991);
    assert_eq!(permit.stamp(), stamp(33));
    waits!(h, t = 60, until = at(2_900));
    assert_eq!((h.stamp(), h.deadline()), (Some(stamp(33)), Some(Deadline::at(at(8_991)))));
    assert_eq!((h.id(), h.schedule().ttl()), (stamp(33).holder, ms(9_000)));
}

#[test]
fn the_raise_comes_before_a_renewal_that_is_due() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 2_950, granted(nr(1), stamp(33), None));
    ignores!(h, t = 2_950, raised(stamp(33)));
    says!(h, t = 2_950, Output::Raise(stamp(33)), Output::SendRenewal(nr(2), stamp(33)));
    ignores!(h, t = 2_950, raised(stamp(32)));
    denied!(h, t = 2_950, work = 1, Denied::NotRaised);
}

#[test]
fn work_ends_strictly_inside_the_window() {
    let mut h = held();
    let (end, us) = (8_991_000, |us| Duration::from_micros(us));
    assert!(h.may_act(at(50), us(end - 50_000 - 1)).is_ok());
    let left = us(end - 50_000);
    assert_eq!(h.may_act(at(50), left), Err(Denied::Time { left }), "at the deadline itself it is over");
    assert_eq!(h.may_act(at(50), us(u64::MAX)), Err(Denied::Time { left }), "past the end of the clock");
}

#[test]
fn a_lease_is_over_at_its_deadline_and_needs_nobodys_reply() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    says!(h, t = 3_051, Output::Cancel(Cause::Unanswered));
    says!(h, t = 5_800, Output::SendRenewal(nr(3), stamp(33)));
    says!(h, t = 8_700, Output::SendRenewal(nr(4), stamp(33)));
    waits!(h, t = 8_990, until = at(8_991));
    denied!(h, t = 8_990, work = 0, Denied::Tripped);
    denied!(h, t = 8_991, work = 0, Denied::NoLease);
    says!(h, t = 8_991, Output::Cancel(Cause::Expired), Output::SendAcquire(nr(5)));
    assert_eq!((h.stamp(), h.deadline()), (None, None));
    ignores!(h, t = 8_992, renewed(nr(4), None));
}

#[test]
fn a_holder_that_was_refused_asks_again_when_the_lease_may_be_free() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 50, refused(nr(1), Some(ms(4_000)), 0));
    waits!(h, t = 50, until = at(4_200));
    ignores!(h, t = 60, granted(nr(1), stamp(33), None));
    says!(h, t = 4_250, Output::SendAcquire(nr(2)));
    tell!(h, t = 4_300, refused(nr(2), None, 1 << 31));
    waits!(h, t = 4_300, until = at(4_400));
    says!(h, t = 4_450, Output::SendAcquire(nr(3)));
    tell!(h, t = 4_500, refused(nr(3), Some(Duration::from_micros(u64::MAX)), 0));
    waits!(h, t = 4_500, until = at(4_450 + 9_200));
    says!(h, t = 13_650, Output::SendAcquire(nr(4)));
    tell!(h, t = 14_000, refused(nr(4), None, 0));
    says!(h, t = 14_000, Output::SendAcquire(nr(5)));
}

#[test]
fn an_acquire_without_an_answer_is_sent_again_and_each_counts_from_its_own_sending() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 1_000, lost(nr(1), 0));
    waits!(h, t = 1_000, until = at(1_200));
    says!(h, t = 1_200, Output::SendAcquire(nr(2)));
    ignores!(h, t = 1_201, lost(nr(1), 0));
    waits!(h, t = 1_201, until = at(4_200));
    says!(h, t = 4_200, Output::SendAcquire(nr(3)));
    tell!(h, t = 4_250, granted(nr(2), stamp(33), None));
    says!(h, t = 4_250, Output::Raise(stamp(33)), Output::SendRenewal(nr(4), stamp(33)));
    tell!(h, t = 4_260, raised(stamp(33)));
    acts!(h, t = 4_260, work = 1, until = 1_200 + 8_991);
    ignores!(h, t = 4_270, granted(nr(3), stamp(34), None));
}

#[test]
fn a_connection_that_took_its_time_starts_the_timer_when_the_request_leaves() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 400, sent(nr(1)));
    waits!(h, t = 400, until = at(3_400));
    ignores!(h, t = 500, sent(nr(1)));
    ignores!(h, t = 500, sent(nr(2)));
    tell!(h, t = 500, granted(nr(1), stamp(33), None));
    says!(h, t = 500, Output::Raise(stamp(33)));
    waits!(h, t = 500, until = at(3_300));
    tell!(h, t = 500, raised(stamp(33)));
    acts!(h, t = 500, work = 1, until = 400 + 8_991);
    says!(h, t = 3_300, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 3_350, sent(nr(2)));
    tell!(h, t = 3_400, renewed(nr(2), None));
    waits!(h, t = 3_400, until = at(3_350 + 2_900));
    acts!(h, t = 3_400, work = 1, until = 3_350 + 8_991);
}

#[test]
fn a_grant_to_somebody_else_is_none() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    let other = Stamp { holder: HolderId::new("press-a#2").unwrap(), ..stamp(33) };
    ignores!(h, t = 1, granted(nr(1), other, None));
    ignores!(h, t = 1, granted(nr(2), stamp(33), None));
    ignores!(h, t = 1, renewed(nr(1), None));
}

/// Every call at every small time after every other: nothing panics, and it always comes to wait.
#[test]
fn no_order_of_calls_is_a_panic_or_a_loop() {
    let calls: &[fn(&mut Holder, Instant, u64)] = &[
        |h, now, n| h.granted(now, nr(n), stamp(n), None),
        |h, now, n| h.renewed(now, nr(n), None),
        |h, now, n| h.refused(now, nr(n), None, 7),
        |h, now, n| h.lost(now, nr(n), 7),
        |h, now, n| h.released(now, stamp(n)),
        |h, now, n| h.revoked(now, stamp(n)),
        |h, now, n| h.raised(now, stamp(n)),
        |h, now, n| h.fenced(now, stamp(n)),
        |h, now, _| h.progress(now),
        |h, now, _| h.stopped(now),
        |h, now, n| h.hand_over(now, Duration::from_micros(n)),
        |h, now, _| h.stop(now),
        |h, now, n| h.sent(now, nr(n)),
        |h, now, n| drop(h.may_act(now, Duration::from_micros(n))),
    ];
    let mut random = 1_u64;
    let mut pick = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    for run in 0..if cfg!(miri) { 20 } else { 2_000_u64 } {
        let mut h = fresh().progress_within(ms(4_000)).longest_hold(ms(20_000));
        let mut now = if run % 10 == 0 { u64::MAX / 1_000 - 20_000 } else { 0 };
        for _ in 0..60 {
            let (call, n) = (calls[usize::try_from(pick(14)).unwrap()], pick(3) + h.number);
            call(&mut h, at(now), n.max(1));
            drain(&mut h, now);
            assert!(h.deadline().is_none_or(|deadline| !deadline.is_over(at(now))));
            now = (now + pick(4) * pick(1_500)).min(u64::MAX / 1_000);
        }
    }
}

#[test]
fn a_holder_is_small() {
    assert!(size_of::<Holder>() <= 400, "{}", size_of::<Holder>());
    assert!(size_of::<Output>() <= 48, "{}", size_of::<Output>());
    assert!(size_of::<Permit>() <= 64, "{}", size_of::<Permit>());
}
