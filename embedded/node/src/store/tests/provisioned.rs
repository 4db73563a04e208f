//! What a provisioning needs, what it changes, and what it leaves as it is.

use super::model::seen;
use super::nor::Nor;
use super::*;
use fencegate_wire::Authority;

type Flash = Nor<4>;

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
fn a_flash_too_small_for_two_provisionings_takes_none() {
    let mut store = open::<Nor<32>>(Chip::with_pages::<Nor<32>>(4));
    assert!(matches!(block_on(store.boot()), Boot::Blank));
    assert_eq!(provision(&mut store, &provisioning(0)), Err(StoreError::Flash));
    assert!(matches!(boot::<Nor<32>>(chip(store)).0, Boot::Blank));
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
