//! The audit: the fence replayed over a log of writes, in the order in which the store took them.
//!
//! It says what a fence *would have* refused, one [`LogFence`] a resource; which fence belongs to which resource is for
//! the caller to keep. A log is not a gate: stamps order by epoch, then token, with no limit on the leap (what has been
//! written cannot lock anything), and nothing is ever released.

use crate::{Epoch, Policy, Stamp, Token};
use core::cmp::Ordering;

/// A write as a log has it. `H` is whatever tells holders apart: a [`HolderId`](crate::HolderId), or any string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogWrite<H> {
    /// The operator's epoch at the acquisition; 0 where the log has none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub epoch: Epoch,
    /// The coordinator's token, from 1.
    pub token: Token,
    /// Who wrote.
    pub holder: H,
    /// The holder's own count of its writes under one stamp, where it keeps one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub seq: Option<u64>,
}

impl From<Stamp> for LogWrite<crate::HolderId> {
    /// A write under `stamp` without a count.
    fn from(Stamp { epoch, token, holder }: Stamp) -> Self {
        Self { epoch, token, holder, seq: None }
    }
}

/// What the fence says of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Verdict {
    /// Above the fence, which it raises, or the fence's own stamp again under [`Policy::AtLeast`].
    Commit,
    /// Below the fence, or its own stamp again under [`Policy::Greater`].
    Stale,
    /// The fence's stamp in another holder's hands.
    WrongHolder,
    /// The fence's stamp and holder, with a count not above the last one committed.
    Duplicate,
}

impl Verdict {
    /// The contract's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Stale => "stale",
            Self::WrongHolder => "wrong_holder",
            Self::Duplicate => "duplicate",
        }
    }
}

/// The fence of one resource in a log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogFence<H> {
    top: Option<LogWrite<H>>,
}

impl<H> Default for LogFence<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H> LogFence<H> {
    /// A fence below every stamp.
    pub const fn new() -> Self {
        Self { top: None }
    }

    /// The stamp that the fence stands at, with the last count committed under it; `None` before the first write.
    pub const fn top(&self) -> Option<&LogWrite<H>> {
        self.top.as_ref()
    }
}

impl<H: PartialEq> LogFence<H> {
    /// What the fence says of a write. Changes nothing.
    pub fn judge(&self, policy: Policy, write: &LogWrite<H>) -> Verdict {
        let Some(top) = &self.top else { return Verdict::Commit };
        match (write.epoch, write.token).cmp(&(top.epoch, top.token)) {
            Ordering::Less => Verdict::Stale,
            Ordering::Equal if write.holder != top.holder => Verdict::WrongHolder,
            Ordering::Equal if write.seq.is_some() && write.seq <= top.seq => Verdict::Duplicate,
            Ordering::Equal if policy == Policy::Greater => Verdict::Stale,
            Ordering::Greater | Ordering::Equal => Verdict::Commit,
        }
    }

