//! A worker on the library, in a process of its own.

use super::*;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// The example `press`, and what it says.
struct Press {
    process: Held,
    said: tempfile::NamedTempFile,
}

impl Press {
    fn begin(server: &Server, holder: &str) -> Self {
        let said = tempfile::NamedTempFile::new().unwrap();
        let mut command = example("fencegate-host", "press");
        command.args([&postgres_url(server), "press-7", holder]).stdin(Stdio::null()).stdout(said.reopen().unwrap());
        command.process_group(0); // which ends with `Held`
        Self { process: Held::begin(command), said }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.said.path()).unwrap()
    }

    /// Waits until it has said more than `lines`.
    fn goes_on(&self, lines: usize) {
        let begun = Instant::now();
        while self.said().lines().count() <= lines {
            assert!(begun.elapsed() < PATIENCE, "{}", self.said());
            sleep(Duration::from_millis(20));
        }
    }
}

/// A stands still past its TTL, in the middle of its strokes; B takes over. A goes on, and does not make another: it looks at
/// its clock before each.
#[test]
fn a_worker_that_was_stopped_makes_no_stroke_after_its_window() {
    let server = Server::postgres();
    let mut a = Press::begin(&server, "a");
    a.goes_on(2);
    a.process.signal("STOP");
    let mut b = Press::begin(&server, "b");
    b.goes_on(0);
    let before = a.said();
    a.process.signal("CONT");
    assert_eq!(a.process.status(), 0);
    assert_eq!(a.said(), before + "no more of them: Some(Expired)\n");
    b.goes_on(b.said().lines().count() + 3);
    b.process.signal("TERM");
    assert_eq!(b.process.status(), 0);
    let said = b.said();
    let (last, strokes) =
        said.lines().collect::<Vec<_>>().split_last().map(|(last, all)| (*last, all.to_vec())).unwrap();
    assert!(strokes.iter().all(|line| line.starts_with("a stroke under ") && line.contains("b#")), "{said}");
    assert_eq!(last, "no more of them: Some(Stopped)");
}
