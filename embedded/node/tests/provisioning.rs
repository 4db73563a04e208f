//! How a board becomes a gate, and a gate another.

mod bench;

use bench::*;
use core::convert::Infallible;
use embassy_futures::block_on;
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fencegate::{Duration, Epoch, FenceRecord, HolderId, Instant};
use fencegate_node::{Board, Boot, DOMAIN, Entry, Gate, Inputs, Remembered, Step, Store, StoreError, Stored};
use fencegate_wire::{
    Answer, BaseKey, Challenge, Fault, GateId, Header, Nonce, Provisioning, Reason, Reply, Request, Role, Sealed,
    Unverified, seal,
};

/// A board that is no gate, and the line to it.
struct Blank {
    gate: Gate,
    entries: Vec<Entry>,
    storing: Result<(), StoreError>,
    restarted: bool,
    nonce: u64,
}

impl Blank {
    fn new(lost: bool) -> Self {
        let board = Board { outputs: 4, worst_store: WORST_STORE, drops: false };
        let gate = Gate::blank(board, lost, Instant::from_micros(0));
        Self { gate, entries: vec![], storing: Ok(()), restarted: false, nonce: 0 }
    }

    fn reply(&mut self, role: Role, challenge: Option<Challenge>, request: Request) -> Option<Answer> {
        self.nonce += 1;
        let now = Instant::from_micros(self.nonce);
        let gate = GateId::FACTORY;
        let header = Header { answer: false, role, key_id: 0, gate, nonce: Nonce(self.nonce.to_le_bytes()) };
        let keys = BaseKey::FACTORY.directions(DOMAIN);
        let mut frame = seal(&header, &keys.request, &Sealed { challenge, request }).unwrap().0.to_vec();
        let len = frame.len();
        self.gate.poll(now, Inputs::default());
        let mut step = self.gate.receive(now, &mut frame[1..len - 1]);
        if let Step::Store(pending) = step {
            let stored = self.storing.map(|()| {
                self.entries.push(pending.entry());
                Stored::read_back(pending.entry())
            });
            step = self.gate.stored(now, pending, stored);
        }
        self.restarted = matches!(step, Step::Restart(_));
        let (Step::Answer(mut frame) | Step::Restart(mut frame)) = step else { return None };
        let len = frame.len();
        Unverified::read(&mut frame[1..len - 1]).unwrap().verify(&keys.answer)?.body()
    }

    fn ask(&mut self, request: Request) -> Option<Reason> {
        let challenge = self.reply(Role::Operator, None, Request::Challenge).unwrap().challenge;
        verdict(&self.reply(Role::Operator, Some(challenge), request).unwrap().reply)
    }
}

fn last(provisioning: &Provisioning) -> Request {
    provisioning.requests().last().unwrap()
}

#[test]
fn a_blank_board_obeys_a_provisioning_and_nothing_else() {
    let mut blank = Blank::new(false);
    assert!(blank.reply(holder("a"), None, Request::Status).is_none(), "it knows one key, and one role");
    let Reply::Status(status) = blank.reply(Role::Operator, None, Request::Status).unwrap().reply else { panic!() };
    assert_eq!((status.channels, status.fault), (0, None));
    for request in [raise(0, 1), drive(0, 1, 1_000, &[1]), epoch(0, 1, 0), Request::Rearm { channel: 0 }] {
        assert_eq!(blank.ask(request), Some(Reason::NotProvisioned));
    }
    let whole = provisioning();
    assert_eq!(blank.ask(last(&whole)), Some(Reason::Range), "nothing has been described yet");
    for request in whole.requests() {
        assert_eq!(blank.ask(request), None);
    }
    assert!(blank.restarted);
    assert_eq!(blank.entries.len(), 4 + 3 + 1);
    assert!(matches!(blank.entries.last(), Some(Entry::Gate { channels: 3, outputs: 4, .. })));
}

