//! `fencegate hold` on real lock services: the story, and what is to be said of a command under a lease.

#[path = "hold/again.rs"]
mod again;
#[path = "hold/cluster.rs"]
mod cluster;
#[path = "hold/descendants.rs"]
mod descendants;
#[path = "hold/doctor.rs"]
mod doctor;
#[path = "hold/dynamodb.rs"]
mod dynamodb;
#[path = "hold/gate.rs"]
mod gate;
#[path = "hold/groups.rs"]
mod groups;
#[path = "hold/least.rs"]
mod least;
#[path = "hold/library.rs"]
mod library;
#[path = "hold/redis.rs"]
mod redis;
#[path = "hold/redlock.rs"]
mod redlock;
#[path = "hold/rows.rs"]
mod rows;
#[path = "hold/signals.rs"]
mod signals;
#[path = "hold/stalls.rs"]
mod stalls;
#[path = "hold/tls.rs"]
mod tls;
#[path = "hold/unheard.rs"]
mod unheard;
#[path = "hold/unraised.rs"]
mod unraised;
#[path = "hold/users.rs"]
mod users;
#[path = "hold/worker.rs"]
mod worker;
#[path = "hold/wrong.rs"]
mod wrong;
#[path = "hold/zookeeper.rs"]
mod zookeeper;

use fencegate_tests::{EmulatedGate, Said, Server, example, fencegate};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};
use worker::{
    Begin, Held, PATIENCE, Shown, appears, at, etcd_url, hold, is_silent, last, marks, now, on_a_terminal,
    postgres_url, shown, signal,
};

const TTL: u64 = 3_000_000;

/// What every coordinator is to do: hand out tokens that go up, keep others out, and have nothing left afterwards.
fn hands_out_one_lease_at_a_time(run: Begin) {
    let folder = tempfile::tempdir().unwrap();
    let token = |said: Said| {
        assert_eq!((said.status, said.err.as_str()), (0, ""));
        said.out.trim().parse::<u64>().unwrap_or_else(|_| panic!("{said:?}"))
    };
    let first = token(run("a", &[], "echo $FENCEGATE_TOKEN").end());

    // It outlives its TTL by being renewed, and keeps the others out for as long.
    let script = format!("echo $FENCEGATE_TOKEN; echo up > {0}/up; sleep 4", folder.path().display());
    let second = run("a", &[], &script);
    appears(&folder.path().join("up"));
    let refused = run("b", &["--wait", "0s"], "echo no").end();
    assert_eq!((refused.status, refused.out.as_str()), (121, ""), "{refused:?}");
    assert!(refused.err.contains("the lease was not acquired: another holds the lock"), "{refused:?}");
    let begun = Instant::now();
    let third = run("b", &[], "echo $FENCEGATE_TOKEN");
    let (second, third) = (token(second.end()), token(third.end()));
    assert!(first < second && second < third, "{first} {second} {third}");
    assert!(begun.elapsed() > Duration::from_secs(3), "it was held for longer than one TTL");
}

#[test]
fn etcd_hands_out_one_lease_at_a_time_and_keeps_the_operators_epoch() {
    let server = Server::etcd();
    let url = etcd_url(&server);
    hands_out_one_lease_at_a_time(&at(&url));
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");
    assert_eq!(Said::by(&mut server.etcdctl(&["lease", "list"])).out.trim(), "found 0 leases");

    assert_eq!(Said::by(&mut server.etcdctl(&["put", "press-7/epoch", "3"])).status, 0);
    let epoch = "echo $FENCEGATE_EPOCH $FENCEGATE_HOLDER";
    assert_eq!(Held::begin(hold(&url, "a#1", &[], epoch)).end().out, "3 a#1\n");
    assert_eq!(Held::begin(hold(&url, "a#1", &["--epoch", "4"], epoch)).end().out, "4 a#1\n");
    let said = Held::begin(hold(&url, "a", &["--epoch", "2"], epoch)).end();
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains("epoch: 2 is below the one that is kept beside the lock, 3"), "{said:?}");
}

