//! The emulated board from outside: the emulator's monitor, and a debugger.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::board::Board;

/// How long the emulator may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often the pins are looked at.
const LOOK: Duration = Duration::from_millis(2);

/// What the contact behind an output does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// What the output does.
    Follows,
    /// It sticks open.
    Open,
    /// It sticks closed: a welded relay.
    Closed,
}

impl Contact {
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Follows => 'f',
            Self::Open => 'o',
            Self::Closed => 'c',
        }
    }
}

/// The emulator's monitor.
#[derive(Debug)]
pub struct Monitor {
    kind: Board,
    stream: UnixStream,
}

impl Monitor {
    pub(crate) fn at(kind: Board, path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut monitor = Self { kind, stream };
        monitor.prompt(); // its greeting
        monitor
    }

    /// Says a line; what it answers, its echo included.
    ///
    /// # Panics
    /// Where it does not answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.prompt()
    }

    /// The outputs as the emulated hardware has them: bit n is output n.
    ///
    /// # Panics
    /// Where it does not show them.
    pub fn outputs(&mut self) -> u32 {
        // "outputs: 0x00000001"
        let answer = self.ask(self.kind.pins());
        let value = answer.lines().rev().find_map(|line| line.split_once(": 0x")).map(|(_, value)| value.trim());
        u32::from_str_radix(value.unwrap_or_else(|| panic!("{answer:?}")), 16).unwrap()
    }

    /// Waits until the outputs `mask` are low: when they were first seen so, or nothing where a look that began after `give_up`
    /// still finds them high. That is put off by the longest time between two looks: this machine stood still for so long, and
    /// the board with it.
    pub fn falls(&mut self, mask: u32, give_up: Instant) -> Option<Instant> {
        let (mut last, mut stalled) = (Instant::now(), Duration::ZERO);
        loop {
            let asked = Instant::now();
            stalled = stalled.max(asked.saturating_duration_since(last));
            if self.outputs() & mask == 0 {
                return Some(Instant::now());
            }
            if asked > give_up + stalled {
                return None;
            }
            last = asked;
            sleep(LOOK);
        }
    }

    fn prompt(&mut self) -> String {
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(self.kind.prompt().as_bytes()) {
            self.stream.read_exact(&mut byte).expect("the monitor answers");
            answer.extend(byte);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// A debugger on the board, which stands still, its clocks too, from the debugger's coming to its leaving.
#[derive(Debug)]
pub(crate) struct Debugger {
    stream: UnixStream,
    came: Instant,
}

impl Debugger {
    pub(crate) fn at(monitor: &mut Monitor, path: &Path) -> Self {
        let came = Instant::now();
        monitor.ask(&format!("gdbserver unix:{},server=on,wait=off", path.display()));
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, came }
    }

    /// Writes memory, code among it.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        let hex = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_eq!(self.ask(&format!("M{address:x},{:x}:{hex}", bytes.len())), "OK");
    }

    /// Writes a device's register: to QEMU memory and devices alike are addresses of the machine.
    pub(crate) fn write_device(&mut self, address: u64, word: u32) {
        assert_eq!(self.ask("Qqemu.PhyMemMode:1"), "OK");
        self.write(address, &word.to_le_bytes());
    }

    /// Lets the board go on; for how long it stood still at the most.
    pub(crate) fn leave(mut self) -> Duration {
        assert_eq!(self.ask("D"), "OK");
        self.came.elapsed()
    }

    /// One packet of the remote serial protocol and its answer.
    fn ask(&mut self, packet: &str) -> String {
        let sum = packet.bytes().fold(0_u8, u8::wrapping_add);
        self.stream.write_all(format!("${packet}#{sum:02x}").as_bytes()).unwrap();
        loop {
            let answer = self.hear();
            // That the board stands still is said when it does, between other things.
            if !answer.starts_with('T') {
                return answer;
            }
        }
    }

    fn hear(&mut self) -> String {
        let mut byte = || {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("the debugger's server answers");
            byte[0]
        };
        while byte() != b'$' {}
        let mut answer = String::new();
        loop {
            match byte() {
                b'#' => break,
                byte => answer.push(byte.into()),
            }
        }
        byte();
        byte();
        self.stream.write_all(b"+").unwrap();
        answer
    }
}
