//! What a held lease costs (`cargo xtask bench leases`): the runner's own time and memory, on a service that answers at
//! once; and renewals a second at etcd, ours beside its client's own keep-alive.
//!
//! ```text
//! leases held N            a line: leases, renewals, microseconds of CPU each, bytes of memory a lease
//! leases etcd HOST:PORT    a line for each number at once: how many, ours a second, the client's a second
//! ```

use etcd_client::Client;
use fencegate::{Drift, Duration, Epoch, HolderId, Plan, Stamp, Token};
use fencegate_host::coordinator::etcd::Etcd;
use fencegate_host::coordinator::{Access, Acquired, Call, Coordinator, Grant, Renewed};
use fencegate_host::runner::{Lease, Runner};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration as Span, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// For how long is counted.
const COUNTED: Span = Span::from_secs(12);
/// How many renew at once.
const AT_ONCE: [usize; 2] = [1, 32];

/// A service that answers at once, and counts.
#[derive(Default)]
struct AtOnce(Arc<AtomicU64>);

impl Coordinator for AtOnce {
    fn acquire(&self, _: Duration) -> Call<'_, Acquired> {
        Box::pin(async { Ok(Acquired::Granted(Grant { token: token(1), epoch: Epoch(0), ttl: None })) })
    }

    fn renew(&self, _: Stamp, _: Duration) -> Call<'_, Renewed> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Renewed::Renewed { ttl: None }) })
    }

    fn release(&self, _: Stamp) -> Call<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

fn token(n: u64) -> Token {
    Token::new(n).expect("no token is zero")
}

fn holder(n: usize) -> HolderId {
    HolderId::new(&format!("bench#{n}")).expect("a holder")
}

/// Nanoseconds of CPU that this thread has had, and bytes of memory that this process has.
fn used() -> (u64, u64) {
    let schedule = fs::read_to_string("/proc/thread-self/schedstat").expect("the scheduler's statistics");
    let ran = schedule.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a time");
    let status = fs::read_to_string("/proc/self/status").expect("the process's status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    (ran, kib * 1024)
}

async fn held(leases: usize) {
    let renewals = Arc::new(AtomicU64::new(0));
    let plan = Plan::for_ttl(Duration::from_secs(9)).drift(Drift::from_ppm(1_000));
    let plan = plan.round_trip(Duration::from_millis(100));
    let (_, before) = used();
    let stop = CancellationToken::new();
    let mut all = JoinSet::new();
    for n in 0..leases {
        let runner = Runner::new(Arc::new(AtOnce(renewals.clone())), plan, holder(n)).expect("a plan");
        let work = |lease: Lease| async move { lease.cancelled().cancelled().await };
        all.spawn(runner.hold(stop.clone(), work));
        // As they would come: spread over a heartbeat, and not all at one instant.
        if n % (leases / 100).max(1) == 0 {
            sleep(Span::from_millis(29)).await;
        }
    }
    sleep(Span::from_secs(3)).await;
    let ((ran, memory), count) = (used(), renewals.load(Ordering::Relaxed));
    sleep(COUNTED).await;
    let ((ran_now, _), renewals) = (used(), renewals.load(Ordering::Relaxed) - count);
    stop.cancel();
    while let Some(held) = all.join_next().await {
        assert!(held.expect("no panic").expect("a lease").released);
    }
    println!("{leases}\t{renewals}\t{}\t{}", (ran_now - ran) / renewals / 1_000, (memory - before) / leases as u64);
}

/// How often a second `once` is done, by all of `workers` together.
async fn a_second<T, F>(workers: Vec<T>, once: impl Fn(T) -> F + Copy + Send + 'static) -> u128
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let (begun, mut all) = (Instant::now(), JoinSet::new());
    for mut worker in workers {
        all.spawn(async move {
            let mut done = 0_u64;
            while begun.elapsed() < COUNTED / 2 {
                worker = once(worker).await;
                done += 1;
            }
            done
        });
    }
    let done: u64 = all.join_all().await.into_iter().sum();
    u128::from(done) * 1_000 / begun.elapsed().as_millis()
}

async fn etcd(address: &str) {
    for at_once in AT_ONCE {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for n in 0..at_once {
            let lock = Etcd::new(&[address], None, &Access::default(), &format!("bench/{at_once}/{n}"), holder(n))
                .expect("etcd");
            let Acquired::Granted(grant) = lock.acquire(Duration::from_secs(60)).await.expect("a lease") else {
                panic!("held");
            };
            ours.push((lock, Stamp { epoch: grant.epoch, token: grant.token, holder: holder(n) }));
            let mut client = Client::connect([address], None).await.expect("etcd");
            let lease = client.lease_grant(60, None).await.expect("a lease").id();
            theirs.push(client.lease_keep_alive(lease).await.expect("a stream"));
        }
        let ours = a_second(ours, |(lock, stamp)| async move {
            let renewed = lock.renew(stamp, Duration::from_secs(60)).await;
            assert!(matches!(renewed, Ok(Renewed::Renewed { .. })), "{renewed:?}");
            (lock, stamp)
        });
        let ours = ours.await;
        let theirs = a_second(theirs, |(mut keeper, mut answers)| async move {
            keeper.keep_alive().await.expect("sent");
            assert!(answers.message().await.expect("an answer").is_some_and(|answer| answer.ttl() == 60));
            (keeper, answers)
        });
        println!("{at_once}\t{ours}\t{}", theirs.await);
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match words[..] {
        ["held", leases] => runtime.block_on(held(leases.parse().expect("a number of leases"))),
        ["etcd", address] => runtime.block_on(etcd(address)),
        _ => eprintln!("leases held N | leases etcd HOST:PORT (`cargo xtask bench leases` runs both)"),
    }
}
