//! The log: `defmt` frames on the host's standard output, through semihosting.
//!
//! A frame is put together in RAM and leaves in one call of the host (one that is longer than the buffer in several),
//! with interrupts off from its first byte to its last: some twenty bytes for an event. Whoever takes the emulator's
//! standard output must read it, or the emulator waits and the board with it.
//!
//! `cargo xtask gate --log` reads it. Last words do not pass through here: see [`crate::vectors`].

use core::cell::{Cell, RefCell};

use critical_section::{Mutex, RestoreState};
use defmt::Encoder;
use semihosting::io::{self, Stdout, Write as _};

/// Bytes that are collected before the host gets them.
const BUFFER: usize = 96;

/// What is under way of a frame.
struct Line {
    encoder: Encoder,
    outgoing: Outgoing,
}

/// Encoded bytes on their way to the host.
struct Outgoing {
    /// Opened with the first frame, and left open: the emulator closes none.
    host: Option<Stdout>,
    bytes: [u8; BUFFER],
    len: usize,
}

static LINE: Mutex<RefCell<Line>> = Mutex::new(RefCell::new(Line {
    encoder: Encoder::new(),
    outgoing: Outgoing { host: None, bytes: [0; BUFFER], len: 0 },
}));

/// How interrupts were before the frame that is under way.
static BEFORE: Mutex<Cell<RestoreState>> = Mutex::new(Cell::new(RestoreState::invalid()));

// Microseconds since reset.
defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());

#[defmt::global_logger]
struct Logger;

// SAFETY: from `acquire` to `release` nothing else runs, so a frame is never entered from another context; no code here
// logs while it writes, so it is never entered twice in the same one.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        // SAFETY: `release` restores it, and `defmt` calls that once for each `acquire`, nested in nothing else.
        let before = unsafe { critical_section::acquire() };
        critical_section::with(|cs| BEFORE.borrow(cs).set(before));
        on(|encoder, outgoing| encoder.start_frame(|bytes| outgoing.push(bytes)));
    }

    unsafe fn flush() {
        // The host has what it was given.
    }

    unsafe fn release() {
        on(|encoder, outgoing| {
            encoder.end_frame(|bytes| outgoing.push(bytes));
            outgoing.send();
        });
        let before = critical_section::with(|cs| BEFORE.borrow(cs).replace(RestoreState::invalid()));
        // SAFETY: it is what `acquire` was given.
        unsafe { critical_section::release(before) };
    }

    unsafe fn write(bytes: &[u8]) {
        on(|encoder, outgoing| encoder.write(bytes, |bytes| outgoing.push(bytes)));
    }
}

fn on(step: impl FnOnce(&mut Encoder, &mut Outgoing)) {
    critical_section::with(|cs| {
        let Line { encoder, outgoing } = &mut *LINE.borrow_ref_mut(cs);
        step(encoder, outgoing);
    });
}

impl Outgoing {
    fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.len == BUFFER {
                self.send();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }

    fn send(&mut self) {
        if self.host.is_none() {
            self.host = io::stdout().ok();
        }
        if let Some(host) = &mut self.host {
            // A log that the host does not take is no reason to stop.
            let _ = host.write_all(&self.bytes[..self.len]);
        }
        self.len = 0;
    }
}
