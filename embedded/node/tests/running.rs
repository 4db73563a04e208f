//! The task of a board, on a clock that runs: what it feeds its watchdog with while its flash does what it should not.

mod bench;

use bench::*;
use core::convert::Infallible;
use core::future::pending;
use embassy_futures::select::{Either, select};
use embassy_futures::{block_on, yield_now};
use embassy_time::Timer;
use embedded_hal::digital::{self, InputPin, OutputPin};
use embedded_io_async::{ErrorType, Read, Write};
use embedded_storage_async::nor_flash::{self, NorFlash, NorFlashErrorKind, ReadNorFlash};
use fencegate::Duration;
use fencegate_node::{Entry, Node, Store, Unwired, Watchdog, run};
use fencegate_wire::{Answer, Fault, Reason, Reply, Request, Role};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration as Span, Instant};

/// What a write or an erase comes to.
#[derive(Clone, Copy, Debug)]
enum Works {
    Well,
    Not,
    /// For ever.
    On,
}

/// What the board and whoever stands around it share.
#[derive(Clone)]
struct World {
    cells: Rc<RefCell<Vec<u8>>>,
    works: Rc<Cell<Works>>,
    there: Rc<RefCell<VecDeque<u8>>>,
    back: Rc<RefCell<VecDeque<u8>>>,
    fed: Rc<RefCell<Vec<(Instant, Duration)>>>,
    inhibit: Rc<Cell<bool>>,
    /// What is read of the inputs once the line has brought all that is on it takes until then.
    senses_until: Rc<Cell<Option<Instant>>>,
    pins: Rc<RefCell<[bool; 4]>>,
}

impl World {
    fn new() -> Self {
        Self {
            cells: Rc::new(RefCell::new(vec![0xff; 4 * 4096])),
            works: Rc::new(Cell::new(Works::Well)),
            there: Rc::default(),
            back: Rc::default(),
            fed: Rc::default(),
            inhibit: Rc::default(),
            senses_until: Rc::default(),
            pins: Rc::default(),
        }
    }

    async fn work(&self) -> Result<(), NorFlashErrorKind> {
        match self.works.get() {
            Works::Well => Ok(()),
            Works::Not => Err(NorFlashErrorKind::Other),
            Works::On => pending().await,
        }
    }

    /// The board's task, and beside it what happens to it.
    fn lives(&self, bench: &Bench, happens: impl Future<Output = ()>) {
        let (provisioning, count) = (&bench.provisioning, |n: usize| u8::try_from(n).unwrap());
        let outputs = (0..).zip(&provisioning.outputs).map(|(output, c)| Entry::Output { output, config: c.clone() });
        let channels =
            (0..).zip(&provisioning.channels).map(|(channel, c)| Entry::Channel { channel, config: c.clone() });
        let (config, channels, outputs) =
            (provisioning.gate.clone(), channels.collect::<Vec<_>>(), outputs.collect::<Vec<_>>());
        let last = Entry::Gate { config, channels: count(channels.len()), outputs: count(outputs.len()) };
        let mut store = Store::new(self.clone());
        let _ = block_on(store.boot());
        for entry in outputs.iter().chain(&channels).chain([&last]) {
            let _ = block_on(store.put(entry)).unwrap();
        }
        let node = Node {
            rx: self.clone(),
            tx: self.clone(),
            flash: self.clone(),
            outputs: [0, 1, 2, 3].map(|n| Pin(self.clone(), n)),
            watchdog: self.clone(),
            inhibit: self.clone(),
            presence: Unwired,
            contacts: Unwired,
            lamp: Unwired,
            worst_store: Duration::from_millis(20),
        };
        match block_on(select(run(node), happens)) {
            Either::First(never) => never,
            Either::Second(()) => {}
        }
    }

    /// Asks, and waits for the answer.
    async fn ask(&self, bench: &mut Bench, role: Role, request: Request) -> Reply {
        let frame = bench.seal(role, None, Request::Challenge);
        let challenge = self.answer(bench, role, &frame).await.challenge;
        let frame = bench.seal(role, Some(challenge), request);
        self.answer(bench, role, &frame).await.reply
    }

    async fn answer(&self, bench: &Bench, role: Role, frame: &[u8]) -> Answer {
        self.there.borrow_mut().extend(frame);
        let mut answer = vec![];
        while answer.len() < 2 || answer.last() != Some(&0) {
            answer.extend(self.back.borrow_mut().drain(..));
            yield_now().await;
        }
        bench.open(role, answer).unwrap()
    }
}

impl nor_flash::ErrorType for World {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for World {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        let at = offset as usize;
        bytes.copy_from_slice(&self.cells.borrow()[at..at + bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.cells.borrow().len()
    }
}

impl NorFlash for World {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        self.work().await?;
        self.cells.borrow_mut()[from as usize..to as usize].fill(0xff);
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        self.work().await?;
        let mut cells = self.cells.borrow_mut();
        cells[offset as usize..].iter_mut().zip(bytes).for_each(|(cell, byte)| *cell &= byte);
        Ok(())
    }
}

impl ErrorType for World {
    type Error = Infallible;
}

impl Read for World {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        while self.there.borrow().is_empty() {
            yield_now().await;
        }
        let mut there = self.there.borrow_mut();
        let len = there.len().min(bytes.len());
        bytes.iter_mut().zip(there.drain(..len)).for_each(|(to, byte)| *to = byte);
        Ok(len)
    }
}

