//! `fencegate doctor` at real services.

use super::worker::{Held, appears, etcd_url, hold_of, key_of, postgres_url, zookeeper_url};
use fencegate_tests::{EmulatedGate, Said, Server, fencegate};
use std::io::Read;
use std::process::{Command, Stdio};

/// `fencegate doctor` with few samples.
fn doctor(coordinator: &str, flags: &[&str]) -> Command {
    let mut doctor = fencegate();
    doctor.args(["doctor", "--coordinator", coordinator, "--look", "10ms", "--samples", "3", "--json"]).args(flags);
    doctor
}

#[test]
fn the_doctor_measures_the_way_and_leaves_nothing_behind() {
    let (server, gate) = (Server::etcd(), EmulatedGate::new());
    let url = etcd_url(&server);
    let mut doctor = fencegate();
    doctor.args(["doctor", "--coordinator", &url, "--look", "500ms", "--samples", "5", "--work", "200ms", "--json"]);
    let said = Said::by(doctor.args(["--gate", &gate.port, "--key-file"]).arg(gate.key_file()));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said:?}");
    let found = said.json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{value}: {found}"));
    let (coordinator, at_gate) = (&found["coordinator"], &found["gate"]);
    assert_eq!((number(&coordinator["calls"]), number(&at_gate["calls"])), (6, 5));
    let worst = number(&coordinator["worst_us"]);
    assert!(number(&coordinator["median_us"]) <= worst);
    let size = &found["size"];
    assert_eq!(number(&size["rtt_us"]), 2 * worst, "samples are no bound");
    assert_eq!(number(&size["work_us"]), 200_000 + 4 * number(&at_gate["worst_us"]));
    assert_eq!(number(&size["drift_ppb"]), number(&found["clock_drift_ppb"]) + 500_000);
    // Where nobody who disciplines clocks is seen running, somebody may all the same, and as fast as any of them.
    let assumed = found["seen_running"].is_null();
    assert_eq!(found["clock_drift_assumed"], assumed);
    assert!(number(&found["clock_drift_ppb"]) >= if assumed { 100_000_000 } else { 500_000 });
    assert_eq!(number(&found["ttl_us"]) % 1_000_000, 0, "whole seconds, as etcd takes them");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");

    let said = Said::by(fencegate().args(["doctor", "--look", "10ms"]));
    assert!(said.status == 0 && said.out.contains("no coordinator was asked"), "{said:?}");
    let said = Said::by(fencegate().args(["doctor", "--look", "10ms", "--coordinator", "etcd://127.0.0.1:1"]));
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (3, "", 1), "{said:?}");
}

/// How fast each may make the clock go as it comes: of those seen running, the worst counts.
#[test]
fn whoever_is_seen_running_has_a_bound_of_its_own() {
    // Of this machine's own there may be one.
    let before = Said::by(fencegate().args(["doctor", "--look", "10ms", "--json"])).json();
    for (name, ppb) in [
        ("phc2sys", 100_000_000),
        ("ptp4l", 100_000_000),
        ("chronyd", 83_333_333),
        ("systemd-timesyn", 50_500_000),
        ("ntpd", 2_500_000),
        ("ntp-daemon", 695_000),
    ] {
        let rename = format!("$0 = '{name}'; $| = 1; print \"up\\n\"; sleep 60");
        let mut daemon = Command::new("perl").args(["-e", &rename]).stdout(Stdio::piped()).spawn().unwrap();
        let mut up = [0; 3];
        daemon.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        let said = Said::by(fencegate().args(["doctor", "--look", "10ms", "--json"]));
        let table = Said::by(fencegate().args(["doctor", "--look", "10ms"]));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        let found = said.json();
        let drift = found["clock_drift_ppb"].as_u64().unwrap();
        assert!(drift >= ppb && found["clock_drift_assumed"] == false, "{name}: {found}");
        let asks_timesyncd = name == "systemd-timesyn" || !before["synchronized"].is_null();
        assert_eq!(!found["synchronized"].is_null(), asks_timesyncd, "{name}: {found} after {before}");
        // One that is there anyway may be worse.
        if found["seen_running"] == name {
            assert!(drift == ppb || drift == found["slew_ppb"].as_i64().unwrap().unsigned_abs(), "{name}: {found}");
            assert!(table.out.contains(&format!("that {name} disciplines this clock is a guess")), "{table:?}");
        }
    }
}

