//! The fence: the highest stamp that a resource has ever accepted, and the refusal of all that is lower.
//!
//! Martin Kleppmann described the check ("How to do distributed locking", 2016); here it is split where a power cut
//! can fall. [`Fence::admit`] decides and changes nothing. A higher stamp comes back as a [`Raise`], whose record
//! goes to persistent storage; what is read back from there makes a [`Proof`]; only with that does
//! [`Fence::commit`] raise the fence and hand out a [`Pass`]; and a pass becomes an [`Act`] only with the time again,
//! since the store may have outlasted the window. None of these can be copied or made by hand.
//!
//! Store and commit one decision before the next is stored: two that were decided on the same mark and stored in the
//! other order would leave the lower one in storage. (The commit of the second is refused, which comes too late for it.)
//!
//! ```compile_fail
//! # use fencegate::*;
//! fn unstored(raise: Raise, now: Instant, end: Deadline) {
//!     raise.act(now, end); // a raise is not a pass
//! }
//! ```

use crate::{Deadline, Duration, Epoch, HolderId, Instant, Stamp, Token};
use core::fmt;

/// What is kept in persistent storage of a fence, and what a refusal shows of the stamp that beat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FenceRecord {
    /// The epoch in force.
    pub epoch: Epoch,
    /// The highest token accepted in this epoch; before the first, the floor that tokens must exceed.
    pub token: u64,
    /// Who raised it; `None` before an epoch's first raise.
    pub holder: Option<HolderId>,
    /// Whether that holder has released its lease: the same stamp does not come back.
    pub released: bool,
}

impl FenceRecord {
    /// A fence of `epoch` that nobody has raised: every token above `floor` may be the first.
    pub const fn floor(epoch: Epoch, floor: u64) -> Self {
        Self { epoch, token: floor, holder: None, released: false }
    }

    const fn of(stamp: Stamp, released: bool) -> Self {
        Self { epoch: stamp.epoch, token: stamp.token.get(), holder: Some(stamp.holder), released }
    }

    /// Which of two records of one fence is the later: epoch, then token, then raised over floor, then released.
    ///
    /// `None` where two holders stand at one stamp: no single history of a fence has both.
    pub fn order(&self, other: &Self) -> Option<core::cmp::Ordering> {
        let rank = |r: &Self| (r.epoch, r.token, r.holder.is_some(), r.released);
        match (self.holder, other.holder) {
            (Some(a), Some(b)) if a != b && (self.epoch, self.token) == (other.epoch, other.token) => None,
            _ => Some(rank(self).cmp(&rank(other))),
        }
    }
}

/// Whether one stamp may be accepted more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Policy {
    /// One holder acts many times under one stamp.
    #[default]
    AtLeast,
    /// Each token once.
    Greater,
}

/// Who moves a fence's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EpochRule {
    /// Only [`Fence::raise_epoch`]: a stamp of a later epoch is refused. So it is at a gate.
    #[default]
    Operator,
    /// A stamp of a later epoch raises the fence, at most [`Limits::epoch_jump`] ahead. So it is in a table or a log.
    Stamp,
}

/// What a fence accepts beyond "higher": all of it against one garbled number that would lock it for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Limits {
    /// Whether one stamp may be accepted more than once.
    pub policy: Policy,
    /// Who moves the epoch.
    pub epochs: EpochRule,
    /// How far an epoch may leap above the last one.
    pub epoch_jump: u32,
    /// How far a token may leap above the last one; an epoch's first may be anything below [`Limits::FIRST_TOKEN`].
    pub token_jump: u64,
}

impl Limits {
    /// How far an epoch may leap unless told otherwise: 65,536.
    pub const EPOCH_JUMP: u32 = 1 << 16;
    /// An epoch's first token stays below this: 2⁶³.
    pub const FIRST_TOKEN: u64 = 1 << 63;
    /// How far a token may leap unless told otherwise: 2⁴⁸. A zxid of ZooKeeper's counts elections above bit 32, and some
    /// tokens are milliseconds shifted by 16.
    pub const TOKEN_JUMP: u64 = 1 << 48;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            policy: Policy::AtLeast,
            epochs: EpochRule::Operator,
            epoch_jump: Self::EPOCH_JUMP,
            token_jump: Self::TOKEN_JUMP,
        }
    }
}

/// Why a stamp was refused, in the order in which the reasons are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// Lower than the fence.
    Stale,
    /// The fence's own stamp in another holder's hands.
    WrongHolder,
    /// The fence's own stamp, after its holder released it.
    Released,
    /// Further above the fence than any honest one leaps.
    Jump,
}

