//! Everything that a command leaves behind ends in time: with control groups, and where the table of processes has to do.

use super::TTL;
use super::worker::{
    Begin, Held, PATIENCE, appears, at, etcd_url, hold, is_silent, last, marks, now, signal, without_groups,
};
use fencegate_tests::{Said, Server, is_root};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Once with what this machine has, and once without control groups.
fn with_groups_and_without(test: fn(&Server, Begin)) {
    let server = Server::etcd();
    let url = etcd_url(&server);
    test(&server, &at(&url));
    if is_root() {
        test(&server, &|holder, flags, script| Held::begin(without_groups(&hold(&url, holder, flags, script))));
    } else {
        println!("not tested: only root can take control groups away");
    }
}

/// A script that starts marks in `file` and goes on: twice forked, in a session of its own, its parent dead.
fn fork_away(folder: &Path, file: &Path) -> String {
    let away = folder.join("away");
    fs::write(&away, format!("trap '' TERM HUP\n{}\n", marks(file))).unwrap();
    format!(
        "(setsid sh -c '(setsid sh {} &) ; exit' &) ; while [ ! -e {} ]; do sleep 0.05; done; ",
        away.display(),
        file.display()
    )
}

/// A script that starts marks in `file` and goes on: in a session of its own, by a thread whose process has ended its first.
fn lose_the_main_thread(folder: &Path, file: &Path) -> String {
    let program = folder.join("headless.py");
    let text = format!(
        "import ctypes, threading, time\n\
         def marks():\n    \
             while True:\n        \
                 open('{}', 'a').write(open('/proc/uptime').read().split()[0] + '\\n')\n        \
                 time.sleep(0.05)\n\
         threading.Thread(target=marks).start()\n\
         ctypes.CDLL(None).pthread_exit(None)\n",
        file.display()
    );
    fs::write(&program, text).unwrap();
    // What is to be tested: `/proc` has it for a zombie, while it goes on.
    format!(
        "setsid python3 {} > /dev/null 2>&1 & pid=$!; \
         while ! {{ [ -e {} ] && grep -q 'State:.Z' /proc/$pid/status; }}; do sleep 0.05; done; ",
        program.display(),
        file.display()
    )
}

pub(super) fn watcher(held: &Held) -> String {
    Said::by(Command::new("pgrep").args(["-P", &held.0.id().to_string()])).out.trim().to_owned()
}

#[test]
fn a_command_does_not_outlive_the_lease_of_a_holder_that_was_killed() {
    with_groups_and_without(|_, run| {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        // The holder alone; the watcher sees to it, and to what has forked away.
        let (one, away, after) = (file("one"), file("away.marks"), file("after"));
        let script = format!("{}trap '' TERM; {}", fork_away(folder.path(), &away), marks(&one));
        let held = run("a", &[], &script);
        appears(&one);
        held.signal("KILL");
        let killed = now();
        let next = run("b", &[], &format!("cut -d' ' -f1 /proc/uptime > {}", after.display())).end();
        assert_eq!(next.status, 0, "{next:?}");
        for file in [one, away] {
            assert!(last(&file) < killed + TTL && last(&file) < last(&after), "the next one began after its end");
            is_silent(&file);
        }

        // Holder and watcher at once: the kernel sees to the command itself.
        let two = file("two");
        let held = run("a", &[], &format!("trap '' TERM; {}", marks(&two)));
        appears(&two);
        for pid in [&held.0.id().to_string(), &watcher(&held)] {
            signal("KILL", pid);
        }
        sleep(Duration::from_millis(300));
        is_silent(&two);
    });
}

/// Then the holder kills both, while half of what was kept for killing is left.
#[test]
fn a_watcher_that_hangs_is_no_reason_to_outlive_the_window() {
    with_groups_and_without(|server, run| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("marks");
        let held = run("a", &[], &format!("trap '' TERM; {}", marks(&file)));
        appears(&file);
        signal("STOP", &watcher(&held));
        server.signal("STOP");
        let frozen = now();
        let said = held.end();
        server.signal("CONT");
        assert_eq!(said.status, 122, "{said:?}");
        assert!(last(&file) < frozen + TTL, "no window reaches further than a TTL past the last answer");
        is_silent(&file);
    });
}

/// How much is on the holder's line to its watcher, as the kernel counts it.
fn on_the_line(held: &Held) -> u64 {
    let said = Said::by(Command::new("ss").args(["-xnpH", "state", "established"]));
    let (ours, socket) = (format!("pid={},", held.0.id()), "/watcher ");
    let line = said.out.lines().find(|line| line.contains(&ours) && line.contains(socket));
    let send = line.and_then(|line| line.split_whitespace().nth(2)?.parse().ok());
    send.unwrap_or_else(|| panic!("no line from {} to its watcher: {said:?}", held.0.id()))
}

