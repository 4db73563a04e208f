//! The task that feeds the gate: the line, the clock, the flash, the pins.

use crate::boots::ThisBoot;
use crate::latched::Latched;
use crate::{Board, Contacts, Entry, Gate, Inputs, Memory, Step, Store, Unwired};
use core::convert::Infallible;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embassy_futures::yield_now;
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::channel::Channel;
use embassy_time::Timer;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use embedded_hal::pwm::SetDutyCycle;
use embedded_io_async::{Read, Write};
use embedded_storage_async::nor_flash::NorFlash;
use fencegate::{Duration, Instant};
use fencegate_wire::{ChannelState, Deframer, Frame, Framed, MAX_GATE_OUTPUTS};

/// How often an idle loop looks at the inputs, and shows the watchdog that it still runs.
const PULSE: Duration = Duration::from_millis(100);

/// What the watchdog is loaded with at the least while nothing is driven: many a [`PULSE`].
const HANG: Duration = Duration::from_secs(2);

/// The same, on a board whose stores take up to `worst_store`: twice that, so that one that is slower than it promised
/// still ends in an answer.
fn hang(worst_store: Duration) -> Duration {
    worst_store.checked_add(worst_store).map_or(HANG, |twice| twice.max(HANG))
}

/// What it is loaded with for what takes long and drives nothing: a boot, which reads all that was ever stored, its first
/// store, which may tidy up after a provisioning, and a provisioning. A watchdog that bites before it is over
/// makes a loop of boots that nobody can end.
const BOOT: Duration = Duration::from_secs(30);

/// One output of the board.
pub trait Output {
    /// Whether hardware ends what [`Self::hold`] begins: at `end` the output is 0, and with an open inhibit input at once,
    /// whatever the processor does. A store then need not wait for a longer window of another channel, and MUST not be able
    /// to hold that hardware up: neither by the flash nor with interrupts off.
    const DROPS: bool = false;

    /// Sets the output until further notice; for a pin, anything but 0 is high.
    fn set(&mut self, value: i32);

    /// Sets the output until `end` on embassy's clock at the latest; with the same `end` again it goes on. Only outputs for
    /// which 0 is safe are held; where [`Self::DROPS`] does not hold, `end` says nothing.
    fn hold(&mut self, value: i32, end: Instant) {
        let _ = end;
        self.set(value);
    }
}

impl<P: OutputPin<Error = Infallible>> Output for P {
    fn set(&mut self, value: i32) {
        let Ok(()) = self.set_state(PinState::from(value != 0));
    }
}

/// An output of several strengths: its duty cycle, from 0 to the most that it has. Any other value is 0: what the board
/// cannot do is no reason for full power.
#[derive(Clone, Copy, Debug)]
pub struct Duty<P>(pub P);

impl<P: SetDutyCycle<Error = Infallible>> Output for Duty<P> {
    fn set(&mut self, value: i32) {
        let most = self.0.max_duty_cycle();
        let duty = u16::try_from(value).ok().filter(|duty| *duty <= most).unwrap_or(0);
        let Ok(()) = self.0.set_duty_cycle(duty);
    }
}

/// A hardware watchdog: it resets the board, and thereby makes it safe, unless fed in time.
pub trait Watchdog {
    /// Loads the watchdog: the board MUST reset if this is not called again within `within`.
    fn feed(&mut self, within: Duration);
}

/// A lamp that shows what the gate does.
pub trait Lamp {
    /// Shows it; called at least ten times a second.
    fn show(&mut self, state: ChannelState);
}

impl Lamp for Unwired {
    fn show(&mut self, _: ChannelState) {}
}

/// A board, as the gate sees it: a list of pins and promises. There is nothing in it about leases.
#[derive(Debug)]
pub struct Node<R, W, F, O, D, I, P, C, L, const N: usize> {
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
    /// The inhibit input: high makes every output safe. Wire a normally closed contact to ground, with a pull-up, so that
    /// a broken wire inhibits. It is looked at every 10 ms while anything is driven, and at every frame.
    pub inhibit: I,
    /// Whether somebody is beside the board: high lets a gate be provisioned anew.
    pub presence: P,
    /// The contacts behind the outputs, for those that were provisioned with a feedback.
    pub contacts: C,
    /// What shows a person by the board how things stand.
    pub lamp: L,
    /// The longest that storing one entry in both copies may take, erasing a page in each included. While something is
    /// driven, a store that takes longer than that may end in the watchdog's reset, which is safe. (One that follows a failed
    /// one mends first what that has left, and waits for it until nothing is driven.)
    pub worst_store: Duration,
}

/// Answers on their way to the line: behind the one that is being written, two that wait.
type Answers = Channel<NoopRawMutex, Frame, 2>;

