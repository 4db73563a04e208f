//! Signals to this process: what asks it to stop, and what is only passed on.

use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
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
    stop: CancellationToken,
}

impl Signals {
    /// Listens from now on. One that asks to stop trips `stop`, which nothing else does, so that the lease is given up too.
    pub(super) fn listen(stop: &CancellationToken) -> io::Result<Self> {
        let (to, pass) = mpsc::unbounded_channel();
        for number in STOPS.into_iter().chain(OTHERS) {
            let mut signals = signal(SignalKind::from_raw(number))?;
            let (to, stop) = (to.clone(), stop.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    // To be passed on before anybody can ask whether one has come.
                    if to.send(number).is_err() {
                        return;
                    }
                    if STOPS.contains(&number) {
                        stop.cancel();
                    }
                }
            });
        }
        Ok(Self { pass, stop: stop.clone() })
    }

    /// Whether one that asks to stop has come: the command hears of it, or has.
    pub(super) fn ask(&self) -> bool {
        self.stop.is_cancelled()
    }
}

/// For how long the watcher remembers what it has had. A holder that was kept waiting tells of it that much later.
const REMEMBERED: Duration = Duration::from_secs(1);

/// A signal that a terminal sends, when it is typed, to everything in its foreground: to the holder, which passes on what it
/// gets, and to the command. The watcher, between the two, has it too, and so knows what has come to the command already,
/// if that is still in its group. What was sent to the holder alone has not.
pub(super) struct Typed {
    number: i32,
    signals: Signal,
    last: Option<Instant>,
}

impl Typed {
    /// Those that are typed, SIGINT and SIGQUIT, from now on.
    pub(super) fn listen() -> io::Result<[Self; 2]> {
        let one = |number| io::Result::Ok(Self { number, signals: signal(SignalKind::from_raw(number))?, last: None });
        Ok([one(2)?, one(3)?])
    }

    /// Waits for one, and remembers it.
    pub(super) async fn comes(&mut self) {
        match self.signals.recv().await {
            Some(()) => self.last = Some(Instant::now()),
            None => std::future::pending().await,
        }
    }

    /// Whether the terminal has sent this one already, to the command too where that is in the same group.
    pub(super) async fn has_brought(&mut self, number: i32) -> bool {
        if number != self.number || std::fs::File::open("/dev/tty").is_err() {
            return false;
        }
        // It was sent to this process before the holder could tell of it, but may not have been looked at.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            () = self.comes() => {}
            () = std::future::ready(()) => {}
        }
        self.last.is_some_and(|last| last.elapsed() < REMEMBERED)
    }
}
