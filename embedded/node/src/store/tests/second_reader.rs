//! What a second reader tried: faults that come together, reads that are wider or never the same, flash that fails and
//! goes on.

use super::cuts::set_power;
use super::model::{Model, Operation, is_one, run, seen};
use super::nor::{BYTE, Nor};
use super::*;
use crate::words::Words;

fn lives(few: usize) -> usize {
    if soak() { 100 * few } else { few }
}

/// A mark of one copy rots, and a cut leaves the other copy with a page half erased: what is left there of the markers
/// decides what the log reads first, and it could be an older record.
fn rot_here_and_a_cut_there<F: Part>(tries: usize) {
    let mut random = Random(seed() ^ F::WRITE_SIZE as u64);
    let (mut flash, mut model, mut right, mut lost) = (gate::<F>(), Model::new(), 0, 0);
    while right + lost < tries {
        let operation = model.operation(&mut random);
        let all = usize::MAX / 2;
        let mut store = open::<F>(Chip { erasing: vec![], ..flash.clone() });
        let _ = block_on(store.boot());
        set_power(&mut store, all);
        run(&mut store, &operation).unwrap();
        let after = chip(store);
        for erasing in after.erasing.iter().filter(|_| !matches!(operation, Operation::Provision(..))) {
            for _ in 0..8 {
                let mut store = open::<F>(Chip { noise: random.next(), ..flash.clone() });
                let _ = block_on(store.boot());
                set_power(&mut store, all - erasing + random.below(4096));
                let _ = run(&mut store, &operation);
                let mut torn = chip(store);
                let half = torn.bytes.len() / 2;
                let there = torn.weak.iter().position(|weak| *weak != 0).unwrap_or(0) / half * half;
                let channel = random.below(model.marks.len());
                let here = &torn.bytes[half - there..][..half];
                // The mark that stood, or the one that comes: where a page has been turned, the former may be gone.
                let found = [&model, &model.after(&operation)].into_iter().find_map(|model| {
                    let Remembered::Mark(mark) = model.marks[channel] else { return None };
                    let mut value = [0; 100];
                    let len = record::encode(&Mark::Stands(mark), &mut value).unwrap();
                    Some((here.windows(len).rposition(|bytes| *bytes == value[..len])?, len))
                });
                let (at, len) = found.expect("it is in both");
                torn.bytes[half - there + at + random.below(len)] ^= 1 << random.below(8);
                match boot::<F>(Chip { noise: random.next(), ..torn }).0 {
                    Boot::Gate(_, memory) => {
                        model.clone().learn(&memory);
                        if all_trusted(&memory) {
                            right += 1;
                        } else {
                            lost += 1;
                        }
                    }
                    Boot::Lost => lost += 1,
                    Boot::Blank => panic!("a blank board"),
                }
            }
        }
        (flash, model) = (Chip { power: usize::MAX, ..after }, model.after(&operation));
    }
    println!("counted: words of {}: rot and a cut {} times, {lost} times a fault", F::WRITE_SIZE, right + lost);
}

#[test]
fn rot_in_one_copy_and_a_cut_in_the_other_bring_no_lower_stamp_back() {
    rot_here_and_a_cut_there::<Nor<4>>(lives(80));
    rot_here_and_a_cut_there::<Nor<8>>(lives(80));
    rot_here_and_a_cut_there::<Nor<32>>(lives(80));
}

/// How a hard life ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With all that was acknowledged.
    Well,
    /// With a fault, which an operator's epoch has cured.
    Restored,
    /// With a board that can store nothing, or has lost its provisioning: it obeys nothing, and is to be erased.
    Dead,
}