#[test]
fn postgresql_hands_out_one_lease_at_a_time() {
    let server = Server::postgres();
    hands_out_one_lease_at_a_time(&at(&postgres_url(&server)));
    let said = Said::by(&mut server.psql(&["-c", "SELECT count(*) FROM fencegate_lease WHERE ends > now()"]));
    assert_eq!(said.out, "0\n", "nothing is left: {said:?}");
    let said =
        Said::by(&mut server.psql(&["-c", "UPDATE fencegate_lease SET epoch = epoch + 1 WHERE lock = 'press-7'"]));
    assert_eq!(said.status, 0, "{said:?}");
    assert_eq!(Held::begin(hold(&postgres_url(&server), "a", &[], "echo $FENCEGATE_EPOCH")).end().out, "1\n");
    let nowhere = postgres_url(&server).replace("/postgres", "/nowhere");
    let said = Held::begin(hold(&nowhere, "a", &[], "echo no")).end();
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains("coordinator: PostgreSQL: database \"nowhere\" does not exist"), "{said:?}");
}

/// A is frozen past its TTL, whole as it is; B takes over; A is let go on, and its late commands come.
fn story(run: Begin, gate: &EmulatedGate, channel: &str, rows: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let program = fencegate().get_program().to_string_lossy().into_owned();
    let key = gate.key_file();
    let (key, at_gate) = (key.to_str().unwrap(), gate.port.as_str());
    let protect = ["--gate", at_gate, "--key-file", key, "--channel", channel];

    // A command at the gate and a write into a guarded row, both under the lease.
    let guard = file("guard.sql");
    let printed = Said::by(fencegate().args(["guard", "postgres"]));
    fs::write(&guard, printed.out).unwrap();
    let act = |value: u8| {
        format!(
            "{program} gate --port {at_gate} --key-file {key} --json drive --channel {channel} --token $FENCEGATE_TOKEN \
             --epoch $FENCEGATE_EPOCH --holder $FENCEGATE_HOLDER --value {value} --window 2s; \
             psql -X -A -t -h 127.0.0.1 -p {} -U tester -d postgres -v resource={channel} -v epoch=$FENCEGATE_EPOCH \
             -v token=$FENCEGATE_TOKEN -v holder=$FENCEGATE_HOLDER -v seq={} -v value=$FENCEGATE_HOLDER -f {}; ",
            rows.port,
            value + 1,
            guard.display(),
        )
    };
    // The worker waits in a system call of its own, so that it alone can be let go on.
    let script = format!(
        "{} mkfifo {f}/go; echo $$ > {f}/pid; read go < {f}/go; ({}) > {f}/late 2>&1; echo end >> {f}/late; sleep 60",
        act(1),
        act(0),
        f = folder.path().display()
    );
    let a = run("a#1", &protect, &script);
    let worker = appears(&file("pid"));
    a.signal_all("STOP");

    let b = run("b#1", &protect, &act(1)).end();
    assert_eq!(b.status, 0, "{b:?}");
    assert!(b.out.contains("\"done\":true") && b.out.contains("UPDATE 1\n"), "{b:?}");

    // The worker alone goes on first: nobody has looked at a clock when its commands leave.
    signal("CONT", &worker);
    fs::write(file("go"), "\n").unwrap();
    let begun = Instant::now();
    let late = loop {
        let late = fs::read_to_string(file("late")).unwrap_or_default();
        if late.ends_with("end\n") {
            break late;
        }
        assert!(begun.elapsed() < PATIENCE, "{late}");
        sleep(Duration::from_millis(20));
    };
    assert!(late.contains("\"reason\":\"stale\"") && late.contains("\"holder\":\"b#1\""), "{late}");
    assert!(late.contains("UPDATE 0\n") && !late.contains("UPDATE 1\n"), "{late}");
    let row = Said::by(&mut rows.psql(&["-c", &format!("SELECT value FROM fenced WHERE resource = '{channel}'")]));
    assert_eq!(row.out, "b#1\n");

    // The others wake up, and see what has happened.
    a.signal_all("CONT");
    let a = a.end();
    assert_eq!(a.status, 122, "{a:?}");
    assert!(a.err.contains("the lease was lost, and the command was stopped: the window is over"), "{a:?}");
}

