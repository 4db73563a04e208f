//! Leases that are held: what one costs, renewals a second at etcd, and what `hold` adds to a command's start.

use super::table;
use crate::step::Step;
use crate::{setup, workspace};
use anyhow::{Context, Result, ensure};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How many leases one process holds.
const LEASES: [&str; 3] = ["1", "100", "10000"];
/// Starts of a command, of which the median is taken.
const STARTS: usize = 21;
/// Says when it is there, in nanoseconds of the wall clock.
const COMMAND: [&str; 2] = ["date", "+%s%N"];

pub(super) fn measure(root: &Path) -> Result<String> {
    setup::ensure(setup::COMMAND)?;
    setup::ensure(setup::SERVERS)?;
    let bench = |words: &[&str]| {
        let mut cargo = workspace::cargo(root);
        cargo.args(["bench", "--package", "fencegate-host", "--features", "etcd", "--bench", "leases"]);
        // As a server would be compiled: what ships of ours is compiled for size.
        cargo.args(["--config", "profile.bench.opt-level=3", "--config", "profile.bench.lto=false"]);
        cargo.arg("--").args(words);
        Step::new(format!("leases {}", words.join(" ")), cargo).output()
    };
    let mut held = Vec::new();
    for leases in LEASES {
        held.extend(cells::<4>(&bench(&["held", leases])?)?);
    }
    let etcd = Etcd::start()?;
    let renewals = cells::<3>(&bench(&["etcd", &etcd.address])?)?;
    let starts = starts(root, &etcd)?;
    Ok([
        table(["leases in one process", "renewals in 12 s", "µs of CPU each", "bytes of memory a lease"], held),
        table(["at once", "our renewals a second at etcd", "its client's keep-alives a second"], renewals),
        table(["from the start to the command's first word, etcd on this machine", "median"], starts),
    ]
    .join("\n"))
}

/// The lines of numbers with tabs between them.
fn cells<const N: usize>(said: &str) -> Result<Vec<[String; N]>> {
    let rows: Vec<_> = said
        .lines()
        .filter_map(|line| <[String; N]>::try_from(line.split('\t').map(str::to_owned).collect::<Vec<_>>()).ok())
        .collect();
    ensure!(!rows.is_empty(), "the benchmark said nothing: {said}");
    Ok(rows)
}

/// How long until a command is there: by itself, under `etcdctl lock`, and under `hold`, one after the other each time.
fn starts(root: &Path, etcd: &Etcd) -> Result<Vec<[String; 2]>> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["build", "--release", "--package", "fencegate-host", "--features", "etcd", "--bin", "fencegate"]);
    cargo.args(["--config", "profile.release.lto=false"]);
    Step::new("building the command", cargo).run()?;
    let program = workspace::target_dir(root)?.join("release/fencegate");
    let etcdctl = || {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", &etcd.address).args(["lock", "other"]);
        command
    };
    let hold = || {
        let mut command = Command::new(&program);
        command.args(["hold", "--coordinator", &format!("etcd://{}", etcd.address), "--lock", "press-7"]);
        command.args(["--ttl", "10s", "--drift", "500ppm", "--"]);
        command
    };
    let mut took: [Vec<u128>; 3] = Default::default();
    for _ in 0..STARTS {
        let mut alone = Command::new(COMMAND[0]);
        alone.args(&COMMAND[1..]);
        let (mut locked, mut leased) = (etcdctl(), hold());
        locked.args(COMMAND);
        leased.args(COMMAND);
        for (took, mut command) in took.iter_mut().zip([alone, locked, leased]) {
            took.push(start(&mut command)?);
        }
    }
    let names = ["by itself", "`etcdctl lock`", "`fencegate hold`"];
    let rows = names.into_iter().zip(took).map(|(name, mut took)| {
        took.sort_unstable();
        let micros = took.get(STARTS / 2).map_or(0, |ns| ns / 1_000);
        [name.to_owned(), format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100)]
    });
    Ok(rows.collect())
}

/// Nanoseconds until a command is there.
fn start(command: &mut Command) -> Result<u128> {
    let begun = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8(output.stdout)?;
    let there: u128 = said.trim().parse().with_context(|| format!("{command:?} said {said:?}"))?;
    there.checked_sub(begun).context("the wall clock was stepped")
}

/// A server of its own, without a disk to wait for.
struct Etcd {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Etcd {
    fn start() -> Result<Self> {
        let port = || anyhow::Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let (folder, address, peer) =
            (tempfile::tempdir()?, format!("127.0.0.1:{}", port()?), format!("127.0.0.1:{}", port()?));
        let (client, peer) = (format!("http://{address}"), format!("http://{peer}"));
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(folder.path())
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync", "--log-level", "error"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting etcd")?;
        let etcd = Self { child, address, _folder: folder };
        let begun = Instant::now();
        while TcpStream::connect(&etcd.address).is_err() {
            ensure!(begun.elapsed() < Duration::from_mins(1), "etcd opens no port");
            sleep(Duration::from_millis(50));
        }
        Ok(etcd)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
