//! Fences for many resources in fixed memory.

use crate::{
    Admitted, Epoch, EpochRule, Fence, FenceRecord, Limits, NotStored, Pass, Policy, Proof, Raise, Refused, Stamp,
};
use core::fmt;
use heapless::Vec;

/// The fences of up to `N` resources, found by key, all with the same limits. A resource that nobody has raised yet
/// stands at a floor of epoch 0 and token 0; unless told otherwise epochs come with the stamps, as in a table or a log.
///
/// When it is full nothing is forgotten, since what is forgotten lets an older stamp through: a stamp for a resource
/// that is not in it is refused with [`TableRefused::Full`], and those that are in it go on as before.
///
/// Store and commit one decision of a resource before the next of the same one is stored, as at a single [`Fence`].
///
/// Keys are kept in order: finding one takes ⌈log₂ N⌉ + 1 compares, and only a resource's first raise moves others.
///
/// # Example
/// ```
/// use fencegate::*;
/// # let stamp = |token, holder| Stamp {
/// #     epoch: Epoch(0), token: Token::new(token).unwrap(), holder: HolderId::new(holder).unwrap(),
/// # };
/// let mut rows: FenceTable<u32, 64> = FenceTable::new();
/// let TableAdmitted::Raise(raise) = rows.admit(&7, stamp(34, "b")) else { panic!() };
/// let proof = TableProof::read_back(*raise.key(), raise.record()); // what a store does
/// let pass = rows.commit(raise, proof)?;
/// assert_eq!(pass.stamp().token.get(), 34);
/// assert!(matches!(rows.admit(&7, stamp(33, "a")), TableAdmitted::Refused(_)));
/// # Ok::<(), TableError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FenceTable<K, const N: usize> {
    limits: Limits,
    rows: Vec<(K, FenceRecord), N>,
}

/// What a table says of a stamp.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum TableAdmitted<K> {
    /// The fence's own stamp: nothing to store.
    Current(Pass),
    /// A higher one: store its record under its key, then commit.
    Raise(TableRaise<K>),
    /// Refused.
    Refused(TableRefused),
}

/// Why a table refused a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TableRefused {
    /// By the resource's fence.
    Fence(Refused),
    /// The resource is not in the table, and the table is full.
    Full,
}

/// A raise of one resource's fence: decided, not yet stored.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "decided is not stored"]
pub struct TableRaise<K> {
    key: K,
    raise: Raise,
}

/// Evidence that a record is in persistent storage under its key.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub struct TableProof<K> {
    key: K,
    record: FenceRecord,
}

/// Why a table could not take what was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TableError {
    /// The proof is of another record or key, or the fence has moved since the decision.
    NotStored,
    /// The table is full. The record is stored and the table does not have it: what comes next for this resource is
    /// refused as well.
    Full,
    /// Two records of one resource contradict each other: two holders at one stamp.
    Contradiction,
}

impl<K> TableRaise<K> {
    /// The resource.
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// What to put into persistent storage.
    pub const fn record(&self) -> FenceRecord {
        self.raise.record()
    }
}

impl<K> TableProof<K> {
    /// For a store alone: `record` is what it has just *read back* from the medium under `key`, past any cache.
    pub const fn read_back(key: K, record: FenceRecord) -> Self {
        Self { key, record }
    }
}

impl fmt::Display for TableRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fence(refused) => refused.fmt(f),
            Self::Full => f.write_str("full: there is no room for a further resource, and none is forgotten"),
        }
    }
}

impl core::error::Error for TableRefused {}

impl From<NotStored> for TableError {
    fn from(_: NotStored) -> Self {
        Self::NotStored
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStored => "the record read back is not the one that was decided",
            Self::Full => "the table is full",
            Self::Contradiction => "two holders stand at one stamp of one resource",
        })
    }
}

impl core::error::Error for TableError {}

