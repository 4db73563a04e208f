use super::*;
use std::string::{String, ToString};
use std::vec::Vec;

fn us(us: u64) -> Value {
    Value::Time(Duration::from_micros(us))
}

fn s(s: u32) -> Value {
    Value::Time(Duration::from_secs(s))
}

fn ms(ms: u32) -> Value {
    Value::Time(Duration::from_millis(ms))
}

fn config(system: System, values: &[(&str, Value)]) -> Config {
    let mut config = Config::new(system);
    for (key, value) in values {
        config.set(key, *value).unwrap_or_else(|e| panic!("{system}: {e}"));
    }
    config
}

#[track_caller]
fn check(system: System, values: &[(&str, Value)]) -> Check {
    config(system, values).check().unwrap_or_else(|e| panic!("{system}: {e}"))
}

/// The rules that a configuration breaks; a warning's has a question mark.
#[track_caller]
fn broken(system: System, values: &[(&str, Value)]) -> Vec<String> {
    let check = check(system, values);
    let names = check.findings().map(|f| match f.severity() {
        Severity::Error => f.rule().to_string(),
        Severity::Warning => f.rule().to_string() + "?",
    });
    let names: Vec<_> = names.collect();
    assert_eq!(check.ok(), names.iter().all(|name| name.ends_with('?')));
    names
}

/// What the finding of that rule says.
#[track_caller]
fn says(system: System, values: &[(&str, Value)], rule: &str) -> String {
    check(system, values).findings().find(|f| f.rule() == rule).expect("found").to_string()
}

#[test]
fn every_system_is_fine_as_it_comes() {
    for system in System::ALL {
        let required: &[_] = match system {
            System::Redlock => &[("ttl", s(10))],
            System::ShedLock => &[("lock_at_most_for", s(600))],
            _ => &[],
        };
        assert!(check(system, required).ok(), "{system}");
    }
}

#[test]
fn redlock() {
    let ttl = ("ttl", s(10));
    assert_eq!(broken(System::Redlock, &[ttl]), ["token?"]);
    let elapsed = |elapsed| broken(System::Redlock, &[ttl, ("elapsed", us(elapsed))]);
    assert_eq!(elapsed(9_897_999), ["token?"], "one microsecond left");
    assert_eq!(elapsed(9_898_000), ["validity", "token?"]);
    let granted = |nodes, granted| {
        broken(System::Redlock, &[ttl, ("nodes", Value::Count(nodes)), ("granted", Value::Count(granted))])
    };
    assert_eq!(granted(5, 3), ["token?"]);
    assert_eq!(granted(5, 2), ["quorum", "token?"]);
    assert_eq!(granted(4, 2), ["quorum", "token?"], "half is no majority");
    let factor = |ppm| broken(System::Redlock, &[ttl, ("drift_factor", Value::Drift(Drift::from_ppm(ppm)))]);
    assert_eq!(factor(999_799), ["token?"], "2.01 ms of 10 s are left, less 2 ms");
    assert_eq!(factor(999_800), ["validity", "token?"]);
    let all = [ttl, ("drift_fixed", s(10))];
    assert_eq!(broken(System::Redlock, &all), ["validity", "token?"]);
    assert_eq!(
        says(System::Redlock, &[ttl, ("granted", Value::Count(2))], "quorum"),
        "2 of 5 nodes granted the lock and 3 are needed: release it everywhere and try again"
    );
}

#[test]
fn redisson() {
    assert_eq!(broken(System::Redisson, &[]), ["token?"]);
    assert_eq!(broken(System::Redisson, &[("lease_time", s(10))]), ["renewal?", "token?"]);
    assert!(says(System::Redisson, &[], "token").contains("RFencedLock"));
    assert!(says(System::Redisson, &[("fenced", Value::Flag(true))], "token").contains("asynchronous"));
}

