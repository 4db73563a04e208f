//! What is lost, or in one copy only, or torn.

use super::cuts::set_power;
use super::nor::{BYTE, Nor};
use super::*;
use crate::store::record::VALUE;

type Flash = Nor<4>;

/// A gate on a flash of so many pages.
fn gate_of(pages: usize) -> Chip {
    let mut store = open::<Flash>(Chip::with_pages::<Flash>(pages));
    let _ = block_on(store.boot());
    provision(&mut store, &provisioning(0)).unwrap();
    let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
    block_on(store.count(memory.boots)).unwrap();
    chip(store)
}

fn lost_boots(store: &mut Store<Flash>) {
    for copy in Copy::BOTH {
        store.logs.a.fill(|bytes| bytes.get_mut(..9).map(|bytes| bytes.fill(0xaa)).map(|()| 9)).unwrap();
        block_on(store.logs.append(Copy::A, copy, Key::BOOTS)).unwrap();
    }
}

#[test]
fn what_is_lost_stays_lost_through_a_provisioning() {
    for spoil in [&[0xaa_u8; 9][..], &[]] {
        let mut store = open::<Flash>(gate::<Flash>());
        for copy in Copy::BOTH {
            store
                .logs
                .a
                .fill(|bytes| bytes.get_mut(..spoil.len()).map(|b| b.copy_from_slice(spoil)).map(|()| spoil.len()))
                .unwrap();
            block_on(store.logs.append(Copy::A, copy, Key::mark(1).unwrap())).unwrap();
        }
        let _ = block_on(store.boot());
        provision(&mut store, &provisioning(1)).unwrap();
        let (Boot::Gate(_, memory), flash) = boot::<Flash>(chip(store)) else { panic!() };
        assert!(trusted(&memory, 0).is_some() && trusted(&memory, 1).is_none() && trusted(&memory, 2).is_some());
        // The operator's epoch is the way out.
        let mut store = open::<Flash>(flash);
        let _ = block_on(store.boot());
        put(&mut store, 1, GrantRecord::floor(Epoch(1), 0)).unwrap();
        let (Boot::Gate(_, memory), _) = boot::<Flash>(chip(store)) else { panic!() };
        assert!(all_trusted(&memory));
    }
}

/// The boot counter lost in both copies: no fence is trusted, not after the next boot either, and the new count is none
/// that was.
#[test]
fn a_lost_boot_counter_is_a_loss_until_the_operator_says_otherwise() {
    let mut flash = gate::<Flash>();
    let mut counts = vec![1];
    for round in 0..5 {
        let mut store = open::<Flash>(flash);
        let _ = block_on(store.boot());
        let five = GrantRecord { mark: FenceRecord { epoch: Epoch(round), ..mark(5).mark }, ..mark(5) };
        put(&mut store, 0, five).unwrap();
        lost_boots(&mut store);
        let (lost, flash_after) = memory::<Flash>(chip(store));
        assert!(lost.storable && all_lost(&lost) && lost.boots >= 1 << 31);
        assert_eq!(lost.marks[0], Remembered::Lost(five.mark), "what could still be read");
        assert!(!counts.contains(&lost.boots), "{} again", lost.boots);
        counts.push(lost.boots);
        let mut store = open::<Flash>(flash_after);
        let _ = block_on(store.boot());
        block_on(store.count(lost.boots)).unwrap();
        let (next, after) = memory::<Flash>(chip(store));
        assert_eq!(next.boots, lost.boots + 1);
        assert!(all_lost(&next) && next.marks[0] == Remembered::Lost(five.mark));
        let mut store = open::<Flash>(after);
        let _ = block_on(store.boot());
        block_on(store.count(next.boots)).unwrap();
        counts.push(next.boots);
        let epoch = GrantRecord::floor(Epoch(round + 1), 0);
        put(&mut store, 0, epoch).unwrap();
        let (trusted_again, after) = memory::<Flash>(chip(store));
        assert_eq!(trusted(&trusted_again, 0), Some(epoch));
        assert_eq!(trusted(&trusted_again, 1), None);
        flash = after;
        // For the next round the fence is of this epoch: what follows is put above it.
        let mut store = open::<Flash>(flash);
        let _ = block_on(store.boot());
        put(&mut store, 1, epoch).unwrap();
        flash = chip(store);
    }
}

/// Lost again and again: each count begins above all that can still be read, one from after an earlier loss among them, since a
/// cut may uncover it, and of two the greater is believed.
#[test]
fn a_counter_that_is_lost_again_begins_above_what_can_still_be_read() {
    let (mut flash, mut last) = (gate_of(16), 1);
    for _ in 0..8 {
        let mut store = open::<Flash>(flash);
        let _ = block_on(store.boot());
        block_on(store.logs.remove(Key::BOOTS)).unwrap();
        let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
        assert!(memory.boots > last && memory.boots >= 1 << 31, "{} after {last}", memory.boots);
        block_on(store.count(memory.boots)).unwrap();
        (flash, last) = (chip(store), memory.boots);
    }
}

