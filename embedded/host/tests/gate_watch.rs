//! `fencegate gate … watch` and `log --follow`, against a gate that answers by hand: what is seen as it changes.

mod fake;
mod shell;

use fake::{FakeGate, Then, status};
use fencegate::{Duration, Instant};
use fencegate_wire::{Cause, ChannelState, Event, Fault, Reply, Request, What};
use serde_json::{Value, json};
use shell::{command, object, typed};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time;

/// A command that goes on, and the lines that it prints.
struct Running {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Running {
    fn new(line: &str) -> Self {
        let mut child = command(&line.split_whitespace().skip(1).collect::<Vec<_>>())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
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
    assert!(ends("channel 1: safe 0,0, epoch 1, tokens must exceed 5; its window ended"), "{first:?}");
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

#[test]
fn a_watch_in_a_pipe_says_that_the_gate_is_silent_and_why_a_channel_was_let_go_of() {
    let silent = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&silent);
    let gate = FakeGate::new(move |asked| match status(asked) {
        _ if now.load(Ordering::SeqCst) => Then::Silence,
        Then::Reply(Reply::Channel(mut channel)) if asked.request == (Request::Channel { channel: 0 }) => {
            (channel.state, channel.cause) = (ChannelState::Fault, Cause::Fault);
            channel.fault = Some(Fault::Feedback);
            Then::Reply(Reply::Channel(channel))
        }
        then => then,
    });
    for json in [false, true] {
        silent.store(false, Ordering::SeqCst);
        let flag = if json { "--json" } else { "" };
        let mut watch = Running::new(&format!("{} watch --every 5ms --timeout 9s {flag}", gate.gate()));
        let first: Vec<_> = (0..4).map(|_| watch.line()).collect();
        if !json {
            let fault = "channel 0: fault 1, epoch 0 token 34, held by b; fault feedback";
            assert!(first[1].ends_with(fault), "{first:?}");
        }
        silent.store(true, Ordering::SeqCst);
        let said = watch.line();
        if json {
            let said: Value = serde_json::from_str(&said).expect("an object");
            assert!(said["no_answer_us"].as_u64() >= Some(1_000_000), "{said}");
        } else {
            assert!(said.ends_with("no answer for 1 s"), "{said}");
        }
    }
}

/// A watch on a terminal, and what it draws there.
#[cfg(target_os = "linux")]
struct Live {
    _watch: Running,
    terminal: std::fs::File,
}

#[cfg(target_os = "linux")]
impl Live {
    fn new(line: &str) -> Self {
        let (terminal, screen) = shell::terminal();
        let words: Vec<_> = line.split_whitespace().skip(1).collect();
        let child = command(&words).env("TERM", "xterm").env("NO_COLOR", "1").stdout(screen).spawn().expect("it runs");
        Self { _watch: Running { child, lines: Box::new(std::iter::empty()) }, terminal }
    }

