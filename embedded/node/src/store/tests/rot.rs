//! Rot: bits and bytes that change by themselves, in one copy and in both. The claim is: any single bit or byte rotted in
//! either copy, in words of every length, brings nothing down that goes up, no channel's stamp and no boot number. The
//! default run takes a sample of them, and a soak all of one length.

use super::nor::Nor;
use super::*;
use crate::words::Words;

type Flash = Nor<4>;

/// A gate's flash, and what it last said.
struct Raised {
    flash: Chip,
    marks: [GrantRecord; 2],
    latched: Latched,
    /// The last boot that was counted.
    boots: u32,
}

/// A gate whose first fence stands at `token`; it has booted now and then on the way there. Between its records are some in
/// which erased flash seems to begin, as soon as their header has rotted.
fn raised<F: Part>(token: u64) -> Raised {
    let mut store = open::<F>(gate::<F>());
    let (mut boots, mut marks, mut last) = (1, [GrantRecord::floor(Epoch(0), 0); 2], Latched::default());
    let _ = block_on(store.boot());
    for token in 1..=token {
        if token % 2 == 1 {
            let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!("no gate") };
            assert_eq!(memory.boots, boots + 1);
            boots = memory.boots;
            block_on(store.count(boots)).unwrap();
        }
        if token % 4 == 0 {
            let mark = FenceRecord { token: u64::MAX - 1_000 + token, ..mark(1).mark };
            marks[1] = GrantRecord { mark, ttl: Duration::from_micros(u64::MAX) };
            put(&mut store, 1, marks[1]).unwrap();
        }
        marks[0] = mark(token);
        put(&mut store, 0, marks[0]).unwrap();
        if token % 3 == 0 {
            last = latched(u32::try_from(token).unwrap());
            let _ = block_on(store.put(&Entry::Latched(last))).unwrap();
        }
    }
    Raised { flash: chip(store), marks, latched: last, boots }
}

/// The higher marks stand, or it is a fault; never a lower one, never a boot number that was used, and never a blank board.
/// What the boot has mended, no later boot sees otherwise. Whether all of it stands.
fn assert_no_lower<F: Part>(damaged: Chip, raised: &Raised, context: &str) -> bool {
    let stands = |memory: &Memory| {
        for (channel, last) in raised.marks.iter().enumerate() {
            let stands = trusted(memory, channel);
            assert!(stands.is_none_or(|found| found == *last), "{context}: channel {channel} at {stands:?}");
        }
        // Where the counter was lost it begins anew, far from all that were ever counted, and nothing that goes up is trusted.
        let (next, lost) = (raised.boots + 1, memory.boots >= 1 << 31 && all_lost(memory));
        assert!(memory.boots == next || lost, "{context}: boot {} after {}", memory.boots, raised.boots);
        [0, 1].map(|channel| trusted(memory, channel))
    };
    match boot::<F>(damaged) {
        (Boot::Gate(found, memory), after) => {
            assert_eq!(found, provisioning(0), "{context}");
            let first = stands(&memory);
            let held = memory.latched.or(raised.latched).says(memory.latched);
            assert!(first[0].is_none() || held, "{context}: {:?}", memory.latched);
            let (again, _) = self::memory::<F>(after);
            assert_eq!(stands(&again), first, "{context}");
            all_trusted(&memory)
        }
        (Boot::Lost, _) => false,
        (Boot::Blank, _) => panic!("{context} made a blank board of a gate"),
    }
}

/// One bit or byte after the other, after the first raises and once the pages have been erased and the records moved. A soak
/// turns every bit of words of 4 by itself, and every byte to 00, to FF and to its complement, and gives every byte that the
/// first raises have written every other value; of the other words it takes one byte in eight. Else it is one in `every` or
/// so of what is written.
fn rot_anywhere<F: Part>(every: usize) {
    let mut random = Random(seed() ^ F::WRITE_SIZE as u64);
    let (mut faults, mut rots) = (0, 0);
    let whole = F::WRITE_SIZE == 4 && !F::ADAPTED;
    for token in [5, 300] {
        let raised = raised::<F>(token);
        let flash = &raised.flash;
        assert!(token == 5 || flash.erases.iter().any(|erases| *erases > 0), "round the storage");
        let mut progress = Progress::new(format!("{}, {token} raises", F::name()), flash.bytes.len());
        for at in 0..flash.bytes.len() {
            progress.one();
            let old = flash.bytes[at];
            let one_in = match (soak(), whole) {
                (true, true) => 1,
                (true, false) => 8,
                (false, _) if old == 0xff => 97 * every,
                (false, _) => every,
            };
            if random.below(one_in) != 0 {
                continue;
            }
            let bits = (0..8).map(|bit| old ^ 1 << bit);
            let mut others: Vec<u8> = if whole && token == 5 && old != 0xff {
                (0..=0xff).filter(|byte| *byte != old).collect()
            } else {
                bits.chain([0x00, 0xff, !old]).filter(|byte| *byte != old).collect()
            };
            if !soak() {
                others = vec![others[random.below(others.len())]];
            }
            for other in others {
                let mut damaged = flash.clone();
                damaged.bytes[at] = other;
                rots += 1;
                let context = format!("{}, byte {at} from {old:x} to {other:x}", F::name());
                faults += u32::from(!assert_no_lower::<F>(damaged, &raised, &context));
            }
        }
    }
    println!("counted: {}: {faults} faults of {rots} rotten bits and bytes", F::name());
    assert_eq!(faults, 0, "one copy is enough");
}

