//! Running other programs, one named step at a time.
//!
//! A step says what it is, how long it took, and on failure what to do. On a terminal a captured step is a spinner with
//! its last line of output; in a pipe it is one plain line. All of that goes to standard error, so that standard
//! output stays a command's own.

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{error, fmt, thread};

/// How many of the last lines of output a failed step shows.
const TAIL: usize = 100;

/// With what libtest and `node --test` begin to tell of failures.
const FAILURES: [&str; 2] = ["failures:", "✖ failing tests:"];

/// With what a test begins to say that this machine lacks something for it.
const NOT_TESTED: [&str; 2] = ["not tested: ", "not tested, "];

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// A program to run, what to call it, and what to do if it fails.
///
/// ```no_run
/// # fn main() -> anyhow::Result<()> {
/// use xtask::{step::Step, workspace};
///
/// let mut command = workspace::cargo(workspace::root());
/// command.args(["build", "--package", "fencegate-host"]);
/// Step::new("the fencegate command", command).run()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Step {
    name: String,
    command: Command,
    advice: Option<String>,
}

/// A step that did not succeed: one sentence for a person, and the end of what the program wrote.
#[derive(Debug)]
pub struct Failed {
    sentence: String,
    tail: Vec<String>,
}

/// Tests counted in the output of a test runner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// What the runner told of those, line by line.
    pub reasons: Vec<String>,
    /// Tests that passed without a look, since this machine lacks something: which, and the line in which they say so.
    pub not_tested: Vec<String>,
    telling: bool,
    /// Whose output is being shown.
    test: String,
}

/// Which of a program's two outputs a line came from.
enum Line {
    Out(String),
    Err(String),
}

