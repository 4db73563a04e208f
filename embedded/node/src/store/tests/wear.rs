//! How long a part lasts. `cargo test -p fencegate-node wear -- --nocapture` prints it.

use super::nor::Nor;
use super::*;

/// Cycles that a part is made for.
const CYCLES: u64 = 100_000;

/// A gate of five channels with an output each, as the emulated board has.
fn five_channels() -> Provisioning {
    let mut gate = provisioning(0);
    gate.channels =
        std::iter::repeat_n(ChannelConfig { reaction: Duration::from_millis(20), ..ChannelConfig::new() }, 5).collect();
    gate.outputs = std::iter::repeat_n(OutputConfig::switch(), 5).collect();
    gate
}

/// Raises for each erase in a copy, and for each erase of the page that is erased most.
fn raises_per_erase(pages_a_copy: usize, tokens: u64, name: &str) -> [u64; 2] {
    let mut store = open::<Nor<4>>(Chip::with_pages::<Nor<4>>(2 * pages_a_copy));
    let _ = block_on(store.boot());
    provision(&mut store, &five_channels()).unwrap();
    let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!() };
    block_on(store.count(memory.boots)).unwrap();
    let raises = 10_000;
    let mut n = 0;
    let mut raise = |store: &mut Store<Nor<4>>, raises: u64| {
        for _ in 0..raises {
            let mark = FenceRecord { token: tokens + n, holder: HolderId::new(name).ok(), ..mark(1).mark };
            put(store, u8::try_from(n % 5).unwrap(), GrantRecord { mark, ttl: Duration::ZERO }).unwrap();
            n += 1;
        }
    };
    // The first trip erases nothing.
    let mut flash = chip(store);
    while flash.erases.contains(&0) {
        let mut store = open::<Nor<4>>(flash);
        let _ = block_on(store.boot());
        raise(&mut store, 100);
        flash = chip(store);
    }
    let before = flash.erases.clone();
    let mut store = open::<Nor<4>>(flash);
    let _ = block_on(store.boot());
    raise(&mut store, raises);
    flash = chip(store);
    let erases: Vec<u32> = flash.erases.iter().zip(before).map(|(after, before)| after - before).collect();
    let in_copy = erases[..pages_a_copy].iter().sum::<u32>();
    [in_copy, *erases.iter().max().unwrap()].map(|erases| raises / u64::from(erases))
}

#[test]
fn a_part_lasts_for_millions_of_raises() {
    for (tokens, name) in [(1, "press-a"), (1 << 60, "sixteen-bytes-xx")] {
        for (pages, least) in [(2, 100), (8, 400)] {
            let [each, raises] = raises_per_erase(pages, tokens, name);
            println!(
                "five channels, {pages} pages of 4 KiB a copy, holder {name}, tokens from {tokens}: {each} raises for each \
                 erase, {raises} for each erase of one page, {} million in {CYCLES} cycles",
                raises * CYCLES / 1_000_000
            );
            assert!(raises >= least, "{raises}");
        }
    }
}

/// A gate of so many channels and outputs, on so many pages for each copy; where it was provisioned twice, what is left of
/// the first is carried along too.
fn aged(channels: usize, outputs: usize, pages: usize, twice: bool) -> Option<Store<Nor<4>>> {
    let mut gate = provisioning(0);
    let each = u8::try_from(outputs / channels).unwrap();
    let channel = ChannelConfig { outputs: each, reaction: Duration::from_millis(20), ..ChannelConfig::new() };
    gate.channels = std::iter::repeat_n(channel, channels).collect();
    gate.outputs = std::iter::repeat_n(OutputConfig::switch(), outputs).collect();
    let mut store = open::<Nor<4>>(Chip::with_pages::<Nor<4>>(2 * pages));
    let _ = block_on(store.boot());
    for instance in 0..=u64::from(twice) {
        gate.gate.keys.instance = instance;
        provision(&mut store, &gate).ok()?;
        let Boot::Gate(_, memory) = block_on(store.boot()) else { panic!() };
        block_on(store.count(memory.boots)).unwrap();
    }
    Some(store)
}

/// How much is read at boot and for a raise; it bounds their time on flash that is slow to read. A raise that reclaims a page
/// reads that page and the one that is filled, and not the whole log for each record in it: on no page, whatever was stored
/// how long ago, and soon after a boot too.
#[test]
fn a_boot_and_a_raise_read_so_much() {
    let mut cases = 0;
    for (channels, outputs, twice) in [(5, 5, false), (5, 5, true), (8, 16, true)] {
        for pages in [2, 4, 8, 16] {
            let Some(mut store) = aged(channels, outputs, pages, twice) else { continue };
            let (mut raises, mut boots) = (vec![], 0);
            // Three times round the storage.
            while store.logs.flash.chip().erases.iter().any(|erases| *erases < 3) {
                let n = raises.len();
                let before = store.logs.flash.chip().reads;
                put(&mut store, u8::try_from(n % channels).unwrap(), mark(n as u64 + 1)).unwrap();
                raises.push(store.logs.flash.chip().reads - before);
                if n % 97 == 20 {
                    // A provisioning is begun, and comes to nothing.
                    let piece = Entry::Output { output: 0, config: OutputConfig::switch() };
                    let _ = block_on(store.put(&piece)).unwrap();
                }
                if n % 97 == 96 {
                    let before = store.logs.flash.chip().reads;
                    store = open::<Nor<4>>(chip(store));
                    let Boot::Gate(..) = block_on(store.boot()) else { panic!() };
                    boots = boots.max(store.logs.flash.chip().reads - before);
                }
            }
            raises.sort_unstable();
            let (median, most) = (raises[raises.len() / 2], raises[raises.len() - 1]);
            println!(
                "{channels} channels, {outputs} outputs, provisioned {}, {pages} pages a copy: {median} reads for a raise, \
                 at most {most}; at most {boots} for a boot",
                if twice { "twice" } else { "once" }
            );
            assert!(most < 3_000, "{most}"); // as `embedded/PORTING.md` has it
            cases += 1;
        }
    }
    assert!(cases > 10, "{cases}");
}