#[test]
fn what_no_gate_could_work_with_is_refused() {
    let mut blank = Blank::new(false);
    let spoilt: [fn(&mut Provisioning); 3] =
        [|p| p.gate.raises.burst = 0, |p| p.outputs[0].safe = 7, |p| p.channels[1].outputs = 0];
    for spoil in spoilt {
        let mut whole = provisioning();
        spoil(&mut whole);
        assert!(whole.requests().any(|request| blank.ask(request) == Some(Reason::Range)));
        assert!(!blank.restarted);
    }
    let mut whole = provisioning();
    whole.gate.longest_window = Duration::from_millis(1);
    blank.storing = Err(StoreError::Incomplete); // what the store says of that, once it is all together
    for request in whole.requests() {
        assert_eq!(blank.ask(request), Some(Reason::Range));
    }
    let beyond = Request::SetOutput { output: 4, config: whole.outputs[0].clone() };
    assert_eq!(blank.ask(beyond), Some(Reason::Range), "the board has four outputs");
}

#[test]
fn a_flash_that_fails_makes_no_gate() {
    let mut blank = Blank::new(false);
    blank.storing = Err(StoreError::Flash);
    for request in provisioning().requests() {
        assert!(matches!(blank.ask(request), Some(Reason::Storage | Reason::Range)));
        assert!(!blank.restarted);
    }
}

/// What is stored of it already, marks that were raised among it, is read anew before anything else is done.
#[test]
fn a_flash_that_fails_at_the_end_of_a_provisioning_is_read_anew() {
    let (mut blank, whole) = (Blank::new(false), provisioning());
    for request in whole.requests().take(whole.requests().count() - 1) {
        assert_eq!((blank.ask(request), blank.restarted), (None, false));
    }
    blank.storing = Err(StoreError::Flash);
    assert_eq!((blank.ask(last(&whole)), blank.restarted), (Some(Reason::Storage), true));
}

#[test]
fn a_gate_whose_provisioning_is_lost_obeys_nothing() {
    let mut lost = Blank::new(true);
    let Reply::Status(status) = lost.reply(Role::Operator, None, Request::Status).unwrap().reply else { panic!() };
    assert_eq!(status.fault, Some(Fault::Storage));
    for request in provisioning().requests().take(7) {
        assert_eq!(lost.ask(request), Some(Reason::Storage));
    }
}

/// A second provisioning needs the operator's key and somebody beside the board, and cannot be played back.
#[test]
fn a_gate_is_provisioned_anew_only_with_somebody_beside_it() {
    let mut b = Bench::new();
    let mut other = provisioning();
    other.gate.keys.id = 1;
    for request in other.requests().take(7) {
        assert_eq!(b.ask(holder("a"), request.clone()), Some(Reason::Role));
        assert_eq!(b.ask(Role::Operator, request), Some(Reason::Presence));
    }
    b.inputs.presence = true;
    assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
    for request in other.requests().take(7) {
        assert_eq!(b.ask(Role::Operator, request), Some(Reason::Busy), "it may take more than one store");
    }
    b.at(60_000);
    let mut recorded = vec![];
    for request in other.requests() {
        if let Request::Provision { .. } = request {
            assert_eq!(b.ask(holder("a"), drive(0, 1, 60_000, &[1])), None);
            assert_eq!(b.pins()[0], 1);
        }
        let challenge = b.challenge(Role::Operator);
        let frame = b.seal(Role::Operator, Some(challenge), request);
        assert_eq!(b.send(Role::Operator, frame.clone()).unwrap().reply, Reply::Provisioned);
        recorded.push(frame);
    }
    assert_eq!(b.pins()[0], 0, "it lets go before it restarts");
    for frame in &recorded[..7] {
        let reply = b.send(Role::Operator, frame.clone()).unwrap().reply;
        assert_eq!(verdict(&reply), Some(Reason::Replay));
    }
}

/// After a rotation the old keys open nothing.
#[test]
fn another_key_id_or_instance_is_a_forgery() {
    let mut b = Bench::new();
    let mut rotated = Bench::with(|p| {
        p.gate.keys.id = 1;
        p.gate.keys.instance = 4;
    });
    let challenge = rotated.challenge(holder("a"));
    let frame = b.seal(holder("a"), Some(challenge), drive(0, 1, 1_000, &[1]));
    assert!(rotated.send(holder("a"), frame).is_none());
    assert_eq!((rotated.silent(), rotated.pins()[0]), ((0, 1), 0));
}

/// A flash whose power never fails.
struct Flash(Vec<u8>);

