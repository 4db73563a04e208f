//! Bad input: one clear sentence, the right exit status, and the gate goes on.

use fencegate_tests::{EmulatedGate, Said, fencegate};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// One sentence on standard error and nothing else.
fn one_sentence(said: &Said, status: i32, about: &str) {
    assert_eq!(said.status, status, "{said:?}");
    assert_eq!(said.err.trim_end().lines().count(), 1, "{said:?}");
    assert!(said.err.contains(about), "{said:?} does not name {about}");
}

#[test]
fn wrong_numbers() {
    for (words, field) in [
        ("plan --ttl 0s --drift 1ppm", "ttl_us"),
        ("plan --ttl 10s --drift 100%", "drift_ppb"),
        ("window --ttl 0us --drift 1ppm", "ttl_us"),
        ("window --ttl 10s --drift 1000000000ppb", "drift_ppb"),
    ] {
        one_sentence(&Said::by(fencegate().args(words.split(' '))), 2, field);
    }
}

#[test]
fn a_gate_that_is_not_there() {
    let gate = EmulatedGate::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for port in [format!("tcp://127.0.0.1:{free}"), "/dev/no-such-device".to_owned()] {
        let mut command = fencegate();
        command.args(["gate", "--port", &port, "--key-file"]).arg(gate.key_file()).args(["--timeout", "2s", "status"]);
        one_sentence(&Said::by(&mut command), 3, &port);
    }
    // Somebody is there and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("tcp://{}", silent.local_addr().unwrap());
    let mut command = fencegate();
    command.args(["gate", "--port", &port, "--key-file"]).arg(gate.key_file()).args(["--timeout", "500ms", "status"]);
    one_sentence(&Said::by(&mut command), 3, "");
    assert_eq!(gate.ask("status").0, 0, "the gate goes on");
}

#[test]
fn a_wrong_key() {
    let (gate, other) = (EmulatedGate::new(), EmulatedGate::new());
    // Another gate's key; and this gate's identity with another's secrets.
    let read = |gate: &EmulatedGate| serde_json::from_slice::<Value>(&fs::read(gate.key_file()).unwrap()).unwrap();
    let mut mixed = read(&other);
    mixed["gate"] = read(&gate)["gate"].clone();
    let forged = gate.folder().join("forged.key");
    fs::write(&forged, mixed.to_string()).unwrap();
    for key in [other.key_file(), forged] {
        for words in ["status", "raise --channel 0 --token 1 --holder a", "epoch --channel 0 --set 1"] {
            one_sentence(&Said::by(gate.host_with(&key, words).args(["--timeout", "700ms"])), 3, "");
        }
    }
    let (_, status) = gate.ask("status");
    assert_eq!(status["channels"][0]["token"], 0, "nothing was raised");
    assert!(status["counters"]["forged"].as_u64().unwrap() >= 6, "{status}");
    assert_eq!(status["fault"], json!(null));
}

#[test]
fn a_key_that_may_not() {
    let gate = EmulatedGate::new();
    let keys = fencegate_host_keys(&gate);
    let [observer, only_b] = &keys;
    let ask = |key: &std::path::Path, words: &str| {
        let said = Said::by(gate.host_with(key, words).args(["--json", "--timeout", "700ms"]));
        (said.status, if said.status < 2 { said.json() } else { Value::Null })
    };
    assert_eq!(ask(observer, "status").0, 0);
    for words in ["raise --channel 0 --token 1 --holder a", "epoch --channel 0 --set 1"] {
        let (status, answer) = ask(observer, words);
        assert_eq!((status, &answer["reason"]), (1, &json!("role")), "{words}");
    }
    assert_eq!(ask(only_b, "status").0, 0);
    assert_eq!(ask(only_b, "raise --channel 0 --token 1 --holder b").0, 0);
    assert_eq!(ask(only_b, "epoch --channel 0 --set 1").1["reason"], "role");
    assert_eq!(ask(only_b, "raise --channel 0 --token 2 --holder a").0, 3, "b's key does not make it a");
}

/// An observer's and a single holder's key file beside the gate's own.
fn fencegate_host_keys(gate: &EmulatedGate) -> [std::path::PathBuf; 2] {
    use fencegate_host::fencegate::HolderId;
    use fencegate_host::wire::Role;
    use fencegate_host::{Existing, KeyFile};
    let all = KeyFile::read(&gate.key_file()).unwrap();
    let roles = [("observer", Role::Observer), ("b", Role::Holder(HolderId::new("b").unwrap()))];
    roles.map(|(name, role)| {
        let path = gate.folder().join(name).with_extension("key");
        all.only(role).unwrap().write(&path, Existing::Keep).unwrap();
        path
    })
}

#[test]
fn junk_on_the_line() {
    let gate = EmulatedGate::new();
    gate.done("drive --channel 0 --token 1 --holder a --value 1 --window 60s");
    let mut line = TcpStream::connect(gate.address()).unwrap();
    for junk in [vec![0x55; 3], vec![0; 300], vec![0xff; 5_000], b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
        line.write_all(&junk).unwrap();
        assert_eq!(gate.channel(0)["state"], "driven", "the gate goes on, and so does what it drives");
    }
    let (_, status) = gate.ask("status");
    assert!(status["counters"]["noise"].as_u64().unwrap() > 0);
    assert_eq!(status["fault"], json!(null));
}

