//! The core on this machine.

use super::table;
use crate::step::Step;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of the long log, and of the short one beside which its memory is seen to be the same.
const LINES: [u32; 2] = [100_000, 10_000_000];
/// Resources that a log is about.
const RESOURCES: u32 = 1_000;

/// Nanoseconds a decision.
pub(super) fn decisions(root: &Path) -> Result<String> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["bench", "--package", "fencegate", "--features", "heapless", "--bench", "decision"]);
    // As a server would be compiled: what ships of ours is compiled for size.
    cargo.args(["--config", "profile.bench.opt-level=3"]);
    let said = Step::new("decisions on this machine", cargo).output()?;
    let rows = said.lines().filter_map(|line| line.split_once('\t'));
    let rows: Vec<_> = rows.map(|(name, ns)| [name.to_owned(), ns.to_owned()]).collect();
    ensure!(!rows.is_empty(), "the benchmark said nothing: {said}");
    Ok(table(["on this machine", "ns a call"], rows))
}

/// Lines a second that `fencegate audit` reads, and the most memory that it takes.
pub(super) fn audit(root: &Path) -> Result<String> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["build", "--release", "--package", "fencegate-host", "--bin", "fencegate"]);
    Step::new("building the command as it ships", cargo).run()?;
    let target = workspace::target_dir(root)?;
    let log = target.join("bench-audit.jsonl");
    let mut rows = Vec::new();
    for lines in LINES {
        write_log(&log, lines).with_context(|| format!("writing {}", log.display()))?;
        let mut command = Command::new(target.join("release/fencegate"));
        command.args(["audit", "--json"]).arg(&log).stdout(Stdio::null());
        let since = Instant::now();
        let mut child = command.spawn().context("starting `fencegate audit`")?;
        let peak = peak_memory(&mut child)?;
        let took = since.elapsed();
        // Some of the writes are stale: exit status 1 is what is right.
        ensure!(child.wait()?.code() == Some(1), "`fencegate audit` did not read the log");
        let a_second = f64::from(lines) / took.as_secs_f64();
        rows.push([
            lines.to_string(),
            format!("{:.1} s", took.as_secs_f64()),
            format!("{a_second:.0}"),
            peak.map_or_else(|| "unknown".to_owned(), |kib| format!("{kib} KiB")),
        ]);
    }
    let _ = fs::remove_file(&log);
    Ok(table(["lines of `fencegate audit --json`", "time", "lines a second", "most memory"], rows))
}

/// A log of writes to a thousand resources, of which one in eleven is stale.
fn write_log(path: &Path, lines: u32) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for line in 0..lines {
        let (resource, round) = (line % RESOURCES, line / RESOURCES);
        // Eleven and a thousand have no common factor: each resource gets its share.
        let token = if line % 11 == 10 { 1 } else { round + 2 };
        let holder = if token % 2 == 0 { "press-a#9f3c" } else { "press-b#17aa" };
        writeln!(file, r#"{{"resource":"row/{resource}","holder":"{holder}","token":{token},"seq":{round}}}"#)?;
    }
    file.flush()
}

/// The most memory that a process has had, in KiB, watched until it ends; `None` where the system does not tell.
fn peak_memory(child: &mut Child) -> Result<Option<u64>> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    while child.try_wait()?.is_none() {
        let now = fs::read_to_string(&status).ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        peak = peak.max(now);
        thread::sleep(Duration::from_millis(2));
    }
    Ok(peak)
}