/// Runs the gate for ever.
pub async fn run<R, W, F, O, D, I, P, C, L, const N: usize>(node: Node<R, W, F, O, D, I, P, C, L, N>) -> !
where
    R: Read,
    W: Write,
    F: NorFlash,
    O: Output,
    D: Watchdog,
    I: InputPin<Error = Infallible>,
    P: InputPin<Error = Infallible>,
    C: Contacts,
    L: Lamp,
{
    let Node { rx, mut tx, flash, outputs, watchdog, inhibit, presence, contacts, lamp, worst_store } = node;
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
        pins: Pins { outputs, watchdog, inhibit, presence, contacts, lamp, hang: hang(worst_store) },
        board: Board { outputs: N, worst_store, drops: O::DROPS },
        carried: None,
        answers: &answers,
    };
    // Pinned where they are made: they are long, and would be moved otherwise, through the stack.
    join(pin!(answer), pin!(task.run())).await.0
}

struct Task<'a, R, F, O, D, I, P, C, L, const N: usize> {
    rx: R,
    deframer: Deframer,
    store: Store<F>,
    pins: Pins<O, D, I, P, C, L, N>,
    board: Board,
    /// What a gate that was provisioned anew had not stored of its faults.
    carried: Option<Latched>,
    answers: &'a Answers,
}

struct Pins<O, D, I, P, C, L, const N: usize> {
    outputs: [O; N],
    watchdog: D,
    inhibit: I,
    presence: P,
    contacts: C,
    lamp: L,
    /// What the watchdog is loaded with while nothing is driven.
    hang: Duration,
}

/// Whether the gate goes on as it is.
enum Then {
    GoOn,
    Restart,
}

