//! Renewals: what they move, what they do not, and what becomes of work while they stay away.

use super::*;

#[test]
fn a_renewal_counts_from_when_it_was_sent() {
    let mut h = held();
    says!(h, t = 2_899);
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    waits!(h, t = 2_900, until = Instant::from_micros(3_050_001));
    tell!(h, t = 2_990, renewed(nr(2), Some(ms(9_000))));
    waits!(h, t = 2_990, until = at(5_800));
    acts!(h, t = 2_990, work = 1, until = 2_900 + 8_991);
}

/// Each answer takes the whole of the worst round trip: no silence is ever too long.
#[test]
fn while_nothing_fails_cancellation_never_trips() {
    let mut h = held();
    for beat in 1..1_000_u64 {
        let t = beat * 2_900;
        waits!(h, t = t - 1, until = at(t));
        says!(h, t = t, Output::SendRenewal(nr(beat + 1), stamp(33)));
        says!(h, t = t + 100);
        tell!(h, t = t + 100, renewed(nr(beat + 1), None));
        acts!(h, t = t + 100, work = 1, until = t + 8_991);
    }
}

#[test]
fn a_repeated_answer_moves_nothing() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_950, renewed(nr(2), None));
    ignores!(h, t = 5_000, renewed(nr(2), None));
    says!(h, t = 5_800, Output::SendRenewal(nr(3), stamp(33)));
    ignores!(h, t = 5_900, renewed(nr(2), None));
    acts!(h, t = 5_900, work = 1, until = 2_900 + 8_991);
}

#[test]
fn answers_out_of_order_move_the_deadline_once() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_950, lost(nr(2), 0));
    says!(h, t = 3_000);
    says!(h, t = 3_313, Output::Cancel(Cause::Unanswered), Output::SendRenewal(nr(3), stamp(33)));
    tell!(h, t = 3_400, renewed(nr(3), None));
    acts!(h, t = 3_400, work = 1, until = 3_313 + 8_991);
    ignores!(h, t = 3_500, renewed(nr(2), None));
}

/// The first of two tries is answered after all: the window it gives ends before the second's would.
#[test]
fn a_late_answer_gives_what_its_own_sending_gives() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    says!(h, t = 5_800, Output::Cancel(Cause::Unanswered), Output::SendRenewal(nr(3), stamp(33)));
    tell!(h, t = 5_850, renewed(nr(2), None));
    acts!(h, t = 5_850, work = 1, until = 2_900 + 8_991);
    tell!(h, t = 5_900, renewed(nr(3), None));
    acts!(h, t = 5_900, work = 1, until = 5_800 + 8_991);
}

#[test]
fn retries_come_sooner_and_sooner_apart_and_stop_at_the_heartbeat() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_910, lost(nr(2), 0));
    waits!(h, t = 2_910, until = Instant::from_micros(3_050_001));
    says!(h, t = 3_051, Output::Cancel(Cause::Unanswered));
    waits!(h, t = 3_051, until = Instant::from_micros(2_910_000 + 362_500));
    says!(h, t = 3_273, Output::SendRenewal(nr(3), stamp(33)));
    tell!(h, t = 3_273, lost(nr(3), u32::MAX));
    waits!(h, t = 3_273, until = Instant::from_micros(3_273_000 + 362_501));
    says!(h, t = 3_700, Output::SendRenewal(nr(4), stamp(33)));
    tell!(h, t = 3_700, lost(nr(4), 0));
    waits!(h, t = 3_700, until = at(3_700 + 1_450));
    says!(h, t = 5_150, Output::SendRenewal(nr(5), stamp(33)));
    tell!(h, t = 5_160, lost(nr(5), 0));
    waits!(h, t = 5_160, until = at(5_150 + 2_900));
    ignores!(h, t = 5_170, lost(nr(4), 0));
    says!(h, t = 8_050, Output::SendRenewal(nr(6), stamp(33)));
    tell!(h, t = 8_100, renewed(nr(6), None));
    says!(h, t = 10_950, Output::SendRenewal(nr(7), stamp(33)));
    tell!(h, t = 10_950, lost(nr(7), 0));
    waits!(h, t = 10_951, until = Instant::from_micros(8_100_000 + 3_000_001));
    says!(h, t = 11_101, Output::Cancel(Cause::Unanswered));
    waits!(h, t = 11_101, until = Instant::from_micros(10_950_000 + 362_500));
}

