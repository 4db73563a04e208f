//! The stage: the gate in its emulator behind a bridge, and the pin as the hardware shows it.

use crate::emulator::Sides;
use crate::gate::{Gate, Image, Powering, key_file};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How often the pins are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// L of the story's gate: its emulator runs on a host that is no real-time system.
const LATENESS: fencegate_host::fencegate::Duration = fencegate_host::fencegate::Duration::from_millis(150);

/// How long anything on the stage may take before the story has deviated.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A change of the output, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    /// Whether it is high.
    pub(super) high: bool,
    /// Since when.
    pub(super) since: Instant,
}

/// A gate under power, with a bridge in front.
pub(super) struct Powered {
    port: String,
    pin: watch::Receiver<Pin>,
    cut: oneshot::Sender<()>,
    board: JoinHandle<Result<()>>,
    bridge: JoinHandle<std::io::Result<()>>,
}

impl Powered {
    /// Boots the gate from its flash.
    pub(super) async fn boot(powering: &Powering<'_>) -> Result<Self> {
        let Gate { mut board, line, .. } = Gate::boot(powering, LATENESS, &Sides::default()).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = format!("tcp://{}", listener.local_addr()?);
        let bridge = tokio::spawn(fencegate_host::bridge::serve(listener, line));
        let (seen, pin) = watch::channel(Pin { high: board.pins().await? & 1 != 0, since: Instant::now() });
        let (cut, mut power) = oneshot::channel();
        let board = tokio::spawn(async move {
            while let Err(oneshot::error::TryRecvError::Empty) = power.try_recv() {
                let high = board.pins().await? & 1 != 0;
                seen.send_if_modified(|pin| {
                    let changed = pin.high != high;
                    if changed {
                        *pin = Pin { high, since: Instant::now() };
                    }
                    changed
                });
                tokio::time::sleep(LOOK).await;
            }
            board.power_cut().await
        });
        Ok(Self { port, pin, cut, board, bridge })
    }

    /// The pin as it is now.
    pub(super) fn pin(&self) -> Pin {
        *self.pin.borrow()
    }

    /// Waits until the pin is `high` or not, at most so long; then what it is.
    pub(super) async fn pin_becomes(&mut self, high: bool, within: Duration) -> Pin {
        let _ = timeout(within, self.pin.wait_for(|pin| pin.high == high)).await;
        self.pin()
    }

    /// Cuts the power, whatever is going on.
    pub(super) async fn power_cut(self) -> Result<()> {
        let _ = self.cut.send(());
        self.board.await??;
        // Its line broke, which is all that it has to say.
        let _ = timeout(PATIENCE, self.bridge).await.context("the bridge outlived its gate")??;
        Ok(())
    }
}

/// A holder in a process of its own.
pub(super) struct Holder {
    child: Child,
    say: ChildStdin,
    hear: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    /// Starts the process.
    pub(super) fn start(name: &str, gate: &Powered, flash: &Path, image: Image) -> Result<Self> {
        let here: PathBuf = std::env::current_exe().context("this program has no path")?;
        let mut command = Command::new(here);
        command.args(["holder", "--port", &gate.port, "--holder", name, "--key-file"]).arg(key_file(flash));
        if image == Image::Demonstration {
            command.arg("--no-lease");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let say = child.stdin.take().context("standard input is piped")?;
        let hear = BufReader::new(child.stdout.take().context("standard output is piped")?).lines();
        Ok(Self { child, say, hear })
    }

    /// Says a line without waiting for what comes of it.
    pub(super) async fn tell(&mut self, line: &str) -> Result<()> {
        Ok(self.say.write_all(format!("{line}\n").as_bytes()).await?)
    }

    /// What it answers.
    pub(super) async fn hear(&mut self) -> Result<String> {
        let line = timeout(PATIENCE, self.hear.next_line()).await.context("the holder says nothing")??;
        line.context("the holder has ended")
    }

    /// Says a line and hears the answer.
    pub(super) async fn ask(&mut self, line: &str) -> Result<String> {
        self.tell(line).await?;
        self.hear().await
    }

    /// Asks for a lease, and is granted `token`; when the lock service's timer started.
    pub(super) async fn lease(&mut self, token: u64, ttl_ms: u32) -> Result<Instant> {
        let acquiring = self.ask("acquire").await?;
        ensure!(acquiring == "acquiring", "{acquiring}");
        let granted = Instant::now();
        let leased = self.ask(&format!("lease {token} {ttl_ms}")).await?;
        ensure!(leased.starts_with("leased "), "{leased}");
        Ok(granted)
    }

    /// Drives without a break.
    pub(super) async fn drive(&mut self, value: i32) -> Result<String> {
        let checked = self.ask(&format!("drive {value}")).await?;
        ensure!(checked.starts_with("checked "), "{checked}");
        self.ask("go").await
    }

    /// Freezes the process: SIGSTOP.
    pub(super) async fn freeze(&self) -> Result<()> {
        self.signal("STOP").await
    }

    /// Lets it go on: SIGCONT.
    pub(super) async fn wake(&self) -> Result<()> {
        self.signal("CONT").await
    }

    async fn signal(&self, signal: &str) -> Result<()> {
        let pid = self.child.id().context("the holder has ended")?.to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().await.context("running `kill`")?;
        ensure!(sent.success(), "`kill -s {signal} {pid}` failed");
        Ok(())
    }
}
