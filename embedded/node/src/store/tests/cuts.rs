//! Power cuts: everything that a gate does, cut at every byte of every write and of every erase.

use super::model::{Model, Operation, is_one, provision_in_order, run, seen};
use super::nor::{BYTE, Nor};
use super::*;
use crate::words::Words;

/// Boots, and finds a gate.
fn found<F: Part>(chip: Chip, noise: u64, context: &str) -> (Model, Store<F>) {
    let mut store = open::<F>(Chip { noise, ..chip });
    let model = match block_on(store.boot()) {
        Boot::Gate(provisioning, memory) => {
            assert!(is_one(&provisioning), "{context}: half of one provisioning and half of another");
            assert!(memory.storable, "{context}: it could not be mended");
            let latched = settle(&mut store, &memory).unwrap_or_else(|error| panic!("{context}: {error:?}"));
            assert!(!store.distrusted, "{context}: the boot counter is lost");
            Model { provisioning, boots: memory.boots, before: None, latched, marks: memory.marks.to_vec() }
        }
        other => panic!("{context}: {other:?}"),
    };
    (model, store)
}

/// Whether `later` takes nothing back that `earlier` said.
fn assert_not_behind(later: &Model, earlier: &Model, context: &str) {
    for (n, (later, earlier)) in later.marks.iter().zip(&earlier.marks).enumerate() {
        let order = seen(later).order(&seen(earlier));
        assert!(order.is_some_and(Ordering::is_ge), "{context}: channel {n} from {earlier:?} to {later:?}");
        let lost = matches!((later, earlier), (Remembered::Lost(_), Remembered::Mark(_)));
        assert!(!lost, "{context}: channel {n} is lost");
    }
    assert!(later.boots >= earlier.boots, "{context}: boot {} after {}", later.boots, earlier.boots);
    let serials = (later.latched.serial, earlier.latched.serial);
    assert!(serials.0 >= serials.1, "{context}: latched {serials:?}");
}

/// Of two TTLs under one mark the longer is believed, though it be the older one.
fn is_or_longer(found: &Remembered, mark: &Remembered) -> bool {
    match (found, mark) {
        (Remembered::Mark(found), Remembered::Mark(mark)) => found.mark == mark.mark && found.ttl >= mark.ttl,
        _ => found == mark,
    }
}

