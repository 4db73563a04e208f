//! The store under power cuts at every byte, half-programmed and half-erased bits that read either way, and rot.
//!
//! A run prints its seed. `FENCEGATE_SEED=… cargo test -p fencegate-node store` repeats it, and `FENCEGATE_SOAK=1` cuts at
//! every position of everything that a gate does, through three full trips round the storage.
//!
//! Every position is: each byte of each write and of each erase (`nor.rs`). A word is torn in order of its bytes, or with each
//! of its bits done, begun or not begun; a page with its bits risen together, one after the other, or all but a few. Each
//! position once, with one throw of the dice for what is torn.

mod basics;
mod cleared;
mod cuts;
mod golden;
mod lost;
mod model;
mod nor;
mod provisioned;
mod rot;
mod second_reader;
mod wear;

use super::*;
use embassy_futures::block_on;
use fencegate::{Drift, Duration, GrantRecord, HolderId, Limits, RaiseBudget};
use fencegate_wire::{ChannelConfig, GateConfig, GateId, Key as Secret, Keyring, OutputConfig, SafeAction};
use nor::{Chip, Part, Random};
use std::cmp::Ordering;
use std::io::{Write as _, stderr};
use std::time::Instant;

/// A gate with two channels: a motor with its brake, and a relay. `variant` tells provisionings apart.
fn provisioning(variant: u8) -> Provisioning {
    let ms = Duration::from_millis;
    let motor =
        OutputConfig { min: -100, max: 100, action: SafeAction::Ramp { time: ms(300) }, ..OutputConfig::switch() };
    let brake =
        OutputConfig { powered: true, action: SafeAction::Hold { value: 1, time: ms(500) }, ..OutputConfig::switch() };
    let mut outputs = heapless::Vec::new();
    for output in
        [motor, brake, OutputConfig::switch(), OutputConfig::switch()].into_iter().take(3 + usize::from(variant % 2))
    {
        let _ = outputs.push(output);
    }
    let channel = ChannelConfig { outputs: 2, reaction: ms(20), ..ChannelConfig::new() };
    let mut channels = heapless::Vec::new();
    for channel in [channel, ChannelConfig::new(), ChannelConfig::new()].into_iter().take(2 + usize::from(variant % 2))
    {
        let _ = channels.push(channel);
    }
    let gate = GateConfig {
        gate: GateId(*b"press-07"),
        keys: Keyring { root: Secret::new([1; 32]), operator: Secret::new([2; 32]), instance: 3, id: variant },
        drift: Drift::from_ppm(100),
        lateness: ms(5),
        longest_window: Duration::from_secs(60),
        raises: RaiseBudget { burst: 5, every: Duration::from_secs(10) },
        epoch_jump: Limits::EPOCH_JUMP,
        warning: ms(200),
    };
    Provisioning { gate, channels, outputs }
}

/// What is put for a provisioning, in order.
fn entries(provisioning: &Provisioning) -> Vec<Entry> {
    let outputs = (0..).zip(&provisioning.outputs).map(|(output, c)| Entry::Output { output, config: c.clone() });
    let channels = (0..).zip(&provisioning.channels).map(|(channel, c)| Entry::Channel { channel, config: c.clone() });
    let count = |n: usize| u8::try_from(n).unwrap();
    let last = Entry::Gate {
        config: provisioning.gate.clone(),
        channels: count(provisioning.channels.len()),
        outputs: count(provisioning.outputs.len()),
    };
    outputs.chain(channels).chain([last]).collect()
}

fn provision<F: NorFlash>(store: &mut Store<F>, provisioning: &Provisioning) -> Result<(), StoreError> {
    for entry in entries(provisioning) {
        assert_eq!(block_on(store.put(&entry))?, Stored::read_back(entry));
    }
    Ok(())
}

fn mark(token: u64) -> GrantRecord {
    let holder = Some(HolderId::new("a").unwrap());
    let mark = FenceRecord { epoch: Epoch(0), token, holder, released: false };
    GrantRecord { mark, ttl: Duration::ZERO }
}

