//! Instructions a call, counted by an emulator in which one instruction takes one nanosecond (QEMU, `-icount shift=0`),
//! and bytes of RAM a type.
//!
//! Each function is called through a pointer that the compiler cannot see through, ten thousand times, and what a
//! function that does nothing takes is taken off: what is left is the function's own, prologue included. A line is `kind`,
//! a tab, a name, a tab, a number; `cargo xtask bench` puts them in a table.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::ptr;
use fencegate::{
    Admitted, Deadline, Drift, Duration, Epoch, Fence, FenceRecord, GateTiming, HolderId, Instant, Limits, Pass, Plan,
    PlanInput, Proof, Stamp, Token, WindowInput,
};
use semihosting::println;

fencegate_bare::image!(count);

const ROUNDS: u32 = 10_000;
/// The timer runs at 25 MHz.
const NANOSECONDS_A_TICK: u64 = 40;

/// A free-running timer of the MPS2 boards (CMSDK timer 0), counting down.
mod timer {
    const CTRL: *mut u32 = 0x4000_0000 as *mut u32;
    const VALUE: *mut u32 = 0x4000_0004 as *mut u32;
    const RELOAD: *mut u32 = 0x4000_0008 as *mut u32;

    pub(super) fn start() {
        // SAFETY: registers of this board, and nothing else here uses that timer.
        unsafe {
            super::ptr::write_volatile(RELOAD, u32::MAX);
            super::ptr::write_volatile(VALUE, u32::MAX);
            super::ptr::write_volatile(CTRL, 1);
        }
    }

    pub(super) fn ticks() -> u32 {
        // SAFETY: as above; reading has no effect.
        u32::MAX - unsafe { super::ptr::read_volatile(VALUE) }
    }
}

/// What the functions are called with.
struct Inputs {
    fence: Fence,
    at: FenceRecord,
    stamp: Stamp,
    ttl: WindowInput,
    gate: GateTiming,
    plan: PlanInput,
    now: Instant,
    deadline: Deadline,
}

type Call = fn(&mut Inputs) -> u32;

#[inline(never)]
fn nothing(_: &mut Inputs) -> u32 {
    0
}

/// The hand-written minimum: two stamps by epoch, then token; equal is another answer than higher.
#[inline(never)]
fn bare(i: &mut Inputs) -> u32 {
    let (stamp, at) = (&i.stamp, &i.at);
    if stamp.epoch != at.epoch {
        return u32::from(stamp.epoch > at.epoch);
    }
    let token = stamp.token.get();
    if token < at.token {
        0
    } else if token > at.token {
        1
    } else {
        2
    }
}

/// The hand-written minimum where the stamps are equal: the holder too.
#[inline(never)]
fn bare_with_holder(i: &mut Inputs) -> u32 {
    match bare_inlined(i) {
        2 => 2 + u32::from(i.at.holder == Some(i.stamp.holder)),
        rank => rank,
    }
}

#[inline(always)]
fn bare_inlined(i: &Inputs) -> u32 {
    let (stamp, at) = (&i.stamp, &i.at);
    match (stamp.epoch, stamp.token.get()).cmp(&(at.epoch, at.token)) {
        core::cmp::Ordering::Less => 0,
        core::cmp::Ordering::Greater => 1,
        core::cmp::Ordering::Equal => 2,
    }
}

/// The fence's decision, and which it was.
#[inline(never)]
fn decide(i: &mut Inputs) -> u32 {
    match i.fence.admit(i.stamp) {
        Admitted::Refused(refused) => refused.reason as u32,
        Admitted::Raise(_) => 16,
        Admitted::Current(_) => 17,
    }
}

/// The decision with all that it answers, left in memory.
#[inline(never)]
fn decide_whole(i: &mut Inputs) -> u32 {
    let _ = black_box(i.fence.admit(i.stamp));
    0
}

/// A raise from the decision to the act, with a store that takes no time.
#[inline(never)]
fn raise(i: &mut Inputs) -> u32 {
    i.fence = Fence::new(i.at, Limits::default());
    let Admitted::Raise(raise) = i.fence.admit(i.stamp) else { return 0 };
    let proof = Proof::read_back(raise.record());
    let pass: Result<Pass, _> = i.fence.commit(raise, proof);
    u32::from(pass.is_ok_and(|pass| pass.act(i.now, i.deadline).is_ok()))
}

#[inline(never)]
fn window(i: &mut Inputs) -> u32 {
    i.ttl.window().is_ok_and(|window| black_box(window).safe).into()
}

#[inline(never)]
fn gate_window(i: &mut Inputs) -> u32 {
    black_box(i.gate.window(i.ttl.ttl)).is_ok().into()
}