#[test]
fn what_is_latched_is_there_after_a_boot_and_where_it_is_lost_everything_is() {
    let mut store = open::<Flash>(gate_of(16));
    assert_eq!(block_on(store.put(&Entry::Latched(latched(1)))), Err(StoreError::NoPlace), "before the boot");
    let Boot::Gate(_, new) = block_on(store.boot()) else { panic!() };
    assert_eq!(new.latched, Latched::default(), "a new gate is armed");
    for serial in [1, 2, 3] {
        let _ = block_on(store.put(&Entry::Latched(latched(serial)))).unwrap();
    }
    let (found, flash) = memory::<Flash>(chip(store));
    assert_eq!((found.latched, found.mended), (latched(3), 0));
    // One in the first copy only, and none that can be read in either.
    let other = Latched { serial: 4, inhibited: 0x40, astray: 0 };
    for (spoil, holds) in [(Some(other), latched(3).or(other)), (None, Latched::UNKNOWN)] {
        let mut store = open::<Flash>(flash.clone());
        for copy in Copy::BOTH.into_iter().take(if spoil.is_some() { 1 } else { 2 }) {
            match spoil {
                Some(latched) => store.logs.set(&latched).unwrap(),
                None => store.logs.a.fill(|bytes| bytes.get_mut(..9).map(|b| b.fill(0xaa)).map(|()| 9)).unwrap(),
            }
            block_on(store.logs.append(Copy::A, copy, Key::LATCHED)).unwrap();
        }
        let (found, flash) = memory::<Flash>(chip(store));
        assert!(found.unsure && found.latched.says(holds), "what either copy has is held: {found:?}");
        let mut store = open::<Flash>(flash);
        let _ = block_on(store.boot());
        let settled = settle(&mut store, &found).unwrap();
        let (found, _) = memory::<Flash>(chip(store));
        assert_eq!((found.latched, found.unsure), (settled, false));
    }
}

/// A rearm that was cut off in the first copy is none tomorrow, whichever way its weak bit reads: at this boot, at the next,
/// and when power fails between what is mended and what is stored anew. Nor is what is latched next lost to it.
#[test]
fn a_torn_rearm_is_none_tomorrow() {
    for (pages, noise) in [4, 6, 8, 16].into_iter().flat_map(|pages| (0..24).map(move |noise| (pages, noise))) {
        let mut store = open::<Flash>(gate_of(pages));
        let _ = block_on(store.boot());
        let both = Latched { serial: 1, inhibited: 3, astray: 0 };
        let _ = block_on(store.put(&Entry::Latched(both))).unwrap();
        let before = chip(store);
        let mut store = open::<Flash>(before.clone());
        // With a number that many a rearm before it may have used up.
        store.logs.set(&Latched { serial: 9, inhibited: 0, astray: 0 }).unwrap();
        block_on(store.logs.append(Copy::A, Copy::A, Key::LATCHED)).unwrap();
        let mut torn = chip(store);
        let last = (0..torn.bytes.len() / 2).rfind(|at| torn.bytes[*at] != before.bytes[*at]).unwrap() / 4 * 4;
        let bit = 1 << torn.bytes[last].trailing_ones();
        (torn.bytes[last], torn.weak[last], torn.any_weak) = (torn.bytes[last] | bit, bit, true);

        for settles in [true, false] {
            let mut store = open::<Flash>(Chip { noise, ..torn.clone() });
            let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
            assert!(memory.latched.says(both));
            let mut stands = both;
            if settles {
                stands = settle(&mut store, &memory).unwrap();
                block_on(store.count(memory.boots)).unwrap();
            }
            for stop in [false, true] {
                if stop {
                    stands = Latched { serial: stands.serial + 1, inhibited: 3, astray: 4 };
                    let _ = block_on(store.put(&Entry::Latched(stands))).unwrap();
                }
                for token in 1..if settles { 20 } else { 0 } {
                    put(&mut store, 0, mark(token + if stop { 20 } else { 0 })).unwrap();
                }
                let flash = chip(store);
                for noise in 100..120 {
                    let (memory, after) = self::memory::<Flash>(Chip { noise, ..flash.clone() });
                    assert!(memory.latched.says(stands), "{pages} pages: {:?} after {stands:?}", memory.latched);
                    // A page's end that a cut has left half-written: the copy is written anew from the other.
                    let mut half = after;
                    let page = half.bytes.len() / 4096 / 2 - 1;
                    if half.bytes[page * 4096] == 0xff {
                        half.bytes[page * 4096] = 0xf0;
                        let (memory, _) = self::memory::<Flash>(Chip { noise: noise + 7, ..half });
                        assert!(memory.latched.says(stands), "{pages} pages: {:?} after {stands:?}", memory.latched);
                    }
                }
                store = open::<Flash>(flash);
                let _ = block_on(store.boot());
            }
        }
    }
}

