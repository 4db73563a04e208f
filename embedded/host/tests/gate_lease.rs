//! `fencegate gate` where the gate grants leases itself, and what an operator does after a fault.

mod fake;
mod shell;

use fake::{FakeGate, Then, done, holder, record, refused, status};
use fencegate::{Duration, Epoch, Token};
use fencegate_wire::{Cause, ChannelState, Fault, Reason, Refused, Reply, Request, Role};
use serde_json::json;
use shell::{fails, object, typed};

#[test]
fn an_acquire_is_answered_with_the_stamp_that_was_granted() {
    let gate = FakeGate::new(|_| done(record(2, 34, "b#1"), 0));
    let line = format!("{} acquire --channel 3 --holder b#1 --ttl 10s", gate.gate());
    let (status, got) = object(&line);
    let want = json!({ "done": true, "channel": 3, "epoch": 2, "token": 34, "holder": "b#1", "ttl_us": 10_000_000 });
    assert_eq!((status, got), (0, want));
    let [asked] = &gate.asked()[..] else { panic!("one request") };
    assert_eq!(asked.request, Request::Acquire { channel: 3, ttl: Duration::from_secs(10) });
    assert_eq!((asked.role, asked.challenge.is_some()), (Role::Holder(holder("b#1")), true));
    let said = "done: channel 3: epoch 2 token 34, held by b#1, for 10 s from when this was asked\n";
    assert_eq!(typed(&line).out, said);
}

#[test]
fn a_renewal_carries_the_stamp() {
    let gate = FakeGate::new(|_| done(record(2, 34, "b"), 0));
    let line = format!("{} renew --channel 3 --token 34 --epoch 2 --holder b", gate.gate());
    let (status, got) = object(&line);
    assert_eq!(status, 0);
    assert_eq!(got, json!({ "done": true, "channel": 3, "epoch": 2, "token": 34, "holder": "b" }));
    let token = Token::new(34).expect("a token");
    assert_eq!(gate.asked()[0].request, Request::Renew { channel: 3, epoch: Epoch(2), token });
    assert_eq!(gate.asked()[0].role, Role::Holder(holder("b")));
}

#[test]
fn a_lease_that_is_held_comes_with_how_long_to_wait() {
    let gate = FakeGate::new(|_| {
        let wait = Duration::from_micros(7_200_001);
        Then::Reply(Reply::Refused(Refused { reason: Reason::Held, by: Some(record(0, 34, "b")), wait }))
    });
    let line = format!("{} acquire --channel 3 --holder a --ttl 10s", gate.gate());
    let (status, got) = object(&line);
    let want = json!({
        "done": false, "reason": "held", "epoch": 0, "token": 34, "holder": "b", "wait_us": 7_200_001,
    });
    assert_eq!((status, got), (1, want));
    let ran = typed(&line);
    assert!(ran.out.starts_with("refused: held. Channel 3 has seen epoch 0 token 34, held by b.\n"), "{}", ran.out);
    assert!(ran.out.contains("over in 7.201 s at the latest"), "{}", ran.out);
}

#[test]
fn a_rearm_is_the_operators() {
    let gate = FakeGate::new(|asked| match asked.role {
        Role::Operator => done(record(0, 34, "b"), 0),
        _ => refused(Reason::Role, Some(record(0, 34, "b"))),
    });
    let line = "rearm --channel 0";
    let (status, got) = object(&format!("{} {line}", gate.gate()));
    assert_eq!(status, 0);
    assert_eq!(got, json!({ "done": true, "channel": 0, "epoch": 0, "token": 34, "holder": "b" }));
    assert_eq!(gate.asked()[0].request, Request::Rearm { channel: 0 });
    let observer = gate.keys.only(Role::Observer).expect("from the root");
    let ran = typed(&format!("{} {line}", gate.gate_with(&observer)));
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("only the operator may"), "{}", ran.out);
}

#[test]
fn what_is_refused_of_a_lease_has_advice_of_its_own() {
    for (line, reason, words) in [
        ("acquire --channel 0 --holder b --ttl 10s", Reason::Authority, "come from a coordinator outside"),
        ("acquire --channel 3 --holder b --ttl 10h", Reason::Range, "a TTL is at most the longest window"),
        ("renew --channel 3 --token 34 --holder b", Reason::Authority, "has not granted this stamp"),
        ("renew --channel 3 --token 34 --holder b", Reason::Expired, "the lease is over: acquire a new one"),
        ("rearm --channel 0", Reason::Fault, "what made the fault is still there"),
    ] {
        let gate = FakeGate::new(move |_| refused(reason, Some(record(0, 34, "b"))));
        let ran = typed(&format!("{} {line}", gate.gate()));
        assert!(ran.status == 1 && ran.out.contains(words), "{line}: {}", ran.out);
    }
}

