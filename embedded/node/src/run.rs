//! The task that feeds the gate: the line, the clock, the flash, the pins.

use crate::{Blank, Board, Boot, Gate, Step, Store};
use core::convert::Infallible;
use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embassy_futures::yield_now;
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::channel::Channel;
use embassy_time::Timer;
use embedded_hal::digital::{OutputPin, PinState};
use embedded_io_async::{Read, Write};
use embedded_storage_async::nor_flash::NorFlash;
use fencegate::{Duration, Instant};
use fencegate_wire::{Deframer, Frame, Framed};

/// How often an idle loop shows the watchdog that it still runs.
const PULSE: Duration = Duration::from_millis(500);

/// What the watchdog is loaded with while nothing is driven: a store, a boot and a few beats of [`PULSE`].
const HANG: Duration = Duration::from_secs(2);

/// One output of the board.
pub trait Output {
    /// Sets the output; for a pin, anything but 0 is high.
    fn set(&mut self, value: i32);
}

impl<P: OutputPin<Error = Infallible>> Output for P {
    fn set(&mut self, value: i32) {
        let Ok(()) = self.set_state(PinState::from(value != 0));
    }
}

/// A hardware watchdog: it resets the board, and thereby makes it safe, unless fed in time.
pub trait Watchdog {
    /// Loads the watchdog: the board MUST reset if this is not called again within `within`.
    fn feed(&mut self, within: Duration);
}

/// A board, as the gate sees it: a list of pins and promises. There is nothing in it about leases.
#[derive(Debug)]
pub struct Node<R, W, F, O, D, const N: usize> {
    /// What hosts say. A read MUST NOT lose bytes when it is dropped half-way.
    pub rx: R,
    /// What hosts hear. It may be as slow as it likes: nothing waits for it.
    pub tx: W,
    /// Flash for the gate alone: at least four erasable pages, words of 4 to 32 bytes. A read MUST be of the medium
    /// and past any cache.
    pub flash: F,
    /// The outputs, all of them in their safe state already, in the order of the provisioned channels.
    pub outputs: [O; N],
    /// The watchdog.
    pub watchdog: D,
    /// The longest that storing one record in both copies may take, erasing a page in each included. It MUST stay under
    /// two seconds, with which the watchdog is loaded while nothing is driven.
    pub worst_store: Duration,
}

/// Answers on their way to the line.
type Answers = Channel<NoopRawMutex, Frame, 4>;

/// Runs the gate for ever.
pub async fn run<R, W, F, O, D, const N: usize>(node: Node<R, W, F, O, D, N>) -> !
where
    R: Read,
    W: Write,
    F: NorFlash,
    O: Output,
    D: Watchdog,
{
    let Node { rx, mut tx, flash, outputs, watchdog, worst_store } = node;
    let answers = Answers::new();
    let answer = async {
        loop {
            let frame = answers.receive().await;
            let _ = tx.write_all(&frame).await; // a line that fails loses an answer, which the host asks for again
            let _ = tx.flush().await;
        }
    };
    let mut task = Task {
        rx,
        deframer: Deframer::new(),
        store: Store::new(flash),
        outputs,
        watchdog,
        board: Board { outputs: N, worst_store },
        answers: &answers,
    };
    join(answer, task.run()).await.0
}

struct Task<'a, R, F, O, D, const N: usize> {
    rx: R,
    deframer: Deframer,
    store: Store<F>,
    outputs: [O; N],
    watchdog: D,
    board: Board,
    answers: &'a Answers,
}