/// What counts tokens must not begin anew, so that it stays; but it is one lock's, however often there is a doctor.
#[test]
fn all_doctors_leave_one_name_behind() {
    let (postgres, redis, zookeeper, moto) = (Server::postgres(), Server::redis(), Server::zookeeper(), Server::moto());
    moto.dynamodb_table("locks", "lock");
    let at_redis = format!("redis://127.0.0.1:{}", redis.port);
    for _ in 0..2 {
        for url in [&postgres_url(&postgres), &at_redis, &zookeeper_url(&zookeeper)] {
            let said = Said::by(&mut doctor(url, &[]));
            assert_eq!((said.status, said.err.as_str()), (0, ""), "{url}: {said:?}");
            assert_eq!(said.json()["coordinator"]["calls"], 4, "{url}");
        }
        let said = Said::by(moto.for_aws(&mut doctor("dynamodb://eu-central-1/locks", &[])));
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{said:?}");
    }
    let said = |command: &mut Command| {
        let said = Said::by(command);
        assert_eq!(said.status, 0, "{said:?}");
        said.out.trim().to_owned()
    };
    let rows = "SELECT lock, ends > now() FROM fencegate_lease";
    assert_eq!(said(&mut postgres.psql(&["-c", rows])), "fencegate-doctor|f");
    let keys = said(Command::new("redis-cli").args(["-p", &redis.port.to_string(), "--scan"]));
    assert_eq!(keys, "{fencegate-doctor}:token");
    let nodes = said(&mut zookeeper.zookeeper_client(&["ls", "-R", "/fencegate"]));
    assert!(nodes.ends_with("/fencegate\n/fencegate/fencegate-doctor\n/fencegate/fencegate-doctor/epoch"), "{nodes}");
    let items =
        said(&mut moto.aws(&["dynamodb", "scan", "--table-name", "locks", "--query", "Items[].[lock.S, held.BOOL]"]));
    let items: serde_json::Value = serde_json::from_str(&items).unwrap();
    assert_eq!(items, serde_json::json!([["fencegate-doctor", false]]));
}

/// It is measured like any lock service, on a channel that is its own authority.
#[test]
fn the_doctor_measures_a_gate_that_grants_leases() {
    let (gate, folder) = (EmulatedGate::new(), tempfile::tempdir().unwrap());
    let (url, key) = (format!("gate:{}", gate.port), gate.key_file());
    let key = ["--key-file", key.to_str().unwrap()];
    let said = Said::by(&mut doctor(&url, &[&key[..], &["--lock", "3"]].concat()));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said:?}");
    let found = said.json();
    assert!(found["coordinator"]["calls"] == 4 && found["ttl_us"].is_u64() && found["gate"].is_null(), "{found}");
    for (lock, words) in
        [("fencegate-doctor", "lock: `--lock fencegate-doctor`: "), ("0", "the gate refused: authority")]
    {
        let said = Said::by(&mut doctor(&url, &[&key[..], &["--lock", lock]].concat()));
        assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (2, "", 1), "{said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    // Who holds it is not disturbed.
    let up = folder.path().join("up");
    let script = format!("echo up > {}; sleep 3", up.display());
    let held = Held::begin(hold_of("3", "3s", &url, "a", &key, &script));
    appears(&up);
    let said = Said::by(&mut doctor(&url, &[&key[..], &["--lock", "3"]].concat()));
    assert_eq!((said.status, said.out.as_str()), (3, ""), "{said:?}");
    assert!(said.err.contains("coordinator: another holds the lock (--lock): "), "{said:?}");
    let held = held.end();
    assert_eq!(held.status, 0, "{held:?}");
}

/// Whoever has a key asks as whom it is: the operator, a holder, somebody who may only look.
#[test]
fn the_doctor_speaks_as_whom_its_key_is() {
    let gate = EmulatedGate::new();
    let url = format!("gate:{}", gate.port);
    for (whose, grants) in [("--holder b", true), ("--holder sixteen-bytes-xx", true), ("--observer", false)] {
        let key = key_of(&gate, whose);
        let asked = Said::by(fencegate().args(["doctor", "--look", "10ms", "--samples", "3", "--json"]).args([
            "--gate",
            &gate.port,
            "--key-file",
            &key,
        ]));
        assert_eq!((asked.status, asked.err.as_str()), (0, ""), "{whose}: {asked:?}");
        assert_eq!(asked.json()["gate"]["calls"], 3, "{whose}");
        let leased = Said::by(&mut doctor(&url, &["--key-file", &key, "--lock", "3"]));
        if grants {
            assert_eq!((leased.status, leased.err.as_str()), (0, ""), "{whose}: {leased:?}");
        } else {
            assert_eq!((leased.status, leased.out.as_str()), (2, ""), "{leased:?}");
            assert!(leased.err.contains("coordinator: the gate refused: role"), "{leased:?}");
        }
    }
}
