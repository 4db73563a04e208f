//! A board in its emulator, with the serial line on a socket, the flash in a file and the pins to look at.

use crate::board::Board;
use crate::{setup, uf2, workspace};
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

/// Bytes of a board's flash, as far as it is the gate's (`src/flash.rs` of each).
pub const FLASH_LEN: u64 = 128 * 1024;

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
    /// The name of a socket in the file system for an emulator that runs in another folder.
    fn file(path: &Path) -> Result<String> {
        // The emulator removes whatever is there.
        let taken = fs::symlink_metadata(path).is_ok_and(|there| !there.file_type().is_socket());
        ensure!(!taken, "{} is a file of something else: name another for the socket", path.display());
        let path = std::path::absolute(path)?;
        Ok(path.to_str().context("a socket's name is no Unicode")?.to_owned())
    }

    /// QEMU's option for it.
    fn option(&self) -> Result<String> {
        let place = match self {
            Self::Tcp(address) => format!("tcp:{address}"),
            Self::File(path) => format!("unix:{}", Self::file(path)?.replace(',', ",,")),
        };
        Ok(format!("{place},server=on,wait=off"))
    }

    /// The option of `embedded/firmware/rp2040/emulator/run.js` for it.
    fn place(&self) -> Result<String> {
        match self {
            Self::Tcp(address) => Ok(address.to_string()),
            Self::File(path) => Self::file(path),
        }
    }
}

/// Which sides of the board are let out of the emulator, beside the serial line.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    /// The front panel (`embedded/firmware/mps2/src/panel.rs`).
    pub panel: Option<Socket>,
    /// The USB port of a board that has one.
    pub usb: Option<Socket>,
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
    kind: Board,
    child: Child,
    serial: Option<UnixStream>,
    monitor: UnixStream,
    /// Holds the sockets; removed with the emulator.
    _sockets: tempfile::TempDir,
}

impl Emulator {
    /// Boots the image `elf` of a board with its flash in the file `flash`, which is made if it does not exist.
    pub async fn boot(kind: Board, elf: &Path, flash: &Path, sides: &Sides) -> Result<Self> {
        let sockets = tempfile::Builder::new().prefix("fencegate-").tempdir()?;
        let socket = |name: &str| sockets.path().join(name);
        let place = place(flash)?;
        let mut emulator = match kind {
            Board::Mps2 => qemu(elf, &place, sockets.path(), sides)?,
            Board::Rp2040 => rp2040js(elf, &place, sockets.path(), sides)?,
        };
        emulator
            .current_dir(place.folder)
            // The emulator never reads it, and holds the lock for as long as it runs.
            .stdin(lock(flash)?)
            .stdout(if sides.log { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = emulator.spawn().context("starting the emulator (`cargo xtask setup` installs it)")?;
        let mut said = Some(pass_on(&mut child)?);
        if let Some(log) = child.stdout.take() {
            crate::log::start(elf, log.into_owned_fd()?.into())?;
        }
        let monitor = opened(&mut child, &mut said, async || UnixStream::connect(socket("monitor")).await).await?;
        let serial = opened(&mut child, &mut said, async || bridge::connect(&socket("serial")).await).await?;
        let mut emulator = Self { kind, child, serial: Some(serial), monitor, _sockets: sockets };
        emulator.prompt().await?; // its greeting
        // Answered once the emulator has run up to now: a slow one has then done with the board's own start.
        emulator.pins().await?;
        Ok(emulator)
    }

    /// The serial line. There is one: a second call finds it taken.
    pub fn serial(&mut self) -> Result<UnixStream> {
        self.serial.take().context("the serial line is taken")
    }

    /// The output pins as the emulated hardware has them: bit n is output n.
    pub async fn pins(&mut self) -> Result<u32> {
        let answer = self.ask(self.kind.pins()).await?;
        // "outputs: 0x00000001"
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
            while !answer.ends_with(self.kind.prompt().as_bytes()) {
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

/// An emulator's command, ended by the system when this process ends, however it does, where the system can do that.
fn emulator(program: &str) -> Command {
    match setup::find_program("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", program]);
            command
        }
        None => Command::new(program),
    }
}

/// QEMU with an MPS2.
fn qemu(elf: &Path, flash: &Place, sockets: &Path, sides: &Sides) -> Result<Command> {
    let Place { name, .. } = flash;
    ensure!(
        !name.contains(['"', ',', '\\']),
        "flash: the file name {name} has a character that the emulator cannot take"
    );
    ensure!(sides.usb.is_none(), "usb: this board has no USB port; `--board rp2040` has one");
    let socket = |name: &str| format!("unix:{},server=on,wait=off", sockets.join(name).display());
    let mut qemu = emulator("qemu-system-arm");
    qemu.args(["-machine", "mps2-an385", "-display", "none"]);
    qemu.args(["-serial", &socket("serial"), "-monitor", &socket("monitor")]);
    // The second serial line is UART 1.
    for (option, side) in [("-serial", &sides.panel), ("-monitor", &sides.monitor)] {
        if let Some(side) = side {
            qemu.args([option, &side.option()?]);
        }
    }
    qemu.args(["-semihosting-config", &format!("enable=on,target=native,arg=fencegate,arg=\"{name}\"")]);
    qemu.arg("-kernel").arg(elf);
    Ok(qemu)
}

/// rp2040js with a Pico; the image is what its boot loader would be given.
fn rp2040js(elf: &Path, flash: &Place, sockets: &Path, sides: &Sides) -> Result<Command> {
    let image = sockets.join("gate.uf2");
    let elf = fs::read(elf).with_context(|| format!("reading {}", elf.display()))?;
    fs::write(&image, uf2::of_elf(&elf, uf2::RP2040)?).with_context(|| format!("writing {}", image.display()))?;
    let mut node = emulator("node");
    node.arg(workspace::root().join("embedded/firmware/rp2040/emulator/run.js"));
    node.arg("--image").arg(image).args(["--flash", &flash.name]);
    node.arg("--serial").arg(sockets.join("serial")).arg("--monitor").arg(sockets.join("monitor"));
    for (option, side) in [("--panel", &sides.panel), ("--usb", &sides.usb), ("--monitor", &sides.monitor)] {
        if let Some(side) = side {
            node.args([option, &side.place()?]);
        }
    }
    if sides.log {
        node.arg("--log");
    }
    Ok(node)
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

/// Where a flash file is. The emulator starts in its folder, since options cannot quote every path.
struct Place {
    folder: PathBuf,
    name: String,
}

/// A file's folder and name.
fn place(file: &Path) -> Result<Place> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} names no file", file.display()))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("flash: making the folder {}", folder.display()))?;
    Ok(Place { folder: folder.canonicalize()?, name: name.to_owned() })
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
