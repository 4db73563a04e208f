//! How a lease ends.

use super::*;

#[test]
fn asked_to_stop_it_cancels_waits_for_the_work_and_releases() {
    let mut h = held();
    let permit = permit!(h, t = 1_000, work = 500, until = 8_991);
    tell!(h, t = 1_100, stop());
    denied!(h, t = 1_100, work = 1, Denied::Ending);
    assert_eq!(h.covers(at(1_100), &permit), Err(Denied::Tripped));
    says!(h, t = 1_100, Output::Cancel(Cause::Stopped));
    waits!(h, t = 2_900, until = at(8_991));
    assert!(!h.is_done());
    tell!(h, t = 3_000, stopped());
    says!(h, t = 3_000, Output::SendRelease(stamp(33)));
    assert!(!h.is_done());
    ignores!(h, t = 3_010, released(stamp(32)));
    tell!(h, t = 3_010, released(stamp(33)));
    assert!(h.is_done());
    waits!(h, t = 3_010, for_ever);
}

#[test]
fn after_the_release_a_late_answer_changes_nothing() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_901, stop());
    says!(h, t = 2_901, Output::Cancel(Cause::Stopped), Output::SendRelease(stamp(33)));
    ignores!(h, t = 2_950, renewed(nr(2), None));
    ignores!(h, t = 2_950, granted(nr(1), stamp(33), None));
    tell!(h, t = 2_960, released(stamp(33)));
    ignores!(h, t = 2_970, renewed(nr(2), None));
    ignores!(h, t = 2_970, released(stamp(33)));
    assert_eq!(h.stamp(), None);
}

#[test]
fn a_release_without_an_answer_is_repeated_until_the_lease_has_run_out_there() {
    let mut h = held();
    tell!(h, t = 1_000, hand_over(ms(500)));
    says!(h, t = 1_000, Output::SendRelease(stamp(33)));
    denied!(h, t = 1_000, work = 1, Denied::NoLease);
    for t in [3_900, 6_800, 9_700] {
        waits!(h, t = t - 1, until = at(t));
        says!(h, t = t, Output::SendRelease(stamp(33)));
    }
    waits!(h, t = 9_999, until = at(10_000));
    waits!(h, t = 10_000, until = at(10_500));
    says!(h, t = 10_500, Output::SendAcquire(nr(2)));
}

#[test]
fn handing_over_lets_the_work_in_hand_finish() {
    let mut h = held();
    let permit = permit!(h, t = 1_000, work = 500, until = 8_991);
    tell!(h, t = 1_100, hand_over(ms(30_000)));
    denied!(h, t = 1_100, work = 1, Denied::Ending);
    assert_eq!((h.stamp(), h.deadline()), (Some(stamp(33)), Some(Deadline::at(at(8_991)))));
    assert_eq!(h.covers(at(1_499), &permit), Ok(()));
    says!(h, t = 3_500);
    tell!(h, t = 3_600, stopped());
    says!(h, t = 3_600, Output::SendRelease(stamp(33)));
    tell!(h, t = 3_650, released(stamp(33)));
    waits!(h, t = 3_650, until = at(33_650));
    says!(h, t = 33_650, Output::SendAcquire(nr(2)));
}

#[test]
fn with_no_work_in_hand_it_releases_at_once() {
    let mut h = held();
    acts!(h, t = 1_000, work = 500, until = 8_991);
    tell!(h, t = 1_100, stopped());
    tell!(h, t = 1_200, hand_over(ms(100)));
    says!(h, t = 1_200, Output::SendRelease(stamp(33)));

    // What was begun under the last lease is fenced out, and does not hold up this one's release.
    let mut h = held();
    acts!(h, t = 1_000, work = 500, until = 8_991);
    says!(h, t = 8_991, Output::Cancel(Cause::Expired), Output::SendAcquire(nr(2)));
    tell!(h, t = 9_000, granted(nr(2), stamp(34), None));
    says!(h, t = 9_000, Output::Raise(stamp(34)));
    tell!(h, t = 9_100, stop());
    says!(h, t = 9_100, Output::Cancel(Cause::Stopped), Output::SendRelease(stamp(34)));
}

