//! A copy that is cleared, to be written anew from the other: the erase cut at any byte, and the ones after it.

use super::cuts::{Step, a_life, set_power};
use super::model::{Operation, run};
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

/// The chip after `operation` was cut after `power`, if it was cut.
fn cut_in<F: Part>(chip: Chip, operation: &Operation, power: Option<usize>, noise: u64) -> Chip {
    let mut store = open::<F>(Chip { noise, dead: Some(false), ..chip });
    let _ = block_on(store.boot());
    if let Some(power) = power {
        set_power(&mut store, power);
    }
    let done = run(&mut store, operation);
    assert!(done.is_ok() || power.is_some());
    self::chip(store)
}

/// Clears a copy of `chip` in vain, time after time, and looks each time at what is left: what it last said, or nothing.
fn clear_in_vain<F: Part>(chip: &Chip, copy: Copy, allowed: &[&Said], random: &mut Random, context: &str) {
    let pages = chip.erases.len() / 2;
    let mut left = Chip { dead: Some(false), ..chip.clone() };
    for time in 1..=4 {
        let mut store = open::<F>(Chip { noise: random.next(), ..left });
        // Sometimes in the few words that are written.
        let most = [pages + 1, 2][random.below(2)];
        let power = random.below(F::ERASE_SIZE * most);
        set_power(&mut store, power);
        let _ = block_on(store.logs.erase(copy));
        left = self::chip(store);
        for _ in 0..3 {
            let Some(found) = said::<F>(left.clone(), copy, random.next()) else { continue };
            for (n, (key, found)) in Key::all().zip(&found).enumerate() {
                let known = found.is_empty() || allowed.iter().any(|said| said[n] == *found);
                assert!(known, "{context}: erase {time} cut after {power} uncovers {found:02x?} under {key:?}");
            }
        }
    }
}

/// All along a life: copies that are settled, and ones that an operation which was cut has left.
fn clearing<F: Part>(every: usize) {
    let mut random = Random(seed());
    let (steps, _) = a_life::<F>(&mut random);
    let whole = |step: &&Step| {
        step.model.before.is_none()
            && matches!(step.operation, Operation::Mark(..) | Operation::Latch(_) | Operation::Count)
    };
    let (mut tries, mut torn) = (0, 0);
    for step in steps.iter().filter(whole) {
        let after = cut_in::<F>(step.chip.clone(), &step.operation, None, random.next());
        let turns = step.chip.erases != after.erases;
        for copy in Copy::BOTH {
            let [before, after] = [&step.chip, &after].map(|chip| said::<F>(chip.clone(), copy, 0).unwrap());
            // A page turn is what leaves a copy that has to be cleared.
            for _ in 0..if turns { every } else { every / 8 } {
                let power = (random.below(4) > 0).then(|| step.powers[random.below(step.powers.len())]);
                let chip = cut_in::<F>(step.chip.clone(), &step.operation, power, random.next());
                let context = format!("{} of {copy:?} after {:?} cut at {power:?}", F::name(), step.operation);
                torn += usize::from(said::<F>(chip.clone(), copy, random.next()).is_none());
                clear_in_vain::<F>(&chip, copy, &[&before, &after], &mut random, &context);
                tries += 1;
            }
        }
    }
    println!("counted: {}: {tries} copies cleared four times in vain, {torn} of them torn before", F::name());
    assert!(torn > 0);
}

#[test]
fn an_erase_that_is_cut_off_uncovers_nothing() {
    let every = if soak() { 128 } else { 16 };
    clearing::<Nor<4>>(every);
    clearing::<Nor<8>>(every);
    clearing::<Nor<16>>(every);
    clearing::<Nor<32>>(every);
    clearing::<Words<Nor<1>>>(every);
}