#[test]
fn a_late_command_meets_the_fence_whoever_keeps_the_lease() {
    let (gate, rows) = (EmulatedGate::new(), Server::postgres());
    story(&at(&etcd_url(&Server::etcd())), &gate, "0", &rows);
    story(&at(&postgres_url(&rows)), &gate, "1", &rows);
}

#[test]
fn a_command_that_does_not_listen_is_dead_before_the_window_closes() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let file = folder.path().join("marks");
    let script = format!("trap '' TERM; {}", marks(&file));
    let held = Held::begin(hold(&etcd_url(&server), "a", &[], &script));
    appears(&file);
    server.signal("STOP");
    let frozen = now();
    let said = held.end();
    server.signal("CONT");
    assert_eq!(said.status, 122, "{said:?}");
    assert!(said.err.contains("no answer for a third of the lease"), "{said:?}");
    assert!(last(&file) < frozen + TTL, "no window reaches further than a TTL past the last answer");
    is_silent(&file);
}

#[test]
fn signals_and_exit_statuses_go_through() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let url = etcd_url(&server);
    let run = |script: &str| Held::begin(hold(&url, "a", &[], script)).end();
    assert_eq!(run("exit 7").status, 7);
    assert_eq!(run("kill -9 $$").status, 128 + 9);
    let up = folder.path().join("up");
    let script = "trap 'echo asked; exit 5' TERM; trap 'echo poked' USR1; echo up > UP; while :; do sleep 0.05; done";
    let held = Held::begin(hold(&url, "a", &[], &script.replace("UP", up.to_str().unwrap())));
    appears(&up);
    held.signal("USR1");
    sleep(Duration::from_millis(300));
    held.signal("TERM");
    let said = held.end();
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (5, "poked\nasked\n", ""));
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");
}

#[test]
fn a_terminal_shows_the_window_running_down() {
    let server = Server::etcd();
    let held = hold(&etcd_url(&server), "a", &["--status"], "sleep 3");
    let said = Held::begin(on_a_terminal(&held)).end();
    assert_eq!(said.status, 0, "{said:?}");
    let shown = shown(&said.out);
    let [Shown::Granted(whole), ..] = shown[..] else { panic!("{said:?}") };
    assert!(shown.iter().any(|one| matches!(one, Shown::Renewed(_))), "{said:?}");
    let runs_down = |pair: &[Shown]| matches!(pair, [Shown::Left(before), Shown::Left(after)] if after < before);
    assert!(whole <= TTL && shown.windows(2).any(runs_down), "{said:?}");
    assert!(said.out.contains("\r\u{1b}[Kwindow: ") && said.out.ends_with("\r\u{1b}[Kreleased\r\n"), "{said:?}");
    // And for whoever is no terminal there are lines alone.
    let said = Held::begin(held).end();
    assert!(said.status == 0 && !said.err.contains('\r') && !said.err.contains(" left"), "{said:?}");
}

#[test]
fn a_worker_that_hangs_loses_the_lease_though_its_renewals_go_on() {
    let server = Server::etcd();
    let url = etcd_url(&server);
    let tell = "perl -MIO::Socket::UNIX -e \
                'IO::Socket::UNIX->new(Type => SOCK_DGRAM, Peer => $ENV{NOTIFY_SOCKET})->send(q(WATCHDOG=1))'";
    let flags = ["--progress", "2s", "--status"];
    let script = format!("for n in 1 2 3; do sleep 1; {tell}; done; echo well");
    let said = Held::begin(hold(&url, "a", &flags, &script)).end();
    assert_eq!((said.status, said.out.as_str()), (0, "well\n"), "{said:?}");
    assert!(said.err.starts_with("acquired: epoch 0 token ") && said.err.ends_with("released\n"), "{said:?}");

    let said = Held::begin(hold(&url, "a", &flags, "sleep 60")).end();
    assert_eq!(said.status, 122, "{said:?}");
    assert!(
        said.err.contains("renewed: window ") && said.err.contains("stopped: no progress was reported"),
        "{said:?}"
    );
    let said = Held::begin(hold(&url, "a", &["--longest", "2s"], "sleep 60")).end();
    assert!(said.status == 122 && said.err.contains("held for as long as it may be"), "{said:?}");
}
