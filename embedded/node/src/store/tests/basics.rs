//! What a store is for, and what it refuses.

use super::cuts::set_power;
use super::model::seen;
use super::nor::{BYTE, Nor};
use super::*;
use crate::words::{Words, WordsError};
use embedded_storage_async::nor_flash::{NorFlashError, NorFlashErrorKind};
use fencegate_wire::Authority;

type Flash = Nor<4>;

fn lost_boots(store: &mut Store<Flash>) {
    for copy in Copy::BOTH {
        store.logs.a.fill(|bytes| bytes.get_mut(..9).map(|bytes| bytes.fill(0xaa)).map(|()| 9)).unwrap();
        block_on(store.logs.append(Copy::A, copy, Key::BOOTS)).unwrap();
    }
}

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
fn a_provisioning_that_lacks_something_changes_nothing() {
    let mut store = open::<Flash>(gate::<Flash>());
    let _ = block_on(store.boot());
    let all = entries(&provisioning(1));
    for missing in 0..all.len() - 1 {
        for (n, entry) in all.iter().enumerate() {
            let stored = block_on(store.put(entry));
            match entry {
                Entry::Gate { .. } if missing < all.len() - 1 => assert_eq!(stored, Err(StoreError::Incomplete)),
                _ => assert!(stored.is_ok()),
            }
            // The next boot, and what is put after it, knows nothing of this attempt.
            if n == missing {
                let _ = memory::<Flash>(chip(std::mem::replace(&mut store, open::<Flash>(gate::<Flash>()))));
                let _ = block_on(store.boot());
            }
        }
    }
    provision(&mut store, &provisioning(1)).unwrap();
    assert!(matches!(boot::<Flash>(chip(store)).0, Boot::Gate(found, _) if found == provisioning(1)));
}

/// Two provisionings one after the other without a boot between them: nothing of the first is taken for the second's.
#[test]
fn what_another_provisioning_left_is_no_part_of_this_one() {
    let mut store = open::<Flash>(gate::<Flash>());
    let _ = block_on(store.boot());
    provision(&mut store, &provisioning(1)).unwrap();
    let third = entries(&provisioning(2));
    for entry in &third[1..third.len() - 1] {
        let _ = block_on(store.put(entry)).unwrap();
    }
    assert_eq!(block_on(store.put(third.last().unwrap())), Err(StoreError::Incomplete), "output 0 is generation 0's");
    let _ = block_on(store.put(&third[0])).unwrap();
    let _ = block_on(store.put(third.last().unwrap())).unwrap();
    let (Boot::Gate(found, memory), flash) = boot::<Flash>(chip(store)) else { panic!() };
    assert!(found == provisioning(2) && all_trusted(&memory));
    // Counted, the flash has room again.
    let mut store = open::<Flash>(flash);
    let _ = block_on(store.boot());
    block_on(store.count(memory.boots)).unwrap();
    for key in Key::pieces(1) {
        assert!(block_on(store.logs.is_gone(key)));
    }
}

#[test]
fn marks_outlive_a_provisioning_and_only_go_up() {
    let mut store = open::<Flash>(gate::<Flash>());
    let _ = block_on(store.boot());
    put(&mut store, 0, mark(50)).unwrap();
    put(&mut store, 1, mark(50)).unwrap();
    let mut next = provisioning(1);
    next.channels[0].floor = 40;
    next.channels[1].floor = 60;
    next.channels[2].floor = 7;
    provision(&mut store, &next).unwrap();
    let (Boot::Gate(_, memory), flash) = boot::<Flash>(chip(store)) else { panic!() };
    let floor = |token| GrantRecord::floor(Epoch(0), token);
    let held = |mark: GrantRecord| GrantRecord { ttl: Duration::from_secs(60), ..mark };
    assert_eq!(memory.marks[..], [mark(50), floor(60), floor(7)].map(held).map(Remembered::Mark));
    // The third channel goes and comes back, and its mark was there all along.
    let mut store = open::<Flash>(flash);
    let _ = block_on(store.boot());
    put(&mut store, 2, mark(9)).unwrap();
    provision(&mut store, &provisioning(2)).unwrap();
    let mut store = open::<Flash>(chip(store));
    let _ = block_on(store.boot());
    provision(&mut store, &provisioning(3)).unwrap();
    let (Boot::Gate(_, memory), _) = boot::<Flash>(chip(store)) else { panic!() };
    assert_eq!(trusted(&memory, 2), Some(held(mark(9))));
}

