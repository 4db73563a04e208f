//! Stamps, windows and challenges, told as what was sent, when, and what came back.

mod bench;

use bench::*;
use fencegate::{Duration, Epoch, FenceRecord, Instant, Token};
use fencegate_node::{Board, Gate, Memory, Remembered};
use fencegate_wire::{
    Challenge, ChannelState, Fault, GateId, GateStatus, Header, Nonce, OutputConfig, Reason, Refused, Reply, Request,
    Role, Sealed, seal,
};

#[test]
fn a_stale_command_bounces_and_names_what_beat_it() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), None);
    assert_eq!(b.pins(), [1, 0, 0, 0]);
    b.at(2_500); // A is frozen; its window is over
    assert_eq!(b.pins(), [0, 0, 0, 0]);
    assert_eq!(b.ask(holder("b"), raise(0, 34)), None);
    assert_eq!(b.ask(holder("b"), drive(0, 34, 2_000, &[1])), None);
    let challenge = b.challenge(holder("a"));
    let late = b.seal(holder("a"), Some(challenge), drive(0, 33, 0, &[0]));
    let answer = b.send(holder("a"), late).unwrap();
    let by = fence(0, 34, "b");
    assert_eq!(answer.reply, Reply::Refused(Refused { reason: Reason::Stale, by: Some(by), wait: Duration::ZERO }));
    assert_eq!(b.pins(), [1, 0, 0, 0], "B's work stands");
    b.power_cut();
    assert_eq!(b.pins(), [0, 0, 0, 0]);
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), Some(Reason::Stale));
}

#[test]
fn the_window_counts_from_the_challenge_and_equality_is_expiry() {
    let mut b = Bench::new();
    let challenge = b.challenge(holder("a")); // issued at 0
    b.at(700);
    assert_eq!(b.ask_with(holder("a"), challenge, drive(0, 33, 2_000, &[1])), None);
    // w′ = 2,000,000 − ⌈100 ppm⌉ 200 − L 5,000
    let end = challenge.tick + 1_994_800;
    b.now = end - 1;
    b.poll();
    assert_eq!((b.pins()[0], b.status(0).window_left), (1, Duration::from_micros(1)));
    b.now = end;
    b.poll();
    assert_eq!((b.pins()[0], b.status(0).state), (0, ChannelState::Safe));
}

#[test]
fn a_frame_held_back_dies_of_age() {
    let mut b = Bench::new();
    let challenge = b.challenge(holder("a"));
    let held_back = b.seal(holder("a"), Some(challenge), drive(0, 33, 2_000, &[1]));
    b.at(2_001);
    let answer = b.send(holder("a"), held_back).unwrap();
    assert_eq!(verdict(&answer.reply), Some(Reason::Expired));
    let challenge = b.challenge(holder("a"));
    b.now = challenge.tick + 60_000_000;
    assert_eq!(b.ask_with(holder("a"), challenge, raise(0, 33)), Some(Reason::Replay), "as old as the longest window");
    assert_eq!(b.status(0).record, FenceRecord::floor(Epoch(0), 0));
}

#[test]
fn a_recorded_line_played_again_does_nothing() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[0])), None);
    let recorded = b.line.clone();
    for frame in recorded {
        b.at(500);
        let answer = b.send(holder("a"), frame);
        // Reads are answered, the last drive is answered again, the first is a replay; none of them drives.
        let reason = answer.map(|a| a.reply).filter(|r| matches!(r, Reply::Refused(_))).and_then(|r| verdict(&r));
        assert!(matches!(reason, None | Some(Reason::Replay)));
        assert_eq!(b.pins()[0], 0);
    }
    let left = b.status(0).window_left;
    assert!(left < Duration::from_millis(1_500), "a repetition lengthens nothing: {left:?}");
    b.power_cut();
    for frame in b.line.clone() {
        b.send(holder("a"), frame);
        assert_eq!(b.pins()[0], 0, "a challenge of another boot");
    }
}

#[test]
fn the_identical_request_is_answered_again_and_never_done_again() {
    let mut b = Bench::new();
    let challenge = b.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), drive(0, 33, 2_000, &[1]));
    assert_eq!(verdict(&b.send(holder("a"), frame.clone()).unwrap().reply), None);
    b.at(2_500);
    assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), None);
    assert_eq!(b.pins()[0], 0);
    let challenge = b.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), release(0, 33));
    assert_eq!(verdict(&b.send(holder("a"), frame.clone()).unwrap().reply), None);
    assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), None, "its answer was lost, the release was not");
    assert_eq!(b.ask(holder("a"), release(0, 33)), Some(Reason::Released));
}

