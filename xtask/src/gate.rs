//! `cargo xtask gate`: a gate in its emulator, on a TCP port, with its flash in a file.

use crate::board::Board;
use crate::emulator::{Emulator, Sides, truncated};
use crate::{firmware, setup, step, workspace};
use anyhow::{Context, Result, bail, ensure};
use fencegate_host::fencegate::{Deadline, Duration};
use fencegate_host::wire::{Credential, Domain};
use fencegate_host::{
    CallError, Existing, GateClient, KeyFile, Secret, Status, bridge, clock, emulator, factory, provision,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::{fmt, fs};
use tokio::net::{TcpListener, UnixStream};

/// How long a gate may take from its first instruction to its first answer.
const FIRST_ANSWER: Duration = Duration::from_secs(20);

/// How long one question may stay unanswered before another is tried: longer than an emulator takes for a start.
const ONE_ANSWER: Duration = Duration::from_secs(3);

/// L of the gate that `cargo xtask gate` provisions.
pub const LATENESS: Duration = Duration::from_millis(5);

/// Which image runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// The gate.
    Gate,
    /// The demonstration: the same firmware with the check left out and keys of its own kind.
    Demonstration,
}

impl Image {
    /// The keys that it obeys.
    pub const fn domain(self) -> Domain {
        match self {
            Self::Gate => Domain::Gate,
            Self::Demonstration => Domain::Demonstration,
        }
    }

    /// Builds it for a board; the path of its ELF file.
    pub fn build(self, root: &Path, board: Board) -> Result<PathBuf> {
        match self {
            Self::Gate => firmware::build(root, board.name()),
            // In a folder of its own: two images of one name would overwrite each other.
            Self::Demonstration => {
                let target = workspace::target_dir(root)?.join("demonstration");
                let target = target.to_str().context("the target directory's name is no Unicode")?;
                firmware::build_with(root, board.name(), &["--features", "demonstration", "--target-dir", target])
            }
        }
    }
}

/// What is to get power.
#[derive(Clone, Copy, Debug)]
pub struct Powering<'a> {
    /// The board.
    pub board: Board,
    /// The ELF file of its firmware.
    pub elf: &'a Path,
    /// The file that is its flash.
    pub flash: &'a Path,
    /// Which image the firmware is.
    pub image: Image,
}

/// A gate in its emulator, provisioned and answering.
#[derive(Debug)]
pub struct Gate {
    /// The board.
    pub board: Emulator,
    /// Its serial line, for one host or a bridge.
    pub line: UnixStream,
    /// Its keys.
    pub keys: KeyFile,
}

/// The key file that lies beside a flash file.
pub fn key_file(flash: &Path) -> PathBuf {
    flash.with_extension("key")
}

impl Gate {
    /// Boots `elf` from the flash file, which a new gate is provisioned into if it does not exist, and waits until it
    /// answers to its operator's key. `lateness` is L of a new one.
    pub async fn boot(what: &Powering<'_>, lateness: Duration, sides: &Sides) -> Result<Self> {
        let Powering { board, elf, flash, image } = *what;
        ensure!(!flash.is_dir(), "flash: {} is a folder: name a file", flash.display());
        let key_file = key_file(flash);
        // The keys of a gate that is not ready yet: whatever cuts the first start, the next one goes on with them.
        let unready = key_file.with_extension("key.new");
        let new = !flash.exists();
        let keys = match (new, unready.exists(), key_file.exists()) {
            (false, true, _) => Some(KeyFile::read(&unready)?),
            (false, false, true) => Some(KeyFile::read(&key_file)?),
            _ => None,
        };
        if let Some(warning) = truncated(flash) {
            step::warn(&warning);
        }
        let mut board = Emulator::boot(board, elf, flash, sides).await?;
        let mut line = board.serial()?;
        let keys = match keys {
            // A flash file that does not exist is a new gate, whatever key file an older one has left.
            None if new || is_blank(&mut line, image).await? => {
                provision_new(&mut line, None, &unready, image, lateness).await?
            }
            None => bail!("{} is not there: a gate's key file lies beside its flash file", key_file.display()),
            Some(keys) => match wait_for(&mut line, &keys).await {
                Ok(()) => keys,
                Err(NotReady::Blank) if unready.exists() => {
                    provision_new(&mut line, Some(keys), &unready, image, lateness).await?
                }
                Err(why) => bail!("{} holds no gate that answers to {}: {why}", flash.display(), key_file.display()),
            },
        };
        if unready.exists() {
            if let Err(why) = wait_for(&mut line, &keys).await {
                bail!("the new gate in {} does not answer: {why}", flash.display());
            }
            if new && key_file.exists() {
                let old = key_file.with_extension("key.old");
                fs::rename(&key_file, &old).with_context(|| format!("writing {}", old.display()))?;
                step::warn(&format!("a new gate; the keys of the one before are kept in {}", old.display()));
            }
            fs::rename(&unready, &key_file).with_context(|| format!("writing {}", key_file.display()))?;
        }
        Ok(Self { board, line, keys })
    }
}