#[test]
fn etcd() {
    let ttl = |value| broken(System::Etcd, &[("ttl", value)]);
    assert!(ttl(s(60)).is_empty());
    assert_eq!(ttl(ms(60_500)), ["whole_seconds"]);
    assert!(ttl(us(9_000_000_000_000_000)).is_empty());
    assert_eq!(ttl(us(9_000_000_001_000_000)), ["max_ttl"]);
    assert_eq!(ttl(us(u64::MAX)), ["whole_seconds", "max_ttl"]);
    // 1 s and 100 ms: k = 10, ⌊30/2⌋ = 15 heartbeats are 1.5 s, up to whole seconds 2 s.
    assert!(ttl(s(2)).is_empty());
    assert_eq!(ttl(s(1)), ["min_ttl?"]);
    assert!(says(System::Etcd, &[("ttl", s(1))], "min_ttl").starts_with("the server lengthens a ttl of 1s to 2s"));
    let servers = |election, heartbeat, ttl| {
        broken(System::Etcd, &[("election_timeout", election), ("heartbeat_interval", heartbeat), ("ttl", ttl)])
    };
    assert!(servers(ms(500), ms(100), s(1)).is_empty(), "five heartbeats are enough, and ⌊15/2⌋ of them 0.7 s");
    assert_eq!(servers(ms(499), ms(100), s(1)), ["election_timeout"]);
    assert!(servers(s(50), s(10), s(70)).is_empty());
    assert_eq!(servers(s(50), s(10), s(69)), ["min_ttl?"], "7 heartbeats, not 7.5");
    assert_eq!(servers(us(50_000_001), s(10), s(60)), ["election_timeout"]);
    assert_eq!(servers(s(1), s(0), s(60)), ["election_timeout"]);
    assert_eq!(servers(us(u64::MAX), us(u64::MAX), s(60)), ["election_timeout"]);
}

#[test]
fn zookeeper() {
    let asked = |value| broken(System::ZooKeeper, &[("session_timeout", value)]);
    for fits in [4, 30, 40] {
        assert!(asked(s(fits)).is_empty(), "{fits} s");
    }
    for clamped in [us(3_999_999), us(40_000_001)] {
        assert_eq!(asked(clamped), ["clamped?"]);
    }
    let words = says(System::ZooKeeper, &[("session_timeout", s(60))], "clamped");
    assert!(words.contains("the server makes it 40s"), "{words}");
    assert!(words.contains("after more than 40s and at most 42s"), "{words}");
    assert!(says(System::ZooKeeper, &[("session_timeout", s(1))], "clamped").contains("makes it 4s"));
    assert!(broken(System::ZooKeeper, &[("session_timeout", s(60)), ("tick", s(3))]).is_empty());
    let huge = config(System::ZooKeeper, &[("tick", us(u64::MAX / 20))]);
    assert_eq!(huge.check(), Err(ConfigError::TooLong("tick")));
}

#[test]
fn chubby() {
    assert_eq!(broken(System::Chubby, &[]), ["sequencer?"]);
    assert_eq!(broken(System::Chubby, &[("lease", s(0))]), ["lease", "sequencer?"]);
    assert!(says(System::Chubby, &[], "sequencer").contains("for the 45s of grace"));
}

#[test]
fn patroni() {
    let with = |values: &[_]| broken(System::Patroni, values);
    assert!(with(&[]).is_empty());
    let small = [("loop_wait", s(1)), ("retry_timeout", s(3))];
    assert!(with(&[&[("ttl", s(20))], &small[..]].concat()).is_empty());
    assert_eq!(with(&[&[("ttl", us(19_999_999))], &small[..]].concat()), ["minimum"]);
    assert_eq!(with(&[("loop_wait", ms(999))]), ["minimum"]);
    assert_eq!(with(&[("retry_timeout", ms(2_999))]), ["minimum"]);
    assert_eq!(with(&[("ttl", s(10)), ("loop_wait", s(0)), ("retry_timeout", s(1))]), ["minimum"; 3]);
    assert_eq!(with(&[("loop_wait", us(10_000_001))]), ["retry_budget"]);
    let words = says(System::Patroni, &[("loop_wait", s(15))], "retry_budget");
    assert!(words.contains("is 35s and above the ttl of 30s"), "{words}");
    let lean = [("retry_timeout", s(3)), ("loop_wait", s(24))];
    assert!(with(&[&lean[..], &[("safety_margin", s(6))]].concat()).is_empty(), "no slack at all is enough");
    assert_eq!(with(&[&lean[..], &[("safety_margin", us(6_000_001))]].concat()), ["watchdog_slack"]);
    assert_eq!(with(&[("safety_margin", s(31))]), ["watchdog_slack"]);
    let huge = config(System::Patroni, &[("retry_timeout", us(u64::MAX))]);
    assert_eq!(huge.check(), Err(ConfigError::TooLong("retry_timeout")));
}