/// A refused stamp, and the record that beat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Refused {
    /// Why.
    pub reason: Refusal,
    /// Where the fence stands.
    pub by: FenceRecord,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Refusal::Stale => "stale: the fence has seen ",
            Refusal::WrongHolder => "wrong holder: the fence has seen ",
            Refusal::Released => "released: the fence has seen the release of ",
            Refusal::Jump => "jump: too far above what the fence has seen, ",
        })?;
        write!(f, "epoch {} token {}", self.by.epoch, self.by.token)?;
        match self.by.holder {
            Some(holder) => write!(f, ", held by {holder}"),
            None => f.write_str(", held by nobody"),
        }
    }
}

impl core::error::Error for Refused {}

/// What the fence says of a stamp.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Admitted {
    /// The fence's own stamp: nothing to store.
    Current(Pass),
    /// A higher one: store its record, then commit.
    Raise(Raise),
    /// Refused.
    Refused(Refused),
}

/// A change that is decided and not yet stored.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Change {
    from: FenceRecord,
    to: FenceRecord,
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
            pub const fn record(&self) -> FenceRecord {
                self.0.to
            }
        }
    };
}

decided!(
    /// A stamp that outranks the fence: decided, not yet stored, and nothing can be done with it until it is.
    Raise
);
decided!(
    /// A release: decided, not yet stored.
    Release
);
decided!(
    /// An operator's new epoch: decided, not yet stored.
    EpochRaise
);

/// Evidence that a record is in persistent storage.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub struct Proof(FenceRecord);

impl Proof {
    /// For a store alone: `record` is what it has just *read back* from the medium, past any cache.
    ///
    /// A commit takes the proof only if this is the record that it asked to store.
    pub const fn read_back(record: FenceRecord) -> Self {
        Self(record)
    }
}

/// The proof is of another record, or the fence has moved since the decision. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NotStored;

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the record read back is not the one that was decided")
    }
}

impl core::error::Error for NotStored {}

/// Leave to act once, under a stamp that is the fence's and is stored. It lacks only the time.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub struct Pass(Stamp);

impl Pass {
    /// Whose pass this is.
    pub const fn stamp(&self) -> Stamp {
        self.0
    }

    /// Takes the time again, since storing took some, and uses up the pass.
    ///
    /// # Errors
    /// [`Expired`] where the deadline is over at `now`; at the deadline itself it is.
    pub fn act(self, now: Instant, deadline: Deadline) -> Result<Act, Expired> {
        if deadline.is_over(now) { Err(Expired) } else { Ok(Act { stamp: self.0, deadline }) }
    }
}

/// An act that may take effect now: under a stored stamp, inside its window.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub struct Act {
    stamp: Stamp,
    deadline: Deadline,
}

impl Act {
    /// Whose act this is.
    pub const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// When its effect must be over.
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// What is left of the window at `now`.
    pub const fn left(&self, now: Instant) -> Duration {
        self.deadline.left(now)
    }
}

/// The window was over before the act could begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Expired;

impl fmt::Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expired: nothing of the window is left")
    }
}

impl core::error::Error for Expired {}

/// The fence of one resource.
///
/// # Example
/// ```
/// use fencegate::*;
/// # struct Flash(Option<FenceRecord>);
/// # impl Flash { fn put(&mut self, r: FenceRecord) -> Proof { self.0 = Some(r); Proof::read_back(self.0.unwrap()) } }
/// # let mut flash = Flash(None);
/// let stamp = |token, holder| Stamp {
///     epoch: Epoch(0),
///     token: Token::new(token).unwrap(),
///     holder: HolderId::new(holder).unwrap(),
/// };
/// let mut fence = Fence::new(FenceRecord::floor(Epoch(0), 0), Limits::default());
///
/// // B, token 34, raises the fence: decide, store, commit.
/// let Admitted::Raise(raise) = fence.admit(stamp(34, "b")) else { panic!() };
/// let proof = flash.put(raise.record());
/// let pass = fence.commit(raise, proof)?;
/// let now = Instant::from_micros(1_000);
/// let act = pass.act(now, Deadline::after(now, Duration::from_secs(2)).unwrap())?;
/// assert_eq!(act.stamp().token.get(), 34);
///
/// // A wakes up with token 33.
/// let Admitted::Refused(refused) = fence.admit(stamp(33, "a")) else { panic!() };
/// assert_eq!(refused.to_string(), "stale: the fence has seen epoch 0 token 34, held by b");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Fence {
    record: FenceRecord,
    limits: Limits,
}

impl Fence {
    /// The fence as it was stored. A fresh one starts from [`FenceRecord::floor`].
    pub const fn new(record: FenceRecord, limits: Limits) -> Self {
        Self { record, limits }
    }

    /// A fence in the place of one whose storage was lost: it stands where the proof shows it stored.
    #[expect(clippy::needless_pass_by_value, reason = "a proof is used up")]
    pub const fn from_proof(proof: Proof, limits: Limits) -> Self {
        Self { record: proof.0, limits }
    }

