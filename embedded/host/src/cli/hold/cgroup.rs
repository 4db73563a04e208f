//! A control group around the command: what is in it is killed by one write, however it forks meanwhile.
//!
//! It needs version 2 and the right to make a group below this process's own: root has it, and so has a user below
//! `user@.service` of systemd. Where there is none, the process table and the parent-death signal have to do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A group of its own. Dropping it removes it once it is empty, and so does the watcher, should nobody be left to drop it.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Makes one, where that can be done.
    pub(super) fn make() -> Option<Self> {
        let ours =
            ours(&fs::read_to_string("/proc/self/mountinfo").ok()?, &fs::read_to_string("/proc/self/cgroup").ok()?)?;
        let group = Self(ours.join(format!("fencegate-hold-{}-{:08x}", std::process::id(), getrandom::u32().ok()?)));
        fs::create_dir(&group.0).ok()?;
        // Before Linux 5.14 there was no such file; and a group of threads takes no process.
        let is_whole = fs::read_to_string(group.0.join("cgroup.type")).is_ok_and(|kind| kind.trim() == "domain");
        (is_whole && group.0.join("cgroup.kill").exists()).then_some(group)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(Some(&self.0));
    }
}

/// Removes the group at `path`, if there is one.
pub(super) fn remove(path: Option<&Path>) {
    if let Some(path) = path {
        let _ = fs::remove_dir(path); // gone already, or not empty: somebody else has put a process there
    }
}

/// Puts this process, and what it starts from now on, into the group at `path`.
pub(super) fn enter(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.procs"), "0")
}

/// Kills everything in the group at `path`, if there is one.
pub(super) fn kill(path: Option<&Path>) {
    if let Some(path) = path {
        let _ = fs::write(path.join("cgroup.kill"), "1"); // gone already
    }
}

/// The folder of the group that a process is in, by its `mountinfo` and its `cgroup`.
fn ours(mounts: &str, groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // A container sees a part of the tree; where it is no part of ours, nothing can be made there.
        let below = path.strip_prefix(root.trim_end_matches('/'))?;
        after.starts_with("cgroup2 ").then(|| Path::new(point).join(below.trim_start_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_wherever_the_tree_is_mounted() {
        let hybrid = "25 30 0:22 / /proc rw - proc proc rw\n41 32 0:36 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        assert_eq!(ours(hybrid, "4:memory:/x\n0::/\n"), Some("/sys/fs/cgroup/unified/".into()));
        let systemd = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(ours(systemd, "0::/user.slice/a.scope\n"), Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        let container = "35 24 0:30 /docker/7 /sys/fs/cgroup ro - cgroup2 cgroup rw";
        assert_eq!(ours(container, "0::/docker/7/b\n"), Some("/sys/fs/cgroup/b".into()));
        assert_eq!(ours(container, "0::/other\n"), None);
        assert_eq!(ours("35 24 0:30 / /sys/fs/cgroup rw - cgroup cgroup rw", "0::/\n"), None);
        assert_eq!(ours(systemd, "4:memory:/x\n"), None, "version 1 alone");
    }
}
