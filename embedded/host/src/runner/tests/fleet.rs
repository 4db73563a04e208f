//! A hundred workers and more jobs than workers, of 30 s to 15 min each, under leases of 60 s.

use super::{Call, Clock, CoordinatorError, HolderId, Lease, NotHeld, Paused, Runner, Std, TokioInstant, sleep};
use crate::coordinator::{Acquired, Coordinator, Grant, Renewed};
use fencegate::{Drift, Duration, Epoch, Plan, Stamp, Token};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const WORKERS: u32 = 100;
const JOBS: u32 = 250;
const TTL: Duration = Duration::from_secs(60);

/// A linear congruence (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What the lock service and the world know.
struct World {
    random: Random,
    tokens: u64,
    leases: BTreeMap<u32, (Stamp, TokioInstant)>,
    /// Under which token each job is being done, and how often it has been.
    running: BTreeMap<u32, u64>,
    done: BTreeMap<u32, u32>,
    renewals: u64,
}

/// One job's lock, for one worker. Each way takes up to 40 ms.
struct Lock(Arc<Mutex<World>>, u32, HolderId);

impl Lock {
    async fn on_the_way(&self) {
        let ms = self.0.lock().unwrap().random.below(40);
        sleep(Std::from_millis(ms)).await;
    }

    fn holds(&self, world: &World, stamp: Stamp) -> bool {
        world.leases.get(&self.1).is_some_and(|(held, end)| *held == stamp && TokioInstant::now() < *end)
    }
}

impl Coordinator for Lock {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(async move {
            self.on_the_way().await;
            let answer = {
                let mut world = self.0.lock().unwrap();
                let now = TokioInstant::now();
                if world.leases.get(&self.1).is_some_and(|(_, end)| now < *end) {
                    Acquired::Held { wait: None, by: None }
                } else {
                    world.tokens += 1;
                    let (token, epoch) = (Token::new(world.tokens).unwrap(), Epoch(0));
                    let stamp = Stamp { epoch, token, holder: self.2 };
                    world.leases.insert(self.1, (stamp, now + Std::from(ttl)));
                    Acquired::Granted(Grant { token, epoch, ttl: Some(ttl) })
                }
            };
            self.on_the_way().await;
            Ok::<_, CoordinatorError>(answer)
        })
    }

    fn renew(&self, stamp: Stamp, ttl: Duration) -> Call<'_, Renewed> {
        Box::pin(async move {
            self.on_the_way().await;
            let held = {
                let mut world = self.0.lock().unwrap();
                let held = self.holds(&world, stamp);
                if held {
                    world.renewals += 1;
                    world.leases.insert(self.1, (stamp, TokioInstant::now() + Std::from(ttl)));
                }
                held
            };
            self.on_the_way().await;
            Ok(if held { Renewed::Renewed { ttl: Some(ttl) } } else { Renewed::Gone })
        })
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(async move {
            self.on_the_way().await;
            let mut world = self.0.lock().unwrap();
            if self.holds(&world, stamp) {
                world.leases.remove(&self.1);
            }
            Ok(())
        })
    }
}

/// The job itself: nobody else may be at it, and nobody with a higher token may have been.
async fn job(world: Arc<Mutex<World>>, job: u32, lease: Lease<Paused>) {
    let seconds = {
        let mut world = world.lock().unwrap();
        if world.done.contains_key(&job) {
            return; // by somebody who was faster
        }
        let other = world.running.insert(job, lease.stamp().token.get());
        assert_eq!(other, None, "job {job} twice at once");
        30 + world.random.below(15 * 60 - 30)
    };
    sleep(Std::from_secs(seconds)).await;
    assert!(!lease.deadline().is_over(lease.shared.clock.now()), "the window reaches over the work");
    let mut world = world.lock().unwrap();
    world.running.remove(&job);
    *world.done.entry(job).or_default() += 1;
}

async fn worker(world: Arc<Mutex<World>>, clock: Paused, n: u32) {
    let mut tries = 0;
    loop {
        let next = {
            let mut world = world.lock().unwrap();
            let open: Vec<_> = (0..JOBS).filter(|job| !world.done.contains_key(job)).collect();
            let which = world.random.below(open.len().max(1) as u64);
            open.get(usize::try_from(which).unwrap()).copied()
        };
        let Some(next) = next else { return };
        tries += 1;
        let id = HolderId::new(&format!("w{n}#{tries}")).unwrap();
        let plan = Plan::for_ttl(TTL).drift(Drift::from_ppm(1_000)).round_trip(Duration::from_millis(100));
        let lock = Arc::new(Lock(world.clone(), next, id));
        let runner = Runner::with_clock(lock, plan, id, clock).unwrap().patience(Duration::ZERO);
        match runner.hold(CancellationToken::new(), |lease| job(world.clone(), next, lease)).await {
            Ok(held) => assert!(held.cancelled.is_none() && held.released, "lost without a fault: {held:?}"),
            Err(NotHeld::HeldByAnother) => sleep(Std::from_secs(5)).await,
            Err(why) => panic!("not held, and by nobody else: {why}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_workers_do_each_job_once_and_lose_no_lease() {
    for seed in [1, 2, 3] {
        println!("seed {seed}");
        let world = Arc::new(Mutex::new(World {
            random: Random(seed),
            tokens: 0,
            leases: BTreeMap::new(),
            running: BTreeMap::new(),
            done: BTreeMap::new(),
            renewals: 0,
        }));
        let clock = Paused(TokioInstant::now());
        let mut workers = JoinSet::new();
        (0..WORKERS).for_each(|n| drop(workers.spawn(worker(world.clone(), clock, n))));
        while let Some(ended) = workers.join_next().await {
            ended.unwrap();
        }
        let world = world.lock().unwrap();
        let hours = clock.now().as_micros() / 3_600_000_000;
        println!("{} leases, {} renewals, {hours} h", world.tokens, world.renewals);
        assert!(world.done.len() == JOBS as usize && world.done.values().all(|times| *times == 1));
        assert!(world.running.is_empty() && world.renewals > 1_000);
    }
}
