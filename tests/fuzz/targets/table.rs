//! A table of fences against a map of them: the same answers, whatever comes in which order; a full one forgets nothing.
#![no_main]

use arbitrary::Arbitrary;
use fencegate::{
    Admitted, Epoch, Fence, FenceRecord, FenceTable, HolderId, Proof, Stamp, TableAdmitted, TableError, TableProof,
    TableRefused, Token,
};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

#[derive(Arbitrary, Debug)]
struct Command {
    key: u8,
    epoch: u8,
    token: u64,
    holder: bool,
    /// What has been stored is read back under another key.
    misread: bool,
}

fuzz_target!(|commands: Vec<Command>| {
    type Table = FenceTable<u8, 8>;
    let mut table = Table::new();
    let mut map: BTreeMap<u8, Fence> = BTreeMap::new();
    for Command { key, epoch, token, holder, misread } in commands {
        let Some(token) = Token::new(token) else { continue };
        let holder = HolderId::new(if holder { "a" } else { "b" }).unwrap();
        let stamp = Stamp { epoch: Epoch(epoch.into()), token, holder };
        let known = map.contains_key(&key);
        let fresh = Fence::new(FenceRecord::floor(Epoch(0), 0), Table::LIMITS);
        let fence = map.get(&key).cloned().unwrap_or(fresh);
        match (table.admit(&key, stamp), fence.admit(stamp)) {
            (TableAdmitted::Refused(TableRefused::Full), _) => assert!(!known && map.len() == 8),
            (TableAdmitted::Current(pass), Admitted::Current(other)) => assert_eq!(pass, other),
            (TableAdmitted::Refused(TableRefused::Fence(refused)), Admitted::Refused(other)) => {
                assert_eq!(refused, other);
            }
            (TableAdmitted::Raise(raise), Admitted::Raise(other)) => {
                assert_eq!((raise.key(), raise.record()), (&key, other.record()));
                let record = raise.record();
                let read_back = TableProof::read_back(if misread { !key } else { key }, record);
                let passed = table.commit(raise, read_back);
                if misread {
                    assert_eq!(passed, Err(TableError::NotStored));
                } else {
                    let mut fence = fence;
                    assert_eq!(passed.ok(), fence.commit(other, Proof::read_back(record)).ok());
                    map.insert(key, fence);
                }
            }
            (table, fence) => panic!("the table says {table:?}, the fence {fence:?}"),
        }
        let all: Vec<_> = table.iter().map(|(key, record)| (*key, record)).collect();
        let want: Vec<_> = map.iter().map(|(key, fence)| (*key, fence.record())).collect();
        assert_eq!(all, want);
    }
    // What was stored, read in any order at boot, is the same table.
    let mut restored = Table::new();
    for (key, fence) in map.iter().rev() {
        assert_eq!(restored.restore(*key, fence.record()), Ok(()));
    }
    assert_eq!(restored, table);
});
