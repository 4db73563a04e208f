//! What every image here is made of: a way in, a panic that leaves its mark in the file, and inputs of which the compiler
//! knows nothing.

#![no_std]

#[cfg(target_arch = "arm")]
use cortex_m as _; // the critical section

pub use core::hint::black_box;

/// A free-running timer of the MPS2 boards (CMSDK timer 0), counting down. Where an instruction takes a nanosecond, it
/// counts them.
#[cfg(target_arch = "arm")]
pub mod timer {
    use core::ptr;

    /// It runs at 25 MHz.
    pub const NANOSECONDS_A_TICK: u64 = 40;

    const CTRL: *mut u32 = 0x4000_0000 as *mut u32;
    const VALUE: *mut u32 = 0x4000_0004 as *mut u32;
    const RELOAD: *mut u32 = 0x4000_0008 as *mut u32;

    /// Starts it.
    pub fn start() {
        // SAFETY: registers of this board, and nothing else here uses that timer.
        unsafe {
            ptr::write_volatile(RELOAD, u32::MAX);
            ptr::write_volatile(VALUE, u32::MAX);
            ptr::write_volatile(CTRL, 1);
        }
    }

    /// How far it has come.
    pub fn ticks() -> u32 {
        // SAFETY: as above; reading has no effect.
        u32::MAX - unsafe { ptr::read_volatile(VALUE) }
    }
}

/// What a panic ends in. A file that has this symbol can panic, and one that has not cannot.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn fencegate_panicked() -> ! {
    loop {
        black_box(());
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    fencegate_panicked()
}

/// Makes a program of `$body`, which is called once: after start-up on a Cortex-M, by whoever loads the module in wasm.
#[macro_export]
macro_rules! image {
    ($body:path) => {
        #[cfg(target_arch = "arm")]
        #[cortex_m_rt::entry]
        fn main() -> ! {
            $body();
            loop {
                $crate::black_box(());
            }
        }

        /// The module's way in.
        #[cfg(not(target_arch = "arm"))]
        #[unsafe(no_mangle)]
        pub extern "C" fn run() {
            $body();
        }
    };
}
