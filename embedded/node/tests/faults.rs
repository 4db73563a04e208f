//! What makes outputs safe besides the end of a window, and what lets them be driven again.

mod bench;

use bench::*;
use fencegate::Duration;
use fencegate_wire::{Cause, ChannelState, Fault, OutputConfig, Reason, Request, Role, SafeAction, What};

const REARM: Request = Request::Rearm { channel: 0 };

#[test]
fn an_inhibit_makes_everything_safe_until_each_channel_is_rearmed() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(2, 1, 60_000, &[1, 1])), None);
    b.inputs.inhibit = true;
    b.poll();
    assert_eq!(b.pins(), [0, 0, 0, 0]);
    assert_eq!(b.gate_status().fault, Some(Fault::Inhibited));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), Some(Reason::Fault));
    assert_eq!(b.ask(Role::Operator, REARM), Some(Reason::Fault), "it is still open");
    b.inputs.inhibit = false;
    b.poll();
    assert_eq!(b.pins(), [0, 0, 0, 0], "the last command never comes back by itself");
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), Some(Reason::Fault));
    let status = b.status(0);
    assert_eq!((status.state, status.cause, status.fault), (ChannelState::Fault, Cause::Fault, Some(Fault::Inhibited)));
    assert_eq!(b.ask(holder("b"), raise(0, 2)), None, "a fence may rise meanwhile");
    assert_eq!(b.ask(Role::Operator, REARM), None);
    assert_eq!((b.pins()[0], b.gate_status().fault), (0, None));
    assert_eq!(b.ask(holder("b"), drive(0, 2, 60_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(2, 1, 60_000, &[1, 1])), Some(Reason::Fault), "the other was not rearmed");
}

/// Commands that were queued before an emergency stop do nothing after it, not even after the rearm.
#[test]
fn what_was_sealed_before_a_stop_is_not_done_after_it() {
    let mut b = Bench::new();
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    let mut queued = vec![];
    for n in 0..500 {
        let challenge = b.challenge(holder("a"));
        let token = if n % 2 == 0 { 1 } else { n + 2 };
        queued.push(b.seal(holder("a"), Some(challenge), drive(0, token, 60_000, &[1])));
    }
    b.inputs.inhibit = true;
    b.poll();
    b.inputs.inhibit = false;
    for frame in &queued[..250] {
        let refused = verdict(&b.send(holder("a"), frame.clone()).unwrap().reply);
        assert!(matches!(refused, Some(Reason::Replay | Reason::Fault)), "{refused:?}");
        assert_eq!(b.pins()[0], 0);
    }
    assert_eq!(b.ask(Role::Operator, REARM), None);
    for frame in queued {
        let refused = verdict(&b.send(holder("a"), frame).unwrap().reply);
        assert!(matches!(refused, Some(Reason::Replay | Reason::Fault)), "{refused:?}");
        assert_eq!(b.pins()[0], 0);
    }
    assert_eq!(b.status(0).record.token, 1, "nor was the fence raised");
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
}

#[test]
fn a_recorded_rearm_rearms_nothing() {
    let mut b = Bench::new();
    let inhibit = |b: &mut Bench| {
        for level in [true, false] {
            b.inputs.inhibit = level;
            b.poll();
        }
    };
    inhibit(&mut b);
    let challenge = b.challenge(Role::Operator);
    let spare = b.challenge(Role::Operator);
    let rearm = b.seal(Role::Operator, Some(challenge), REARM);
    let unsent = b.seal(Role::Operator, Some(spare), REARM);
    assert_eq!(verdict(&b.send(Role::Operator, rearm.clone()).unwrap().reply), None);
    inhibit(&mut b);
    assert_eq!(verdict(&b.send(Role::Operator, rearm).unwrap().reply), None, "answered again");
    assert_eq!(b.status(0).state, ChannelState::Fault, "and not done again");
    assert_eq!(verdict(&b.send(Role::Operator, unsent).unwrap().reply), Some(Reason::Replay));
    assert_eq!(b.status(0).state, ChannelState::Fault);
}

