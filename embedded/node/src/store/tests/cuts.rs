//! Power cuts: everything that a gate does, cut at every byte.

use super::nor::Nor;
use super::*;
use crate::words::Words;

/// What a gate stores at a time.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Mark(u8, GrantRecord),
    Latch(Latched),
    /// A boot in which somebody speaks, and one that goes on until the gate has rested.
    Count,
    Rest,
    Provision(u8),
}

/// What a gate has been told that it stands at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model {
    pub(super) variant: u8,
    pub(super) boots: u32,
    pub(super) latched: Latched,
    pub(super) marks: Vec<GrantRecord>,
}

impl Model {
    pub(super) fn new(variant: u8) -> Self {
        let marks = provisioning(variant).channels.len();
        Self { variant, boots: 1, latched: Latched::default(), marks: vec![GrantRecord::floor(Epoch(0), 0); marks] }
    }

    /// What it stands at after `operation`.
    pub(super) fn after(&self, operation: &Operation) -> Self {
        let mut next = self.clone();
        match operation {
            Operation::Mark(channel, mark) => next.marks[usize::from(*channel)] = *mark,
            Operation::Latch(latched) => next.latched = *latched,
            Operation::Count | Operation::Rest => next.boots += 1,
            Operation::Provision(variant) => {
                next.variant = *variant;
                let more = provisioning(*variant).channels.len().max(next.marks.len());
                next.marks.resize(more, GrantRecord::floor(Epoch(0), 0));
            }
        }
        next
    }

    /// Something that a gate does next.
    pub(super) fn operation(&self, random: &mut Random) -> Operation {
        let channels = provisioning(self.variant).channels.len();
        let channel = random.below(channels);
        let at = self.marks[channel];
        let name = HolderId::new(["a", "press-b", "sixteen-bytes-xx"][random.below(3)]).unwrap();
        let token = at.mark.token + 1 + random.next() % [1, 1, 100, 1 << 40][random.below(4)];
        let raised = FenceRecord { token, holder: Some(name), released: false, ..at.mark };
        let to = match random.below(16) {
            0 => return Operation::Provision(self.variant.wrapping_add(1 + random.next().to_le_bytes()[0] % 2)),
            1 => return Operation::Count,
            2 => return Operation::Rest,
            // A stop or a contact, and a rearm.
            9 => {
                let [inhibited, astray] = [(); 2].map(|()| (random.next() & random.next()).to_le_bytes()[0] & 3);
                return Operation::Latch(Latched { serial: self.latched.serial + 1, inhibited, astray });
            }
            3 | 4 if at.mark.holder.is_some() => {
                GrantRecord { mark: FenceRecord { released: true, ..at.mark }, ttl: Duration::ZERO }
            }
            5 => GrantRecord::floor(Epoch(at.mark.epoch.0 + 1), random.next() % 1_000),
            6..=8 => GrantRecord { mark: raised, ttl: Duration::from_micros(1 + random.next() % 60_000_000) },
            _ => GrantRecord { mark: raised, ttl: Duration::ZERO },
        };
        Operation::Mark(u8::try_from(channel).unwrap(), to)
    }
}

pub(super) fn run<F: Part>(store: &mut Store<F>, operation: &Operation) -> Result<(), StoreError> {
    match operation {
        Operation::Mark(channel, mark) => put(store, *channel, *mark),
        Operation::Latch(latched) => {
            let entry = Entry::Latched(*latched);
            block_on(store.put(&entry)).map(|stored| assert_eq!(stored, Stored::read_back(entry)))
        }
        // Whoever boots has booted; what is cut is the count.
        Operation::Count => match block_on(store.boot()) {
            Boot::Gate(_, memory) => block_on(store.count(memory.boots)),
            other => panic!("{other:?}"),
        },
        Operation::Rest => run(store, &Operation::Count).and_then(|()| block_on(store.rest(2))),
        Operation::Provision(variant) => provision(store, &provisioning(*variant)),
    }
}

/// Boots, and finds a gate of which nothing is lost.
fn found<F: Part>(chip: Chip, noise: u64, context: &str) -> (Model, Store<F>) {
    let mut store = open::<F>(Chip { noise, ..chip });
    let model = match block_on(store.boot()) {
        Boot::Gate(found, memory) => {
            let variant = found.gate.keys.id;
            assert_eq!(found, provisioning(variant), "{context}: half of one provisioning and half of another");
            assert!(memory.storable, "{context}: it could not be mended");
            let marks = (0..memory.marks.len())
                .map(|n| trusted(&memory, n).unwrap_or_else(|| panic!("{context}: channel {n} is lost")))
                .collect();
            let latched = settle(&mut store, &memory).unwrap_or_else(|error| panic!("{context}: {error:?}"));
            Model { variant, boots: memory.boots, latched, marks }
        }
        other => panic!("{context}: {other:?}"),
    };
    (model, store)
}

