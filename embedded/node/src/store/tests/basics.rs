//! What a store is for, and what it refuses.

use super::nor::Nor;
use super::*;
use crate::words::{Words, WordsError};
use embedded_storage_async::nor_flash::{NorFlashError, NorFlashErrorKind};

type Flash = Nor<4>;

#[test]
fn a_gate_remembers_and_counts_the_boots_in_which_somebody_spoke() {
    let (second, flash) = memory::<Flash>(gate::<Flash>());
    let mut store = open::<Flash>(flash);
    let _ = block_on(store.boot());
    put(&mut store, 1, mark(33)).unwrap();
    let (again, flash) = memory::<Flash>(chip(store));
    assert_eq!((second.boots, again.boots), (2, 2), "nobody spoke");
    let mut store = open::<Flash>(flash);
    let _ = block_on(store.boot());
    block_on(store.count(2)).unwrap();
    let (third, _) = memory::<Flash>(chip(store));
    assert_eq!(third.boots, 3);
    assert_eq!(third.marks[..], [GrantRecord::floor(Epoch(0), 0), mark(33)].map(Remembered::Mark));
}

#[test]
fn boots_are_restless_until_one_of_them_rests() {
    let mut flash = gate::<Flash>();
    for restless in 2..=5 {
        let mut store = open::<Flash>(flash);
        let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
        assert_eq!((memory.boots, memory.restless), (restless, restless));
        block_on(store.count(memory.boots)).unwrap();
        flash = chip(store);
    }
    let mut store = open::<Flash>(flash);
    let _ = block_on(store.boot());
    block_on(store.count(6)).unwrap();
    block_on(store.rest(4)).unwrap();
    let (memory, flash) = memory::<Flash>(chip(store));
    assert_eq!((memory.boots, memory.restless), (7, 3));
    let mut store = open::<Flash>(flash);
    let _ = block_on(store.boot());
    block_on(store.count(7)).unwrap();
    block_on(store.rest(1_000)).unwrap();
    let (memory, _) = self::memory::<Flash>(chip(store));
    assert_eq!((memory.boots, memory.restless), (8, 1));
}

#[test]
fn a_boot_in_which_nobody_speaks_writes_nothing() {
    let flash = gate::<Flash>();
    let (_, after) = memory::<Flash>(flash.clone());
    assert!(flash.bytes == after.bytes && flash.erases == after.erases);
    let (blank, after) = boot::<Flash>(Chip::erased::<Flash>());
    assert!(matches!(blank, Boot::Blank) && after.bytes.iter().all(|byte| *byte == 0xff));
}

#[test]
fn what_has_no_place_is_refused() {
    let mut store = open::<Flash>(Chip::erased::<Flash>());
    assert_eq!(put(&mut store, 0, mark(1)), Err(StoreError::NoPlace), "before the boot");
    let _ = block_on(store.boot());
    assert_eq!(put(&mut store, 0, mark(1)), Err(StoreError::NoPlace), "a blank board has no channel");
    assert_eq!(block_on(store.count(1)), Err(StoreError::NoPlace));
    let mut store = open::<Flash>(gate::<Flash>());
    let _ = block_on(store.boot());
    assert_eq!(put(&mut store, 2, mark(1)), Err(StoreError::NoPlace));
    let config = OutputConfig::switch();
    assert_eq!(block_on(store.put(&Entry::Output { output: 16, config: config.clone() })), Err(StoreError::NoPlace));
    let ages = Duration::MAX_ANSWER;
    let config = OutputConfig { least_on: ages, least_off: ages, min: i32::MIN, feedback: Some(ages), ..config };
    let config = OutputConfig { action: SafeAction::Hold { value: i32::MIN, time: ages }, max: i32::MAX, ..config };
    assert_eq!(block_on(store.put(&Entry::Output { output: 0, config })), Err(StoreError::TooLong));
}

#[test]
fn a_word_is_written_whole_or_not_at_all() {
    let mut words = Words::<Nor<1>>::from(Chip::erased::<Words<Nor<1>>>());
    for (offset, len) in [(1, 4), (2, 4), (4, 3), (4, 6)] {
        let refused = block_on(words.write(offset, &[0; 8][..len])).unwrap_err();
        assert!(matches!(refused, WordsError::NotAligned) && refused.kind() == NorFlashErrorKind::NotAligned);
    }
    block_on(words.write(4, &[1, 2, 3, 4, 5, 6, 7, 8])).unwrap();
    let mut read = [0; 10];
    block_on(embedded_storage_async::nor_flash::ReadNorFlash::read(&mut words, 3, &mut read)).unwrap();
    assert_eq!(read, [0xff, 1, 2, 3, 4, 5, 6, 7, 8, 0xff]);
    assert_eq!(Chip::from(words).erases, [0; 4]);
}

/// What a store takes of the static RAM of a firmware; a future of it lives inside the one task.
#[test]
fn a_store_is_small() {
    let mut store = open::<Flash>(gate::<Flash>());
    let own = size_of::<Store<Flash>>() - size_of::<Flash>();
    let entry = Entry::Mark { channel: 0, mark: mark(1) };
    let boot = size_of_val(&store.boot());
    let count = size_of_val(&store.count(1));
    let put = size_of_val(&store.put(&entry));
    println!("the store {own} bytes, boot {boot}, count {count}, put {put}");
    assert!(own <= 1_600, "{own}");
}
