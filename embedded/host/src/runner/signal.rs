//! SIGTERM, for a worker that has no other use for it.

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that the first SIGTERM trips, to be given to [`Runner::hold`](super::Runner::hold). From now on that signal does
/// not end this process by itself any more.
///
/// # Errors
/// Where it cannot be listened to.
///
/// # Panics
/// Outside of a tokio runtime with I/O.
pub fn stop_on_sigterm() -> io::Result<CancellationToken> {
    let (mut asked, stop) = (signal(SignalKind::terminate())?, CancellationToken::new());
    let trips = stop.clone();
    tokio::spawn(async move {
        if asked.recv().await.is_some() {
            trips.cancel();
        }
    });
    Ok(stop)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn sigterm_trips_it_and_nothing_else_happens() {
        let (stop, other) = (stop_on_sigterm().unwrap(), stop_on_sigterm().unwrap());
        assert!(!stop.is_cancelled());
        kill_process(getpid(), Signal::TERM).unwrap();
        stop.cancelled().await;
        other.cancelled().await;
    }
}
