//! Instructions a call, counted by an emulator in which one instruction takes one nanosecond (QEMU, `-icount shift=0`),
//! and bytes of RAM a type.
//!
//! Each function is called through a pointer that the compiler cannot see through, ten thousand times, and what a
//! function that does nothing takes is taken off: what is left is the function's own, prologue included. A line is `kind`,
//! a tab, a name, a tab, a number; `cargo xtask bench` puts them in a table.

#![allow(clippy::comparison_chain, reason = "the baseline is the compare that one would write by hand")]
#![no_std]
#![no_main]

use core::cmp::Ordering;
use core::hint::black_box;
use fencegate::{
    Admitted, Deadline, Drift, Duration, Epoch, Fence, FenceRecord, GateTiming, Holder, HolderId, Instant, Limits,
    Output, Plan, PlanInput, Proof, Stamp, Token, WindowInput,
};
use fencegate_bare::timer::{self, NANOSECONDS_A_TICK};
use semihosting::println;

fencegate_bare::image!(count);

const ROUNDS: u32 = 10_000;
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
    work: Duration,
    holder: Holder,
}

type Call = fn(&mut Inputs) -> u32;

#[inline(never)]
fn nothing(_: &mut Inputs) -> u32 {
    0
}

/// The hand-written minimum: two stamps by epoch, then token, then holder; which it was.
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
        2 + u32::from(at.holder != Some(stamp.holder))
    }
}

/// The same, answering what whoever has to act on it needs: the mark that refused, or the new one and the old one that
/// it was decided on, or the stamp.
#[expect(dead_code, reason = "what is in it is written and not read")]
enum Answer {
    Refused(FenceRecord),
    Raise(FenceRecord, FenceRecord),
    Current(Stamp),
}

#[inline(never)]
fn bare_whole(i: &mut Inputs) -> u32 {
    let (stamp, at) = (&i.stamp, &i.at);
    let rank = (stamp.epoch, stamp.token.get()).cmp(&(at.epoch, at.token));
    let _ = black_box(match rank {
        Ordering::Equal if at.holder == Some(stamp.holder) => Answer::Current(*stamp),
        Ordering::Less | Ordering::Equal => Answer::Refused(*at),
        Ordering::Greater => {
            let (epoch, token, holder) = (stamp.epoch, stamp.token.get(), Some(stamp.holder));
            Answer::Raise(*at, FenceRecord { epoch, token, holder, released: false })
        }
    });
    0
}

/// The hand-written minimum of leave to act: the work ends before the deadline.
#[inline(never)]
fn bare_may_act(i: &mut Inputs) -> u32 {
    u32::from(i.now.as_micros() + i.work.as_micros() < i.deadline.instant().as_micros())
}

#[inline(never)]
fn may_act(i: &mut Inputs) -> u32 {
    i.holder.may_act(i.now, i.work).is_ok().into()
}

#[inline(never)]
fn poll(i: &mut Inputs) -> u32 {
    matches!(i.holder.poll(i.now), Output::Wait(_)).into()
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
    let pass = i.fence.commit(raise, proof);
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

fn stop(what: &str) -> ! {
    println!("wrong\t{what}\t0");
    semihosting::process::exit(1)
}

fn stamp(epoch: u32, token: u64, name: &str) -> Stamp {
    let holder = HolderId::new(name).unwrap_or_else(|_| stop("the name"));
    Stamp { epoch: Epoch(epoch), token: Token::new(token).unwrap_or_else(|| stop("the token")), holder }
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
        now: Instant::from_micros(2_000_000),
        deadline: Deadline::at(Instant::from_micros(9_990_000)),
        work: Duration::from_millis(200),
        holder: held(ours),
    }
}

/// A holder that has held its lease for two seconds.
fn held(stamp: Stamp) -> Holder {
    let plan =
        Plan::for_ttl(Duration::from_secs(10)).drift(Drift::from_ppm(1_000)).round_trip(Duration::from_millis(50));
    let schedule = plan.build().unwrap_or_else(|_| stop("the plan"));
    let mut holder = Holder::new(schedule, stamp.holder);
    let at = Instant::from_micros;
    let Output::SendAcquire(request) = holder.poll(at(0)) else { stop("the request") };
    holder.granted(at(50_000), request, stamp, None);
    let Output::Raise(_) = holder.poll(at(50_000)) else { stop("the raise") };
    holder.raised(at(60_000), stamp);
    holder
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
    let mut line = |what: &str, case: &str, call: Call, set: &dyn Fn(&mut Inputs)| {
        i = inputs();
        set(&mut i);
        let own = time(call, &mut i) - empty;
        let rounds = u64::from(ROUNDS);
        println!("instructions\t{what}: {case}\t{}", (own + rounds / 2) / rounds);
    };
    let higher: &dyn Fn(&mut Inputs) = &|i| i.stamp = stamp(1, 35, "press-b-longest1");
    let lower: &dyn Fn(&mut Inputs) = &|i| i.stamp = stamp(1, 33, "press-a-longest1");
    let same: &dyn Fn(&mut Inputs) = &|_| {};
    let other: &dyn Fn(&mut Inputs) = &|i| i.stamp = stamp(1, 34, "press-a-longest2");
    for (name, stamp) in
        [("a higher stamp", higher), ("a lower one", lower), ("its own", same), ("its own of another holder", other)]
    {
        line("compared by hand", name, bare, stamp);
        line("`Fence::admit`, matched", name, decide, stamp);
        line("answered by hand", name, bare_whole, stamp);
        line("`Fence::admit`, answer kept", name, decide_whole, stamp);
    }
    line("`admit`, `commit`, `act`", "a higher stamp", raise, higher);
    line("compared by hand", "leave to act", bare_may_act, same);
    line("`Holder::may_act`", "leave to act", may_act, same);
    line("`Holder::poll`", "nothing is due", poll, same);
    line("`WindowInput::window`", "TTL 10 s", window, same);
    line("`WindowInput::window`", "longest TTL", window, &|i| i.ttl.ttl = Duration::MAX_ANSWER);
    line("`GateTiming::window`", "10 s", gate_window, same);
    line("`PlanInput::plan`", "TTL 10 s", plan, same);
    sizes();
    semihosting::process::exit(0)
}

fn sizes() {
    macro_rules! sizes {
        ($($type:ty),+ $(,)?) => {
            $(println!("bytes\t`{}`\t{}", stringify!($type).trim_start_matches("fencegate::"), size_of::<$type>());)+
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
        fencegate::Schedule,
        fencegate::Holder,
        fencegate::Output,
        fencegate::Permit,
        fencegate::Grantor,
        fencegate::Granting,
        fencegate::Budget,
        fencegate::FenceTable<u32, 64>,
        fencegate::Config,
        fencegate::Check,
    );
}