#[test]
fn a_finding_in_words_names_key_and_values() {
    let below = says(System::Patroni, &[("ttl", s(19)), ("loop_wait", s(5)), ("retry_timeout", s(5))], "minimum");
    assert_eq!(below, "ttl is 19s, and Patroni raises what is below 20s to that: set it to 20s or more");
    assert_eq!((Severity::Error.name(), Severity::Warning.name()), ("error", "warning"));
}

#[test]
fn patronis_margin_of_half_the_ttl() {
    let half = ("safety_margin", Value::Literal(Literal::HalfTheTtl));
    let with = |ttl, loop_wait| {
        broken(System::Patroni, &[half, ("retry_timeout", s(3)), ("ttl", ttl), ("loop_wait", s(loop_wait))])
    };
    assert!(with(s(30), 15).is_empty());
    assert_eq!(with(s(30), 16), ["watchdog_slack"]);
    assert!(with(s(31), 15).is_empty());
    assert_eq!(with(s(31), 16), ["watchdog_half?"], "31 − 15 = 16, and Patroni itself takes 15");
    assert_eq!(with(s(31), 17), ["watchdog_slack"]);
    assert!(says(System::Patroni, &[half, ("loop_wait", s(16))], "watchdog_slack").contains("safety_margin of 15s"));
}

#[test]
fn kubernetes() {
    let with = |lease, deadline, retry| {
        broken(System::Kubernetes, &[("lease_duration", lease), ("renew_deadline", deadline), ("retry_period", retry)])
    };
    assert!(with(s(15), s(10), s(2)).is_empty());
    assert_eq!(with(s(10), s(10), s(2)), ["renew_deadline"]);
    assert_eq!(with(ms(10_500), s(10), s(2)), ["whole_seconds"], "the record keeps 10 s");
    assert!(with(s(11), ms(10_500), s(2)).is_empty());
    assert_eq!(with(s(15), s(12), s(10)), ["retry_period"]);
    assert!(with(s(15), us(12_000_001), s(10)).is_empty());
    // 1.2 × 7 µs is 8.4 µs: 9 is above it, 8 is not.
    assert!(with(s(15), us(9), us(7)).is_empty());
    assert_eq!(with(s(15), us(8), us(7)), ["retry_period"]);
    assert_eq!(with(s(15), s(10), us(u64::MAX)), ["retry_period"]);
    assert_eq!(with(us(u64::MAX), us(u64::MAX), us(u64::MAX)), ["renew_deadline", "retry_period"]);
}

#[test]
fn consul() {
    let with = |ttl, lock_delay| broken(System::Consul, &[("ttl", ttl), ("lock_delay", lock_delay)]);
    for (ttl, delay) in [(10, 0), (15, 15), (86_400, 60)] {
        assert_eq!(with(s(ttl), s(delay)), ["takeover?"]);
    }
    assert_eq!(with(us(9_999_999), s(15)), ["ttl", "takeover?"]);
    assert_eq!(with(us(86_400_000_001), s(15)), ["ttl", "takeover?"]);
    assert_eq!(with(s(15), us(60_000_001)), ["lock_delay", "takeover?"]);
    assert!(says(System::Consul, &[], "takeover").contains("after at most 45s"));
    let huge = config(System::Consul, &[("ttl", us(1 << 62))]);
    assert_eq!(huge.check(), Err(ConfigError::TooLong("ttl")));
    let huge = config(System::Consul, &[("ttl", us(u64::MAX))]);
    assert_eq!(huge.check(), Err(ConfigError::TooLong("ttl")));
}

#[test]
fn dynamodb() {
    let with = |lease, heartbeat| broken(System::DynamoDb, &[("lease_duration", lease), ("heartbeat", heartbeat)]);
    assert_eq!(with(s(20), s(5)), ["token?"]);
    assert_eq!(with(us(19_999_999), s(5)), ["heartbeat?", "token?"]);
    assert_eq!(with(s(10), s(5)), ["heartbeat?", "token?"]);
    assert_eq!(with(us(9_999_999), s(5)), ["heartbeat", "token?"]);
    assert_eq!(with(us(u64::MAX), us(u64::MAX)), ["heartbeat", "token?"]);
    let safe = |safe_time| broken(System::DynamoDb, &[("safe_time", us(safe_time))]);
    for fits in [5_000_001, 19_999_999] {
        assert_eq!(safe(fits), ["token?"]);
    }
    for not in [0, 5_000_000, 20_000_000] {
        assert_eq!(safe(not), ["safe_time", "token?"]);
    }
}

