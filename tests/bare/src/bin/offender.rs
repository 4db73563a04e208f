//! Everything that must not be: a panic, a floating-point sum and an allocation, so that the test of their absence is
//! seen to find them.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use fencegate_bare::black_box;

struct Never;

// SAFETY: a null pointer says that there is no memory, which is always allowed.
unsafe impl GlobalAlloc for Never {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static NEVER: Never = Never;

fencegate_bare::image!(offend);

fn offend() {
    black_box(black_box(1.0_f32) + black_box(2.0));
    black_box(black_box(1.0_f64) * black_box(2.0));
    let bytes = black_box([1_u8; 4]);
    black_box(bytes[black_box(0)]);
    black_box(Box::new(black_box(1_u64)));
}