#[test]
fn one_challenge_does_one_thing() {
    let mut b = Bench::new();
    let challenge = b.challenge(holder("a"));
    assert_eq!(b.ask_with(holder("a"), challenge, drive(0, 33, 2_000, &[1])), None);
    assert_eq!(b.ask_with(holder("a"), challenge, drive(0, 33, 2_000, &[0])), Some(Reason::Replay));
    let invented = Challenge { tick: b.now + 1_000_000, ..challenge };
    assert_eq!(b.ask_with(holder("a"), invented, drive(0, 33, 2_000, &[1])), Some(Reason::Replay), "never issued");
    let frame = b.seal(holder("a"), None, raise(0, 40));
    assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), Some(Reason::Replay), "no challenge at all");
}

#[test]
fn a_raise_a_release_and_an_epoch_let_go() {
    let mut b = Bench::new();
    for (driver, token, role, request) in [
        ("a", 33, holder("b"), raise(0, 34)),
        ("b", 34, holder("b"), release(0, 34)),
        ("b", 35, holder("a"), release(0, 36)),
        ("b", 37, Role::Operator, Request::Epoch { channel: 0, epoch: Epoch(1), floor: 0 }),
    ] {
        assert_eq!(b.ask(holder(driver), drive(0, token, 2_000, &[1])), None);
        assert_eq!(b.pins()[0], 1);
        assert_eq!(b.ask(role, request), None);
        assert_eq!(b.pins()[0], 0);
    }
    assert_eq!(b.ask(holder("b"), drive(0, 99, 2_000, &[1])), Some(Reason::Stale), "of the epoch before");
}

#[test]
fn raising_again_with_the_stamp_in_force_leaves_the_output_alone() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), raise(0, 33)), None);
    assert_eq!(b.pins()[0], 1);
}

#[test]
fn a_shorter_later_window_shortens() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(0, 33, 100, &[1])), None);
    b.at(100);
    assert_eq!(b.pins()[0], 0);
}

#[test]
fn the_first_reason_that_applies_is_given() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), None);
    for (role, request, reason) in vec![
        (Role::Observer, drive(9, 1, 0, &[7, 7]), Reason::BadChannel),
        (Role::Observer, drive(0, 1, 0, &[7, 7]), Reason::Role),
        (Role::Operator, raise(0, 34), Reason::Role),
        (holder("a"), Request::Epoch { channel: 0, epoch: Epoch(0), floor: 0 }, Reason::Role),
        (holder("a"), drive(1, 1, 0, &[7]), Reason::Authority),
        (holder("a"), drive(0, 1, 0, &[7]), Reason::Range),
        (holder("a"), drive(0, 1, 0, &[1, 1]), Reason::Range),
        (holder("a"), drive(2, 1, 0, &[1]), Reason::Range),
        (holder("a"), drive(0, 32, 0, &[1]), Reason::Stale),
        (holder("b"), drive(0, 33, 0, &[1]), Reason::WrongHolder),
        (holder("a#2"), drive(0, 33, 0, &[1]), Reason::WrongHolder),
        (holder("b"), drive(0, 34 + (1 << 48), 0, &[1]), Reason::Jump),
        (holder("a"), drive(0, 33, 0, &[1]), Reason::Expired),
        (holder("a"), drive(0, 33, 5, &[1]), Reason::Expired),
        (Role::Operator, Request::Epoch { channel: 0, epoch: Epoch(0), floor: 0 }, Reason::Stale),
        (Role::Operator, Request::Epoch { channel: 0, epoch: Epoch(65_537), floor: 0 }, Reason::Jump),
        (Role::Operator, Request::Provision { config: provisioning().gate, channels: 1, outputs: 1 }, Reason::Range),
        (Role::Operator, Request::SetOutput { output: 0, config: OutputConfig::switch() }, Reason::Busy),
        (holder("a"), Request::Rearm { channel: 0 }, Reason::Role),
        (Role::Operator, acquire(1, 1_000), Reason::Role),
        (holder("a"), acquire(0, 1_000), Reason::Authority),
        (holder("a"), renew(0, 33), Reason::Authority),
        (holder("a"), acquire(1, 60_001), Reason::Range),
        (holder("a"), acquire(1, 0), Reason::Range),
    ] {
        let before = b.count(reason);
        assert_eq!(b.ask(role, request.clone()), Some(reason), "{request:?}");
        assert_eq!(b.count(reason), before + 1);
        assert_eq!(b.pins(), [1, 0, 0, 0], "a refusal moves nothing");
    }
}