#[test]
fn no_rot_in_words_of_4_brings_an_older_stamp_back() {
    rot_anywhere::<Nor<4>>(8);
}

#[test]
fn no_rot_in_words_of_8_brings_an_older_stamp_back() {
    rot_anywhere::<Nor<8>>(32);
}

#[test]
fn no_rot_in_words_of_16_brings_an_older_stamp_back() {
    rot_anywhere::<Nor<16>>(32);
}

#[test]
fn no_rot_in_words_of_32_brings_an_older_stamp_back() {
    rot_anywhere::<Nor<32>>(32);
}

#[test]
fn no_rot_in_bytes_behind_the_adapter_brings_an_older_stamp_back() {
    rot_anywhere::<Words<Nor<1>>>(32);
}

/// At both ends of every page, where the log's markers are, whatever the sample is.
#[test]
fn no_rotten_marker_brings_an_older_stamp_back() {
    markers::<Nor<4>>();
    markers::<Nor<8>>();
    markers::<Nor<16>>();
    markers::<Nor<32>>();
    markers::<Words<Nor<1>>>();
}

fn markers<F: Part>() {
    let raised = raised::<F>(300);
    let flash = &raised.flash;
    for at in (0..flash.bytes.len()).step_by(F::WRITE_SIZE.min(8)) {
        let word = at % F::ERASE_SIZE / F::WRITE_SIZE;
        if ![0, 1, F::ERASE_SIZE / F::WRITE_SIZE - 1].contains(&word) {
            continue;
        }
        let (old, last) = (flash.bytes[at], at + F::WRITE_SIZE.min(8) - 1);
        for (at, other) in [(at, !old), (at, 0), (at, 0xff), (last, 0), (last, 0xff), (last, 0x0f)] {
            let mut damaged = flash.clone();
            damaged.bytes[at] = other;
            assert!(assert_no_lower::<F>(damaged, &raised, &format!("byte {at} to {other:x}")), "one copy is enough");
        }
    }
}

#[test]
fn a_lost_half_is_mended_from_the_other() {
    let Raised { flash, .. } = raised::<Flash>(9);
    let half = flash.bytes.len() / 2;
    for lost in [0, half] {
        let mut erased = flash.clone();
        erased.bytes[lost..lost + half].fill(0xff);
        let (found, mut mended) = memory::<Flash>(erased);
        assert_eq!(trusted(&found, 0), Some(mark(9)));
        assert!(found.mended >= 9, "{}", found.mended);
        mended.bytes[half - lost..2 * half - lost].fill(0xff);
        assert_eq!(trusted(&memory::<Flash>(mended).0, 0), Some(mark(9)), "it was written to both");
    }
}

/// A flash that ends early: older records may stand before the cut, newer ones behind it.
#[test]
fn a_truncated_flash_still_knows_its_keys_and_trusts_nothing_else() {
    let Raised { flash, .. } = raised::<Flash>(5);
    let mut answering = 0;
    for len in (0..flash.bytes.len()).step_by(64) {
        let mut truncated = flash.clone();
        truncated.bytes.truncate(len);
        truncated.weak.truncate(len);
        match boot::<Flash>(truncated).0 {
            Boot::Gate(_, memory) => {
                answering += 1;
                assert!(all_lost(&memory), "{len} bytes");
            }
            Boot::Lost => {}
            Boot::Blank => panic!("{len} bytes made a blank board of a gate"),
        }
    }
    assert!(answering > 0);
}

/// Damage to both copies at once: whatever it is, the board does not come up blank, where it would obey the factory key,
/// and no fence is believed that was older than the last.
#[test]
fn no_damage_to_both_copies_makes_a_blank_board_of_a_gate() {
    let mut random = Random(seed());
    let raised = raised::<Flash>(7);
    let flash = &raised.flash;
    let half = flash.bytes.len() / 2;
    let mut damages: Vec<Vec<u8>> = vec![];
    for len in [1, 16, 64, 100, 200, 300, 500, 1_000, 4_096, half] {
        for fill in [Some(0x00), Some(0xff), None] {
            let mut bytes = flash.bytes.clone();
            for at in (0..len).chain(half..half + len) {
                bytes[at] = fill.unwrap_or_else(|| random.next().to_le_bytes()[0]);
            }
            damages.push(bytes);
        }
    }
    for _ in 0..300 {
        damages.push(flash.bytes.iter().map(|_| random.next().to_le_bytes()[0]).collect());
    }
    damages.push(vec![0; 2 * half]);
    let erased = vec![0xff; 2 * half];
    for bytes in damages.into_iter().filter(|bytes| *bytes != erased) {
        let rotten = Chip { bytes, ..flash.clone() };
        let _ = assert_no_lower::<Flash>(rotten.clone(), &raised, "damage to both");
        // Nor does a second look, after whatever the first has repaired.
        let (_, looked_at) = boot::<Flash>(rotten);
        let _ = assert_no_lower::<Flash>(looked_at, &raised, "damage to both, looked at");
    }
}