/// A cut has left the first word behind a copy's records half-programmed, and it reads as erased: what the next boot writes
/// comes to lie on it, and may read otherwise later. The other copy need not be there to know better.
#[test]
fn what_is_written_over_a_weak_word_is_there_without_the_other_copy() {
    for (copy, bit) in Copy::BOTH.into_iter().flat_map(|copy| (0..64).map(move |bit| (copy, bit))) {
        let mut weak = gate_of(8);
        let half = weak.bytes.len() / 2;
        let (here, there) = if copy == Copy::A { (0, half) } else { (half, 0) };
        let end = (here..here + half).rfind(|at| weak.bytes[*at] != 0xff).unwrap() / 4 * 4 + 4;
        (weak.weak[end + bit / 8], weak.any_weak) = (1 << (bit % 8), true);
        // A noise in which it reads as erased.
        let reads_erased =
            |noise: &u64| Random(noise ^ (end + bit / 8) as u64).next().to_le_bytes()[0] >> (bit % 8) & 1 == 0;
        let mut store = open::<Flash>(Chip { noise: (0..1_000).find(reads_erased).unwrap(), ..weak });
        let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
        block_on(store.count(memory.boots)).unwrap();
        put(&mut store, 0, mark(7)).unwrap();
        let mut alone = chip(store);
        alone.bytes[there..there + half].fill(0xff);
        alone.weak[there..there + half].fill(0);
        for noise in 0..16 {
            let (later, _) = self::memory::<Flash>(Chip { noise, ..alone.clone() });
            assert_eq!((trusted(&later, 0), later.boots), (Some(mark(7)), memory.boots + 1), "bit {bit} of {copy:?}");
        }
    }
}

#[test]
fn of_two_ttls_under_one_mark_the_longer_is_believed() {
    for longer in Copy::BOTH {
        let mut store = open::<Flash>(gate::<Flash>());
        let _ = block_on(store.boot());
        let ttl = |ms| GrantRecord { ttl: Duration::from_millis(ms), ..mark(3) };
        for copy in Copy::BOTH {
            let stands = Mark::Stands(ttl(if copy == longer { 900 } else { 100 }));
            store.logs.a.fill(|bytes| record::encode(&stands, bytes)).unwrap();
            block_on(store.logs.append(Copy::A, copy, Key::mark(0).unwrap())).unwrap();
        }
        let (found, flash) = memory::<Flash>(chip(store));
        assert_eq!((trusted(&found, 0), found.mended), (Some(ttl(900)), 1));
        assert_eq!(memory::<Flash>(flash).0.mended, 0, "it is mended");
    }
}

#[test]
fn two_holders_at_one_stamp_are_a_loss() {
    let mut store = open::<Flash>(gate::<Flash>());
    let _ = block_on(store.boot());
    for (copy, name) in Copy::BOTH.into_iter().zip(["a", "b"]) {
        let holder = Some(HolderId::new(name).unwrap());
        let stands = Mark::Stands(GrantRecord { mark: FenceRecord { holder, ..mark(3).mark }, ..mark(3) });
        store.logs.a.fill(|bytes| record::encode(&stands, bytes)).unwrap();
        block_on(store.logs.append(Copy::A, copy, Key::mark(0).unwrap())).unwrap();
    }
    let (found, _) = memory::<Flash>(chip(store));
    assert_eq!(found.marks[0], Remembered::Lost(mark(3).mark));
    assert!(trusted(&found, 1).is_some());
}

/// A store fails, and so does the mending before the next one: from then on only what is latched is stored, until a boot has
/// looked again, and that it was is no mending.
#[test]
fn where_mending_has_failed_nothing_but_a_latch_is_stored() {
    let mut seen = [0; 2];
    for power in (0..400).step_by(4) {
        let mut store = open::<Flash>(gate::<Flash>());
        let _ = block_on(store.boot());
        set_power(&mut store, power * BYTE);
        if put(&mut store, 0, mark(10)).is_ok() {
            break;
        }
        set_power(&mut store, 0);
        assert!(put(&mut store, 1, mark(10)).is_err());
        set_power(&mut store, usize::MAX / 2);
        let latched = Entry::Latched(latched(1));
        assert_eq!(block_on(store.put(&latched)), Ok(Stored::read_back(latched)));
        let said = put(&mut store, 1, mark(11));
        assert_eq!(said, if store.storable { Ok(()) } else { Err(StoreError::Flash) }, "after {power}");
        seen[usize::from(store.storable)] += 1;
        let (memory, _) = memory::<Flash>(chip(store));
        assert!(all_trusted(&memory) && memory.latched.is_any(), "and the next boot has all of it");
    }
    assert!(seen.iter().all(|seen| *seen > 3), "{seen:?}");
}