/// Cut after `power` of `operation`.
fn cut<F: Part>(chip: &Chip, from: &Model, operation: &Operation, power: usize, random: &mut Random) {
    let to = from.after(operation);
    let mut store = open::<F>(Chip { noise: random.next(), ..chip.clone() });
    let _ = block_on(store.boot());
    set_power(&mut store, power);
    let acknowledged = run(&mut store, operation).is_ok();
    let torn = self::chip(store);
    let torn_half =
        torn.weak.iter().position(|weak| *weak != 0).map(|at| at / (torn.weak.len() / 2) * (torn.weak.len() / 2));
    let context = format!("{operation:?} cut after {power}, acknowledged: {acknowledged}");
    // Where the rearm was answered to nobody, what either copy has is held.
    let either = Model { latched: from.latched.or(to.latched), ..to.clone() };
    let is_at = |found: &Model, model: &Model| {
        found.provisioning == model.provisioning && found.boots == model.boots + 1 && found.latched.says(model.latched)
    };
    let stand = |found: &Model, models: &[&Model]| {
        let mut each = found.marks.iter().enumerate();
        found.marks.len() == found.provisioning.channels.len()
            && each.all(|(n, mark)| models.iter().any(|model| is_or_longer(mark, &model.marks[n])))
    };
    let is = |found: &Model| {
        let done = is_at(found, &to) || !acknowledged && is_at(found, &either);
        // Before a provisioning is in force it raises what is below it, one mark after the other.
        done && stand(found, &[&to]) || !acknowledged && is_at(found, from) && stand(found, &[from, &to])
    };

    // The boot that mends is itself cut, and what it says counts nevertheless.
    let mut store = open::<F>(Chip { noise: random.next(), ..torn.clone() });
    let again = random.below(600 * BYTE);
    set_power(&mut store, again);
    let reported = block_on(store.boot());
    let (later, _) = found::<F>(self::chip(store), random.next(), &format!("{context}, mending cut after {again}"));
    assert!(is(&later), "{context}, then {again}: {later:?} from {from:?}");
    if let Boot::Gate(provisioning, memory) = reported {
        // Where it could not be mended that was said of no more than this boot, and a latch is not settled before it is
        // stored.
        let nothing = Remembered::Lost(FenceRecord::floor(Epoch(0), 0));
        let marks = memory.marks.iter().map(|mark| if let Remembered::Mark(_) = mark { *mark } else { nothing });
        let (marks, latched) = (marks.collect(), Latched::default());
        let earlier = Model { provisioning, boots: 0, before: None, latched, marks };
        assert_not_behind(&later, &earlier, &format!("{context}, mending cut after {again}"));
    }

    // Uncut, and once more with the weak bits read another way.
    let (first, store) = found::<F>(torn, random.next(), &context);
    assert!(is(&first), "{context}: {first:?} from {from:?} to {to:?}");
    let was_mended = store.mended > 0;
    let mended = self::chip(store);
    // The copy that was not torn has by itself what the boot has said, and so has the other one, mended, however its weak
    // bits read. (Not mended, it has read as whole by chance.)
    let half = mended.bytes.len() / 2;
    let lost = random.below(2) * half;
    if was_mended || torn_half == Some(lost) {
        let mut halved = mended.clone();
        halved.bytes[lost..lost + half].fill(0xff);
        halved.weak[lost..lost + half].fill(0);
        let (alone, _) = found::<F>(halved, random.next(), &context);
        assert_not_behind(&alone, &first, &format!("{context}, then the half at {lost} lost"));
    }
    let (second, mut store) = found::<F>(mended.clone(), random.next(), &context);
    assert!(is(&second), "{context}: {second:?}");
    assert_not_behind(&second, &first, &context);
    // What holds a channel is not there today and gone tomorrow, as a torn rearm would have it. (What holds none may be back.)
    for _ in 0..if matches!(operation, Operation::Latch(_)) { 4 } else { 0 } {
        let (later, _) = found::<F>(mended.clone(), random.next(), &context);
        assert!(later.latched.or(first.latched).says(later.latched), "{context}: {later:?} after {first:?}");
    }

    // It works on: counted, raised, and provisioned anew.
    block_on(store.count(second.boots)).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let higher = match second.marks[0] {
        Remembered::Mark(at) => {
            GrantRecord { mark: FenceRecord { token: at.mark.token + 1, ..mark(1).mark }, ..mark(1) }
        }
        Remembered::Lost(_) => second.restored(0, random),
    };
    let higher = GrantRecord {
        mark: FenceRecord { epoch: seen(&second.marks[0]).epoch.max(higher.mark.epoch), ..higher.mark },
        ..higher
    };
    put(&mut store, 0, higher).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let anew = random.below(4) == 0;
    if anew {
        provision(&mut store, &provisioning(7)).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    }
    let (third, _) = found::<F>(self::chip(store), random.next(), &context);
    let wanted = if anew { provisioning(7) } else { second.provisioning };
    let ttl = if anew { higher.ttl.max(wanted.gate.longest_window) } else { higher.ttl };
    assert_eq!(third.marks[0], Remembered::Mark(GrantRecord { ttl, ..higher }), "{context}");
    assert!(third.provisioning == wanted && third.boots == second.boots + 1, "{context}: {third:?}");
}

