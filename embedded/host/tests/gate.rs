//! `fencegate gate` in a shell, against a gate that answers by hand: what is typed, what the gate is asked, what is
//! printed, and the exit status.

mod fake;
mod shell;

use fake::{FakeGate, Then, done, holder, record, refused, status};
use fencegate::{Epoch, FenceRecord, Token};
use fencegate_host::{KeyFile, Secret, clock};
use fencegate_wire::{Domain, GateId, Reason, Reply, Request, Role};
use serde_json::json;
use shell::{fails, object, typed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time;

const STAMP: &str = "--channel 0 --token 34 --holder b";

fn grant() -> (Epoch, Token) {
    (Epoch(0), Token::new(34).expect("a token"))
}

#[test]
fn a_raise_carries_the_stamp_and_a_challenge() {
    let gate = FakeGate::new(|_| done(record(0, 34, "b"), 0));
    let (status, got) = object(&format!("{} raise {STAMP}", gate.gate()));
    assert_eq!(status, 0);
    assert_eq!(got, json!({ "done": true, "channel": 0, "epoch": 0, "token": 34, "holder": "b" }));
    let (epoch, token) = grant();
    let [asked] = &gate.asked()[..] else { panic!("one request") };
    assert_eq!(asked.request, Request::Raise { channel: 0, epoch, token });
    assert_eq!(asked.role, Role::Holder(holder("b")));
    assert!(asked.challenge.is_some());
}

#[test]
fn a_drive_carries_its_values_and_what_is_left_of_its_window() {
    let gate = FakeGate::new(|_| done(record(7, 34, "b#1"), 1_980_000));
    let line = format!("{} drive --channel 4 --token 34 --epoch 7 --holder b#1 --value -1,0 --window 2s", gate.gate());
    let (status, got) = object(&line);
    assert_eq!(status, 0);
    let want = json!({
        "done": true, "channel": 4, "epoch": 7, "token": 34, "holder": "b#1", "window_left_us": 1_980_000,
    });
    assert_eq!(got, want);
    let asked = gate.asked();
    let Request::Drive { channel: 4, epoch: Epoch(7), window, values, .. } = &asked[0].request else { panic!() };
    assert_eq!(values[..], [-1, 0]);
    assert!(window.as_micros() < 2_000_000, "some time has passed since the command was started");
    assert_eq!(asked[0].role, Role::Holder(holder("b#1")));
}

#[test]
fn what_passes_until_the_challenge_is_there_is_off_the_window() {
    let delay = time::Duration::from_millis(300);
    let gate = FakeGate::raw(move |asked| match asked.request {
        Request::Challenge => Then::After(delay, Reply::Challenge),
        _ => done(record(0, 34, "b"), 1),
    });
    assert_eq!(typed(&format!("{} drive {STAMP} --value 1 --window 2s", gate.gate())).status, 0);
    let Request::Drive { window, .. } = gate.asked()[0].request else { panic!() };
    assert!((1_000_000..1_700_000).contains(&window.as_micros()), "{window:?}");
}

#[test]
fn a_deadline_is_an_instant_of_the_boot_time_clock() {
    let gate = FakeGate::new(|_| done(record(0, 34, "b"), 1));
    let end = clock::now().as_micros() + 3_000_000;
    assert_eq!(typed(&format!("{} drive {STAMP} --value 1 --deadline {end}us", gate.gate())).status, 0);
    let Request::Drive { window, .. } = gate.asked()[0].request else { panic!() };
    assert!((1_000_000..3_000_000).contains(&window.as_micros()), "{window:?}");
}

#[test]
fn a_deadline_that_is_over_still_goes_to_the_gate_which_may_know_better() {
    let gate = FakeGate::new(|_| refused(Reason::Stale, Some(record(0, 35, "c"))));
    let (status, got) = object(&format!("{} drive {STAMP} --value 1 --deadline 1us", gate.gate()));
    assert_eq!((status, &got["reason"]), (1, &json!("stale")));
    let Request::Drive { window, .. } = gate.asked()[0].request else { panic!() };
    assert!(window.is_zero());
}

#[test]
fn a_release_and_an_epoch() {
    let gate = FakeGate::new(|asked| match asked.request {
        Request::Release { .. } => done(FenceRecord { released: true, ..record(0, 34, "b") }, 0),
        _ => done(FenceRecord::floor(Epoch(1), 1_000), 0),
    });
    let (status, got) = object(&format!("{} release {STAMP}", gate.gate()));
    assert_eq!((status, &got["done"], &got["holder"]), (0, &json!(true), &json!("b")));
    let (status, got) = object(&format!("{} epoch --channel 0 --set 1 --floor 1000", gate.gate()));
    assert_eq!(status, 0);
    assert_eq!(got, json!({ "done": true, "channel": 0, "epoch": 1, "token": 1_000, "holder": null }));
    let asked = gate.asked();
    assert_eq!(asked[1].request, Request::Epoch { channel: 0, epoch: Epoch(1), floor: 1_000 });
    assert_eq!(asked[1].role, Role::Operator);
}

#[test]
fn a_refusal_names_the_stamp_that_beat_it() {
    let gate = FakeGate::new(|_| refused(Reason::Stale, Some(record(0, 34, "b"))));
    let line = format!("{} drive --channel 0 --token 33 --holder a --value 1 --window 2s", gate.gate());
    let (status, got) = object(&line);
    assert_eq!(status, 1);
    assert_eq!(got, json!({ "done": false, "reason": "stale", "epoch": 0, "token": 34, "holder": "b" }));
    let ran = typed(&line);
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    assert!(
        ran.out.starts_with("refused: stale. Channel 0 has seen epoch 0 token 34, held by b.\nnote: "),
        "{}",
        ran.out
    );
}

#[test]
fn every_reason_has_its_name_and_some_advice() {
    let next = Arc::new(AtomicU64::new(0));
    let asked = Arc::clone(&next);
    let gate = FakeGate::new(move |_| {
        refused(Reason::ALL[usize::try_from(asked.load(Ordering::SeqCst)).expect("small")], None)
    });
    for (i, reason) in Reason::ALL.into_iter().enumerate().filter(|(_, reason)| *reason != Reason::Busy) {
        next.store(i as u64, Ordering::SeqCst);
        let line = format!("{} raise {STAMP}", gate.gate());
        let (status, got) = object(&line);
        assert_eq!(status, 1);
        let reason = reason.as_str();
        let mut want = json!({ "done": false, "reason": reason, "epoch": null, "token": null, "holder": null });
        if reason == "held" {
            want["wait_us"] = json!(0);
        }
        assert_eq!(got, want);
        let out = typed(&line).out;
        assert!(out.starts_with(&format!("refused: {reason}.\nnote: ")), "{out}");
    }
}

#[test]
fn a_busy_gate_is_asked_again() {
    let mut busy = 2;
    let gate = FakeGate::new(move |_| {
        if busy == 0 {
            return done(record(0, 34, "b"), 0);
        }
        busy -= 1;
        refused(Reason::Busy, Some(record(0, 33, "a")))
    });
    assert_eq!(object(&format!("{} raise {STAMP}", gate.gate())).0, 0);
    assert_eq!(gate.asked().len(), 3);
}

#[test]
fn the_status_in_json() {
    let gate = FakeGate::new(status);
    let (status, got) = object(&format!("{} status", gate.gate()));
    assert_eq!(status, 0);
    let want = json!({
        "gate": "70726573732d3037", "firmware": "0.1.2", "boots": 3,
        "channels": [
            { "channel": 0, "epoch": 0, "token": 34, "holder": "b", "state": "driven", "values": [1],
              "window_left_us": 1_980_000 },
            { "channel": 1, "epoch": 1, "token": 5, "holder": null, "state": "safe", "values": [0, 0],
              "window_left_us": 0 },
        ],
        "counters": {
            "bad_channel": 0, "role": 0, "authority": 0, "range": 0, "not_provisioned": 0, "storage": 0, "stale": 4,
            "wrong_holder": 0, "released": 0, "jump": 0, "replay": 0, "expired": 0, "fault": 0, "held": 0, "rate": 0,
            "busy": 0, "presence": 0, "noise": 12, "forged": 0,
        },
        "fault": null,
    });
    assert_eq!(got, want);
}

#[test]
fn the_status_for_a_person() {
    let gate = FakeGate::new(status);
    let ran = typed(&format!("{} status", gate.gate()));
    let table = "\
ready: gate 70726573732d3037, firmware 0.1.2, boot 3
  channel 0     driven 1     epoch 0 token 34, held by b, 1.98 s left
  channel 1     safe   0,0   epoch 1, tokens must exceed 5; its window ended
  turned away                stale 4, noise 12
";
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, table, ""));
}

