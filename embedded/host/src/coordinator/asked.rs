//! What a coordinator remembers of its own acquires.

use super::CoordinatorError;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use fencegate::HolderId;
use fencegate::Token;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a coordinator has asked for itself. A lock that it has asked for and never heard of is the trace of an acquire whose
/// answer was lost, and is undone; but not while that answer may still come, nor after it has come.
///
/// Its own are told by a random number that lies beside the holder, and never by the holder's name: a process that was
/// killed and started again may well have the same name and instance, and what the first one was granted is no trace but
/// a lease under which its command may still run.
///
/// The two numbers are read and written in one order that all threads agree on: an acquire that is seen to have ended is one
/// whose token is seen, too.
#[derive(Debug, Default)]
pub(super) struct Asked {
    nonce: OnceLock<u64>,
    under_way: AtomicUsize,
    /// The last token that was handed out, 0 before the first.
    granted: AtomicU64,
}

/// One acquire under way.
pub(super) struct Asking<'a> {
    asked: &'a Asked,
    mark: String,
}

impl Asked {
    pub(super) fn begin(&self) -> Result<Asking<'_>, CoordinatorError> {
        let mark = self.mark()?;
        self.under_way.fetch_add(1, Ordering::SeqCst);
        Ok(Asking { asked: self, mark })
    }

    /// Who asks, for the service to keep beside the lock: the same for every acquire of this coordinator's, and no other's.
    pub(super) fn mark(&self) -> Result<String, CoordinatorError> {
        let nonce = if let Some(nonce) = self.nonce.get() {
            *nonce
        } else {
            let random = getrandom::u64();
            let random = random.map_err(|why| CoordinatorError::NoAnswer(format!("no random numbers: {why}")))?;
            *self.nonce.get_or_init(|| random)
        };
        Ok(format!("{nonce:016x}"))
    }
}

impl Asking<'_> {
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Whether a lock with this mark and this token is one that nobody will ever hear of.
    pub(super) fn may_undo(&self, mark: &str, token: u64) -> bool {
        mark == self.mark
            // In this order: whoever else was under way has stored its token by then.
            && self.asked.under_way.load(Ordering::SeqCst) == 1
            && self.asked.granted.load(Ordering::SeqCst) != token
    }

    /// Hands out a token.
    pub(super) fn grant(&self, token: Token) {
        self.asked.granted.store(token.get(), Ordering::SeqCst);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.asked.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A holder and a mark in one text: `press-a#9f3c:0123456789abcdef`.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) fn marked(holder: &HolderId, mark: &str) -> String {
    format!("{holder}:{mark}")
}

/// Holder and mark of such a text. One that has no mark is a holder's alone.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) fn read(text: &str) -> (Option<HolderId>, &str) {
    // A mark has no colon; a holder may have one.
    let (holder, mark) = text.rsplit_once(':').unwrap_or((text, ""));
    (HolderId::new(holder).ok(), mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_it_asked_for_itself_and_never_heard_of_is_undone() {
        let (ours, again) = (Asked::default(), Asked::default());
        let asking = ours.begin().unwrap();
        let mark = asking.mark().to_owned();
        assert!(asking.may_undo(&mark, 7), "the answer to an earlier acquire was lost");

        // A process that was killed and started again, under the same name.
        let other = again.begin().unwrap();
        assert!(!other.may_undo(&mark, 7) && !asking.may_undo(other.mark(), 7), "it did not ask for that");
        assert!(!asking.may_undo("", 7), "nobody knows who asked");

        let second = ours.begin().unwrap();
        assert_eq!(second.mark(), mark);
        assert!(!second.may_undo(&mark, 7), "the first may still be answered");
        drop(asking);
        assert!(second.may_undo(&mark, 7), "and now it cannot");
        second.grant(Token::new(8).unwrap());
        assert!(second.may_undo(&mark, 7) && !second.may_undo(&mark, 8), "what was handed out is held");
    }

    #[cfg(any(feature = "etcd", feature = "zookeeper"))]
    #[test]
    fn holder_and_mark_are_told_apart_whatever_the_holder_is_called() {
        for name in ["a", "press-a#9f3c", "a:b#:1", "x:0123456789ab"] {
            let holder = HolderId::new(name).unwrap();
            let text = marked(&holder, "0123456789abcdef");
            assert_eq!(read(&text), (Some(holder), "0123456789abcdef"));
        }
        assert_eq!(read("a#1"), (HolderId::new("a#1").ok(), ""), "as it was written before there were marks");
        assert_eq!(read("no holder, and far too long:7"), (None, "7"));
    }
}
