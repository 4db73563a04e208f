//! The emulated board's other sides: the front panel, and the log.

use fencegate_host::fencegate::HolderId;
use fencegate_host::wire::{DirectionKeys, Domain, Role};
use fencegate_host::{KeyFile, Secret};
use fencegate_tests::{EmulatedGate, Said, board};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::board::Board;

#[test]
fn junk_at_the_panel_is_ignored_and_what_was_understood_is_written_back() {
    let gate = EmulatedGate::new();
    let mut panel = UnixStream::connect(gate.folder().join("gate.panel")).unwrap();
    panel.write_all(b"\0\xffi2 i 1 I1 c6 f9 o: 0ip\nq1 1 ii1 p0o5").unwrap();
    let mut answer = [0; 9];
    panel.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"i1\np0\no5\n");
    assert_eq!(gate.channel(0)["state"], "fault");
}

#[test]
fn a_pressed_stop_stays_pressed_through_a_reset_and_waits_for_a_rearm_after_a_power_cut() {
    let gate = EmulatedGate::new();
    let inhibited = |gate: &EmulatedGate| {
        assert_eq!(gate.channel(0)["state"], "fault");
        gate.refused("drive --channel 0 --token 1 --holder a --value 1 --window 1s") == "fault"
    };
    gate.press_stop(true);
    assert!(inhibited(&gate));
    gate.monitor().ask("system_reset");
    assert!(inhibited(&gate));
    assert_eq!(gate.ask("status").1["boots"], 2);
    gate.press_stop(false);
    assert!(inhibited(&gate), "it waits for a rearm");
    let gate = gate.power_cycle();
    assert_eq!(gate.ask("status").1["fault"], json!(null), "the button is out");
    assert!(inhibited(&gate), "and who pressed it has not been asked");
    gate.done("rearm --channel 0");
    let gate = gate.power_cycle();
    gate.done("drive --channel 0 --token 1 --holder a --value 1 --window 1s");
}

/// The MPS2's timer has 32 bits at 25 MHz: it begins anew after 171.8 s. One window spans that, and one ends in it.
#[test]
fn the_switch_is_on_time_though_the_boards_timer_begins_anew() {
    if board() != Board::Mps2 {
        println!("not tested: this board's timer counts to 2⁶⁴ µs");
        return;
    }
    let gate = EmulatedGate::new();
    gate.leap(Duration::from_secs(8));
    let wrap = Instant::now() + Duration::from_secs(8);
    let mut monitor = gate.monitor();
    for (channel, window) in [(0, "50s"), (1, "9s"), (2, "12s")] {
        gate.done(&format!("drive --channel {channel} --token 1 --holder a --value 1 --window {window}"));
    }
    let driven = Instant::now();
    assert_eq!(monitor.outputs(), 0b111);
    for (channel, window) in [(1, 9), (2, 12)] {
        let end = driven + Duration::from_secs(window);
        monitor.falls(1 << channel, end + Duration::from_millis(250)).unwrap_or_else(|| panic!("{channel} is late"));
        assert!(Instant::now() + Duration::from_secs(5) > end, "nor is it let go of as if time had leapt");
    }
    assert!(Instant::now() > wrap + Duration::from_secs(1), "that was before it");
    let left = gate.channel(0)["window_left_us"].as_u64().unwrap();
    assert!((20_000_000..=40_000_000).contains(&left), "{left}");
    assert_eq!((monitor.outputs(), &gate.ask("status").1["boots"]), (1, &json!(1)));
    gate.done("drive --channel 1 --token 1 --holder a --value 1 --window 1s");
    monitor.falls(2, Instant::now() + Duration::from_millis(1_250)).expect("the switch goes on");
    // By the board's own clock the first of them began within nine seconds of the turn, and the last one after it.
    let events = gate.ask("log").1["events"].as_array().unwrap().clone();
    let driven: Vec<_> =
        events.iter().filter(|event| event["event"] == "driven").map(|event| &event["at_us"]).collect();
    let at = |at: Option<&&serde_json::Value>| at.and_then(|at| at.as_u64()).unwrap();
    let (first, last, turn) = (at(driven.first()), at(driven.last()), (1 << 32) / 25);
    assert!(turn - 9_000_000 < first && first < turn && turn < last, "{first} {last}");
}

#[test]
fn an_emergency_stop_lets_go_of_everything_at_once() {
    let gate = EmulatedGate::new();
    for words in ["--channel 0 --value 1", "--channel 4 --value 1,1"] {
        gate.done(&format!("drive {words} --token 1 --holder a --window 60s"));
    }
    assert_eq!(gate.outputs(), 0b11_0001);
    let mut monitor = gate.monitor();
    gate.press_stop(true);
    monitor.falls(u32::MAX, Instant::now() + Duration::from_millis(250)).expect("10 ms and the host's own lateness");
}

/// What the firmware says, read with the image at hand. It is another build of `xtask`, so this may compile for a while.
#[test]
fn the_log_is_on_standard_error_and_shows_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = EmulatedGate::command(&folder.path().join("gate.flash"));
    let mut gate = command.arg("--log").stderr(Stdio::piped()).process_group(0).spawn().unwrap();
    let mut lines = BufReader::new(gate.stderr.take().unwrap()).lines().map(Result::unwrap);
    let boots = lines.by_ref().find(|line| line.contains("boots")).unwrap();
    assert!(boots.contains(&format!("INFO fencegate-{} ", board().name())), "{boots}");
    let mut ready = String::new();
    BufReader::new(gate.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let words: Vec<_> = ready.trim_end().split(' ').collect();
    let ["gate", "ready", "on", port, "key", key] = words[..] else { panic!("{ready:?}") };

    let mut host = fencegate_tests::fencegate();
    host.args(["gate", "--port", port, "--key-file", key, "raise", "--channel", "2", "--token", "34", "--holder", "b"]);
    assert_eq!(Said::by(&mut host).status, 0);
    let mut said = Vec::new();
    for line in lines.by_ref() {
        let over = line.contains("Raised");
        said.push(line);
        if over {
            break;
        }
    }
    let group = format!("-{}", gate.id());
    Command::new("kill").args(["-s", "KILL", "--", &group]).status().unwrap();
    gate.wait().unwrap();
    println!("{}", said.join("\n"));

    let Secret::Root(keys) = KeyFile::read(key.as_ref()).unwrap().secret else { panic!("not the whole of the keys") };
    let mut secrets = vec![keys.root.clone(), keys.operator.clone()];
    for role in [Role::Holder(HolderId::new("b").unwrap()), Role::Operator, Role::Observer] {
        let base = keys.base(role);
        let DirectionKeys { request, answer } = base.directions(Domain::Gate);
        secrets.extend([base.0, request, answer]);
    }
    for secret in secrets {
        // Any four bytes of it in a row, in hexadecimal, and as lists of bytes are written: `[18, 52, …`, `[12, 34, …`.
        for some in secret.expose().windows(4) {
            let each = |form: fn(&u8) -> String, between| some.iter().map(form).collect::<Vec<_>>().join(between);
            let hex = |byte: &u8| format!("{byte:02x}");
            let plain = |byte: &u8| format!("{byte:x}");
            for form in [each(hex, ""), each(hex, ", "), each(plain, ", "), each(u8::to_string, ", ")] {
                assert!(!said.iter().any(|line| line.to_lowercase().contains(&form)), "a key is in the log");
            }
        }
    }
}