impl Step {
    /// A step called `name`, in the words of a progress line ("building the firmware for mps2").
    pub fn new(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command, advice: None }
    }

    /// What to do if this fails, as the end of the sentence "… failed (exit status: 1): "; without it, the command to
    /// repeat.
    #[must_use]
    pub fn advice(mut self, what_to_do: impl Into<String>) -> Self {
        self.advice = Some(what_to_do.into());
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs with captured output and shows progress.
    pub fn run(self) -> Result<()> {
        self.output().map(drop)
    }

    /// Runs with captured output, shows progress, and returns standard output.
    pub fn output(mut self) -> Result<String> {
        let progress = Progress::start(&self.name);
        let result = self.capture(&progress);
        progress.end(result.is_ok());
        result
    }

    /// Runs a test runner: lets its output through, a line at a time to `hear` too, and adds the tests that it reports to
    /// `tally`.
    pub fn tally(mut self, tally: &mut Tally, mut hear: impl FnMut(&str)) -> Result<()> {
        self.announce();
        self.command.stdout(Stdio::piped());
        let mut child = self.spawn()?;
        let mut here = io::stdout();
        if let Some(stdout) = child.stdout.take() {
            each_line(stdout, |line| {
                tally.count(&line);
                hear(&line);
                // Whoever closed our standard output still gets the exit status.
                let _ = writeln!(here, "{line}");
            });
        }
        self.finish(child, Vec::new())
    }

    fn announce(&self) {
        anstream::eprintln!("{DIM}▸{DIM:#} {}", self.name);
    }

    fn capture(&mut self, progress: &Progress) -> Result<String> {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn()?;
        let (lines, seen) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            let lines = lines.clone();
            thread::spawn(move || each_line(stdout, |line| drop(lines.send(Line::Out(line)))));
        }
        if let Some(stderr) = child.stderr.take() {
            thread::spawn(move || each_line(stderr, |line| drop(lines.send(Line::Err(line)))));
        }
        let mut output = String::new();
        let mut tail = VecDeque::new();
        for line in seen {
            let (Line::Out(text) | Line::Err(text)) = &line;
            progress.says(text);
            if tail.len() == TAIL {
                tail.pop_front();
            }
            tail.push_back(text.clone());
            if let Line::Out(text) = line {
                output.push_str(&text);
                output.push('\n');
            }
        }
        self.finish(child, tail.into())?;
        Ok(output)
    }

    fn spawn(&mut self) -> Result<Child> {
        self.command.spawn().map_err(|error| {
            let program = program(&self.command);
            let sentence = match (error.kind(), &self.advice) {
                (io::ErrorKind::NotFound, None) => {
                    format!("{}: `{program}` was not found: install it, or put it on PATH", self.name)
                }
                (_, Some(advice)) => format!("{}: `{program}` could not be started ({error}): {advice}", self.name),
                (_, None) => format!("{}: `{program}` could not be started ({error})", self.name),
            };
            Failed { sentence, tail: Vec::new() }.into()
        })
    }

    fn finish(&self, mut child: Child, tail: Vec<String>) -> Result<()> {
        let status = child.wait().with_context(|| format!("waiting for step “{}”", self.name))?;
        if status.success() { Ok(()) } else { Err(self.failed(status, tail).into()) }
    }

    fn failed(&self, status: ExitStatus, tail: Vec<String>) -> Failed {
        let name = &self.name;
        let sentence = match &self.advice {
            Some(advice) => format!("{name} failed ({status}): {advice}"),
            None => format!("{name} failed ({status}): mend it and repeat with `{}`", shown(&self.command)),
        };
        Failed { sentence, tail }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl error::Error for Failed {}

impl Tally {
    /// A check that is one test.
    pub fn of_one(passed: bool) -> Self {
        Self { passed: passed.into(), failed: (!passed).into(), ..Self::default() }
    }

    /// Adds what `line` reports, if it is a summary of libtest or of `node --test`, what they tell of failures, and what a
    /// test says that could not be tested (libtest: with `--show-output`).
    fn count(&mut self, line: &str) {
        let whole = anstream::adapter::strip_str(line).to_string();
        let line = whole.trim();
        // libtest's goes on to its summary, node's to the end.
        self.telling = !line.starts_with("test result: ") && (self.telling || FAILURES.contains(&line));
        if self.telling && !line.is_empty() && !FAILURES.contains(&line) {
            self.reasons.push(whole.trim_end().to_owned());
        }
        if let Some(test) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")) {
            test.clone_into(&mut self.test);
        } else if NOT_TESTED.iter().any(|begin| line.starts_with(begin)) {
            self.not_tested.push(format!("{}: {line}", self.test));
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            // "ok. 27 passed; 0 failed; 0 ignored; …"
            for part in counts.split(['.', ';']) {
                match part.trim().split_once(' ') {
                    Some((n, "passed")) => self.passed += n.parse().unwrap_or(0),
                    Some((n, "failed")) => self.failed += n.parse().unwrap_or(0),
                    _ => {}
                }
            }
        } else if let Some(count) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
            match count.split_once(' ') {
                Some(("pass", n)) => self.passed += n.parse().unwrap_or(0),
                Some(("fail" | "cancelled", n)) => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

/// Goes on as another program, in its place where the system can do that; returns only if that fails.
pub fn go_on_as(mut command: Command) -> Result<()> {
    #[cfg(unix)]
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    let error = match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    };
    Err(error).with_context(|| format!("starting `{}`", shown(&command)))
}

/// Prints what a person should know and nothing fails of.
pub fn warn(sentence: &str) {
    anstream::eprintln!("{BAD}warning:{BAD:#} {sentence}");
}

/// Prints why something failed: the end of the failed program's output, then one sentence.
pub fn report(error: &anyhow::Error) {
    if let Some(failed) = error.chain().find_map(|cause| cause.downcast_ref::<Failed>()) {
        for line in &failed.tail {
            anstream::eprintln!("  {DIM}│{DIM:#} {line}");
        }
    }
    anstream::eprintln!("{BAD}error:{BAD:#} {error:#}");
}

/// A duration as a person says it: `0.4 s`, `12 s`, `3 min 05 s`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// The progress of one captured step.
struct Progress {
    name: String,
    since: Instant,
    /// Only on a terminal.
    bar: Option<ProgressBar>,
}

impl Progress {
    fn start(name: &str) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner().with_prefix(name.to_owned());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {wide_msg:.dim}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        if bar.is_none() {
            // The name is there while the step runs, so that a log shows what it is waiting for.
            anstream::eprint!("{name} … ");
        }
        Self { name: name.to_owned(), since: Instant::now(), bar }
    }

    fn says(&self, line: &str) {
        if let Some(bar) = &self.bar {
            let plain = anstream::adapter::strip_str(line).to_string();
            bar.set_message(plain.replace(char::is_control, " "));
        }
    }

    fn end(self, ok: bool) {
        let took = human(self.since.elapsed());
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
            let (mark, style) = if ok { ('✓', GOOD) } else { ('✗', BAD) };
            anstream::eprintln!("{style}{mark}{style:#} {} {DIM}({took}){DIM:#}", self.name);
        } else {
            anstream::eprintln!("{}({took})", if ok { "" } else { "failed " });
        }
    }
}