/// Cut after `power` of the first boot that is counted after the counter was lost. Nothing that goes up is trusted after
/// it, and its number was none before. Until it is acknowledged the board may be at what it stood at before (an older record
/// that an erased one has uncovered), or can store nothing: that is a fault, and whether it was is the answer.
fn cut_anew<F: Part>(chip: &Chip, from: &Model, operation: &Operation, power: usize, random: &mut Random) -> bool {
    let (to, before) = (from.after(operation), from.before.as_ref().unwrap());
    let mut store = open::<F>(Chip { noise: random.next(), ..chip.clone() });
    let _ = block_on(store.boot());
    set_power(&mut store, power);
    let acknowledged = run(&mut store, operation).is_ok();
    let mut torn = self::chip(store);
    let context = format!("{operation:?} after a loss cut after {power}, acknowledged: {acknowledged}");
    let mut faulty = false;
    for _ in 0..4 {
        let mut store = open::<F>(Chip { noise: random.next(), ..torn });
        let Boot::Gate(found, memory) = block_on(store.boot()) else { panic!("{context}: no gate") };
        assert!(found == from.provisioning, "{context}: {found:?}");
        let counted = all_lost(&memory) && memory.boots == to.boots + 1;
        let uncounted = all_lost(&memory) && memory.boots >= 1 << 31 && store.distrusted;
        let stood = memory.boots == before.boots + 1
            && memory.marks.iter().zip(&before.marks).all(|(mark, before)| seen(mark) == seen(before));
        let fault = all_lost(&memory) && !memory.storable;
        assert!(counted || !acknowledged && (uncounted || stood || fault), "{context}: {memory:?} from {from:?}");
        // Where nothing can be stored, more may be held.
        let holds = if fault { memory.latched.or(from.latched) } else { from.latched };
        assert!(memory.latched.says(holds), "{context}: {memory:?} from {from:?}");
        faulty |= fault;
        torn = self::chip(store);
    }
    // It works on, and an epoch is the way out, unless it is this boot that can store nothing.
    let mut store = open::<F>(Chip { noise: random.next(), ..torn });
    let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("{context}: no gate") };
    if let Err(error) = block_on(store.count(memory.boots)) {
        assert!(!acknowledged, "{context}: {error:?}");
        return true;
    }
    let restored = to.restored(0, random);
    put(&mut store, 0, restored).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let (third, _) = found::<F>(self::chip(store), random.next(), &context);
    assert_eq!((third.marks[0], third.boots), (Remembered::Mark(restored), memory.boots + 1), "{context}");
    faulty
}

pub(super) fn set_power<F: Part>(store: &mut Store<F>, power: usize) {
    // A flash is moved out and in again: a mock has nothing else to reach it by.
    let placeholder = F::from(Chip::with_pages::<F>(0));
    let chip: Chip = std::mem::replace(&mut store.logs.flash, placeholder).into();
    store.logs.flash = F::from(Chip { power, dead: chip.dead.map(|_| false), ..chip });
}

/// One step of a life: where the chip and the gate stood, what was done, and after how much power it can be cut: before
/// each byte that it writes or erases, and not at all.
pub(super) struct Step {
    pub(super) chip: Chip,
    pub(super) model: Model,
    pub(super) operation: Operation,
    pub(super) powers: Vec<usize>,
}

/// A chip both of whose copies have lost what was under a key.
fn without<F: Part>(chip: Chip, key: Key) -> Chip {
    let mut store = open::<F>(chip);
    block_on(store.logs.remove(key)).unwrap();
    self::chip(store)
}

/// A life of a gate through three full trips round the storage, uncut. Now and then both copies of the boot counter are
/// lost: what is cut next is the boot that is counted then, and later on the epochs that restore the channels.
pub(super) fn a_life<F: Part>(random: &mut Random) -> (Vec<Step>, Chip) {
    let (mut steps, mut chip, mut model) = (vec![], gate::<F>(), Model::new());
    while chip.erases.iter().any(|erases| *erases < 3) {
        let operation = match random.below(20) {
            0 => {
                let (board, spoilt) = boot::<F>(without::<F>(chip, Key::BOOTS));
                let Boot::Gate(_, memory) = board else { panic!("no gate") };
                model.lose_boots(memory.boots);
                chip = spoilt;
                [Operation::Count, Operation::Rest][random.below(2)].clone()
            }
            _ => model.operation(random),
        };
        let mut store = open::<F>(Chip { noise: random.next(), places: Some(vec![]), ..chip.clone() });
        let _ = block_on(store.boot());
        let all = usize::MAX / 2;
        set_power(&mut store, all);
        run(&mut store, &operation).unwrap();
        let mut after = self::chip(store);
        let places = after.places.take().unwrap_or_default();
        let powers = places.into_iter().chain([after.power]).map(|left| all - left).collect();
        let next = model.after(&operation);
        steps.push(Step { chip, model, operation, powers });
        (chip, model) = (Chip { power: usize::MAX, ..after }, next);
    }
    (steps, chip)
}