/// A rearm that the line has held back is a person's leave for what was there when it was given, and for no fault that came
/// after it.
#[test]
fn a_rearm_that_was_held_back_is_for_no_later_fault() {
    for what in ["a contact", "a window's end", "a stop"] {
        let mut b = Bench::with(|p| {
            p.channels[0].rearm_after_window = true;
            p.outputs[0].feedback = Some(Duration::from_millis(50));
        });
        assert_eq!(b.ask(Role::Operator, REARM), None);
        b.inputs.closed = 1;
        assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
        let challenges = [(); 3].map(|()| b.challenge(Role::Operator));
        let held_back = challenges.map(|challenge| b.seal(Role::Operator, Some(challenge), REARM));
        match what {
            "a contact" => {
                b.inputs.closed = 0;
                b.run_to_us(b.now + 61 * MS);
            }
            "a stop" => {
                b.inputs.inhibit = true;
                b.poll();
                b.inputs.inhibit = false;
            }
            _ => b.run_to_us(b.now + 2_000 * MS),
        }
        // Its contact follows again: nothing but the rearm is missing.
        b.inputs.closed = u16::from(b.pins()[0] != 0);
        b.poll();
        for frame in held_back {
            assert_eq!(verdict(&b.send(Role::Operator, frame).unwrap().reply), Some(Reason::Replay), "{what}");
            assert_eq!(b.status(0).state, ChannelState::Fault, "{what}");
        }
        assert_eq!(b.ask(Role::Operator, REARM), None, "{what}: asked for now it is done");
        assert_eq!(b.status(0).state, ChannelState::Safe, "{what}");
    }
}

/// The same where the fault takes another's place.
#[test]
fn a_rearm_for_one_fault_is_not_one_for_the_next() {
    let mut b = Bench::with(|p| p.outputs[0].feedback = Some(Duration::from_millis(50)));
    b.inputs.inhibit = true;
    b.poll();
    b.inputs.inhibit = false;
    b.inputs.closed = 1;
    b.poll();
    b.at(49);
    let early = b.challenge(Role::Operator);
    b.run_to_us(60 * MS);
    assert_eq!(b.status(0).fault, Some(Fault::Feedback));
    b.inputs.closed = 0;
    b.poll();
    assert_eq!(b.ask_with(Role::Operator, early, REARM), Some(Reason::Replay));
    // Once more astray, though the fault of before still holds it.
    let late = b.challenge(Role::Operator);
    b.inputs.closed = 1;
    b.run_to_us(b.now + 60 * MS);
    b.inputs.closed = 0;
    b.poll();
    assert_eq!(b.ask_with(Role::Operator, late, REARM), Some(Reason::Replay));
    assert_eq!(b.ask(Role::Operator, REARM), None);
}

/// Whoever has heard of a fault may rearm for it: what was given out once it was there is no older than it, however often the
/// gate looks at a contact that it has let go of, and that has its time again.
#[test]
fn a_challenge_that_came_with_the_news_of_a_fault_is_for_it() {
    let mut b = Bench::with(|p| p.outputs[0].feedback = Some(Duration::from_millis(50)));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    // That it does not close is seen after a store, and the answer to that brings the challenge.
    b.storing = Some(60 * MS);
    let challenge = b.challenge(holder("b"));
    let raises = b.seal(holder("b"), Some(challenge), raise(2, 1));
    let with_the_news = b.send(holder("b"), raises).unwrap().challenge;
    assert_eq!((b.pins()[0], b.status(0).fault), (0, Some(Fault::Feedback)), "its contact did not close");
    assert_eq!(b.ask_with(Role::Operator, with_the_news, REARM), None);
    assert_eq!(b.status(0).state, ChannelState::Safe);
}

/// A person stands before the machine for a while, and not as long as a holder may drive it.
#[test]
fn a_rearm_dies_sooner_than_a_command() {
    for (age, answer) in [(9_999_999, None), (10_000_000, Some(Reason::Replay))] {
        let mut b = Bench::new();
        b.inputs.inhibit = true;
        b.poll();
        b.inputs.inhibit = false;
        let of_holder = b.challenge(holder("a"));
        let of_operator = b.challenge(Role::Operator);
        b.at_us(of_operator.tick + age);
        assert_eq!(b.ask_with(Role::Operator, of_operator, REARM), answer);
        // What is rearmed, no older command drives.
        let command = answer.map_or(Some(Reason::Replay), |_| None);
        assert_eq!(b.ask_with(holder("a"), of_holder, raise(0, 1)), command);
    }
}