/// The operator sets an epoch above any ever used, on every channel that is lost.
fn restore<F: Part>(flash: Chip, known: &Model, random: &mut Random) -> End {
    let mut store = open::<F>(flash);
    let Boot::Gate(_, memory) = block_on(store.boot()) else { return End::Dead };
    if !memory.storable || block_on(store.count(memory.boots)).is_err() {
        return End::Dead;
    }
    for (n, mark) in memory.marks.iter().enumerate().filter(|(_, mark)| matches!(mark, Remembered::Lost(_))) {
        assert!(seen(mark).epoch <= seen(&known.marks[n]).epoch, "channel {n} at {mark:?}");
        if put(&mut store, u8::try_from(n).unwrap(), known.restored(n, random)).is_err() {
            return End::Dead;
        }
    }
    let (Boot::Gate(_, memory), _) = boot::<F>(Chip { noise: random.next(), ..chip(store) }) else { return End::Dead };
    if all_trusted(&memory) { End::Restored } else { End::Dead }
}

/// Boots and cuts one after the other: no mark that was reported or acknowledged goes down, and no number that was counted
/// comes again. With `errors` the flash fails as at a cut, so often a boot, and the gate goes on without one.
fn a_hard_life<F: Part>(random: &mut Random, fickle: bool, errors: Option<usize>) -> End {
    let (mut chip, mut model) = (gate::<F>(), Model::new());
    chip.dead = errors.map_or(Some(false), |_| None);
    for n in 0..40 {
        let mut store = open::<F>(Chip { noise: random.next(), fickle, ..chip });
        if n > 0 {
            let most = [60, 400, 1_500, 6_000][random.below(4)];
            set_power(&mut store, random.below(most * BYTE));
        }
        let Boot::Gate(found, memory) = block_on(store.boot()) else {
            chip = self::chip(store);
            continue;
        };
        assert!(is_one(&found));
        model.provisioning = found;
        model.learn(&memory);
        if !memory.storable {
            // What is latched is stored even so.
            let latched = Latched { serial: memory.latched.serial + 1, inhibited: 1, astray: 0 };
            let _ = block_on(store.put(&Entry::Latched(latched)));
        }
        if memory.storable && block_on(store.count(memory.boots)).is_ok() {
            model.boots = memory.boots;
            let mut errors = errors.unwrap_or_default();
            for _ in 0..150 {
                let operation = model.operation(random);
                if matches!(operation, Operation::Count | Operation::Rest) {
                    continue;
                }
                if run(&mut store, &operation).is_ok() {
                    model = model.after(&operation);
                } else if errors > 0 {
                    errors -= 1;
                    set_power(&mut store, random.below(2_000 * BYTE));
                } else {
                    break;
                }
            }
        }
        chip = self::chip(store);
        let (board, after) = boot::<F>(Chip { noise: random.next(), ..chip.clone() });
        let Boot::Gate(_, memory) = board else {
            assert!(matches!(board, Boot::Lost), "a blank board");
            return End::Dead;
        };
        let mut known = model.clone();
        known.learn(&memory);
        if !all_trusted(&memory) {
            return restore::<F>(after, &known, random);
        }
        if random.below(2) == 0 {
            (chip, model.marks) = (after, known.marks);
        }
    }
    End::Well
}

/// Leads such lives; how many there were, and how many ended with a loss.
fn hard_lives<F: Part>(group: &str, fickle: bool, errors: Option<usize>) -> [usize; 2] {
    let mut random = Random(seed());
    let ends: Vec<End> = (0..lives(3)).map(|_| a_hard_life::<F>(&mut random, fickle, errors)).collect();
    let [well, dead] = [End::Well, End::Dead].map(|which| ends.iter().filter(|end| **end == which).count());
    let lost = ends.len() - well;
    println!(
        "counted: {group}, words of {}, read {} at a time: {lost} of {} hard lives ended with a loss, {dead} of them with a \
         board to be erased",
        F::WRITE_SIZE,
        F::READ_SIZE,
        ends.len()
    );
    [ends.len(), lost]
}