#[test]
fn several_outputs_move_together() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(2, 1, 2_000, &[1, 1])), None);
    assert_eq!(b.pins(), [0, 0, 1, 1]);
    b.at(2_000);
    assert_eq!(b.pins(), [0, 0, 0, 0]);
}

#[test]
fn raises_have_a_budget_and_acting_has_none() {
    let mut b = Bench::new();
    for token in 1..=5 {
        assert_eq!(b.ask(holder("a"), raise(0, token)), None);
    }
    assert_eq!(b.ask(holder("a"), raise(0, 6)), Some(Reason::Rate));
    assert_eq!(b.ask(holder("a"), drive(0, 5, 2_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), release(0, 5)), None, "safe never waits");
    b.at(11_000);
    assert_eq!(b.ask(holder("a"), raise(0, 6)), None);
}

/// What was refused is refused: a copy of the frame that the line still holds is not done when the reason has passed.
#[test]
fn a_refused_frame_is_not_done_later() {
    let mut b = Bench::new();
    for token in 1..=5 {
        assert_eq!(b.ask(holder("a"), raise(0, token)), None);
    }
    let challenge = b.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), drive(0, 6, 60_000, &[1]));
    assert_eq!(verdict(&b.send(holder("a"), frame.clone()).unwrap().reply), Some(Reason::Rate));
    b.at(11_000);
    assert_eq!(verdict(&b.send(holder("a"), frame).unwrap().reply), Some(Reason::Rate));
    assert_eq!(b.pins()[0], 0);
    assert_eq!(b.ask(holder("a"), drive(0, 6, 60_000, &[1])), None, "asked anew it is done");
}

/// Nor is any of a queue of them, whichever was refused last.
#[test]
fn none_of_a_queue_of_refused_frames_is_done_later() {
    let mut b = Bench::new();
    for token in 1..=5 {
        assert_eq!(b.ask(holder("a"), raise(0, token)), None);
    }
    let mut queue = vec![];
    for token in 6..36 {
        let who = if token % 2 == 0 { "a" } else { "b" };
        let challenge = b.challenge(holder(who));
        let frame = b.seal(holder(who), Some(challenge), drive(0, token, 60_000, &[1]));
        assert_eq!(verdict(&b.send(holder(who), frame.clone()).unwrap().reply), Some(Reason::Rate));
        queue.push((holder(who), frame));
    }
    b.at(12_000);
    for (who, frame) in queue {
        let refused = verdict(&b.send(who, frame).unwrap().reply);
        assert!(matches!(refused, Some(Reason::Replay | Reason::Rate)), "{refused:?}");
        assert_eq!(b.pins()[0], 0);
    }
    assert_eq!(b.ask(holder("b"), drive(0, 40, 60_000, &[1])), None, "asked anew it is done");
}

#[test]
fn a_refused_release_moves_nobody_elses_output() {
    let mut b = Bench::new();
    for token in 1..=5 {
        assert_eq!(b.ask(holder("a"), raise(0, token)), None);
    }
    assert_eq!(b.ask(holder("a"), drive(0, 5, 10_000, &[1])), None);
    assert_eq!(b.ask(holder("b"), release(0, 6)), Some(Reason::Rate));
    assert_eq!(b.pins()[0], 1);
}

/// A holder that drives with windows as short as a store does not keep everybody else's stores waiting for ever.
#[test]
fn short_windows_do_not_keep_the_gate_busy_for_ever() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), raise(0, 1)), None);
    let epoch = Request::Epoch { channel: 2, epoch: Epoch(1), floor: 0 };
    let mut tries = 0;
    loop {
        b.ask(holder("a"), drive(0, 1, 24, &[1]));
        if b.ask(Role::Operator, epoch.clone()).is_none() {
            break;
        }
        tries += 1;
        assert!(tries < 10, "busy for ever");
        b.now += 10 * MS;
    }
    assert_eq!(b.ask(holder("a"), drive(0, 1, 24, &[1])), None, "and drives on afterwards");
}