/// Calls `take` for each line of `from`, whatever its bytes.
fn each_line(from: impl Read, mut take: impl FnMut(String)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(from.read_until(b'\n', &mut line), Ok(1..)) {
        take(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned());
        line.clear();
    }
}

/// A program's name without its folder.
fn program(command: &Command) -> String {
    let path = std::path::Path::new(command.get_program());
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    let folder = command.get_current_dir().map(|dir| {
        let inside = dir.strip_prefix(crate::workspace::root()).unwrap_or(dir);
        inside.display().to_string()
    });
    let environment = command.get_envs().filter_map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value?.to_string_lossy());
        (!name.starts_with("CARGO_T")).then(|| format!("{name}={}", quoted(&value)))
    });
    let words = command.get_args().map(|word| quoted(&word.to_string_lossy()));
    let line: Vec<_> = environment.chain([program(command)]).chain(words).collect();
    match folder {
        Some(folder) if !folder.is_empty() => format!("cd {} && {}", quoted(&folder), line.join(" ")),
        _ => line.join(" "),
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn standard_output_comes_back_and_standard_error_does_not() {
        let out = Step::new("two lines", shell("echo one; echo noise >&2; printf two")).output().unwrap();
        assert_eq!(out, "one\ntwo\n");
    }

    #[test]
    fn a_failure_is_one_sentence_with_the_command_and_keeps_the_end_of_the_output() {
        let error = Step::new("counting", shell("seq 150; exit 3")).run().unwrap_err();
        assert_eq!(
            error.to_string(),
            "counting failed (exit status: 3): mend it and repeat with `sh -c 'seq 150; exit 3'`"
        );
        let failed = error.downcast_ref::<Failed>().unwrap();
        assert_eq!((failed.tail.len(), failed.tail[0].as_str(), failed.tail[99].as_str()), (100, "51", "150"));
    }

    #[test]
    fn advice_takes_the_place_of_the_command() {
        let error = Step::new("counting", shell("exit 1")).advice("count again").run().unwrap_err();
        assert_eq!(error.to_string(), "counting failed (exit status: 1): count again");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Step::new("nothing", Command::new("fencegate-no-such-program")).run().unwrap_err();
        assert!(error.to_string().contains("`fencegate-no-such-program` was not found"), "{error}");
    }

    #[test]
    fn summaries_of_both_test_runners_are_counted() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 27 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: \x1b[31mFAILED\x1b[0m. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "# pass 4",
            "ℹ pass 5",
            "ℹ fail 1",
            "# a remark",
            "test step::tests::x ... ok",
        ] {
            tally.count(line);
        }
        assert_eq!((tally.passed, tally.failed), (37, 3));
    }

    #[test]
    fn what_both_test_runners_tell_of_failures_is_kept() {
        let told = |lines: &[&str]| {
            let mut tally = Tally::default();
            for line in lines {
                tally.count(line);
            }
            tally.reasons
        };
        let libtest = [
            "test one ... FAILED",
            "failures:",
            "",
            "---- one stdout ----",
            "  left: 1",
            "failures:",
            "    one",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored",
            "test two ... ok",
        ];
        assert_eq!(told(&libtest), ["---- one stdout ----", "  left: 1", "    one"]);
        assert_eq!(
            told(&["✖ one (3ms)", "ℹ fail 1", "✖ failing tests:", "", "✖ one (3ms)", "  1 !== 2"]),
            ["✖ one (3ms)", "  1 !== 2"]
        );
    }

    #[test]
    fn what_says_that_it_was_not_tested_is_kept_with_its_name() {
        let mut tally = Tally::default();
        for line in [
            "test net::cut_off ... ok",
            "successes:",
            "---- net::cut_off stdout ----",
            "not tested: only root makes networks",
            "---- gcs stdout ----",
            "a seed, and nothing that was not tested",
            "not tested, since there is no gcloud",
            "not tested here: what a ledger says of it",
            "test result: ok. 2 passed; 0 failed; 0 ignored",
        ] {
            tally.count(line);
        }
        let not_tested =
            ["net::cut_off: not tested: only root makes networks", "gcs: not tested, since there is no gcloud"];
        assert_eq!(tally.not_tested, not_tested);
        assert_eq!((tally.passed, tally.failed, tally.reasons.len()), (2, 0, 0), "they are no failures");
    }

    #[test]
    fn durations_read_well() {
        let human = |ms| super::human(Duration::from_millis(ms));
        assert_eq!([human(432), human(12_900), human(185_000)], ["0.4 s", "12 s", "3 min 05 s"]);
    }
}
