//! Sizing, Redlock, presets and checks in a shell.

mod shell;

use serde_json::{Value, json};
use shell::{answer, refused, typed};

/// The flag of an input field: `ttl_us` is `--ttl`, and its value has a unit.
fn flag(field: &str, value: &Value) -> [String; 2] {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (name, unit) = match field.rsplit_once('_') {
        Some((name, unit @ ("us" | "ppb"))) => (name, unit),
        _ => (field, ""),
    };
    [format!("--{}", name.replace('_', "-")), format!("{value}{unit}")]
}

/// Every case of the contract through the command, whatever its call.
#[test]
fn every_worked_case_of_the_contract() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/calculator.json");
    let cases = std::fs::read_to_string(cases).expect("the shared cases");
    let cases: Vec<Value> = serde_json::from_str(&cases).expect("a list of cases");
    for (call, least) in [("plan", 20), ("size", 7), ("redlock", 4)] {
        assert!(cases.iter().filter(|case| case["call"] == call).count() >= least, "the cases of {call} are there");
    }
    for case in &cases {
        let call = case["call"].as_str().expect("a call");
        let input = case["input"].as_object().expect("an input");
        let flags: Vec<_> = input.iter().flat_map(|(field, value)| flag(field, value)).collect();
        let line = format!("fencegate {call} {}", flags.join(" "));
        if let Some(field) = case["expect_error"].as_str() {
            refused(&line, field);
            continue;
        }
        let (status, got) = answer(&line);
        let want = case["expect"].as_object().expect("an output");
        for (field, value) in input.iter().chain(want) {
            assert_eq!(&got[field], value, "{field} of {line}");
        }
        let yes = match call {
            "plan" => want["safe"] == true,
            "size" => !want["ttl_us"].is_null(),
            "redlock" => want["held"] == true,
            other => panic!("{other}"),
        };
        assert_eq!(status, i32::from(!yes), "{line}");
    }
}

#[test]
fn the_contracts_size() {
    let line = "fencegate size   --work 2s --pause 500ms --drift 0.1% --rtt 50ms --lost 1 --granularity 1s";
    let (status, got) = answer(line);
    assert_eq!(status, 0);
    let want = json!({
        "drift_ppb": 1_000_000, "rtt_us": 50_000, "attempts": 3, "work_us": 2_000_000, "pause_us": 500_000, "poll_us": 0,
        "lost": 1, "granularity_us": 1_000_000,
        "ttl_us": 8_000_000, "margin_us": 8_000, "window_us": 7_992_000, "safe": true, "heartbeat_us": 2_616_666,
        "sustainable": true, "renewals_in_window": 3, "cancel_after_us": 2_666_666, "misses_before_cancel": 0,
        "stall_tolerance_us": 5_325_334, "work_deadline_us": 5_992_000, "takeover_us": 8_108_009,
        "renewals_per_hour": 1_375,
    });
    assert_eq!(Value::from(got), want);
}

/// The answer of `size` is the plan for that TTL, field by field.
#[test]
fn a_size_is_its_plan() {
    let flags = "--drift 100ppm --rtt 20ms --attempts 5 --work 1s --pause 300ms --poll 1s";
    let (_, mut size) = answer(&format!("fencegate size {flags} --lost 2"));
    let (_, plan) = answer(&format!("fencegate plan --ttl {}us {flags}", size["ttl_us"]));
    for own in ["lost", "granularity_us"] {
        size.remove(own);
    }
    size.extend([("start".to_owned(), json!("send")), ("clock_offset_us".to_owned(), json!(0))]);
    assert_eq!(size, plan);
}

#[test]
fn a_person_reads_the_size() {
    let ran = typed("fencegate size --work 2s --pause 500ms --drift 0.1% --rtt 50ms");
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    for words in ["a TTL of 7.674 s leaves room for 2 s of work, a stall of 500 ms and one lost renewal", "7673023us"] {
        assert!(ran.out.contains(words), "{}", ran.out);
    }
    let ran = typed("fencegate size --drift 40% --work 1s");
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    assert!(ran.out.contains("no TTL is long enough"), "{}", ran.out);
    let (status, got) = answer("fencegate size --drift 40% --work 1s");
    assert_eq!((status, &got["ttl_us"], got.contains_key("window_us")), (1, &Value::Null, false));
}