#[test]
fn no_store_begins_that_could_outlast_another_channels_window() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), raise(0, 1)), None);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    b.at(980);
    assert!(b.status(0).window_left <= WORST_STORE);
    assert_eq!(b.ask(holder("b"), raise(2, 1)), Some(Reason::Busy));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    assert_eq!(b.ask(holder("b"), raise(2, 1)), None);
    assert_eq!(b.ask(holder("b"), raise(0, 2)), None, "a channel's own output lets go first");
}

#[test]
fn epochs_leap_as_far_as_provisioned_on_every_channel() {
    let mut b = Bench::with(|p| p.gate.epoch_jump = 3);
    for channel in 0..3 {
        let to = |epoch| Request::Epoch { channel, epoch: Epoch(epoch), floor: 0 };
        assert_eq!(b.ask(Role::Operator, to(4)), Some(Reason::Jump));
        assert_eq!(b.ask(Role::Operator, to(3)), None);
        assert_eq!(b.ask(Role::Operator, to(7)), Some(Reason::Jump));
        assert_eq!(b.ask(Role::Operator, to(6)), None);
    }
}

#[test]
fn a_store_that_outlasts_the_window_raises_and_does_not_act() {
    let mut b = Bench::new();
    b.storing = Some(300 * MS);
    assert_eq!(b.ask(holder("a"), drive(0, 33, 200, &[1])), Some(Reason::Expired));
    assert_eq!(b.pins()[0], 0);
    assert_eq!(b.status(0).record.token, 33);
}

#[test]
fn storage_that_fails_is_lost_until_the_operator_sets_an_epoch() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(2, 1, 10_000, &[1, 0])), None);
    b.storing = None;
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), Some(Reason::Storage));
    assert_eq!((b.pins(), b.status(0).state), (vec![0, 0, 1, 0], ChannelState::Fault), "the other channel goes on");
    let frame = b.seal(Role::Observer, None, Request::Status);
    let status = b.send(Role::Observer, frame).unwrap().reply;
    assert!(matches!(status, Reply::Status(GateStatus { fault: Some(Fault::Storage), .. })), "{status:?}");
    b.storing = Some(1);
    assert_eq!(b.ask(holder("a"), drive(0, 34, 2_000, &[1])), Some(Reason::Storage), "no waiting cures it");
    assert_eq!(b.ask(Role::Operator, Request::Epoch { channel: 0, epoch: Epoch(0), floor: 0 }), Some(Reason::Storage));
    let cure = Request::Epoch { channel: 0, epoch: Epoch(700_000), floor: 9 };
    assert_eq!(
        b.ask(Role::Operator, cure.clone()),
        Some(Reason::Busy),
        "what failed is mended first, once nothing is driven"
    );
    assert_eq!(b.ask(holder("a"), release(2, 1)), None);
    assert_eq!(b.ask(Role::Operator, cure), None);
    assert_eq!(b.ask(holder("a"), raise(0, 35)), Some(Reason::Stale));
    assert_eq!(b.status(0).state, ChannelState::Safe);
}

/// What was recorded before the loss is of no use after it: neither the operator's epoch nor a repetition.
#[test]
fn nothing_recorded_before_a_loss_restores_what_was_lost() {
    let mut b = Bench::new();
    let epoch = |epoch| Request::Epoch { channel: 0, epoch: Epoch(epoch), floor: 0 };
    let challenge = b.challenge(Role::Operator);
    let kept = b.challenge(Role::Operator);
    let unsent = b.seal(Role::Operator, Some(kept), epoch(9));
    let recorded = b.seal(Role::Operator, Some(challenge), epoch(5));
    assert_eq!(verdict(&b.send(Role::Operator, recorded.clone()).unwrap().reply), None);
    let in_5 = |token| Request::Raise { channel: 0, epoch: Epoch(5), token: Token::new(token).unwrap() };
    assert_eq!(b.ask(holder("a"), in_5(33)), None);
    let challenge = b.challenge(holder("b"));
    let raised = b.seal(holder("b"), Some(challenge), in_5(34));
    assert_eq!(verdict(&b.send(holder("b"), raised.clone()).unwrap().reply), None);
    b.storing = None;
    assert_eq!(b.ask(holder("b"), in_5(35)), Some(Reason::Storage));
    b.storing = Some(1);
    for (role, frame, reason) in [
        (Role::Operator, recorded, Reason::Stale), // the lost fence was last seen in epoch 5
        (Role::Operator, unsent, Reason::Replay),
        (holder("b"), raised, Reason::Storage),
    ] {
        assert_eq!(verdict(&b.send(role, frame).unwrap().reply), Some(reason));
        assert_eq!(b.status(0).state, ChannelState::Fault);
    }
    assert_eq!(b.ask(Role::Operator, epoch(6)), None);
    assert_eq!(b.ask(holder("a"), in_5(33)), Some(Reason::Stale));
}

