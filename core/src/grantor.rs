//! The grantor: one machine that is its own authority grants leases on the one thing that it owns.
//!
//! A gate whose only resource is its own actuator needs no cluster. It mints tokens that only go up, and keeps each with
//! its holder and TTL in persistent storage before it answers: a decision ([`Granting`], [`GrantRelease`],
//! [`GrantEpoch`]) carries the record to store, and only with a [`GrantProof`] of it is it committed. One decision is
//! open at a time, since a record that is stored out of turn could overwrite a later one. Renewals write nothing.
//!
//! It never frees early. A lease lasts ⌈T·10⁹/(10⁹−ε)⌉ on its clock ([`Drift::outlast`]), where T is the *holder's* TTL,
//! counted from the commit or the last renewal; after a reboot, whose length nothing on board can tell, an earlier lease
//! counts as granted in full from boot. So a restart can lengthen a lease and never shorten one.
//!
//! Whoever outgrows one machine uses a consensus store.

use crate::{
    Admitted, Deadline, Drift, Duration, Epoch, Fence, FenceRecord, HolderId, Instant, Limits, Monotonic, NotStored,
    OutOfRange, Refusal, Refused, Stamp,
};
use core::fmt;

/// What is kept in persistent storage of a grantor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GrantRecord {
    /// The last token minted, and for whom; before an epoch's first, the floor that tokens must exceed.
    pub mark: FenceRecord,
    /// How long nothing is granted after a boot: the TTL of the lease that may still run, zero after a release.
    #[cfg_attr(feature = "serde", serde(rename = "ttl_us"))]
    pub ttl: Duration,
}

impl GrantRecord {
    /// A grantor that has granted nothing: every token above `floor` is still to come.
    pub const fn floor(epoch: Epoch, floor: u64) -> Self {
        Self { mark: FenceRecord::floor(epoch, floor), ttl: Duration::ZERO }
    }

    /// What it counts as after a boot: a stamp that is held for no time at all was not granted by a grantor, and nobody knows
    /// for how long its holder has it. That is `longest` at the most.
    const fn at_boot(self, longest: Duration) -> Self {
        let unknown = self.ttl.is_zero() && self.mark.holder.is_some() && !self.mark.released;
        Self { ttl: if unknown { longest } else { self.ttl }, ..self }
    }
}

/// What a grantor keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GrantTerms {
    /// The drift bound of the grantor's own clock.
    #[cfg_attr(feature = "serde", serde(rename = "drift_ppb"))]
    pub drift: Drift,
    /// How long nothing is granted after a lease has run out, which a release saves: time for what its holder still has
    /// under way to arrive and be refused.
    #[cfg_attr(feature = "serde", serde(rename = "lock_delay_us"))]
    pub lock_delay: Duration,
    /// The longest TTL that is granted, and renewed.
    #[cfg_attr(feature = "serde", serde(rename = "longest_ttl_us"))]
    pub longest_ttl: Duration,
    /// How far an operator's epoch may leap above the last one.
    pub epoch_jump: u32,
}

/// Why a grantor did not do what it was asked to, in the order in which the reasons are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum GrantDenied {
    /// The clock ran backwards, or is at its end: nothing timed by it can be trusted.
    Clock,
    /// A decision waits for its proof. If storing has failed, [`Grantor::lose_storage`].
    Busy,
    /// A TTL of zero, or above the longest.
    Ttl,
    /// The storage was lost: nothing is granted until an operator's epoch.
    Storage,
    /// The stamp is not that of the lease, and the record says whose is.
    Refused(Refused),
    /// The stamp is above all that was ever granted here.
    NotGranted,
    /// The lease has run out.
    Expired,
    /// Somebody holds the lease, or has held it until so shortly that it is not free yet; the asker itself may be the
    /// one, and then it renews.
    Held {
        /// For how long at the longest, if it is not renewed.
        wait: Duration,
    },
    /// No token is left above the last.
    NoToken,
}

impl fmt::Display for GrantDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "the grantor's clock cannot be trusted",
            Self::Busy => "a decision waits to be stored",
            Self::Ttl => "a TTL is above zero and at most the longest that is granted",
            Self::Storage => "the grantor's storage was lost: an operator has to set an epoch",
            Self::Refused(refused) => return refused.fmt(f),
            Self::NotGranted => "no such stamp was granted here",
            Self::Expired => "expired: the lease has run out",
            Self::Held { wait } => return write!(f, "held for up to {wait:?} more"),
            Self::NoToken => "no token is left: an operator has to set an epoch",
        })
    }
}