/// Cuts all along a life; in a soak at every place of everything, one after the other.
fn a_life_of_cuts<F: Part>() {
    let mut random = Random(seed() ^ F::WRITE_SIZE as u64);
    let (steps, worn) = a_life::<F>(&mut random);
    let places: Vec<(&Step, usize)> = steps
        .iter()
        .flat_map(|step| {
            let all = step.powers.last().unwrap();
            let powers = if soak() { step.powers.clone() } else { (0..3).map(|_| random.below(all + 1)).collect() };
            powers.into_iter().map(move |power| (step, power))
        })
        .collect();
    let mut progress = Progress::new(F::name(), places.len());
    let (mut faults, mut after_a_loss) = (0, 0);
    for (step, power) in &places {
        if step.model.before.is_some() {
            after_a_loss += 1;
            faults += usize::from(cut_anew::<F>(&step.chip, &step.model, &step.operation, *power, &mut random));
        } else {
            cut::<F>(&step.chip, &step.model, &step.operation, *power, &mut random);
        }
        progress.one();
    }
    println!(
        "counted: {}: {} operations, {} cuts, {faults} faults after {after_a_loss} where the boot counter had been lost \
         before, erases {:?}",
        F::name(),
        steps.len(),
        places.len(),
        worn.erases
    );
    assert!(faults <= 2 + after_a_loss / 500, "{faults} of {after_a_loss}");
}

#[test]
fn words_of_4_lose_nothing() {
    a_life_of_cuts::<Nor<4>>();
}

#[test]
fn words_of_8_lose_nothing() {
    a_life_of_cuts::<Nor<8>>();
}

#[test]
fn words_of_16_lose_nothing() {
    a_life_of_cuts::<Nor<16>>();
}

#[test]
fn words_of_32_lose_nothing() {
    a_life_of_cuts::<Nor<32>>();
}

#[test]
fn bytes_behind_the_adapter_lose_nothing() {
    a_life_of_cuts::<Words<Nor<1>>>();
}

/// A first provisioning: blank or a gate, and a blank board can still be made one, another one too.
fn a_first_provisioning<F: Part>() {
    let mut random = Random(seed());
    let (mut power, mut lost, mut tries) = (0, 0, 0);
    let mut spare = provisioning(1);
    spare.channels.iter_mut().for_each(|channel| channel.epoch = Epoch(8));
    let first = Remembered::Mark(GrantRecord { ttl: spare.gate.longest_window, ..GrantRecord::floor(Epoch(8), 0) });
    loop {
        tries += 1;
        let mut store = open::<F>(Chip { noise: random.next(), ..Chip::erased::<F>() });
        assert!(matches!(block_on(store.boot()), Boot::Blank));
        set_power(&mut store, power);
        let finished = provision_in_order(&mut store, &spare, &mut random).is_ok();
        let torn = chip(store);
        let whole = torn.power > 0;
        let mut store = open::<F>(Chip { noise: random.next(), ..torn });
        match block_on(store.boot()) {
            Boot::Blank => {
                assert!(!finished, "cut after {power}");
                // Cut again while it is tried again, with fewer outputs and channels.
                set_power(&mut store, random.below(3_000 * BYTE));
                let again = provision_in_order(&mut store, &provisioning(0), &mut random).is_ok();
                let mut store = open::<F>(Chip { noise: random.next(), ..chip(store) });
                match block_on(store.boot()) {
                    Boot::Blank => {
                        assert!(!again);
                        provision(&mut store, &provisioning(2)).unwrap();
                        let (found, _) = found::<F>(chip(store), random.next(), "");
                        assert!(found.provisioning == provisioning(2), "cut after {power}");
                    }
                    Boot::Gate(found, memory) => {
                        assert!(found == provisioning(0) || found == spare, "cut after {power}");
                        assert!(all_trusted(&memory) && memory.boots == 1, "cut after {power}");
                    }
                    // Safe, and of no use any more: what two cuts have left of the first record hides the second.
                    Boot::Lost => lost += 1,
                }
            }
            Boot::Gate(found, memory) => {
                assert_eq!(found, spare, "cut after {power}");
                assert!(memory.marks.iter().all(|mark| *mark == first) && memory.boots == 1, "cut after {power}");
            }
            Boot::Lost => panic!("cut after {power}"),
        }
        if whole {
            break;
        }
        power += BYTE * if soak() { 1 } else { 1 + random.below(8) };
    }
    println!("counted: {}: {lost} boards of {tries} lost to two cuts in their first provisioning", F::name());
    assert!(lost * 20 <= tries, "{lost} of {tries}");
}

