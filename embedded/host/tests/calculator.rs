//! The calculator in a shell: what is typed, what is printed, and the exit status.

use serde_json::{Map, Value, json};
use std::process::{Command, Output, Stdio};

/// What a command did.
struct Ran {
    status: i32,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("Unicode");
        Self {
            status: output.status.code().expect("an exit status, not a signal"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencegate"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Ran {
    command(arguments).output().expect("the binary runs").into()
}

/// Runs a line as typed.
fn typed(line: &str) -> Ran {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("fencegate"));
    run(&words.collect::<Vec<_>>())
}

/// Runs a line as typed with `--json`: the status and the one object printed on one line.
fn answer(line: &str) -> (i32, Map<String, Value>) {
    let ran = typed(&format!("{line} --json"));
    assert_eq!(ran.err, "", "{line}");
    assert_eq!(ran.out.find('\n'), Some(ran.out.len() - 1), "one line: {line}");
    (ran.status, serde_json::from_str(&ran.out).expect("one object"))
}

/// Runs a line that must be refused: status 2, nothing on standard output, one line that has the words.
#[track_caller]
fn refused(line: &str, words: &str) {
    refusal(line, &typed(line), words);
}

#[track_caller]
fn refusal(line: &str, ran: &Ran, words: &str) {
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{line}");
    assert_eq!(ran.err.find('\n'), Some(ran.err.len() - 1), "one line: {line}: {}", ran.err);
    assert!(ran.err.contains(words), "{line}: {} does not say {words}", ran.err);
}

/// The flag of an input field: `ttl_us` is `--ttl`, and its value has a unit.
fn flag(field: &str, value: &Value) -> [String; 2] {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (name, unit) = match field.rsplit_once('_') {
        Some((name, unit @ ("us" | "ppb"))) => (name, unit),
        _ => (field, ""),
    };
    [format!("--{}", name.replace('_', "-")), format!("{value}{unit}")]
}

#[test]
fn every_worked_plan_of_the_contract() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/calculator.json");
    let cases = std::fs::read_to_string(cases).expect("the shared cases");
    let cases: Vec<Value> = serde_json::from_str(&cases).expect("a list of cases");
    let plans: Vec<_> = cases.iter().filter(|case| case["call"] == "plan").collect();
    assert!(plans.len() >= 20, "the cases are there");
    for case in plans {
        let input = case["input"].as_object().expect("an input");
        let flags: Vec<_> = input.iter().flat_map(|(field, value)| flag(field, value)).collect();
        let line = format!("fencegate plan {}", flags.join(" "));
        if let Some(field) = case["expect_error"].as_str() {
            refused(&line, field);
            continue;
        }
        let (status, got) = answer(&line);
        let want = case["expect"].as_object().expect("an output");
        for (field, value) in input.iter().chain(want) {
            assert_eq!(&got[field], value, "{field} of {}", case["name"]);
        }
        assert_eq!(status, i32::from(want["safe"] != true), "{}", case["name"]);
    }
}

#[test]
fn the_contracts_window() {
    let (status, got) = answer("fencegate window --ttl 10s --drift 1000ppm --rtt 5ms --start grant");
    assert_eq!(status, 0);
    let want = json!({
        "ttl_us": 10_000_000, "drift_ppb": 1_000_000, "rtt_us": 5_000, "start": "grant", "clock_offset_us": 0,
        "margin_us": 15_000, "window_us": 9_985_000, "safe": true,
    });
    assert_eq!(Value::from(got), want);
}

#[test]
fn the_contracts_plan() {
    let (status, got) = answer("fencegate plan   --ttl 10s --drift 500ppm --drift 500ppm --rtt 5ms --work 200ms");
    assert_eq!(status, 0);
    let want = json!({
        "ttl_us": 10_000_000, "drift_ppb": 1_000_000, "rtt_us": 5_000, "start": "send", "clock_offset_us": 0,
        "attempts": 3, "work_us": 200_000, "pause_us": 0, "poll_us": 0,
        "margin_us": 10_000, "window_us": 9_990_000, "safe": true, "heartbeat_us": 3_328_333, "sustainable": true,
        "renewals_in_window": 3, "cancel_after_us": 3_333_333, "misses_before_cancel": 0,
        "stall_tolerance_us": 6_656_667, "work_deadline_us": 9_790_000, "takeover_us": 10_020_011,
        "renewals_per_hour": 1_081,
    });
    assert_eq!(Value::from(got), want);
}

