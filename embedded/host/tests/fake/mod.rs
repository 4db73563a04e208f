//! A gate that answers by hand: what it is asked is verified, and a closure replies.

#![allow(dead_code, reason = "each of the tests that share this uses a part of it")]

use fencegate::{Duration, Epoch, FenceRecord, HolderId};
use fencegate_host::{Existing, KeyFile, Secret};
use fencegate_wire::{
    Answer, BaseKey, Cause, Challenge, ChannelState, ChannelStatus, Counters, Deframer, Domain, Framed, GateId,
    GateStatus, Key, Keyring, Reason, Refused, Reply, Request, Role, Sealed, Unverified, Values, Version, seal,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// What the gate was asked, as it was sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) role: Role,
    pub(crate) challenge: Option<Challenge>,
    pub(crate) request: Request,
}

/// What it does about it.
pub(crate) enum Then {
    Reply(Reply),
    /// Answers with a key that is not its own.
    Forge(Reply),
    /// Answers only after this long.
    After(std::time::Duration, Reply),
    Silence,
    /// Closes the line.
    Close,
}

/// A gate on a TCP port of its own, and a folder with its key files.
pub(crate) struct FakeGate {
    pub(crate) address: SocketAddr,
    pub(crate) keys: KeyFile,
    asked: Arc<Mutex<Vec<Asked>>>,
    folder: tempfile::TempDir,
}

impl FakeGate {
    /// A gate that does as `then` says; a challenge that is asked for is given without asking it.
    pub(crate) fn new(mut then: impl FnMut(&Asked) -> Then + Send + 'static) -> Self {
        Self::raw(move |asked| match asked.request {
            Request::Challenge => Then::Reply(Reply::Challenge),
            _ => then(asked),
        })
    }

    /// A gate that does as `then` says, whatever it is asked.
    pub(crate) fn raw(then: impl FnMut(&Asked) -> Then + Send + 'static) -> Self {
        let ring = Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 };
        let keys = KeyFile { gate: GateId(*b"press-07"), domain: Domain::Gate, secret: Secret::Root(ring) };
        Self::with(keys, then)
    }

    /// A gate that knows the keys in `keys`.
    pub(crate) fn with(keys: KeyFile, then: impl FnMut(&Asked) -> Then + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let folder = tempfile::tempdir().expect("a folder");
        let asked = Arc::default();
        let gate = Self { address, keys, asked, folder };
        gate.save("gate.key", &gate.keys);
        let (keys, asked) = (gate.keys.clone(), Arc::clone(&gate.asked));
        // One host after the other, until the test is over.
        thread::spawn(move || {
            let mut served = Served { keys, asked, then, tick: 0 };
            while let Ok((host, _)) = listener.accept() {
                served.host(host);
            }
        });
        gate
    }

    /// A serial device at whose other end the gate sits too: its bytes are carried to the TCP port.
    #[cfg(target_os = "linux")]
    pub(crate) fn device(&self) -> String {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end");
        let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("Unicode");
        let device = std::fs::File::from(master);
        let port = std::net::TcpStream::connect(self.address).expect("the gate");
        let copy = |mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>| {
            thread::spawn(move || std::io::copy(&mut from, &mut to));
        };
        copy(Box::new(device.try_clone().expect("a handle")), Box::new(port.try_clone().expect("a handle")));
        copy(Box::new(port), Box::new(device));
        name
    }

    /// A board that nobody has provisioned yet, which knows the key that everybody knows; until it is told which ones
    /// it has from now on.
    pub(crate) fn blank(then: impl FnMut(&Asked) -> Then + Send + 'static) -> Self {
        let secret = Secret::Observer { key: BaseKey::FACTORY, id: 0 };
        Self::with(KeyFile { gate: GateId::FACTORY, domain: Domain::Gate, secret }, then)
    }

    /// The path of the operator's key file.
    pub(crate) fn folder_key(&self) -> String {
        self.folder.path().join("gate.key").display().to_string()
    }

    /// A path in the folder of the key files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn save(&self, name: &str, keys: &KeyFile) -> PathBuf {
        let path = self.folder.path().join(name);
        keys.write(&path, Existing::Replace).expect("a key file");
        path
    }

    /// Everything it was asked so far, without the bare challenges.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let asked = self.asked.lock().expect("no panic").clone();
        asked.into_iter().filter(|asked| asked.request != Request::Challenge).collect()
    }

    /// `fencegate gate` with this gate's port and the operator's key.
    pub(crate) fn gate(&self) -> String {
        self.gate_with(&self.keys)
    }

    /// `fencegate gate` with this gate's port and another key file.
    pub(crate) fn gate_with(&self, keys: &KeyFile) -> String {
        let name = if *keys == self.keys { "gate.key" } else { "other.key" };
        let path = self.save(name, keys);
        format!("fencegate gate --port tcp://{} --key-file {}", self.address, path.display())
    }
}

