//! A grantor against every order of requests, stores that fail and reboots: tokens only go up, and nobody gets the lease
//! while somebody else could still hold it.
#![no_main]

use arbitrary::Arbitrary;
use fencegate::{Limits, Drift, Duration, Epoch, GrantProof, GrantRecord, GrantTerms, Grantor, HolderId, Instant, Stamp, Token,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Wait(u32),
    Acquire(u8, u32, bool),
    Renew,
    Release(bool),
    Epoch(u32, u32),
    /// The power is cut; the clock begins anew.
    Reboot,
}

fuzz_target!(|input: (u32, u32, Vec<Step>)| {
    let (ppb, delay, steps) = input;
    let drift = Drift::from_ppb(u64::from(ppb) % 500_000_000);
    let longest_ttl = Duration::from_secs(600);
    let terms = GrantTerms { drift, lock_delay: Duration::from_micros(delay.into()), longest_ttl, epoch_jump: Limits::EPOCH_JUMP };
    let boot = |stored, now| Grantor::boot(Some(stored), terms, now).unwrap();
    let mut stored = GrantRecord::floor(Epoch(0), 0);
    let mut now = Instant::from_micros(0);
    let mut g = boot(stored, now);
    let mut last: Option<(Epoch, u64)> = None;
    // The lease that somebody may hold: its stamp, its TTL, and until when on the slowest clock.
    let mut held: Option<(Stamp, Duration, Instant)> = None;
    let until = |now: Instant, ttl| now.checked_add(drift.outlast(ttl).unwrap()).unwrap();
    for step in steps {
        match step {
            Step::Wait(us) => now = now.checked_add(Duration::from_micros(us.into())).unwrap(),
            Step::Acquire(who, ttl, fails) => {
                let holder = HolderId::new(["a", "b", "c"][usize::from(who % 3)]).unwrap();
                let ttl = Duration::from_micros(ttl.into());
                let Ok(granting) = g.acquire(now, holder, ttl) else { continue };
                assert!(held.is_none_or(|(_, _, until)| now >= until), "freed early");
                stored = granting.record();
                if fails {
                    // Nobody hears of it; it may be stored all the same.
                    g = boot(stored, now);
                    last = Some((stored.mark.epoch, stored.mark.token));
                    held = None;
                    continue;
                }
                let granted = g.commit(now, granting, GrantProof::read_back(stored)).unwrap();
                let key = (granted.stamp.epoch, granted.stamp.token.get());
                assert!(last.is_none_or(|last| key > last), "a token came back");
                assert_eq!((granted.ttl, granted.stamp.holder, g.current(now)), (ttl, holder, Some(granted.stamp)));
                last = Some(key);
                held = Some((granted.stamp, ttl, until(now, ttl)));
            }
            Step::Renew => {
                let Some((stamp, ttl, ends)) = held else { continue };
                if let Ok(granted) = g.renew(now, stamp) {
                    assert_eq!((granted.stamp, granted.ttl), (stamp, ttl));
                    held = Some((stamp, ttl, ends.max(until(now, ttl))));
                }
            }
            Step::Release(own) => {
                let Some((stamp, ..)) = held else { continue };
                let other = Stamp { token: Token::new(stamp.token.get().saturating_sub(1).max(1)).unwrap(), ..stamp };
                let Ok(release) = g.release(now, if own { stamp } else { other }) else { continue };
                assert!(own || other == stamp, "released by another's stamp");
                stored = release.record();
                g.commit_release(now, release, GrantProof::read_back(stored)).unwrap();
                assert_eq!(g.current(now), None);
                held = None;
            }
            Step::Epoch(epoch, floor) => {
                let Ok(raise) = g.raise_epoch(now, Epoch(epoch), floor.into()) else { continue };
                stored = raise.record();
                g.commit_epoch(now, raise, GrantProof::read_back(stored)).unwrap();
                assert_eq!(g.current(now), None);
            }
            Step::Reboot => {
                // Nothing tells how long it took: on the new clock an earlier lease has all of its time before it.
                now = Instant::from_micros(0);
                g = boot(stored, now);
                if let Some((_, ttl, ends)) = &mut held {
                    *ends = if stored.ttl.is_zero() { now } else { until(now, *ttl) };
                }
            }
        }
    }
});