impl<R, F, O, D, I, P, C, L, const N: usize> Task<'_, R, F, O, D, I, P, C, L, N>
where
    R: Read,
    F: NorFlash,
    O: Output,
    D: Watchdog,
    I: InputPin<Error = Infallible>,
    P: InputPin<Error = Infallible>,
    C: Contacts,
    L: Lamp,
{
    async fn run(&mut self) -> ! {
        loop {
            self.pins.watchdog.feed(BOOT);
            let mut gate = Gate::blank(self.board, false, now());
            let boot = Apart(pin!(self.boot(&mut gate))).await;
            Apart(pin!(self.gate(&mut gate, boot))).await;
        }
    }

    /// Makes a blank gate what the store says that it is, in place.
    async fn boot(&mut self, gate: &mut Gate) -> ThisBoot {
        let mut memory = Memory::nothing();
        let life = self.store.read(gate.config_mut(), &mut memory).await;
        // What came in the last store of the gate before is not forgotten with it.
        if let Some(latched) = self.carried.take() {
            (memory.latched, memory.unsure) = (memory.latched.or(latched), true);
        }
        gate.begin(life, &memory, now());
        ThisBoot::new(now(), memory.restless)
    }

    /// Runs the gate until it is to be another.
    async fn gate(&mut self, gate: &mut Gate, mut boot: ThisBoot) {
        let mut bytes = [0; 64];
        loop {
            let wake = self.pins.settle(gate);
            if let Some(entry) = gate.latch(now()) {
                self.latch(gate, entry).await;
                continue;
            }
            match select(self.rx.read(&mut bytes), Timer::at(alarm(wake))).await {
                Either::First(Ok(len)) => {
                    if !boot.is_counted() {
                        // Only now: a boot loop in which nobody speaks wears nothing out. And the later, the more boots
                        // there were: until then nobody is heard.
                        if !boot.may_be_counted(now()) {
                            yield_now().await;
                            continue;
                        }
                        self.count(gate).await;
                        boot.count();
                    }
                    for byte in bytes.iter().take(len) {
                        if let Then::Restart = self.hear(gate, *byte).await {
                            self.carried = gate.unlatched();
                            return;
                        }
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
            if let Some(boots) = boot.rest_due(now()).filter(|_| gate.is_safe()) {
                // Where that fails, the next boots are counted later than they need be.
                if gate.mends() {
                    self.pins.watchdog.feed(BOOT);
                }
                gate.takes(&self.store.rest(boots).await);
                boot.rest(boots);
            }
        }
    }

    /// Stores the boot counter, before any challenge is issued under it.
    async fn count(&mut self, gate: &mut Gate) {
        self.pins.watchdog.feed(BOOT);
        if let Some(boots) = gate.boots() {
            let counted = self.store.count(boots).await;
            gate.takes(&counted);
            if counted.is_err() {
                gate.not_counted(now());
            }
        }
    }

    /// Stores what is latched.
    async fn latch(&mut self, gate: &mut Gate, entry: Entry) {
        let stored = self.pins.watch(gate, pin!(self.store.put(&entry)), Duration::ZERO).await;
        let _ = gate.latched(now(), stored);
    }

    /// Takes one byte off the line.
    async fn hear(&mut self, gate: &mut Gate, byte: u8) -> Then {
        let mut step = match self.deframer.push(byte) {
            None => return Then::GoOn,
            Some(Framed::Overlong) => {
                gate.noise();
                return Then::GoOn;
            }
            Some(Framed::Frame(frame)) => {
                let now = self.pins.look(gate);
                gate.receive(now, frame)
            }
        };
        loop {
            self.pins.settle(gate);
            step = match step {
                Step::Silent => return Then::GoOn,
                Step::Answer(frame) => {
                    let _ = self.answers.try_send(frame); // a host that does not listen asks again
                    return Then::GoOn;
                }
                Step::Restart(frame) => {
                    let _ = self.answers.try_send(frame);
                    return Then::Restart;
                }
                Step::Store(pending) => {
                    let entry = pending.entry();
                    let least = match entry {
                        Entry::Output { .. } | Entry::Channel { .. } | Entry::Gate { .. } => BOOT,
                        Entry::Mark { .. } | Entry::Latched(_) => Duration::ZERO,
                    };
                    let stored = self.pins.watch(gate, pin!(self.store.put(&entry)), least).await;
                    let now = self.pins.look(gate);
                    gate.stored(now, pending, stored)
                }
            };
        }
    }
}

impl<O, D, I, P, C, L, const N: usize> Pins<O, D, I, P, C, L, N>
where
    O: Output,
    D: Watchdog,
    I: InputPin<Error = Infallible>,
    P: InputPin<Error = Infallible>,
    C: Contacts,
    L: Lamp,
{
    /// The inputs' levels.
    fn sense(&mut self) -> Inputs {
        let (Ok(inhibit), Ok(presence)) = (self.inhibit.is_high(), self.presence.is_high());
        let mut closed = 0;
        for output in 0..N.min(MAX_GATE_OUTPUTS) {
            closed |= u16::from(self.contacts.is_closed(output)) << output;
        }
        Inputs { inhibit, presence, closed }
    }

    /// Shows the gate its inputs, and then the time: what comes next comes at that instant, and not at a later one, by which
    /// a window would be over that the gate takes for open.
    fn look(&mut self, gate: &mut Gate) -> Instant {
        let inputs = self.sense();
        let now = now();
        gate.poll(now, inputs);
        now
    }

    /// Waits for a store, which is never dropped half-way: that would be a power cut. On a flash that lets others run while
    /// it works, windows end and inputs are looked at meanwhile. A store that never ends is a hang: the watchdog is fed for as
    /// long as it may take, which is `least` or more.
    async fn watch<T>(&mut self, gate: &mut Gate, mut store: Pin<&mut impl Future<Output = T>>, least: Duration) -> T {
        let may_take = self.hang.max(if gate.mends() { BOOT } else { least });
        if may_take > self.hang {
            self.watchdog.feed(may_take); // nothing is driven
        }
        let give_up = now().checked_add(may_take);
        let mut wake = now();
        loop {
            match select(store.as_mut(), Timer::at(alarm(wake))).await {
                Either::First(stored) => return stored,
                Either::Second(()) if give_up.is_some_and(|end| now() < end) => wake = self.settle(gate),
                Either::Second(()) => wake = self.set(gate, now()),
            }
        }
    }

    /// Sets the pins, and feeds the watchdog with no more than the shortest window has left; says when to come back.
    fn settle(&mut self, gate: &mut Gate) -> Instant {
        let now = now();
        let wake = self.set(gate, now);
        // The gate's deadline lies L before the window's end: what is late by L still ends with the window. By the reading of
        // the clock by which something is driven it is not over, however long the pins took.
        let left = gate.hang_by().and_then(|end| end.since(now).ok());
        self.watchdog.feed(left.map_or(self.hang, |left| left.min(self.hang)));
        wake
    }

    /// Lets go of what is over by `now`, and sets the pins; says when to come back.
    fn set(&mut self, gate: &mut Gate, now: Instant) -> Instant {
        let wake = gate.poll(now, self.sense());
        let values = gate.outputs().chain(core::iter::repeat(0));
        let ends = gate.ends().chain(core::iter::repeat(None));
        for ((output, value), end) in self.outputs.iter_mut().zip(values).zip(ends) {
            match end {
                Some(end) => output.hold(value, end),
                None => output.set(value),
            }
        }
        self.lamp.show(gate.shows());
        let pulse = now.checked_add(PULSE).unwrap_or(now);
        wake.map_or(pulse, |wake| wake.min(pulse))
    }
}

/// A future that is polled in a stack frame of its own, which is gone when something else is polled.
struct Apart<'a, F>(Pin<&'a mut F>);

impl<F: Future> Future for Apart<'_, F> {
    type Output = F::Output;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(cx)
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

#[cfg(test)]
mod tests {
    use super::*;
    use embedded_hal::pwm::ErrorType;

    struct Pwm(u16);

    impl ErrorType for Pwm {
        type Error = Infallible;
    }

    impl SetDutyCycle for Pwm {
        fn max_duty_cycle(&self) -> u16 {
            1_000
        }

        fn set_duty_cycle(&mut self, duty: u16) -> Result<(), Infallible> {
            self.0 = duty;
            Ok(())
        }
    }

    #[test]
    fn a_value_that_the_board_cannot_do_is_no_power() {
        let mut heater = Duty(Pwm(7));
        for (value, duty) in [(0, 0), (1, 1), (1_000, 1_000), (1_001, 0), (70_000, 0), (-1, 0), (i32::MAX, 0)] {
            heater.set(value);
            assert_eq!(heater.0.0, duty, "{value}");
        }
    }
}