#[test]
fn a_wrong_number_of_values_is_told_apart_from_a_value_out_of_its_range() {
    let gate = FakeGate::new(|asked| match asked.request {
        Request::Drive { .. } => refused(Reason::Range, Some(record(0, 34, "b"))),
        _ => status(asked),
    });
    let drive = |rest: &str| typed(&format!("{} drive --token 34 --holder b --window 1s {rest}", gate.gate())).out;
    let out = drive("--channel 1 --value 1");
    assert!(out.contains("channel 1 has 2 outputs and takes one value for each; 1 was given"), "{out}");
    let out = drive("--channel 0 --value 1,0");
    assert!(out.contains("channel 0 has 1 output and takes one value for each; 2 were given"), "{out}");
    let out = drive("--channel 0 --value 7");
    assert!(out.contains("within the range that it was provisioned with; `status` shows the outputs"), "{out}");
}

#[test]
fn an_output_at_zero_is_set_to_it_and_not_driven() {
    let gate = FakeGate::new(|asked| match status(asked) {
        Then::Reply(Reply::Channel(mut channel)) => {
            channel.values.fill(0);
            Then::Reply(Reply::Channel(channel))
        }
        Then::Silence => done(record(0, 34, "b"), 1_980_000),
        then => then,
    });
    let line = format!("{} drive --channel 0 --token 34 --holder b --value 0 --window 2s", gate.gate());
    let said = "done: channel 0 is set to 0 for another 1.98 s; epoch 0 token 34, held by b\n";
    assert_eq!(typed(&line).out, said);
    let out = typed(&format!("{} status", gate.gate())).out;
    assert!(out.contains("channel 0     set to 0     epoch 0 token 34, held by b, 1.98 s left"), "{out}");
}

/// A gate whose channel 0 has a fault, and which mended a record.
fn faulty(asked: &fake::Asked) -> Then {
    match status(asked) {
        Then::Reply(Reply::Channel(mut channel)) if asked.request == (Request::Channel { channel: 0 }) => {
            (channel.state, channel.cause, channel.fault) = (ChannelState::Fault, Cause::Fault, Some(Fault::Feedback));
            channel.window_left = Duration::ZERO;
            Then::Reply(Reply::Channel(channel))
        }
        Then::Reply(Reply::Status(mut gate)) => {
            gate.mended = 2;
            Then::Reply(Reply::Status(gate))
        }
        then => then,
    }
}

#[test]
fn a_status_tells_a_person_of_faults_and_mended_records() {
    let gate = FakeGate::new(faulty);
    let ran = typed(&format!("{} status", gate.gate()));
    let table = "\
fault: gate 70726573732d3037, firmware 0.1.2, boot 3
  channel 0     fault  1     epoch 0 token 34, held by b; fault feedback
  channel 1     safe   0,0   epoch 1, tokens must exceed 5; its window ended
  turned away                stale 4, noise 12
note: feedback: a contact did not follow its output; see to the relay, then rearm
note: 2 records were mended from the other copy at this boot: a power cut does that, and so does flash that wears out
";
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, table, ""));
}

#[test]
fn a_status_in_json_has_the_contracts_fields_and_no_other() {
    let gate = FakeGate::new(faulty);
    let (_, got) = object(&format!("{} status", gate.gate()));
    let keys = |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&got), ["boots", "channels", "counters", "fault", "firmware", "gate"]);
    let channel = ["channel", "epoch", "holder", "state", "token", "values", "window_left_us"];
    assert_eq!(keys(&got["channels"][0]), channel);
    assert_eq!((&got["channels"][0]["state"], &got["fault"]), (&json!("fault"), &json!(null)));
}

#[test]
fn every_fault_of_a_gate_is_named_as_the_protocol_names_it() {
    for fault in [Fault::Clock, Fault::Storage, Fault::Inhibited, Fault::Feedback, Fault::Expired] {
        let gate = FakeGate::new(move |asked| match status(asked) {
            Then::Reply(Reply::Status(mut gate)) => {
                gate.fault = Some(fault);
                Then::Reply(Reply::Status(gate))
            }
            then => then,
        });
        let (_, got) = object(&format!("{} status", gate.gate()));
        assert_eq!(got["fault"], serde_json::to_value(fault).expect("a name"));
    }
}

#[test]
fn wrong_input_names_the_field_and_the_flag() {
    let gate = FakeGate::new(status);
    let g = gate.gate();
    for (line, field, flag) in [
        ("acquire --channel 3 --holder b", "ttl_us", "--ttl"),
        ("acquire --channel 3 --holder b --ttl 0s", "ttl_us", "--ttl"),
        ("acquire --channel 3 --holder b --ttl 10", "ttl_us", "--ttl"),
        ("acquire --channel 3 --ttl 10s", "holder", "--holder"),
        ("renew --channel 3 --holder b", "token", "--token"),
        ("rearm", "channel", "--channel"),
        ("log --follow --every 0s", "every_us", "--every"),
        ("drive --channel 0 --token 1 --holder b --value 1 --window 5", "window_us", "--window"),
    ] {
        fails(&format!("{g} {line}"), 2, field);
        fails(&format!("{g} {line}"), 2, flag);
    }
    assert_eq!(gate.asked(), []);
}