#[test]
fn an_answer_from_an_earlier_lease_is_none_to_a_later_request() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    ignores!(h, t = 2_950, granted(nr(2), stamp(34), None));
    says!(h, t = 8_991, Output::Cancel(Cause::Expired), Output::SendAcquire(nr(3)));
    ignores!(h, t = 8_992, refused(nr(2), None, 0));
    ignores!(h, t = 8_992, granted(nr(2), stamp(34), None));

    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_910, hand_over(ms(50)));
    says!(h, t = 2_910, Output::SendRelease(stamp(33)));
    tell!(h, t = 2_950, released(stamp(33)));
    says!(h, t = 3_000, Output::SendAcquire(nr(3)));
    ignores!(h, t = 3_010, refused(nr(2), None, 0));
}

/// The first try was refused, since the second had been granted by then: only the second counts.
#[test]
fn a_refusal_of_an_earlier_try_does_not_end_the_lease() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    says!(h, t = 3_000, Output::SendAcquire(nr(2)));
    tell!(h, t = 3_050, granted(nr(2), stamp(33), None));
    says!(h, t = 3_050, Output::Raise(stamp(33)));
    ignores!(h, t = 3_060, refused(nr(1), None, 0));
    assert_eq!(h.stamp(), Some(stamp(33)));
}

#[test]
fn work_that_does_not_finish_in_time_ends_with_the_window() {
    let mut h = held();
    acts!(h, t = 1_000, work = 500, until = 8_991);
    tell!(h, t = 1_100, hand_over(ms(100)));
    says!(h, t = 8_990);
    says!(h, t = 8_991, Output::Cancel(Cause::Expired));
    waits!(h, t = 8_991, until = at(9_091));
}

#[test]
fn told_to_stop_while_handing_over_it_cancels_after_all() {
    let mut h = held();
    let permit = permit!(h, t = 1_000, work = 500, until = 8_991);
    tell!(h, t = 1_100, hand_over(ms(100)));
    tell!(h, t = 1_200, stop());
    says!(h, t = 1_200, Output::Cancel(Cause::Stopped));
    assert_eq!(h.covers(at(1_200), &permit), Err(Denied::Tripped));
    says!(h, t = 8_991, Output::Cancel(Cause::Expired));
    assert!(h.is_done());
}

#[test]
fn a_worker_that_hangs_loses_its_lease_though_its_watchdog_polls_for_ever() {
    let mut h = with_lease(fresh().progress_within(ms(4_000)));
    acts!(h, t = 1_000, work = 100, until = 8_991);
    tell!(h, t = 1_200, progress());
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_950, renewed(nr(2), None));
    waits!(h, t = 5_199, until = at(5_200));
    says!(h, t = 5_200, Output::Cancel(Cause::NoProgress));
    waits!(h, t = 11_000, until = at(11_891));
    says!(h, t = 11_891, Output::Cancel(Cause::Expired));
    waits!(h, t = 11_891, for_ever);
    denied!(h, t = 60_000, work = 1, Denied::NoLease);

    // Somebody shakes it awake: only then does it ask again.
    tell!(h, t = 60_000, progress());
    says!(h, t = 60_000, Output::SendAcquire(nr(3)));
}

#[test]
fn a_hanging_worker_that_is_stopped_gives_its_lease_back() {
    let mut h = with_lease(fresh().progress_within(ms(2_000)));
    acts!(h, t = 100, work = 100, until = 8_991);
    says!(h, t = 2_050, Output::Cancel(Cause::NoProgress));
    tell!(h, t = 2_500, stopped());
    says!(h, t = 2_500, Output::SendRelease(stamp(33)));
    tell!(h, t = 2_550, released(stamp(33)));
    waits!(h, t = 2_550, until = at(2_750));
}

#[test]
fn nobody_holds_longer_than_the_longest_hold() {
    let mut h = with_lease(fresh().longest_hold(ms(5_000)));
    acts!(h, t = 100, work = 100, until = 8_991);
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_950, renewed(nr(2), None));
    waits!(h, t = 4_999, until = at(5_000));
    says!(h, t = 5_000, Output::Cancel(Cause::HeldLongest));
    tell!(h, t = 5_100, stopped());
    says!(h, t = 5_100, Output::SendRelease(stamp(33)));
    tell!(h, t = 5_150, released(stamp(33)));
    waits!(h, t = 5_150, until = at(5_350));
}

#[test]
fn a_coordinator_may_revoke_early() {
    let mut h = held();
    acts!(h, t = 100, work = 100, until = 8_991);
    ignores!(h, t = 200, revoked(stamp(32)));
    tell!(h, t = 200, revoked(stamp(33)));
    denied!(h, t = 200, work = 1, Denied::NoLease);
    says!(h, t = 200, Output::Cancel(Cause::Revoked));
    waits!(h, t = 200, until = at(400));
}