impl core::error::Error for GrantDenied {}

/// A change that is decided and not yet stored; without `from`, the storage was lost.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Change {
    from: Option<GrantRecord>,
    to: GrantRecord,
}

macro_rules! decided {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[must_use = "decided is not stored"]
        pub struct $name(Change);

        impl $name {
            /// What to put into persistent storage.
            pub const fn record(&self) -> GrantRecord {
                self.0.to
            }
        }
    };
}

decided!(
    /// A lease: decided, not yet stored, and nobody has it until it is.
    Granting
);
decided!(
    /// A release: decided, not yet stored, and nothing is free until it is.
    GrantRelease
);
decided!(
    /// An operator's new epoch: decided, not yet stored.
    GrantEpoch
);

/// Evidence that a record is in persistent storage.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub struct GrantProof(GrantRecord);

impl GrantProof {
    /// For a store alone: `record` is what it has just *read back* from the medium, past any cache.
    pub const fn read_back(record: GrantRecord) -> Self {
        Self(record)
    }
}

/// A lease that was granted or renewed: what the holder is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Granted {
    /// The lease's stamp.
    pub stamp: Stamp,
    /// Its TTL.
    #[cfg_attr(feature = "serde", serde(rename = "ttl_us"))]
    pub ttl: Duration,
}

/// The authority over one lease.
///
/// # Example
/// ```
/// use fencegate::*;
///
/// let at = |s: u64| Instant::from_micros(s * 1_000_000);
/// let terms = GrantTerms {
///     drift: Drift::from_ppm(100),
///     lock_delay: Duration::ZERO,
///     longest_ttl: Duration::from_secs(60),
///     epoch_jump: Limits::EPOCH_JUMP,
/// };
/// let mut grantor = Grantor::boot(Some(GrantRecord::floor(Epoch(0), 0)), terms, at(0))?;
///
/// let granting = grantor.acquire(at(1), HolderId::new("a")?, Duration::from_secs(10))?;
/// let proof = GrantProof::read_back(granting.record()); // what a store does
/// let lease = grantor.commit(at(1), granting, proof)?;
/// assert_eq!(lease.stamp.token.get(), 1);
///
/// // Ten seconds on a clock that may run slow by 100 ppm take at most 10.001001 s of it.
/// let held = grantor.acquire(at(6), HolderId::new("b")?, Duration::from_secs(1));
/// assert_eq!(held, Err(GrantDenied::Held { wait: Duration::from_micros(5_001_001) }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Grantor {
    record: Option<GrantRecord>,
    terms: GrantTerms,
    clock: Monotonic,
    /// When the lease runs out, and can no longer be renewed.
    ends: Deadline,
    /// When it can be granted to anybody: not before it has run out, and the lock delay with it.
    free: Deadline,
    /// Whether a decision waits for its proof.
    deciding: bool,
}

impl Grantor {
    /// A grantor at boot. `record` is what was stored, [`GrantRecord::floor`] for a fresh one, and `None` where the
    /// storage was lost. What may have been held before the boot counts as granted in full at `now`.
    ///
    /// # Errors
    /// [`OutOfRange`] for terms or a record whose waits cannot be reckoned on this clock.
    pub fn boot(record: Option<GrantRecord>, terms: GrantTerms, now: Instant) -> Result<Self, OutOfRange> {
        // Whatever TTL is granted later is at most the longest: find out now that it can be.
        terms.wait(terms.longest_ttl)?;
        let mut clock = Monotonic::new();
        let now = clock.read(now).map_err(|_| OutOfRange::Instant)?;
        let record = record.map(|record| record.at_boot(terms.longest_ttl));
        let (ends, free) = terms.span(now, record.map_or(Duration::ZERO, |record| record.ttl))?;
        Ok(Self { record, terms, clock, ends, free, deciding: false })
    }

    /// Where it stands; `None` where its storage was lost.
    pub const fn record(&self) -> Option<GrantRecord> {
        self.record
    }

    /// The stamp of the lease that runs at `now`.
    pub fn current(&self, now: Instant) -> Option<Stamp> {
        self.stamp().filter(|_| !self.ends.is_over(now))
    }