/// Whatever a provisioning finds runs on for as long as it can: a lease, a stamp from outside or an operator's epoch above one,
/// whose time nobody here knows, and what held a new channel's outputs when they were another's.
#[test]
fn a_provisioning_lengthens_a_lease_and_never_shortens_one() {
    let [lease, longest, longer] = [50, 60, 90].map(Duration::from_secs);
    let leased = |ttl| GrantRecord { ttl, ..mark(5) };
    let released = GrantRecord { mark: FenceRecord { released: true, ..mark(5).mark }, ttl: Duration::ZERO };
    let epoch = GrantRecord::floor(Epoch(0), 5);
    for (stood, ttl) in
        [(leased(lease), longest), (leased(longer), longer), (mark(5), longest), (released, longest), (epoch, longest)]
    {
        for (epoch, floor) in [(Epoch(1), 0), (Epoch(0), 9), (Epoch(0), 0)] {
            let mut store = open::<Flash>(gate::<Flash>());
            let _ = block_on(store.boot());
            put(&mut store, 1, stood).unwrap();
            let mut next = provisioning(1);
            next.channels[1].authority = Authority::Own;
            (next.channels[1].epoch, next.channels[1].floor) = (epoch, floor);
            provision(&mut store, &next).unwrap();
            let (Boot::Gate(_, memory), _) = boot::<Flash>(chip(store)) else { panic!("no gate") };
            let raised = FenceRecord::floor(epoch, floor);
            let mark = if raised.order(&stood.mark).is_some_and(Ordering::is_gt) { raised } else { stood.mark };
            assert_eq!(memory.marks[1], Remembered::Mark(GrantRecord { mark, ttl }), "{stood:?}");
            let new = GrantRecord { ttl: longest, ..GrantRecord::floor(Epoch(0), 0) };
            assert_eq!(memory.marks[2], Remembered::Mark(new));
        }
    }
}

/// One whose epoch leaps further than an operator's may changes nothing.
#[test]
fn a_provisioning_leaps_no_further_than_an_epoch_may() {
    for (epoch, done) in [(3, true), (4, false)] {
        let mut store = open::<Flash>(gate::<Flash>());
        let _ = block_on(store.boot());
        let mut next = provisioning(1);
        next.gate.epoch_jump = 3;
        (next.channels[0].epoch, next.channels[1].epoch) = (Epoch(1), Epoch(epoch));
        let said = provision(&mut store, &next);
        assert_eq!(said, if done { Ok(()) } else { Err(StoreError::Incomplete) });
        let (Boot::Gate(found, memory), _) = boot::<Flash>(chip(store)) else { panic!("no gate") };
        assert_eq!(found == next, done);
        assert_eq!(seen(&memory.marks[0]).epoch, Epoch(u32::from(done)), "nor has the channel before it been raised");
    }
}

/// A blank board that is told where a fence stands takes the place of another, whose lease may still run; and what an
/// attempt before has left does not make it a new one.
#[test]
fn a_spare_waits_for_what_the_old_gate_may_have_granted_and_a_new_gate_for_nothing() {
    let of = |(epoch, floor), longest| {
        let mut gate = provisioning(0);
        gate.gate.longest_window = longest;
        for channel in &mut gate.channels {
            (channel.authority, channel.epoch, channel.floor) = (Authority::Own, Epoch(epoch), floor);
        }
        gate
    };
    let [short, long] = [10, 60].map(Duration::from_secs);
    let (new, spare, other) = ((0, 0), (8, 0), (0, 500));
    for (before, (epoch, floor), longest, ttl) in [
        (None, new, long, Duration::ZERO),
        (None, spare, long, long),
        (None, other, long, long),
        (Some((new, long)), new, long, Duration::ZERO),
        (Some((new, long)), spare, long, long),
        (Some((spare, short)), spare, long, long),
        (Some((spare, long)), spare, short, long),
    ] {
        let mut store = open::<Flash>(Chip::erased::<Flash>());
        let _ = block_on(store.boot());
        if let Some((before, longest)) = before {
            // All but its last record, the power fails, and whoever provisions thinks again.
            let entries = entries(&of(before, longest));
            for entry in &entries[..entries.len() - 1] {
                let _ = block_on(store.put(entry)).unwrap();
            }
            let Some(Entry::Gate { config, channels, outputs }) = entries.last() else { panic!() };
            let _ = block_on(store.complete(config, *channels, *outputs)).unwrap();
            store = open::<Flash>(chip(store));
            assert!(matches!(block_on(store.boot()), Boot::Blank));
        }
        provision(&mut store, &of((epoch, floor), longest)).unwrap();
        let (Boot::Gate(_, memory), _) = boot::<Flash>(chip(store)) else { panic!("no gate") };
        let first = GrantRecord { ttl, ..GrantRecord::floor(Epoch(epoch), floor) };
        assert_eq!(memory.marks[..], [first; 2].map(Remembered::Mark), "after {before:?}");
    }
}