    /// Everything that is drawn until `what` is.
    fn until(&mut self, what: &str) -> String {
        use std::io::Read;
        let (mut seen, mut bytes) = (String::new(), [0; 4_096]);
        while !seen.contains(what) {
            let n = self.terminal.read(&mut bytes).expect("a terminal");
            seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        seen
    }
}

#[cfg(target_os = "linux")]
#[test]
fn in_a_live_view_windows_run_down_between_two_answers() {
    let gate = FakeGate::new(status);
    let mut live = Live::new(&format!("{} watch --every 1h", gate.gate()));
    live.until("held by b, 1.98 s left");
    live.until("held by b, 0 s left");
    assert_eq!(gate.asked().iter().filter(|asked| asked.request == Request::Status).count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_live_view_says_when_nobody_answers_and_shows_nothing_as_if_it_were_so_now() {
    let answers = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&answers);
    let gate = FakeGate::new(move |asked| if now.load(Ordering::SeqCst) { status(asked) } else { Then::Silence });
    let mut live = Live::new(&format!("{} watch --every 50ms --timeout 60s", gate.gate()));
    live.until("ready: gate 70726573732d3037");
    answers.store(false, Ordering::SeqCst);
    live.until("no answer for 1 s");
    let silent = live.until("no answer for 2 s") + &live.until("no answer for 3 s");
    assert!(silent.contains("was driven 1") && !silent.contains("ready") && !silent.contains(" left"), "{silent}");
    answers.store(true, Ordering::SeqCst);
    live.until("ready: gate 70726573732d3037");
}

/// A log of three events; `boots` tells the boots apart, of which each has its own.
fn logged(asked: &fake::Asked, boots: u32) -> Then {
    let all = [
        Event { number: 0, at: Instant::from_micros(0), channel: None, what: What::Booted { boots } },
        Event {
            number: 1,
            at: Instant::from_micros(1_234_567),
            channel: Some(0),
            what: What::Raised { token: 34, holder: fake::holder("b") },
        },
        Event {
            number: 2,
            at: Instant::from_micros(61_000_000),
            channel: Some(0),
            what: What::Refused { reason: fencegate_wire::Reason::Stale, times: 3 },
        },
        Event {
            number: 3,
            at: Instant::from_micros(62_000_000),
            channel: Some(1),
            what: What::Fault { fault: Fault::Inhibited },
        },
    ];
    match (&asked.request, status(asked)) {
        (Request::Log { from }, _) => {
            let from = usize::try_from(*from).expect("small");
            Then::Reply(Reply::Log(all.into_iter().skip(from).take(3).collect()))
        }
        (_, Then::Reply(Reply::Status(mut gate))) => {
            gate.boots = boots;
            Then::Reply(Reply::Status(gate))
        }
        (_, then) => then,
    }
}

#[test]
fn a_log_is_one_object_for_a_program_and_a_line_an_event_for_a_person() {
    let gate = FakeGate::new(|asked| logged(asked, 3));
    let (status, got) = object(&format!("{} log", gate.gate()));
    assert_eq!(status, 0);
    let want = json!({ "events": [
        { "number": 0, "at_us": 0, "channel": null, "event": "booted", "boots": 3 },
        { "number": 1, "at_us": 1_234_567, "channel": 0, "event": "raised", "token": 34, "holder": "b" },
        { "number": 2, "at_us": 61_000_000, "channel": 0, "event": "refused", "reason": "stale", "times": 3 },
        { "number": 3, "at_us": 62_000_000, "channel": 1, "event": "fault", "fault": "inhibited" },
    ]});
    assert_eq!(got, want);
    let ran = typed(&format!("{} log", gate.gate()));
    let lines = "\
[    0.000] gate: boot 3
[    1.234] channel 0: raised to token 34 by b
[   61.000] channel 0: refused 3 times: stale
[   62.000] channel 1: fault: the inhibit input is or was open; close it, then rearm each channel
";
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, lines, ""));
}

#[test]
fn a_log_that_is_followed_begins_anew_with_a_boot() {
    let boots = Arc::new(AtomicU32::new(3));
    let booted = Arc::clone(&boots);
    let gate = FakeGate::new(move |asked| logged(asked, booted.load(Ordering::SeqCst)));
    let mut log = Running::new(&format!("{} log --follow --every 5ms --json", gate.gate()));
    let mut object = || -> Value { serde_json::from_str(&log.line()).expect("an object") };
    let numbers: Vec<_> = (0..4).map(|_| object()["number"].clone()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    boots.store(4, Ordering::SeqCst);
    let next = object();
    assert_eq!([&next["number"], &next["boots"]], [0, 4]);
}

/// A board that counts no boots, since it is blank or its flash takes none, says 0 of each: but not the same things happen at the
/// same times.
#[test]
fn a_log_that_is_followed_begins_anew_with_a_boot_that_was_not_counted() {
    let late = Arc::new(AtomicU32::new(0));
    let booted = Arc::clone(&late);
    let gate = FakeGate::new(move |asked| match logged(asked, 0) {
        Then::Reply(Reply::Log(mut events)) => {
            let late = Duration::from_micros(booted.load(Ordering::SeqCst).into());
            events.iter_mut().for_each(|event| event.at = event.at.checked_add(late).expect("small"));
            Then::Reply(Reply::Log(events))
        }
        then => then,
    });
    let mut log = Running::new(&format!("{} log --follow --every 5ms --json", gate.gate()));
    let mut object = || -> Value { serde_json::from_str(&log.line()).expect("an object") };
    let times: Vec<_> = (0..4).map(|_| object()["at_us"].clone()).collect();
    assert_eq!(times, [0, 1_234_567, 61_000_000, 62_000_000]);
    late.store(7, Ordering::SeqCst);
    let next = object();
    assert_eq!([&next["number"], &next["at_us"]], [0, 7]);
}

/// The same refusal again is counted in the last event, which is no boot.
#[test]
fn a_log_that_is_followed_goes_on_where_its_last_refusal_is_counted_up() {
    let (times, faulty) = (Arc::new(AtomicU32::new(3)), Arc::new(AtomicBool::new(false)));
    let (counted, fault) = (Arc::clone(&times), Arc::clone(&faulty));
    let gate = FakeGate::new(move |asked| match logged(asked, 3) {
        Then::Reply(Reply::Log(mut events)) => {
            events.retain(|event| event.number < 3 || fault.load(Ordering::SeqCst));
            for event in &mut events {
                if let What::Refused { times, .. } = &mut event.what {
                    *times = u16::try_from(counted.load(Ordering::SeqCst)).expect("small");
                    event.at = Instant::from_micros(61_000_000 + u64::from(*times));
                }
            }
            Then::Reply(Reply::Log(events))
        }
        then => then,
    });
    let mut log = Running::new(&format!("{} log --follow --every 5ms --json", gate.gate()));
    let mut object = || -> Value { serde_json::from_str(&log.line()).expect("an object") };
    let numbers: Vec<_> = (0..3).map(|_| object()["number"].clone()).collect();
    assert_eq!(numbers, [0, 1, 2]);
    times.store(9, Ordering::SeqCst);
    std::thread::sleep(time::Duration::from_millis(50));
    faulty.store(true, Ordering::SeqCst);
    assert_eq!(object()["number"], 3);
}