#[test]
fn a_trip_is_final_for_the_work_in_hand_and_not_for_the_lease() {
    let mut h = held();
    let before = permit!(h, t = 2_000, work = 3_000, until = 8_991);
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    assert_eq!(h.covers(at(3_050), &before), Ok(()));
    denied!(h, t = 3_051, work = 1, Denied::Tripped);
    assert_eq!(h.covers(at(3_051), &before), Err(Denied::Tripped));
    tell!(h, t = 3_060, renewed(nr(2), None));
    denied!(h, t = 3_060, work = 1, Denied::Tripped);
    says!(h, t = 3_060, Output::Cancel(Cause::Unanswered));

    let after = permit!(h, t = 3_061, work = 3_000, until = 2_900 + 8_991);
    assert_eq!(h.covers(at(3_061), &after), Ok(()));
    assert_eq!(h.covers(at(3_061), &before), Err(Denied::Tripped), "the old work does not come back with the answer");
}

#[test]
fn silence_of_exactly_a_third_is_not_yet_too_long() {
    let mut h = held();
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    says!(h, t = 3_050);
    assert_eq!(h.poll(Instant::from_micros(3_050_001)), Output::Cancel(Cause::Unanswered));
}

#[test]
fn a_permit_is_good_for_its_own_window_only() {
    let mut h = held();
    let permit = permit!(h, t = 60, work = 8_000, until = 8_991);
    for beat in 1..=4 {
        says!(h, t = beat * 2_900, Output::SendRenewal(nr(beat + 1), stamp(33)));
        tell!(h, t = beat * 2_900, renewed(nr(beat + 1), None));
    }
    assert_eq!(h.covers(at(11_600), &permit), Err(Denied::Time { left: Duration::ZERO }));
}

#[test]
fn a_server_with_another_ttl_lengthens_nothing_and_shortens_the_hold() {
    let mut h = fresh();
    says!(h, t = 0, Output::SendAcquire(nr(1)));
    tell!(h, t = 50, granted(nr(1), stamp(33), Some(ms(60_000))));
    says!(h, t = 50, Output::Raise(stamp(33)));
    tell!(h, t = 50, raised(stamp(33)));
    acts!(h, t = 50, work = 1, until = 8_991);
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    tell!(h, t = 2_950, renewed(nr(2), Some(ms(600_000))));
    acts!(h, t = 2_950, work = 1, until = 2_900 + 8_991);

    says!(h, t = 5_800, Output::SendRenewal(nr(3), stamp(33)));
    tell!(h, t = 5_850, renewed(nr(3), Some(ms(8_999))));
    says!(h, t = 5_850, Output::Cancel(Cause::ShorterTtl));
    denied!(h, t = 5_850, work = 1, Denied::Ending);
    tell!(h, t = 5_900, stopped());
    says!(h, t = 5_900, Output::SendRelease(stamp(33)));
}

#[test]
fn a_suspended_machine_wakes_up_without_a_lease() {
    let mut h = held();
    let permit = permit!(h, t = 60, work = 100, until = 8_991);
    says!(h, t = 2_900, Output::SendRenewal(nr(2), stamp(33)));
    // The lid is shut for an hour; the answer was waiting in the socket.
    tell!(h, t = 3_600_000, renewed(nr(2), None));
    assert_eq!(h.covers(at(3_600_000), &permit), Err(Denied::NoLease));
    denied!(h, t = 3_600_000, work = 1, Denied::NoLease);
    says!(h, t = 3_600_000, Output::Cancel(Cause::Expired), Output::SendAcquire(nr(3)));
}
