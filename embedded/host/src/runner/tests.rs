//! The runner against a coordinator that does as a script says, in tokio's paused time.

mod faults;
mod fences;
mod fleet;
mod jumps;

use super::*;
use crate::coordinator::{Acquired, Call, Grant, Renewed};
use fencegate::{Drift, Plan, Token};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration as Std;
use tokio::sync::mpsc;
use tokio::time::{Instant as TokioInstant, sleep};

/// Tokio's paused time, which jumps to the next timer when all is quiet.
#[derive(Clone, Copy)]
struct Paused(TokioInstant);

impl Clock for Paused {
    fn now(&self) -> Instant {
        Instant::from_micros(Duration::ceil_from(self.0.elapsed()).unwrap().as_micros())
    }

    async fn until(&self, at: Instant) {
        tokio::time::sleep_until(self.0 + Std::from_micros(at.as_micros())).await;
    }
}

/// What becomes of one call.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Answers after this many milliseconds.
    Yes(u64),
    /// Answers no after as many.
    No(u64),
    /// Fails after as many.
    Error(u64),
    /// Says after as many that no other try would do better.
    Unfit(u64),
    Never,
}
use Does::{Error, Never, No, Unfit, Yes};

/// A service that does as it is told, in order, and then answers at once; it notes each call with its time.
#[derive(Default)]
struct Script {
    acquires: Mutex<VecDeque<Does>>,
    renewals: Mutex<VecDeque<Does>>,
    releases: Mutex<VecDeque<Does>>,
    /// What each watch does: says that the lock has changed hands, or fails. Once through, nothing more changes.
    changes: Mutex<VecDeque<Does>>,
    tokens: Mutex<u64>,
    said: Mutex<Vec<(u64, &'static str)>>,
    begun: Mutex<Option<TokioInstant>>,
    is_for_efficiency: bool,
}

impl Script {
    fn note(&self, what: &'static str) {
        let begun = *self.begun.lock().unwrap().get_or_insert_with(TokioInstant::now);
        self.said.lock().unwrap().push((u64::try_from(begun.elapsed().as_millis()).unwrap(), what));
    }

    fn times(&self, what: &str) -> Vec<u64> {
        self.said.lock().unwrap().iter().filter(|(_, said)| *said == what).map(|(at, _)| *at).collect()
    }

    async fn does(&self, what: &'static str, script: &Mutex<VecDeque<Does>>) -> Result<bool, CoordinatorError> {
        self.note(what);
        let does = script.lock().unwrap().pop_front().unwrap_or(Yes(0));
        match does {
            Yes(ms) | No(ms) | Error(ms) | Unfit(ms) => sleep(Std::from_millis(ms)).await,
            Never => std::future::pending().await,
        }
        match does {
            Yes(_) => Ok(true),
            No(_) => Ok(false),
            Unfit(_) => Err(CoordinatorError::Unfit("wrong password".to_owned())),
            _ => Err(CoordinatorError::NoAnswer("the line broke".to_owned())),
        }
    }
}

impl Coordinator for Script {
    fn acquire(&self, _: Duration) -> Call<'_, Acquired> {
        Box::pin(async {
            if !self.does("acquire", &self.acquires).await? {
                return Ok(Acquired::Held { wait: None, by: None });
            }
            let mut tokens = self.tokens.lock().unwrap();
            *tokens += 1;
            Ok(Acquired::Granted(Grant { token: Token::new(*tokens).unwrap(), epoch: Epoch(0), ttl: None }))
        })
    }

    fn renew(&self, _: Stamp, _: Duration) -> Call<'_, Renewed> {
        Box::pin(async {
            let renewed = self.does("renew", &self.renewals).await?;
            Ok(if renewed { Renewed::Renewed { ttl: None } } else { Renewed::Gone })
        })
    }

    fn release(&self, _: Stamp) -> Call<'_, ()> {
        Box::pin(async { self.does("release", &self.releases).await.map(drop) })
    }

    fn changed(&self, _: Option<Stamp>) -> Call<'_, ()> {
        if self.changes.lock().unwrap().is_empty() {
            self.changes.lock().unwrap().push_back(Never);
        }
        Box::pin(async { self.does("watch", &self.changes).await.map(drop) })
    }

    fn keeps_order(&self) -> bool {
        !self.is_for_efficiency
    }

    fn let_lapse(&self) {
        self.note("lapse");
    }
}

