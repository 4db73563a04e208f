//! A gate in its emulator, through the command, as the contract has it.

use fencegate_host::clock;
use fencegate_tests::{EmulatedGate, Said, fencegate};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn a_new_gate_is_safe_and_has_heard_nobody() {
    // Its first start has heard its provisioning, and where the flash is slow the last of it twice.
    let gate = EmulatedGate::new().power_cycle();
    let (status, answer) = gate.ask("status");
    assert_eq!(status, 0);
    let channel = |n: u8, values: &[i32]| json!({ "channel": n, "epoch": 0, "token": 0, "holder": null, "state": "safe", "values": values, "window_left_us": 0 });
    let channels = [channel(0, &[0]), channel(1, &[0]), channel(2, &[0]), channel(3, &[0]), channel(4, &[0, 0])];
    assert_eq!(answer["channels"], json!(channels));
    assert_eq!(answer["fault"], json!(null));
    let counters = answer["counters"].as_object().unwrap();
    assert_eq!(counters.len(), 17 + 2, "every reason, noise and forged: {counters:?}");
    assert!(counters.values().all(|n| n == 0), "{counters:?}");
}

#[test]
fn a_stale_command_bounces_across_a_power_cut() {
    let gate = EmulatedGate::new();
    gate.done("raise --channel 0 --token 33 --holder a");
    gate.done("drive --channel 0 --token 33 --holder a --value 1 --window 5s");
    gate.done("raise --channel 0 --token 34 --holder b");
    assert_eq!(gate.channel(0)["state"], "safe", "safe until the new holder drives it");
    gate.done("drive --channel 0 --token 34 --holder b --value 1 --window 5s");
    let late = "drive --channel 0 --token 33 --holder a --value 0 --window 5s";
    let beaten = json!({ "done": false, "reason": "stale", "epoch": 0, "token": 34, "holder": "b" });
    assert_eq!(gate.ask(late), (1, beaten.clone()));
    assert_eq!(gate.channel(0)["values"], json!([1]));
    let said = Said::by(&mut gate.host(late));
    assert!(said.out.starts_with("refused: stale. Channel 0 has seen epoch 0 token 34, held by b.\n"), "{said:?}");

    let gate = gate.power_cycle();
    assert_eq!(gate.channel(0)["state"], "safe");
    assert_eq!(gate.ask(late), (1, beaten));
    gate.done("drive --channel 0 --token 34 --holder b --value 1 --window 5s");
    assert_eq!(gate.ask("status").1["fault"], json!(null), "a power cut is no fault");
}

#[test]
fn a_silent_holder_loses_the_output_when_its_window_ends() {
    let gate = EmulatedGate::new();
    let begun = Instant::now();
    let done = gate.done("drive --channel 1 --token 1 --holder a --value 1 --window 1500ms");
    let left = done["window_left_us"].as_u64().unwrap();
    assert!((1..1_500_000).contains(&left), "{left}");
    let driven = gate.channel(1);
    if begun.elapsed() < Duration::from_millis(1_400) {
        assert_eq!(driven["state"], "driven");
        assert_eq!(driven["values"], json!([1]));
    }
    sleep(Duration::from_millis(1_600).saturating_sub(begun.elapsed()));
    let safe = gate.channel(1);
    assert_eq!((&safe["state"], &safe["values"]), (&json!("safe"), &json!([0])));
    assert_eq!(safe["token"], 1, "the fence stays where it is");
}

