//! A worker that holds a lease, in a world made of the other halves: `cargo run --package fencegate --example worker`.
//!
//! The coordinator is a [`Grantor`], the resource a [`Fence`], and the time is a number that the loop counts up. The
//! network loses what is sent between second 12 and second 18: cancellation trips, and nothing acts until an answer
//! comes.

use fencegate::{
    Admitted, Drift, Duration, Epoch, Fence, FenceRecord, GrantDenied, GrantProof, GrantRecord, GrantTerms, Grantor,
    Holder, HolderId, Instant, Limits, Output, Plan, Proof, Stamp,
};

struct World {
    now: u64,
    grantor: Grantor,
    fence: Fence,
    acts: u32,
}

impl World {
    fn now(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn is_cut_off(&self) -> bool {
        (12_000_000..18_000_000).contains(&self.now)
    }

    /// The coordinator grants once it has stored what it grants.
    fn acquire(&mut self, holder: HolderId, ttl: Duration) -> Result<Stamp, Option<Duration>> {
        let granting = self.grantor.acquire(self.now(), holder, ttl).map_err(|denied| match denied {
            GrantDenied::Held { wait } => Some(wait),
            _ => None,
        })?;
        let proof = GrantProof::read_back(granting.record());
        self.grantor.commit(self.now(), granting, proof).map(|granted| granted.stamp).map_err(|_| None)
    }

    /// The resource raises its fence once it has stored the new mark.
    fn raise(&mut self, stamp: Stamp) -> bool {
        match self.fence.admit(stamp) {
            Admitted::Current(_) => true,
            Admitted::Raise(raise) => {
                let proof = Proof::read_back(raise.record());
                self.fence.commit(raise, proof).is_ok()
            }
            Admitted::Refused(_) => false,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let drift = Drift::from_ppm(500);
    let terms = GrantTerms {
        drift,
        lock_delay: Duration::ZERO,
        longest_ttl: Duration::from_secs(60),
        epoch_jump: Limits::EPOCH_JUMP,
    };
    let mut world = World {
        now: 0,
        grantor: Grantor::boot(Some(GrantRecord::floor(Epoch(0), 0)), terms, Instant::from_micros(0))?,
        fence: Fence::new(FenceRecord::floor(Epoch(0), 0), Limits::default()),
        acts: 0,
    };
    let plan = Plan::for_ttl(Duration::from_secs(10))
        .drift(drift + drift)
        .round_trip(Duration::from_millis(50))
        .work(Duration::from_millis(200));
    let mut holder = Holder::new(plan.build()?, HolderId::new("press-a#9f3c")?);
    let mut cancelled = 0;

    while !holder.is_done() {
        let now = world.now();
        match holder.poll(now) {
            Output::SendAcquire(request) | Output::SendRenewal(request, _) if world.is_cut_off() => {
                holder.lost(now, request, 7);
            }
            Output::SendAcquire(request) => match world.acquire(holder.id(), holder.schedule().ttl()) {
                Ok(stamp) => holder.granted(now, request, stamp, None),
                Err(wait) => holder.refused(now, request, wait, 7),
            },
            Output::Raise(stamp) if world.raise(stamp) => {
                println!("{now:?}: the fence is raised to {stamp}");
                holder.raised(now, stamp);
            }
            Output::Raise(stamp) => holder.fenced(now, stamp),
            Output::SendRenewal(request, stamp) => match world.grantor.renew(now, stamp) {
                Ok(granted) => holder.renewed(now, request, Some(granted.ttl)),
                Err(_) => holder.refused(now, request, None, 7),
            },
            Output::Cancel(why) => {
                println!("{now:?}: stop: {why}");
                cancelled += 1;
                holder.stopped(now);
            }
            Output::SendRelease(stamp) => {
                if let Ok(release) = world.grantor.release(now, stamp) {
                    let proof = GrantProof::read_back(release.record());
                    world.grantor.commit_release(now, release, proof)?;
                }
                println!("{now:?}: released");
                holder.released(now, stamp);
            }
            Output::Wait(until) => {
                if let Ok(permit) = holder.may_act(now, Duration::from_millis(200)) {
                    assert!(world.raise(permit.stamp()), "a permit that the resource refuses");
                    world.acts += 1;
                    holder.stopped(now);
                }
                // Half a second of work, or less where the holder wants to be polled before.
                let next = now.checked_add(Duration::from_millis(500)).ok_or("the clock is at its end")?;
                world.now = until.map_or(next, |until| until.min(next)).as_micros();
            }
        }
        if world.now > 30_000_000 {
            holder.stop(world.now());
        }
    }
    println!("{} acts, {cancelled} cancellations", world.acts);
    assert!(world.acts > 30 && cancelled >= 2);
    Ok(())
}