#[test]
fn the_contracts_redlock_and_quorum() {
    let (status, got) = answer("fencegate redlock --ttl 10s --elapsed 300ms --nodes 5 --granted 3");
    assert_eq!(status, 0);
    let want = json!({
        "ttl_us": 10_000_000, "elapsed_us": 300_000, "nodes": 5, "granted": 3, "drift_factor_ppb": 10_000_000,
        "drift_fixed_us": 2_000, "drift_us": 102_000, "validity_us": 9_598_000, "quorum": 3, "held": true,
    });
    assert_eq!(Value::from(got), want);
    let (status, got) = answer("fencegate quorum --nodes 5");
    assert_eq!((status, Value::from(got)), (0, json!({"nodes": 5, "quorum": 3, "tolerates": 2})));

    let no = "fencegate redlock --ttl 1s --elapsed 1s --nodes 5 --granted 5";
    assert!(typed(no).out.contains("nothing is left"));
    assert!(
        typed(&no.replace("5 --granted 5", "5 --granted 2").replace("1s --nodes", "0s --nodes"))
            .out
            .contains("no majority")
    );
    let (_, got) =
        answer("fencegate redlock --ttl 1s --elapsed 0s --nodes 3 --granted 2 --drift-factor 0.5% --drift-fixed 1ns");
    assert_eq!((&got["drift_factor_ppb"], &got["drift_us"]), (&json!(5_000_000), &json!(5_001)), "rounded up");
}

#[test]
fn wrong_input_is_one_line_that_names_the_field() {
    for (line, field) in [
        ("size --work 1s", "drift_ppb"),
        ("size --drift 100%", "drift_ppb"),
        ("size --drift 1ppm --attempts 1", "attempts"),
        ("size --drift 1ppm --lost -1", "lost"),
        ("size --drift 1ppm --granularity 0s", "granularity_us"),
        ("size --drift 1ppm --work 18446744073709551615us", "ttl_us"),
        ("size --drift 1ppm --attempts 18446744073709551615", "ttl_us"),
        ("size --drift 1ppm --start grant", "--start"),
        ("size --drift 1ppm --clock-offset 1s", "--clock-offset"),
        ("redlock --elapsed 0s --nodes 5 --granted 5", "ttl_us"),
        ("redlock --ttl 1s --nodes 5 --granted 5", "elapsed_us"),
        ("redlock --ttl 0s --elapsed 0s --nodes 5 --granted 5", "ttl_us"),
        ("redlock --ttl 1s --elapsed 0s --nodes 0 --granted 0", "nodes"),
        ("redlock --ttl 1s --elapsed 0s --nodes 5 --granted 6", "granted"),
        ("redlock --ttl 1s --elapsed 0s --nodes 5 --granted 5 --drift-factor 100%", "drift_factor_ppb"),
        ("redlock --ttl 1s --elapsed 0s --nodes 5 --granted 5 --drift-fixed 1", "drift_fixed_us"),
        ("quorum", "nodes"),
        ("quorum --nodes 0", "nodes"),
        ("quorum --nodes 18446744073709551615", "nodes"),
        ("quorum --nodes 5s", "nodes"),
        ("check", "system"),
        ("check postgres", "system"),
        ("check etcd tll=1s", "tll"),
        ("check etcd ttl", "`ttl`"),
        ("check etcd ttl=5", "ttl"),
        ("check etcd ttl=-5s", "ttl"),
        ("check etcd ttl=1s ttl=1s", "ttl"),
        ("check etcd rtt=1s rtt=1s", "rtt"),
        ("check etcd drift=100%", "drift_ppb"),
        ("check etcd ttl=infinite", "ttl"),
        ("check patroni safety_margin=-2", "safety_margin"),
        ("check azure-blob lease=for-ever", "infinite"),
        ("check redlock", "ttl"),
        ("check redlock ttl=1s nodes=0", "nodes"),
        ("check redlock ttl=1s granted=6", "granted"),
        ("check redlock ttl=1s drift_factor=100%", "drift_factor"),
        ("check shedlock", "lock_at_most_for"),
        ("check shedlock lock_at_most_for=1s db_time=yes", "db_time"),
        ("check zookeeper tick=18446744073709551615us", "tick"),
        ("check consul ttl=9223372036854775807us", "ttl"),
        ("presets all", "`all`"),
    ] {
        refused(&format!("fencegate {line}"), field);
        refused(&format!("fencegate {line} --json"), field);
    }
}

/// Configurations, and the one rule that each breaks; a warning's has a question mark.
type Broken = &'static [(&'static str, &'static str)];