    /// Where the fence stands.
    pub const fn record(&self) -> FenceRecord {
        self.record
    }

    /// The stamp in force: raised, and not released.
    pub fn current(&self) -> Option<Stamp> {
        let (holder, token) = (self.record.holder?, Token::new(self.record.token)?);
        (!self.record.released).then_some(Stamp { epoch: self.record.epoch, token, holder })
    }

    /// Decides on a stamp. Changes nothing.
    pub fn admit(&self, stamp: Stamp) -> Admitted {
        match self.rank(stamp) {
            Ok(true) => Admitted::Raise(Raise(self.change(FenceRecord::of(stamp, false)))),
            Ok(false) if self.limits.policy == Policy::AtLeast => Admitted::Current(Pass(stamp)),
            Ok(false) => Admitted::Refused(self.refused(Refusal::Stale)),
            Err(reason) => Admitted::Refused(self.refused(reason)),
        }
    }

    /// Decides on a release by `stamp`: by the stamp in force, or by a higher one that never raised, which then
    /// fences out all below it and is spent. Changes nothing.
    ///
    /// # Errors
    /// [`Refused`]: what is not the holder's own stamp releases nothing, least of all the next holder's.
    pub fn release(&self, stamp: Stamp) -> Result<Release, Refused> {
        match self.rank(stamp) {
            Ok(_) => Ok(Release(self.change(FenceRecord::of(stamp, true)))),
            Err(reason) => Err(self.refused(reason)),
        }
    }

    /// Decides on an operator's new epoch, whose tokens must exceed `floor`. Changes nothing.
    ///
    /// # Errors
    /// [`Refused`]: [`Refusal::Stale`] for an epoch that is not higher, [`Refusal::Jump`] for one more than
    /// [`Limits::epoch_jump`] higher.
    pub fn raise_epoch(&self, epoch: Epoch, floor: u64) -> Result<EpochRaise, Refused> {
        match epoch.0.checked_sub(self.record.epoch.0) {
            None | Some(0) => Err(self.refused(Refusal::Stale)),
            Some(leap) if leap > self.limits.epoch_jump => Err(self.refused(Refusal::Jump)),
            Some(_) => Ok(EpochRaise(self.change(FenceRecord::floor(epoch, floor)))),
        }
    }

    /// Raises the fence to what has been stored, and lets its holder act.
    ///
    /// # Errors
    /// [`NotStored`] where the proof is of another record, or another commit came in between.
    pub fn commit(&mut self, raise: Raise, proof: Proof) -> Result<Pass, NotStored> {
        self.settle(raise.0, proof)?;
        self.current().map(Pass).ok_or(NotStored)
    }

    /// Releases what has been stored as released.
    ///
    /// # Errors
    /// [`NotStored`] as in [`Self::commit`].
    pub fn commit_release(&mut self, release: Release, proof: Proof) -> Result<(), NotStored> {
        self.settle(release.0, proof)
    }

    /// Moves to the epoch that has been stored.
    ///
    /// # Errors
    /// [`NotStored`] as in [`Self::commit`].
    pub fn commit_epoch(&mut self, epoch: EpochRaise, proof: Proof) -> Result<(), NotStored> {
        self.settle(epoch.0, proof)
    }

    const fn change(&self, to: FenceRecord) -> Change {
        Change { from: self.record, to }
    }

    const fn refused(&self, reason: Refusal) -> Refused {
        Refused { reason, by: self.record }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a decision and its proof are used up, whatever comes of them")]
    fn settle(&mut self, change: Change, proof: Proof) -> Result<(), NotStored> {
        let Change { from, to } = change;
        if self.record != from || proof.0 != to {
            return Err(NotStored);
        }
        self.record = to;
        Ok(())
    }

    /// Whether the stamp is above the fence (`true`) or the fence's own (`false`).
    fn rank(&self, stamp: Stamp) -> Result<bool, Refusal> {
        let at = &self.record;
        let (epoch, token) = (stamp.epoch, stamp.token.get());
        if (epoch, token) < (at.epoch, at.token) {
            return Err(Refusal::Stale);
        }
        if (epoch, token) == (at.epoch, at.token) {
            return match at.holder {
                None => Err(Refusal::Stale),
                Some(holder) if holder != stamp.holder => Err(Refusal::WrongHolder),
                Some(_) if at.released => Err(Refusal::Released),
                Some(_) => Ok(false),
            };
        }
        let first = at.holder.is_none() || epoch > at.epoch;
        let honest = match epoch.0 - at.epoch.0 {
            0 => true,
            leap => self.limits.epochs == EpochRule::Stamp && leap <= self.limits.epoch_jump,
        } && if first { token < Limits::FIRST_TOKEN } else { token - at.token <= self.limits.token_jump };
        if honest { Ok(true) } else { Err(Refusal::Jump) }
    }
}

#[cfg(test)]
mod tests;