#[test]
fn shedlock() {
    let with = |more: &[_]| broken(System::ShedLock, &[&[("lock_at_most_for", s(600))], more].concat());
    assert_eq!(with(&[]), ["token?"]);
    assert_eq!(with(&[("lock_at_least_for", s(600))]), ["token?"]);
    assert_eq!(with(&[("lock_at_least_for", us(600_000_001))]), ["at_least", "token?"]);
    assert_eq!(with(&[("lock_at_least_for", s(5)), ("clock_skew", s(5))]), ["token?"]);
    assert_eq!(with(&[("lock_at_least_for", s(5)), ("clock_skew", us(5_000_001))]), ["clock_skew", "token?"]);
    assert_eq!(with(&[("clock_skew", s(5)), ("db_time", Value::Flag(true))]), ["token?"]);
    assert_eq!(with(&[("clock_skew", s(5)), ("db_time", Value::Flag(false))]), ["clock_skew", "token?"]);
}

#[test]
fn azure_blob() {
    let with = |lease| broken(System::AzureBlob, &[("lease", lease)]);
    for fits in [15, 60] {
        assert_eq!(with(s(fits)), ["token?"]);
    }
    for not in [us(14_999_999), us(60_000_001)] {
        assert_eq!(with(not), ["lease", "token?"]);
    }
    assert_eq!(with(Value::Literal(Literal::Infinite)), ["token?", "infinite?"]);
}

#[test]
fn hazelcast() {
    let with = |ttl, heartbeat| broken(System::Hazelcast, &[("session_ttl", ttl), ("heartbeat", heartbeat)]);
    assert!(with(s(300), s(5)).is_empty());
    assert!(with(us(5_000_001), s(5)).is_empty());
    assert_eq!(with(s(5), s(5)), ["heartbeat"]);
}

#[test]
fn the_plan_is_that_of_the_systems_own_heartbeat() {
    let drift = ("drift", Value::Drift(Drift::from_ppm(1_000)));
    for (system, values, ttl, attempts) in [
        (System::Patroni, &[][..], 30, 3),
        (System::Patroni, &[("loop_wait", s(16))], 30, 2),
        (System::Kubernetes, &[], 15, 7),
        (System::DynamoDb, &[], 20, 4),
        (System::Hazelcast, &[], 300, 60),
        (System::Consul, &[], 15, 2),
        (System::Etcd, &[], 60, 3),
        (System::ZooKeeper, &[], 30, 3),
        (System::Chubby, &[], 12, 3),
        (System::Redisson, &[("lease_time", s(5))], 30, 3),
        (System::AzureBlob, &[], 60, 3),
        (System::Redlock, &[("ttl", s(10))], 10, 3),
        (System::ShedLock, &[("lock_at_most_for", s(600))], 600, 3),
    ] {
        assert_eq!(check(system, values).plan(), None, "{system}: no drift, no plan");
        let values = [values, &[drift, drift, ("rtt", ms(50))]].concat();
        let plan = Plan::for_ttl(Duration::from_secs(ttl)).drift(Drift::from_ppm(2_000)).attempts(attempts);
        let plan = plan.round_trip(Duration::from_millis(50)).plan().unwrap();
        assert_eq!(check(system, &values).plan(), Some(&plan), "{system}");
    }
}

#[test]
fn where_there_is_no_plan_there_is_still_a_check() {
    let drift = ("drift", Value::Drift(Drift::from_ppm(1_000)));
    for (system, values, broken) in [
        (System::AzureBlob, [("lease", Value::Literal(Literal::Infinite))], &["token", "infinite"][..]),
        (System::Hazelcast, [("heartbeat", s(0))], &[]),
        (System::Chubby, [("lease", s(0))], &["lease", "sequencer"]),
        (System::DynamoDb, [("lease_duration", us(u64::MAX))], &["token"]),
    ] {
        let check = check(system, &[&values[..], &[drift]].concat());
        assert_eq!(check.plan(), None, "{system}");
        assert_eq!(check.findings().map(Finding::rule).collect::<Vec<_>>(), broken, "{system}");
    }
    let still = config(System::Etcd, &[("drift", Value::Drift(Drift::from_ppb(1_000_000_000)))]);
    assert_eq!(still.check(), Err(ConfigError::OutOfRange(OutOfRange::Drift)), "not a drift at all");
}