#[test]
fn a_flash_that_cannot_be_written_takes_no_epoch_either() {
    let mut b = Bench::new();
    let memory = Memory {
        boots: 1 << 31,
        storable: false,
        marks: core::iter::repeat_n(Remembered::Lost(FenceRecord::floor(Epoch(0), 0)), 3).collect(),
        ..Memory::nothing()
    };
    let board = Board { outputs: 4, worst_store: WORST_STORE, drops: false };
    b.gate = Gate::new(provisioning(), &memory, board, Instant::from_micros(0));
    assert_eq!(b.ask(Role::Operator, Request::Epoch { channel: 0, epoch: Epoch(1), floor: 0 }), Some(Reason::Storage));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), Some(Reason::Storage));
}

#[test]
fn a_channel_without_a_record_is_lost_storage_and_no_fresh_gate() {
    let mut b = Bench::new();
    b.marks[0] = Remembered::Lost(FenceRecord::floor(Epoch(0), 0));
    b.power_cut();
    assert_eq!(b.status(0).state, ChannelState::Fault);
    assert_eq!(b.ask(holder("a"), raise(0, 1)), Some(Reason::Storage));
    assert_eq!(b.ask(holder("a"), release(0, 1)), Some(Reason::Storage));
}

#[test]
fn a_clock_that_runs_backwards_makes_everything_safe() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 33, 10_000, &[1])), None);
    b.gate.poll(Instant::from_micros(0), b.inputs);
    assert_eq!(b.pins()[0], 0);
    assert_eq!(b.ask(holder("a"), drive(0, 33, 10_000, &[1])), Some(Reason::Fault));
    assert_eq!(b.status(0).state, ChannelState::Fault);
}

#[test]
fn noise_and_forgeries_get_no_answer() {
    let mut b = Bench::new();
    let challenge = b.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), drive(0, 33, 2_000, &[1]));
    for at in 1..frame.len() - 1 {
        let mut garbled = frame.clone();
        garbled[at] = garbled[at].wrapping_add(1).max(1);
        assert!(b.send(holder("a"), garbled).is_none(), "byte {at}");
    }
    assert_eq!(b.pins()[0], 0);
    let (noise, forged) = b.silent();
    assert_eq!(usize::try_from(noise + forged).unwrap(), frame.len() - 2);

    // A's frame under B's name, another gate's frame, and the gate's own answer.
    let gate = provisioning().gate.gate;
    let b_claims = Header { answer: false, role: holder("b"), key_id: 0, gate, nonce: Nonce([9; 8]) };
    let a_key = b.keys(holder("a")).request;
    let body = Sealed { challenge: Some(challenge), request: drive(0, 33, 2_000, &[1]) };
    for header in [
        b_claims,
        Header { role: holder("a"), gate: GateId(*b"press-08"), ..b_claims },
        Header { role: holder("a"), key_id: 1, ..b_claims },
        Header { role: holder("a"), ..b_claims }.reply(),
    ] {
        let (_, before) = b.silent();
        let frame = seal(&header, &a_key, &body).unwrap().0.to_vec();
        assert!(b.send(holder("a"), frame).is_none(), "{header:?}");
        assert_eq!(b.silent().1, before + 1);
    }
    assert_eq!(b.ask(holder("a"), drive(0, 33, 2_000, &[1])), None, "the gate goes on");
}

#[test]
fn challenges_of_one_instant_differ() {
    let mut b = Bench::new();
    let ticks: Vec<u64> = (0..10).map(|_| b.challenge(Role::Observer).tick).collect();
    assert!(ticks.windows(2).all(|t| t[0] < t[1]), "{ticks:?}");
}