#[test]
fn a_renewal_that_is_refused_ends_the_lease_at_once() {
    let mut h = held();
    acts!(h, t = 100, work = 100, until = 8_991);
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    ignores!(h, t = 2_950, refused(nr(1), None, 0));
    tell!(h, t = 2_950, refused(nr(2), None, 0));
    says!(h, t = 2_950, Output::Cancel(Cause::Refused));
    waits!(h, t = 2_950, until = at(3_150));
}

#[test]
fn a_fence_that_has_seen_a_higher_stamp_ends_the_lease() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 50, granted(nr(1), stamp(33), None));
    says!(h, t = 50, Output::Raise(stamp(33)));
    ignores!(h, t = 60, fenced(stamp(32)));
    tell!(h, t = 60, fenced(stamp(33)));
    says!(h, t = 60, Output::Cancel(Cause::Fenced), Output::SendRelease(stamp(33)));
    denied!(h, t = 60, work = 1, Denied::NoLease);
}

#[test]
fn a_lease_after_expiry_is_a_new_one_with_a_new_token() {
    let mut h = held();
    says!(h, t = 8_991, Output::Cancel(Cause::Expired), Output::SendAcquire(nr(2)));
    tell!(h, t = 9_050, granted(nr(2), stamp(33), None));
    says!(h, t = 9_050, Output::Cancel(Cause::NotNewer), Output::SendRelease(stamp(33)));
    tell!(h, t = 9_100, released(stamp(33)));
    says!(h, t = 9_300, Output::SendAcquire(nr(3)));
    tell!(h, t = 9_350, granted(nr(3), stamp(34), None));
    says!(h, t = 9_350, Output::Raise(stamp(34)));
    denied!(h, t = 9_350, work = 1, Denied::NotRaised);
}

#[test]
fn a_restored_coordinators_low_tokens_need_the_operators_epoch() {
    let mut h = held();
    says!(h, t = 8_991, Output::Cancel(Cause::Expired), Output::SendAcquire(nr(2)));
    tell!(h, t = 9_000, granted(nr(2), stamp(7), None));
    says!(h, t = 9_000, Output::Cancel(Cause::NotNewer), Output::SendRelease(stamp(7)));
    tell!(h, t = 9_000, released(stamp(7)));
    says!(h, t = 9_200, Output::SendAcquire(nr(3)));
    let restored = Stamp { epoch: Epoch(1), ..stamp(8) };
    tell!(h, t = 9_200, granted(nr(3), restored, None));
    says!(h, t = 9_200, Output::Raise(restored));
}

#[test]
fn a_grant_whose_window_is_over_is_given_back() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 8_991, granted(nr(1), stamp(33), None));
    says!(h, t = 8_991, Output::SendRelease(stamp(33)));
    assert_eq!(h.stamp(), None);
}

#[test]
fn a_grant_with_a_shorter_ttl_than_the_plans_is_given_back() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 50, granted(nr(1), stamp(33), Some(ms(8_999))));
    says!(h, t = 50, Output::Cancel(Cause::ShorterTtl), Output::SendRelease(stamp(33)));
}

#[test]
fn stopped_while_asking_it_gives_back_what_still_comes() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 10, stop());
    waits!(h, t = 10, until = at(3_000));
    assert!(!h.is_done());
    tell!(h, t = 50, granted(nr(1), stamp(33), None));
    says!(h, t = 50, Output::SendRelease(stamp(33)));
    tell!(h, t = 60, released(stamp(33)));
    assert!(h.is_done());

    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 10, stop());
    waits!(h, t = 3_000, for_ever);
    assert!(h.is_done(), "the answer has had its time");
}

#[test]
fn before_it_has_asked_it_may_stop_or_put_off_asking() {
    let mut h = fresh();
    tell!(h, t = 0, stop());
    assert!(h.is_done());
    waits!(h, t = 0, for_ever);

    let mut h = fresh();
    tell!(h, t = 5, hand_over(ms(100)));
    waits!(h, t = 5, until = at(105));
    says!(h, t = 105, Output::SendAcquire(nr(1)));
    tell!(h, t = 110, hand_over(ms(5_000)));
    tell!(h, t = 150, granted(nr(1), stamp(33), None));
    says!(h, t = 150, Output::Raise(stamp(33)));
}

