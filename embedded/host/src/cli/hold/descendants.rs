//! Every process below one, and their end.
//!
//! A process that is a reaper (`PR_SET_CHILD_SUBREAPER`) gets what is orphaned below it for a child. So whatever forks away
//! stays below it in the tree that `/proc` shows, and is found there however often it has forked.

use super::cgroup;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// How long to wait between two looks: what was killed takes a moment to die.
const BETWEEN: Duration = Duration::from_millis(2);

/// How many fields there are between a process's parent and the number of its threads.
const THREADS: usize = 15;

/// Makes this process the reaper of all that is below it.
pub(super) fn adopt() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid())).map_err(Into::into)
}

/// A process of the table: its parent, and whether it is dead already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    parent: i32,
    dead: bool,
}

/// What `/proc/PID/stat` says. The name in it may have any characters, so that only what follows its last parenthesis counts.
fn entry(stat: &str) -> Option<Entry> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(THREADS)?.parse().ok()?;
    // One whose first thread has ended alone is shown as a zombie too, and goes on.
    Some(Entry { parent, dead: matches!(state, "Z" | "X") && threads <= 1 })
}

/// All processes that live below `root` in `table`.
fn below(root: i32, table: &BTreeMap<i32, Entry>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut look = vec![root];
    while let Some(parent) = look.pop() {
        for (pid, _) in table.iter().filter(|(_, entry)| entry.parent == parent) {
            if found.insert(*pid) {
                look.push(*pid);
            }
        }
    }
    found.retain(|pid| table.get(pid).is_some_and(|entry| !entry.dead));
    found
}

/// Every process that lives below this one.
fn alive() -> BTreeSet<i32> {
    let mut table = BTreeMap::new();
    for entry_of in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry_of.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that is gone by now is none.
        let Ok(stat) = std::fs::read_to_string(entry_of.path().join("stat")) else { continue };
        if let Some(entry) = entry(&stat) {
            table.insert(pid, entry);
        }
    }
    below(getpid().as_raw_nonzero().get(), &table)
}

/// Kills everything in the command's group, where it has one, and below this process; returns when nothing is left.
/// `reaped` hears of each child of this process's own that has ended.
pub(super) fn kill_all(group: Option<&Path>, mut reaped: impl FnMut(Pid, rustix::process::WaitStatus)) {
    cgroup::kill(group);
    loop {
        reap(&mut reaped);
        let alive = alive();
        if alive.is_empty() {
            return;
        }
        // First all stand still, so that none forks while the others die.
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in alive.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                let _ = kill_process(pid, signal); // gone already
            }
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Takes in every child that has ended, whatever group it has made for itself.
pub(super) fn reap(mut reaped: impl FnMut(Pid, rustix::process::WaitStatus)) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        reaped(pid, status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of `/proc/PID/stat` with so many threads.
    fn line(before: &str, threads: &str) -> String {
        format!("{before} 3 1 1 0 -1 4227084 3080 6523 3 0 2 2 2 2 20 0 {threads} 0 6984608 0 0")
    }

    #[test]
    fn the_name_of_a_process_may_be_anything() {
        assert_eq!(entry(&line("7 (a) Z 9 (b) S", "1")), Some(Entry { parent: 3, dead: false }));
        assert_eq!(entry(&line("7 (sh) Z", "1")), Some(Entry { parent: 3, dead: true }));
        for odd in ["", "7 (sh", "7 (sh) S", "7 (sh) S x", "7 (sh) S 3 1 1", &line("7 (sh) S", "x")] {
            assert_eq!(entry(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        for (state, threads, dead) in [
            ("Z", "1", true),
            ("X", "0", true),
            ("Z", "2", false),
            ("X", "3", false),
            ("S", "1", false),
            ("T", "1", false),
            ("R", "0", false),
        ] {
            let found = entry(&line(&format!("7 (sh) {state}"), threads));
            assert_eq!(found, Some(Entry { parent: 3, dead }), "{state} {threads}");
        }
    }

    #[test]
    fn the_kernel_has_the_threads_where_they_are_read() {
        let together = std::sync::Barrier::new(31);
        std::thread::scope(|scope| {
            for _ in 0..30 {
                scope.spawn(|| together.wait());
            }
            let stat = std::fs::read_to_string("/proc/self/stat");
            together.wait();
            let stat = stat.unwrap();
            let mut fields = stat[stat.rfind(')').unwrap() + 1..].split_ascii_whitespace().skip(2);
            let threads: u32 = fields.nth(THREADS).unwrap().parse().unwrap();
            assert!((31..1_000).contains(&threads), "{threads}");
        });
    }

    #[test]
    fn all_generations_are_found_and_nobody_else() {
        let table =
            [(2, 1, false), (3, 2, true), (4, 3, false), (5, 2, false), (6, 5, false), (7, 1, false), (8, 8, false)];
        let table = table.map(|(pid, parent, dead)| (pid, Entry { parent, dead })).into();
        assert_eq!(below(2, &table), [4, 5, 6].into());
        assert_eq!(below(8, &table), [8].into(), "a circle ends");
    }
}