#[test]
fn a_shorter_later_window_shortens_and_a_release_lets_go_for_good() {
    let gate = EmulatedGate::new();
    gate.done("drive --channel 0 --token 5 --holder a --value 1 --window 60s");
    gate.done("drive --channel 0 --token 5 --holder a --value 1 --window 10s");
    assert!(gate.channel(0)["window_left_us"].as_u64().unwrap() < 10_000_000);
    gate.done("release --channel 0 --token 5 --holder a");
    assert_eq!(gate.channel(0)["state"], "safe");
    for words in ["raise", "release"] {
        assert_eq!(gate.refused(&format!("{words} --channel 0 --token 5 --holder a")), "released");
    }
    let gate = gate.power_cycle();
    assert_eq!(gate.refused("drive --channel 0 --token 5 --holder a --value 1 --window 1s"), "released");
    gate.done("raise --channel 0 --token 6 --holder a");
    assert_eq!(gate.refused("release --channel 0 --token 5 --holder a"), "stale", "it would be the next lease's");
}

#[test]
fn every_refusal_has_its_reason() {
    let gate = EmulatedGate::new();
    gate.done("raise --channel 0 --token 34 --holder b");
    for (words, reason) in [
        ("raise --channel 9 --token 1 --holder a", "bad_channel"),
        ("raise --channel 3 --token 1 --holder a", "authority"),
        ("drive --channel 0 --token 40 --holder a --value 2 --window 1s", "range"),
        ("drive --channel 0 --token 40 --holder a --value -1 --window 1s", "range"),
        ("drive --channel 0 --token 40 --holder a --value 1,0 --window 1s", "range"),
        ("drive --channel 0 --token 40 --holder a --value 1,0,0,0,0,0,0,0,0 --window 1s", "range"),
        ("drive --channel 9 --token 40 --holder a --value 1,0,0,0,0,0,0,0,0,0,0,0 --window 1s", "bad_channel"),
        ("drive --channel 4 --token 40 --holder a --value 1 --window 1s", "range"),
        ("drive --channel 0 --token 33 --holder a --value 1 --window 1s", "stale"),
        ("raise --channel 0 --token 34 --holder a", "wrong_holder"),
        ("raise --channel 0 --token 34 --holder b#2", "wrong_holder"),
        ("raise --channel 0 --token 281474976710691 --holder a", "jump"),
        ("raise --channel 1 --token 9223372036854775808 --holder a", "jump"),
        ("raise --channel 0 --token 35 --epoch 1 --holder a", "jump"),
        ("drive --channel 0 --token 34 --holder b --value 1 --window 1ms", "expired"),
        ("epoch --channel 0 --set 0", "stale"),
        ("epoch --channel 0 --set 65537", "jump"),
    ] {
        let count = |reason: &str| gate.ask("status").1["counters"][reason].as_u64().unwrap();
        let before = count(reason);
        assert_eq!(gate.refused(words), reason, "{words}");
        assert_eq!(count(reason), before + 1, "{words}");
    }
    gate.done("drive --channel 4 --token 1 --holder a --value 1,0 --window 5s");
    assert_eq!(gate.channel(4)["values"], json!([1, 0]));
    gate.done("raise --channel 1 --token 9223372036854775807 --holder a");
    gate.done("raise --channel 0 --token 281474976710690 --holder a");
}

#[test]
fn after_a_restore_the_operators_epoch_outranks_everything_before() {
    let gate = EmulatedGate::new();
    gate.done("drive --channel 0 --token 2000 --holder a --value 1 --window 60s");
    gate.done("epoch --channel 0 --set 1 --floor 1500");
    let channel = gate.channel(0);
    assert_eq!((&channel["epoch"], &channel["token"], &channel["holder"]), (&json!(1), &json!(1500), &json!(null)));
    assert_eq!(channel["state"], "safe");
    let gate = gate.power_cycle();
    assert_eq!(gate.refused("raise --channel 0 --token 2001 --holder a"), "stale");
    assert_eq!(gate.refused("raise --channel 0 --token 1500 --epoch 1 --holder b"), "stale");
    gate.done("raise --channel 0 --token 1501 --epoch 1 --holder b");
}

