//! Time that passes at once: a process that was stopped, and a machine that slept. Whoever goes on after that looks at a token
//! that has tripped.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that goes on while the machine sleeps, which tokio's does not.
#[derive(Clone)]
struct Sleeps(Paused, Arc<AtomicU64>);

impl Clock for Sleeps {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.now().as_micros() + self.1.load(Ordering::Relaxed))
    }

    async fn until(&self, at: Instant) {
        const GLANCE: Duration = Duration::from_millis(250);
        while self.now() < at {
            let left = at.since(self.now()).unwrap();
            sleep(left.min(GLANCE).into()).await;
        }
    }
}

/// Stopped and let go on, as by SIGSTOP and SIGCONT: the timers of the work are due, and so are the holder's.
#[tokio::test(start_paused = true)]
async fn work_that_goes_on_after_a_stop_finds_its_token_tripped() {
    for (ms, cause) in [(3_500, Cause::Unanswered), (20_000, Cause::Expired)] {
        let script = script(&[], &[], &[]);
        let clock = Paused(TokioInstant::now());
        tokio::spawn(async move {
            sleep(Std::from_millis(500)).await;
            tokio::time::advance(Std::from_millis(ms)).await;
        });
        let held = runner_by(&script, 3, clock).hold(CancellationToken::new(), |lease| async move {
            let kept = lease.cancelled().clone();
            sleep(Std::from_secs(1)).await;
            (kept.is_cancelled(), lease.cancelled().is_cancelled(), lease.may_act(Duration::ZERO).is_ok())
        });
        let held = held.await.unwrap();
        assert_eq!(held.output, (true, true, false), "{cause}");
        assert_eq!(held.cancelled, Some(cause));
    }
}

/// The machine slept: no timer is due, but the clock has gone on.
#[tokio::test(start_paused = true)]
async fn work_that_goes_on_after_a_sleep_finds_its_token_tripped() {
    for (ms, cause) in [(3_500, Cause::Unanswered), (20_000, Cause::Expired)] {
        let script = script(&[], &[], &[]);
        let slept = Arc::new(AtomicU64::new(0));
        let clock = Sleeps(Paused(TokioInstant::now()), slept.clone());
        let held = runner_by(&script, 3, clock).hold(CancellationToken::new(), |lease| async move {
            let kept = lease.cancelled().clone();
            sleep(Std::from_millis(600)).await;
            slept.store(ms * 1_000, Ordering::Relaxed);
            sleep(Std::from_millis(1)).await; // sooner than anybody's glance at the clock
            (kept.is_cancelled(), lease.may_act(Duration::ZERO).is_ok())
        });
        let held = held.await.unwrap();
        assert_eq!(held.output, (true, false), "{cause}");
        assert_eq!(held.cancelled, Some(cause));
    }
}

/// Within one step of the work nobody gets to trip anything: to ask for the token is to look at the clock.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_asked_for_anew_has_tripped_by_then() {
    let script = script(&[], &[], &[]);
    let slept = Arc::new(AtomicU64::new(0));
    let clock = Sleeps(Paused(TokioInstant::now()), slept.clone());
    let held = runner_by(&script, 3, clock).hold(CancellationToken::new(), |lease| {
        assert!(!lease.cancelled().is_cancelled());
        slept.store(2_000_000, Ordering::Relaxed);
        assert!(!lease.cancelled().is_cancelled(), "that was no third of the TTL");
        slept.store(20_000_000, Ordering::Relaxed);
        assert!(lease.cancelled().is_cancelled());
        slept.store(30_000_000, Ordering::Relaxed);
        std::future::ready(())
    });
    let held = held.await.unwrap();
    assert_eq!(held.cancelled, Some(Cause::Expired));
}
