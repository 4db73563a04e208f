//! The USB serial port (CDC-ACM): a second line to the gate, beside UART0.
//!
//! A host that opens the port and never reads holds nothing up: one packet waits in the controller, some answers in a buffer
//! behind it, and what finds no room there is dropped whole, for its host to ask again. Nor does a host that never stops
//! writing: the controller turns packets away until the last one has been read.
//!
//! While the flash erases, interrupts are off and nobody answers the host; the controller makes it wait by itself. A host
//! waits for seconds before it gives a device up.

use core::convert::Infallible;

use embassy_futures::join::join;
use embassy_rp::Peri;
use embassy_rp::peripherals::USB;
use embassy_rp::usb::{Driver, InterruptHandler};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::pipe::Pipe;
use embassy_usb::class::cdc_acm::{CdcAcmClass, Receiver, Sender, State};
use embassy_usb::{Builder, Config, UsbDevice};
use embedded_io_async::{ErrorType, Read};
use static_cell::StaticCell;

/// The test id of <https://pid.codes>, which anybody may use on his own desk and nobody may ship: a product needs its own.
const VENDOR: u16 = 0x1209;
const PRODUCT: u16 = 0x0001;

/// Bytes of a packet: the most that a bulk endpoint at full speed may have.
pub(crate) const PACKET: usize = 64;

/// Answers that wait for the host, in bytes: two of the longest.
const TO_SEND: usize = 512;

static ANSWERS: Pipe<CriticalSectionRawMutex, TO_SEND> = Pipe::new();

type Usb = Driver<'static, USB>;

embassy_rp::bind_interrupts!(struct Irqs {
    USBCTRL_IRQ => InterruptHandler<USB>;
});

/// The port's own half: it answers the host's system, and sends what is to be sent. It exists once.
pub(crate) struct Port {
    device: UsbDevice<'static, Usb>,
    to_host: Sender<'static, Usb>,
}

/// Makes the port, where it stays, and what comes out of it.
///
/// # Panics
///
/// The second time.
pub(crate) fn port(usb: Peri<'static, USB>) -> (&'static mut Port, FromUsb) {
    static CONFIGURATION: StaticCell<[u8; 128]> = StaticCell::new();
    static BINARY_OBJECTS: StaticCell<[u8; 16]> = StaticCell::new();
    static CONTROL: StaticCell<[u8; PACKET]> = StaticCell::new();
    static PORT: StaticCell<Port> = StaticCell::new();
    static STATE: StaticCell<State<'static>> = StaticCell::new();

    let mut config = Config::new(VENDOR, PRODUCT);
    config.product = Some("fencegate");
    let mut builder = Builder::new(
        Driver::new(usb, Irqs),
        config,
        CONFIGURATION.init([0; 128]),
        BINARY_OBJECTS.init([0; 16]),
        &mut [],
        CONTROL.init([0; PACKET]),
    );
    #[expect(clippy::cast_possible_truncation, reason = "it is 64")]
    let packet = PACKET as u16;
    let (to_host, from_host) = CdcAcmClass::new(&mut builder, STATE.init(State::new()), packet).split();
    (PORT.init_with(|| Port { device: builder.build(), to_host }), FromUsb(from_host))
}

impl Port {
    /// Runs it for ever.
    pub(crate) async fn run(&mut self) -> ! {
        let send = async {
            // Less than a packet holds: after a full one the host's system would wait for more before it passed it on.
            let mut packet = [0; PACKET - 1];
            loop {
                self.to_host.wait_connection().await;
                let len = ANSWERS.read(&mut packet).await;
                // Where the cable was pulled meanwhile, an answer is lost, which its host asks for again.
                let _ = self.to_host.write_packet(&packet[..len]).await;
            }
        };
        join(self.device.run(), send).await.0
    }
}

/// Says something to the host if there is room for all of it, and else nothing.
pub(crate) fn say(answer: &[u8]) {
    if ANSWERS.free_capacity() < answer.len() {
        return;
    }
    let mut rest = answer;
    while let Ok(len @ 1..) = ANSWERS.try_write(rest) {
        rest = &rest[len..]; // it comes round to the buffer's begin
    }
}

/// What the host says.
pub(crate) struct FromUsb(Receiver<'static, Usb>);

impl ErrorType for FromUsb {
    type Error = Infallible;
}

impl Read for FromUsb {
    /// Reads a packet, for which there must be room. Dropped half-way, it has lost nothing: a packet stays in the controller
    /// until it is copied.
    async fn read(&mut self, packet: &mut [u8]) -> Result<usize, Infallible> {
        loop {
            self.0.wait_connection().await;
            if let Ok(len @ 1..) = self.0.read_packet(packet).await {
                return Ok(len);
            }
        }
    }
}
