//! The calculator on a bare Cortex-M: one question a line, one answer a line.
//!
//! ```text
//! plan ttl_us drift_ppb rtt_us send|grant clock_offset_us attempts work_us pause_us poll_us
//! window ttl_us drift_ppb rtt_us send|grant clock_offset_us
//! ```
//!
//! The answer is the outputs in the contract's order, `error FIELD`, or `what?`. `cargo run --release` in this folder
//! lets a person ask, on the Cortex-M3 of an emulated MPS2. With the feature `pico` it is an image for the Cortex-M0+ of a
//! Raspberry Pi Pico, and questions and answers go over its UART.

#![no_std]
#![no_main]

#[cfg(feature = "pico")]
#[path = "pico.rs"]
mod line;
#[cfg(not(feature = "pico"))]
#[path = "semihosted.rs"]
mod line;

use core::fmt::{self, Write};
use cortex_m as _; // the critical section
use fencegate::{Drift, Duration, OutOfRange, Plan, PlanInput, Start, Window};
use line::Line;

/// The longest question: nine numbers of twenty digits.
const LINE: usize = 256;

#[cortex_m_rt::entry]
fn main() -> ! {
    let mut line = Line::open();
    let mut question = [0; LINE];
    let mut len = 0;
    while let Some(byte) = line.read() {
        match (byte, question.get_mut(len)) {
            (b'\n', _) => {
                let asked = core::str::from_utf8(&question[..len]).unwrap_or_default();
                answer(asked, &mut line).expect("the line takes what it is given");
                len = 0;
            }
            (byte, Some(slot)) => {
                *slot = byte;
                len += 1;
            }
            (_, None) => panic!("a question has at most {LINE} bytes"),
        }
    }
    line::end()
}

fn answer(question: &str, line: &mut Line) -> fmt::Result {
    let mut words = question.split(' ');
    let call = words.next();
    match (call, input(words)) {
        (Some("plan"), Some(input)) => show(line, input.plan().map(|plan| plan_figures(&plan))),
        (Some("window"), Some(input)) => show(line, input.lease().window().map(|window| window_figures(&window))),
        _ => writeln!(line, "what?"),
    }
}

/// The numbers of a question; what a `window` leaves out has its default.
fn input<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<PlanInput> {
    let mut number = || words.next().map(|word| word.parse::<u64>().ok());
    let mut input = Plan::for_ttl(Duration::from_micros(number()??)).drift(Drift::from_ppb(number()??));
    input.rtt = Duration::from_micros(number()??);
    input.start = match words.next()? {
        "send" => Start::Send,
        "grant" => Start::Grant,
        _ => return None,
    };
    let mut number = || words.next().map_or(Some(None), |word| word.parse::<u64>().ok().map(Some));
    input.clock_offset = Duration::from_micros(number()??);
    input.attempts = number()?.unwrap_or(3);
    input.work = Duration::from_micros(number()?.unwrap_or(0));
    input.pause = Duration::from_micros(number()?.unwrap_or(0));
    input.poll = Duration::from_micros(number()?.unwrap_or(0));
    words.next().is_none().then_some(input)
}

fn plan_figures(plan: &Plan) -> [u64; 12] {
    [
        plan.margin.as_micros(),
        plan.window.as_micros(),
        plan.safe.into(),
        plan.heartbeat.as_micros(),
        plan.sustainable.into(),
        plan.renewals_in_window,
        plan.cancel_after.as_micros(),
        plan.misses_before_cancel,
        plan.stall_tolerance.as_micros(),
        plan.work_deadline.as_micros(),
        plan.takeover.as_micros(),
        plan.renewals_per_hour,
    ]
}

fn window_figures(window: &Window) -> [u64; 3] {
    [window.margin.as_micros(), window.window.as_micros(), window.safe.into()]
}

fn show<const N: usize>(line: &mut Line, figures: Result<[u64; N], OutOfRange>) -> fmt::Result {
    match figures {
        Ok(figures) => {
            figures.iter().try_for_each(|figure| write!(line, "{figure} "))?;
            writeln!(line)
        }
        Err(error) => writeln!(line, "error {}", error.field()),
    }
}