/// A configuration that keeps every rule of its system, and for each rule one that breaks it alone.
const CHECKS: [(&str, &str, Broken); 12] = [
    (
        "redlock",
        "ttl=10s nodes=5 granted=3 elapsed=300ms",
        &[("ttl=10s elapsed=9.9s", "validity"), ("ttl=10s granted=2", "quorum"), ("ttl=10s", "token?")],
    ),
    ("redisson", "", &[("lease_time=10s", "renewal?"), ("", "token?"), ("fenced=true", "token?")]),
    (
        "etcd",
        "ttl=10s",
        &[
            ("ttl=1.5s election_timeout=500ms heartbeat_interval=50ms", "whole_seconds"),
            ("ttl=9000000001s", "max_ttl"),
            ("heartbeat_interval=201ms", "election_timeout"),
            ("election_timeout=51s", "election_timeout"),
            ("ttl=1s", "min_ttl?"),
        ],
    ),
    ("zookeeper", "", &[("session_timeout=3s", "clamped?"), ("session_timeout=41s", "clamped?")]),
    ("chubby", "", &[("lease=0s", "lease"), ("", "sequencer?")]),
    (
        "patroni",
        "ttl=30s loop_wait=10s retry_timeout=10s",
        &[
            ("ttl=19s loop_wait=1s retry_timeout=3s", "minimum"),
            ("loop_wait=0.5s", "minimum"),
            ("retry_timeout=2s", "minimum"),
            ("loop_wait=11s", "retry_budget"),
            ("loop_wait=20s retry_timeout=3s safety_margin=11s", "watchdog_slack"),
            ("loop_wait=16s retry_timeout=3s safety_margin=-1", "watchdog_slack"),
            ("ttl=31s loop_wait=16s retry_timeout=3s safety_margin=-1", "watchdog_half?"),
        ],
    ),
    (
        "kubernetes",
        "",
        &[
            ("lease_duration=10s", "renew_deadline"),
            ("retry_period=8.4s", "retry_period"),
            ("lease_duration=10.9s", "whole_seconds"),
        ],
    ),
    ("consul", "", &[("ttl=9s", "ttl"), ("ttl=25h", "ttl"), ("lock_delay=61s", "lock_delay"), ("", "takeover?")]),
    (
        "dynamodb",
        "safe_time=15s",
        &[
            ("heartbeat=11s", "heartbeat"),
            ("heartbeat=6s", "heartbeat?"),
            ("safe_time=5s", "safe_time"),
            ("safe_time=20s", "safe_time"),
            ("", "token?"),
        ],
    ),
    (
        "shedlock",
        "lock_at_most_for=10m lock_at_least_for=1m clock_skew=30s",
        &[
            ("lock_at_most_for=1m lock_at_least_for=2m", "at_least"),
            ("lock_at_most_for=1m clock_skew=1s", "clock_skew"),
            ("lock_at_most_for=1m", "token?"),
        ],
    ),
    (
        "azure-blob",
        "lease=infinite",
        &[("lease=14s", "lease"), ("lease=61s", "lease"), ("", "token?"), ("lease=infinite", "infinite?")],
    ),
    ("hazelcast", "", &[("session_ttl=5s", "heartbeat")]),
];

#[test]
fn each_rule_of_each_system_holds_and_breaks() {
    for (system, good, bad) in CHECKS {
        let (status, got) = answer(&format!("fencegate check {system} {good}"));
        assert_eq!((status, &got["ok"], &got["system"]), (0, &json!(true), &json!(system)), "{good}");
        assert_eq!(got.keys().collect::<Vec<_>>(), ["findings", "ok", "plan", "system"]);
        for (values, rule) in bad {
            let line = format!("fencegate check {system} {values}");
            let (rule, severity) = rule.strip_suffix('?').map_or((*rule, "error"), |rule| (rule, "warning"));
            let (status, got) = answer(&line);
            let findings = got["findings"].as_array().expect("findings");
            let found = findings.iter().find(|f| f["rule"] == rule).unwrap_or_else(|| panic!("{line}: no {rule}"));
            assert_eq!(found["severity"], severity, "{line}");
            assert_eq!(status, i32::from(severity == "error"), "{line}");
            assert_eq!(got["ok"], severity != "error", "{line}");
            let errors = findings.iter().filter(|f| f["severity"] == "error").count();
            assert_eq!(errors, usize::from(severity == "error"), "{line} breaks that rule alone");

            let ran = typed(&line);
            let message = found["message"].as_str().expect("words");
            assert!(ran.out.contains(message) && message.len() > 40, "{line}: {}", ran.out);
        }
    }
}