/// Whether `later` takes nothing back that `earlier` said.
fn assert_not_behind(later: &Model, earlier: &Model, context: &str) {
    for (n, (later, earlier)) in later.marks.iter().zip(&earlier.marks).enumerate() {
        let order = later.mark.order(&earlier.mark);
        assert!(order.is_some_and(std::cmp::Ordering::is_ge), "{context}: channel {n} from {earlier:?} to {later:?}");
    }
    assert!(later.boots >= earlier.boots, "{context}: boot {} after {}", later.boots, earlier.boots);
    let serials = (later.latched.serial, earlier.latched.serial);
    assert!(serials.0 >= serials.1, "{context}: latched {serials:?}");
}

/// Cut after `power` bytes of `operation`; whether it was done before.
fn cut<F: Part>(chip: &Chip, from: &Model, operation: &Operation, power: usize, random: &mut Random) -> bool {
    let to = from.after(operation);
    let mut store = open::<F>(Chip { noise: random.next(), ..chip.clone() });
    let _ = block_on(store.boot());
    set_power(&mut store, power);
    let acknowledged = run(&mut store, operation).is_ok();
    let torn = self::chip(store);
    let whole = torn.power > 0;
    let torn_half =
        torn.weak.iter().position(|weak| *weak != 0).map(|at| at / (torn.weak.len() / 2) * (torn.weak.len() / 2));
    let context = format!("{operation:?} cut after {power}, acknowledged: {acknowledged}");
    // Where the rearm was answered to nobody, what either copy has is held.
    let either = Model { latched: from.latched.or(to.latched), ..to.clone() };
    let is_at = |found: &Model, model: &Model| {
        let channels = provisioning(model.variant).channels.len();
        (found.variant, &found.marks[..]) == (model.variant, &model.marks[..channels])
            && found.boots == model.boots + 1
            && found.latched.says(model.latched)
    };
    let is = |found: &Model, model: &Model| is_at(found, model) || !acknowledged && is_at(found, &either);

    // The boot that mends is itself cut, and what it says counts nevertheless.
    let mut store = open::<F>(Chip { noise: random.next(), ..torn.clone() });
    let again = random.below(600);
    set_power(&mut store, again);
    let reported = block_on(store.boot());
    let (later, _) = found::<F>(self::chip(store), random.next(), &format!("{context}, mending cut after {again}"));
    assert!(is(&later, &to) || !acknowledged && is(&later, from), "{context}, then {again}: {later:?} from {from:?}");
    if let Boot::Gate(provisioned, memory) = reported {
        let marks = memory.marks.iter().map(|mark| match mark {
            Remembered::Mark(mark) => *mark,
            Remembered::Lost(_) => GrantRecord::floor(Epoch(0), 0),
        });
        let latched = Latched::default(); // it is not settled before it is stored
        let earlier = Model { variant: provisioned.gate.keys.id, boots: 0, latched, marks: marks.collect() };
        assert_not_behind(&later, &earlier, &format!("{context}, mending cut after {again}"));
    }

    // Uncut, and once more with the weak bits read another way.
    let (first, store) = found::<F>(torn, random.next(), &context);
    assert!(is(&first, &to) || !acknowledged && is(&first, from), "{context}: {first:?} from {from:?} to {to:?}");
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
    assert!(is(&second, &to) || !acknowledged && is(&second, from), "{context}: {second:?}");
    assert_not_behind(&second, &first, &context);
    // What holds a channel is not there today and gone tomorrow, as a torn rearm would have it. (What holds none may be back.)
    for _ in 0..if matches!(operation, Operation::Latch(_)) { 4 } else { 0 } {
        let (later, _) = found::<F>(mended.clone(), random.next(), &context);
        assert!(later.latched.or(first.latched).says(later.latched), "{context}: {later:?} after {first:?}");
    }

    // It works on: counted, raised, and provisioned anew.
    block_on(store.count(second.boots)).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let higher = GrantRecord { mark: FenceRecord { token: second.marks[0].mark.token + 1, ..mark(1).mark }, ..mark(1) };
    let higher = GrantRecord { mark: FenceRecord { epoch: second.marks[0].mark.epoch, ..higher.mark }, ..higher };
    put(&mut store, 0, higher).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let anew = random.below(4) == 0;
    if anew {
        provision(&mut store, &provisioning(7)).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    }
    let (third, _) = found::<F>(self::chip(store), random.next(), &context);
    assert_eq!(third.marks[0], higher, "{context}");
    assert_eq!((third.variant == 7, third.boots), (anew || second.variant == 7, second.boots + 1), "{context}");
    whole
}

pub(super) fn set_power<F: Part>(store: &mut Store<F>, power: usize) {
    // A flash is moved out and in again: a mock has nothing else to reach it by.
    let placeholder = F::from(Chip::with_pages::<F>(0));
    let chip: Chip = std::mem::replace(&mut store.logs.flash, placeholder).into();
    store.logs.flash = F::from(Chip { power, ..chip });
}

/// One step of a life: where the chip and the gate stood, what was done, and after how much power it can be cut: before
/// each word that it writes and in each step of an erase, and not at all.
struct Step {
    chip: Chip,
    model: Model,
    operation: Operation,
    powers: Vec<usize>,
}

