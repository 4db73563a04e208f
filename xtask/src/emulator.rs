//! A board in its emulator: QEMU, with the serial line on a socket, the flash in a file and the pins to look at.

use crate::setup;
use anyhow::{Context, Result, bail, ensure};
use fencegate_host::bridge;
use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;
use std::time::{Duration, Instant};
use std::{fs, io, thread};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Bytes of the board's flash (`embedded/firmware/mps2/src/flash.rs`).
pub const FLASH_LEN: u64 = 128 * 1024;

/// The register that holds the output pins (SCC `CFG1`; `embedded/firmware/mps2/src/outputs.rs`).
const PINS: &str = "xp /1wx 0x4002f004";

/// How long the emulator may take to open its sockets, or to answer its monitor.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a side of the board is let out, for one visitor at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// On a TCP port.
    Tcp(SocketAddr),
    /// On a socket in the file system.
    File(PathBuf),
}

impl FromStr for Socket {
    type Err = Infallible;

    /// What is no address names a file.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::File(text.into()), Self::Tcp))
    }
}

impl Socket {
    /// The emulator's option for it.
    fn option(&self) -> Result<String> {
        let place = match self {
            Self::Tcp(address) => format!("tcp:{address}"),
            Self::File(path) => {
                // The emulator removes whatever is there.
                let taken = fs::symlink_metadata(path).is_ok_and(|there| !there.file_type().is_socket());
                ensure!(!taken, "{} is a file of something else: name another for the socket", path.display());
                // It runs in another folder.
                let path = std::path::absolute(path)?;
                let path = path.to_str().context("a socket's name is no Unicode")?;
                format!("unix:{}", path.replace(',', ",,"))
            }
        };
        Ok(format!("{place},server=on,wait=off"))
    }
}

/// Which sides of the board are let out of the emulator, beside the serial line.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    /// The front panel (`embedded/firmware/mps2/src/panel.rs`).
    pub panel: Option<Socket>,
    /// The emulator's monitor: pins to look at, memory, a debugger's door.
    pub monitor: Option<Socket>,
    /// The firmware's log, on standard error; this needs the feature `log`.
    pub log: bool,
}

/// How long the flash of an emulator that was killed may stay locked.
const DYING: Duration = Duration::from_secs(2);

/// A running board. Dropping it is a power cut.
#[derive(Debug)]
pub struct Emulator {
    child: Child,
    serial: Option<UnixStream>,
    monitor: UnixStream,
    /// Holds the sockets; removed with the emulator.
    _sockets: tempfile::TempDir,
}

