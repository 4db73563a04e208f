//! The fence of a store and the fence of a log against every order of stamps, stores that fail, releases and epochs.
#![no_main]

use arbitrary::Arbitrary;
use fencegate::{
    Admitted, Deadline, Duration, Epoch, EpochRule, Fence, FenceRecord, HolderId, Instant, Limits, LogFence, LogWrite,
    Policy, Proof, Refusal, Stamp, Token, Verdict,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug, Clone, Copy)]
struct Who {
    epoch: u32,
    token: u64,
    holder: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A command; what has been stored when it is read back: the record itself, or that of another stamp.
    Command(Who, Option<Who>),
    Release(Who),
    Epoch(u32, u64),
    /// The power is cut: what is stored is all there is.
    Cut,
}

#[derive(Arbitrary, Debug)]
struct Run {
    greater: bool,
    by_stamp: bool,
    jump: u64,
    floor: u64,
    steps: Vec<Step>,
}

fn stamp(who: Who) -> Option<Stamp> {
    let holder = HolderId::new(if who.holder { "a" } else { "b" }).unwrap();
    Some(Stamp { epoch: Epoch(who.epoch), token: Token::new(who.token)?, holder })
}

fn key(record: FenceRecord) -> (Epoch, u64) {
    (record.epoch, record.token)
}

fuzz_target!(|run: Run| {
    let limits = Limits {
        policy: if run.greater { Policy::Greater } else { Policy::AtLeast },
        epochs: if run.by_stamp { EpochRule::Stamp } else { EpochRule::Operator },
        epoch_jump: Limits::EPOCH_JUMP,
        token_jump: run.jump,
    };
    let mut fence = Fence::new(FenceRecord::floor(Epoch(0), run.floor), limits);
    let mut stored = fence.record();
    let mut log = LogFence::new();
    for step in run.steps {
        let before = fence.record();
        match step {
            Step::Command(who, misread) => {
                let Some(stamp) = stamp(who) else { continue };
                let at = (stamp.epoch, stamp.token.get());
                let mut took = false;
                match fence.admit(stamp) {
                    Admitted::Current(pass) => {
                        assert_eq!((fence.current(), limits.policy), (Some(stamp), Policy::AtLeast));
                        let now = Instant::from_micros(who.token);
                        let deadline = Deadline::after(now, Duration::from_micros(1));
                        assert_eq!(deadline.is_some(), deadline.is_some_and(|end| pass.act(now, end).is_ok()));
                        took = true;
                    }
                    Admitted::Raise(raise) => {
                        assert!(at > key(before) || before.holder.is_none() && at >= key(before));
                        stored = misread
                            .and_then(self::stamp)
                            .map_or(raise.record(), |other| FenceRecord { token: other.token.get(), ..raise.record() });
                        let is_it = stored == raise.record();
                        let passed = fence.commit(raise, Proof::read_back(stored));
                        assert_eq!(passed.is_ok(), is_it);
                        if let Ok(pass) = passed {
                            assert_eq!((pass.stamp(), fence.current()), (stamp, Some(stamp)));
                            took = true;
                        } else {
                            assert_eq!(fence.record(), before);
                            stored = before;
                        }
                    }
                    Admitted::Refused(refused) => {
                        assert_eq!(refused.by, before);
                        match refused.reason {
                            Refusal::Stale => assert!(at <= key(before)),
                            Refusal::WrongHolder => assert!(at == key(before) && before.holder != Some(stamp.holder)),
                            Refusal::Released => assert!(at == key(before) && before.released),
                            Refusal::Jump => assert!(at > key(before)),
                        }
                    }
                }
                if took {
                    // A log knows no limit: what a store takes, a log of the same writes takes too.
                    assert_eq!(log.take(limits.policy, LogWrite::from(stamp)), Verdict::Commit);
                }
            }
            Step::Release(who) => {
                let Some(stamp) = stamp(who) else { continue };
                if let Ok(release) = fence.release(stamp) {
                    stored = release.record();
                    assert_eq!(fence.commit_release(release, Proof::read_back(stored)), Ok(()));
                    assert!(matches!(fence.admit(stamp), Admitted::Refused(_)), "{stamp} came back");
                    let write = LogWrite::from(stamp);
                    let _ = log.take(Policy::AtLeast, write);
                }
            }
            Step::Epoch(epoch, floor) => {
                if let Ok(raise) = fence.raise_epoch(Epoch(epoch), floor) {
                    stored = raise.record();
                    assert_eq!(fence.commit_epoch(raise, Proof::read_back(stored)), Ok(()));
                    assert!(fence.record().epoch > before.epoch);
                    assert_eq!(fence.current(), None);
                }
            }
            Step::Cut => fence = Fence::new(stored, limits),
        }
        assert_eq!(fence.record(), stored, "what is in force is what is stored");
        assert_ne!(before.order(&fence.record()), Some(std::cmp::Ordering::Greater), "the fence went back");
    }
});
