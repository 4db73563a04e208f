//! How a disturbance is told that it is over.

use std::sync::atomic::{AtomicBool, Ordering};

/// Tells whoever disturbs that it is over, also where a test fails: nobody is waited for who goes on for ever.
#[derive(Debug)]
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
