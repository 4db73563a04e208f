//! The shared cases of `plan`, and `window` with them, through the Rust functions and on emulated microcontrollers, from one
//! source on the Cortex-M3 of an MPS2 and on the Cortex-M0+ of a Raspberry Pi Pico: the same integers as the command and the
//! module give, which test themselves on the same file.

use fencegate::{Drift, Duration, OutOfRange, PlanInput, Start, Window};
use fencegate_tests::cases;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use xtask::uf2;

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

/// The image `tests/image` for `target`.
fn image(target: &str, features: &str) -> PathBuf {
    let root = xtask::workspace::root();
    let mut cargo = xtask::workspace::cargo(&root.join("tests/image"));
    cargo.args(["build", "--release", "--quiet", "--target", target, "--features", features]);
    assert!(cargo.status().unwrap().success());
    xtask::workspace::target_dir(root).unwrap().join(target).join("release/fencegate-image")
}

/// Asks a Cortex-M3 in QEMU: a line a question.
fn on_the_m3(questions: &[String]) -> Vec<String> {
    let mut qemu = Command::new("qemu-system-arm");
    qemu.args(["-machine", "mps2-an385", "-display", "none", "-monitor", "none", "-serial", "none"])
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(image("thumbv7m-none-eabi", ""));
    ask(&mut qemu, questions)
}

/// Asks a Cortex-M0+ in rp2040js, over its UART.
fn on_the_m0_plus(questions: &[String]) -> Vec<String> {
    let elf = std::fs::read(image("thumbv6m-none-eabi", "pico")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image.uf2");
    std::fs::write(&image, uf2::of_elf(&elf, uf2::RP2040).unwrap()).unwrap();
    ask(Command::new("node").arg(xtask::workspace::root().join("tests/image/pico.mjs")).arg(image), questions)
}

/// Asks an emulator on its standard input.
fn ask(emulator: &mut Command, questions: &[String]) -> Vec<String> {
    let mut emulator = emulator.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    emulator.stdin.take().unwrap().write_all((questions.join("\n") + "\n").as_bytes()).unwrap();
    let output = emulator.wait_with_output().unwrap();
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

/// The shared cases, as questions to a microcontroller with the answers that are expected.
fn asked_and_expected() -> (Vec<String>, Vec<String>) {
    let mut questions = vec!["plan 1 2 3".to_owned()];
    let mut answers = vec!["what?".to_owned()];
    for Case { input, expect, .. } in plans() {
        questions.push(question("plan", &input));
        answers.push(answer(&expect, &PLAN));
        let window: Result<Window, _> = input.lease().window();
        questions.push(question("window", &input));
        answers.push(answer(&outputs(window), &WINDOW));
    }
    (questions, answers)
}

/// What one microcontroller says to all of them.
fn gives_the_same_integers(on_the_microcontroller: fn(&[String]) -> Vec<String>) {
    let (questions, answers) = asked_and_expected();
    let got = on_the_microcontroller(&questions);
    assert_eq!(got.len(), answers.len());
    for ((question, expected), got) in questions.iter().zip(&answers).zip(got) {
        assert_eq!(&got, expected, "{question}");
    }
}

#[test]
fn the_cortex_m3() {
    gives_the_same_integers(on_the_m3);
}

#[test]
fn the_cortex_m0_plus() {
    gives_the_same_integers(on_the_m0_plus);
}