impl<R: Read, F: NorFlash, O: Output, D: Watchdog, const N: usize> Task<'_, R, F, O, D, N> {
    async fn run(&mut self) -> ! {
        loop {
            match self.store.boot().await {
                Boot::Gate(provisioning, memory) => {
                    let mut gate = Gate::new(provisioning, &memory, self.board, now());
                    self.gate(&mut gate).await;
                }
                Boot::Blank => self.blank(Blank::new(self.board, false)).await,
                Boot::Lost => self.blank(Blank::new(self.board, true)).await,
            }
        }
    }

    async fn gate(&mut self, gate: &mut Gate) -> ! {
        let mut bytes = [0; 64];
        loop {
            let wake = self.settle(gate);
            match select(self.rx.read(&mut bytes), Timer::at(alarm(wake))).await {
                Either::First(Ok(len)) => {
                    for byte in bytes.iter().take(len) {
                        self.hear(gate, *byte).await;
                    }
                    // A line that always has more to say must not keep the answers waiting.
                    yield_now().await;
                }
                Either::First(Err(_)) => {
                    gate.noise();
                    yield_now().await;
                }
                Either::Second(()) => {}
            }
        }
    }

    /// Takes one byte off the line.
    async fn hear(&mut self, gate: &mut Gate, byte: u8) {
        let mut step = match self.deframer.push(byte) {
            None => return,
            Some(Framed::Overlong) => {
                gate.noise();
                return;
            }
            Some(Framed::Frame(frame)) => {
                gate.poll(now());
                gate.receive(now(), frame)
            }
        };
        loop {
            self.settle(gate);
            step = match step {
                Step::Silent | Step::Provision(..) => return,
                Step::Answer(frame) => {
                    let _ = self.answers.try_send(frame); // a host that does not listen asks again
                    return;
                }
                Step::Store(pending) => {
                    // Never inside a `select`: a store that is dropped half-way is a power cut.
                    let proof = self.store.put_fence(pending.channel(), pending.record()).await.ok();
                    gate.poll(now());
                    gate.stored(now(), pending, proof)
                }
            };
        }
    }

    /// Lets go of what is over, sets the pins, and feeds the watchdog with no more than the shortest window has left;
    /// says when to come back.
    fn settle(&mut self, gate: &mut Gate) -> Instant {
        let now = now();
        let deadline = gate.poll(now);
        let values = gate.outputs().chain(core::iter::repeat(0));
        for (output, value) in self.outputs.iter_mut().zip(values) {
            output.set(value);
        }
        let pulse = now.checked_add(PULSE).unwrap_or(now);
        let left = deadline.and_then(|end| end.since(now).ok());
        // The gate's deadline lies L before the window's end: what is late by L still ends with the window.
        self.watchdog.feed(left.and_then(|left| left.checked_add(gate.lateness())).map_or(HANG, |left| left.min(HANG)));
        deadline.map_or(pulse, |end| end.min(pulse))
    }

    /// Waits for a first provisioning, and has it stored.
    async fn blank(&mut self, mut blank: Blank) {
        let mut bytes = [0; 64];
        loop {
            self.watchdog.feed(HANG);
            let wake = now().checked_add(PULSE).unwrap_or_default();
            let Either::First(Ok(len)) = select(self.rx.read(&mut bytes), Timer::at(alarm(wake))).await else {
                continue;
            };
            for byte in bytes.iter().take(len) {
                let step = match self.deframer.push(*byte) {
                    None => continue,
                    Some(Framed::Overlong) => {
                        blank.noise();
                        continue;
                    }
                    Some(Framed::Frame(frame)) => blank.receive(now(), frame),
                };
                match step {
                    Step::Answer(frame) => {
                        let _ = self.answers.try_send(frame);
                    }
                    Step::Provision(provisioning, answer) => {
                        // Without an answer the host asks again, and finds a board that is still blank.
                        if self.store.provision(&provisioning).await.is_ok() {
                            let _ = self.answers.try_send(answer);
                            return;
                        }
                    }
                    Step::Silent | Step::Store(_) => {}
                }
            }
        }
    }
}

/// The present on the board's clock.
fn now() -> Instant {
    // Past the end of the clock there is no later instant: whatever is driven is over.
    Instant::now_from_embassy(embassy_time::Instant::now()).unwrap_or(Instant::from_micros(u64::MAX))
}

fn alarm(at: Instant) -> embassy_time::Instant {
    at.try_into().unwrap_or(embassy_time::Instant::MAX)
}
