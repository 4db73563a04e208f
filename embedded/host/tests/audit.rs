//! The audit of a log in a shell.

mod shell;

use serde_json::{Value, json};
use shell::{Ran, command};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

/// Audits a log on standard input, written while the answer is read.
fn audit(log: &str, flags: &[&str]) -> Ran {
    let mut child = command(&[&["audit", "-"], flags].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut input = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // What is not read any more, because a line was wrong, is no failure.
        scope.spawn(move || input.write_all(log.as_bytes()));
        child.wait_with_output().expect("it ends").into()
    })
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The verdicts of a log, without the last object.
fn verdicts(log: &str, flags: &[&str]) -> Vec<String> {
    let ran = audit(log, &[flags, &["--json"]].concat());
    assert_eq!(ran.err, "");
    let objects = lines(&ran.out);
    let (counts, objects) = objects.split_last().expect("at least the counts");
    assert_eq!(counts["lines"], objects.len());
    assert_eq!(ran.status, i32::from(counts["commit"] != counts["lines"]));
    objects.iter().map(|object| object["verdict"].as_str().expect("a word").to_owned()).collect()
}

const STORY: &str = r#"{"resource":"valve","holder":"a","token":33}
{"resource":"valve","holder":"b","token":34}
{"resource":"valve","holder":"a","token":33}
{"resource":"valve","holder":"a","token":34}
{"resource":"pump","holder":"a","token":33,"seq":1}
{"resource":"pump","holder":"a","token":33,"seq":1}
{"resource":"pump","holder":"a","token":1,"epoch":1,"time":"2026-11-29T17:00:00Z"}
"#;

#[test]
fn a_story_in_json() {
    let ran = audit(STORY, &["--json"]);
    let valve = json!({"epoch": 0, "token": 34, "holder": "b"});
    let with = |mut object: Value, more: &Value| {
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let want = [
        json!({"line": 1, "verdict": "commit", "resource": "valve"}),
        json!({"line": 2, "verdict": "commit", "resource": "valve"}),
        with(json!({"line": 3, "verdict": "stale", "resource": "valve"}), &valve),
        with(json!({"line": 4, "verdict": "wrong_holder", "resource": "valve"}), &valve),
        json!({"line": 5, "verdict": "commit", "resource": "pump"}),
        json!({"line": 6, "verdict": "duplicate", "resource": "pump", "epoch": 0, "token": 33, "holder": "a", "seq": 1}),
        json!({"line": 7, "verdict": "commit", "resource": "pump"}),
        json!({"lines": 7, "commit": 4, "stale": 1, "wrong_holder": 1, "duplicate": 1}),
    ];
    assert_eq!((ran.status, ran.err.as_str(), lines(&ran.out)), (1, "", want.to_vec()));
}

#[test]
fn a_story_for_a_person() {
    let ran = audit(STORY, &[]);
    let story = r#"line 3: stale: "valve": epoch 0 token 33 of "a"; the fence has seen epoch 0 token 34 of "b"
line 4: wrong_holder: "valve": epoch 0 token 34 of "a"; the fence has seen epoch 0 token 34 of "b"
line 6: duplicate: "pump": epoch 0 token 33 of "a" seq 1; the fence has seen epoch 0 token 33 of "a" seq 1
not clean: the fence would have refused 3 of 7 writes
  commit         4   taken
  stale          1   under a stamp that another had passed
  wrong holder   1   under another holder's stamp
  duplicate      1   once more
"#;
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (1, story, ""));
    let clean = audit(STORY.lines().next().unwrap(), &[]);
    assert_eq!(clean.status, 0, "without a newline at the end");
    assert!(clean.out.starts_with("clean: the fence would have taken all of 1 writes\n"), "{}", clean.out);
}

#[test]
fn policies() {
    let log = r#"{"resource":"r","holder":"a","token":1}
{"resource":"r","holder":"a","token":1}
"#;
    assert_eq!(verdicts(log, &[]), ["commit", "commit"]);
    assert_eq!(verdicts(log, &["--policy", "at-least"]), ["commit", "commit"]);
    assert_eq!(verdicts(log, &["--policy", "greater"]), ["commit", "stale"]);
    let ran = audit("", &["--policy", "most"]);
    assert_eq!((ran.status, ran.err.contains("policy")), (2, true), "{}", ran.err);
}

#[test]
fn stamps_of_any_height() {
    let log = r#"{"resource":"r","holder":"a","token":18446744073709551615,"epoch":4294967295}
{"resource":"r","holder":"a","token":18446744073709551615,"epoch":4294967294}
{"resource":"","holder":"","token":1,"seq":18446744073709551615}
"#;
    assert_eq!(verdicts(log, &[]), ["commit", "stale", "commit"]);
}

