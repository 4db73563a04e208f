//! The line of a Raspberry Pi Pico: UART0 on GPIO 0 and 1 at 115,200 baud, with nothing but the registers. On an M0+ without a
//! host's help there is no end of the questions; the power is cut.

use core::fmt;
use core::panic::PanicInfo;
use rp_pac::clocks::vals::{ClkPeriCtrlAuxsrc, ClkRefCtrlSrc};
use rp_pac::io::vals::{Gpio0ctrlFuncsel, Gpio1ctrlFuncsel};
use rp_pac::xosc::vals::{CtrlFreqRange, Enable};
use rp_pac::{CLOCKS, IO_BANK0, RESETS, UART0, XOSC};

/// The second stage of the boot, which makes the flash readable as memory and goes on behind itself. Sound: the section holds
/// nothing else, and is what the boot ROM takes for this (`pico.x`).
#[unsafe(link_section = ".boot2")]
#[used]
static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_W25Q080;

/// 12 MHz / (16 · (6 + 33/64)) is 115,108 baud.
const DIVIDER: (u16, u8) = (6, 33);

/// UART0. It exists once.
pub(crate) struct Line;

impl Line {
    /// Starts the crystal, and the port with it.
    pub(crate) fn open() -> Self {
        // 1 ms, in units of 256 of the crystal's 12 MHz.
        XOSC.startup().write(|w| w.set_delay(47));
        XOSC.ctrl().write(|w| {
            w.set_freq_range(CtrlFreqRange::_1_15MHZ);
            w.set_enable(Enable::ENABLE);
        });
        while !XOSC.status().read().stable() {}
        // The processor's clock follows this one from reset on, and the port's follows the processor's once it is switched on.
        CLOCKS.clk_ref_ctrl().write(|w| w.set_src(ClkRefCtrlSrc::XOSC_CLKSRC));
        while CLOCKS.clk_ref_selected().read() != 1 << ClkRefCtrlSrc::XOSC_CLKSRC.to_bits() {}
        CLOCKS.clk_peri_ctrl().write(|w| {
            w.set_auxsrc(ClkPeriCtrlAuxsrc::CLK_SYS);
            w.set_enable(true);
        });

        RESETS.reset().modify(|w| {
            w.set_io_bank0(false);
            w.set_pads_bank0(false);
            w.set_uart0(false);
        });
        loop {
            let done = RESETS.reset_done().read();
            if done.io_bank0() && done.pads_bank0() && done.uart0() {
                break;
            }
        }
        UART0.uartibrd().write(|w| w.set_baud_divint(DIVIDER.0));
        UART0.uartfbrd().write(|w| w.set_baud_divfrac(DIVIDER.1));
        // Eight bits, and FIFOs; this takes the divider over.
        UART0.uartlcr_h().write(|w| {
            w.set_wlen(0b11);
            w.set_fen(true);
        });
        UART0.uartcr().write(|w| {
            w.set_txe(true);
            w.set_rxe(true);
            w.set_uarten(true);
        });
        IO_BANK0.gpio(0).ctrl().write(|w| w.set_funcsel(Gpio0ctrlFuncsel::UART0_TX.to_bits()));
        IO_BANK0.gpio(1).ctrl().write(|w| w.set_funcsel(Gpio1ctrlFuncsel::UART0_RX.to_bits()));
        Self
    }

    /// The next byte, whenever it comes.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "another line may end, and has something to it")]
    pub(crate) fn read(&mut self) -> Option<u8> {
        while UART0.uartfr().read().rxfe() {}
        Some(UART0.uartdr().read().data())
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while UART0.uartfr().read().txff() {}
            UART0.uartdr().write(|w| w.set_data(byte));
        }
        Ok(())
    }
}

/// Of a line that never ends.
pub(crate) fn end() -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}

/// Says so, as a line of its own, to whoever waits for an answer.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = fmt::Write::write_fmt(&mut Line, format_args!("\n{info}\n"));
    end()
}