#[test]
fn a_welded_contact_is_a_fault_until_it_opens_and_somebody_rearms() {
    let mut b = Bench::with(|p| p.outputs[0].feedback = Some(Duration::from_millis(50)));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    b.inputs.closed = 1;
    b.run_to_us(500 * MS);
    assert_eq!(b.pins()[0], 1, "it followed");
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[0])), None);
    let let_go = b.now;
    b.run_to_us(let_go + 49 * MS);
    assert_eq!(b.status(0).state, ChannelState::Driven);
    b.run_to_us(let_go + 61 * MS);
    assert_eq!(b.status(0).fault, Some(Fault::Feedback));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[0])), Some(Reason::Fault));
    assert_eq!(b.ask(holder("a"), drive(2, 1, 60_000, &[1, 1])), None, "the other channels go on");
    assert_eq!(b.ask(Role::Operator, REARM), Some(Reason::Fault), "still welded");
    b.inputs.closed = 0;
    b.poll();
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), Some(Reason::Fault), "no waiting cures it");
    assert_eq!(b.ask(Role::Operator, REARM), None);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    let driven = b.now;
    b.run_to_us(driven + 61 * MS);
    assert_eq!(
        (b.pins()[0], b.status(0).fault),
        (0, Some(Fault::Feedback)),
        "a contact that does not close is one too"
    );
    let faults = b.events().iter().filter(|event| event.what == What::Fault { fault: Fault::Feedback }).count();
    assert_eq!(faults, 2);
}

#[test]
fn where_so_provisioned_a_windows_end_waits_for_a_rearm() {
    let mut b = Bench::with(|p| p.channels[0].rearm_after_window = true);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), Some(Reason::Fault), "and so does a boot");
    assert_eq!(b.ask(Role::Operator, REARM), None);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    b.at(1_000);
    let status = b.status(0);
    assert_eq!((status.state, status.cause, status.fault), (ChannelState::Fault, Cause::Window, Some(Fault::Expired)));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), Some(Reason::Fault));
    assert_eq!(b.ask(holder("b"), drive(0, 2, 1_000, &[1])), Some(Reason::Fault), "whoever holds the lease");
    assert_eq!(b.ask(Role::Operator, REARM), None);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), release(0, 1)), None);
    assert_eq!(b.status(0).state, ChannelState::Safe, "a release is no end of a window");
    // A power cut, or a hang that the watchdog ends, may have ended a window or followed on an emergency stop.
    b.power_cut();
    assert_eq!(b.ask(holder("a"), drive(0, 2, 1_000, &[1])), Some(Reason::Fault));
}

#[test]
fn a_warning_comes_before_the_end_and_its_cause_stays_readable() {
    let mut b = Bench::with(|p| p.gate.warning = Duration::from_millis(300));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 1_000, &[1])), None);
    let mut warned = None;
    let mut ended = None;
    while ended.is_none() {
        b.now += MS;
        b.poll();
        let whats: Vec<_> = b.events().iter().map(|event| event.what).collect();
        warned = warned.or(whats.contains(&What::Warned).then_some(b.now));
        ended = whats.contains(&What::Ended).then_some(b.now);
    }
    assert!((299 * MS..=301 * MS).contains(&(ended.unwrap() - warned.unwrap())), "{warned:?} {ended:?}");
    assert_eq!(b.status(0).cause, Cause::Window);
    for (request, role, cause) in [
        (raise(0, 2), holder("b"), Cause::Raised),
        (release(0, 3), holder("a"), Cause::Raised),
        (epoch(0, 1, 0), Role::Operator, Cause::Epoch),
    ] {
        let token = b.status(0).record.token.max(1) + u64::from(b.status(0).record.released);
        let who = b.status(0).record.holder.map_or(holder("a"), Role::Holder);
        assert_eq!(b.ask(who, drive(0, token, 1_000, &[1])), None);
        assert_eq!(b.ask(role, request), None);
        assert_eq!(b.status(0).cause, cause);
    }
}

#[test]
fn a_safe_action_runs_its_course_and_is_charged_against_the_window() {
    let ms = Duration::from_millis;
    let motor =
        OutputConfig { min: -100, max: 100, action: SafeAction::Ramp { time: ms(200) }, ..OutputConfig::switch() };
    let brake =
        OutputConfig { powered: true, action: SafeAction::Hold { value: 1, time: ms(300) }, ..OutputConfig::switch() };
    let mut b = Bench::with(|p| {
        p.outputs[2] = motor;
        p.outputs[3] = brake;
        p.channels[2].reaction = ms(10);
    });
    assert_eq!(b.ask(holder("a"), drive(2, 1, 1_000, &[100, 0])), None);
    let challenge = b.now - 1; // the store took a tick
    // w′ = 1 s − 100 µs − L 5 ms − A (10 + 300) ms
    let end = challenge + 1_000_000 - 100 - 5_000 - 310_000;
    b.run_to_us(end - MS);
    assert_eq!(b.pins()[2..], [100, 0]);
    b.run_to_us(end + 100 * MS);
    assert!((40..=60).contains(&b.pins()[2]), "half-way down: {:?}", b.pins());
    let status = b.status(2);
    assert_eq!((b.pins()[3], status.state, status.window_left), (1, ChannelState::Driven, Duration::ZERO));
    b.run_to_us(end + 210 * MS);
    assert_eq!(b.pins()[2..], [0, 1]);
    b.run_to_us(end + 301 * MS);
    assert_eq!(b.pins()[2..], [0, 0]);
}