/// The figures promise no more than the exact ones: what a holder has is rounded down, what it waits for up.
#[test]
fn a_person_reads_a_table() {
    let ran = typed("fencegate plan --ttl 10s --drift 500ppm --drift 500ppm --rtt 5ms --work 200ms");
    let table = "\
safe: the lease holds for 9.99 s after the request was sent
  window          9.99 s       over when this much has passed
  margin          10 ms        off a TTL of 10 s for a drift of 1000 ppm
  heartbeat       3.328 s      between renewals: 1081 an hour, 3 in the window
  cancel after    3.333 s      without an answer: the first missing one trips it
  stall           6.656 s      a shorter one, just before a renewal, keeps the lease
  work deadline   9.79 s       an action must begin before this
  takeover        ≤ 10.021 s   until the next holder, when this one dies
";
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, table, ""));
}

#[test]
fn a_no_is_an_answer_and_says_what_to_change() {
    let line = "fencegate window --ttl 100ms --drift 0ppb --rtt 100ms --start grant";
    let ran = typed(line);
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    assert!(ran.out.starts_with("not safe: nothing is left of a TTL of 100 ms\n"), "{}", ran.out);
    assert!(ran.out.contains("--start send"), "{}", ran.out);
    assert!(ran.out.contains("a TTL of at least 100.001 ms"), "{}", ran.out);

    let (status, got) = answer(line);
    assert_eq!((status, &got["safe"], &got["window_us"]), (1, &json!(false), &json!(0)));
    assert_eq!(answer(&line.replace("--ttl 100ms", "--ttl 100.001ms")).0, 0, "as it said");
    assert_eq!(answer(&line.replace("grant", "send")).0, 0, "as it said");
}

#[test]
fn fewer_than_three_heartbeats_are_said_in_words_and_are_no_no() {
    let ran = typed("fencegate plan --ttl 9s --drift 1000ppm --rtt 10ms --attempts 2");
    assert_eq!(ran.status, 0);
    assert!(ran.out.contains("the schedule is cut to what cancellation allows"), "{}", ran.out);
}

#[test]
fn heartbeats_that_cannot_be_kept_up_are_said_in_words_and_are_no_no() {
    let ran = typed("fencegate plan --ttl 900ms --drift 0ppb --rtt 300ms");
    assert_eq!(ran.status, 0);
    assert!(ran.out.contains("the heartbeats cannot be kept up"), "{}", ran.out);
    assert!(ran.out.contains("a TTL of at least 900.003 ms"), "{}", ran.out);
    let (_, got) = answer("fencegate plan --ttl 900.003ms --drift 0ppb --rtt 300ms");
    assert_eq!(got["sustainable"], true, "as it said");
}

#[test]
fn work_and_stalls_that_do_not_fit_are_said_in_words_and_are_no_no() {
    let ran = typed("fencegate plan --ttl 10s --drift 0ppb --work 1h --pause 8s");
    assert_eq!(ran.status, 0);
    assert!(ran.out.contains("an action of 1 h (--work) does not fit"), "{}", ran.out);
    assert!(ran.out.contains("a stall of 8 s (--pause) can lose the lease"), "{}", ran.out);
}

#[test]
fn what_lies_between_two_microseconds_goes_to_the_safe_side() {
    let line = "--ttl 10000.9us --drift 0.5ppb --rtt 1ns --clock-offset 1ns";
    let (_, got) = answer(&format!("fencegate window {line}"));
    assert_eq!(got["ttl_us"], 10_000, "down");
    assert_eq!([&got["drift_ppb"], &got["rtt_us"], &got["clock_offset_us"]], [1, 1, 1], "up");
    let (_, got) = answer(&format!("fencegate plan {line} --work 1.5us --pause 1001ns --poll 0.0000001us"));
    assert_eq!([&got["work_us"], &got["pause_us"], &got["poll_us"]], [2, 2, 1], "up");
}

#[test]
fn integers_are_written_in_full() {
    let (_, got) = answer("fencegate window --ttl 9223372036854775807us --drift 0ppb --rtt 18446744073709551615us");
    assert_eq!(got["window_us"], i64::MAX);
    assert_eq!(got["rtt_us"], u64::MAX);
}

