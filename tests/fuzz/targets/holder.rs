//! A holder against every order of events, calls and times: it comes to wait, no window outlasts what was sent and
//! answered, and no permit is given outside it.
#![no_main]

use arbitrary::Arbitrary;
use fencegate::{
    Deadline, Denied, Drift, Duration, Epoch, Holder, HolderId, Instant, Output, Plan, Request, Stamp, Token,
};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

#[derive(Arbitrary, Debug)]
enum Step {
    Wait(u16),
    /// The clock shows anything.
    Clock(u64),
    Sent(u8),
    Granted(u8, u8, bool, Option<u32>),
    Renewed(u8, Option<u32>),
    Refused(u8, Option<u64>, u32),
    Lost(u8, u32),
    Released(u8),
    Revoked(u8),
    Raised(u8),
    Fenced(u8),
    Progress,
    Stopped,
    HandOver(u32),
    Stop,
    Act(u64),
}

#[derive(Arbitrary, Debug)]
struct Run {
    start: u64,
    progress: Option<u32>,
    hold: Option<u32>,
    steps: Vec<Step>,
}

fn ms(ms: u32) -> Duration {
    Duration::from_millis(ms)
}

fn stamp(token: u8, ours: bool) -> Stamp {
    let holder = HolderId::new(if ours { "press-a#1" } else { "press-b#1" }).unwrap();
    Stamp { epoch: Epoch(0), token: Token::new(u64::from(token) + 1).unwrap(), holder }
}

fuzz_target!(|run: Run| {
    let plan = Plan::for_ttl(ms(9_000)).drift(Drift::from_ppm(1_000)).round_trip(ms(100)).build().unwrap();
    let mut h = Holder::new(plan, stamp(0, true).holder);
    if let Some(limit) = run.progress {
        h = h.progress_within(ms(limit));
    }
    if let Some(limit) = run.hold {
        h = h.longest_hold(ms(limit));
    }
    let mut now = Instant::from_micros(run.start);
    let mut backwards = false;
    // When each request was last said to leave: no window may be counted from later.
    let mut sent: BTreeMap<Request, Instant> = BTreeMap::new();
    for step in run.steps {
        let nr = |n: u8| Request::from_number(u64::from(n % 32) + 1);
        match step {
            Step::Wait(ms) => now = now.checked_add(self::ms(ms.into())).unwrap_or(now),
            Step::Clock(us) => {
                backwards |= Instant::from_micros(us) < now && !sent.is_empty();
                now = Instant::from_micros(us);
            }
            Step::Sent(n) => {
                h.sent(now, nr(n));
                sent.entry(nr(n)).and_modify(|at| *at = now);
            }
            Step::Granted(n, token, ours, ttl) => h.granted(now, nr(n), stamp(token, ours), ttl.map(ms)),
            Step::Renewed(n, ttl) => h.renewed(now, nr(n), ttl.map(ms)),
            Step::Refused(n, wait, random) => h.refused(now, nr(n), wait.map(Duration::from_micros), random),
            Step::Lost(n, random) => h.lost(now, nr(n), random),
            Step::Released(token) => h.released(now, stamp(token, true)),
            Step::Revoked(token) => h.revoked(now, stamp(token, true)),
            Step::Raised(token) => h.raised(now, stamp(token, true)),
            Step::Fenced(token) => h.fenced(now, stamp(token, true)),
            Step::Progress => h.progress(now),
            Step::Stopped => h.stopped(now),
            Step::HandOver(rest) => h.hand_over(now, ms(rest)),
            Step::Stop => h.stop(now),
            Step::Act(us) => match h.may_act(now, Duration::from_micros(us)) {
                Ok(permit) => {
                    assert!(!backwards, "leave to act under a clock that ran backwards");
                    assert_eq!((h.stamp(), h.deadline()), (Some(permit.stamp()), Some(permit.deadline())));
                    assert!(now <= permit.ends() && !permit.deadline().is_over(permit.ends()));
                    assert_eq!(h.covers(now, &permit), Ok(()));
                }
                Err(denied) => assert!(!backwards || matches!(denied, Denied::Fault(_)), "{denied}"),
            },
        }
        let mut outputs = 0;
        loop {
            assert!(outputs < 8, "it never waits");
            outputs += 1;
            match h.poll(now) {
                Output::SendAcquire(request) | Output::SendRenewal(request, _) => {
                    assert!(sent.insert(request, now).is_none(), "{request:?} twice");
                }
                Output::Wait(until) => {
                    assert!(until.is_none_or(|until| until > now), "it would be polled again at once");
                    break;
                }
                Output::Raise(_) | Output::Cancel(_) | Output::SendRelease(_) => {}
            }
        }
        if let Some(deadline) = h.deadline() {
            assert!(!deadline.is_over(now), "a lease that is over");
            let latest = sent.values().filter_map(|at| Deadline::after(*at, plan.window())).max();
            assert!(latest.is_some_and(|latest| deadline <= latest), "longer than anything that was asked for");
        }
    }
});