#[test]
fn flags_of_the_gate_may_stand_before_or_after_what_is_to_be_done() {
    let gate = FakeGate::new(status);
    let (port, key) = (format!("--port tcp://{}", gate.address), gate.gate());
    let key = key.rsplit_once("--key-file").expect("a key file").1;
    for line in [
        format!("fencegate gate --json {port} --key-file {key} status"),
        format!("fencegate gate {port} --json --key-file {key} --timeout 9s status"),
        format!("fencegate gate {port} --key-file {key} status --json"),
        format!("fencegate gate status {port} --json --key-file {key} --timeout 9s"),
        format!("fencegate gate --json {port} --key-file {key} status --json"),
    ] {
        let ran = typed(&line);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}");
        assert!(ran.out.starts_with("{\"gate\":"), "{line}: {}", ran.out);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_serial_device_is_a_port_too() {
    let gate = FakeGate::new(|_| done(record(0, 34, "b"), 0));
    let (device, key) = (gate.device(), gate.folder_key());
    let (status, _) = object(&format!("fencegate gate --port {device} --key-file {key} raise {STAMP}"));
    assert_eq!((status, gate.asked().len()), (0, 1));
}

#[test]
fn a_key_that_the_gate_does_not_know_gets_no_answer() {
    let gate = FakeGate::new(status);
    let mut other = gate.keys.clone();
    if let Secret::Root(ring) = &mut other.secret {
        ring.instance += 1;
    }
    let start = time::Instant::now();
    fails(&format!("{} status --timeout 300ms", gate.gate_with(&other)), 3, "does not know");
    assert!(start.elapsed() < time::Duration::from_secs(2));
    other = KeyFile { gate: GateId([9; 8]), ..gate.keys.clone() };
    fails(&format!("{} status --timeout 300ms", gate.gate_with(&other)), 3, "no answer");
    other = KeyFile { domain: Domain::Demonstration, ..gate.keys.clone() };
    fails(&format!("{} raise {STAMP} --timeout 300ms", gate.gate_with(&other)), 3, "whether it was done is not known");
    assert_eq!(gate.asked(), []);
}

#[test]
fn a_holders_file_speaks_for_that_holder_and_an_observers_for_nobody() {
    let gate = FakeGate::new(|asked| match asked.role {
        Role::Holder(_) if matches!(asked.request, Request::Raise { .. }) => done(record(0, 34, "b"), 0),
        _ if asked.request.changes() => refused(Reason::Role, Some(record(0, 34, "b"))),
        _ => status(asked),
    });
    let only_b = gate.keys.only(Role::Holder(holder("b"))).expect("from the root");
    let observer = gate.keys.only(Role::Observer).expect("from the root");
    assert_eq!(object(&format!("{} raise {STAMP}", gate.gate_with(&only_b))).0, 0);
    for (keys, line, want) in [
        (&only_b, "status".to_owned(), 0),
        (&observer, "status".to_owned(), 0),
        (&only_b, "epoch --channel 0 --set 1".to_owned(), 1),
        (&observer, "epoch --channel 0 --set 1".to_owned(), 1),
        (&observer, format!("raise {STAMP}"), 1),
        (&observer, format!("drive {STAMP} --value 1 --window 1s"), 1),
        (&observer, format!("release {STAMP}"), 1),
    ] {
        let (status, got) = object(&format!("{} {line}", gate.gate_with(keys)));
        assert_eq!(status, want, "{line}");
        if want == 1 {
            assert_eq!(got["reason"], "role", "{line}");
        }
    }
    let line = format!("{} raise --channel 0 --token 34 --holder a --timeout 300ms", gate.gate_with(&only_b));
    fails(&line, 3, "the key is b's and not a's");
}

#[test]
fn an_answer_that_is_not_the_gates_is_not_believed() {
    let gate = FakeGate::new(|_| Then::Forge(Reply::Challenge));
    fails(&format!("{} raise {STAMP} --timeout 800ms", gate.gate()), 4, "not authentic");
    let gate = FakeGate::raw(|_| Then::Forge(Reply::Challenge));
    fails(&format!("{} status --timeout 800ms", gate.gate()), 4, "not authentic");
}

#[test]
fn a_forgery_does_not_keep_the_true_answer_out() {
    let mut first = true;
    let gate = FakeGate::new(move |_| {
        if std::mem::take(&mut first) { Then::Forge(Reply::Challenge) } else { done(record(0, 34, "b"), 0) }
    });
    assert_eq!(object(&format!("{} raise {STAMP}", gate.gate())).0, 0);
    assert_eq!(gate.asked().len(), 2, "the same request again");
    assert_eq!(gate.asked()[0], gate.asked()[1]);
}

#[test]
fn no_connection_is_no_answer() {
    let gate = FakeGate::new(status);
    let key = gate.folder_key();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let line = |port: &str| format!("fencegate gate --port {port} --key-file {key} status --timeout 1s");
    fails(&line(&format!("tcp://{unused}")), 3, "no connection to tcp://127.0.0.1:");
    fails(&line("/dev/fencegate-no-such-device"), 3, "no connection to /dev/fencegate-no-such-device: ");
}

#[test]
fn a_line_that_is_silent_or_breaks_is_no_answer() {
    let gate = FakeGate::raw(|_| Then::Silence);
    let start = time::Instant::now();
    fails(&format!("{} status --timeout 300ms", gate.gate()), 3, "no answer");
    assert!(start.elapsed() < time::Duration::from_secs(2));
    let gate = FakeGate::new(|_| Then::Close);
    let line = format!("{} drive {STAMP} --value 1 --window 9s", gate.gate());
    fails(&line, 3, "whether it was done is not known");
}

#[test]
fn wrong_input_is_one_line_that_names_the_field() {
    let gate = FakeGate::new(status);
    let key = gate.folder_key();
    let port = format!("--port tcp://{}", gate.address);
    let g = format!("{port} --key-file {key}");
    for (line, field) in [
        (format!("{g} raise --channel 0 --token 0 --holder b"), "token"),
        (format!("{g} raise --channel 0 --token 18446744073709551616 --holder b"), "token"),
        (format!("{g} raise --channel 0 --token -1 --holder b"), "token"),
        (format!("{g} raise --channel 0 --holder b"), "token"),
        (format!("{g} raise --channel 256 --token 1 --holder b"), "channel"),
        (format!("{g} raise --channel 0 --token 1 --holder seventeen-bytes-x"), "holder"),
        (format!("{g} raise --channel 0 --token 1 --holder é"), "holder"),
        (format!("{g} raise --channel 0 --token 1 --holder b#"), "holder"),
        (format!("{g} raise --channel 0 --token 1 --holder="), "holder"),
        (format!("{g} raise {STAMP} --epoch 4294967296"), "epoch"),
        (format!("{g} drive {STAMP} --value 1"), "window_us"),
        (format!("{g} drive {STAMP} --value 1 --window 0s"), "window_us"),
        (format!("{g} drive {STAMP} --value 1 --window 999ns"), "window_us"),
        (format!("{g} drive {STAMP} --value 1 --window 2"), "window_us"),
        (format!("{g} drive {STAMP} --value 1 --window 18446744073709551615us"), "window_us"),
        (format!("{g} drive {STAMP} --value 1 --window 1s --deadline 1s"), "deadline_us"),
        (format!("{g} drive {STAMP} --window 1s"), "value"),
        (format!("{g} drive {STAMP} --window 1s --value 2147483648"), "value"),
        (format!("{g} drive {STAMP} --window 1s --value 1,,0"), "value"),
        (format!("{g} epoch --channel 0"), "set"),
        (format!("{g} epoch --channel 0 --set 1 --floor -1"), "floor"),
        (format!("{g} status --timeout 0s"), "timeout_us"),
        (format!("{g} status --timeout 5"), "timeout_us"),
        (format!("{g} status --timeout 18446744073709551615us"), "timeout_us"),
        (format!("{g} watch --every 0s"), "every_us"),
        (format!("--key-file {key} status"), "port"),
        (format!("{port} status"), "key_file"),
        (format!("--port udp://x --key-file {key} status"), "port"),
        (format!("--port tcp://127.0.0.1 --key-file {key} status"), "port"),
        (format!("{port} --key-file /nonexistent/gate.key status"), "key_file: /nonexistent/gate.key"),
        (g.clone(), "fencegate --help"),
    ] {
        fails(&format!("fencegate gate {line}"), 2, field);
    }
    assert_eq!(gate.asked(), [], "the gate was never bothered");
}

#[test]
fn every_subcommand_has_an_example() {
    for name in ["status", "raise", "drive", "release", "acquire", "renew", "epoch", "rearm", "watch", "log"] {
        let ran = typed(&format!("fencegate gate {name} --help"));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{name}");
        let example = "fencegate gate --port tcp://127.0.0.1:7033 --key-file target/gate.key";
        assert!(ran.out.contains(&format!("{example} {name}")), "{}", ran.out);
    }
    for name in ["key", "provision", "replace"] {
        let out = typed(&format!("fencegate gate {name} --help")).out;
        assert!(out.contains("Example") && out.contains(&format!(".key {name} ")), "{out}");
    }
    let ran = typed("fencegate gate --help");
    assert!(ran.out.contains("3 no answer in time, 4 the answer is not authentic"), "{}", ran.out);
}