impl Write for World {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.back.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Watchdog for World {
    fn feed(&mut self, within: Duration) {
        self.fed.borrow_mut().push((Instant::now(), within));
    }
}

impl digital::ErrorType for World {
    type Error = Infallible;
}

impl InputPin for World {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        if self.there.borrow().is_empty()
            && let Some(until) = self.senses_until.take()
        {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        }
        Ok(self.inhibit.get())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.inhibit.get())
    }
}

struct Pin(World, usize);

impl digital::ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.pins.borrow_mut()[self.1] = false;
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.pins.borrow_mut()[self.1] = true;
        Ok(())
    }
}

/// A store that never ends is a hang: the watchdog is fed for it for two seconds and no longer, and what is driven meanwhile
/// still ends with its window.
#[test]
fn a_store_that_never_ends_is_a_hang() {
    let (world, mut bench) = (World::new(), Bench::new());
    world.clone().lives(&Bench::new(), async {
        let driven = world.ask(&mut bench, holder("a"), drive(0, 1, 3_000, &[1])).await;
        assert_eq!((verdict(&driven), world.pins.borrow()[0]), (None, true));
        world.works.set(Works::On);
        let frame = bench.seal(holder("b"), None, Request::Challenge);
        let challenge = world.answer(&bench, holder("b"), &frame).await.challenge;
        world.there.borrow_mut().extend(bench.seal(holder("b"), Some(challenge), raise(2, 1)));
        let begun = Instant::now();
        Timer::after_secs(1).await;
        assert!(world.pins.borrow()[0]);
        Timer::after_secs(4).await;
        assert!(!world.pins.borrow()[0], "the window is over");
        let last = world.fed.borrow().last().unwrap().0;
        assert!(last > begun && last < begun + Span::from_millis(3_500), "{:?}", last - begun);
    });
}

/// A boot that could not be counted has left half a record. What is latched in it is stored once that is mended, for which the
/// watchdog leaves as much time as for a boot; nothing is driven.
#[test]
fn what_is_latched_after_a_failed_count_has_the_time_to_mend() {
    let (world, mut bench) = (World::new(), Bench::new());
    world.clone().lives(&Bench::new(), async {
        Timer::after_millis(300).await; // it has booted
        world.works.set(Works::Not);
        let refused = world.ask(&mut bench, holder("a"), drive(0, 1, 3_000, &[1])).await;
        assert_eq!(verdict(&refused), Some(Reason::Storage));
        world.works.set(Works::Well);
        world.fed.borrow_mut().clear();
        world.inhibit.set(true);
        Timer::after_millis(500).await;
        let longest = world.fed.borrow().iter().map(|(_, within)| *within).max();
        assert_eq!(longest, Some(Duration::from_secs(30)));
    });
    // The next boot finds the stop as it was latched.
    let world = World { inhibit: Rc::default(), ..world };
    let mut store = Store::new(world);
    let fencegate_node::Boot::Gate(provisioning, memory) = block_on(store.boot()) else { panic!("no gate") };
    let gate = fencegate_node::Gate::new(
        provisioning,
        &memory,
        fencegate_node::Board { outputs: 4, worst_store: WORST_STORE, drops: false },
        fencegate::Instant::from_micros(0),
    );
    bench.gate = gate;
    assert_eq!(bench.status(0).fault, Some(Fault::Inhibited));
}

/// A window that ends between two readings of the clock has ended for whatever is asked at the second: no drive slips in
/// between.
#[test]
fn a_window_that_ends_while_a_frame_is_taken_has_ended_before_it() {
    let world = World::new();
    let mut bench = Bench::with(|p| p.channels[0].rearm_after_window = true);
    world.clone().lives(&Bench::with(|p| p.channels[0].rearm_after_window = true), async {
        assert_eq!(verdict(&world.ask(&mut bench, Role::Operator, Request::Rearm { channel: 0 }).await), None);
        let driven = world.ask(&mut bench, holder("a"), drive(0, 1, 500, &[1])).await;
        let ended = Instant::now() + Span::from_millis(500);
        assert_eq!((verdict(&driven), world.pins.borrow()[0]), (None, true));
        let challenge = bench.seal(holder("a"), None, Request::Challenge);
        let challenge = world.answer(&bench, holder("a"), &challenge).await.challenge;
        let again = bench.seal(holder("a"), Some(challenge), drive(0, 1, 60_000, &[1]));
        world.there.borrow_mut().extend(&again);
        world.senses_until.set(Some(ended));
        let again = world.answer(&bench, holder("a"), &[]).await;
        assert_eq!((verdict(&again.reply), world.pins.borrow()[0]), (Some(Reason::Fault), false));
    });
}
