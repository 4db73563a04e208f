//! A copy that is cleared, to be written anew from the other: the erase cut at any byte, and the ones after it.

use super::cuts::{Step, a_life, set_power};
use super::model::{Model, Operation, run, seen};
use super::nor::Nor;
use super::*;
use crate::words::Words;

/// What a copy says under every key.
type Said = Vec<Vec<u8>>;

/// What a copy that counts as settled says; `None` where it does not count as that, or has nothing at all.
fn said<F: Part>(chip: Chip, copy: Copy, noise: u64) -> Option<Said> {
    let mut store = open::<F>(Chip { noise, ..chip });
    let settled = !block_on(store.logs.is_unsettled(copy));
    settled.then(|| {
        let value = |key| {
            block_on(store.logs.fetch(copy, key));
            store.logs.slot(copy).value().to_vec()
        };
        Key::all().map(value).collect()
    })
}

/// The chip after `operation`, which is cut after `power` where that is so much; and whether it was acknowledged.
fn after<F: Part>(chip: Chip, operation: &Operation, power: usize, noise: u64) -> (Chip, bool) {
    let mut store = open::<F>(Chip { noise, dead: Some(false), ..chip });
    let _ = block_on(store.boot());
    set_power(&mut store, power);
    let acknowledged = run(&mut store, operation).is_ok();
    (self::chip(store), acknowledged)
}

/// What has rotted from the copy that is not being cleared is not made up for with what is left of this one.
fn assert_nothing_from_before<F: Part>(chip: &Chip, copy: Copy, known: &Model, random: &mut Random, context: &str) {
    for key in [Key::BOOTS, Key::LATCHED, Key::mark(0).unwrap()] {
        let mut store = open::<F>(Chip { noise: random.next(), ..chip.clone() });
        if block_on(store.logs.is_unsettled(copy.other())) {
            continue; // then this one is not cleared
        }
        block_on(store.logs.highest(copy, key)).unwrap();
        if key == Key::LATCHED && store.logs.slot(copy).is_missing() {
            continue; // where nothing at all is left, nothing was ever latched
        }
        store.logs.a.fill(|_| Some(0)).unwrap();
        block_on(store.logs.append(Copy::A, copy.other(), key)).unwrap();
        let (board, _) = boot::<F>(self::chip(store));
        let Boot::Gate(_, found) = board else { panic!("{context}: no gate without {key:?}") };
        // One that is made up is far above any that was counted, and none of those that were made up before.
        let made_up = found.boots >= 1 << 31 && found.boots != known.boots;
        assert!(found.boots > known.boots || made_up, "{context}: boot {} after {}", found.boots, known.boots);
        let held = |latched: Latched| latched.inhibited | latched.astray;
        let let_go = held(known.latched) & !held(found.latched);
        assert!(let_go == 0, "{context}: {:?} after {:?}", found.latched, known.latched);
        if let Remembered::Mark(mark) = found.marks[0] {
            let order = mark.mark.order(&seen(&known.marks[0]));
            assert!(order.is_some_and(Ordering::is_ge), "{context}: {mark:?} after {:?}", known.marks[0]);
        }
    }
}

/// Clears a copy of `chip` in vain, time after time, and looks each time at what is left: what it last said, or nothing.
fn clear_in_vain<F: Part>(
    chip: &Chip,
    copy: Copy,
    (allowed, known): (&[&Said], &Model),
    random: &mut Random,
    context: &str,
) {
    let pages = chip.erases.len() / 2;
    let mut left = chip.clone();
    for time in 1..=12 {
        let mut store = open::<F>(Chip { noise: random.next(), ..left });
        // Most often in the first erase, and the few words that are written.
        let most = [pages + 1, 2, 1][random.below(3)];
        let power = random.below(F::ERASE_SIZE * most);
        set_power(&mut store, power);
        let _ = block_on(store.logs.erase(copy));
        left = self::chip(store);
        let context = format!("{context}: erase {time} cut after {power}");
        for _ in 0..3 {
            let Some(found) = said::<F>(left.clone(), copy, random.next()) else { continue };
            // (A provisioning goes through a stage of its own.)
            for (n, (key, found)) in Key::all().zip(&found).enumerate().filter(|(_, (key, _))| *key != Key::STAGE) {
                let known = found.is_empty() || allowed.iter().any(|said| said[n] == *found);
                assert!(known, "{context} uncovers {found:02x?} under {key:?}");
            }
        }
        if random.below(8) == 0 {
            assert_nothing_from_before::<F>(&left, copy, known, random, &context);
        }
    }
}