#[inline(never)]
fn plan(i: &mut Inputs) -> u32 {
    black_box(i.plan.plan()).is_ok().into()
}

fn holder(name: &str) -> HolderId {
    HolderId::new(name).unwrap_or_else(|_| loop {})
}

fn stamp(epoch: u32, token: u64, name: &str) -> Stamp {
    Stamp { epoch: Epoch(epoch), token: Token::new(token).unwrap_or_else(|| loop {}), holder: holder(name) }
}

fn inputs() -> Inputs {
    let ours = stamp(1, 34, "press-a-longest1");
    let at = FenceRecord { epoch: ours.epoch, token: ours.token.get(), holder: Some(ours.holder), released: false };
    let ttl = Duration::from_secs(10);
    let drift = Drift::from_ppm(1_000);
    Inputs {
        fence: Fence::new(at, Limits::default()),
        at,
        stamp: ours,
        ttl: WindowInput::new(ttl, drift),
        gate: GateTiming {
            drift,
            lateness: Duration::from_millis(5),
            reaction: Duration::from_millis(1),
            longest_window: Duration::from_secs(60),
        },
        plan: Plan::for_ttl(ttl).drift(drift).round_trip(Duration::from_millis(5)),
        now: Instant::from_micros(1),
        deadline: Deadline::at(Instant::from_micros(2)),
    }
}

/// Nanoseconds of `ROUNDS` calls.
fn time(call: Call, inputs: &mut Inputs) -> u64 {
    let since = timer::ticks();
    for _ in 0..ROUNDS {
        black_box(black_box(call)(black_box(inputs)));
    }
    u64::from(timer::ticks().wrapping_sub(since)) * NANOSECONDS_A_TICK
}

fn count() {
    timer::start();
    let mut i = inputs();
    let empty = time(nothing, &mut i);
    let mut line = |name: &str, call: Call, set: &dyn Fn(&mut Inputs)| {
        i = inputs();
        set(&mut i);
        let own = time(call, &mut i) - empty;
        let rounds = u64::from(ROUNDS);
        println!("instructions\t{name}\t{}", (own + rounds / 2) / rounds);
    };
    let higher: &dyn Fn(&mut Inputs) = &|i| i.stamp = stamp(1, 35, "press-b-longest1");
    let lower: &dyn Fn(&mut Inputs) = &|i| i.stamp = stamp(1, 33, "press-a-longest1");
    let same: &dyn Fn(&mut Inputs) = &|_| {};
    let other: &dyn Fn(&mut Inputs) = &|i| i.stamp = stamp(1, 34, "press-a-longest2");
    line("two stamps compared by hand, higher", bare, higher);
    line("two stamps compared by hand, lower", bare, lower);
    line("two stamps and holders compared by hand, equal", bare_with_holder, same);
    line("`Fence::admit`, a higher stamp", decide, higher);
    line("`Fence::admit`, a lower stamp", decide, lower);
    line("`Fence::admit`, its own stamp", decide, same);
    line("`Fence::admit`, its own stamp of another holder", decide, other);
    line("`Fence::admit` with its whole answer in memory, a higher stamp", decide_whole, higher);
    line("`Fence::admit` with its whole answer in memory, a lower stamp", decide_whole, lower);
    line("`Fence::admit` with its whole answer in memory, its own stamp", decide_whole, same);
    line("`admit`, `commit`, `act`", raise, higher);
    line("`WindowInput::window`, TTL 10 s", window, same);
    line("`WindowInput::window`, the longest TTL", window, &|i| i.ttl.ttl = Duration::MAX_ANSWER);
    line("`GateTiming::window`, 10 s", gate_window, same);
    line("`PlanInput::plan`, TTL 10 s", plan, same);
    sizes();
    semihosting::process::exit(0)
}

fn sizes() {
    macro_rules! sizes {
        ($($type:ty),+ $(,)?) => {
            $(println!("bytes\t`{}`\t{}", stringify!($type), size_of::<$type>());)+
        };
    }
    sizes!(
        fencegate::Fence,
        fencegate::FenceRecord,
        fencegate::Limits,
        fencegate::Stamp,
        fencegate::HolderId,
        fencegate::Admitted,
        fencegate::Raise,
        fencegate::Pass,
        fencegate::Act,
        fencegate::Refused,
        fencegate::Deadline,
        fencegate::Monotonic,
        fencegate::WindowInput,
        fencegate::Window,
        fencegate::PlanInput,
        fencegate::Plan,
        fencegate::GateTiming,
        fencegate::Config,
        fencegate::Check,
    );
}