/// Nor if so much was to be told to it that nothing more goes into its ear.
#[test]
fn a_watcher_that_takes_nothing_more_is_no_reason_to_outlive_the_window() {
    with_groups_and_without(|server, run| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("marks");
        let held = run("a", &[], &format!("trap '' TERM; {}", marks(&file)));
        appears(&file);
        signal("STOP", &watcher(&held));
        // Each is passed on in a line of its own; some hundred fill a socket, and there are more to come.
        let poke =
            format!("for n in $(seq 100); do kill -s USR1 {0}; kill -s USR2 {0}; sleep 0.002; done", held.0.id());
        let poke = || assert!(Command::new("sh").args(["-c", &poke]).status().unwrap().success());
        let all: u64 = fs::read_to_string("/proc/sys/net/core/wmem_default").unwrap().trim().parse().unwrap();
        let begun = Instant::now();
        while on_the_line(&held) < all {
            assert!(begun.elapsed() < PATIENCE, "{} of {all}", on_the_line(&held));
            poke();
        }
        poke();
        server.signal("STOP");
        let frozen = now();
        let said = held.end();
        server.signal("CONT");
        assert_eq!(said.status, 122, "{said:?}");
        assert!(last(&file) < frozen + TTL, "no window reaches further than a TTL past the last answer");
        is_silent(&file);
    });
}

#[test]
fn what_forks_away_is_found_and_ends_with_the_command() {
    with_groups_and_without(|_, run| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("marks");
        let said = run("a", &[], &format!("{}echo ended", fork_away(folder.path(), &file))).end();
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "ended\n", ""));
        is_silent(&file);
    });
}

/// Its end is heard of, and its status is the command's, though it is in no group of the watcher's any more.
#[test]
fn a_command_in_a_session_of_its_own_ends_when_it_ends() {
    with_groups_and_without(|_, run| {
        let said = run("a", &[], "exec setsid sh -c 'exit 7'").end();
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (7, "", ""));
    });
}

/// It cannot be told from what the command has left behind.
#[test]
fn what_a_shell_had_started_before_it_became_the_holder_ends_too() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let file = folder.path().join("marks");
    let before = format!("({}) > /dev/null 2>&1 & exec \"$@\"", marks(&file));
    let held = hold(&etcd_url(&server), "a", &[], &format!("while [ ! -e {} ]; do sleep 0.05; done", file.display()));
    let mut shell = Command::new("sh");
    shell.args(["-c", &before, "sh"]).arg(held.get_program()).args(held.get_args());
    let said = Said::by(&mut shell);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said:?}");
    is_silent(&file);
}

/// A process lives as long as one of its threads does, whatever has become of the one that it began with.
#[test]
fn what_goes_on_without_its_main_thread_ends_with_the_command_and_with_the_holder() {
    with_groups_and_without(|_, run| {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let left = file("left");
        let said = run("a", &[], &format!("{}echo ended", lose_the_main_thread(folder.path(), &left))).end();
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "ended\n", ""));
        is_silent(&left);

        let (up, lost) = (file("up"), file("lost"));
        let script = format!("{}echo up > {}; sleep 60", lose_the_main_thread(folder.path(), &lost), up.display());
        let held = run("a", &[], &script);
        appears(&up);
        held.signal("KILL");
        let killed = now();
        assert_eq!(run("b", &[], "true").end().status, 0);
        assert!(last(&lost) < killed + TTL, "it had no lease any more");
        is_silent(&lost);
    });
}

/// One write then kills all of it, even what is in no process table of ours.
#[test]
fn where_there_are_control_groups_the_command_has_one_of_its_own() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let tree = mounts.lines().find_map(|line| line.split(' ').nth(1).filter(|_| line.contains(" cgroup2 "))).unwrap();
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let file = folder.path().join("group");
    let script = format!("sed -n 's/^0:://p' /proc/self/cgroup > {0}.new; mv {0}.new {0}; sleep 60", file.display());
    let held = Held::begin(hold(&etcd_url(&server), "a", &[], &script));
    appears(&file);
    let group = fs::read_to_string(&file).unwrap();
    if !fs::metadata(tree).is_ok_and(|tree| tree.uid() == fs::metadata("/proc/self").unwrap().uid()) {
        println!("not tested: no right to make control groups below {tree}");
        assert!(!group.contains("fencegate-hold-"), "{group}");
        return;
    }
    assert!(group.contains("/fencegate-hold-"), "{group}");
    let group = Path::new(tree).join(group.trim().trim_start_matches('/'));
    let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(group.join("cgroup.procs"), stranger.id().to_string()).unwrap();
    held.signal("TERM");
    assert_eq!(held.end().status, 128 + 15);
    assert_eq!(stranger.wait().unwrap().signal(), Some(9));
    assert!(!group.exists(), "and it is removed");

    // Where they were taken away, there is none.
    let bare = without_groups(&hold(&etcd_url(&server), "a", &[], "sed -n 's/^0:://p' /proc/self/cgroup"));
    let said = Held::begin(bare).end();
    assert!(said.status == 0 && !said.out.contains("fencegate-hold-"), "{said:?}");
}