#[test]
fn several_hosts_share_the_line_and_a_frozen_one_does_not_hold_it() {
    let gate = EmulatedGate::new();
    // One connects, begins a frame and never reads nor writes again; one sends junk for as long as it can.
    let mut frozen = TcpStream::connect(gate.address()).unwrap();
    frozen.write_all(&[0x55; 40]).unwrap();
    let mut junk = TcpStream::connect(gate.address()).unwrap();
    junk.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let flood = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            let _ = junk.write(&[0xaa; 700]);
        }
    });
    let hosts: Vec<_> = (0..5)
        .map(|n| {
            let (channel, values) = [(0, "1"), (1, "1"), (2, "1"), (4, "1,1"), (0, "0")][n];
            let holder = if n == 4 { "late" } else { "h" };
            let token = if n == 4 { 1 } else { 2 };
            let words = format!(
                "drive --channel {channel} --token {token} --holder {holder} --value {values} --window 30s --timeout 20s --json"
            );
            (n, gate.host(&words).stdout(Stdio::piped()).spawn().unwrap())
        })
        .collect();
    for (n, host) in hosts {
        let output = host.wait_with_output().unwrap();
        // The one with the lower token may come first; then the higher raises over it.
        let allowed: &[i32] = if n == 4 { &[0, 1] } else { &[0] };
        assert!(allowed.contains(&output.status.code().unwrap()), "host {n}: {output:?}");
    }
    flood.join().unwrap();
    let (_, status) = gate.ask("status --timeout 20s");
    assert_eq!(status["channels"][0]["holder"], "h");
    assert_eq!(status["channels"][4]["values"], json!([1, 1]));
    assert!(status["counters"]["noise"].as_u64().unwrap() > 0, "{status}");
    assert_eq!(status["fault"], json!(null), "junk is no fault");
}

#[test]
fn watch_prints_a_line_for_each_change() {
    let gate = EmulatedGate::new();
    let mut watch = gate.host("watch --json").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(first.starts_with('{'), "{first}");
    gate.done("drive --channel 2 --token 7 --holder a --value 1 --window 1s");
    let driven = lines.find(|line| line.contains(r#""state":"driven""#)).unwrap();
    assert!(driven.contains(r#""channel":2"#) && driven.contains(r#""token":7"#), "{driven}");
    let safe = lines.find(|line| line.contains(r#""channel":2"#) && line.contains(r#""state":"safe""#)).unwrap();
    assert!(safe.contains(r#""values":[0]"#), "{safe}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn json_may_stand_anywhere_after_gate() {
    let gate = EmulatedGate::new();
    let key = gate.key_file();
    let key = key.to_str().unwrap();
    for words in [
        ["gate", "--json", "--port", &gate.port, "--key-file", key, "status"],
        ["gate", "--port", &gate.port, "--json", "--key-file", key, "status"],
        ["gate", "--port", &gate.port, "--key-file", key, "status", "--json"],
    ] {
        let said = Said::by(fencegate().args(words));
        assert_eq!(said.status, 0, "{said:?}");
        assert_eq!(said.json()["boots"], 1);
    }
}

/// Time passes while a host is frozen: what is left of its lease is what counts.
#[test]
fn a_host_that_slept_past_its_deadline_drives_nothing() {
    let gate = EmulatedGate::new();
    gate.done("raise --channel 0 --token 1 --holder a");
    let deadline = clock::now().as_micros() + 300_000;
    let words = format!("drive --channel 0 --token 1 --holder a --value 1 --deadline {deadline}us --json");
    let mut host = gate.host(&words).stdout(Stdio::piped()).spawn().unwrap();
    let pid = host.id().to_string();
    Command::new("kill").args(["-s", "STOP", &pid]).status().unwrap();
    sleep(Duration::from_millis(600));
    Command::new("kill").args(["-s", "CONT", &pid]).status().unwrap();
    host.wait().unwrap();
    assert_eq!(gate.channel(0)["state"], "safe", "frozen before its command or after it");
    assert_eq!(gate.refused(&words.replace(" --json", "")), "expired");
}
