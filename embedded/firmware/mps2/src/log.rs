//! The log: `defmt` frames on the host's standard output, through semihosting.
//!
//! A frame is put together in RAM and leaves in one call of the host (one that is longer than the buffer in several).
//! Interrupts are off for a piece of it at a time and not for all of it, so that no event makes the alarm late. What an
//! interrupt handler had to say while a frame is under way would be lost; none of this board's says anything. Whoever
//! takes the emulator's standard output must read it, or the emulator waits and the board with it.
//!
//! `cargo xtask gate --log` reads it. Last words do not pass through here: see [`crate::vectors`].

use core::cell::RefCell;

use critical_section::Mutex;
use defmt::Encoder;
use semihosting::io::{self, Stdout, Write as _};

/// Bytes that are collected before the host gets them.
const BUFFER: usize = 96;

/// Bytes that are encoded with interrupts off at a time.
const PIECE: usize = 4;

/// What is under way of a frame.
struct Line {
    /// How many frames have been begun and not ended: behind the first, those of handlers that interrupted it.
    depth: u8,
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
    depth: 0,
    encoder: Encoder::new(),
    outgoing: Outgoing { host: None, bytes: [0; BUFFER], len: 0 },
}));

// Microseconds since reset.
defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());

#[defmt::global_logger]
struct Logger;

// SAFETY: a frame that is under way is no other's to write to: what interrupts it runs to its end before it goes on, and
// until then the frames that it begins are counted and left out.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        on(|line| {
            line.depth = line.depth.saturating_add(1);
            line.alone(|encoder, outgoing| encoder.start_frame(|bytes| outgoing.push(bytes)));
        });
    }

    unsafe fn flush() {
        // The host has what it was given.
    }

    unsafe fn release() {
        on(|line| {
            line.alone(|encoder, outgoing| {
                encoder.end_frame(|bytes| outgoing.push(bytes));
                outgoing.send();
            });
            line.depth = line.depth.saturating_sub(1);
        });
    }

    unsafe fn write(bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            on(|line| line.alone(|encoder, outgoing| encoder.write(piece, |bytes| outgoing.push(bytes))));
        }
    }
}

fn on(step: impl FnOnce(&mut Line)) {
    critical_section::with(|cs| step(&mut LINE.borrow_ref_mut(cs)));
}

impl Line {
    /// Does `step` in the frame that was begun first.
    fn alone(&mut self, step: impl FnOnce(&mut Encoder, &mut Outgoing)) {
        if self.depth == 1 {
            step(&mut self.encoder, &mut self.outgoing);
        }
    }
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
