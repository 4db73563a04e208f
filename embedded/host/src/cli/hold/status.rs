//! What `--status` shows, on standard error.

use super::super::output::{has, spends};
use fencegate::{Deadline, Stamp};
use fencegate_host::clock;
use fencegate_host::runner::Report;
use std::io::{IsTerminal, Write};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinHandle;

/// How often the window is shown running down, on a terminal.
const TICK: std::time::Duration = std::time::Duration::from_millis(200);

/// Whoever shows it.
pub(super) struct Shown(JoinHandle<()>);

impl Shown {
    /// Shows the last of it.
    pub(super) async fn end(self) {
        let _ = self.0.await;
    }
}

/// Where to send reports; shown as they come if `status`, and dropped otherwise.
pub(super) fn channel(status: bool) -> (UnboundedSender<Report>, Shown) {
    let (to, mut from) = mpsc::unbounded_channel();
    let live = status && std::io::stderr().is_terminal();
    let shown = tokio::spawn(async move {
        let mut tick = tokio::time::interval(TICK);
        let mut end = None;
        loop {
            tokio::select! {
                report = from.recv() => {
                    let Some(report) = report else { return };
                    end = ends(&report, end);
                    if status {
                        line(live, &format!("{}\n", words(&report)));
                    }
                }
                _ = tick.tick(), if live => {
                    if let Some(end) = end {
                        line(true, &format!("window: {} left", has(Deadline::left(end, clock::now()))));
                    }
                }
            }
        }
    });
    (to, Shown(shown))
}

/// Writes over what was there. A reader that is gone is no reason to end.
fn line(live: bool, text: &str) {
    let begin = if live { "\r\x1b[K" } else { "" };
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{begin}{text}");
    let _ = err.flush();
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
