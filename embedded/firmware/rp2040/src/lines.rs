//! The two lines, UART0 and the USB serial port, as the one line that the gate knows.
//!
//! **Requests** are handed over a frame at a time, and the lines take turns: two hosts that speak at once do not garble each
//! other, and neither waits for more than one frame of the other's. What has come of a frame waits in its line's own buffer;
//! of junk that is longer than any frame only so much is kept as shows that it is.
//!
//! **Answers** go to the line that asked. The gate gives one answer to a frame, or none, and it begins to write it before it
//! reads on ([`fencegate_node::run`]). So an answer is for the line whose frame was handed over last, as long as no other
//! frame is taken before it has been put down: [`FromHosts`] sees to that.

use embassy_futures::select::{Either, select};
use embassy_futures::yield_now;
use embassy_rp::uart::{BufferedUartRx, BufferedUartTx, Error};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::mutex::Mutex;
use embedded_io_async::{ErrorType, Read, Write};
use static_cell::StaticCell;

use crate::usb::{self, FromUsb};

/// More bytes between two zeros than any frame has: there are 251 at the most (`embedded/wire/PROTOCOL.md`), and the gate
/// keeps 253 before it calls them too many.
const TOO_LONG: usize = 254;

/// One of the lines.
#[derive(Clone, Copy)]
enum Line {
    Uart,
    Usb,
}

/// Whose frame was handed over last. Locked while its answer is put down.
static ASKED: Mutex<CriticalSectionRawMutex, Line> = Mutex::new(Line::Uart);

/// What hosts say, on either line.
pub(crate) struct FromHosts {
    uart: Side<BufferedUartRx>,
    usb: Side<FromUsb>,
    /// Who is looked at first.
    turn: Line,
    /// Whose frame is being handed over.
    under_way: Option<Line>,
    /// A frame has been handed over, and its answer may not have begun yet.
    unanswered: bool,
}

impl FromHosts {
    /// Makes it of both, where it stays: it is long.
    ///
    /// # Panics
    ///
    /// The second time.
    pub(crate) fn new(uart: BufferedUartRx, usb: FromUsb) -> &'static mut Self {
        static LINES: StaticCell<FromHosts> = StaticCell::new();
        LINES.init_with(|| Self {
            uart: Side::new(uart),
            usb: Side::new(usb),
            turn: Line::Uart,
            under_way: None,
            unanswered: false,
        })
    }

    /// Waits for a whole frame, and makes its line the one that has asked. Dropped half-way, it has lost nothing.
    async fn frame(&mut self) -> Result<Line, Error> {
        if self.unanswered {
            // Whatever else runs in the gate's task has had its turn when this comes back: an answer has begun.
            yield_now().await;
            self.unanswered = false;
        }
        let line = match self.turn {
            Line::Uart => match select(self.uart.frame(), self.usb.frame()).await {
                Either::First(heard) => heard.map(|()| Line::Uart),
                Either::Second(Ok(())) => Ok(Line::Usb),
            },
            Line::Usb => match select(self.usb.frame(), self.uart.frame()).await {
                Either::First(Ok(())) => Ok(Line::Usb),
                Either::Second(heard) => heard.map(|()| Line::Uart),
            },
        };
        let Ok(line) = line else {
            self.turn = Line::Usb;
            return line;
        };
        *ASKED.lock().await = line;
        Ok(line)
    }
}

impl ErrorType for FromHosts {
    type Error = Error;
}

impl Read for FromHosts {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Error> {
        let line = match self.under_way {
            Some(line) => line,
            None => self.frame().await?,
        };
        self.under_way = Some(line);
        let (len, over) = match line {
            Line::Uart => self.uart.hand_over(bytes),
            Line::Usb => self.usb.hand_over(bytes),
        };
        if over {
            self.under_way = None;
            self.unanswered = true;
            self.turn = match line {
                Line::Uart => Line::Usb,
                Line::Usb => Line::Uart,
            };
        }
        Ok(len)
    }
}

/// What comes from one line.
struct Side<R> {
    rx: R,
    /// What was read last, and where the part begins and ends that was not looked at yet.
    piece: [u8; usb::PACKET],
    at: usize,
    end: usize,
    /// What there is of a frame, with the zero behind it once it is whole; how much, and how much of that was handed over.
    frame: [u8; TOO_LONG + 1],
    len: usize,
    gone: usize,
    whole: bool,
}

impl<R: Read> Side<R> {
    const fn new(rx: R) -> Self {
        let (piece, frame) = ([0; usb::PACKET], [0; TOO_LONG + 1]);
        Self { rx, piece, at: 0, end: 0, frame, len: 0, gone: 0, whole: false }
    }

    /// Waits until there is a whole frame. Dropped half-way, it has lost nothing.
    async fn frame(&mut self) -> Result<(), R::Error> {
        while !self.whole {
            if self.at == self.end {
                self.end = self.rx.read(&mut self.piece).await?;
                self.at = 0;
                // A line that always has more to say, and never a whole frame, keeps nobody waiting.
                yield_now().await;
            } else {
                self.take(self.piece[self.at]);
                self.at += 1;
            }
        }
        Ok(())
    }

    /// Takes one byte.
    fn take(&mut self, byte: u8) {
        if byte == 0 {
            self.whole = self.len > 0; // between two frames there are as many zeros as one likes
        } else if self.len == TOO_LONG {
            return;
        }
        if byte != 0 || self.whole {
            self.frame[self.len] = byte;
            self.len += 1;
        }
    }

    /// Hands over what fits of the frame; how much that was, and whether it was the last of it.
    fn hand_over(&mut self, bytes: &mut [u8]) -> (usize, bool) {
        let rest = &self.frame[self.gone..self.len];
        let len = rest.len().min(bytes.len());
        bytes[..len].copy_from_slice(&rest[..len]);
        self.gone += len;
        let over = self.gone == self.len;
        if over {
            (self.len, self.gone, self.whole) = (0, 0, false);
        }
        (len, over)
    }
}

/// What hosts hear, each on its own line.
pub(crate) struct ToHosts(BufferedUartTx);

impl ToHosts {
    /// Makes it of UART0; where the answers to USB go, [`usb::say`] knows.
    pub(crate) const fn new(uart: BufferedUartTx) -> Self {
        Self(uart)
    }
}

impl ErrorType for ToHosts {
    type Error = Error;
}

impl Write for ToHosts {
    /// Puts an answer down, all of it. UART0 makes room at its own speed, whether anybody listens or not; USB does not, so
    /// there it is all or nothing, at once.
    async fn write(&mut self, answer: &[u8]) -> Result<usize, Error> {
        let asked = ASKED.lock().await;
        match *asked {
            Line::Uart => self.0.write_all(answer).await?,
            Line::Usb => usb::say(answer),
        }
        Ok(answer.len())
    }

    /// Waits for nothing: both lines go on by themselves, and the gate would not answer the other one meanwhile.
    async fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
