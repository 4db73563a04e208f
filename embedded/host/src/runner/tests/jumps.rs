//! Time that passes at once: a process that was stopped, and a machine that slept. Whoever goes on after that looks at a token
//! that has tripped.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

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

/// A clock that goes on at each reading. Between what the runner reads and what it does with it, another thread looks too.
#[derive(Clone)]
struct Raced {
    paused: Paused,
    readings: Arc<AtomicU64>,
    runner: ThreadId,
    other: Arc<Mutex<Option<Lease<Raced>>>>,
}

impl Clock for Raced {
    fn now(&self) -> Instant {
        let now = self.paused.now().as_micros() + self.readings.fetch_add(1, Ordering::SeqCst);
        let lease = self.other.lock().unwrap().clone();
        if let Some(lease) = lease.filter(|_| thread::current().id() == self.runner) {
            let (to, looked) = std::sync::mpsc::channel();
            let time = tokio::runtime::Handle::current();
            thread::spawn(move || {
                let _paused = time.enter();
                let _ = lease.cancelled();
                let _ = to.send(());
            });
            let _ = looked.recv_timeout(Std::from_millis(10)); // in vain where it has to wait for the holder
        }
        Instant::from_micros(now)
    }

    async fn until(&self, at: Instant) {
        self.paused.until(at).await;
    }
}

/// An instant that was read before the holder was locked would be older than the last one that it was told.
#[tokio::test(start_paused = true)]
async fn another_thread_that_looks_at_the_clock_makes_none_run_backwards() {
    let script = script(&[], &[Yes(1_500), Yes(10), Error(10)], &[Error(10)]);
    let other = Arc::default();
    let paused = Paused(TokioInstant::now());
    let clock = Raced { paused, readings: Arc::default(), runner: thread::current().id(), other: Arc::clone(&other) };
    let held = runner_by(&script, 10, clock).hold(CancellationToken::new(), |lease| async {
        *other.lock().unwrap() = Some(lease);
        sleep(Std::from_secs(10)).await;
    });
    let held = held.await.unwrap();
    *other.lock().unwrap() = None;
    assert_eq!((held.cancelled, held.released), (None, true));
}