/// A life of a gate through three full trips round the storage, uncut.
fn a_life<F: Part>(random: &mut Random) -> (Vec<Step>, Chip) {
    let (mut steps, mut chip, mut model) = (vec![], gate::<F>(), Model::new(0));
    while chip.erases.iter().any(|erases| *erases < 3) {
        let operation = model.operation(random);
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
            let powers: Vec<usize> = if soak() || random.below(120) == 0 {
                step.powers.clone()
            } else {
                (0..2).map(|_| step.powers[random.below(step.powers.len())]).collect()
            };
            powers.into_iter().map(move |power| (step, power))
        })
        .collect();
    let mut progress = Progress::new(F::name(), places.len());
    for (step, power) in &places {
        cut::<F>(&step.chip, &step.model, &step.operation, *power, &mut random);
        progress.one();
    }
    println!("counted: {}: {} operations, {} cuts, erases {:?}", F::name(), steps.len(), places.len(), worn.erases);
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
    loop {
        tries += 1;
        let mut store = open::<F>(Chip { noise: random.next(), ..Chip::erased::<F>() });
        assert!(matches!(block_on(store.boot()), Boot::Blank));
        set_power(&mut store, power);
        let finished = provision(&mut store, &provisioning(1)).is_ok();
        let torn = chip(store);
        let whole = torn.power > 0;
        let mut store = open::<F>(Chip { noise: random.next(), ..torn });
        match block_on(store.boot()) {
            Boot::Blank => {
                assert!(!finished, "cut after {power}");
                // Cut again while it is tried again, with fewer outputs and channels.
                set_power(&mut store, random.below(3_000));
                let again = provision(&mut store, &provisioning(0)).is_ok();
                let mut store = open::<F>(Chip { noise: random.next(), ..chip(store) });
                match block_on(store.boot()) {
                    Boot::Blank => {
                        assert!(!again);
                        provision(&mut store, &provisioning(2)).unwrap();
                        assert_eq!(found::<F>(chip(store), random.next(), "").0.variant, 2, "cut after {power}");
                    }
                    Boot::Gate(found, memory) => {
                        assert!([0, 1].contains(&found.gate.keys.id), "cut after {power}");
                        assert_eq!(found, provisioning(found.gate.keys.id), "cut after {power}");
                        assert!(all_trusted(&memory) && memory.boots == 1, "cut after {power}");
                    }
                    // Safe, and of no use any more: what two cuts have left of the first record hides the second.
                    Boot::Lost => lost += 1,
                }
            }
            Boot::Gate(found, memory) => {
                assert_eq!(found, provisioning(1), "cut after {power}");
                assert!(all_trusted(&memory) && memory.boots == 1, "cut after {power}");
            }
            Boot::Lost => panic!("cut after {power}"),
        }
        if whole {
            break;
        }
        power += if soak() { 1 } else { 1 + random.below(8) };
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
        let (mut model, mut unanswered, mut torn) = (Model::new(0), Vec::<Latched>::new(), vec![]);
        'life: for _ in 0..150 {
            let mut store = open::<F>(Chip { noise: random.next(), ..chip });
            let most = [60, 400, 3_000][random.below(3)];
            let power = random.below(most);
            set_power(&mut store, power);
            let mut acknowledged = model.clone();
            if let Boot::Gate(found, memory) = block_on(store.boot()) {
                acknowledged.variant = found.gate.keys.id;
                assert_eq!(found, provisioning(acknowledged.variant));
                for (n, mark) in memory.marks.iter().enumerate() {
                    let Remembered::Mark(mark) = mark else { continue };
                    let floor = GrantRecord::floor(Epoch(0), 0);
                    let known = acknowledged.marks.get(n).copied().unwrap_or(floor);
                    let order = mark.mark.order(&known.mark);
                    assert!(order.is_some_and(std::cmp::Ordering::is_ge), "channel {n} from {known:?} to {mark:?}");
                    acknowledged.marks.resize(acknowledged.marks.len().max(n + 1), floor);
                    acknowledged.marks[n] = *mark;
                }
                let latched = if memory.storable { settle(&mut store, &memory).ok() } else { None };
                if let Some(latched) = latched {
                    // What nothing has let go of is held, and nothing else is than what something wanted held: a latch that
                    // was cut off may read as never written today, and be there tomorrow.
                    let bits = |latched: &Latched| u16::from_le_bytes([latched.inhibited, latched.astray]);
                    let known = bits(&acknowledged.latched);
                    let least = unanswered.iter().fold(known, |least, latched| least & bits(latched));
                    torn.append(&mut unanswered);
                    let most = torn.iter().fold(known, |most, latched| most | bits(latched));
                    let holds = bits(&latched);
                    assert!(holds & least == least && holds & !most == 0, "{latched:?}: {least:x} to {most:x}");
                    acknowledged.latched = latched;
                }
                if latched.is_some() && block_on(store.count(memory.boots)).is_ok() {
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