impl<K, const N: usize> Default for FenceTable<K, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, const N: usize> FenceTable<K, N> {
    /// The limits unless told otherwise: one holder acts many times, and epochs come with the stamps.
    pub const LIMITS: Limits = Limits {
        policy: Policy::AtLeast,
        epochs: EpochRule::Stamp,
        epoch_jump: Limits::EPOCH_JUMP,
        token_jump: Limits::TOKEN_JUMP,
    };

    /// An empty table.
    pub const fn new() -> Self {
        Self::with_limits(Self::LIMITS)
    }

    /// An empty table with other limits.
    pub const fn with_limits(limits: Limits) -> Self {
        Self { limits, rows: Vec::new() }
    }

    /// How many resources it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a resource that is not in it would be refused.
    pub fn is_full(&self) -> bool {
        self.rows.is_full()
    }

    /// Every resource and where its fence stands, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, FenceRecord)> {
        self.rows.iter().map(|(key, record)| (key, *record))
    }
}

impl<K: Ord + Clone, const N: usize> FenceTable<K, N> {
    /// Takes a record as it was stored, one by one at boot and in any order; of two for one resource the later counts.
    ///
    /// # Errors
    /// [`TableError::Full`], and [`TableError::Contradiction`].
    pub fn restore(&mut self, key: K, record: FenceRecord) -> Result<(), TableError> {
        let Some(row) = self.find_mut(&key) else { return self.insert(key, record) };
        if row.order(&record).ok_or(TableError::Contradiction)?.is_lt() {
            *row = record;
        }
        Ok(())
    }

    /// Where a resource's fence stands; `None` for one that is not in the table.
    pub fn record(&self, key: &K) -> Option<FenceRecord> {
        self.find(key).and_then(|at| self.rows.get(at)).map(|(_, record)| *record)
    }

    /// Decides on a stamp for a resource. Changes nothing.
    pub fn admit(&self, key: &K, stamp: Stamp) -> TableAdmitted<K> {
        let known = self.record(key);
        if known.is_none() && self.is_full() {
            return TableAdmitted::Refused(TableRefused::Full);
        }
        match self.fence(known).admit(stamp) {
            Admitted::Current(pass) => TableAdmitted::Current(pass),
            Admitted::Raise(raise) => TableAdmitted::Raise(TableRaise { key: key.clone(), raise }),
            Admitted::Refused(refused) => TableAdmitted::Refused(TableRefused::Fence(refused)),
        }
    }

    /// Raises a resource's fence to what has been stored, and lets its holder act.
    ///
    /// # Errors
    /// [`TableError::NotStored`]; [`TableError::Full`] where other resources' first raises were committed since the
    /// decision, which one decision at a time prevents.
    pub fn commit(&mut self, raise: TableRaise<K>, proof: TableProof<K>) -> Result<Pass, TableError> {
        let TableRaise { key, raise } = raise;
        let TableProof { key: stored, record } = proof;
        if stored != key {
            return Err(TableError::NotStored);
        }
        let mut fence = self.fence(self.record(&key));
        let pass = fence.commit(raise, Proof::read_back(record))?;
        match self.find_mut(&key) {
            Some(row) => *row = fence.record(),
            None => self.insert(key, fence.record())?,
        }
        Ok(pass)
    }

    fn fence(&self, record: Option<FenceRecord>) -> Fence {
        Fence::new(record.unwrap_or(FenceRecord::floor(Epoch(0), 0)), self.limits)
    }

    fn find(&self, key: &K) -> Option<usize> {
        self.rows.binary_search_by(|(row, _)| row.cmp(key)).ok()
    }

    fn find_mut(&mut self, key: &K) -> Option<&mut FenceRecord> {
        let at = self.find(key)?;
        self.rows.get_mut(at).map(|(_, record)| record)
    }

    /// Puts a new row last and lets it sink to its place.
    fn insert(&mut self, key: K, record: FenceRecord) -> Result<(), TableError> {
        self.rows.push((key, record)).map_err(|_| TableError::Full)?;
        let mut rows = self.rows.as_mut_slice();
        while let [.., a, b] = rows
            && a.0 > b.0
        {
            core::mem::swap(a, b);
            rows = rows.split_last_mut().map_or(&mut [], |(_, before)| before);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