/// A store would hold a safe action up: it waits, and so does whoever asked for it.
#[test]
fn nothing_is_stored_while_an_output_is_on_its_way() {
    let mut b = Bench::with(|p| p.outputs[0].action = SafeAction::Keep { time: Duration::from_millis(300) });
    assert_eq!(b.ask(holder("a"), drive(0, 1, 10_000, &[1])), None);
    assert_eq!(b.ask(holder("b"), raise(0, 2)), Some(Reason::Busy), "it lets go first");
    assert_eq!((b.status(0).state, b.status(0).cause), (ChannelState::Driven, Cause::Raised), "not safe yet");
    assert_eq!(b.ask(holder("b"), raise(2, 1)), Some(Reason::Busy), "any store would");
    assert_eq!(b.ask(holder("a"), drive(0, 1, 10_000, &[1])), Some(Reason::Busy));
    let later = b.now + 301 * MS;
    b.run_to_us(later);
    assert_eq!(b.pins()[0], 0);
    assert_eq!(b.ask(holder("b"), raise(0, 2)), None);
}

#[test]
fn least_times_refuse_commands_and_never_the_safe_state() {
    let ms = Duration::from_millis;
    let mut b = Bench::with(|p| {
        p.outputs[0].least_on = ms(1_000);
        p.outputs[0].least_off = ms(2_000);
    });
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), Some(Reason::Rate), "off since boot, as far as it knows");
    b.at(2_000);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[0])), Some(Reason::Rate));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None, "to stay on is no change");
    assert_eq!(b.ask(holder("b"), drive(0, 2, 60_000, &[1])), Some(Reason::Rate), "it has let go first");
    assert_eq!(b.pins()[0], 0, "and what it has raised is raised: nobody keeps it waiting");
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), Some(Reason::Stale));
    assert_eq!(b.ask(holder("b"), drive(0, 2, 60_000, &[1])), Some(Reason::Rate));
    let later = b.now / MS + 2_001;
    b.at(later);
    assert_eq!(b.ask(holder("b"), drive(0, 2, 60_000, &[1])), None);
    assert_eq!(b.ask(holder("b"), release(0, 2)), None, "safe never waits");
    assert_eq!(b.pins()[0], 0);
}

/// Where two reasons come together, the first of the contract's order is given.
#[test]
fn a_spent_budget_comes_before_an_output_on_its_way() {
    let mut b = Bench::with(|p| {
        p.outputs[0].action = SafeAction::Keep { time: Duration::from_millis(300) };
        p.gate.raises.burst = 1;
    });
    assert_eq!(b.ask(holder("a"), drive(0, 1, 10_000, &[1])), None);
    assert_eq!(b.ask(holder("a"), release(0, 1)), Some(Reason::Busy));
    assert_eq!(b.ask(holder("b"), drive(0, 2, 10_000, &[1])), Some(Reason::Rate));
    assert_eq!(b.ask(holder("a"), drive(0, 1, 10_000, &[1])), Some(Reason::Busy));
    b.at(12_000);
    assert_eq!(b.ask(holder("b"), drive(0, 2, 10_000, &[1])), None);
}

#[test]
fn a_store_in_which_the_window_ends_and_a_contact_goes_astray_is_expired() {
    for (window, reason) in [(100, Reason::Expired), (10_000, Reason::Fault)] {
        let mut b = Bench::with(|p| p.outputs[0].feedback = Some(Duration::from_millis(50)));
        b.storing = Some(150 * MS);
        b.inputs.closed = 1; // welded since before the boot
        assert_eq!(b.ask(holder("a"), drive(0, 1, window, &[1])), Some(reason));
        assert_eq!((b.pins()[0], b.status(0).fault), (0, Some(Fault::Feedback)));
    }
}