/// A store that was cut off, or that failed, has left a mark in one copy: one of a channel that no provisioning has had yet, or
/// a raise of one that is there. The provisioning that comes next stands no lower than it says, and with one copy alone.
#[test]
fn what_is_in_one_copy_only_keeps_no_first_mark_away() {
    let longest = Duration::from_secs(60);
    for (copy, channel) in Copy::BOTH.into_iter().flat_map(|copy| [1, 2].map(|channel| (copy, channel))) {
        for (left, wanted) in [(5, 60), (80, 80)] {
            let mut store = open::<Flash>(gate::<Flash>());
            let _ = block_on(store.boot());
            let floor = |token| GrantRecord { ttl: longest, ..GrantRecord::floor(Epoch(0), token) };
            store.logs.set(&Mark::Stands(floor(left))).unwrap();
            block_on(store.logs.append(Copy::A, copy, Key::mark(channel).unwrap())).unwrap();
            let mut next = provisioning(1);
            next.channels[usize::from(channel)].floor = 60;
            provision(&mut store, &next).unwrap();
            let flash = chip(store);
            let half = flash.bytes.len() / 2;
            for lost in [0, half] {
                let mut alone = flash.clone();
                alone.bytes[lost..lost + half].fill(0xff);
                let (Boot::Gate(_, memory), _) = boot::<Flash>(alone) else { panic!("no gate") };
                assert_eq!(trusted(&memory, usize::from(channel)), Some(floor(wanted)), "{left} in {copy:?}");
            }
        }
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
        put(&mut store, 0, mark(5)).unwrap();
        lost_boots(&mut store);
        let (lost, flash_after) = memory::<Flash>(chip(store));
        assert!(lost.storable && all_lost(&lost) && lost.boots >= 1 << 31);
        assert_eq!(lost.marks[0], Remembered::Lost(mark(5).mark), "what could still be read");
        assert!(!counts.contains(&lost.boots), "{} again", lost.boots);
        counts.push(lost.boots);
        let mut store = open::<Flash>(flash_after);
        let _ = block_on(store.boot());
        block_on(store.count(lost.boots)).unwrap();
        let (next, after) = memory::<Flash>(chip(store));
        assert_eq!(next.boots, lost.boots + 1);
        assert!(all_lost(&next) && next.marks[0] == Remembered::Lost(mark(5).mark));
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

/// A gate on a flash of so many pages.
fn gate_of(pages: usize) -> Chip {
    let mut store = open::<Flash>(Chip::with_pages::<Flash>(pages));
    let _ = block_on(store.boot());
    provision(&mut store, &provisioning(0)).unwrap();
    let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
    block_on(store.count(memory.boots)).unwrap();
    chip(store)
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

#[test]
fn a_flash_too_small_for_two_provisionings_takes_none() {
    let mut store = open::<Nor<32>>(Chip::with_pages::<Nor<32>>(4));
    assert!(matches!(block_on(store.boot()), Boot::Blank));
    assert_eq!(provision(&mut store, &provisioning(0)), Err(StoreError::Flash));
    assert!(matches!(boot::<Nor<32>>(chip(store)).0, Boot::Blank));
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

/// Two whole provisionings as long as they can be, and all marks besides: it fits, and raises go on.
#[test]
fn the_largest_gate_fits_twice() {
    largest::<Nor<4>>();
    largest::<Nor<8>>();
    largest::<Nor<16>>();
    largest::<Nor<32>>();
}

fn largest<F: Part>() {
    let mut gate = provisioning(0);
    let times = Duration::from_micros((1 << 42) - 1);
    gate.outputs.clear();
    gate.channels.clear();
    for _ in 0..16 {
        let action = SafeAction::Hold { value: -(1 << 30), time: Duration::from_micros((1 << 35) - 1) };
        let wide =
            OutputConfig { min: i32::MIN, max: i32::MAX, safe: 1 << 30, powered: true, ..OutputConfig::switch() };
        let _ = gate.outputs.push(OutputConfig {
            action,
            least_on: times,
            least_off: times,
            feedback: Some(times),
            ..wide
        });
    }
    for _ in 0..8 {
        let channel = ChannelConfig {
            outputs: 2,
            reaction: Duration::from_micros(1 << 35),
            token_jump: u64::MAX,
            ..ChannelConfig::new()
        };
        let _ = gate.channels.push(ChannelConfig {
            epoch: Epoch(u32::MAX - 9),
            floor: (1 << 62) - 1,
            lock_delay: times,
            ..channel
        });
    }
    gate.gate.longest_window = Duration::from_micros(1 << 60);
    gate.gate.warning = Duration::from_micros(u64::MAX);
    gate.gate.lateness = Duration::from_micros(1 << 35);
    gate.gate.keys.instance = u64::MAX;
    let mut store = open::<F>(Chip::erased::<F>());
    let _ = block_on(store.boot());
    provision(&mut store, &gate).unwrap();
    for instance in 1..20 {
        let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!() };
        block_on(store.count(memory.boots)).unwrap();
        gate.gate.keys.instance = u64::MAX - instance;
        let entries = entries(&gate);
        for entry in &entries[..24] {
            let _ = block_on(store.put(entry)).unwrap();
        }
        for channel in 0..8 {
            let holder = HolderId::new("sixteen-bytes-xx").ok();
            let mark = FenceRecord { epoch: Epoch(u32::MAX - 9), token: (1 << 62) + instance, holder, released: false };
            put(&mut store, channel, GrantRecord { mark, ttl: Duration::from_micros(u64::MAX) }).unwrap();
        }
        let latched = Latched { serial: u32::MAX - 99 + u32::try_from(instance).unwrap(), ..Latched::UNKNOWN };
        let _ = block_on(store.put(&Entry::Latched(latched))).unwrap();
        let _ = block_on(store.put(&entries[24])).unwrap();
    }
    assert!(matches!(block_on(store.boot()), Boot::Gate(found, _) if found == gate));
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
    assert!(own <= 600, "{own}");
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
