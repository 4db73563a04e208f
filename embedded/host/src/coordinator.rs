//! What a runner needs of a lock service, and the services that have it.
//!
//! A coordinator is one lock at one service, for one holder. What it says is taken at its word in one respect only: that it
//! gives the lock to nobody else until the TTL has passed since it took an acquire or a renewal. All timing is the runner's,
//! from when it sent the request; nothing that a service says of its own timers lengthens a window.

mod access;
#[cfg(any(feature = "dynamodb", feature = "etcd", feature = "postgres", feature = "redis", feature = "zookeeper"))]
mod asked;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod gate;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

pub use access::Access;
use fencegate::{Duration, Epoch, HolderId, Stamp, Token};
use std::fmt;
use std::pin::Pin;

/// A call that is under way. Dropping it gives it up; whether the service did what was asked is then not known.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, CoordinatorError>> + Send + 'a>>;

/// What a service answers to an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The lease is ours.
    Granted(Grant),
    /// Another has it.
    Held {
        /// For how long at the most, if nobody renews it; `None` where the service does not say.
        wait: Option<Duration>,
        /// Who that is, where the service says so.
        by: Option<HolderId>,
    },
}

/// A lease as it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The fencing token: higher than that of every earlier grant of this lock, as far as the service can promise it.
    pub token: Token,
    /// The operator's epoch, read in the same step as the token was made.
    pub epoch: Epoch,
    /// The TTL as it was granted, where the service says so.
    pub ttl: Option<Duration>,
}

/// What a service answers to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease runs for its TTL from when the service took the request.
    Renewed {
        /// The TTL as it was granted, where the service says so.
        ttl: Option<Duration>,
    },
    /// It is no longer ours.
    Gone,
}

/// Why a call has no answer that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinatorError {
    /// No connection, or it broke, or the service cannot answer now. Whether it did what was asked is not known.
    NoAnswer(String),
    /// The service answers that this cannot be: wrong credentials, no such database, a TTL that it does not take. Asking
    /// again would change nothing.
    Unfit(String),
}

impl fmt::Display for CoordinatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(why) => write!(f, "no answer: {why}"),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CoordinatorError {}

/// One lock at one service, for one holder.
///
/// - A call MUST send its request once: a repetition is a request of its own, since the answer might be to the first.
/// - `acquire` MUST give a token higher than that of every lease granted before, and MUST NOT give an earlier lease again.
/// - `renew` and `release` MUST compare: they do nothing to a lease that does not carry this stamp.
/// - Several calls may be under way at once, and any of them may be dropped.
pub trait Coordinator: Send + Sync {
    /// Asks for the lease, for `ttl` from when the service takes the request.
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired>;

    /// Renews the lease of `stamp`, for `ttl` from when the service takes the request.
    fn renew(&self, stamp: Stamp, ttl: Duration) -> Call<'_, Renewed>;

    /// Deletes the lease if it carries `stamp`. Done, too, where it is not there any more.
    fn release(&self, stamp: Stamp) -> Call<'_, ()>;

    /// Ends when the lock is not held under `stamp` any more, or, with `None`, when nobody holds it. A service that cannot
    /// tell never ends; it is asked on the schedule in any case.
    fn changed(&self, stamp: Option<Stamp>) -> Call<'_, ()> {
        let _ = stamp;
        Box::pin(std::future::pending())
    }

    /// Whether a lock that this service has granted stays granted, and its tokens go up, whatever member of it fails. Where not,
    /// it saves work and protects nothing: a [`Runner`](crate::runner::Runner) raises no fence under it unless it is told to.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Nobody renews the lease any more, and it is not released either: whatever keeps it alive by itself ends here. A later
    /// acquire begins anew.
    fn let_lapse(&self) {}

    /// An answer is overdue, or was an error: the next call should use another connection, and another server if there is
    /// one.
    fn suspect(&self) {}
}

/// Something that a fence protects: a gate, a table. The runner raises its fence before any work begins.
pub trait Resource: Send + Sync {
    /// Raises the fence to `stamp`; the raise is stored when this ends well.
    fn raise(&self, stamp: Stamp) -> Pin<Box<dyn Future<Output = Result<(), RaiseError>> + Send + '_>>;
}

/// Why a fence was not raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RaiseError {
    /// It has seen a higher stamp, or does not take this one: the lease is worth nothing.
    Refused(String),
    /// No answer, or one that says to try again.
    NoAnswer(String),
}

impl fmt::Display for RaiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::NoAnswer(why) => write!(f, "no answer: {why}"),
        }
    }
}

impl std::error::Error for RaiseError {}
