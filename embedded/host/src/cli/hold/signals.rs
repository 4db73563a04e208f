//! Signals to this process: what asks it to stop, and what is only passed on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_util::sync::CancellationToken;

/// SIGTERM, what asks where nobody has.
pub(super) const TERM: i32 = 15;

/// Those that ask to stop: SIGHUP, SIGINT, SIGQUIT, SIGTERM.
const STOPS: [i32; 4] = [1, 2, 3, TERM];
/// Those that mean something to the command alone: SIGUSR1, SIGUSR2.
const OTHERS: [i32; 2] = [10, 12];

/// What has come in.
pub(super) struct Signals {
    /// To be passed on, in order.
    pub(super) pass: UnboundedReceiver<i32>,
    last: Arc<AtomicI32>,
}

impl Signals {
    /// Listens from now on. The first that asks to stop trips `stop`; the runner then has the command asked.
    pub(super) fn listen(stop: &CancellationToken) -> io::Result<Self> {
        let (to, pass) = mpsc::unbounded_channel();
        let last = Arc::new(AtomicI32::new(TERM));
        for number in STOPS.into_iter().chain(OTHERS) {
            let mut signals = signal(SignalKind::from_raw(number))?;
            let (to, stop, last) = (to.clone(), stop.clone(), Arc::clone(&last));
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    let asks = STOPS.contains(&number);
                    if asks && !stop.is_cancelled() {
                        last.store(number, Ordering::Relaxed);
                        stop.cancel();
                    } else if to.send(number).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { pass, last })
    }

    /// The one to ask the command with; `None` where the terminal has sent it to the command already, as it does to
    /// everything in its foreground.
    pub(super) fn asks(&self) -> Option<i32> {
        let last = self.last.load(Ordering::Relaxed);
        let typed = [2, 3].contains(&last) && std::fs::File::open("/dev/tty").is_ok();
        (!typed).then_some(last)
    }
}
