//! The calculator against wide arithmetic: every figure exact to its safe side, whatever the input.
#![no_main]

use arbitrary::Arbitrary;
use fencegate::{Drift, Duration, GateTiming, PPB, Plan, RedlockInput, SizeInput, Start, quorum};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    ttl: u64,
    ppb: u32,
    wild_ppb: Option<u64>,
    rtt: u64,
    grant: bool,
    offset: u64,
    attempts: u64,
    work: u64,
    pause: u64,
    poll: u64,
    lost: u64,
    granularity: u64,
    nodes: u64,
    granted: u64,
}

const US: fn(u64) -> Duration = Duration::from_micros;

fn wide(d: Duration) -> u128 {
    d.as_micros().into()
}

fuzz_target!(|i: Input| {
    let ppb = i.wild_ppb.unwrap_or(u64::from(i.ppb) % PPB);
    let drift = Drift::from_ppb(ppb);
    if ppb < PPB {
        let off = drift.of(US(i.ttl)).unwrap();
        assert_eq!(wide(off), (u128::from(i.ttl) * u128::from(ppb)).div_ceil(u128::from(PPB)));
        let outlast = (u128::from(i.ttl) * u128::from(PPB)).div_ceil(u128::from(PPB - ppb));
        assert_eq!(drift.outlast(US(i.ttl)).ok().map(wide), u64::try_from(outlast).ok().map(u128::from));
    } else {
        assert!(drift.of(US(i.ttl)).is_err() && drift.outlast(US(i.ttl)).is_err());
    }

    let mut input = Plan::for_ttl(US(i.ttl)).drift(drift).round_trip(US(i.rtt)).attempts(i.attempts).work(US(i.work));
    input = input.start(if i.grant { Start::Grant } else { Start::Send });
    (input.clock_offset, input.pause, input.poll) = (US(i.offset), US(i.pause), US(i.poll));
    let lease = input.lease().window();
    if let Ok(plan) = input.plan() {
        let window = lease.unwrap();
        assert_eq!((plan.margin, plan.window, plan.safe), (window.margin, window.window, window.safe));
        assert!(plan.window <= US(i.ttl) && plan.takeover >= US(i.ttl) && !plan.heartbeat.is_zero());
        assert_eq!(wide(plan.window), u128::from(i.ttl).saturating_sub(wide(plan.margin)));
        assert!(!plan.sustainable || wide(plan.heartbeat) + u128::from(i.rtt) <= wide(plan.cancel_after));
        assert!(plan.takeover <= Duration::MAX_ANSWER);
    }

    let size = SizeInput {
        attempts: i.attempts,
        poll: US(i.poll),
        lost: i.lost,
        granularity: US(i.granularity),
        ..SizeInput::new(drift).round_trip(US(i.rtt)).work(US(i.work)).pause(US(i.pause))
    };
    if let Ok(Some(size)) = size.size() {
        assert!(size.ttl.as_micros().is_multiple_of(i.granularity) && size.ttl.as_micros() >= i.attempts);
        let plan = size.plan;
        let needed = (u128::from(i.lost) + 1) * wide(plan.heartbeat);
        let needed = needed + u128::from(i.rtt) + u128::from(i.work) + u128::from(i.pause);
        assert!(needed < wide(plan.window), "no room");
    }

    let gate = GateTiming { drift, lateness: US(i.rtt), reaction: US(i.offset), longest_window: US(i.work) };
    if let Ok(Some(w)) = gate.window(US(i.ttl)) {
        assert!(!w.is_zero() && w < US(i.ttl).min(US(i.work)) || ppb == 0 && i.rtt == 0 && i.offset == 0);
    }

    let lock = RedlockInput {
        elapsed: US(i.rtt),
        granted: i.granted,
        drift_factor: drift,
        drift_fixed: US(i.offset),
        ..RedlockInput::new(US(i.ttl), i.nodes)
    };
    if let Ok(lock) = lock.redlock() {
        assert_eq!(lock.held, !lock.validity.is_zero() && 2 * u128::from(i.granted) > u128::from(i.nodes));
    }
    if let Ok(q) = quorum(i.nodes) {
        assert_eq!(q.quorum + q.tolerates, i.nodes);
        assert!(q.quorum > q.tolerates);
    }
});