/// Provisions a new gate, with `keys` where an earlier start has come that far: the key file first, since a gate without
/// one is lost.
async fn provision_new(
    line: &mut UnixStream,
    keys: Option<KeyFile>,
    unready: &Path,
    image: Image,
    lateness: Duration,
) -> Result<KeyFile> {
    let mut provisioning = emulator()?;
    provisioning.gate.lateness = lateness;
    if let Some(KeyFile { gate, secret: Secret::Root(keys), .. }) = keys {
        (provisioning.gate.gate, provisioning.gate.keys) = (gate, keys);
    }
    KeyFile::of(&provisioning, image.domain()).write(unready, Existing::Replace)?;
    provision(line, &provisioning, image.domain(), soon()?).await.context("provisioning the new gate")
}

/// Why a gate does not answer to its key.
#[derive(Debug)]
enum NotReady {
    /// The board was never provisioned.
    Blank,
    /// It was, and what it was provisioned with is lost.
    Lost,
    /// Something else.
    Silent(anyhow::Error),
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("the flash is blank; remove both files for a new gate"),
            Self::Lost => f.write_str(
                "its identity and keys are lost from the flash; put a copy of it back, or remove both files for a new \
                 gate",
            ),
            Self::Silent(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<anyhow::Error> for NotReady {
    fn from(error: anyhow::Error) -> Self {
        Self::Silent(error)
    }
}

/// Waits until the gate answers to its key, or the board says that it is none any more.
async fn wait_for(line: &mut UnixStream, keys: &KeyFile) -> Result<(), NotReady> {
    let factory = factory(keys.domain);
    let give_up = soon()?;
    loop {
        let Err(error) = ask(line, keys.reader()).await? else { return Ok(()) };
        match ask(line, factory.clone()).await? {
            Ok(Status { fault: None, .. }) => return Err(NotReady::Blank),
            Ok(_) => return Err(NotReady::Lost),
            Err(_) if give_up.is_over(clock::now()) => return Err(NotReady::Silent(error.into())),
            Err(_) => {}
        }
    }
}

/// Whether the board was never provisioned.
async fn is_blank(line: &mut UnixStream, image: Image) -> Result<bool> {
    Ok(matches!(ask(line, factory(image.domain())).await?, Ok(Status { fault: None, .. })))
}

/// One question to whoever answers to `credential`.
async fn ask(line: &mut UnixStream, credential: Credential) -> Result<Result<Status, CallError>> {
    Ok(GateClient::new(line, credential)?.status(within(ONE_ANSWER)?).await)
}

fn within(span: Duration) -> Result<Deadline> {
    Deadline::after(clock::now(), span).context("the clock is at its end")
}

fn soon() -> Result<Deadline> {
    within(FIRST_ANSWER)
}

/// Builds the firmware, with a fast line where that is asked for, boots it with its flash in `flash`, and lets hosts speak
/// with it on `listen` until a signal ends it.
pub fn run(root: &Path, board: Board, fast: bool, listen: SocketAddr, flash: &Path, sides: &Sides) -> Result<()> {
    setup::ensure(setup::FIRMWARE)?;
    setup::ensure(board.emulator())?;
    let (image, elf) = (Image::Gate, firmware::build_for(root, board, fast)?);
    let powering = Powering { board, elf: &elf, flash, image };
    runtime()?.block_on(async {
        let listener = TcpListener::bind(listen).await.with_context(|| format!("listen: {listen} cannot be used"))?;
        let Gate { mut board, line, .. } = Gate::boot(&powering, LATENESS, sides).await?;
        println!("gate ready on tcp://{} key {}", listener.local_addr()?, key_file(flash).display());
        tokio::select! {
            ended = board.ended() => ended,
            bridged = bridge::serve(listener, line) => {
                bridged?;
                bail!("the emulator closed its serial line")
            }
            signal = ended_by_signal() => signal,
        }
    })
}

/// The runtime that emulators and hosts run on.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Waits for the signals that end a command; the emulator then goes with it.
async fn ended_by_signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    }
}