/// A record is begun with its head. Where the power fails behind it what follows is erased, which is one of the values that
/// check themselves: 4 bytes of ones have a check value of ones.
#[test]
fn a_record_of_which_there_is_the_head_alone_is_torn_however_long_it_was_to_be() {
    for len in 1_usize..=1 + VALUE {
        let mut store = open::<Flash>(gate_of(8));
        let _ = block_on(store.boot());
        let page = usize::try_from(store.logs.range(Copy::A).start).unwrap();
        let mut torn = chip(store);
        let end = page + torn.bytes[page..page + 4096 - 4].iter().rposition(|byte| *byte != 0xff).unwrap();
        let at = (end + 1).next_multiple_of(4);
        let [low, high, ..] = len.to_le_bytes();
        torn.bytes[at..at + 8].copy_from_slice(&[0xa4, 0x2f, 0xda, 0xe8, low, high, 0x08, 0xef]);
        assert!(block_on(open::<Flash>(torn).logs.is_torn(Copy::A)), "{len}");
    }
}

/// One half of the flash takes nothing any more. A stop is stored in the other one nevertheless, and is there after a boot,
/// once all can be written to again.
#[test]
fn a_stop_is_stored_where_one_copy_takes_nothing() {
    let half = gate_of(8).bytes.len() / 2;
    for worn in [0..half, half..2 * half] {
        let mut store = open::<Flash>(Chip { worn: worn.clone(), ..gate_of(8) });
        let _ = block_on(store.boot());
        let stop = Entry::Latched(Latched { serial: 1, inhibited: 3, astray: 0 });
        // Once more after a while, as the gate does; there is no mending by then.
        assert_eq!([(), ()].map(|()| block_on(store.put(&stop)).is_ok()), [false, false]);
        let (memory, _) = memory::<Flash>(Chip { worn: 0..0, ..chip(store) });
        assert_eq!(memory.latched.inhibited, 3, "{worn:?}");
    }
}

/// An epoch fails, and has come into one copy. Mended it is in both, and a lower one does not come behind it: should the first rot
/// away later, nothing would say which of the two was in force.
#[test]
fn what_failed_and_was_mended_is_not_gone_below() {
    let epoch = |n| GrantRecord::floor(Epoch(n), 0);
    let mut store = open::<Flash>(gate_of(8));
    let _ = block_on(store.boot());
    put(&mut store, 0, epoch(1)).unwrap();
    let mut in_force = 0;
    for power in 0..120 {
        let before = chip(store);
        store = open::<Flash>(before.clone());
        let _ = block_on(store.boot());
        set_power(&mut store, power * BYTE);
        let failed = put(&mut store, 0, epoch(9)).is_err();
        set_power(&mut store, usize::MAX / 2);
        // Whoever mends it, and however often it is asked for.
        if power % 2 == 0 {
            put(&mut store, 1, mark(1)).unwrap();
        }
        let lower = [(); 3].map(|()| put(&mut store, 0, epoch(3)));
        assert!(lower.iter().all(|said| *said == lower[0]), "{lower:?}");
        let lower = lower[0];
        let (memory, _) = memory::<Flash>(chip(store));
        let found = trusted(&memory, 0).unwrap().mark.epoch;
        assert!(
            !failed || found == if lower.is_ok() { Epoch(3) } else { Epoch(9) },
            "{power}: {found:?} after {lower:?}"
        );
        in_force += usize::from(failed && lower.is_err());
        store = open::<Flash>(before);
        let _ = block_on(store.boot());
    }
    assert!(in_force > 10, "{in_force}");
}

/// One copy lacks what no gate is less without, and the other is torn in an erase, so that nothing of it can be read: it is
/// cleared all the same, and the board works.
#[test]
fn a_copy_that_lacks_its_stage_is_whole() {
    for torn in Copy::BOTH {
        let mut store = open::<Flash>(gate_of(8));
        let _ = block_on(store.boot());
        let pages = store.logs.range(torn);
        let page = usize::try_from(pages.start).unwrap();
        for token in 1.. {
            put(&mut store, 0, mark(token)).unwrap();
            if store.logs.flash.chip().bytes[page + 4092] == 0 {
                break;
            }
        }
        store.logs.a.fill(|_| Some(0)).unwrap();
        store.logs.b.fill(|_| Some(0)).unwrap();
        block_on(store.logs.append(torn, torn.other(), Key::STAGE)).unwrap();
        let mut chip = chip(store);
        chip.bytes[page..page + 4].fill(0xff);
        let (memory, _) = memory::<Flash>(chip);
        assert!(memory.storable && all_trusted(&memory), "{torn:?}: {memory:?}");
    }
}