#[test]
fn a_first_provisioning_leaves_a_blank_board_or_a_gate() {
    a_first_provisioning::<Nor<4>>();
    a_first_provisioning::<Nor<8>>();
    a_first_provisioning::<Nor<16>>();
    a_first_provisioning::<Nor<32>>();
    a_first_provisioning::<Words<Nor<1>>>();
}

/// Cut after cut after cut, in whatever the gate was about, its boots included: nothing goes down, and no gate is blank.
/// A loss would be a fault and safe; how many there were is printed.
fn cuts_upon_cuts<F: Part>(lives: usize) {
    let mut random = Random(seed());
    let (mut losses, mut cuts) = (0, 0);
    for _ in 0..lives {
        let mut chip = gate::<F>();
        let (mut model, mut unanswered, mut ever) = (Model::new(), Vec::<Latched>::new(), 0);
        'life: for _ in 0..150 {
            let mut store = open::<F>(Chip { noise: random.next(), ..chip });
            let most = [60, 400, 3_000][random.below(3)];
            let power = random.below(most * BYTE);
            set_power(&mut store, power);
            let mut acknowledged = model.clone();
            if let Boot::Gate(found, memory) = block_on(store.boot()) {
                assert!(is_one(&found));
                acknowledged.provisioning = found;
                acknowledged.learn(&memory);
                let latched = if memory.storable { settle(&mut store, &memory).ok() } else { None };
                if let Some(latched) = latched {
                    // What nothing has let go of is held, and nothing else is than what something once wanted held: a latch
                    // that was cut off may read as never written today, and be there tomorrow; and where a copy has lost its
                    // newest record, what its last one before held is held as well.
                    let bits = |latched: &Latched| u16::from_le_bytes([latched.inhibited, latched.astray]);
                    let known = bits(&acknowledged.latched);
                    let least = unanswered.iter().fold(known, |least, latched| least & bits(latched));
                    ever = unanswered.drain(..).fold(ever | known, |ever, latched| ever | bits(&latched));
                    let holds = bits(&latched);
                    assert!(holds & least == least && holds & !ever == 0, "{latched:?}: {least:x} to {ever:x}");
                    acknowledged.latched = latched;
                }
                if latched.is_some() && block_on(store.count(memory.boots)).is_ok() {
                    acknowledged.boots = memory.boots;
                    loop {
                        let operation = acknowledged.operation(&mut random);
                        if matches!(operation, Operation::Count | Operation::Rest) {
                            break;
                        }
                        if run(&mut store, &operation).is_err() {
                            if let Operation::Latch(latched) = operation {
                                unanswered.push(latched);
                            }
                            break;
                        }
                        acknowledged = acknowledged.after(&operation);
                    }
                }
            }
            model = acknowledged;
            chip = self::chip(store);
            cuts += 1;
            // With power that stays: is it there still?
            let (board, after) = boot::<F>(Chip { noise: random.next(), ..chip.clone() });
            match board {
                Boot::Gate(_, memory) if all_trusted(&memory) => {}
                Boot::Gate(..) | Boot::Lost => {
                    losses += 1;
                    break 'life;
                }
                Boot::Blank => panic!("a blank board"),
            }
            if random.below(2) == 0 {
                chip = after;
            }
        }
    }
    println!("counted: {}: {losses} losses in {cuts} cuts", F::name());
    assert!(losses <= 1, "{losses}");
}

#[test]
fn cut_after_cut_nothing_goes_down() {
    let lives = if soak() { 100 } else { 3 };
    cuts_upon_cuts::<Nor<4>>(lives);
    cuts_upon_cuts::<Nor<8>>(lives);
    cuts_upon_cuts::<Nor<16>>(lives);
    cuts_upon_cuts::<Nor<32>>(lives);
    cuts_upon_cuts::<Words<Nor<1>>>(lives);
}
