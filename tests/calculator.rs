//! The shared cases through the Rust functions and on an emulated microcontroller, from one source as code for the Cortex-M3
//! and for the Cortex-M0+ (of which that board has the instructions, and more): the same integers as the command and the
//! module give, which test themselves on the same file.

use fencegate::{Drift, Duration, OutOfRange, PlanInput, Start, Window};
use fencegate_tests::cases;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// A `plan` case.
struct Case {
    name: String,
    input: PlanInput,
    /// The outputs, or the field that is to blame.
    expect: Result<Map<String, Value>, String>,
}

fn plans() -> Vec<Case> {
    cases()
        .iter()
        .filter(|case| case["call"] == "plan")
        .map(|case| {
            let number = |field: &str, default| case["input"].get(field).map_or(default, |n| n.as_u64().unwrap());
            let us = |field| Duration::from_micros(number(field, 0));
            let input = PlanInput {
                ttl: us("ttl_us"),
                drift: Drift::from_ppb(number("drift_ppb", 0)),
                rtt: us("rtt_us"),
                start: if case["input"]["start"] == "grant" { Start::Grant } else { Start::Send },
                clock_offset: us("clock_offset_us"),
                attempts: number("attempts", 3),
                work: us("work_us"),
                pause: us("pause_us"),
                poll: us("poll_us"),
            };
            let expect = match case.get("expect_error") {
                Some(field) => Err(field.as_str().unwrap().to_owned()),
                None => Ok(case["expect"].as_object().unwrap().clone()),
            };
            Case { name: case["name"].to_string(), input, expect }
        })
        .collect()
}

fn outputs<T: serde::Serialize>(answer: Result<T, OutOfRange>) -> Result<Map<String, Value>, String> {
    let answer = answer.map_err(|error| error.field().to_owned())?;
    Ok(json!(answer).as_object().unwrap().clone())
}

/// The three outputs that `window` shares with `plan`.
fn of_window(plan: &Map<String, Value>) -> Map<String, Value> {
    plan.iter().filter(|(name, _)| ["margin_us", "window_us", "safe"].contains(&name.as_str())).map(clone).collect()
}

fn clone((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

#[test]
fn the_rust_functions() {
    let cases = plans();
    assert!(cases.len() >= 20, "{} cases", cases.len());
    for Case { name, input, expect } in cases {
        assert_eq!(outputs(input.plan()), expect, "{name}");
        if let Ok(expect) = expect {
            assert_eq!(outputs(input.lease().window()), Ok(of_window(&expect)), "window of {name}");
        }
    }
}

/// Asks the image `tests/image`, as code for `target`, in QEMU: a line a question.
fn on_the_microcontroller(target: &str, questions: &[String]) -> Vec<String> {
    let root = xtask::workspace::root();
    let mut cargo = xtask::workspace::cargo(&root.join("tests/image"));
    cargo.args(["build", "--release", "--quiet", "--target", target]);
    assert!(cargo.status().unwrap().success());
    let elf = xtask::workspace::target_dir(root).unwrap().join(target).join("release/fencegate-image");
    let mut qemu = Command::new("qemu-system-arm")
        .args(["-machine", "mps2-an385", "-display", "none", "-monitor", "none", "-serial", "none"])
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(elf)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    qemu.stdin.take().unwrap().write_all((questions.join("\n") + "\n").as_bytes()).unwrap();
    let output = qemu.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
}

fn question(call: &str, input: &PlanInput) -> String {
    let start = if input.start == Start::Grant { "grant" } else { "send" };
    let us = Duration::as_micros;
    let lease = format!("{call} {} {} {} {start}", us(input.ttl), input.drift.as_ppb(), us(input.rtt));
    let PlanInput { clock_offset, attempts, work, pause, poll, .. } = *input;
    match call {
        "window" => format!("{lease} {}", us(clock_offset)),
        _ => format!("{lease} {} {attempts} {} {} {}", us(clock_offset), us(work), us(pause), us(poll)),
    }
}

/// The answer's line: the figures in the contract's order, truth as 1 and 0.
fn answer(expect: &Result<Map<String, Value>, String>, fields: &[&str]) -> String {
    let figure = |value: &Value| value.as_bool().map_or_else(|| value.to_string(), |yes| u8::from(yes).to_string());
    match expect {
        Ok(outputs) => fields.iter().map(|field| figure(&outputs[*field])).collect::<Vec<_>>().join(" "),
        Err(field) => format!("error {field}"),
    }
}

const WINDOW: [&str; 3] = ["margin_us", "window_us", "safe"];
const PLAN: [&str; 12] = [
    "margin_us",
    "window_us",
    "safe",
    "heartbeat_us",
    "sustainable",
    "renewals_in_window",
    "cancel_after_us",
    "misses_before_cancel",
    "stall_tolerance_us",
    "work_deadline_us",
    "takeover_us",
    "renewals_per_hour",
];

#[test]
fn the_microcontroller() {
    let mut questions = vec!["plan 1 2 3".to_owned()];
    let mut answers = vec!["what?".to_owned()];
    for Case { input, expect, .. } in plans() {
        questions.push(question("plan", &input));
        answers.push(answer(&expect, &PLAN));
        let window: Result<Window, _> = input.lease().window();
        questions.push(question("window", &input));
        answers.push(answer(&outputs(window), &WINDOW));
    }
    for target in ["thumbv7m-none-eabi", "thumbv6m-none-eabi"] {
        let got = on_the_microcontroller(target, &questions);
        assert_eq!(got.len(), answers.len(), "{target}");
        for ((question, expected), got) in questions.iter().zip(&answers).zip(got) {
            assert_eq!(&got, expected, "{target}: {question}");
        }
    }
}
