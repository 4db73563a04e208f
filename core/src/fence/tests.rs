use super::*;

fn stamp(epoch: u32, token: u64, holder: &str) -> Stamp {
    Stamp { epoch: Epoch(epoch), token: Token::new(token).unwrap(), holder: HolderId::new(holder).unwrap() }
}

fn fresh() -> Fence {
    Fence::new(FenceRecord::floor(Epoch(0), 0), Limits::default())
}

/// Raises the fence through a store that works.
fn raise(fence: &mut Fence, stamp: Stamp) {
    let Admitted::Raise(raise) = fence.admit(stamp) else { panic!("{stamp} does not raise") };
    let proof = Proof::read_back(raise.record());
    assert_eq!(fence.commit(raise, proof).unwrap().stamp(), stamp);
}

fn refusal(fence: &Fence, stamp: Stamp) -> Option<Refusal> {
    match fence.admit(stamp) {
        Admitted::Refused(r) => Some(r.reason),
        _ => None,
    }
}

#[test]
fn a_late_command_bounces_off_its_successors_stamp() {
    let mut fence = fresh();
    raise(&mut fence, stamp(0, 33, "a"));
    raise(&mut fence, stamp(0, 34, "b"));
    let Admitted::Refused(refused) = fence.admit(stamp(0, 33, "a")) else { panic!() };
    assert_eq!(refused.reason, Refusal::Stale);
    assert_eq!(
        refused.by,
        FenceRecord { epoch: Epoch(0), token: 34, holder: HolderId::new("b").ok(), released: false }
    );
}

/// Every decision of a fence in every small state, against the contract's sentences taken one by one.
#[test]
fn small_states_exhaustively() {
    let holders = ["a", "b"];
    let mut records = std::vec![FenceRecord::floor(Epoch(1), 0), FenceRecord::floor(Epoch(1), 2)];
    for token in 1..=3 {
        for holder in holders {
            for released in [false, true] {
                records.push(FenceRecord { released, ..FenceRecord::of(stamp(1, token, holder), false) });
            }
        }
    }
    for (record, epoch, token, holder) in records
        .iter()
        .flat_map(|r| (0..=2).map(move |e| (r, e)))
        .flat_map(|(r, e)| (1..=4).map(move |t| (r, e, t)))
        .flat_map(|(r, e, t)| holders.map(move |h| (r, e, t, h)))
    {
        for policy in [Policy::AtLeast, Policy::Greater] {
            for epochs in [EpochRule::Operator, EpochRule::Stamp] {
                let fence = Fence::new(*record, Limits { policy, epochs, token_jump: 1, ..Limits::default() });
                let s = stamp(epoch, token, holder);
                let lower = epoch < 1 || (epoch == 1 && token < record.token);
                let equal = epoch == 1 && token == record.token;
                let expected = if lower || (equal && record.holder.is_none()) {
                    Some(Refusal::Stale)
                } else if equal && record.holder != Some(s.holder) {
                    Some(Refusal::WrongHolder)
                } else if equal && record.released {
                    Some(Refusal::Released)
                } else if equal {
                    (policy == Policy::Greater).then_some(Refusal::Stale)
                } else if epoch > 1 {
                    (epochs == EpochRule::Operator).then_some(Refusal::Jump)
                } else {
                    (record.holder.is_some() && token > record.token + 1).then_some(Refusal::Jump)
                };
                assert_eq!(refusal(&fence, s), expected, "{s} at {record:?} under {policy:?}, {epochs:?}");
                if expected.is_none() {
                    assert_eq!(matches!(fence.admit(s), Admitted::Current(_)), equal, "{s} at {record:?}");
                }
            }
        }
    }
}

#[test]
fn one_garbled_number_does_not_lock_the_fence() {
    let mut fence = fresh();
    assert_eq!(refusal(&fence, stamp(0, u64::MAX, "a")), Some(Refusal::Jump));
    assert_eq!(refusal(&fence, stamp(0, 1 << 63, "a")), Some(Refusal::Jump));
    raise(&mut fence, stamp(0, 7, "a"));
    assert_eq!(refusal(&fence, stamp(0, 8 + Limits::TOKEN_JUMP, "a")), Some(Refusal::Jump));
    raise(&mut fence, stamp(0, 7 + Limits::TOKEN_JUMP, "a"));
    assert_eq!(fence.raise_epoch(Epoch(65_537), 0).unwrap_err().reason, Refusal::Jump);
    assert!(fence.raise_epoch(Epoch(65_536), 0).is_ok());
    let narrow = Fence::new(fence.record(), Limits { epoch_jump: 2, ..Limits::default() });
    assert_eq!(narrow.raise_epoch(Epoch(3), 0).unwrap_err().reason, Refusal::Jump);
    assert!(narrow.raise_epoch(Epoch(2), 0).is_ok());
}