    /// When the lease runs out that was last granted, renewed, or found at boot.
    pub const fn ends(&self) -> Deadline {
        self.ends
    }

    /// For how long after `now` nothing is granted at the longest, if nobody renews; zero where it is free.
    pub const fn wait(&self, now: Instant) -> Duration {
        self.free.left(now)
    }

    /// Decides on a new lease for `holder`. It asks for `ttl`; who comes after it will have to wait that long.
    ///
    /// # Errors
    /// [`GrantDenied`]; [`GrantDenied::Held`] to the lease's own holder too.
    pub fn acquire(&mut self, now: Instant, holder: HolderId, ttl: Duration) -> Result<Granting, GrantDenied> {
        self.ready(now)?;
        if ttl.is_zero() || ttl > self.terms.longest_ttl {
            return Err(GrantDenied::Ttl);
        }
        let from = self.record.ok_or(GrantDenied::Storage)?;
        if !self.free.is_over(now) {
            return Err(GrantDenied::Held { wait: self.wait(now) });
        }
        let token = from.mark.token.checked_add(1).ok_or(GrantDenied::NoToken)?;
        let mark = FenceRecord { epoch: from.mark.epoch, token, holder: Some(holder), released: false };
        Ok(Granting(self.decide(GrantRecord { mark, ttl })))
    }

    /// Renews the lease of `stamp` for its TTL from `now`. Nothing has to be stored: after a reboot it would count in full
    /// from there in any case.
    ///
    /// # Errors
    /// [`GrantDenied`], [`GrantDenied::Expired`] from the very instant at which it runs out: a lease is not revived; and
    /// [`GrantDenied::Ttl`] where the terms have become shorter than it: it runs out.
    pub fn renew(&mut self, now: Instant, stamp: Stamp) -> Result<Granted, GrantDenied> {
        self.ready(now)?;
        let record = self.own(stamp)?;
        if self.ends.is_over(now) {
            return Err(GrantDenied::Expired);
        }
        if record.ttl > self.terms.longest_ttl {
            return Err(GrantDenied::Ttl);
        }
        (self.ends, self.free) = self.terms.span(now, record.ttl).map_err(|_| GrantDenied::Clock)?;
        Ok(Granted { stamp, ttl: record.ttl })
    }

    /// Decides on a release of the lease of `stamp`, and of no other.
    ///
    /// # Errors
    /// [`GrantDenied`]: a late release never frees the next holder's lease.
    pub fn release(&mut self, now: Instant, stamp: Stamp) -> Result<GrantRelease, GrantDenied> {
        self.ready(now)?;
        let GrantRecord { mark, .. } = self.own(stamp)?;
        let to = GrantRecord { mark: FenceRecord { released: true, ..mark }, ttl: Duration::ZERO };
        Ok(GrantRelease(self.decide(to)))
    }

    /// Decides on an operator's new epoch, whose tokens exceed `floor`. What is held at the time is not renewed any more,
    /// and nothing is granted before it has run out; where the storage was lost, nothing before the longest TTL has.
    ///
    /// # Errors
    /// [`GrantDenied::Refused`] as [`Fence::raise_epoch`] refuses; where the storage was lost, only epoch 0.
    pub fn raise_epoch(&mut self, now: Instant, epoch: Epoch, floor: u64) -> Result<GrantEpoch, GrantDenied> {
        self.ready(now)?;
        let (mark, ttl) = match self.record {
            Some(record) => {
                let limits = Limits { epoch_jump: self.terms.epoch_jump, ..Limits::default() };
                let raised = Fence::new(record.mark, limits).raise_epoch(epoch, floor);
                let mark = raised.map_err(GrantDenied::Refused)?.record();
                (mark, if self.free.is_over(now) { Duration::ZERO } else { record.ttl })
            }
            None if epoch == Epoch(0) => {
                let by = FenceRecord::floor(epoch, 0);
                return Err(GrantDenied::Refused(Refused { reason: Refusal::Stale, by }));
            }
            None => (FenceRecord::floor(epoch, floor), self.terms.longest_ttl),
        };
        Ok(GrantEpoch(self.decide(GrantRecord { mark, ttl })))
    }

