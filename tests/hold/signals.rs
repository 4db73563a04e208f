//! Every signal to `hold` comes to the command, and once, whoever has sent it.

use super::worker::{Held, PATIENCE, appears, at_a_keyboard, etcd_url, hold_for, signal};
use fencegate_tests::{Said, Server};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a signal too many may take.
const MOMENT: Duration = Duration::from_millis(400);

/// The signals that have come to the command since it began, once there are as many and a moment after.
fn heard(file: &Path, many: usize) -> String {
    let begun = Instant::now();
    let heard = || fs::read_to_string(file).unwrap_or_default();
    while heard().lines().count() < many {
        assert!(begun.elapsed() < PATIENCE, "{many} are to come: {}", heard());
        sleep(Duration::from_millis(10));
    }
    sleep(MOMENT);
    heard().lines().collect::<Vec<_>>().join(" ")
}

/// A command that writes down each signal, and ends on one.
fn listens(folder: &Path, last: &str) -> String {
    let names = ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2"].into_iter().filter(|name| *name != last);
    let file = folder.join("heard");
    let traps: Vec<_> = names.map(|name| format!("trap 'echo {name} >> {}' {name}; ", file.display())).collect();
    let up = folder.join("up");
    // What a terminal sends goes to `sleep` as well; a shell would wait for its end.
    format!(
        "{1}trap 'exit 5' {last}; echo $PPID > {0}.new; mv {0}.new {0}; while :; do sleep 0.05; done",
        up.display(),
        traps.concat()
    )
}

fn parent(pid: &str) -> String {
    Said::by(Command::new("ps").args(["-o", "ppid=", "-p", pid])).out.trim().to_owned()
}

#[test]
fn what_is_typed_comes_once_and_what_is_sent_from_elsewhere_comes_too() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let command = hold_for("60s", &etcd_url(&server), "a", &[], &listens(folder.path(), "TERM"));
    let mut held = Held::begin(at_a_keyboard(&command));
    let watcher = appears(&folder.path().join("up"));
    let (holder, file) = (parent(&watcher), folder.path().join("heard"));
    // Twice of each, since the first that asks to stop gives up the lease too.
    held.types(b"\x03");
    assert_eq!(heard(&file, 1), "INT", "a typed one");
    held.types(b"\x03");
    assert_eq!(heard(&file, 2), "INT INT", "another");
    held.types(b"\x1c");
    assert_eq!(heard(&file, 3), "INT INT QUIT", "a typed one of another kind");
    sleep(Duration::from_secs(1));
    for (n, name) in ["INT", "QUIT", "HUP", "USR1", "USR2", "INT"].into_iter().enumerate() {
        signal(name, &holder);
        assert!(heard(&file, 4 + n).ends_with(name), "{name}");
    }
    assert_eq!(heard(&file, 9), "INT INT QUIT INT QUIT HUP USR1 USR2 INT");
    signal("TERM", &holder);
    held.end();
}

/// The terminal's foreground is the holder then, and the watcher, and not the command.
#[test]
fn what_is_typed_comes_to_a_command_in_a_session_of_its_own_too() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let worker = folder.path().join("worker");
    fs::write(&worker, listens(folder.path(), "TERM")).unwrap();
    let script = format!("exec setsid sh {}", worker.display());
    let mut held = Held::begin(at_a_keyboard(&hold_for("60s", &etcd_url(&server), "a", &[], &script)));
    let holder = parent(&appears(&folder.path().join("up")));
    let file = folder.path().join("heard");
    held.types(b"\x03");
    assert_eq!(heard(&file, 1), "INT", "the first");
    held.types(b"\x1c");
    assert_eq!(heard(&file, 2), "INT QUIT", "another");
    signal("TERM", &holder);
    assert_eq!(held.end().status, 5);
}

/// Whether or not it has a terminal, and whichever comes first.
#[test]
fn the_first_that_asks_to_stop_comes_to_the_command() {
    let server = Server::etcd();
    for (terminal, name) in
        [(true, "INT"), (true, "QUIT"), (true, "HUP"), (false, "INT"), (false, "QUIT"), (false, "HUP")]
    {
        let folder = tempfile::tempdir().unwrap();
        let command = hold_for("60s", &etcd_url(&server), "a", &[], &listens(folder.path(), "TERM"));
        let held = Held::begin(if terminal { at_a_keyboard(&command) } else { command });
        let holder = parent(&appears(&folder.path().join("up")));
        signal(name, &holder);
        assert_eq!(heard(&folder.path().join("heard"), 1), name, "with a terminal: {terminal}");
        signal("TERM", &holder);
        assert_eq!(held.end().status, 5);
    }
}

/// The lease has asked by then, and somebody asks once more, and in another way.
#[test]
fn one_that_comes_after_the_lease_has_asked_comes_to_the_command() {
    let server = Server::etcd();
    for name in ["INT", "HUP", "TERM", "USR1"] {
        let folder = tempfile::tempdir().unwrap();
        let (file, script) = (folder.path().join("heard"), listens(folder.path(), "QUIT"));
        let held = Held::begin(hold_for("60s", &etcd_url(&server), "a", &["--longest", "1s"], &script));
        let holder = parent(&appears(&folder.path().join("up")));
        assert_eq!(heard(&file, 1), "TERM", "it had its turn");
        signal(name, &holder);
        assert_eq!(heard(&file, 2), format!("TERM {name}"));
        signal("QUIT", &holder);
        let held = held.end();
        assert!(
            held.status == 122 && held.err.contains("the lease was lost, and the command was stopped: "),
            "{held:?}"
        );
    }
}
