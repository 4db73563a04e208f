//! UART 0, the cable: two rings, filled and drained by interrupts.
//!
//! The device holds one byte each way. When the receive ring is full the byte stays in the device, and nothing is lost
//! as long as the other end waits, which QEMU does; on a wire the next byte would overrun it, and the frame would fail
//! its check value.

use core::{convert::Infallible, future::poll_fn, task::Poll};

use cortex_m::peripheral::NVIC;
use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, pipe::Pipe, waitqueue::AtomicWaker};
use embedded_io_async::{ErrorType, Read, Write};

use crate::regs::{CLOCK_HZ, Irq, UART0, Uart};

/// Bits a second. QEMU takes any rate and sends as fast as it can.
const BAUD: u32 = 115_200;
/// Clocks a bit.
pub(crate) const DIVIDER: u32 = CLOCK_HZ / BAUD;

/// Bytes that may come while the gate does something else: two frames.
static RECEIVED: Pipe<CriticalSectionRawMutex, 512> = Pipe::new();
/// Bytes of the answer that is on its way; the others wait in the gate.
static TO_SEND: Pipe<CriticalSectionRawMutex, 64> = Pipe::new();
/// Who waits in [`Tx::flush`] until the last byte has left.
static SENT: AtomicWaker = AtomicWaker::new();

/// The receiving half. It exists once.
pub(crate) struct Rx(());

/// The sending half. It exists once.
pub(crate) struct Tx(());

/// Switches the UART on. Called once, by `Board::take`, before its interrupts are enabled.
pub(crate) fn take() -> (Rx, Tx) {
    UART0.divider.write(DIVIDER);
    UART0.ctrl.write(Uart::CTRL_ON);
    (Rx(()), Tx(()))
}

/// The receive interrupt's handler.
///
/// It acknowledges first and looks afterwards, so a byte that comes in between interrupts again.
pub(crate) extern "C" fn on_receive() {
    UART0.interrupt.write(Uart::RX);
    while UART0.state.read() & Uart::RX_FULL != 0 && !RECEIVED.is_full() {
        let byte = UART0.data.read().to_le_bytes()[0];
        // There is room, and nobody else writes.
        let _ = RECEIVED.try_write(&[byte]);
    }
}

/// The transmit interrupt's handler; [`Tx::write`] starts it by hand.
///
/// It acknowledges first and looks afterwards, so a byte that leaves in between interrupts again.
pub(crate) extern "C" fn on_transmit() {
    UART0.interrupt.write(Uart::TX);
    let mut byte = [0];
    while !sending() && TO_SEND.try_read(&mut byte).is_ok() {
        UART0.data.write(u32::from(byte[0]));
    }
    if TO_SEND.is_empty() && !sending() {
        SENT.wake();
    }
}

/// Whether the device still holds a byte to send.
fn sending() -> bool {
    UART0.state.read() & Uart::TX_FULL != 0
}

impl ErrorType for Rx {
    type Error = Infallible;
}

impl Read for Rx {
    /// Waits for at least one byte. A future that is dropped has taken none.
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, Infallible> {
        if buf.is_empty() {
            return Ok(0);
        }
        let count = RECEIVED.read(buf).await;
        // There is room now: if a byte waits in the device since the ring was full, its interrupt has been
        // acknowledged already and is raised again by hand.
        if UART0.state.read() & Uart::RX_FULL != 0 {
            NVIC::pend(Irq::Uart0Rx);
        }
        Ok(count)
    }
}

impl ErrorType for Tx {
    type Error = Infallible;
}

impl Write for Tx {
    /// Waits for room for at least one byte. A future that is dropped has sent none.
    async fn write(&mut self, buf: &[u8]) -> Result<usize, Infallible> {
        if buf.is_empty() {
            return Ok(0);
        }
        let count = TO_SEND.write(buf).await;
        NVIC::pend(Irq::Uart0Tx);
        Ok(count)
    }

    /// Waits until every byte has left the device.
    async fn flush(&mut self) -> Result<(), Infallible> {
        poll_fn(|cx| {
            SENT.register(cx.waker());
            if TO_SEND.is_empty() && !sending() { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }
}