#[test]
fn words_that_make_no_sense() {
    let gate = EmulatedGate::new();
    for (words, about) in [
        ("raise --channel 0 --token 0 --holder a", "token"),
        ("raise --channel 0 --token 1 --holder seventeen-bytes-x", "holder"),
        ("drive --channel 0 --token 1 --holder a --value x --window 1s", "value"),
        ("drive --channel 0 --token 1 --holder a --value 1 --window 0s", "window"),
        ("drive --channel 0 --token 1 --holder a --value 1 --window 1", "window"),
        ("drive --channel 0 --token 1 --holder a --value 1", "window"),
        ("raise --channel 0 --token 18446744073709551616 --holder a", "token"),
        ("raise --channel 0 --token 1 --epoch 4294967296 --holder a", "epoch"),
        ("raise --channel 0 --holder a", "token"),
    ] {
        one_sentence(&Said::by(&mut gate.host(words)), 2, about);
    }
    let nowhere = gate.folder().join("no-such.key");
    one_sentence(&Said::by(&mut gate.host_with(&nowhere, "status")), 2, "no-such.key");
}

#[test]
fn a_truncated_flash_file() {
    // What is left still has the keys: the gate answers, and refuses.
    let gate = EmulatedGate::new();
    gate.done("raise --channel 0 --token 34 --holder b");
    let folder = gate.power_cut();
    let flash = folder.path().join("gate.flash");
    let whole = fs::read(&flash).unwrap();
    fs::write(&flash, &whole[..whole.len() / 2]).unwrap();
    let gate = EmulatedGate::on(folder);
    assert_eq!(gate.refused("raise --channel 0 --token 35 --holder b"), "storage");
    assert_eq!(gate.refused("drive --channel 1 --token 1 --holder a --value 1 --window 1s"), "storage");
    assert_eq!(gate.channel(0)["state"], "fault");

    // Nothing is left: one sentence.
    let folder = gate.power_cut();
    for len in [0, 100] {
        fs::write(folder.path().join("gate.flash"), &whole[..len]).unwrap();
        let mut command = EmulatedGate::command(&folder.path().join("gate.flash"));
        let said = Said::by(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        assert_ne!(said.status, 0);
        assert_eq!(said.out, "");
        assert!(said.err.contains("gate.flash"), "{said:?}");
    }
}

#[test]
fn a_flash_file_without_its_key_is_no_gate_and_a_key_without_its_flash_file_is_an_old_one() {
    let folder = EmulatedGate::new().power_cut();
    let (flash, key) = (folder.path().join("gate.flash"), folder.path().join("gate.key"));
    let start = || Said::by(EmulatedGate::command(&flash).stderr(Stdio::piped()));
    let kept = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    assert!(start().err.contains("gate.key"));
    fs::write(&key, &kept).unwrap();
    fs::remove_file(&flash).unwrap();
    let gate = EmulatedGate::on(folder);
    assert_ne!(fs::read(gate.key_file()).unwrap(), kept, "a new gate has new keys");
    assert_eq!(fs::read(gate.folder().join("gate.key.old")).unwrap(), kept, "and the old ones are not lost");
    assert_eq!(gate.ask("status").1["boots"], 1);
}

/// Two emulators with one flash would each undo what the other has stored.
#[test]
fn a_flash_file_has_one_emulator() {
    let gate = EmulatedGate::new();
    let said = Said::by(EmulatedGate::command(&gate.folder().join("gate.flash")).stderr(Stdio::piped()));
    assert!(said.status != 0 && said.err.contains("another emulator"), "{said:?}");
    gate.done("raise --channel 0 --token 1 --holder a");
}

/// An erased flash is a board that nobody has provisioned yet: it becomes a gate like one without a flash file.
#[test]
fn an_erased_flash_file_is_a_new_gate() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gate.flash"), vec![0xff; 128 * 1024]).unwrap();
    let gate = EmulatedGate::on(folder);
    gate.done("raise --channel 0 --token 1 --holder a");
    let gate = gate.power_cycle();
    assert_eq!(gate.channel(0)["token"], 1);
}

/// Killed at any moment of its first start, a gate begins again or goes on; it is never in nobody's hands.
#[test]
fn a_first_start_that_is_cut_goes_on_at_the_next() {
    for ms in [50, 120, 170, 220, 300, 400] {
        let folder = tempfile::tempdir().unwrap();
        let mut first = EmulatedGate::command(&folder.path().join("gate.flash")).process_group(0).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(ms));
        let group = format!("-{}", first.id());
        std::process::Command::new("kill").args(["-s", "KILL", "--", &group]).status().unwrap();
        first.wait().unwrap();
        let gate = EmulatedGate::on(folder);
        gate.done("raise --channel 0 --token 1 --holder a");
    }
}