/// Where the newest record with this value begins in a copy, by its head; and how many bytes it has.
fn newest(store: &Store<Flash>, copy: Copy, value: &[u8]) -> (usize, usize) {
    let range = store.logs.range(copy);
    let bytes = &store.logs.flash.chip().bytes[range.start as usize..range.end as usize];
    // The page that is being filled has the newest.
    let page = bytes.chunks(4096).position(|page| page[..4] == [0; 4] && page[4092..] == [0xff; 4]).unwrap() * 4096;
    let at = bytes[page..page + 4096].windows(value.len()).rposition(|found| found == value).unwrap();
    (range.start as usize + page + at - 9, 9 + value.len())
}

/// Turns a bit over in a running gate.
fn rot(store: &mut Store<Flash>, at: usize, bit: usize) {
    let mut chip: Chip = std::mem::replace(&mut store.logs.flash, Nor::from(Chip::with_pages::<Flash>(0))).into();
    chip.bytes[at + bit / 8] ^= 1 << (bit % 8);
    store.logs.flash = Nor::from(chip);
}

/// What was stored last rots in one copy, any bit of it, and the other copy is torn in an erase: its log can be read no more,
/// though all of its records are there. The rot comes before that copy turns a page, or after it. What was acknowledged stands or
/// is lost: nothing lower comes into force, and no latch goes away.
#[test]
fn rot_in_one_copy_and_a_torn_erase_of_the_other_bring_nothing_down() {
    let mut random = Random(seed());
    let x = GrantRecord { mark: FenceRecord { token: 0xdead_beef, ..mark(1).mark }, ..mark(1) };
    let stop = Latched { serial: 2, inhibited: 3, astray: 0 };
    let mut value = [0; 64];
    let (mut tries, mut stood) = (0, 0);
    for (rotten, early, latch) in [false, true]
        .into_iter()
        .flat_map(|early| Copy::BOTH.map(|copy| (copy, early)))
        .flat_map(|(copy, early)| [(copy, early, false), (copy, early, true)])
    {
        let mut bit = if soak() { 0 } else { random.below(9) };
        loop {
            let mut store = open::<Flash>(gate::<Flash>());
            let _ = block_on(store.boot());
            let free = Entry::Latched(Latched { serial: 1, inhibited: 0, astray: 0 });
            let _ = block_on(store.put(&free)).unwrap();
            put(&mut store, 0, mark(1)).unwrap();
            let len = if latch {
                let _ = block_on(store.put(&Entry::Latched(stop))).unwrap();
                encode(&stop, &mut value).unwrap()
            } else {
                put(&mut store, 0, x).unwrap();
                encode(&Mark::Stands(x), &mut value).unwrap()
            };
            let (at, bytes) = newest(&store, rotten, &value[..len]);
            if bit >= 8 * bytes {
                break;
            }
            if early {
                rot(&mut store, at, bit);
            }
            let torn = store.logs.range(rotten.other());
            let torn = torn.start as usize..torn.end as usize;
            let erases = |chip: &Chip| chip.erases[torn.start / 4096..torn.end / 4096].to_vec();
            let mut before = store.logs.flash.chip().clone();
            for token in 1.. {
                put(&mut store, 1, mark(token)).unwrap();
                if erases(store.logs.flash.chip()) != erases(&before) {
                    break;
                }
                before = store.logs.flash.chip().clone();
            }
            if !early {
                let (at, _) = newest(&store, rotten, &value[..len]);
                rot(&mut store, at, bit);
            }
            let mut chip = chip(store);
            let page = torn.clone().step_by(4096).find(|at| chip.bytes[*at] == 0xff).unwrap();
            chip.bytes[page..page + 4096].copy_from_slice(&before.bytes[page..page + 4096]);
            chip.bytes[page..page + 4].fill(0xff);
            chip.bytes[page + 4092..page + 4096].fill(0);
            let context = format!("bit {bit} in {rotten:?}, early {early}");
            for _ in 0..2 {
                let (found, after) = boot::<Flash>(Chip { noise: random.next(), ..chip });
                if let Boot::Gate(_, memory) = found {
                    if latch {
                        assert!(memory.latched.or(stop).says(memory.latched), "{context}: {:?}", memory.latched);
                    } else {
                        let stands = trusted(&memory, 0);
                        assert!(stands.is_none_or(|found| found == x), "{context}: {stands:?}");
                        stood += usize::from(stands.is_some());
                    }
                }
                chip = after;
            }
            tries += 1;
            bit += if soak() { 1 } else { 9 };
        }
    }
    println!("counted: rot and a torn erase {tries} times; a mark stood {stood} times in twice as many boots");
    assert!(stood > tries / 4, "{stood} of {tries}");
}
