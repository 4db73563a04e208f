//! Faults on every call: what is late, or comes twice, and what the service tells of its own accord.

use super::*;

fn reported(reports: &mut mpsc::UnboundedReceiver<Report>, is: impl Fn(&Report) -> bool) -> usize {
    std::iter::from_fn(|| reports.try_recv().ok()).filter(is).count()
}

#[tokio::test(start_paused = true)]
async fn no_work_begins_under_a_grant_that_comes_after_its_own_deadline() {
    // The others say, as they would, that it is held: by the very grant that is still under way.
    let late = script(&[Yes(9_500), No(5), No(5), No(5), No(5), No(5), No(5), No(5), No(5), No(5), No(5)], &[], &[]);
    let mut begun = 0;
    let held = runner(&late).hold(CancellationToken::new(), |lease| {
        begun = lease.deadline().instant().as_micros() / 1_000;
        work(lease, 100)
    });
    let held = held.await.unwrap();
    assert!(held.released && held.cancelled.is_none());
    let asked = late.times("acquire");
    assert!(
        asked.iter().any(|asked| asked + 8_990 == begun),
        "its window is that of its own request: {begun} {asked:?}"
    );
    assert_ne!(begun, asked[0] + 8_990, "and not of the one that took longer than that");
}

#[tokio::test(start_paused = true)]
async fn two_grants_are_one_lease() {
    // The first is overdue, so that it is asked again; then the second is answered, and the first all the same.
    let twice = script(&[Yes(5_000), Yes(100)], &[], &[]);
    let (to, mut reports) = mpsc::unbounded_channel();
    let held = runner(&twice).reports(to).hold(CancellationToken::new(), |lease| work(lease, 20_000)).await.unwrap();
    assert_eq!((held.cancelled, held.released, held.stamp.token.get()), (None, true, 1));
    assert_eq!((twice.times("acquire").len(), *twice.tokens.lock().unwrap()), (2, 2), "both were answered");
    assert_eq!(reported(&mut reports, |report| matches!(report, Report::Granted(..))), 1);
    let releases = twice.times("release");
    assert_eq!((releases.len(), releases[0]), (2, 5_000), "what came last is given back at once: {releases:?}");
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_the_holder_knows_no_more_is_given_back_at_once() {
    // Until then the service says that it is held: by this very grant, whose request four later ones have displaced.
    let late = script(&[&[Yes(4_500)][..], &[No(5); 20]].concat(), &[], &[]);
    let (to, mut reports) = mpsc::unbounded_channel();
    let runner = runner_of(&late, 10).reports(to);
    let held = runner.hold(CancellationToken::new(), |lease| work(lease, 100)).await.unwrap();
    let before = late.times("acquire").iter().filter(|at| **at < 4_500).count();
    assert!(before > 4, "{:?}", late.times("acquire"));
    assert_eq!((held.cancelled, held.released, held.stamp.token.get()), (None, true, 2));
    assert_eq!((late.times("release").len(), late.times("release")[0]), (2, 4_500), "{:?}", late.times("release"));
    assert_eq!(reported(&mut reports, |report| matches!(report, Report::Released)), 1, "its own alone");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_late_or_is_done_twice_is_one_release() {
    // Longer than a heartbeat: asked again; the second finds nothing, which is as good.
    for (does, times) in
        [(&[Yes(4_000), Yes(0)][..], 2), (&[Never, Yes(50)], 2), (&[Error(2_000), Error(0), Yes(1)], 3)]
    {
        let slow = script(&[], &[], does);
        let (to, mut reports) = mpsc::unbounded_channel();
        let held = runner(&slow).reports(to).hold(CancellationToken::new(), |lease| work(lease, 100)).await.unwrap();
        assert!(held.released && held.cancelled.is_none());
        assert_eq!(slow.times("release").len(), times, "{does:?}: {:?}", slow.times("release"));
        assert!(slow.times("renew").is_empty(), "nothing is renewed after the work");
        assert_eq!(reported(&mut reports, |report| matches!(report, Report::Released)), 1);
        sleep(Std::from_mins(1)).await;
        assert_eq!(slow.times("release").len(), times, "nobody goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_service_tells_is_heard_before_the_schedule_would_ask() {
    let taken = script(&[], &[], &[]);
    taken.changes.lock().unwrap().push_back(Yes(1_000));
    let held = runner(&taken).hold(CancellationToken::new(), |lease| work(lease, 600_000)).await.unwrap();
    assert_eq!((held.cancelled, held.released), (Some(Cause::Revoked), false));
    assert_eq!(held.output.as_micros(), 1_000_000);
    assert!(taken.times("renew").is_empty() && taken.times("release").is_empty(), "there is nothing to give back");

    // The first watch is for the lock's end, by one who waits; the second for the lease that follows.
    let free = script(&[No(0)], &[], &[]);
    free.changes.lock().unwrap().push_back(Yes(5));
    let held = runner(&free).hold(CancellationToken::new(), |lease| work(lease, 10_000)).await.unwrap();
    assert!(held.released && held.cancelled.is_none());
    assert_eq!(free.times("acquire"), [0, 5], "at once");
}

/// It says nothing of the lock, so nothing is lost by it; and it is begun again once a heartbeat.
#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_changes_nothing_and_is_tried_again() {
    let failing =
        |script: &Script, last: Does| script.changes.lock().unwrap().extend([Error(1), Unfit(0), Error(1), last]);
    // Of the lease: renewed on schedule, and lost once the watch has something to say.
    let taken = script(&[], &[], &[]);
    failing(&taken, Yes(5));
    let held = runner(&taken).hold(CancellationToken::new(), |lease| work(lease, 600_000)).await.unwrap();
    assert_eq!((held.cancelled, held.released), (Some(Cause::Revoked), false));
    assert_eq!(taken.times("watch"), [0, 2_901, 5_801, 8_702], "{:?}", taken.said.lock().unwrap());
    assert_eq!((taken.times("acquire"), taken.times("renew")), (vec![0], vec![2_900, 5_800, 8_700]));

    // Of the lock, by one who waits: he asks neither sooner nor later for it, and each answer begins a watch anew.
    let free = script(&[No(0)], &[], &[]);
    failing(&free, Never);
    let held = runner(&free).hold(CancellationToken::new(), |lease| work(lease, 100)).await.unwrap();
    assert!(held.released && held.cancelled.is_none());
    let asked = free.times("acquire");
    assert!(asked.len() == 2 && (1_450..=2_900).contains(&asked[1]), "{asked:?}");
    assert_eq!(free.times("watch"), asked, "and no more of them");

    // The end is heard of once the watch can tell, long before he would ask.
    let free = script(&[No(0)], &[], &[]);
    failing(&free, Yes(5));
    let plan = Plan::for_ttl(Duration::from_secs(9)).drift(Drift::from_ppm(1_000)).poll(Duration::from_secs(300));
    let plan = plan.round_trip(Duration::from_millis(100));
    let clock = Paused(TokioInstant::now());
    let waits = Runner::with_clock(free.clone(), plan, HolderId::new("a#1").unwrap(), clock).unwrap();
    let held = waits.hold(CancellationToken::new(), |lease| work(lease, 100)).await.unwrap();
    assert!(held.released && held.cancelled.is_none());
    assert_eq!(free.times("acquire"), [0, 8_707], "{:?}", free.said.lock().unwrap());
}

/// A service whose client keeps the lease by itself is told when nobody wants it any more, and never while it is to release.
#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_is_left_to_lapse() {
    let ended = script(&[], &[], &[]);
    runner(&ended).hold(CancellationToken::new(), |lease| work(lease, 100)).await.unwrap();
    assert!(ended.times("lapse") >= ended.times("release"), "{:?}", ended.said.lock().unwrap());

    // Work that never ends, and reports nothing: its window ends, and so does the client.
    let hangs = script(&[], &[], &[]);
    let runner_ = runner(&hangs).progress_within(Duration::from_secs(5));
    let hung = tokio::spawn(runner_.hold(CancellationToken::new(), |_| std::future::pending::<()>()));
    sleep(Std::from_secs(20)).await;
    let (renewed, lapsed) = (hangs.times("renew"), hangs.times("lapse"));
    assert_eq!(lapsed, [renewed.last().unwrap() + 8_991], "at the end of its window");
    assert!(hangs.times("release").is_empty() && !hung.is_finished());

    // Its future is dropped in the middle of it.
    let dropped = script(&[], &[], &[]);
    let held = tokio::spawn(runner(&dropped).hold(CancellationToken::new(), |_| std::future::pending::<()>()));
    sleep(Std::from_secs(4)).await;
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    assert_eq!((dropped.times("lapse"), dropped.times("release").len()), (vec![4_000], 0));
    let renewed = dropped.times("renew");
    sleep(Std::from_mins(1)).await;
    assert_eq!(dropped.times("renew"), renewed, "nobody renews any more");
}

/// Given up in the middle of it: what is in hand is finished, nothing new begins, nothing is renewed, and others get their turn.
#[tokio::test(start_paused = true)]
async fn a_lease_is_handed_over_when_the_work_in_hand_is_done() {
    let script = script(&[], &[], &[]);
    let held = runner(&script).hold(CancellationToken::new(), |lease| async move {
        sleep(Std::from_secs(4)).await;
        assert!(lease.may_act(Duration::from_secs(1)).is_ok());
        lease.hand_over();
        assert_eq!(lease.may_act(Duration::ZERO), Err(fencegate::Denied::Ending));
        sleep(Std::from_secs(5)).await;
        assert!(!lease.cancelled().is_cancelled(), "it asks for nothing but an end");
    });
    let held = held.await.unwrap();
    assert_eq!((held.cancelled, held.released), (None, true));
    assert_eq!((script.times("renew"), script.times("release")), (vec![2_900], vec![9_000]));

    // One that takes it for leave to go on for ever is cancelled where the window ends.
    let script = super::script(&[], &[], &[]);
    let held = runner(&script).hold(CancellationToken::new(), |lease| {
        lease.hand_over();
        work(lease, 600_000)
    });
    let held = held.await.unwrap();
    assert_eq!((held.cancelled, held.output.as_micros() / 1_000), (Some(Cause::Expired), 8_991));
}

/// Whoever gives up while answers are still out waits for them, but not for ever, and gives back what they bring.
#[tokio::test(start_paused = true)]
async fn what_is_granted_once_nobody_wants_it_is_given_back() {
    let work = |_: Lease<Paused>| async { panic!("nothing begins") };
    // The first is overdue after 1.45 s, and asked for again; that ends it at once; at 4 s the first is granted.
    let late = script(&[Yes(4_000), Unfit(0)], &[], &[Yes(300)]);
    let outcome: Result<Held<()>, _> = runner(&late).hold(CancellationToken::new(), work).await;
    assert_eq!(outcome.map(drop).unwrap_err(), NotHeld::Unfit("wrong password".to_owned()));
    assert_eq!(
        (late.times("release"), late.times("lapse")),
        (vec![4_000], vec![4_300]),
        "{:?}",
        late.said.lock().unwrap()
    );

    // Work that is over waits no longer either, though an earlier acquire is still out; and what that brings is given back.
    let lost = script(&[Never, Yes(0)], &[], &[]);
    let held = runner(&lost).hold(CancellationToken::new(), |lease| self::work(lease, 10)).await.unwrap();
    assert!(held.released);
    let [began, ended] = [lost.times("acquire")[1], lost.times("lapse")[0]];
    assert_eq!(ended, began + 10 + 2_900, "{:?}", lost.said.lock().unwrap());
    let late = script(&[Yes(3_000), Yes(0)], &[], &[]);
    let held = runner(&late).hold(CancellationToken::new(), |lease| self::work(lease, 10)).await.unwrap();
    assert!(held.released && late.times("release").len() == 2, "{:?}", late.said.lock().unwrap());

    // One that never comes holds up nobody: a heartbeat, or five seconds of a TTL of ten minutes.
    for (ttl, ends) in [(9, 2_900), (600, 5_000)] {
        let silent = script(&[Never; 64], &[], &[]);
        let plan = Plan::for_ttl(Duration::from_secs(ttl)).drift(Drift::from_ppm(1_000));
        let plan = plan.round_trip(Duration::from_millis(100));
        let clock = Paused(TokioInstant::now());
        let runner = Runner::with_clock(silent.clone(), plan, HolderId::new("a#1").unwrap(), clock).unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let outcome: Result<Held<()>, _> = runner.hold(stop, work).await;
        assert_eq!((outcome.map(drop).unwrap_err(), silent.times("lapse")), (NotHeld::Stopped, vec![ends]), "{ttl} s");
    }
}

/// Who waits for no longer than an answer takes still hears it.
#[tokio::test(start_paused = true)]
async fn no_patience_with_another_is_patience_with_an_answer() {
    for patience in [0, 1, 1_000] {
        let slow = script(&[Yes(50)], &[], &[]);
        let held = runner(&slow).patience(Duration::from_micros(patience));
        assert!(held.hold(CancellationToken::new(), |lease| work(lease, 10)).await.unwrap().released, "{patience}");
        let taken = script(&[No(50)], &[], &[]);
        let held = runner(&taken).patience(Duration::from_micros(patience));
        let outcome = held.hold(CancellationToken::new(), |lease| work(lease, 10)).await;
        assert_eq!(
            (outcome.map(drop).unwrap_err(), taken.times("lapse")),
            (NotHeld::HeldByAnother, vec![50]),
            "{patience}"
        );
    }
    let silent = script(&[Never; 64], &[], &[]);
    let held =
        runner(&silent).patience(Duration::from_micros(1)).hold(CancellationToken::new(), |lease| work(lease, 10));
    let outcome = held.await.map(drop).unwrap_err();
    assert!(matches!(outcome, NotHeld::NoAnswer(_)), "{outcome:?}");
}
