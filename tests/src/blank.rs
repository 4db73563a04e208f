//! A board in its emulator that is no gate yet.

use crate::programs::fencegate;
use crate::server::kept;
use crate::{READY, board};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::board::Board;
use xtask::uf2;

/// A board in its emulator that is no gate yet, its serial line on a TCP port, as the board's README starts it by hand.
#[derive(Debug)]
pub struct BlankBoard {
    child: Child,
    port: String,
    folder: tempfile::TempDir,
}

impl BlankBoard {
    /// A board with its flash erased.
    ///
    /// # Panics
    /// Where the emulator does not start.
    pub fn new() -> Self {
        Self::of(board(), "--serial", &[])
    }

    /// A board with this in its flash, from the first byte that the store has; erased behind it.
    ///
    /// # Panics
    /// Where the emulator does not start.
    pub fn with_flash(flash: &[u8]) -> Self {
        Self::of(board(), "--serial", flash)
    }

    /// A Raspberry Pi Pico with its flash erased, and its USB port on the TCP port instead.
    ///
    /// # Panics
    /// Where the emulator does not start.
    pub fn on_usb() -> Self {
        Self::of(Board::Rp2040, "--usb", &[])
    }

    fn of(kind: Board, line: &str, flash: &[u8]) -> Self {
        let root = xtask::workspace::root();
        let elf = xtask::firmware::build(root, kind.name()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        if !flash.is_empty() {
            std::fs::write(folder.path().join("board.flash"), flash).unwrap();
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut emulator = match kind {
            Board::Mps2 => {
                let mut qemu = kept(None, "qemu-system-arm");
                qemu.args(["-machine", "mps2-an385", "-display", "none", "-monitor", "none"])
                    .args(["-serial", &format!("tcp:{free},server=on,wait=off")])
                    .args(["-semihosting-config", "enable=on,target=native,arg=fencegate,arg=board.flash"])
                    .arg("-kernel")
                    .arg(elf);
                qemu
            }
            Board::Rp2040 => {
                let image = uf2::of_elf(&std::fs::read(elf).unwrap(), uf2::RP2040).unwrap();
                std::fs::write(folder.path().join("gate.uf2"), image).unwrap();
                let mut node = kept(None, "node");
                node.arg(root.join("embedded/firmware/rp2040/emulator/run.js")).args([
                    "--image",
                    "gate.uf2",
                    "--flash",
                    "board.flash",
                ]);
                if line != "--serial" {
                    node.arg("--serial").arg(folder.path().join("board.serial"));
                }
                node.args([line, &free.to_string()]);
                node
            }
        };
        let child = emulator.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(free).is_err() {
            assert!(begun.elapsed() < READY, "the emulator opens no port");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, port: format!("tcp://{free}"), folder }
    }

    /// Where its flash lies, and the keys that it is given.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `fencegate gate … WORDS` with the key file of that name in its folder.
    pub fn host(&self, key: &str, words: &str) -> Command {
        let mut command = fencegate();
        command.args(["gate", "--port", &self.port, "--key-file"]).arg(self.folder.path().join(key));
        command.args(words.split(' '));
        command
    }
}

impl Default for BlankBoard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for BlankBoard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
