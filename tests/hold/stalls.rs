//! What stalls, and what that costs: a service that answers again, a process that nobody may kill, a reader that reads nothing.

use super::descendants::watcher;
use super::worker::{Held, appears, etcd_url, hold, hold_for, is_silent, last, marks, now, signal};
use fencegate_tests::{Said, Server, is_root};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

/// Longer than a TTL of 3 s.
const LONG: Duration = Duration::from_secs(5);

fn run(command: &mut Command) {
    let said = Said::by(command);
    assert_eq!(said.status, 0, "{said:?}");
}

/// A process's standard error, line by line as it comes.
fn lines(held: &mut Held) -> impl Iterator<Item = String> + use<> {
    BufReader::new(held.0.stderr.take().unwrap()).lines().map(Result::unwrap)
}

/// The service is there again before the window ends. The command was asked to stop all the same, and does not listen.
#[test]
fn a_command_that_was_asked_to_stop_is_dead_in_time_though_renewals_would_be_answered_again() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let file = folder.path().join("marks");
    let script = format!("trap '' TERM; {}", marks(&file));
    let mut held = Held::begin(hold_for("9s", &etcd_url(&server), "a", &["--status"], &script));
    appears(&file);
    server.signal("STOP");
    let frozen = now();
    let mut said = lines(&mut held);
    let asked = said.find(|line| line.starts_with("cancelled: "));
    server.signal("CONT");
    assert_eq!(asked.as_deref(), Some("cancelled: no answer for a third of the lease"));
    assert_eq!(held.status(), 122);
    assert!(last(&file) < frozen + 9_000_000, "no window reaches further than a TTL past the last answer");
    is_silent(&file);
    let said: Vec<_> = said.collect();
    assert!(said.iter().any(|line| line == "released"), "the service was there again: {said:?}");
    assert!(!said.iter().any(|line| line.starts_with("renewed: ")), "{said:?}");
}

/// What has become root's under a holder that is not. Its watcher is killed, so that the holder itself has to wait for it.
#[test]
fn what_nobody_may_kill_is_waited_for_while_renewals_go_on_and_signals_are_heard() {
    if !is_root() {
        println!("not tested: only root can start what another user may not kill");
        return;
    }
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let [program, to_root, up, go] = ["fencegate", "to-root", "up", "go"].map(|name| folder.path().join(name));
    let url = etcd_url(&server);
    let script = format!(
        "{} --reuid=0 --regid=0 --clear-groups sh -c 'echo up > {}; until [ -e {} ]; do sleep 0.05; done'",
        to_root.display(),
        up.display(),
        go.display()
    );
    let command = hold(&url, "a", &["--status"], &script);
    run(Command::new("install").args(["-m", "755"]).arg(command.get_program()).arg(&program));
    run(Command::new("sh").args(["-c", "install -m 4755 $(which setpriv) $0"]).arg(&to_root));
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(command.get_args());
    nobody.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut held = Held::begin(nobody);
    appears(&up);
    signal("KILL", &watcher(&held));
    sleep(LONG);
    let other = Held::begin(hold(&url, "b", &["--wait", "0s"], "echo no")).end();
    assert_eq!((other.status, other.out.as_str()), (121, ""), "it is not renewed: {other:?}");
    let mut said = lines(&mut held);
    held.signal("TERM");
    assert!(said.any(|line| line == "cancelled: asked to stop"));
    // It is being given up: it lapses, whatever lives on.
    let other = Held::begin(hold(&url, "b", &[], "echo yes")).end();
    assert_eq!((other.status, other.out.as_str()), (0, "yes\n"), "{other:?}");
    assert_eq!(held.0.try_wait().unwrap(), None, "it waits");
    fs::write(&go, "").unwrap();
    assert_eq!(held.status(), 128 + 9);
}

/// A named pipe that is full; whoever has what is returned keeps it so.
fn full(pipe: &Path) -> [File; 2] {
    const NONBLOCK: i32 = 0o4000; // as Linux has it
    run(Command::new("mkfifo").arg(pipe));
    let open = |how: &mut OpenOptions| how.custom_flags(NONBLOCK).open(pipe).unwrap();
    let [reader, mut writer] = [open(OpenOptions::new().read(true)), open(OpenOptions::new().write(true))];
    loop {
        match writer.write(b".") {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return [reader, writer],
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn whoever_shows_the_status_and_reads_nothing_of_it_costs_no_lease() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let [pipe, up, go] = ["pipe", "up", "go"].map(|name| folder.path().join(name));
    let url = etcd_url(&server);
    let ends = full(&pipe);
    let begin = |script: &str| {
        let mut command = hold(&url, "a", &["--status"], script);
        command.stderr(OpenOptions::new().write(true).open(&pipe).unwrap());
        Held::begin(command)
    };
    assert_eq!(begin("true").status(), 0, "it does not wait for a reader for ever");
    let mut held = begin(&format!("echo up > {}; until [ -e {} ]; do sleep 0.05; done", up.display(), go.display()));
    appears(&up);
    sleep(LONG);
    let other = Held::begin(hold(&url, "b", &["--wait", "0s"], "echo no")).end();
    assert_eq!((other.status, other.out.as_str()), (121, ""), "it is not renewed: {other:?}");
    // Somebody reads again.
    let mut reader = File::open(&pipe).unwrap();
    drop(ends);
    let said = thread::spawn(move || {
        let mut said = String::new();
        reader.read_to_string(&mut said).map(|_| said)
    });
    fs::write(&go, "").unwrap();
    assert_eq!(held.status(), 0);
    let said = said.join().unwrap().unwrap();
    let said = said.trim_start_matches('.');
    assert!(said.contains("acquired: ") && said.contains("renewed: ") && said.ends_with("released\n"), "{said}");
}