#[test]
fn a_clock_that_runs_backwards_is_a_fault_and_a_fault_is_safe_for_good() {
    let mut h = held();
    let permit = permit!(h, t = 1_000, work = 500, until = 8_991);
    let fault = HolderFault::ClockRanBackwards;
    assert_eq!(h.may_act(Instant::from_micros(999_999), ms(1)), Err(Denied::Fault(fault)));
    denied!(h, t = 1_000, work = 1, Denied::Fault(fault));
    assert_eq!(h.covers(at(1_000), &permit), Err(Denied::Fault(fault)));
    ignores!(h, t = 1_000, renewed(nr(1), None));
    ignores!(h, t = 1_000, stopped());
    says!(h, t = 1_000, Output::Cancel(Cause::Fault(fault)));
    waits!(h, t = 1_000_000, for_ever);

    let mut idle = fresh();
    says!(idle, t = 5, Output::SendAcquire(nr(1)));
    ignores!(idle, t = 5, raised(stamp(1)));
    tell!(idle, t = 4, granted(nr(1), stamp(33), None));
    waits!(idle, t = 5, for_ever);
    denied!(idle, t = 5, work = 1, Denied::Fault(fault));
    ignores!(idle, t = 5, refused(nr(1), None, 0));
    tell!(idle, t = 5, stop());
    assert!(idle.is_done(), "the loop around it has an end");
}

#[test]
fn at_the_end_of_the_clock_there_is_no_deadline_and_so_no_lease() {
    let mut h = fresh();
    let end = Instant::from_micros(u64::MAX);
    let Output::SendAcquire(request) = h.poll(end) else { panic!() };
    assert_eq!(h.poll(end), Output::Wait(None));
    h.granted(end, request, stamp(33), None);
    assert_eq!(h.may_act(end, Duration::ZERO), Err(Denied::Fault(HolderFault::ClockEnded)));
    assert_eq!(h.poll(end), Output::Wait(None));

    let late = u64::MAX - 8_991_000 - 2_900_000 + 1;
    let mut h = fresh();
    let Output::SendAcquire(request) = h.poll(Instant::from_micros(late)) else { panic!() };
    h.granted(Instant::from_micros(late), request, stamp(33), None);
    assert_eq!(h.poll(Instant::from_micros(late)), Output::Raise(stamp(33)));
    let Output::SendRenewal(request, _) = h.poll(Instant::from_micros(u64::MAX - 8_990_999)) else { panic!() };
    h.renewed(Instant::from_micros(u64::MAX - 8_990_999), request, None);
    assert_eq!(h.poll(end), Output::Cancel(Cause::Fault(HolderFault::ClockEnded)));
}

#[test]
fn the_last_number_is_not_given_out_twice() {
    let fault = HolderFault::NumbersEnded;
    let mut h = fresh();
    h.number = u64::MAX;
    waits!(h, t = 0, for_ever);
    denied!(h, t = 0, work = 1, Denied::Fault(fault));

    let mut h = held();
    h.number = u64::MAX;
    says!(h, t = 2_900, Output::Cancel(Cause::Fault(fault)));

    let mut h = held();
    h.cancellations = u64::MAX;
    let permit = permit!(h, t = 60, work = 1, until = 8_991);
    tell!(h, t = 100, stop());
    says!(h, t = 100, Output::Cancel(Cause::Stopped));
    assert_eq!(h.covers(at(100), &permit), Err(Denied::Fault(fault)));
}

#[test]
fn each_reason_is_a_sentence_of_its_own() {
    use std::collections::HashSet;
    use std::string::ToString;
    let faults = [HolderFault::ClockRanBackwards, HolderFault::ClockEnded, HolderFault::NumbersEnded];
    let causes = [
        Cause::Unanswered,
        Cause::Expired,
        Cause::Refused,
        Cause::Revoked,
        Cause::Fenced,
        Cause::NoProgress,
        Cause::HeldLongest,
        Cause::Stopped,
        Cause::ShorterTtl,
        Cause::NotNewer,
        Cause::Fault(faults[0]),
        Cause::Fault(faults[1]),
        Cause::Fault(faults[2]),
    ];
    assert_eq!(causes.map(|cause| cause.to_string()).into_iter().collect::<HashSet<_>>().len(), 13);
    let denials = [
        Denied::NoLease,
        Denied::NotRaised,
        Denied::Tripped,
        Denied::Ending,
        Denied::Time { left: ms(3) },
        Denied::Fault(faults[0]),
    ];
    assert_eq!(denials.map(|denied| denied.to_string()).into_iter().collect::<HashSet<_>>().len(), 6);
    assert!(denials[4].to_string().contains("3000µs"));
}
