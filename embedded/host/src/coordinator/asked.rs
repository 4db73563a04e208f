//! What a coordinator remembers of its own acquires.

use fencegate::Token;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a coordinator has asked for itself. A lock that turns out to be this very holder's is the trace of an acquire whose
/// answer was lost, and is undone; but not while that answer may still come, nor after it has come.
#[derive(Debug, Default)]
pub(super) struct Asked {
    under_way: AtomicUsize,
    /// The last token that was handed out, 0 before the first.
    granted: AtomicU64,
}

/// One acquire under way.
pub(super) struct Asking<'a>(&'a Asked);

impl Asked {
    pub(super) fn begin(&self) -> Asking<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Asking(self)
    }
}

impl Asking<'_> {
    /// Whether a lock of ours with this token is one that nobody will ever hear of.
    pub(super) fn may_undo(&self, token: u64) -> bool {
        self.0.under_way.load(Ordering::Relaxed) == 1 && self.0.granted.load(Ordering::Relaxed) != token
    }

    /// Hands out a token.
    pub(super) fn grant(&self, token: Token) {
        self.0.granted.store(token.get(), Ordering::Relaxed);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