#[test]
fn wide_reads_lose_nothing() {
    let lives = |lives: [usize; 2]| assert_eq!(lives[1], 0);
    lives(hard_lives::<Nor<4, 4>>("wide reads", false, None));
    lives(hard_lives::<Nor<4, 16>>("wide reads", false, None));
    lives(hard_lives::<Nor<32, 4>>("wide reads", false, None));
    lives(hard_lives::<Words<Nor<1>>>("wide reads", false, None));
}

/// What a boot has read as whole may read otherwise a moment later, and what was to be mended is then lost: seldom, and always
/// with a fault that says so.
#[test]
fn where_weak_bits_never_read_alike_nothing_goes_down() {
    let group = "weak bits never alike";
    seldom([
        hard_lives::<Nor<4>>(group, true, None),
        hard_lives::<Nor<8, 8>>(group, true, None),
        hard_lives::<Nor<32>>(group, true, None),
    ]);
}

/// What a store that failed has left is mended before anything else is written, as after a cut; that this may fail as well is
/// a fault, and seldom.
#[test]
fn a_flash_that_fails_and_goes_on_brings_nothing_down() {
    let group = "a flash that fails three times a boot";
    seldom([
        hard_lives::<Nor<4>>(group, false, Some(3)),
        hard_lives::<Nor<8>>(group, false, Some(3)),
        hard_lives::<Nor<32>>(group, false, Some(3)),
    ]);
}

/// The processor outlives the supply of the flash, and tears whatever it writes: the other copy too, before it stops.
#[test]
fn a_supply_that_is_too_low_for_the_flash_brings_nothing_down() {
    let group = "a supply too low for the flash";
    seldom([
        hard_lives::<Nor<4>>(group, false, Some(0)),
        hard_lives::<Nor<8>>(group, false, Some(0)),
        hard_lives::<Words<Nor<1>>>(group, false, Some(0)),
    ]);
}

/// One life in fifty; a sample of nine may meet two by chance.
fn seldom(groups: [[usize; 2]; 3]) {
    let [all, lost] = groups.into_iter().fold([0; 2], |[all, lost], [a, b]| [all + a, lost + b]);
    assert!(lost <= 2 + all / 50, "{lost} of {all}");
}

/// A later firmware has stored a mark that this one cannot read, and a page's markers read either way: what this one can
/// read is older, and is not made the fence again.
#[test]
fn after_a_downgrade_no_older_mark_comes_back() {
    let mut random = Random(seed());
    let mut store = open::<Nor<4>>(gate::<Nor<4>>());
    let _ = block_on(store.boot());
    put(&mut store, 0, mark(10)).unwrap();
    store.logs.a.fill(|bytes| encode(&Mark::Stands(mark(50)), bytes)).unwrap();
    let mut later = store.logs.a.value().to_vec();
    let body = later.len() - 4;
    later[0] = record::FORMAT + 1;
    let check = record::CHECK.checksum(&later[..body]).to_le_bytes();
    later[body..].copy_from_slice(&check);
    for copy in Copy::BOTH {
        let write = |bytes: &mut [u8]| bytes.get_mut(..later.len()).map(|bytes| bytes.copy_from_slice(&later));
        store.logs.a.fill(|bytes| write(bytes).map(|()| later.len())).unwrap();
        block_on(store.logs.append(Copy::A, copy, Key::mark(0).unwrap())).unwrap();
    }
    let flash = chip(store);
    for page in 0..flash.erases.len() {
        for marker in [page * 4096, page * 4096 + 4092] {
            for _ in 0..lives(8) {
                let mut torn = flash.clone();
                torn.any_weak = true;
                torn.weak[marker..marker + 4].fill(0xff);
                let (board, after) = boot::<Nor<4>>(Chip { noise: random.next(), ..torn });
                let (again, _) = boot::<Nor<4>>(Chip { noise: random.next(), ..after });
                for board in [board, again] {
                    match board {
                        Boot::Gate(_, memory) => assert_eq!(trusted(&memory, 0), None, "page {page}"),
                        Boot::Lost => {}
                        Boot::Blank => panic!("a blank board"),
                    }
                }
            }
        }
    }
}
