//! Every public function of the core, called with inputs of which the compiler knows nothing: whatever a function can
//! reach is in this file. `tests/bare.rs` sees that none is left out, and looks at what has been linked.
//!
//! What is called is named in full, `Type::function`: so the test finds it. Only words are missing (`Display`, `Debug`):
//! the padding and slicing inside `core::fmt` itself has panics that nobody outside can take away, and whoever formats
//! on a microcontroller links them.

#![allow(clippy::wildcard_imports, reason = "every file names nearly everything that there is")]
#![allow(clippy::empty_loop, reason = "what cannot happen here must not bring a panic along")]
#![no_std]
#![no_main]

/// Calls functions and uses what they answer.
macro_rules! call {
    ($($call:expr),+ $(,)?) => {
        {
            $(let _ = any($call);)+
        }
    };
}

#[cfg(feature = "desk")]
mod desk;
mod fence;
mod lease;

use core::str::FromStr;
use fencegate::{
    BadHolderId, Deadline, Drift, Duration, Epoch, FenceRecord, HolderId, Instant, Monotonic, Stamp, Token,
};
use fencegate_bare::black_box as any;

fencegate_bare::image!(everything);

fn everything() {
    clocks();
    durations();
    embassy();
    stamps();
    fence::fences();
    lease::leases();
    #[cfg(feature = "desk")]
    desk::desk();
}

fn n() -> u64 {
    any(1)
}

fn us() -> Duration {
    any(Duration::ZERO)
}

fn at() -> Instant {
    any(Instant::from_micros(0))
}

fn deadline() -> Deadline {
    any(Deadline::at(at()))
}

fn drift() -> Drift {
    any(Drift::ZERO)
}

fn text() -> &'static str {
    any("press-a#9f3c")
}

fn holder() -> HolderId {
    any(HolderId::new(text())).unwrap_or_else(|_| loop {})
}

fn token() -> Token {
    any(Token::new(n())).unwrap_or_else(|| loop {})
}

fn stamp() -> Stamp {
    Stamp { epoch: any(Epoch(0)), token: token(), holder: holder() }
}

fn record() -> FenceRecord {
    any(FenceRecord { epoch: any(Epoch(0)), token: n(), holder: any(Some(holder())), released: any(false) })
}

fn durations() {
    call!(
        Duration::from_micros(n()),
        Duration::from_millis(any(1)),
        Duration::from_secs(any(1)),
        Duration::as_micros(us()),
        Duration::is_zero(us()),
        Duration::checked_add(us(), us()),
        Duration::checked_sub(us(), us()),
        Duration::less(us(), us()),
        Duration::floor_from(any(core::time::Duration::ZERO)),
        Duration::ceil_from(any(core::time::Duration::ZERO)),
        core::time::Duration::from(us()),
        us().cmp(&us()),
    );
    call!(
        Drift::from_ppb(n()),
        Drift::from_ppm(any(1)),
        Drift::as_ppb(drift()),
        Drift::of(drift(), us()),
        Drift::outlast(drift(), us()),
        drift() + drift(),
    );
}

fn clocks() {
    call!(
        Instant::from_micros(n()),
        Instant::as_micros(at()),
        Instant::checked_add(at(), us()),
        Instant::since(at(), at()),
        Deadline::at(at()),
        Deadline::after(at(), us()),
        Deadline::instant(deadline()),
        Deadline::left(deadline(), at()),
        Deadline::is_over(deadline(), at()),
    );
    let mut clock = any(Monotonic::new());
    call!(Monotonic::read(&mut clock, at()), clock);
}

fn embassy() {
    let (ticks, instant) = (any(embassy_time::Duration::MIN), any(embassy_time::Instant::MIN));
    call!(
        Duration::floor_from_embassy(ticks),
        Duration::ceil_from_embassy(ticks),
        Duration::floor_to_embassy(us()),
        Duration::ceil_to_embassy(us()),
        Instant::start_from_embassy(instant),
        Instant::now_from_embassy(instant),
        embassy_time::Instant::try_from(at()),
    );
}

fn stamps() {
    call!(
        HolderId::new(text()),
        HolderId::from_str(text()),
        HolderId::to_padded(holder()),
        HolderId::parse_padded(&any([0; HolderId::MAX_LEN])),
        HolderId::name(holder()),
        holder() == holder(),
        any(BadHolderId::Empty) == any(BadHolderId::TooLong),
        Token::new(n()),
        Token::get(token()),
        stamp() == stamp(),
    );
}
