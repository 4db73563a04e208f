//! The fences that are raised before the work: in their order, in time, and only where the lock can protect something.

use super::*;
use crate::coordinator::{RaiseError, Resource};
use std::pin::Pin;

/// A fence that does so, each time; then it is raised at once.
struct Fence(Mutex<VecDeque<Does>>, Arc<Script>);

impl Resource for Fence {
    fn raise(&self, _: Stamp) -> Pin<Box<dyn Future<Output = Result<(), RaiseError>> + Send + '_>> {
        Box::pin(async {
            self.1.does("raise", &self.0).await.map_or_else(
                |error| Err(RaiseError::NoAnswer(error.to_string())),
                |raised| if raised { Ok(()) } else { Err(RaiseError::Refused("stale".to_owned())) },
            )
        })
    }
}

fn fence(does: &[Does], script: &Arc<Script>) -> Arc<Fence> {
    Arc::new(Fence(Mutex::new(does.iter().copied().collect()), script.clone()))
}

fn none(outcome: Result<Held<()>, NotHeld>) -> NotHeld {
    outcome.map(drop).unwrap_err()
}

async fn no_work(_: Lease<Paused>) {
    panic!("no work before every fence is raised");
}

#[tokio::test(start_paused = true)]
async fn every_fence_is_raised_before_the_work_and_a_refusal_ends_it() {
    let first = script(&[], &[], &[]);
    let held = runner(&first)
        .resource(fence(&[Error(0), Error(0), Yes(0)], &first))
        .resource(fence(&[], &first))
        .hold(CancellationToken::new(), |_| {
            first.note("work");
            std::future::ready(())
        })
        .await
        .unwrap();
    assert!(held.released);
    let order: Vec<_> = first.said.lock().unwrap().iter().map(|(_, what)| *what).collect();
    assert_eq!(order, ["acquire", "watch", "raise", "raise", "raise", "raise", "work", "release", "lapse"]);

    let second = script(&[], &[], &[]);
    let outcome = runner(&second).resource(fence(&[No(0)], &second)).hold(CancellationToken::new(), no_work).await;
    assert_eq!(none(outcome), NotHeld::Fenced("stale".to_owned()));
    let order: Vec<_> = second.said.lock().unwrap().iter().map(|(_, what)| *what).collect();
    assert_eq!(order, ["acquire", "watch", "raise", "release", "lapse"], "nothing is left held");
}

/// A raise that is not answered, or too late, is asked again on its own; the lease is renewed meanwhile.
#[tokio::test(start_paused = true)]
async fn a_raise_that_is_lost_or_late_is_asked_again() {
    for does in [&[Never][..], &[Yes(3_500)], &[Error(1_000), Never]] {
        let script = script(&[], &[], &[]);
        let held = runner(&script)
            .resource(fence(does, &script))
            .hold(CancellationToken::new(), |lease| work(lease, 1_000))
            .await
            .unwrap();
        assert_eq!((held.cancelled, held.released), (None, true), "{does:?}");
        assert_eq!(script.times("raise").len(), does.len() + 1, "{does:?}");
        assert!(!script.times("renew").is_empty(), "{does:?}: {:?}", script.times("renew"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_is_never_raised_ends_it_within_a_ttl_of_the_grant_or_with_the_callers_patience() {
    for (does, patience, until) in [
        (Never, None, 9_050),
        (Error(20), None, 9_050),
        (Error(20), Some(Duration::from_secs(1)), 9_050),
        (Error(20), Some(Duration::from_secs(20)), 20_000),
    ] {
        // Held by another at first: the TTL counts from the grant.
        let script = script(&[Yes(50)], &[], &[]);
        let mut runner = runner(&script).resource(fence(&vec![does; 10_000], &script));
        if let Some(patience) = patience {
            runner = runner.patience(patience);
        }
        let outcome = none(runner.hold(CancellationToken::new(), no_work).await);
        let NotHeld::NotRaised(why) = outcome else { panic!("{does:?}: {outcome:?}") };
        let said = if matches!(does, Never) { "no answer in time" } else { "no answer: no answer: the line broke" };
        assert_eq!(why, said, "the last reason");
        assert_eq!(script.times("release"), [until], "{does:?}: nothing is left held");
        assert!(script.times("renew").len() >= 2, "and until then it was renewed: {:?}", script.times("renew"));
        let raised = script.times("raise");
        sleep(Std::from_mins(1)).await;
        assert_eq!(script.times("raise"), raised, "nobody goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_an_order_protects_nothing_unless_that_is_said() {
    let unordered = || Arc::new(Script { is_for_efficiency: true, ..Script::default() });
    let script = unordered();
    let outcome = none(runner(&script).resource(fence(&[], &script)).hold(CancellationToken::new(), no_work).await);
    assert_eq!((outcome, script.said.lock().unwrap().len()), (NotHeld::NoOrder, 0), "nobody was even asked");

    let script = unordered();
    let held = runner(&script).hold(CancellationToken::new(), |lease| work(lease, 10)).await.unwrap();
    assert!(held.released, "it may save work");

    let script = unordered();
    let runner = runner(&script).resource(fence(&[], &script)).for_efficiency();
    assert!(runner.hold(CancellationToken::new(), |lease| work(lease, 10)).await.unwrap().released);
    assert_eq!(script.times("raise").len(), 1);
}

/// Of a gate that is slow to raise its fence the worker knows nothing: its first limit begins with its work.
#[tokio::test(start_paused = true)]
async fn progress_counts_from_when_the_work_begins() {
    let slow = script(&[], &[], &[]);
    let held = runner(&slow)
        .resource(fence(&[Error(2_000), Error(2_000), Yes(2_000)], &slow))
        .progress_within(Duration::from_secs(5))
        .hold(CancellationToken::new(), |lease| async move {
            work(lease.clone(), 4_900).await;
            lease.progress();
            work(lease, 6_000).await
        })
        .await
        .unwrap();
    assert_eq!(held.cancelled, Some(Cause::NoProgress));
    let began = slow.times("raise")[2] + 2_000;
    assert_eq!(held.output.as_micros() / 1_000, began + 4_900 + 5_000);
}
