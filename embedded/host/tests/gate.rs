//! `fencegate gate` in a shell, against a gate that answers by hand: what is typed, what the gate is asked, what is
//! printed, and the exit status.

mod fake;

use fake::{FakeGate, Then, done, holder, record, refused, status};
use fencegate::{Deadline, Duration, Epoch, FenceRecord, Token};
use fencegate_host::{CallError, Existing, GateClient, KeyFile, Port, Secret, clock, emulator, provision};
use fencegate_wire::{BaseKey, Domain, GateId, Reason, Reply, Request, Role, Values};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time;

/// What a command did.
struct Ran {
    status: i32,
    out: String,
    err: String,
}

fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("fencegate"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencegate"));
    command.args(words);
    command
}

/// Runs a line as typed.
fn typed(line: &str) -> Ran {
    let output = command(line).output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("Unicode");
    Ran {
        status: output.status.code().expect("an exit status, not a signal"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Runs a line as typed with `--json`: the status and the one object.
#[track_caller]
fn answer(line: &str) -> (i32, Value) {
    let ran = typed(&format!("{line} --json"));
    assert_eq!(ran.err, "", "{line}");
    assert_eq!(ran.out.find('\n'), Some(ran.out.len() - 1), "one line: {line}");
    (ran.status, serde_json::from_str(&ran.out).expect("one object"))
}

/// Runs a line that has no answer: the status, nothing on standard output, one line that has the words.
#[track_caller]
fn fails(line: &str, status: i32, words: &str) {
    let ran = typed(line);
    assert_eq!((ran.status, ran.out.as_str()), (status, ""), "{line}: {}", ran.err);
    assert_eq!(ran.err.find('\n'), Some(ran.err.len() - 1), "one line: {line}: {}", ran.err);
    assert!(ran.err.contains(words), "{line}: {} does not say {words}", ran.err);
}

const STAMP: &str = "--channel 0 --token 34 --holder b";

fn grant() -> (Epoch, Token) {
    (Epoch(0), Token::new(34).expect("a token"))
}

#[test]
fn a_raise_carries_the_stamp_and_a_challenge() {
    let gate = FakeGate::new(|_| done(record(0, 34, "b"), 0));
    let (status, got) = answer(&format!("{} raise {STAMP}", gate.gate()));
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
    let (status, got) = answer(&line);
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
    let (status, got) = answer(&format!("{} drive {STAMP} --value 1 --deadline 1us", gate.gate()));
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
    let (status, got) = answer(&format!("{} release {STAMP}", gate.gate()));
    assert_eq!((status, &got["done"], &got["holder"]), (0, &json!(true), &json!("b")));
    let (status, got) = answer(&format!("{} epoch --channel 0 --set 1 --floor 1000", gate.gate()));
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
    let (status, got) = answer(&line);
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
        let (status, got) = answer(&line);
        assert_eq!(status, 1);
        let reason = reason.as_str();
        assert_eq!(got, json!({ "done": false, "reason": reason, "epoch": null, "token": null, "holder": null }));
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
    assert_eq!(answer(&format!("{} raise {STAMP}", gate.gate())).0, 0);
    assert_eq!(gate.asked().len(), 3);
}

#[test]
fn the_status_in_json() {
    let gate = FakeGate::new(status);
    let (status, got) = answer(&format!("{} status", gate.gate()));
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
  channel 1     safe   0,0   epoch 1, tokens must exceed 5
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
    let (status, _) = answer(&format!("fencegate gate --port {device} --key-file {key} raise {STAMP}"));
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
    assert_eq!(answer(&format!("{} raise {STAMP}", gate.gate_with(&only_b))).0, 0);
    for (keys, line, want) in [
        (&only_b, "status".to_owned(), 0),
        (&observer, "status".to_owned(), 0),
        (&only_b, "epoch --channel 0 --set 1".to_owned(), 1),
        (&observer, "epoch --channel 0 --set 1".to_owned(), 1),
        (&observer, format!("raise {STAMP}"), 1),
        (&observer, format!("drive {STAMP} --value 1 --window 1s"), 1),
        (&observer, format!("release {STAMP}"), 1),
    ] {
        let (status, got) = answer(&format!("{} {line}", gate.gate_with(keys)));
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
    assert_eq!(answer(&format!("{} raise {STAMP}", gate.gate())).0, 0);
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
        (format!("{g} drive {STAMP} --window 1s --value 1,2,3,4,5,6,7,8,9"), "value"),
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
    for name in ["status", "raise", "drive", "release", "epoch", "watch"] {
        let ran = typed(&format!("fencegate gate {name} --help"));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{name}");
        let example = "fencegate gate --port tcp://127.0.0.1:7033 --key-file target/gate.key";
        assert!(ran.out.contains(&format!("{example} {name}")), "{}", ran.out);
    }
    let ran = typed("fencegate gate --help");
    assert!(ran.out.contains("3 no answer in time, 4 the answer is not authentic"), "{}", ran.out);
}

/// A command that goes on, and the lines that it prints.
struct Running {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Running {
    fn new(line: &str) -> Self {
        let mut child = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let out = child.stdout.take().expect("a pipe");
        Self { child, lines: Box::new(BufReader::new(out).lines().map(|line| line.expect("Unicode"))) }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("another line")
    }

    fn status(&mut self) -> i32 {
        self.child.wait().expect("it ends").code().expect("an exit status")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gate whose channel 0 is driven under token 33, then 34; whose windows run down all the time.
fn changing() -> (FakeGate, Arc<AtomicU64>) {
    let token = Arc::new(AtomicU64::new(33));
    let now = Arc::clone(&token);
    let left = AtomicU64::new(1_000_000_000);
    let gate = FakeGate::new(move |asked| match status(asked) {
        Then::Reply(Reply::Channel(mut channel)) if asked.request == (Request::Channel { channel: 0 }) => {
            channel.record.token = now.load(Ordering::SeqCst);
            channel.window_left = Duration::from_micros(left.fetch_sub(1_000, Ordering::SeqCst));
            Then::Reply(Reply::Channel(channel))
        }
        then => then,
    });
    (gate, token)
}

#[test]
fn a_watch_prints_a_line_for_each_change_and_a_window_that_runs_down_is_none() {
    let (gate, token) = changing();
    let mut watch = Running::new(&format!("{} watch --every 5ms", gate.gate()));
    let first: Vec<_> = (0..4).map(|_| watch.line()).collect();
    let ends = |end: &str| first.iter().any(|line| line.ends_with(end));
    assert!(ends("gate 70726573732d3037: firmware 0.1.2, boot 3, no fault"), "{first:?}");
    assert!(ends("channel 0: driven 1, epoch 0 token 33, held by b"), "{first:?}");
    assert!(ends("channel 1: safe 0,0, epoch 1, tokens must exceed 5"), "{first:?}");
    assert!(ends("turned away: stale 4, noise 12"), "{first:?}");
    let asked = gate.asked().len();
    while gate.asked().len() < asked + 40 {
        std::thread::sleep(time::Duration::from_millis(5));
    }
    token.store(34, Ordering::SeqCst);
    let next = watch.line();
    assert!(next.ends_with("channel 0: driven 1, epoch 0 token 34, held by b"), "{next}");
}

#[test]
fn a_watch_in_json_has_the_fields_of_the_status() {
    let (gate, token) = changing();
    let mut watch = Running::new(&format!("{} watch --json --every 5ms", gate.gate()));
    let mut object = || -> Value { serde_json::from_str(&watch.line()).expect("an object") };
    let first = [object(), object(), object(), object()];
    assert_eq!(first[0]["boots"], 3);
    assert_eq!([&first[1]["channel"], &first[2]["channel"]], [0, 1]);
    assert_eq!(first[3]["counters"], json!({ "stale": 4, "noise": 12 }));
    assert!(first.iter().all(|object| object["at_us"].is_u64()));
    token.store(34, Ordering::SeqCst);
    let next = object();
    assert_eq!([&next["channel"], &next["token"]], [0, 34]);
}

#[test]
fn a_watch_ends_when_its_reader_has_left() {
    let (gate, _) = changing();
    let mut watch = Running::new(&format!("{} watch --every 5ms", gate.gate()));
    watch.line();
    watch.lines = Box::new(std::iter::empty()); // closes the pipe
    assert_eq!(watch.status(), 0);
}

#[test]
fn a_watch_rides_through_a_power_cut_and_ends_when_it_lasts() {
    let dead = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&dead);
    let boots = Arc::new(Mutex::new(3));
    let booted = Arc::clone(&boots);
    let gate = FakeGate::new(move |asked| match status(asked) {
        _ if cut.load(Ordering::SeqCst) => Then::Close,
        Then::Reply(Reply::Status(mut gate)) => {
            gate.boots = *booted.lock().expect("no panic");
            Then::Reply(Reply::Status(gate))
        }
        then => then,
    });
    let mut watch = Running::new(&format!("{} watch --every 5ms --timeout 1500ms", gate.gate()));
    (0..4).for_each(|_| drop(watch.line()));
    dead.store(true, Ordering::SeqCst);
    std::thread::sleep(time::Duration::from_millis(200));
    *boots.lock().expect("no panic") = 4;
    dead.store(false, Ordering::SeqCst);
    let back = watch.line();
    assert!(back.ends_with("firmware 0.1.2, boot 4, no fault"), "{back}");
    dead.store(true, Ordering::SeqCst);
    assert_eq!(watch.status(), 3);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_watch() {
    let (gate, _) = changing();
    let mut watch = Running::new(&format!("{} watch --every 5ms", gate.gate()));
    watch.line();
    let pid = watch.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    assert_eq!(watch.status(), 0);
}

async fn client(gate: &FakeGate, keys: &KeyFile, role: Role) -> GateClient<impl fencegate_host::Line> {
    let port: Port = format!("tcp://{}", gate.address).parse().expect("a port");
    GateClient::new(port.open().await.expect("a connection"), keys.credential(role)).expect("random numbers")
}

fn soon() -> Deadline {
    Deadline::after(clock::now(), Duration::from_secs(5)).expect("on the clock")
}

#[tokio::test]
async fn a_client_that_stays_spends_one_round_trip_a_command() {
    let challenges = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&challenges);
    let gate = FakeGate::raw(move |asked| match asked.request {
        Request::Challenge => {
            count.fetch_add(1, Ordering::SeqCst);
            Then::Reply(Reply::Challenge)
        }
        _ => done(record(0, 34, "b"), 1_000),
    });
    let mut client = client(&gate, &gate.keys, Role::Holder(holder("b"))).await;
    client.raise(0, grant(), soon()).await.expect("done");
    let window = Duration::from_secs(2);
    for _ in 0..3 {
        let end = Deadline::after(clock::start(), window).expect("on the clock");
        let done = client.drive(0, grant(), Values::from_iter([1]), (end, window), soon()).await.expect("done");
        assert_eq!(done.window_left, Duration::from_micros(1_000));
    }
    client.release(0, grant(), soon()).await.expect("done");
    assert_eq!(challenges.load(Ordering::SeqCst), 1);
    assert_eq!(gate.asked().len(), 5);
}

#[tokio::test]
async fn a_refusal_is_an_error_of_a_call_that_wants_something_done() {
    let gate = FakeGate::new(|_| refused(Reason::Jump, None));
    let mut client = client(&gate, &gate.keys, Role::Operator).await;
    match client.epoch(0, Epoch(100_000), 0, soon()).await {
        Err(CallError::Refused(refused)) => assert_eq!(refused.reason, Reason::Jump),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_blank_gate_is_provisioned_with_the_key_that_everybody_knows() {
    let blank = KeyFile { gate: GateId::FACTORY, domain: Domain::Gate, secret: Secret::Observer(BaseKey::FACTORY) };
    let gate = FakeGate::with(blank, |asked| match asked.request {
        Request::Challenge => Then::Reply(Reply::Challenge),
        _ => Then::Reply(Reply::Provisioned),
    });
    let wanted = emulator().expect("random numbers");
    let line = tokio::net::TcpStream::connect(gate.address).await.expect("a connection");
    let keys = provision(line, &wanted, Domain::Gate, soon()).await.expect("provisioned");
    assert_eq!(keys, KeyFile::of(&wanted, Domain::Gate));
    let asked = gate.asked();
    assert_eq!((asked[0].role, &asked[0].request), (Role::Operator, &Request::Provision(wanted)));

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gate.key");
    keys.write(&path, Existing::Keep).expect("written");
    assert_eq!(KeyFile::read(&path).expect("read"), keys);
}
