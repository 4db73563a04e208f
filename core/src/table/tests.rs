use super::*;
use crate::{HolderId, Refusal, Token};
use std::string::ToString;
use std::vec::Vec;

fn stamp(epoch: u32, token: u64, holder: &str) -> Stamp {
    Stamp { epoch: Epoch(epoch), token: Token::new(token).unwrap(), holder: HolderId::new(holder).unwrap() }
}

/// Raises a resource's fence through a store that works.
fn raise<const N: usize>(table: &mut FenceTable<u32, N>, key: u32, stamp: Stamp) -> Result<Stamp, TableError> {
    let TableAdmitted::Raise(raise) = table.admit(&key, stamp) else { panic!("{stamp} does not raise {key}") };
    let proof = TableProof::read_back(*raise.key(), raise.record());
    table.commit(raise, proof).map(|pass| pass.stamp())
}

fn refusal<const N: usize>(table: &FenceTable<u32, N>, key: u32, stamp: Stamp) -> Option<TableRefused> {
    match table.admit(&key, stamp) {
        TableAdmitted::Refused(refused) => Some(refused),
        _ => None,
    }
}

#[test]
fn each_resource_has_a_fence_of_its_own() {
    let mut table: FenceTable<u32, 4> = FenceTable::default();
    assert!(table.is_empty());
    assert_eq!(raise(&mut table, 7, stamp(0, 34, "b")).unwrap(), stamp(0, 34, "b"));
    assert_eq!(raise(&mut table, 3, stamp(0, 33, "a")).unwrap(), stamp(0, 33, "a"));
    let Some(TableRefused::Fence(refused)) = refusal(&table, 7, stamp(0, 33, "a")) else { panic!() };
    assert_eq!((refused.reason, refused.by.token), (Refusal::Stale, 34));
    assert!(matches!(table.admit(&7, stamp(0, 34, "b")), TableAdmitted::Current(_)));
    assert_eq!((table.len(), table.is_empty(), table.is_full()), (2, false, false));
    assert_eq!(table.record(&5), None);
}

#[test]
fn when_it_is_full_nothing_is_forgotten_and_a_new_resource_is_refused_with_a_reason() {
    let mut table: FenceTable<u32, 2> = FenceTable::new();
    raise(&mut table, 1, stamp(0, 10, "a")).unwrap();
    raise(&mut table, 2, stamp(0, 20, "a")).unwrap();
    assert!(table.is_full());
    assert_eq!(refusal(&table, 3, stamp(0, 30, "a")), Some(TableRefused::Full));
    assert_eq!(table.restore(3, FenceRecord::floor(Epoch(0), 0)), Err(TableError::Full));
    assert!(matches!(refusal(&table, 1, stamp(0, 9, "b")), Some(TableRefused::Fence(_))));
    raise(&mut table, 1, stamp(0, 11, "b")).unwrap();
    assert_eq!(table.record(&2).unwrap().token, 20);
}

#[test]
fn a_table_that_filled_up_while_a_store_ran_gives_no_pass() {
    let mut table: FenceTable<u32, 1> = FenceTable::new();
    let TableAdmitted::Raise(late) = table.admit(&1, stamp(0, 1, "a")) else { panic!() };
    raise(&mut table, 2, stamp(0, 1, "a")).unwrap();
    let proof = TableProof::read_back(1, late.record());
    assert_eq!(table.commit(late, proof), Err(TableError::Full));
    assert_eq!(refusal(&table, 1, stamp(0, 9, "a")), Some(TableRefused::Full));
}

#[test]
fn a_proof_is_of_one_resource_and_one_record() {
    let mut table: FenceTable<u32, 4> = FenceTable::new();
    let decide = |table: &FenceTable<u32, 4>| match table.admit(&1, stamp(0, 1, "a")) {
        TableAdmitted::Raise(raise) => raise,
        other => panic!("{other:?}"),
    };
    let record = decide(&table).record();
    let raise_1 = decide(&table);
    assert_eq!(
        table.commit(raise_1, TableProof::read_back(2, record)),
        Err(TableError::NotStored),
        "another's storage"
    );
    let raise_1 = decide(&table);
    let other = FenceRecord { token: 2, ..record };
    assert_eq!(table.commit(raise_1, TableProof::read_back(1, other)), Err(TableError::NotStored));
    let late = decide(&table);
    raise(&mut table, 1, stamp(0, 2, "b")).unwrap();
    assert_eq!(table.commit(late, TableProof::read_back(1, record)), Err(TableError::NotStored), "the fence moved on");
}

#[test]
fn records_come_back_in_any_order_and_the_later_of_two_counts() {
    let mut table: FenceTable<u32, 8> = FenceTable::new();
    let mut records = Vec::new();
    for key in [5, 1, 8, 3, 7, 2] {
        raise(&mut table, key, stamp(0, u64::from(key), "a")).unwrap();
        records.push((key, table.record(&key).unwrap()));
    }
    assert_eq!(table.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [1, 2, 3, 5, 7, 8]);
    let mut restored: FenceTable<u32, 8> = FenceTable::new();
    for (key, record) in records.iter().chain(&records) {
        restored.restore(*key, *record).unwrap();
    }
    assert_eq!(restored, table);

    let later = FenceRecord { token: 9, ..table.record(&5).unwrap() };
    restored.restore(5, later).unwrap();
    restored.restore(5, table.record(&5).unwrap()).unwrap();
    assert_eq!(restored.record(&5), Some(later));
    let other = FenceRecord { holder: HolderId::new("b").ok(), ..later };
    assert_eq!(restored.restore(5, other), Err(TableError::Contradiction));
}

#[test]
fn epochs_come_with_the_stamps_unless_told_otherwise() {
    let mut table: FenceTable<u32, 2> = FenceTable::new();
    raise(&mut table, 1, stamp(0, 2_000, "a")).unwrap();
    raise(&mut table, 1, stamp(1, 1_501, "b")).unwrap();
    assert!(refusal(&table, 1, stamp(0, 2_001, "a")).is_some());

    let table: FenceTable<u32, 2> = FenceTable::with_limits(Limits::default());
    assert!(refusal(&table, 1, stamp(1, 1, "b")).is_some(), "only the operator moves the epoch");
}

#[test]
fn each_reason_is_a_sentence_of_its_own() {
    let full = [TableRefused::Full.to_string(), TableError::Full.to_string()];
    assert!(full.iter().all(|text| text.contains("full") || text.contains("room")));
    assert_ne!(TableError::NotStored.to_string(), TableError::Contradiction.to_string());
    let by = FenceRecord::floor(Epoch(0), 1);
    let refused = Refused { reason: Refusal::Stale, by };
    assert_eq!(TableRefused::Fence(refused).to_string(), refused.to_string());
}
