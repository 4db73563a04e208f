//! A gate that is its own authority, and what its operator does, through the command and on the emulated board.

use fencegate_tests::{Contact, EmulatedGate, Said};
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn a_lease_of_the_gates_own_is_acquired_renewed_used_and_released() {
    let gate = EmulatedGate::new();
    let lease = gate.done("acquire --channel 3 --holder b --ttl 10s");
    assert_eq!((&lease["token"], &lease["epoch"], &lease["holder"]), (&json!(1), &json!(0), &json!("b")));
    gate.done("drive --channel 3 --token 1 --holder b --value 1 --window 5s");
    assert_eq!(gate.outputs(), 0b1000);
    gate.done("renew --channel 3 --token 1 --holder b");

    for holder in ["a", "b"] {
        let (status, held) = gate.ask(&format!("acquire --channel 3 --holder {holder} --ttl 1s"));
        assert_eq!((status, &held["reason"]), (1, &json!("held")), "by the same holder too: it renews");
        let wait = held["wait_us"].as_u64().unwrap();
        assert!((5_000_000..=10_001_001).contains(&wait), "the holder's TTL, not the challenger's: {wait}");
    }
    for (words, reason) in [
        ("acquire --channel 0 --holder b --ttl 10s", "authority"),
        ("renew --channel 0 --token 1 --holder b", "authority"),
        ("raise --channel 3 --token 2 --holder b", "authority"),
        ("renew --channel 3 --token 2 --holder b", "authority"),
        ("drive --channel 3 --token 2 --holder a --value 1 --window 5s", "authority"),
        ("renew --channel 3 --token 1 --holder a", "wrong_holder"),
        ("acquire --channel 3 --holder a --ttl 61s", "range"),
        ("acquire --channel 9 --holder a --ttl 1s", "bad_channel"),
    ] {
        assert_eq!(gate.refused(words), reason, "{words}");
    }
    gate.done("release --channel 3 --token 1 --holder b");
    assert_eq!(gate.outputs(), 0);
    assert_eq!(gate.refused("renew --channel 3 --token 1 --holder b"), "released");
    assert_eq!(gate.done("acquire --channel 3 --holder a --ttl 1s")["token"], 2);
    assert_eq!(gate.refused("drive --channel 3 --token 1 --holder b --value 1 --window 5s"), "stale");
}

#[test]
fn a_reboot_lengthens_a_lease_and_a_lease_that_ran_out_is_not_revived() {
    let gate = EmulatedGate::new();
    gate.done("acquire --channel 3 --holder b --ttl 8s");
    sleep(Duration::from_secs(1));
    let gate = gate.power_cycle();
    let begun = Instant::now();
    let (_, held) = gate.ask("acquire --channel 3 --holder a --ttl 1s");
    let wait = Duration::from_micros(held["wait_us"].as_u64().unwrap());
    assert!(wait > Duration::from_secs(2), "in full from boot: {wait:?}");
    gate.done("renew --channel 3 --token 1 --holder b");
    sleep(Duration::from_secs(9).saturating_sub(begun.elapsed()));
    assert_eq!(gate.refused("renew --channel 3 --token 1 --holder b"), "expired");
    assert_eq!(gate.done("acquire --channel 3 --holder a --ttl 1s")["token"], 2);
}

#[test]
fn an_emergency_stop_makes_everything_safe_and_wants_a_rearm() {
    let gate = EmulatedGate::new();
    gate.done("drive --channel 0 --token 1 --holder a --value 1 --window 60s");
    gate.done("drive --channel 4 --token 1 --holder a --value 1,1 --window 60s");
    assert_eq!(gate.outputs(), 0b11_0001);
    gate.press_stop(true);
    sleep(Duration::from_millis(100));
    assert_eq!(gate.outputs(), 0);
    assert_eq!(gate.ask("status").1["fault"], "inhibited");
    assert_eq!(gate.channel(0)["state"], "fault");
    assert_eq!(gate.refused("drive --channel 0 --token 1 --holder a --value 1 --window 60s"), "fault");
    assert_eq!(gate.refused("rearm --channel 0"), "fault", "it is still pressed");
    gate.press_stop(false);
    assert_eq!(gate.refused("drive --channel 0 --token 1 --holder a --value 1 --window 60s"), "fault");
    assert_eq!(gate.outputs(), 0, "the last command never comes back by itself");
    gate.done("rearm --channel 0");
    assert_eq!(gate.outputs(), 0);
    gate.done("drive --channel 0 --token 1 --holder a --value 1 --window 60s");
    assert_eq!(gate.outputs(), 1);
    assert_eq!(gate.refused("drive --channel 4 --token 1 --holder a --value 1,1 --window 60s"), "fault");
    let said = Said::by(&mut gate.host("log"));
    for word in ["inhibit", "rearmed", "raised", "driven"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    // Somebody who is not the operator rearms nothing.
    let folder = gate.folder().join("a.key");
    let key = Said::by(gate.host(&format!("key --holder a --out {}", folder.display())).arg("--json"));
    assert_eq!(key.status, 0, "{key:?}");
    let said = Said::by(gate.host_with(&folder, "rearm --channel 4").arg("--json"));
    assert_eq!((said.status, &said.json()["reason"]), (1, &json!("role")), "{said:?}");
}

/// What a boot forgets is safe, but for an emergency stop that is still pressed.
#[test]
fn a_stop_that_stays_pressed_through_a_power_cut_stays_a_stop() {
    let gate = EmulatedGate::new();
    gate.contact(0, Contact::Closed); // nobody provisioned a feedback for it
    gate.done("drive --channel 0 --token 1 --holder a --value 0 --window 60s");
    assert_eq!(gate.channel(0)["state"], "driven");
    let gate = gate.power_cycle();
    gate.press_stop(true);
    assert_eq!(gate.refused("drive --channel 0 --token 1 --holder a --value 1 --window 60s"), "fault");
    assert_eq!(gate.outputs(), 0);
}
