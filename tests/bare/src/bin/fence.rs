//! A fence alone, whole: decide, store, commit, act.

#![no_std]
#![no_main]

use fencegate::{Act, Admitted, Deadline, Epoch, Fence, FenceRecord, Instant, Limits, Proof, Refusal, Stamp};
use fencegate_bare::black_box;

fencegate_bare::image!(gate);

fn gate() {
    let mut fence = black_box(Fence::new(FenceRecord::floor(Epoch(0), 0), Limits::default()));
    while let Some((stamp, now, deadline)) = black_box(None::<(Stamp, Instant, Deadline)>) {
        let _ = black_box(command(&mut fence, stamp, now, deadline));
    }
}

/// The resource's side of one command; what a store would do is left to `black_box`.
#[inline(never)]
fn command(fence: &mut Fence, stamp: Stamp, now: Instant, deadline: Deadline) -> Result<Act, Option<Refusal>> {
    let pass = match fence.admit(stamp) {
        Admitted::Current(pass) => pass,
        Admitted::Raise(raise) => {
            let stored = Proof::read_back(black_box(raise.record()));
            fence.commit(raise, stored).map_err(|_| None)?
        }
        Admitted::Refused(refused) => return Err(Some(refused.reason)),
    };
    pass.act(now, deadline).map_err(|_| None)
}