    /// Judges the next write of the log, and raises the fence where it commits. A refused one changes nothing.
    pub fn take(&mut self, policy: Policy, write: LogWrite<H>) -> Verdict {
        let verdict = self.judge(policy, &write);
        match &mut self.top {
            _ if verdict != Verdict::Commit => {}
            Some(top) if (write.epoch, write.token) == (top.epoch, top.token) => top.seq = write.seq.or(top.seq),
            top => *top = Some(write),
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Admitted, EpochRule, Fence, FenceRecord, HolderId, Limits, Proof, Refusal};
    use Verdict::{Commit, Duplicate, Stale, WrongHolder};

    fn write(epoch: u32, token: u64, holder: &str, seq: Option<u64>) -> LogWrite<&str> {
        LogWrite { epoch: Epoch(epoch), token: Token::new(token).unwrap(), holder, seq }
    }

    #[test]
    fn a_log_reads_as_a_story() {
        for (policy, again) in [(Policy::AtLeast, Commit), (Policy::Greater, Stale)] {
            let mut fence = LogFence::new();
            let mut take = |epoch, token, holder, seq| fence.take(policy, write(epoch, token, holder, seq));
            assert_eq!(take(0, 33, "a", None), Commit, "anything is above nothing");
            assert_eq!(take(0, 33, "a", None), again);
            assert_eq!(take(0, 34, "b", None), Commit);
            assert_eq!(take(0, 33, "a", None), Stale, "the zombie");
            assert_eq!(take(0, 34, "a", None), WrongHolder);
            assert_eq!(take(0, u64::MAX, "c", None), Commit, "a log knows no jump");
            assert_eq!(take(1, 1, "d", None), Commit, "the epoch comes first");
            assert_eq!(take(u32::MAX, 1, "d", None), Commit);
            assert_eq!(take(0, u64::MAX, "c", None), Stale);
            assert_eq!(fence.top(), Some(&write(u32::MAX, 1, "d", None)));
        }
    }

    #[test]
    fn a_count_that_does_not_grow_is_a_duplicate() {
        let mut fence = LogFence::new();
        let mut take = |token, seq| fence.take(Policy::AtLeast, write(0, token, "a", seq));
        assert_eq!(take(1, None), Commit);
        assert_eq!(take(1, Some(0)), Commit, "the first count under a stamp may be any");
        assert_eq!(take(1, Some(0)), Duplicate);
        assert_eq!(take(1, Some(7)), Commit);
        assert_eq!(take(1, None), Commit, "a write without a count is not counted");
        assert_eq!(take(1, Some(7)), Duplicate, "and the last count still stands");
        assert_eq!(take(1, Some(6)), Duplicate);
        assert_eq!(take(2, Some(1)), Commit, "a new stamp counts anew");
        assert_eq!(take(2, Some(1)), Duplicate);
        assert_eq!(take(1, Some(9)), Stale, "a lower stamp is stale whatever it counts");
    }

    #[test]
    fn under_greater_a_repeated_count_is_a_duplicate_and_a_new_one_stale() {
        let mut fence = LogFence::new();
        let mut take = |seq| fence.take(Policy::Greater, write(0, 1, "a", seq));
        assert_eq!(take(Some(5)), Commit);
        assert_eq!(take(Some(5)), Duplicate);
        assert_eq!(take(Some(6)), Stale);
        assert_eq!(take(Some(6)), Stale, "what was refused was not committed");
        assert_eq!(fence.take(Policy::Greater, write(0, 1, "b", Some(5))), WrongHolder, "the holder comes first");
    }

    /// Where no leap is too far and nobody releases, the log's fence and a store's say the same.
    #[test]
    fn it_agrees_with_the_fence_of_a_store() {
        for policy in [Policy::AtLeast, Policy::Greater] {
            let limits = Limits { policy, epochs: EpochRule::Stamp, token_jump: u64::MAX, ..Limits::default() };
            let mut live = Fence::new(FenceRecord::floor(Epoch(0), 0), limits);
            let mut log = LogFence::new();
            // A linear congruence (Numerical Recipes') for stamps; now and then both begin anew, low down.
            let mut x = 1_u32;
            for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (epoch, token, holder) = (x >> 28, u64::from(x >> 20 & 7) + 1, ["a", "b"][(x >> 8 & 1) as usize]);
                let stamp = Stamp {
                    epoch: Epoch(epoch),
                    token: Token::new(token).unwrap(),
                    holder: HolderId::new(holder).unwrap(),
                };
                let want = match live.admit(stamp) {
                    Admitted::Current(_) => Commit,
                    Admitted::Raise(raise) => {
                        let proof = Proof::read_back(raise.record());
                        drop(live.commit(raise, proof).unwrap());
                        Commit
                    }
                    Admitted::Refused(refused) => match refused.reason {
                        Refusal::WrongHolder => WrongHolder,
                        Refusal::Stale => Stale,
                        other => panic!("{other:?}"),
                    },
                };
                assert_eq!(log.take(policy, stamp.into()), want, "{stamp} {policy:?}");
                if x.is_multiple_of(97) {
                    live = Fence::new(FenceRecord::floor(Epoch(0), 0), limits);
                    log = LogFence::new();
                }
            }
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_line_reads_with_its_defaults() {
        let read = |line| serde_json::from_str::<LogWrite<&str>>(line);
        assert_eq!(read(r#"{"holder":"a","token":1}"#).unwrap(), write(0, 1, "a", None));
        let full = r#"{"resource":"r","holder":"a","token":18446744073709551615,"epoch":4294967295,"seq":0}"#;
        assert_eq!(read(full).unwrap(), write(u32::MAX, u64::MAX, "a", Some(0)));
        for bad in [r#"{"holder":"a"}"#, r#"{"holder":"a","token":0}"#, r#"{"holder":"a","token":1.0}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(serde_json::to_value(WrongHolder).unwrap(), WrongHolder.name());
    }
}
