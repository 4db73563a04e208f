//! Nanoseconds a decision on the machine at hand: `cargo bench --package fencegate --features heapless`.
//!
//! A line is a name, a tab, and nanoseconds with one decimal; the least of several rounds, since whatever else runs only
//! adds. `cargo xtask bench` records it.

use fencegate::{
    Admitted, Drift, Duration, Epoch, Fence, FenceRecord, HolderId, Limits, Stamp, TableAdmitted, Token, WindowInput,
};
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

/// Calls a round, and rounds.
const CALLS: u32 = 1_000_000;
const ROUNDS: u32 = 15;

/// The least nanoseconds a call, of all rounds.
fn least(mut call: impl FnMut(u32)) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let since = Instant::now();
            (0..CALLS).for_each(&mut call);
            since.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn line(name: &str, call: impl FnMut(u32)) {
    println!("{name}\t{:.1}", least(call));
}

fn stamp(token: u64) -> Stamp {
    let holder = HolderId::new("press-a#9f3c").expect("a holder");
    Stamp { epoch: Epoch(0), token: Token::new(token).expect("above zero"), holder }
}

fn record(token: u64) -> FenceRecord {
    FenceRecord { epoch: Epoch(0), token, holder: Some(stamp(1).holder), released: false }
}

/// A resource in no particular order: a multiplicative walk over all of them (Knuth's constant).
fn walk(call: u32, resources: u32) -> u32 {
    call.wrapping_mul(2_654_435_761) % resources
}

fn table<const N: usize>() {
    use fencegate::FenceTable;
    let mut table: Box<FenceTable<u32, N>> = Box::new(FenceTable::new());
    let mut map = HashMap::new();
    let resources = u32::try_from(N).expect("a small table");
    for key in 0..resources {
        table.restore(key, record(34)).expect("room");
        map.insert(key, Fence::new(record(34), Limits::default()));
    }
    let stamp = stamp(34);
    line(&format!("`FenceTable::admit`, {N} resources"), |call| {
        let key = walk(call, resources);
        assert!(matches!(black_box(table.admit(black_box(&key), black_box(stamp))), TableAdmitted::Current(_)));
    });
    line(&format!("`HashMap` of fences, {N} resources"), |call| {
        let key = walk(call, resources);
        let fence = map.get(black_box(&key)).expect("it is there");
        assert!(matches!(black_box(fence.admit(black_box(stamp))), Admitted::Current(_)));
    });
}

fn main() {
    let fence = Fence::new(record(34), Limits::default());
    line("two `u64` compared", |call| {
        black_box(black_box(u64::from(call)) < black_box(34));
    });
    for (name, stamp) in [("a higher stamp", stamp(35)), ("a lower one", stamp(33)), ("its own", stamp(34))] {
        line(&format!("`Fence::admit`, {name}"), |_| {
            let _ = black_box(black_box(&fence).admit(black_box(stamp)));
        });
    }
    let lease = WindowInput::new(Duration::from_secs(10), Drift::from_ppm(1_000));
    line("`WindowInput::window`, TTL 10 s", |_| {
        let _ = black_box(black_box(&lease).window());
    });
    table::<1>();
    table::<4>();
    table::<16>();
    table::<64>();
    table::<256>();
    table::<1024>();
    table::<4096>();
}
