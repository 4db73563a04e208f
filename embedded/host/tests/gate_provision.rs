//! `fencegate gate … provision`, `replace` and `key`: key files and configurations, against a board that answers by hand.

mod fake;
mod shell;

use fake::{Asked, FakeGate, Then, holder, refused};
use fencegate::Epoch;
use fencegate_host::{KeyFile, Secret};
use fencegate_wire::{Authority, ChannelConfig, GateConfig, Keyring, Reason, Reply, Request, Role};
use serde_json::json;
use shell::{fails, object, typed};
use std::path::Path;

const CONFIG: &str = "drift = \"100ppm\"\nlateness = \"5ms\"\n[[channel]]\n[[channel]]\nauthority = \"own\"\n";

/// A board that takes whatever it is provisioned with.
fn takes_all(asked: &Asked) -> Then {
    match asked.request {
        Request::SetOutput { .. } | Request::SetChannel { .. } | Request::Provision { .. } => {
            Then::Reply(Reply::Provisioned)
        }
        _ => fake::status(asked),
    }
}

/// A configuration in the gate's folder.
fn config(gate: &FakeGate, text: &str) -> String {
    let path = gate.path("gate.toml");
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// `fencegate gate` at that gate with a key file of that name.
fn at(gate: &FakeGate, name: &str) -> String {
    format!("fencegate gate --port tcp://{} --key-file {}", gate.address, gate.path(name).display())
}

fn root(path: &Path) -> (KeyFile, Keyring) {
    let file = KeyFile::read(path).expect("a key file");
    let Secret::Root(keys) = &file.secret else { panic!("not an operator's") };
    let keys = keys.clone();
    (file, keys)
}

/// What the gate was told that it is to be.
fn provisioned(gate: &FakeGate) -> (GateConfig, Vec<ChannelConfig>) {
    let asked = gate.asked();
    let channels = asked.iter().filter_map(|asked| match &asked.request {
        Request::SetChannel { config, .. } => Some(config.clone()),
        _ => None,
    });
    let channels: Vec<_> = channels.collect();
    match &asked.last().expect("it was asked").request {
        Request::Provision { config, .. } => (config.clone(), channels),
        other => panic!("{other:?}"),
    }
}

fn names(gate: &FakeGate) -> Vec<String> {
    let folder = gate.path("x").parent().expect("a folder").to_owned();
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("Unicode"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_blank_board_becomes_a_gate_whose_keys_are_on_the_disk() {
    let gate = FakeGate::blank(takes_all);
    let (status, got) = object(&format!("{} provision --config {}", at(&gate, "new.key"), config(&gate, CONFIG)));
    let (file, keys) = root(&gate.path("new.key"));
    let path = gate.path("new.key").display().to_string();
    let want = json!({ "done": true, "gate": file.gate.to_string(), "key_id": 0, "key_file": path });
    assert_eq!((status, got), (0, want));
    let (told, channels) = provisioned(&gate);
    assert_eq!((told.gate, &told.keys), (file.gate, &keys), "what is on the disk is what the gate has");
    let authorities: Vec<_> = channels.iter().map(|channel| channel.authority).collect();
    assert_eq!(authorities, [Authority::Outside, Authority::Own]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(gate.path("new.key")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn the_example_is_a_configuration_that_a_board_takes() {
    let gate = FakeGate::blank(takes_all);
    let example = typed("fencegate gate provision --example");
    assert_eq!((example.status, example.err.as_str()), (0, ""));
    let ran = typed(&format!("{} provision --config {}", at(&gate, "new.key"), config(&gate, &example.out)));
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.starts_with("done: gate ") && ran.out.contains("keep a copy"), "{}", ran.out);
    assert_eq!(provisioned(&gate).1.len(), 3);
}

#[test]
fn a_key_file_that_is_there_is_never_overwritten() {
    let gate = FakeGate::blank(takes_all);
    std::fs::write(gate.path("new.key"), "precious").expect("written");
    let config = config(&gate, CONFIG);
    fails(&format!("{} provision --config {config}", at(&gate, "new.key")), 2, "it is there already");
    let line = format!("{} replace --old {} --config {config} --epoch 2", at(&gate, "new.key"), gate.folder_key());
    fails(&line, 2, "old: `--old`: it has not the root");
    assert_eq!(std::fs::read_to_string(gate.path("new.key")).expect("there"), "precious");
    assert_eq!(gate.asked(), []);
}

#[test]
fn a_board_that_refuses_or_is_silent_leaves_no_key_file() {
    let gate = FakeGate::blank(|asked| match asked.request {
        Request::SetChannel { .. } => refused(Reason::Range, None),
        _ => takes_all(asked),
    });
    let line = format!("{} provision --config {}", at(&gate, "new.key"), config(&gate, CONFIG));
    let (status, got) = object(&line);
    let want = json!({ "done": false, "reason": "range", "epoch": null, "token": null, "holder": null });
    assert_eq!((status, got), (1, want));
    assert!(typed(&line).out.contains("the board has not so many channels"));
    assert!(!gate.path("new.key").exists());

    let gate = FakeGate::raw(takes_all); // it is a gate already, and silent to the key that everybody knows
    let line = format!("{} provision --config {} --timeout 300ms", at(&gate, "new.key"), config(&gate, CONFIG));
    fails(&line, 3, "`provision --again`");
    assert!(!gate.path("new.key").exists());
}

#[test]
fn keys_that_the_gate_may_have_are_kept() {
    let gate = FakeGate::blank(|asked| match asked.request {
        Request::Provision { .. } => Then::Silence,
        _ => takes_all(asked),
    });
    let line = format!("{} provision --config {} --timeout 1s", at(&gate, "new.key"), config(&gate, CONFIG));
    fails(&line, 3, "new.key is kept: if `status` answers to it");
    assert_eq!(root(&gate.path("new.key")).1, provisioned(&gate).0.keys);
}

#[test]
fn a_gate_is_provisioned_again_with_new_keys_and_the_old_ones_are_kept() {
    let gate = FakeGate::raw(|asked| {
        if asked.request == Request::Challenge { Then::Reply(Reply::Challenge) } else { takes_all(asked) }
    });
    let (old, before) = root(gate.folder_key().as_ref());
    let (status, got) = object(&format!("{} provision --again --config {}", gate.gate(), config(&gate, CONFIG)));
    let want = json!({ "done": true, "gate": old.gate.to_string(), "key_id": 1, "key_file": gate.folder_key() });
    assert_eq!((status, got), (0, want));
    assert!(gate.asked().iter().all(|asked| asked.role == Role::Operator));
    let (new, keys) = root(gate.folder_key().as_ref());
    let (told, channels) = provisioned(&gate);
    let first: Vec<_> = channels.iter().map(|channel| (channel.epoch, channel.floor)).collect();
    assert_eq!(first, [(Epoch(0), 34), (Epoch(1), 5)], "no fence goes back");
    assert_eq!((told.gate, &told.keys, new.gate), (old.gate, &keys, old.gate));
    assert_ne!((&keys.root, &keys.operator, keys.instance), (&before.root, &before.operator, before.instance));
    assert_eq!(root(&gate.path("gate.key.old")).0, old);
    assert_eq!(names(&gate), ["gate.key", "gate.key.old", "gate.toml"]);
}

#[test]
fn a_configuration_may_raise_a_fence() {
    let gate = FakeGate::new(takes_all);
    let text = "drift = \"100ppm\"\nlateness = \"5ms\"\n[[channel]]\nfloor = 1_000\n[[channel]]\nepoch = 2\n";
    let ran = typed(&format!("{} provision --again --config {}", gate.gate(), config(&gate, text)));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let first: Vec<_> = provisioned(&gate).1.iter().map(|channel| (channel.epoch, channel.floor)).collect();
    assert_eq!(first, [(Epoch(0), 1_000), (Epoch(2), 0)]);
}

#[test]
fn a_gate_is_not_provisioned_again_from_afar() {
    let gate = FakeGate::new(|asked| match asked.request {
        Request::Provision { .. } => refused(Reason::Presence, None),
        _ => takes_all(asked),
    });
    let (old, _) = root(gate.folder_key().as_ref());
    let ran = typed(&format!("{} provision --again --config {}", gate.gate(), config(&gate, CONFIG)));
    assert!(ran.status == 1 && ran.out.contains("hold the board's presence input"), "{}", ran.out);
    assert_eq!(root(gate.folder_key().as_ref()).0, old);
    assert_eq!(names(&gate), ["gate.key", "gate.toml"], "keys that no gate has are gone");

    let only_b = old.only(Role::Holder(holder("b"))).expect("from the root");
    let line = format!("{} provision --again --config {}", gate.gate_with(&only_b), config(&gate, CONFIG));
    fails(&line, 2, "key_file: ");
}

#[test]
fn new_keys_that_the_gate_may_have_are_kept_beside_the_old_ones() {
    let gate = FakeGate::new(|asked| match asked.request {
        Request::Provision { .. } => Then::Close,
        _ => takes_all(asked),
    });
    let line = format!("{} provision --again --config {} --timeout 1s", gate.gate(), config(&gate, CONFIG));
    fails(&line, 3, "gate.key.new: if `status` answers to them");
    assert_eq!(names(&gate), ["gate.key", "gate.key.new", "gate.toml"]);
    assert_eq!(root(&gate.path("gate.key.new")).1.id, 1);
    fails(&line, 2, "did not learn whether it was done");
    assert_eq!(root(&gate.path("gate.key.new")).1, provisioned(&gate).0.keys);
}

#[test]
fn a_spare_takes_a_gates_place() {
    let old_gate = FakeGate::raw(takes_all);
    let (old, before) = root(old_gate.folder_key().as_ref());
    let gate = FakeGate::blank(takes_all);
    let line = format!(
        "{} replace --old {} --config {} --epoch 2 --floor 34 --channel 1=0:500",
        at(&gate, "spare.key"),
        old_gate.folder_key(),
        config(&gate, CONFIG)
    );
    let ran = typed(&line);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.contains("issue every single holder's and observer's key file anew"), "{}", ran.out);
    assert!(ran.out.contains("below the last token used"), "{}", ran.out);
    let (new, keys) = root(&gate.path("spare.key"));
    assert_eq!((new.gate, &keys.root, &keys.operator, keys.id), (old.gate, &before.root, &before.operator, 1));
    assert_ne!(keys.instance, before.instance, "recorded traffic of the old one convinces nobody");
    let (told, channels) = provisioned(&gate);
    assert_eq!((told.gate, told.keys), (new.gate, keys));
    let first: Vec<_> = channels.iter().map(|channel| (channel.epoch, channel.floor)).collect();
    assert_eq!(first, [(Epoch(2), 34), (Epoch(0), 500)]);
}

#[test]
fn a_configuration_that_is_wrong_is_named_with_its_file_key_and_line() {
    let gate = FakeGate::blank(takes_all);
    let old_gate = FakeGate::raw(takes_all);
    let g = at(&gate, "new.key");
    for (text, words) in [
        ("drift = \"100ppm\"\nlateness = 5\n", "gate.toml, line 2: lateness: "),
        ("drift = \"100ppm\"\nlateness = \"5ms\"\n[[channel]]\nsave = 1\n", "line 4: channel[0].save: no such key"),
        ("drift =", "gate.toml, line 1: "),
    ] {
        fails(&format!("{g} provision --config {}", config(&gate, text)), 2, words);
    }
    let config = config(&gate, CONFIG);
    let replace = format!("{g} replace --old {} --config {config}", old_gate.folder_key());
    for (line, words) in [
        (format!("{g} provision"), "config: missing"),
        (format!("{g} provision --config /nonexistent/gate.toml"), "config: /nonexistent/gate.toml: "),
        (format!("{g} replace --config {config} --epoch 1"), "old: missing; add --old"),
        (replace.clone(), "epoch: missing; add --epoch"),
        (format!("{replace} --epoch 1 --channel 0"), "channel: `--channel 0`: "),
        (format!("{replace} --epoch 1 --channel 7=1:0"), "channel: `--channel 7=…`: the configuration has none"),
        (format!("{replace} --epoch 1 --floor 9223372036854775807"), "floor: "),
    ] {
        fails(&line, 2, words);
    }
    assert_eq!(gate.asked(), []);
    assert!(!gate.path("new.key").exists());
}

#[test]
fn a_key_file_to_hand_out_has_one_principals_key_alone() {
    let gate = FakeGate::raw(takes_all);
    let (file, _) = root(gate.folder_key().as_ref());
    let key = |rest: &str, out: &str| {
        format!("fencegate gate --key-file {} key {rest} --out {}", gate.folder_key(), gate.path(out).display())
    };
    let (status, got) = object(&key("--holder b#7", "b.key"));
    let out = gate.path("b.key").display().to_string();
    let want = json!({ "done": true, "gate": file.gate.to_string(), "key_id": 0, "holder": "b", "file": out });
    assert_eq!((status, got), (0, want));
    assert_eq!(KeyFile::read(&gate.path("b.key")).ok(), file.only(Role::Holder(holder("b"))));
    let ran = typed(&key("--observer", "o.key"));
    assert!(ran.status == 0 && ran.out.contains("has the observers' key for gate "), "{}", ran.out);
    assert_eq!(KeyFile::read(&gate.path("o.key")).ok(), file.only(Role::Observer));

    fails(&key("--holder b", "b.key"), 2, "out: `--out`: ");
    fails(&key("", "c.key"), 2, "one of `--holder <NAME>` and `--observer`");
    fails(&key("--holder b --observer", "c.key"), 2, "one of `--holder <NAME>` and `--observer`");
    let line = format!("fencegate gate --key-file {out} key --observer --out {}", gate.path("c.key").display());
    fails(&line, 2, "it has not the root");
    assert_eq!(gate.asked(), [], "no gate is asked");
}