    /// Grants what has been stored. The lease counts from `now`, since storing took some time.
    ///
    /// # Errors
    /// [`NotStored`] where the proof is of another record. The storage is then not what it was taken for: it is lost.
    pub fn commit(&mut self, now: Instant, granting: Granting, proof: GrantProof) -> Result<Granted, NotStored> {
        let record = self.settle(now, granting.0, proof)?;
        (self.ends, self.free) = self.terms.span(now, record.ttl).map_err(|_| self.lost())?;
        let stamp = self.stamp().ok_or(NotStored)?;
        Ok(Granted { stamp, ttl: record.ttl })
    }

    /// Frees what has been stored as released.
    ///
    /// # Errors
    /// [`NotStored`] as in [`Self::commit`].
    pub fn commit_release(&mut self, now: Instant, release: GrantRelease, proof: GrantProof) -> Result<(), NotStored> {
        self.settle(now, release.0, proof)?;
        (self.ends, self.free) = (Deadline::at(now), Deadline::at(now));
        Ok(())
    }

    /// Moves to the epoch that has been stored.
    ///
    /// # Errors
    /// [`NotStored`] as in [`Self::commit`].
    pub fn commit_epoch(&mut self, now: Instant, epoch: GrantEpoch, proof: GrantProof) -> Result<(), NotStored> {
        let lost = epoch.0.from.is_none();
        let record = self.settle(now, epoch.0, proof)?;
        if lost {
            (self.ends, self.free) = self.terms.span(now, record.ttl).map_err(|_| self.lost())?;
        }
        Ok(())
    }

    /// The storage has failed, or cannot be trusted: nothing is granted, renewed or released until an operator's epoch.
    pub const fn lose_storage(&mut self) {
        self.record = None;
        self.deciding = false;
    }

    const fn lost(&mut self) -> NotStored {
        self.lose_storage();
        NotStored
    }

    fn ready(&mut self, now: Instant) -> Result<(), GrantDenied> {
        self.clock.read(now).map_err(|_| GrantDenied::Clock)?;
        if self.deciding { Err(GrantDenied::Busy) } else { Ok(()) }
    }

    /// The stamp last granted, unless it was released.
    fn stamp(&self) -> Option<Stamp> {
        Fence::new(self.record?.mark, Limits::default()).current()
    }

    /// The record, if `stamp` is the one last granted and not released.
    fn own(&self, stamp: Stamp) -> Result<GrantRecord, GrantDenied> {
        let record = self.record.ok_or(GrantDenied::Storage)?;
        match Fence::new(record.mark, Limits::default()).admit(stamp) {
            Admitted::Current(_) => Ok(record),
            Admitted::Raise(_) | Admitted::Refused(Refused { reason: Refusal::Jump, .. }) => {
                Err(GrantDenied::NotGranted)
            }
            Admitted::Refused(refused) => Err(GrantDenied::Refused(refused)),
        }
    }

    const fn decide(&mut self, to: GrantRecord) -> Change {
        self.deciding = true;
        Change { from: self.record, to }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a decision and its proof are used up, whatever comes of them")]
    fn settle(&mut self, now: Instant, change: Change, proof: GrantProof) -> Result<GrantRecord, NotStored> {
        let Change { from, to } = change;
        if self.clock.read(now).is_err() || !self.deciding || self.record != from || proof.0 != to {
            return Err(self.lost());
        }
        self.deciding = false;
        self.record = Some(to);
        Ok(to)
    }
}

impl GrantTerms {
    /// How long a lease of `ttl` lasts on the grantor's clock, and how long it is not free.
    fn wait(&self, ttl: Duration) -> Result<(Duration, Duration), OutOfRange> {
        let lasts = self.drift.outlast(ttl)?;
        let busy = if ttl.is_zero() { Some(lasts) } else { lasts.checked_add(self.lock_delay) };
        let busy = busy.filter(|busy| *busy <= Duration::MAX_ANSWER).ok_or(OutOfRange::TtlTooLong)?;
        Ok((lasts, busy))
    }

    /// When a lease of `ttl` that begins `now` runs out, and when it is free.
    fn span(&self, now: Instant, ttl: Duration) -> Result<(Deadline, Deadline), OutOfRange> {
        let (lasts, busy) = self.wait(ttl)?;
        Deadline::after(now, lasts).zip(Deadline::after(now, busy)).ok_or(OutOfRange::Instant)
    }
}

#[cfg(test)]
mod tests;