impl ErrorType for Flash {
    type Error = Infallible;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4_096;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        self.0[from as usize..to as usize].fill(0xff);
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        self.0[offset as usize..].iter_mut().zip(bytes).for_each(|(cell, byte)| *cell &= byte);
        Ok(())
    }
}

/// A store on a board that nobody has provisioned yet.
fn blank_store() -> Store<Flash> {
    let mut store = Store::new(Flash(vec![0xff; 4 * 4_096]));
    assert!(matches!(block_on(store.boot()), Boot::Blank));
    store
}

/// Stores a provisioning in its pieces, as the gate does; the marks that the boot after it finds.
fn provisioned(store: &mut Store<Flash>, provisioning: &Provisioning) -> Vec<Remembered> {
    for request in provisioning.requests() {
        let entry = match request {
            Request::SetOutput { output, config } => Entry::Output { output, config },
            Request::SetChannel { channel, config } => Entry::Channel { channel, config },
            Request::Provision { config, channels, outputs } => Entry::Gate { config, channels, outputs },
            other => panic!("{other:?}"),
        };
        let _ = block_on(store.put(&entry)).unwrap();
    }
    let Boot::Gate(found, memory) = block_on(store.boot()) else { panic!("no gate") };
    assert_eq!(found, *provisioning);
    block_on(store.count(memory.boots)).unwrap();
    memory.marks.to_vec()
}

/// For how long `b` has to wait for channel 1; `None` where it has got it.
fn wait(b: &mut Bench) -> Option<u64> {
    match b.reply(holder("b"), acquire(1, 1_000)) {
        Reply::Done { .. } => None,
        Reply::Refused(refused) if refused.reason == Reason::Held => Some(refused.wait.as_micros()),
        other => panic!("{other:?}"),
    }
}

/// ⌈60 s / (1 − 100 ppm)⌉: how long a lease of a minute lasts on the gate's clock.
const A_MINUTE: u64 = 60_006_001;

/// A lease of the gate's own is not lost by whoever provisions it anew while it runs, with an epoch or a floor above it.
#[test]
fn a_lease_outlives_a_provisioning_that_outranks_it() {
    for (epoch, floor) in [(Epoch(1), 0), (Epoch(0), 100)] {
        let mut store = blank_store();
        let mut b = Bench::new();
        b.marks = provisioned(&mut store, &b.provisioning);
        b.power_cut();
        assert_eq!(b.ask(holder("a"), acquire(1, 60_000)), None, "a new gate grants at once");
        let Remembered::Mark(mark) = b.marks[1] else { panic!("lost") };
        let _ = block_on(store.put(&Entry::Mark { channel: 1, mark })).unwrap();

        b.at(10_000);
        let mut next = provisioning();
        (next.channels[1].epoch, next.channels[1].floor) = (epoch, floor);
        b.marks = provisioned(&mut store, &next);
        b.provisioning = next;
        b.power_cut();
        assert_eq!(b.ask(holder("a"), renew(1, 1)), Some(Reason::Stale));
        let waited = b.now;
        assert_eq!(wait(&mut b).map(|wait| wait + waited), Some(A_MINUTE));
        b.at_us(A_MINUTE);
        let reply = b.reply(holder("b"), acquire(1, 1_000));
        let first = FenceRecord { epoch, token: floor + 1, holder: HolderId::new("b").ok(), released: false };
        assert!(matches!(reply, Reply::Done { record, .. } if record == first), "{reply:?}");
    }
}

/// A spare knows of the old gate what the operator says, an epoch or a floor: not whether a lease runs. So it waits for the
/// longest that there could be.
#[test]
fn a_spare_grants_nothing_before_the_old_gates_leases_are_over() {
    for (epoch, floor) in [(Epoch(8), 0), (Epoch(0), 100)] {
        let mut b = Bench::with(|spare| (spare.channels[1].epoch, spare.channels[1].floor) = (epoch, floor));
        b.marks = provisioned(&mut blank_store(), &b.provisioning);
        b.power_cut();
        let waited = b.now;
        assert_eq!(wait(&mut b).map(|wait| wait + waited), Some(A_MINUTE));
        b.power_cut();
        b.at_us(A_MINUTE - 1);
        assert_eq!(wait(&mut b), Some(1), "from the last boot");
        b.at_us(A_MINUTE);
        assert_eq!(wait(&mut b), None);
    }
}