/// All along a life: copies that are settled, and ones that an operation which was cut has left.
fn clearing<F: Part>(tries: usize) {
    let mut random = Random(seed());
    let (steps, _) = a_life::<F>(&mut random);
    // (To rest stores the counter twice.)
    let stores_each_once = |step: &&Step| step.model.before.is_none() && !matches!(step.operation, Operation::Rest);
    let all: Vec<&Step> = steps.iter().filter(stores_each_once).collect();
    // A page turn is what leaves a copy that has to be cleared.
    let turns = |step: &&&Step| step.powers.len() > F::ERASE_SIZE;
    let turning: Vec<&Step> = all.iter().filter(turns).copied().collect();
    let mut torn = 0;
    for n in 0..tries {
        let step = if n % 4 == 0 { all[random.below(all.len())] } else { turning[random.below(turning.len())] };
        let (whole, _) = after::<F>(step.chip.clone(), &step.operation, usize::MAX, random.next());
        let power = step.powers[random.below(step.powers.len())];
        let (chip, acknowledged) = after::<F>(step.chip.clone(), &step.operation, power, random.next());
        let to = step.model.after(&step.operation);
        // What was not acknowledged may be in force or not.
        let [inhibited, astray] = [to.latched.inhibited, to.latched.astray];
        let (from, least) = (step.model.latched, |from, to| if acknowledged { to } else { from & to });
        let latched =
            Latched { inhibited: least(from.inhibited, inhibited), astray: least(from.astray, astray), ..to.latched };
        let model = Model { latched, ..if acknowledged { to } else { step.model.clone() } };
        for copy in Copy::BOTH {
            let [before, after] = [&step.chip, &whole].map(|chip| said::<F>(chip.clone(), copy, 0).unwrap());
            let allowed = [&after, &before];
            let allowed = if acknowledged { &allowed[..1] } else { &allowed };
            let context = format!("{} of {copy:?} after {:?} cut at {power}", F::name(), step.operation);
            torn += usize::from(said::<F>(chip.clone(), copy, random.next()).is_none());
            clear_in_vain::<F>(&chip, copy, (allowed, &model), &mut random, &context);
        }
    }
    println!(
        "counted: {}: {} copies cleared in vain twelve times each, {torn} of them torn before",
        F::name(),
        2 * tries
    );
    assert!(torn > 0);
}

/// A log that has turned its page but for the erase of the oldest, of which the beginning is gone; and there is no other copy.
fn a_turn_is_finished<F: Part>() {
    let mut random = Random(seed());
    let (steps, _) = a_life::<F>(&mut random);
    let mut turns = 0;
    for (step, next) in steps.iter().zip(&steps[1..]).filter(|(step, _)| step.model.before.is_none()) {
        let turned = (0..step.chip.erases.len()).filter(|page| step.chip.erases[*page] != next.chip.erases[*page]);
        for page in turned.map(|page| page * F::ERASE_SIZE..(page + 1) * F::ERASE_SIZE) {
            let mut torn = next.chip.clone();
            let (half, first) = (torn.bytes.len() / 2, F::WRITE_SIZE.max(F::READ_SIZE));
            if !torn.bytes[page.clone()].iter().all(|byte| *byte == 0xff) || next.model.before.is_some() {
                continue; // it was begun since
            }
            let body = page.start + first..page.end;
            torn.bytes[body.clone()].copy_from_slice(&step.chip.bytes[body]);
            let other = if page.start < half { half..2 * half } else { 0..half };
            torn.bytes[other].fill(0xff);
            let (board, _) = boot::<F>(torn);
            let Boot::Gate(found, memory) = board else { panic!("{:?}: no gate", step.operation) };
            assert!(found == next.model.provisioning && memory.boots == next.model.boots + 1, "{:?}", step.operation);
            assert!(memory.latched.says(next.model.latched), "{:?}", step.operation);
            assert!(
                memory.marks.iter().zip(&next.model.marks).all(|(found, known)| found == known),
                "{:?}",
                step.operation
            );
            turns += 1;
        }
    }
    assert!(turns > 0);
}

#[test]
fn a_page_turn_that_was_cut_off_is_finished_where_there_is_no_other_copy() {
    a_turn_is_finished::<Nor<4>>();
    a_turn_is_finished::<Nor<8>>();
    a_turn_is_finished::<Nor<16>>();
    a_turn_is_finished::<Nor<32>>();
    a_turn_is_finished::<Words<Nor<1>>>();
}

#[test]
fn an_erase_that_is_cut_off_uncovers_nothing() {
    let tries = if soak() { 4_000 } else { 150 };
    clearing::<Nor<4>>(tries);
    clearing::<Nor<8>>(tries);
    clearing::<Nor<16>>(tries);
    clearing::<Nor<32>>(tries);
    clearing::<Words<Nor<1>>>(tries);
}