#[test]
fn wrong_input_is_one_line_that_names_the_field() {
    for (line, field) in [
        ("window --ttl 0s --drift 1ppm", "ttl_us"),
        ("window --ttl 999ns --drift 1ppm", "ttl_us"),
        ("plan --ttl 2us --drift 1ppm", "ttl_us"),
        ("plan --ttl 5 --drift 1ppm", "ttl_us"),
        ("plan --ttl 0 --drift 1ppm", "ttl_us"),
        ("plan --ttl -5s --drift 1ppm", "ttl_us"),
        ("plan --ttl= --drift 1ppm", "ttl_us"),
        ("plan --ttl --drift 1ppm", "ttl_us"),
        ("plan --ttl", "ttl_us"),
        ("plan --ttl 1s --ttl 2s --drift 1ppm", "ttl_us"),
        ("plan --ttl 18446744073709551616us --drift 1ppm", "ttl_us"),
        ("plan --ttl 9223372036854775808us --drift 0ppb", "ttl_us"),
        ("plan --ttl 9223372036854775807us --drift 1ppb", "ttl_us"),
        ("plan --drift 1ppm", "ttl_us"),
        ("plan --ttl 1s", "drift_ppb"),
        ("plan --ttl 1s --drift 100%", "drift_ppb"),
        ("plan --ttl 1s --drift 50% --drift 50%", "drift_ppb"),
        ("plan --ttl 1s --drift 18446744073709551615ppb --drift 1ppb", "drift_ppb"),
        ("plan --ttl 1s --drift 99999999999999999999ppb", "drift_ppb"),
        ("plan --ttl 1s --drift 0.001", "drift_ppb"),
        ("plan --ttl 1s --drift -1ppm", "drift_ppb"),
        ("plan --ttl 1s --drift 1ppm --rtt 1", "rtt_us"),
        ("plan --ttl 1s --drift 1ppm --clock-offset 1min", "clock_offset_us"),
        ("plan --ttl 1s --drift 1ppm --start later", "start"),
        ("plan --ttl 1s --drift 1ppm --attempts 1", "attempts"),
        ("plan --ttl 1s --drift 1ppm --attempts -1", "attempts"),
        ("plan --ttl 1s --drift 1ppm --attempts 18446744073709551616", "attempts"),
        ("plan --ttl 1s --drift 1ppm --work 1e3s", "work_us"),
        ("plan --ttl 1s --drift 1ppm --pause 1s1m", "pause_us"),
        ("plan --ttl 1s --drift 1ppm --poll 1.s", "poll_us"),
        ("plan --ttl 1s --drift 1ppm --json=1", "--json"),
        ("window --ttl 1s --drift 1ppm --attempts 3", "--attempts"),
        ("plan --ttl 1s --drift 1ppm --tll 1s", "--tll"),
        ("plan --ttl 1s --drift 1ppm 1s", "`1s`"),
        ("plna", "did you mean `plan`?"),
        ("", "fencegate --help"),
    ] {
        refused(&format!("fencegate {line}"), field);
        refused(&format!("fencegate {line} --json"), if line.is_empty() { "--json" } else { field });
    }
}

#[test]
fn what_is_quoted_cannot_break_the_line_or_steer_the_terminal() {
    let ran = run(&["plan", "--drift", "1ppm", "--ttl", "1s\n\u{1b}[2J"]);
    refusal("a newline", &ran, "ttl_us");
    assert!(!ran.err.contains('\u{1b}'));
    refusal("a long value", &run(&["plan", "--drift", "1ppm", "--ttl", &"9".repeat(100_000)]), "ttl_us");
}

#[cfg(unix)]
#[test]
fn what_is_not_unicode_is_wrong_input() {
    use std::os::unix::ffi::OsStrExt;
    let mut plan = command(&["plan", "--drift", "1ppm", "--ttl"]);
    plan.arg(std::ffi::OsStr::from_bytes(b"1\xff"));
    refusal("not Unicode", &plan.output().expect("the binary runs").into(), "--ttl");
}

#[test]
fn help_and_version_are_answers() {
    for (line, words) in [
        ("fencegate --help", "Exit status"),
        ("fencegate help plan", "fencegate plan --ttl"),
        ("fencegate plan --help", "fencegate plan --ttl"),
        ("fencegate window -h", "fencegate window --ttl"),
        ("fencegate --version", env!("CARGO_PKG_VERSION")),
    ] {
        let ran = typed(line);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}");
        assert!(ran.out.contains(words), "{line}: {}", ran.out);
    }
}

#[test]
fn a_reader_that_has_gone_away_changes_nothing() {
    for line in ["--help", "window --ttl 1s --drift 1ppm", "window --ttl 1s --drift 1ppm --json"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = command(&line.split_whitespace().collect::<Vec<_>>());
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let ran = Ran::from(child.wait_with_output().expect("it ends"));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}");
    }
}