#[test]
fn the_contracts_check_and_its_plan() {
    let line = "fencegate check patroni ttl=30s loop_wait=10s retry_timeout=10s";
    let (status, got) = answer(line);
    let want = json!({"system": "patroni", "ok": true, "findings": [], "plan": null});
    assert_eq!((status, Value::from(got)), (0, want));

    let (_, got) = answer(&format!("{line} drift=500ppm drift=500ppm rtt=5ms"));
    let (_, plan) = answer("fencegate plan --ttl 30s --drift 1000ppm --rtt 5ms --attempts 3");
    let fields = got["plan"].as_object().expect("a plan");
    assert_eq!(fields.len(), 12);
    for (field, value) in fields {
        assert_eq!(value, &plan[field], "{field}");
    }
    let ran = typed(&format!("{line} drift=500ppm drift=500ppm rtt=5ms"));
    assert!(ran.out.contains("29.97 s"), "{}", ran.out);
}

#[test]
fn what_lies_between_two_microseconds_goes_down_for_the_lease_and_up_for_all_else() {
    let (_, got) = answer("fencegate check etcd ttl=10.0000009s drift=0ppb");
    assert_eq!((&got["findings"], &got["plan"]["window_us"]), (&json!([]), &json!(10_000_000)));
    let (status, _) = answer("fencegate check consul lock_delay=60.0000001s");
    assert_eq!(status, 1);
    let (status, _) = answer("fencegate check azure-blob lease=60.0000009s");
    assert_eq!(status, 0);
}

#[test]
fn presets_are_one_object_with_every_system_and_clock() {
    let (status, got) = answer("fencegate presets");
    assert_eq!(status, 0);
    let systems = got["systems"].as_array().expect("systems");
    let named = |name: &str| systems.iter().find(|s| s["system"] == name).unwrap_or_else(|| panic!("{name}"));
    for (system, _, _) in CHECKS {
        named(system);
    }
    for (name, token, ordered) in [
        ("redis", false, false),
        ("postgres-advisory", false, false),
        ("redlock", false, false),
        ("shedlock", false, false),
        ("s3", true, false),
        ("dynamodb", true, false),
        ("azure-blob", true, false),
        ("etcd", true, true),
        ("zookeeper", true, true),
        ("chubby", true, true),
        ("hazelcast", true, true),
    ] {
        let preset = named(name);
        assert_eq!((preset["token"].is_string(), &preset["ordered"]), (token, &json!(ordered)), "{name}");
    }
    for preset in systems {
        let fields: Vec<_> = preset.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["defaults", "notes", "ordered", "renews", "sources", "system", "token"]);
        assert!(!preset["sources"].as_array().expect("sources").is_empty(), "{preset}");
    }
    // Every default, typed back, is taken.
    for (system, _, _) in CHECKS {
        for (key, value) in named(system)["defaults"].as_object().expect("an object") {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let required = match system {
                "redlock" if key != "ttl" => "ttl=10s",
                "shedlock" if key != "lock_at_most_for" => "lock_at_most_for=10m",
                _ => "",
            };
            if value != "null" {
                let (status, _) = answer(&format!("fencegate check {system} {required} {key}={value}"));
                assert_eq!(status, 0, "{system} {key}={value}");
            }
        }
    }
    for clock in got["clocks"].as_array().expect("clocks") {
        let fields: Vec<_> = clock.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["clock", "drift_ppb", "source"]);
    }
    let ran = typed("fencegate presets");
    assert!(ran.out.contains("hazelcast") && ran.out.contains("chrony.conf"), "{}", ran.out);
}

#[test]
fn help_has_an_example_that_runs() {
    for call in ["size", "redlock", "quorum", "presets", "check"] {
        let ran = typed(&format!("fencegate {call} --help"));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{call}");
        let examples: Vec<_> = ran.out.lines().filter(|line| line.starts_with("  fencegate ")).collect();
        assert!(!examples.is_empty(), "{call}");
        for example in examples {
            assert_eq!(typed(example).status, 0, "{example}");
        }
    }
}

#[test]
fn presets_may_be_asked_for_one_at_a_time() {
    let (status, got) = answer("fencegate presets etcd");
    assert_eq!((status, got["systems"].as_array().map(Vec::len)), (0, Some(1)));
    assert_eq!((&got["systems"][0]["system"], &got["clocks"]), (&json!("etcd"), &json!([])));
    let whole = answer("fencegate presets").1;
    let clock = whole["clocks"][0]["clock"].as_str().expect("a name").to_owned();
    let ran = shell::command(&["presets", &clock]).output().expect("the binary runs");
    let out = String::from_utf8(ran.stdout).expect("Unicode");
    assert!(out.contains(&clock) && !out.contains("etcd"), "{out}");
    assert!(!typed("fencegate presets etcd").out.contains("zookeeper"));
    refused("fencegate presets etc", "name: `etc` is none of ");
}