fn put<F: NorFlash>(store: &mut Store<F>, channel: u8, mark: GrantRecord) -> Result<(), StoreError> {
    let entry = Entry::Mark { channel, mark };
    block_on(store.put(&entry)).map(|stored| assert_eq!(stored, Stored::read_back(entry)))
}

/// Something that is latched after so many changes.
fn latched(serial: u32) -> Latched {
    let [inhibited, astray, ..] = serial.wrapping_mul(0x9e37_79b9).to_le_bytes();
    if serial == 0 { Latched::default() } else { Latched { serial, inhibited, astray } }
}

/// What a gate does before it hears anybody: where its latch is not sure, it is stored anew.
fn settle<F: NorFlash>(store: &mut Store<F>, memory: &Memory) -> Result<Latched, StoreError> {
    if !memory.unsure {
        return Ok(memory.latched);
    }
    let again = Latched { serial: memory.latched.serial + 1, ..memory.latched };
    block_on(store.put(&Entry::Latched(again))).map(|stored| {
        assert_eq!(stored, Stored::read_back(Entry::Latched(again)));
        again
    })
}

/// How far a run that takes hours is, on standard error, once a minute.
struct Progress {
    name: String,
    done: usize,
    all: usize,
    begun: Instant,
    said: Instant,
}

impl Progress {
    fn new(name: String, all: usize) -> Self {
        Self { name, done: 0, all, begun: Instant::now(), said: Instant::now() }
    }

    fn one(&mut self) {
        self.done += 1;
        if self.said.elapsed().as_secs() >= 60 {
            self.said = Instant::now();
            let Self { name, done, all, .. } = self;
            let _ = writeln!(stderr(), "{name}: {done} of {all} after {} s", self.begun.elapsed().as_secs());
        }
    }
}

/// A store on a chip that has power.
fn open<F: Part>(chip: Chip) -> Store<F> {
    Store::new(F::from(Chip { power: usize::MAX, dead: chip.dead.map(|_| false), ..chip }))
}

fn chip<F: Part>(store: Store<F>) -> Chip {
    store.logs.flash.into()
}

/// A gate, provisioned and counted for the first time.
fn gate<F: Part>() -> Chip {
    let mut store = open::<F>(Chip::erased::<F>());
    assert!(matches!(block_on(store.boot()), Boot::Blank));
    provision(&mut store, &provisioning(0)).unwrap();
    let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
    block_on(store.count(memory.boots)).unwrap();
    chip(store)
}

/// Boots from `flash`; what it found, and the flash afterwards.
fn boot<F: Part>(flash: Chip) -> (Boot, Chip) {
    let mut store = open::<F>(flash);
    (block_on(store.boot()), chip(store))
}

fn memory<F: Part>(flash: Chip) -> (Memory, Chip) {
    match boot::<F>(flash) {
        (Boot::Gate(found, memory), flash) => {
            assert_eq!(found, provisioning(0));
            (memory, flash)
        }
        (other, _) => panic!("{other:?}"),
    }
}

/// The mark of a channel, unless it is lost.
fn trusted(memory: &Memory, channel: usize) -> Option<GrantRecord> {
    match memory.marks[channel] {
        Remembered::Mark(record) => Some(record),
        Remembered::Lost(_) => None,
    }
}

fn all_trusted(memory: &Memory) -> bool {
    (0..memory.marks.len()).all(|channel| trusted(memory, channel).is_some())
}

fn all_lost(memory: &Memory) -> bool {
    (0..memory.marks.len()).all(|channel| trusted(memory, channel).is_none())
}

/// The seed of a run: the one that was asked for, or one that never comes again.
fn seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let new = since.map_or(0, |since| u64::from(since.subsec_nanos()));
    let seed = std::env::var("FENCEGATE_SEED").map_or(new, |seed| seed.parse().expect("FENCEGATE_SEED is a number"));
    println!("FENCEGATE_SEED={seed}");
    seed
}

fn soak() -> bool {
    std::env::var_os("FENCEGATE_SOAK").is_some()
}