struct Served<F> {
    keys: KeyFile,
    asked: Arc<Mutex<Vec<Asked>>>,
    then: F,
    tick: u64,
}

impl<F: FnMut(&Asked) -> Then> Served<F> {
    fn host(&mut self, mut host: impl Read + Write) {
        let mut deframer = Deframer::new();
        let mut bytes = [0; 512];
        while let Ok(n @ 1..) = host.read(&mut bytes) {
            for byte in &bytes[..n] {
                let Some(Framed::Frame(frame)) = deframer.push(*byte) else { continue };
                if self.frame(frame, &mut host).is_none() {
                    return;
                }
            }
        }
    }

    /// `None` to close the line.
    fn frame(&mut self, frame: &mut [u8], host: &mut impl Write) -> Option<()> {
        let unverified = Unverified::read(frame).expect("no noise");
        let claim = *unverified.claim();
        let keys = match &self.keys.secret {
            Secret::Root(ring) => ring.base(claim.role),
            Secret::Observer { key, .. } | Secret::Holder { key, .. } => key.clone(),
        };
        let keys = keys.directions(self.keys.domain);
        if (claim.gate, claim.key_id) != (self.keys.gate, self.keys.key_id()) {
            return Some(());
        }
        let Some(verified) = unverified.verify(&keys.request) else { return Some(()) };
        let Sealed { challenge, request } = verified.body().expect("a request");
        let asked = Asked { role: claim.role, challenge, request };
        let then = (self.then)(&asked);
        self.asked.lock().expect("no panic").push(asked);
        self.tick += 1;
        let challenge = Challenge { boot: 1, tick: self.tick };
        let (key, reply) = match then {
            Then::Reply(reply) => (keys.answer, reply),
            Then::Forge(reply) => (BaseKey::FACTORY.0, reply),
            Then::After(delay, reply) => {
                thread::sleep(delay);
                (keys.answer, reply)
            }
            Then::Silence => return Some(()),
            Then::Close => return None,
        };
        let (frame, _) = seal(&claim.reply(), &key, &Answer { challenge, reply }).expect("it fits");
        host.write_all(&frame).ok()
    }
}

pub(crate) fn holder(text: &str) -> HolderId {
    HolderId::new(text).expect("a holder")
}

pub(crate) fn record(epoch: u32, token: u64, by: &str) -> FenceRecord {
    FenceRecord { epoch: Epoch(epoch), token, holder: Some(holder(by)), released: false }
}

pub(crate) fn done(record: FenceRecord, window_left_us: u64) -> Then {
    Then::Reply(Reply::Done { record, window_left: Duration::from_micros(window_left_us) })
}

pub(crate) fn refused(reason: Reason, by: Option<FenceRecord>) -> Then {
    Then::Reply(Reply::Refused(Refused { reason, by, wait: Duration::ZERO }))
}

/// What a gate of two channels answers to `status`: channel 0 driven, channel 1 never raised.
pub(crate) fn status(asked: &Asked) -> Then {
    Then::Reply(match asked.request {
        Request::Status => {
            Reply::Status(GateStatus { firmware: Version(0, 1, 2), boots: 3, channels: 2, mended: 0, fault: None })
        }
        Request::Channel { channel: 0 } => Reply::Channel(ChannelStatus {
            record: record(0, 34, "b"),
            state: ChannelState::Driven,
            values: Values::from_iter([1]),
            window_left: Duration::from_micros(1_980_000),
            cause: Cause::Boot,
            fault: None,
        }),
        Request::Channel { .. } => Reply::Channel(ChannelStatus {
            record: FenceRecord::floor(Epoch(1), 5),
            state: ChannelState::Safe,
            values: Values::from_iter([0, 0]),
            window_left: Duration::ZERO,
            cause: Cause::Window,
            fault: None,
        }),
        Request::Counters => {
            let mut counters = Counters { noise: 12, ..Counters::default() };
            counters.reasons[6] = 4; // stale
            Reply::Counters(counters)
        }
        _ => return Then::Silence,
    })
}