#[test]
fn what_holds_can_be_asked_for() {
    let mut config = config(System::Etcd, &[("ttl", s(7))]);
    let get = |config: &Config, key| config.get(key).map(|value| value.to_string());
    let of = |text: &str| Some(text.to_string());
    assert_eq!(
        (config.system(), get(&config, "ttl"), get(&config, "election_timeout")),
        (System::Etcd, of("7s"), of("1s"))
    );
    assert_eq!((get(&config, "drift"), get(&config, "rtt"), get(&config, "tick")), (None, of("0s"), None));
    config.set("drift", Value::Drift(Drift::from_ppm(1))).unwrap();
    config.set("drift", Value::Drift(Drift::from_ppm(2))).unwrap();
    config.set("rtt", ms(5)).unwrap();
    assert_eq!((get(&config, "drift"), get(&config, "rtt")), (of("3000ppb"), of("5ms")));
    assert_eq!(config.check().unwrap().system(), System::Etcd);
}

/// Consul's clients renew at half the TTL, the others at a third; where cancellation allows neither, it shows.
#[test]
fn the_plan_has_the_heartbeats_of_the_systems_own_client() {
    let heartbeat = |system, ttl| {
        let values = [("drift", Value::Drift(Drift::ZERO)), ("rtt", s(10)), (ttl, s(30))];
        check(system, &values).plan().map(|plan| (plan.heartbeat, plan.sustainable))
    };
    assert_eq!(heartbeat(System::Consul, "ttl"), Some((Duration::from_secs(15), false)));
    assert_eq!(heartbeat(System::Redisson, "ttl"), Some((Duration::from_secs(10), false)));
}

#[test]
fn errors_name_the_key_and_what_would_be_right() {
    for (error, words) in [
        (ConfigError::UnknownKey(System::Etcd), "key: the system has no such key"),
        (ConfigError::Twice("ttl"), "ttl: it is given more than once"),
        (ConfigError::WrongKind("ttl"), "ttl: its value is of another kind"),
        (ConfigError::Missing("nodes"), "nodes: it has no default and must be given"),
        (ConfigError::TooLong("tick"), "tick: what follows from it does not fit 2⁶³−1 µs"),
        (ConfigError::OutOfRange(OutOfRange::Drift), "drift_ppb: a drift must stay below 1000000000 ppb (100 %)"),
    ] {
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn what_cannot_be_set_is_named() {
    let mut etcd = Config::new(System::Etcd);
    assert_eq!(etcd.set("tll", s(1)), Err(ConfigError::UnknownKey(System::Etcd)));
    for wrong in [Value::Count(1), Value::Flag(true), Value::Drift(Drift::ZERO), Value::Literal(Literal::Infinite)] {
        assert_eq!(etcd.set("ttl", wrong), Err(ConfigError::WrongKind("ttl")));
    }
    assert_eq!(etcd.set("drift", s(1)), Err(ConfigError::WrongKind("drift")));
    assert_eq!(etcd, Config::new(System::Etcd), "nothing was changed");
    for key in ["ttl", "rtt"] {
        assert_eq!(etcd.set(key, s(1)), Ok(()));
        assert_eq!(etcd.set(key, s(1)), Err(ConfigError::Twice(key)));
        assert_eq!(etcd.get(key), Some(s(1)));
    }
    assert_eq!(etcd.get("election_timeout"), Some(s(1)), "its default");
    for (system, key) in [(System::Redlock, "ttl"), (System::ShedLock, "lock_at_most_for")] {
        assert_eq!(Config::new(system).check(), Err(ConfigError::Missing(key)));
    }
    let nodes = config(System::Redlock, &[("ttl", s(1)), ("nodes", Value::Count(0))]);
    assert_eq!(nodes.check().unwrap_err().field(), "nodes");
}

#[cfg(feature = "serde")]
#[test]
fn json_has_the_contracts_names() {
    let check = check(System::Patroni, &[("loop_wait", s(15)), ("drift", Value::Drift(Drift::ZERO))]);
    let json = serde_json::to_value(check).unwrap();
    assert_eq!((&json["system"], &json["ok"]), (&"patroni".into(), &false.into()));
    let [finding] = json["findings"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert_eq!((&finding["rule"], &finding["severity"]), (&"retry_budget".into(), &"error".into()));
    assert!(finding["message"].as_str().unwrap().contains("35s"));
    assert_eq!(json["plan"]["window_us"], 30_000_000);
    assert_eq!(json.as_object().unwrap().len(), 4);
}
