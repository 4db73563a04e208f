//! A gate in its emulator, and whoever stands before it.

use crate::board::{Contact, Debugger, Monitor};
use crate::host::Host;
use crate::programs::{Said, fencegate, xtask_program};
use crate::server::kept;
use crate::{READY, board};
use fencegate_host::KeyFile;
use fencegate_host::wire::Role;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::board::Board;

/// A gate in its emulator, started as a user starts it. Dropping it is a power cut.
#[derive(Debug)]
pub struct EmulatedGate {
    kind: Board,
    child: Child,
    /// `tcp://host:port`.
    pub port: String,
    folder: tempfile::TempDir,
}

impl EmulatedGate {
    /// A new gate.
    ///
    /// # Panics
    /// Where it does not get ready.
    pub fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap())
    }

    /// The gate whose flash and key lie in `folder`; a new one where they do not.
    ///
    /// # Panics
    /// Where it does not get ready.
    pub fn on(folder: tempfile::TempDir) -> Self {
        Self::of(board(), folder)
    }

    /// The same, on a board that is not necessarily the one under test.
    ///
    /// # Panics
    /// Where it does not get ready.
    pub fn of(kind: Board, folder: tempfile::TempDir) -> Self {
        Self::with(kind, folder, &[])
    }

    /// A new gate whose line is fast: a Raspberry Pi Pico's.
    ///
    /// # Panics
    /// Where it does not get ready.
    pub fn fast() -> Self {
        Self::with(Board::Rp2040, tempfile::tempdir().unwrap(), &["--fast"])
    }

    fn with(kind: Board, folder: tempfile::TempDir, options: &[&str]) -> Self {
        let said = File::options().create(true).append(true).open(folder.path().join("gate.said")).unwrap();
        let mut command = Self::command_of(kind, &folder.path().join("gate.flash"));
        if kind == Board::Rp2040 {
            command.arg("--usb").arg(folder.path().join("gate.usb"));
        }
        let mut child = command
            .args(options)
            .arg("--panel")
            .arg(folder.path().join("gate.panel"))
            .arg("--monitor")
            .arg(folder.path().join("gate.monitor"))
            .stderr(said)
            .process_group(0)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = Instant::now();
        let Some(line) = lines.next() else {
            panic!("{}", std::fs::read_to_string(folder.path().join("gate.said")).unwrap());
        };
        let line = line.unwrap();
        assert!(begun.elapsed() < READY);
        let words: Vec<_> = line.split(' ').collect();
        let ["gate", "ready", "on", port, "key", key] = words[..] else { panic!("{line:?}") };
        assert_eq!(Path::new(key), folder.path().join("gate.key"));
        Self { kind, child, port: port.to_owned(), folder }
    }

    /// The command that starts a gate from `flash`, on any free port.
    pub fn command(flash: &Path) -> Command {
        Self::command_of(board(), flash)
    }

    fn command_of(kind: Board, flash: &Path) -> Command {
        let mut command = kept(None, xtask_program());
        command.args(["gate", "--board", kind.name(), "--listen", "127.0.0.1:0", "--flash"]).arg(flash);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Cuts the power and boots again from the same flash.
    #[must_use]
    pub fn power_cycle(self) -> Self {
        let kind = self.kind;
        Self::of(kind, self.power_cut())
    }

    /// Cuts the power; the folder with the flash and the key is left.
    ///
    /// # Panics
    /// Where the process group cannot be killed.
    pub fn power_cut(mut self) -> tempfile::TempDir {
        self.kill();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _ = self.child.wait();
    }

    /// Sends a signal to the emulator and what stands between it and the line: `STOP` freezes them, `CONT` lets them go on.
    ///
    /// # Panics
    /// Where it cannot be sent.
    pub fn signal(&self, name: &str) {
        let group = format!("-{}", self.child.id());
        assert!(Command::new("kill").args(["-s", name, "--", &group]).status().unwrap().success());
    }

    /// The file beside its flash.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("gate.key")
    }

    /// Where its flash and key lie.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The host and port to connect to.
    pub fn address(&self) -> &str {
        self.port.trim_start_matches("tcp://")
    }

    /// Everything that it has said on standard error since it was new: the emulator's noise, and a firmware's last
    /// words.
    ///
    /// # Panics
    /// Where that cannot be read.
    pub fn noise(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("gate.said")).unwrap()
    }

    /// Whether its firmware has given up: a panic, or a fault of the processor.
    ///
    /// # Panics
    /// Where what it has said cannot be read.
    pub fn gave_up(&self) -> bool {
        self.noise().contains(&format!("fencegate-{}:", self.kind.name()))
    }

    /// Overwrites code of the running board, until its next reset; for how long it stood still at the most.
    ///
    /// # Panics
    /// Where the emulator does not.
    pub fn overwrite(&self, address: u64, code: &[u8]) -> Duration {
        match self.kind {
            Board::Mps2 => {
                let mut debugger = self.debugger();
                debugger.write(address, code);
                debugger.leave()
            }
            Board::Rp2040 => {
                let hex = code.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
                self.monitor().ask(&format!("poke {address:x} {hex}"));
                Duration::ZERO
            }
        }
    }

    /// Lets the MPS2's timer, which counts down at 25 MHz, go on from `left` before it begins anew. For the board that much time
    /// has passed.
    ///
    /// # Panics
    /// Where the emulator does not.
    pub fn leap(&self, left: Duration) {
        assert_eq!(self.kind, Board::Mps2, "another board has another timer");
        let mut debugger = self.debugger();
        debugger.write_device(0x4000_0004, u32::try_from(left.as_micros() * 25).unwrap());
        debugger.leave();
    }

    /// The emulator's monitor, for one at a time.
    ///
    /// # Panics
    /// Where it does not answer.
    pub fn monitor(&self) -> Monitor {
        Monitor::at(self.kind, &self.folder.path().join("gate.monitor"))
    }

    /// A debugger, which holds the board up as long as it is there.
    fn debugger(&self) -> Debugger {
        Debugger::at(&mut self.monitor(), &self.folder.path().join("gate.debugger"))
    }

    /// The outputs as the emulated hardware has them: bit n is output n.
    ///
    /// # Panics
    /// Where the monitor does not show them.
    pub fn outputs(&self) -> u32 {
        self.monitor().outputs()
    }

    /// Presses the emergency stop, or pulls it out again.
    pub fn press_stop(&self, pressed: bool) {
        self.set(&format!("i{}", u8::from(pressed)));
    }

    /// Steps up to the board, or leaves it.
    pub fn be_there(&self, there: bool) {
        self.set(&format!("p{}", u8::from(there)));
    }

    /// Makes the contact behind an output do something.
    pub fn contact(&self, output: u8, contact: Contact) {
        self.set(&format!("{}{output}", contact.letter()));
    }

    /// Sets a level at the front panel; it holds when this returns.
    fn set(&self, level: &str) {
        let mut panel = UnixStream::connect(self.folder.path().join("gate.panel")).unwrap();
        panel.set_read_timeout(Some(READY)).unwrap();
        panel.write_all(level.as_bytes()).unwrap();
        let mut answer = [0; 3];
        panel.read_exact(&mut answer).unwrap();
        assert_eq!(answer, format!("{level}\n").as_bytes());
    }

    /// A host on its line, without the command in between.
    ///
    /// # Panics
    /// Where it cannot connect.
    pub fn speak(&self, role: Role) -> Host {
        Host::new(self.address(), KeyFile::read(&self.key_file()).unwrap().credential(role))
    }

    /// A host that puts its USB cable in, and pulls it when it is dropped.
    ///
    /// # Panics
    /// Where the board has no such port.
    pub fn speak_usb(&self, role: Role) -> Host {
        let line = UnixStream::connect(self.folder.path().join("gate.usb")).unwrap();
        Host::at(Box::new(line), KeyFile::read(&self.key_file()).unwrap().credential(role))
    }

    /// `fencegate gate … WORDS` with this gate's key.
    pub fn host(&self, words: &str) -> Command {
        self.host_with(&self.key_file(), words)
    }

    /// `fencegate gate … WORDS` with another key.
    pub fn host_with(&self, key_file: &Path, words: &str) -> Command {
        let mut command = fencegate();
        command.args(["gate", "--port", &self.port, "--key-file"]).arg(key_file).args(words.split(' '));
        command
    }

    /// Says `WORDS` with `--json`; the exit status and the answer.
    pub fn ask(&self, words: &str) -> (i32, Value) {
        let said = Said::by(self.host(words).arg("--json"));
        let json = said.json();
        (said.status, json)
    }

    /// Says `WORDS`, which are done.
    ///
    /// # Panics
    /// Where they are not.
    pub fn done(&self, words: &str) -> Value {
        let (status, answer) = self.ask(words);
        assert_eq!((status, &answer["done"]), (0, &Value::Bool(true)), "{words}: {answer}");
        answer
    }

    /// Says `WORDS`, which are refused; why.
    ///
    /// # Panics
    /// Where they are not.
    pub fn refused(&self, words: &str) -> String {
        let (status, answer) = self.ask(words);
        assert_eq!((status, &answer["done"]), (1, &Value::Bool(false)), "{words}: {answer}");
        answer["reason"].as_str().unwrap().to_owned()
    }

    /// What a channel says of itself.
    ///
    /// # Panics
    /// Where the gate does not answer.
    pub fn channel(&self, channel: usize) -> Value {
        let (status, answer) = self.ask("status");
        assert_eq!(status, 0, "{answer}");
        answer["channels"][channel].clone()
    }
}

impl Default for EmulatedGate {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for EmulatedGate {
    fn drop(&mut self) {
        self.kill();
    }
}
