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

/// A command that writes down each signal, and ends on SIGTERM.
fn listens(folder: &Path) -> String {
    let traps =
        ["HUP", "INT", "QUIT", "USR1", "USR2"].map(|name| format!("trap 'echo {name} >> {{}}' {name}; ")).concat();
    let traps = traps.replace("{}", &folder.join("heard").display().to_string());
    let up = folder.join("up");
    // What a terminal sends goes to `sleep` as well; a shell would wait for its end.
    format!(
        "{traps}trap 'exit 5' TERM; echo $PPID > {0}.new; mv {0}.new {0}; while :; do sleep 0.05; done",
        up.display()
    )
}

fn parent(pid: &str) -> String {
    Said::by(Command::new("ps").args(["-o", "ppid=", "-p", pid])).out.trim().to_owned()
}

#[test]
fn what_is_typed_comes_once_and_what_is_sent_from_elsewhere_comes_too() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let command = hold_for("60s", &etcd_url(&server), "a", &[], &listens(folder.path()));
    let mut held = Held::begin(at_a_keyboard(&command));
    let watcher = appears(&folder.path().join("up"));
    let (holder, file) = (parent(&watcher), folder.path().join("heard"));
    // Twice of each, since the first that asks to stop takes another way than those after it.
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

/// Whether or not it has a terminal, and whichever comes first.
#[test]
fn the_first_that_asks_to_stop_comes_to_the_command() {
    let server = Server::etcd();
    for (terminal, name) in
        [(true, "INT"), (true, "QUIT"), (true, "HUP"), (false, "INT"), (false, "QUIT"), (false, "HUP")]
    {
        let folder = tempfile::tempdir().unwrap();
        let command = hold_for("60s", &etcd_url(&server), "a", &[], &listens(folder.path()));
        let held = Held::begin(if terminal { at_a_keyboard(&command) } else { command });
        let holder = parent(&appears(&folder.path().join("up")));
        signal(name, &holder);
        assert_eq!(heard(&folder.path().join("heard"), 1), name, "with a terminal: {terminal}");
        signal("TERM", &holder);
        assert_eq!(held.end().status, 5);
    }
}
