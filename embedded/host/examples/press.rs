//! A worker on the library, in a process of its own: one stroke of a press after the other, each under a permit, for as long as
//! its lease lasts.
//!
//! ```sh
//! cargo run -p fencegate-host --example press -- postgres://press@127.0.0.1/plant press-7 press-a
//! ```

use fencegate::{Drift, Duration, HolderId, Plan};
use fencegate_host::coordinator::{Access, postgres::Postgres};
use fencegate_host::runner::{Runner, stop_on_sigterm};
use std::sync::Arc;

/// How long a stroke takes.
const STROKE: Duration = Duration::from_millis(200);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [url, lock, me] = std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "URL LOCK HOLDER")?;
    // Each start is an instance of its own: another one may still be at work, on another machine too, where a process of the
    // same number is nothing rare.
    let me = HolderId::new(&format!("{me}#{:08x}", getrandom::u32()?))?;
    let service = Postgres::new(&url, &Access::default(), &lock, me)?;
    let plan = Plan::for_ttl(Duration::from_secs(3)).drift(Drift::from_ppm(500)).round_trip(Duration::from_millis(100));
    let held = Runner::new(Arc::new(service), plan, me)?
        .hold(stop_on_sigterm()?, |lease| async move {
            // The permit says that the stroke will be over within the window, by the clock as it is now.
            while let Ok(permit) = lease.may_act(STROKE) {
                println!("a stroke under {}", permit.stamp());
                tokio::time::sleep(STROKE.into()).await;
                lease.progress();
            }
        })
        .await?;
    println!("no more of them: {:?}", held.cancelled);
    Ok(())
}
