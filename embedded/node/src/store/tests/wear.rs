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

/// How much is read at boot and for a raise; it bounds their time on flash that is slow to read.
#[test]
fn a_boot_and_a_raise_read_so_much() {
    for pages in [2, 8, 16] {
        let mut store = open::<Nor<4>>(Chip::with_pages::<Nor<4>>(2 * pages));
        let _ = block_on(store.boot());
        provision(&mut store, &five_channels()).unwrap();
        let _ = block_on(store.boot());
        let (mut flash, mut raise, mut boot) = (chip(store), 0, 0);
        for n in 0..2_000 {
            let mut store = open::<Nor<4>>(Chip { reads: 0, ..flash });
            store.state = State::Gate(Census { serial: 0, marks: 5, channels: 5, outputs: 5 });
            put(&mut store, u8::try_from(n % 5).unwrap(), mark(n + 1)).unwrap();
            flash = chip(store);
            raise = raise.max(flash.reads);
            if n % 50 == 0 {
                let (_, after) = self::boot::<Nor<4>>(Chip { reads: 0, ..flash });
                boot = boot.max(after.reads);
                flash = after;
            }
        }
        println!("{pages} pages a copy: at most {boot} reads at boot, {raise} for a raise");
    }
}
