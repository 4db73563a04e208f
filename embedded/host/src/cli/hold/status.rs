//! What `--status` shows, on standard error.

use super::super::output::{Failure, has, spends};
use fencegate::{Deadline, Stamp};
use fencegate_host::clock;
use fencegate_host::runner::Report;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How often the window is shown running down, on a terminal.
const TICK: Duration = Duration::from_millis(200);

/// How many lines may wait for whoever reads them.
const LINES: usize = 64;

/// How long the last of them may take, once all is over.
const LAST: Duration = Duration::from_secs(5);

/// What is still to be written. A reader who takes nothing (a terminal that was told to stop, a pipe that is full) holds up
/// the thread that writes, and nobody else: he misses the oldest lines, and never the last.
#[derive(Default)]
struct Lines {
    waiting: Mutex<(VecDeque<String>, bool)>,
    more: Condvar,
}

impl Lines {
    fn waiting(&self) -> MutexGuard<'_, (VecDeque<String>, bool)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: String) {
        let mut waiting = self.waiting();
        if waiting.0.len() >= LINES {
            waiting.0.pop_front();
        }
        waiting.0.push_back(line);
        self.more.notify_one();
    }

    /// One that may be left out where others wait.
    fn add_idly(&self, line: impl FnOnce() -> String) {
        if self.waiting().0.is_empty() {
            self.add(line());
        }
    }

    /// Nothing more comes.
    fn end(&self) {
        self.waiting().1 = true;
        self.more.notify_one();
    }

    /// Writes them as they come, to the last. A reader that is gone is no reason to end.
    fn write(&self, mut to: impl Write) {
        loop {
            let waiting = self.more.wait_while(self.waiting(), |(lines, over)| lines.is_empty() && !*over);
            let Some(line) = waiting.unwrap_or_else(PoisonError::into_inner).0.pop_front() else { return };
            let _ = to.write_all(line.as_bytes()).and_then(|()| to.flush());
        }
    }
}

/// Whoever shows it.
pub(super) struct Shown {
    lines: Arc<Lines>,
    reports: JoinHandle<()>,
    written: oneshot::Receiver<()>,
}

impl Shown {
    /// Shows the last of it.
    pub(super) async fn end(self) {
        let _ = self.reports.await;
        self.lines.end();
        let _ = timeout(LAST, self.written).await;
    }
}

/// Where to send reports; shown as they come if `status`, and dropped otherwise.
pub(super) fn channel(status: bool) -> Result<(UnboundedSender<Report>, Shown), Failure> {
    let (to, mut from) = mpsc::unbounded_channel();
    let live = status && std::io::stderr().is_terminal();
    let (lines, (done, written)) = (Arc::new(Lines::default()), oneshot::channel());
    if status {
        let lines = Arc::clone(&lines);
        let write = move || {
            lines.write(std::io::stderr());
            let _ = done.send(());
        };
        let thread = std::thread::Builder::new().spawn(write);
        thread.map_err(|error| Failure::new(126, format_args!("no thread: {error}")))?;
    }
    let shown = Arc::clone(&lines);
    let reports = tokio::spawn(async move {
        let mut tick = tokio::time::interval(TICK);
        let mut end = None;
        // On a terminal it writes over the window that was shown there.
        let begin = if live { "\r\x1b[K" } else { "" };
        loop {
            tokio::select! {
                report = from.recv() => {
                    let Some(report) = report else { return };
                    end = ends(&report, end);
                    if status {
                        shown.add(format!("{begin}{}\n", words(&report)));
                    }
                }
                _ = tick.tick(), if live => {
                    if let Some(end) = end {
                        let left = || has(Deadline::left(end, clock::now()));
                        shown.add_idly(|| format!("{begin}window: {} left", left()));
                    }
                }
            }
        }
    });
    Ok((to, Shown { lines, reports, written }))
}

/// The window that runs down after a report.
fn ends(report: &Report, before: Option<Deadline>) -> Option<Deadline> {
    match report {
        Report::Granted(_, end) | Report::Renewed(end) => Some(*end),
        Report::Released => None,
        _ => before,
    }
}

fn words(report: &Report) -> String {
    let left = |end: &Deadline| has(end.left(clock::now()));
    match report {
        Report::HeldByAnother { wait, by } => {
            let by = by.map_or_else(|| "another".to_owned(), |by| by.to_string());
            let wait = wait.map(|wait| format!(", for {} at the most", spends(wait))).unwrap_or_default();
            format!("held by {by}{wait}")
        }
        Report::Granted(Stamp { epoch, token, holder }, end) => {
            format!("acquired: epoch {epoch} token {token}, {holder}; window {}", left(end))
        }
        Report::Raised(_) => "every fence is raised".to_owned(),
        Report::NotRaised(why) => format!("a fence is not raised yet: {why}"),
        Report::Renewed(end) => format!("renewed: window {}", left(end)),
        Report::NoAnswer(why) => why.clone(),
        Report::Cancelled(cause) => format!("cancelled: {cause}"),
        Report::Released => "released".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Somebody who takes a line only when he is let.
    struct Slow(std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<String>);

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(String::from_utf8_lossy(line).into_owned());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_reads_nothing_holds_up_nobody_and_misses_the_oldest_lines_alone() {
        let lines = Arc::new(Lines::default());
        let ((go, let_go), (to, taken)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let theirs = Arc::clone(&lines);
        let writer = std::thread::spawn(move || theirs.write(Slow(let_go, to)));
        (0..1_000).for_each(|n| lines.add(n.to_string()));
        lines.add_idly(|| "idle".to_owned());
        lines.end();
        drop(go);
        writer.join().unwrap();
        let taken: Vec<_> = taken.iter().collect();
        // One may have been on its way when the others came.
        let kept: Vec<_> = (1_000 - LINES..1_000).map(|n| n.to_string()).collect();
        assert!(taken.ends_with(&kept) && taken.len() <= LINES + 1, "{taken:?}");
    }
}
