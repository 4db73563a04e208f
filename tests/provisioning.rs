//! How a blank board becomes a gate, a gate another, and a spare the one that died: through the command, on the emulated
//! board.

use fencegate_tests::{BlankBoard, EmulatedGate, Said};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// A press: a motor with a brake under one stamp, a relay whose contact is watched, and a lamp that the gate lends out.
const PRESS: &str = r#"
drift = "100ppm"
lateness = "5ms"
warning = "200ms"

[[channel]]
[[channel.output]]
action = { keep = "1500ms" }
[[channel.output]]
powered = true
action = { hold = 1, time = "1600ms" }

[[channel]]
rearm_after_window = true
epoch = 3
floor = 100

[[channel]]
authority = "own"
lock_delay = "2s"
"#;

fn config(folder: &Path, text: &str) -> String {
    let path = folder.join("press.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Says `command`, which is done.
fn done(mut command: Command) -> serde_json::Value {
    let said = Said::by(command.arg("--json"));
    assert_eq!((said.status, &said.json()["done"]), (0, &json!(true)), "{said:?}");
    said.json()
}

/// Says `command`, which is refused; why.
fn refused(mut command: Command) -> String {
    let said = Said::by(command.arg("--json"));
    assert_eq!(said.status, 1, "{said:?}");
    said.json()["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_blank_board_becomes_what_its_configuration_says() {
    let board = BlankBoard::new();
    let file = config(board.folder(), PRESS);
    done(board.host("press.key", &format!("provision --config {file} --timeout 20s")));
    let key = "press.key";

    done(board.host(key, "drive --channel 0 --token 1 --holder a --value 1,0 --window 2500ms"));
    sleep(Duration::from_millis(950)); // 1,600 ms of safe action are charged against the window
    let status = Said::by(board.host(key, "status").arg("--json")).json();
    let channel = &status["channels"][0];
    assert_eq!(
        (&channel["state"], &channel["values"]),
        (&json!("driven"), &json!([1, 1])),
        "on its way, and not safe yet"
    );
    assert_eq!(channel["window_left_us"], 0);
    sleep(Duration::from_millis(1_700));
    let status = Said::by(board.host(key, "status").arg("--json")).json();
    assert_eq!((&status["channels"][0]["state"], &status["channels"][0]["values"]), (&json!("safe"), &json!([0, 0])));
    assert_eq!((&status["channels"][1]["epoch"], &status["channels"][1]["token"]), (&json!(3), &json!(100)));

    assert_eq!(refused(board.host(key, "raise --channel 1 --token 100 --epoch 3 --holder a")), "stale");
    let first = "drive --channel 1 --token 101 --epoch 3 --holder a --value 1 --window 1500ms";
    assert_eq!(refused(board.host(key, first)), "fault", "it was provisioned to wait for a rearm, after a boot too");
    done(board.host(key, "rearm --channel 1"));
    done(board.host(key, first));
    sleep(Duration::from_millis(1_600));
    let again = "drive --channel 1 --token 101 --epoch 3 --holder a --value 1 --window 1500ms";
    assert_eq!(refused(board.host(key, again)), "fault", "and after a window");
    done(board.host(key, "rearm --channel 1"));
    done(board.host(key, again));

    done(board.host(key, "acquire --channel 2 --holder a --ttl 1s"));
    sleep(Duration::from_millis(1_200));
    assert_eq!(refused(board.host(key, "acquire --channel 2 --holder b --ttl 1s")), "held", "the lock delay");

    let said = Said::by(&mut board.host("other.key", &format!("provision --config {file}")));
    assert_ne!(said.status, 0, "a gate that is one already does not answer to the factory key: {said:?}");
    let log = Said::by(&mut board.host(key, "log"));
    assert!(!log.out.is_empty() && log.status == 0, "{log:?}");
}

/// Silence has more than one cause, and the board itself can tell two of them.
#[test]
fn a_board_that_knows_no_key_any_more_says_so_to_status() {
    let gate = EmulatedGate::new();
    gate.done("raise --channel 0 --token 34 --holder b");
    let keys = std::fs::read(gate.key_file()).unwrap();
    let mut flash = std::fs::read(gate.folder().join("gate.flash")).unwrap();
    drop(gate);
    flash.iter_mut().filter(|byte| **byte != 0xff).for_each(|byte| *byte = 0x55);
    for (board, says) in [(BlankBoard::new(), "never provisioned"), (BlankBoard::with_flash(&flash), "is lost")] {
        std::fs::write(board.folder().join("press.key"), &keys).unwrap();
        let said = Said::by(&mut board.host("press.key", "status --timeout 3s"));
        assert!(said.status == 3 && said.err.contains(says), "{said:?}");
        // Nothing of that is done unasked.
        let said = Said::by(&mut board.host("press.key", "epoch --channel 0 --set 9 --timeout 1s"));
        assert_eq!(said.status, 3, "{said:?}");
    }
}

#[test]
fn a_second_provisioning_needs_somebody_beside_the_board_and_lowers_no_fence() {
    let gate = EmulatedGate::new();
    gate.done("raise --channel 0 --token 34 --holder b");
    let old = std::fs::read(gate.key_file()).unwrap();
    let file = config(gate.folder(), PRESS);
    let words = format!("provision --again --config {file} --timeout 20s");
    assert_eq!(gate.refused(&words), "presence");
    assert_eq!(std::fs::read(gate.key_file()).unwrap(), old, "the keys are still the gate's");
    gate.done("raise --channel 0 --token 34 --holder b");

    gate.be_there(true);
    sleep(Duration::from_millis(100));
    gate.done(&words);
    assert_ne!(std::fs::read(gate.key_file()).unwrap(), old, "new keys");
    let kept = gate.folder().join("old.key");
    std::fs::write(&kept, old).unwrap();
    let said = Said::by(&mut gate.host_with(&kept, "status --timeout 2s"));
    assert!([3, 4].contains(&said.status), "the old ones open nothing: {said:?}");
    assert_eq!(gate.ask("status").1["channels"].as_array().unwrap().len(), 3);
    assert_eq!(gate.refused("raise --channel 0 --token 33 --holder a"), "stale", "the fence stands where it stood");
    let gate = gate.power_cycle();
    assert_eq!(gate.refused("raise --channel 0 --token 33 --holder a"), "stale");
    gate.done("drive --channel 0 --token 35 --holder a --value 1,0 --window 2500ms");
}

#[test]
fn a_spare_takes_the_place_of_a_gate_that_died() {
    let dead = EmulatedGate::new();
    dead.done("raise --channel 0 --token 34 --holder b");
    let old = std::fs::read(dead.key_file()).unwrap();
    drop(dead);
    let spare = BlankBoard::new();
    std::fs::write(spare.folder().join("old.key"), old).unwrap();
    let file = config(spare.folder(), &format!("longest_window = \"5s\"\n{PRESS}"));
    let old = spare.folder().join("old.key");
    let words = format!("replace --old {} --config {file} --epoch 8 --channel 2=9:40 --timeout 20s", old.display());
    let made = done(spare.host("new.key", &words));
    let id = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(spare.folder().join(name)).unwrap()).unwrap()
    };
    assert_eq!((&made["gate"], &id("new.key")["gate"]), (&id("old.key")["gate"], &id("old.key")["gate"]));
    assert_eq!(refused(spare.host("new.key", "raise --channel 0 --token 2000 --epoch 7 --holder a")), "stale");
    done(spare.host("new.key", "raise --channel 0 --token 35 --epoch 8 --holder a"));
    // What the dead one has granted may run for as long as that; and then there is the lock's delay.
    let acquire = "acquire --channel 2 --holder a --ttl 1s";
    assert_eq!(refused(spare.host("new.key", acquire)), "held");
    sleep(Duration::from_millis(7_100));
    let token = done(spare.host("new.key", acquire));
    assert_eq!((&token["epoch"], &token["token"]), (&json!(9), &json!(41)));
    let said = Said::by(&mut spare.host("old.key", "status --timeout 2s"));
    assert!([3, 4].contains(&said.status), "nothing that was said to the old one convinces it: {said:?}");
}