impl Emulator {
    /// Boots the image `elf` with its flash in the file `flash`, which is made if it does not exist.
    pub async fn boot(elf: &Path, flash: &Path, sides: &Sides) -> Result<Self> {
        let sockets = tempfile::Builder::new().prefix("fencegate-").tempdir()?;
        let socket = |name: &str| sockets.path().join(name);
        let (folder, name) = place(flash)?;
        let mut qemu = qemu();
        qemu.args(["-machine", "mps2-an385", "-display", "none"])
            .args(["-serial", &format!("unix:{},server=on,wait=off", socket("serial").display())])
            .args(["-monitor", &format!("unix:{},server=on,wait=off", socket("monitor").display())]);
        // The second serial line is UART 1.
        for (option, side) in [("-serial", &sides.panel), ("-monitor", &sides.monitor)] {
            if let Some(side) = side {
                qemu.args([option, &side.option()?]);
            }
        }
        qemu.args(["-semihosting-config", &format!("enable=on,target=native,arg=fencegate,arg=\"{name}\"")])
            .arg("-kernel")
            .arg(elf)
            .current_dir(folder)
            // The emulator never reads it, and holds the lock for as long as it runs.
            .stdin(lock(flash)?)
            .stdout(if sides.log { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = qemu.spawn().context("starting qemu-system-arm (`cargo xtask setup` installs it)")?;
        let mut said = Some(pass_on(&mut child)?);
        if let Some(log) = child.stdout.take() {
            crate::log::start(elf, log.into_owned_fd()?.into())?;
        }
        let monitor = opened(&mut child, &mut said, async || UnixStream::connect(socket("monitor")).await).await?;
        let serial = opened(&mut child, &mut said, async || bridge::connect(&socket("serial")).await).await?;
        let mut emulator = Self { child, serial: Some(serial), monitor, _sockets: sockets };
        emulator.prompt().await?; // its greeting
        Ok(emulator)
    }

    /// The serial line. There is one: a second call finds it taken.
    pub fn serial(&mut self) -> Result<UnixStream> {
        self.serial.take().context("the serial line is taken")
    }

    /// The output pins as the emulated hardware has them: bit n is output n.
    pub async fn pins(&mut self) -> Result<u32> {
        let answer = self.ask(PINS).await?;
        // "000000004002f004: 0x00000001"
        let value = answer.lines().rev().find_map(|line| line.split_once(": 0x")).map(|(_, value)| value.trim());
        let value = value.with_context(|| format!("the emulator's monitor did not show the pins: {answer:?}"))?;
        Ok(u32::from_str_radix(value, 16)?)
    }

    /// What the emulator's monitor says to a command.
    pub async fn ask(&mut self, command: &str) -> Result<String> {
        self.monitor.write_all(format!("{command}\n").as_bytes()).await?;
        self.prompt().await
    }

    /// Cuts the power: SIGKILL, in the middle of whatever it does.
    pub async fn power_cut(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Waits until the emulator ends by itself.
    pub async fn ended(&mut self) -> Result<()> {
        let status = self.child.wait().await?;
        bail!("the emulator ended ({status})")
    }

    /// Reads the monitor up to its prompt.
    async fn prompt(&mut self) -> Result<String> {
        let read = async {
            let mut answer = Vec::new();
            while !answer.ends_with(b"(qemu) ") {
                let byte = self.monitor.read_u8().await.context("the emulator's monitor closed")?;
                answer.push(byte);
            }
            Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        timeout(PATIENCE, read).await.context("the emulator's monitor does not answer")?
    }
}

/// What is wrong with the flash file, in a sentence; `None` where it has the board's size or is not there yet.
pub fn truncated(flash: &Path) -> Option<String> {
    let len = fs::metadata(flash).ok()?.len();
    (len != FLASH_LEN).then(|| {
        format!(
            "the flash file {} has {len} bytes where the board has {FLASH_LEN}: nothing that it still says of a fence \
             can be trusted, and the gate refuses with `storage`",
            flash.display()
        )
    })
}

/// The emulator's command, ended by the system when this process ends, however it does, where the system can do that.
fn qemu() -> Command {
    const QEMU: &str = "qemu-system-arm";
    match setup::find_program("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", QEMU]);
            command
        }
        None => Command::new(QEMU),
    }
}

/// Makes this emulator the only one with that flash: two would each undo what the other has stored.
fn lock(flash: &Path) -> Result<fs::File> {
    let path = flash.with_extension("flash.lock");
    let file = fs::File::create(&path).with_context(|| format!("flash: writing {}", path.display()))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // One that was killed is gone a little later than whoever started it.
            Err(fs::TryLockError::WouldBlock) if begun.elapsed() < DYING => thread::sleep(Duration::from_millis(20)),
            Err(fs::TryLockError::WouldBlock) => {
                bail!("flash: another emulator runs with {}: end it, or name another file", flash.display())
            }
            Err(fs::TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("flash: locking {}", path.display()));
            }
        }
    }
}

/// A file's folder and name; the emulator starts in the folder, since its options cannot quote every path.
fn place(file: &Path) -> Result<(PathBuf, &str)> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} names no file", file.display()))?;
    ensure!(
        !name.contains(['"', ',', '\\']),
        "flash: the file name {name} has a character that the emulator cannot take"
    );
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("flash: making the folder {}", folder.display()))?;
    Ok((folder.canonicalize()?, name))
}

/// Passes on what the emulator, or a firmware's last words, has to say on standard error: all but that a signal ends
/// it, which whoever sent the signal knows.
fn pass_on(child: &mut Child) -> Result<thread::JoinHandle<()>> {
    let said = child.stderr.take().context("standard error is piped")?.into_owned_fd()?;
    Ok(thread::spawn(move || {
        for line in BufReader::new(fs::File::from(said)).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if !line.contains("terminating on signal") {
                eprintln!("{line}");
            }
        }
    }))
}

/// Connects to a socket that the emulator is about to open; `said` ends when it has said its last.
async fn opened(
    child: &mut Child,
    said: &mut Option<thread::JoinHandle<()>>,
    connect: impl AsyncFn() -> io::Result<UnixStream>,
) -> Result<UnixStream> {
    let opened = async {
        loop {
            if let Ok(stream) = connect().await {
                return Ok(stream);
            }
            if let Some(status) = child.try_wait()? {
                let _ = said.take().map(thread::JoinHandle::join);
                bail!("the emulator ended at once ({status}); what it said is above");
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, opened).await.context("the emulator did not open its sockets")?
}
