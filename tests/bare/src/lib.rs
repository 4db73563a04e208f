//! What every image here is made of: a way in, a panic that leaves its mark in the file, and inputs of which the compiler
//! knows nothing.

#![no_std]

#[cfg(target_arch = "arm")]
use cortex_m as _; // the critical section

pub use core::hint::black_box;

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