#[test]
fn after_a_restore_the_next_epochs_1501_outranks_2000() {
    let mut fence = fresh();
    raise(&mut fence, stamp(0, 2_000, "a"));
    assert_eq!(refusal(&fence, stamp(0, 1_501, "b")), Some(Refusal::Stale));
    assert_eq!(refusal(&fence, stamp(1, 1_501, "b")), Some(Refusal::Jump), "only the operator moves the epoch");
    let epoch = fence.raise_epoch(Epoch(1), 1_500).unwrap();
    let proof = Proof::read_back(epoch.record());
    fence.commit_epoch(epoch, proof).unwrap();
    assert_eq!(refusal(&fence, stamp(1, 1_500, "b")), Some(Refusal::Stale), "the floor itself is not above the floor");
    raise(&mut fence, stamp(1, 1_501, "b"));
    assert_eq!(refusal(&fence, stamp(0, 2_001, "a")), Some(Refusal::Stale));
    assert_eq!(fence.raise_epoch(Epoch(1), 0).unwrap_err().reason, Refusal::Stale);
}

#[test]
fn a_released_stamp_does_not_come_back() {
    let mut fence = fresh();
    raise(&mut fence, stamp(0, 5, "a"));
    assert_eq!(fence.release(stamp(0, 5, "b")).unwrap_err().reason, Refusal::WrongHolder);
    let release = fence.release(stamp(0, 5, "a")).unwrap();
    let proof = Proof::read_back(release.record());
    fence.commit_release(release, proof).unwrap();
    assert_eq!(fence.current(), None);
    assert_eq!(refusal(&fence, stamp(0, 5, "a")), Some(Refusal::Released));
    assert_eq!(refusal(&Fence::new(fence.record(), Limits::default()), stamp(0, 5, "a")), Some(Refusal::Released));
    raise(&mut fence, stamp(0, 6, "a"));
    assert_eq!(fence.release(stamp(0, 5, "a")).unwrap_err().reason, Refusal::Stale, "it would be the next owner's");
}

#[test]
fn only_the_record_that_was_decided_is_proof() {
    let mut fence = fresh();
    let Admitted::Raise(a) = fence.admit(stamp(0, 1, "a")) else { panic!() };
    let Admitted::Raise(b) = fence.admit(stamp(0, 2, "b")) else { panic!() };
    assert_eq!(fence.commit(a, Proof::read_back(b.record())), Err(NotStored));
    assert_eq!(fence.record(), FenceRecord::floor(Epoch(0), 0), "a failed commit changes nothing");

    let Admitted::Raise(a) = fence.admit(stamp(0, 1, "a")) else { panic!() };
    raise(&mut fence, stamp(0, 2, "b"));
    let proof = Proof::read_back(a.record());
    assert_eq!(fence.commit(a, proof), Err(NotStored), "the fence moved on meanwhile");
}

#[test]
fn a_store_may_outlast_the_window() {
    let mut fence = fresh();
    raise(&mut fence, stamp(0, 1, "a"));
    let end = Deadline::at(Instant::from_micros(100));
    let Admitted::Current(pass) = fence.admit(stamp(0, 1, "a")) else { panic!() };
    assert_eq!(
        pass.act(Instant::from_micros(99), end).unwrap().left(Instant::from_micros(99)),
        Duration::from_micros(1)
    );
    let Admitted::Current(pass) = fence.admit(stamp(0, 1, "a")) else { panic!() };
    assert_eq!(pass.act(Instant::from_micros(100), end), Err(Expired));
}

#[test]
fn the_later_of_two_copies_is_found_or_they_contradict_each_other() {
    use core::cmp::Ordering::{Equal, Greater, Less};
    let floor = FenceRecord::floor(Epoch(0), 3);
    let a = FenceRecord::of(stamp(0, 3, "a"), false);
    let released = FenceRecord::of(stamp(0, 3, "a"), true);
    assert_eq!(floor.order(&a), Some(Less));
    assert_eq!(released.order(&a), Some(Greater));
    assert_eq!(a.order(&a), Some(Equal));
    assert_eq!(a.order(&FenceRecord::of(stamp(0, 3, "b"), false)), None);
    assert_eq!(FenceRecord::floor(Epoch(1), 0).order(&released), Some(Greater));
}

#[test]
fn a_fence_is_small() {
    assert!(size_of::<FenceRecord>() <= 40, "{}", size_of::<FenceRecord>());
    assert!(size_of::<Fence>() <= 56, "{}", size_of::<Fence>());
}

#[test]
fn refusals_in_words() {
    extern crate std;
    use std::string::ToString;
    let by = FenceRecord::of(stamp(1, 34, "b"), true);
    for (reason, words) in [
        (Refusal::Stale, "stale: the fence has seen epoch 1 token 34, held by b"),
        (Refusal::WrongHolder, "wrong holder: the fence has seen epoch 1 token 34, held by b"),
        (Refusal::Released, "released: the fence has seen the release of epoch 1 token 34, held by b"),
        (Refusal::Jump, "jump: too far above what the fence has seen, epoch 1 token 34, held by b"),
    ] {
        assert_eq!(Refused { reason, by }.to_string(), words);
    }
    let nobody = Refused { reason: Refusal::Jump, by: FenceRecord::floor(Epoch(0), 7) }.to_string();
    assert!(nobody.ends_with("epoch 0 token 7, held by nobody"), "{nobody}");
    assert!(NotStored.to_string().contains("not the one that was decided"));
    assert!(Expired.to_string().starts_with("expired"));
}