#[test]
fn an_empty_log_is_clean() {
    let ran = audit("", &["--json"]);
    let counts = json!({"lines": 0, "commit": 0, "stale": 0, "wrong_holder": 0, "duplicate": 0});
    assert_eq!((ran.status, lines(&ran.out)), (0, vec![counts]));
}

#[test]
fn a_line_that_cannot_be_read_ends_the_run_and_is_named() {
    let good = r#"{"resource":"r","holder":"a","token":1}"#;
    for bad in [
        "",
        "{",
        "[]",
        "null",
        r#"{"resource":"r","holder":"a"}"#,
        r#"{"resource":"r","token":1}"#,
        r#"{"holder":"a","token":1}"#,
        r#"{"resource":"r","holder":"a","token":0}"#,
        r#"{"resource":"r","holder":"a","token":-1}"#,
        r#"{"resource":"r","holder":"a","token":1.5}"#,
        r#"{"resource":"r","holder":"a","token":"1"}"#,
        r#"{"resource":"r","holder":"a","token":18446744073709551616}"#,
        r#"{"resource":"r","holder":"a","token":1,"epoch":4294967296}"#,
        r#"{"resource":"r","holder":"a","token":1,"epoch":-1}"#,
        r#"{"resource":"r","holder":"a","token":1,"seq":-1}"#,
        r#"{"resource":"r","holder":"a","token":1,"token":2}"#,
        r#"{"resource":"r","holder":null,"token":1}"#,
        r#"{"resource":"r","holder":"a","token":1} {}"#,
    ] {
        let log = format!("{good}\n{good}\n{bad}\n{good}\n");
        let ran = audit(&log, &["--json"]);
        assert_eq!(ran.status, 2, "{bad}");
        assert!(ran.err.starts_with("error: line 3: "), "{bad}: {}", ran.err);
        assert_eq!(ran.err.find('\n'), Some(ran.err.len() - 1), "one line: {}", ran.err);
        let verdicts: Vec<_> = lines(&ran.out).iter().map(|object| object["verdict"].clone()).collect();
        assert_eq!(verdicts, ["commit", "commit"], "those before it are printed: {bad}");
        let ran = audit(&log, &[]);
        assert!(
            ran.status == 2 && ran.out.contains("the 2 writes before") && !ran.out.contains("clean"),
            "{bad}: {}",
            ran.out
        );
    }
    let not_unicode = [&b"{\"resource\":\"r\",\"holder\":\"\xff\",\"token\":1}\n"[..]].concat();
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("writes.jsonl");
    std::fs::write(&file, not_unicode).expect("written");
    let ran: Ran = command(&["audit", file.to_str().unwrap()]).output().expect("the binary runs").into();
    assert_eq!((ran.status, ran.err.starts_with("error: line 1: ")), (2, true), "{}", ran.err);
}

#[test]
fn a_file_without_line_ends_does_not_fill_memory() {
    let ran = audit(&"x".repeat(3 << 20), &[]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("line 1: longer than 1048576 bytes"), "{}", ran.err);
    let long = format!(r#"{{"resource":"{}","holder":"a","token":1}}"#, "x".repeat((1 << 20) - 38));
    assert_eq!(long.len(), 1 << 20);
    assert_eq!(verdicts(&format!("{long}\n{long}\n"), &[]), ["commit", "commit"], "as long as a line may be");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    for file in ["/nowhere/writes.jsonl", "/"] {
        let ran: Ran = command(&["audit", file]).output().expect("the binary runs").into();
        assert_eq!((ran.status, ran.out.as_str()), (2, ""));
        assert!(ran.err.starts_with(&format!("error: file: `{file}`: ")), "{}", ran.err);
    }
}

#[test]
fn a_log_that_grows_is_answered_line_by_line() {
    let mut child = command(&["audit", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut log = child.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("a pipe"));
    for (line, write) in STORY.lines().enumerate() {
        writeln!(log, "{write}").expect("it listens");
        let mut answer = String::new();
        answers.read_line(&mut answer).expect("it answers");
        assert_eq!(serde_json::from_str::<Value>(&answer).expect("JSON")["line"], line + 1);
    }
    drop(log);
    let mut counts = String::new();
    answers.read_to_string(&mut counts).expect("it ends");
    assert!(counts.starts_with(r#"{"lines":7"#), "{counts}");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_reader_that_has_gone_away_ends_the_run() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut child = command(&["audit", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut log = child.stdin.take().expect("a pipe");
    // A log without an end: only the run can end it.
    while log.write_all(STORY.as_bytes()).is_ok() {}
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.status, ran.err.as_str()), (1, ""), "what was read has refusals in it");
}

#[test]
fn help_has_examples() {
    let ran: Ran = command(&["audit", "--help"]).output().expect("the binary runs").into();
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("fencegate audit writes.jsonl --policy at-least"), "{}", ran.out);
}