/// T = 9 s, c = 3 s, h = c less the round trip of 100 ms, window 9 s less 9 ms and 1 µs.
fn runner(script: &Arc<Script>) -> Runner<Paused> {
    runner_of(script, 3)
}

/// The same with so many heartbeats per TTL.
fn runner_of(script: &Arc<Script>, attempts: u64) -> Runner<Paused> {
    runner_by(script, attempts, Paused(TokioInstant::now()))
}

fn runner_by<K: Clock>(script: &Arc<Script>, attempts: u64, clock: K) -> Runner<K> {
    let plan = Plan::for_ttl(Duration::from_secs(9)).drift(Drift::from_ppm(1_000)).attempts(attempts);
    let plan = plan.round_trip(Duration::from_millis(100));
    let id = HolderId::new("a#1").unwrap();
    Runner::with_clock(script.clone(), plan, id, clock).unwrap()
}

fn script(acquires: &[Does], renewals: &[Does], releases: &[Does]) -> Arc<Script> {
    let queue = |does: &[Does]| Mutex::new(does.iter().copied().collect());
    let (acquires, renewals, releases) = (queue(acquires), queue(renewals), queue(releases));
    Arc::new(Script { acquires, renewals, releases, ..Script::default() })
}

/// Works for as long, unless it is cancelled; when it ended.
async fn work(lease: Lease<Paused>, ms: u64) -> Instant {
    tokio::select! {
        () = lease.cancelled().cancelled() => {}
        () = sleep(Std::from_millis(ms)) => {}
    }
    lease.shared.clock.now()
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_acquired_renewed_on_schedule_and_released_once() {
    let script = script(&[Yes(50)], &[], &[]);
    let held = runner(&script).hold(CancellationToken::new(), |lease| work(lease, 20_000)).await.unwrap();
    assert_eq!((held.cancelled, held.released, held.stamp.token.get()), (None, true, 1));
    assert_eq!(script.times("acquire"), [0]);
    let renewals = script.times("renew");
    assert_eq!(renewals.len(), 6, "{renewals:?}");
    assert!(renewals.windows(2).all(|pair| pair[1] - pair[0] <= 3_000), "{renewals:?}");
    let released = script.times("release");
    assert_eq!(released, [20_050]);
    sleep(Std::from_mins(1)).await;
    assert_eq!(script.times("renew"), renewals, "nothing is renewed after a release");
}

#[tokio::test(start_paused = true)]
async fn the_schedule_outlives_errors_and_a_late_answer_counts_from_its_own_sending() {
    let script = script(&[], &[Error(10), Error(10), Yes(2_000), Never, Never, Never, Never], &[]);
    let (to, mut reports) = mpsc::unbounded_channel();
    // Work that does not listen, so that the lease is renewed on and on.
    let work = |_: Lease<Paused>| sleep(Std::from_millis(9_500));
    let held = runner(&script).reports(to).hold(CancellationToken::new(), work).await.unwrap();
    assert_eq!(held.cancelled, Some(Cause::Unanswered), "c had passed since the grant");
    let mut ends = Vec::new();
    while let Ok(report) = reports.try_recv() {
        if let Report::Granted(_, end) | Report::Renewed(end) = report {
            ends.push(end.instant().as_micros() / 1_000);
        }
    }
    // The third was sent soon after the second; overdue, it was asked again, and yet it was the one that counted.
    let window = 8_990;
    let sent = script.times("renew");
    assert_eq!(ends, [window, sent[2] + window], "{sent:?}");
    assert!(sent[1] - sent[0] < 500 && sent[2] - sent[1] < 1_000 && sent[3] - sent[2] <= 2_900, "{sent:?}");
}

/// What is overdue is asked again, and then both are answered, the older one last.
#[tokio::test(start_paused = true)]
async fn two_answers_to_one_question_move_the_window_once_and_never_back() {
    let script = script(&[], &[Yes(1_500), Yes(10)], &[]);
    let (to, mut reports) = mpsc::unbounded_channel();
    let held = runner_of(&script, 10).reports(to).hold(CancellationToken::new(), |lease| async move {
        let mut ends = vec![lease.deadline()];
        for _ in 0..60 {
            sleep(Std::from_millis(100)).await;
            ends.push(lease.deadline());
        }
        ends
    });
    let held = held.await.unwrap();
    assert_eq!((held.cancelled, held.released), (None, true));
    assert!(held.output.is_sorted(), "{:?}", held.output);
    let sent = script.times("renew");
    assert!(sent[1] < sent[0] + 1_500, "both were under way at once: {sent:?}");
    let mut ends = Vec::new();
    while let Ok(report) = reports.try_recv() {
        if let Report::Renewed(end) = report {
            ends.push(end.instant().as_micros() / 1_000);
        }
    }
    assert_eq!(ends[0], sent[1] + 8_990, "it counts from when it was itself sent: {ends:?} {sent:?}");
    assert!(ends.iter().all(|end| *end > sent[0] + 8_990), "the older one, heard last, says nothing new: {ends:?}");
    assert_eq!(script.times("release").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_falls_silent_loses_the_work_before_the_window_ends() {
    let script = script(&[], &[Never; 64], &[Never; 64]);
    let began = Paused(TokioInstant::now());
    let held = runner(&script)
        .hold(CancellationToken::new(), |lease| async move {
            let ended = work(lease.clone(), 600_000).await;
            assert!(!lease.deadline().is_over(ended), "asked to stop while there is time to");
            assert!(lease.may_act(Duration::ZERO).is_err(), "and nothing new begins");
            ended
        })
        .await
        .unwrap();
    assert_eq!((held.cancelled, held.released), (Some(Cause::Unanswered), false));
    assert!(held.output.as_micros() <= 3_010_000, "{:?}", held.output);
    assert!(began.now().as_micros() < 30_000_000, "a release that nobody answers is given up");
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_deadline_revives_nothing() {
    // Each answer takes longer than the window, and work does not stop when it is asked to.
    let script = script(&[], &[Yes(9_500); 64], &[]);
    let held = runner(&script)
        .hold(CancellationToken::new(), |lease| async move {
            let end = lease.deadline();
            sleep(Std::from_secs(30)).await;
            (end, lease.deadline())
        })
        .await
        .unwrap();
    assert_eq!(held.output.0, held.output.1, "the window has not moved");
    assert_eq!(held.cancelled, Some(Cause::Unanswered));
    assert_eq!(script.times("acquire"), [0], "and no other lease was asked for under the old work");
}

#[tokio::test(start_paused = true)]
async fn a_refused_renewal_and_a_stop_cancel_at_once() {
    let refused = script(&[], &[No(10)], &[]);
    let held = runner(&refused).hold(CancellationToken::new(), |lease| work(lease, 60_000)).await.unwrap();
    assert_eq!(held.cancelled, Some(Cause::Refused));
    assert!(refused.times("release").is_empty(), "there is nothing to give back");

    let stopped = script(&[], &[], &[]);
    let stop = CancellationToken::new();
    let trips = stop.clone();
    tokio::spawn(async move {
        sleep(Std::from_secs(4)).await;
        trips.cancel();
    });
    let held = runner(&stopped)
        .hold(stop, |lease| async move {
            lease.cancelled().cancelled().await;
            sleep(Std::from_millis(500)).await; // winds down
        })
        .await
        .unwrap();
    assert_eq!((held.cancelled, held.released), (Some(Cause::Stopped), true));
    assert_eq!((stopped.times("renew"), stopped.times("release")), (vec![2_900], vec![4_500]), "after the work");
}

#[tokio::test(start_paused = true)]
async fn a_connection_lost_during_release_is_tried_again_and_nothing_is_renewed() {
    let script = script(&[], &[], &[Error(10), Never, Yes(10)]);
    let held = runner(&script).hold(CancellationToken::new(), |lease| work(lease, 1_000)).await.unwrap();
    assert!(held.released && held.cancelled.is_none());
    assert_eq!(script.times("release").len(), 3, "{:?}", script.times("release"));
    assert!(script.times("renew").is_empty(), "not even at its time");
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_begins() {
    let never = |script: &Arc<Script>| runner(script).patience(Duration::from_secs(1));
    let none = |outcome: Result<Held<()>, NotHeld>| outcome.map(drop).unwrap_err();
    let work = |_: Lease<Paused>| async { panic!("there is no lease") };

    let held = script(&[No(10); 64], &[], &[]);
    assert_eq!(none(never(&held).hold(CancellationToken::new(), work).await), NotHeld::HeldByAnother);
    let silent = script(&[Never; 64], &[], &[]);
    let outcome = none(runner(&silent).hold(CancellationToken::new(), work).await);
    assert!(matches!(outcome, NotHeld::NoAnswer(_)), "{outcome:?}");
    let wrong = script(&[Unfit(0)], &[], &[]);
    let outcome = none(runner(&wrong).hold(CancellationToken::new(), work).await);
    assert_eq!((outcome, wrong.times("acquire").len()), (NotHeld::Unfit("wrong password".to_owned()), 1));
    // A TTL has passed meanwhile, or is passing just then: it says more than that nothing was heard.
    for ms in [9_000, 9_050] {
        let late = script(&[&[Unfit(ms)], &[Never; 64][..]].concat(), &[], &[]);
        let outcome = none(runner(&late).hold(CancellationToken::new(), work).await);
        assert_eq!(outcome, NotHeld::Unfit("wrong password".to_owned()), "after {ms} ms");
    }
    // Asked to stop with an acquire under way: what it brings is given back.
    let slow = script(&[Yes(2_000)], &[], &[]);
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(none(runner(&slow).hold(stop, work).await), NotHeld::Stopped);
    assert_eq!(slow.times("acquire").len(), slow.times("release").len(), "{:?}", slow.said.lock().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_held_elsewhere_is_waited_for() {
    let script = script(&[No(10), Error(10), No(10)], &[], &[]);
    let held = runner(&script).hold(CancellationToken::new(), |lease| work(lease, 100)).await.unwrap();
    assert!(held.released && script.times("acquire").len() == 4, "{:?}", script.times("acquire"));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_hangs_and_one_that_holds_too_long_lose_the_lease() {
    let hangs = script(&[], &[], &[]);
    let held = runner(&hangs)
        .progress_within(Duration::from_secs(5))
        .hold(CancellationToken::new(), |lease| async move {
            for _ in 0..3 {
                sleep(Std::from_secs(4)).await;
                lease.progress();
            }
            work(lease, 600_000).await
        })
        .await
        .unwrap();
    assert_eq!(held.cancelled, Some(Cause::NoProgress));
    assert_eq!(held.output.as_micros(), 17_000_000, "its renewals went on until then: {:?}", hangs.times("renew"));

    let long = script(&[], &[], &[]);
    let held = runner(&long)
        .longest_hold(Duration::from_secs(30))
        .hold(CancellationToken::new(), |lease| work(lease, 600_000))
        .await
        .unwrap();
    assert_eq!((held.cancelled, held.output.as_micros(), held.released), (Some(Cause::HeldLongest), 30_000_000, true));
}

#[tokio::test(start_paused = true)]
async fn an_epoch_that_was_given_is_bound_and_may_not_be_below_the_one_that_is_kept() {
    let script = script(&[], &[], &[]);
    let held = runner(&script).epoch(Epoch(3)).hold(CancellationToken::new(), |lease| async move { lease.stamp() });
    assert_eq!(held.await.unwrap().output.epoch, Epoch(3));
}
