//! `fencegate hold` on real lock services: the story, and what is to be said of a command under a lease.

#[path = "hold/again.rs"]
mod again;
#[path = "hold/cluster.rs"]
mod cluster;
#[path = "hold/dynamodb.rs"]
mod dynamodb;
#[path = "hold/gates.rs"]
mod gates;
#[path = "hold/groups.rs"]
mod groups;
#[path = "hold/redlock.rs"]
mod redlock;
#[path = "hold/rows.rs"]
mod rows;
#[path = "hold/tls.rs"]
mod tls;
#[path = "hold/users.rs"]
mod users;
#[path = "hold/worker.rs"]
mod worker;
#[path = "hold/zookeeper.rs"]
mod zookeeper;

use fencegate_tests::{EmulatedGate, Said, Server, fencegate};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use worker::{Begin, Held, PATIENCE, appears, at, etcd_url, hold, is_silent, last, marks, now, postgres_url, signal};

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

#[test]
fn redis_hands_out_one_lease_at_a_time_for_what_that_is_worth() {
    let server = Server::redis();
    let url = format!("redis://127.0.0.1:{}", server.port);
    hands_out_one_lease_at_a_time(&at(&url));
    // A primary is lost before its replica has heard of the lock, as everybody knows: two holders, and the token begins anew.
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let first = Held::begin(hold(&url, "a", &[], &format!("echo $FENCEGATE_TOKEN > {}; sleep 60", up.display())));
    let token = appears(&up);
    assert_eq!(Said::by(Command::new("redis-cli").args(["-p", &server.port.to_string(), "FLUSHALL"])).status, 0);
    let second = Held::begin(hold(&url, "b", &[], "echo $FENCEGATE_TOKEN")).end();
    assert_eq!((second.out.as_str(), token.as_str()), ("1\n", "4"), "that is why it protects no gate");
    let first = first.end();
    assert_eq!(first.status, 122, "it finds out at its next renewal: {first:?}");
    assert!(first.err.contains("the coordinator refused to renew"), "{first:?}");
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

    // Redis does not get to protect a gate, unless somebody says that it protects nothing.
    let (redis, key) = (Server::redis(), gate.key_file());
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let protect = ["--gate", &gate.port, "--key-file", key.to_str().unwrap(), "--channel", "2"];
    let said = Held::begin(hold(&url, "a", &protect, "echo no")).end();
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(
        said.err.contains("coordinator: redis keeps no durable order") && said.err.contains("--efficiency"),
        "{said:?}"
    );
    let said = Held::begin(hold(&url, "a", &[&protect[..], &["--efficiency"]].concat(), "echo yes")).end();
    assert_eq!((said.status, said.out.as_str()), (0, "yes\n"), "{said:?}");

    // The gate's own lease, on the channel that is its own authority.
    let mut own = fencegate();
    own.args(["hold", "--coordinator", &format!("gate:{}", gate.port), "--lock", "3", "--key-file"]).arg(&key);
    own.args(["--ttl", "3s", "--drift", "1000ppm", "--", "sh", "-c", "sleep 2; echo $FENCEGATE_TOKEN"]);
    let said = Said::by(&mut own);
    assert_eq!((said.status, said.out.trim().parse::<u64>().is_ok()), (0, true), "{said:?}");
    // Its token goes back, as it does with a primary that was lost; the gate remembers.
    assert_eq!(Said::by(Command::new("redis-cli").args(["-p", &redis.port.to_string(), "FLUSHALL"])).status, 0);
    let said = Held::begin(hold(&url, "b", &[&protect[..], &["--efficiency"]].concat(), "echo no")).end();
    assert_eq!((said.status, said.out.as_str()), (121, ""), "{said:?}");
    assert!(said.err.contains("a resource has refused the stamp: channel 2: "), "{said:?}");
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
fn a_command_does_not_outlive_the_lease_of_a_holder_that_was_killed() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let url = etcd_url(&server);
    // The holder alone; the watcher sees to it.
    let file = folder.path().join("one");
    let held = Held::begin(hold(&url, "a", &[], &format!("trap '' TERM; {}", marks(&file))));
    appears(&file);
    held.signal("KILL");
    let killed = now();
    let after = folder.path().join("after");
    let next = Held::begin(hold(&url, "b", &[], &format!("cut -d' ' -f1 /proc/uptime > {}", after.display()))).end();
    assert_eq!(next.status, 0, "{next:?}");
    assert!(last(&file) < killed + TTL && last(&file) < last(&after), "the next one began after its end");
    is_silent(&file);

    // Holder and watcher at once: the kernel sees to the command itself.
    let file = folder.path().join("two");
    let held = Held::begin(hold(&url, "a", &[], &format!("trap '' TERM; {}", marks(&file))));
    appears(&file);
    let watcher = Said::by(Command::new("pgrep").args(["-P", &held.0.id().to_string()])).out;
    for pid in [held.0.id().to_string().as_str(), watcher.trim()] {
        signal("KILL", pid);
    }
    sleep(Duration::from_millis(300));
    is_silent(&file);
}

#[test]
fn what_forks_away_is_found_and_ends_with_the_command() {
    let (server, folder) = (Server::etcd(), tempfile::tempdir().unwrap());
    let file = folder.path().join("marks");
    let away = folder.path().join("away");
    fs::write(&away, format!("trap '' TERM HUP\n{}\n", marks(&file))).unwrap();
    // Twice forked, in a session of its own, its parent dead.
    let script = format!(
        "(setsid sh -c '(setsid sh {} &) ; exit' &) ; while [ ! -e {} ]; do sleep 0.05; done; echo ended",
        away.display(),
        file.display()
    );
    let said = Held::begin(hold(&etcd_url(&server), "a", &[], &script)).end();
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "ended\n", ""));
    is_silent(&file);
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

#[test]
fn what_is_wrong_is_one_sentence_and_nothing_is_held() {
    let server = Server::etcd();
    let url = etcd_url(&server);
    let said = |arguments: &[&str]| {
        let said = Said::by(fencegate().arg("hold").args(arguments));
        assert_eq!((said.out.as_str(), said.err.lines().count()), ("", 1), "{said:?}");
        said
    };
    let with = |coordinator: &str, ttl: &str, more: &[&str]| {
        let flags = ["--coordinator", coordinator, "--lock", "x", "--drift", "1ppm", "--ttl", ttl];
        said(&[&flags[..], more].concat())
    };
    let yes: &[&str] = &["--", "true"];
    for (coordinator, ttl, more, status, words) in [
        ("etcd://127.0.0.1:1", "1s", yes, 3, "no answer from the coordinator: etcd: "),
        ("zookeeper://127.0.0.1:1", "1s", yes, 3, "no answer from the coordinator: ZooKeeper: "),
        ("zookeeper://a:b@127.0.0.1", "1s", yes, 2, "coordinator: after zookeeper:// come host:port"),
        ("redis://127.0.0.1:1", "1s", yes, 3, "no answer from the coordinator: Redis: "),
        ("postgres://127.0.0.1:1/x?user=x", "1s", yes, 3, "no answer from the coordinator: PostgreSQL: "),
        (
            "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
            "1s",
            yes,
            3,
            "Redlock: 0 of 3 servers answered; no answer: Redis",
        ),
        ("redlock://127.0.0.1:1,127.0.0.1:1", "1s", yes, 2, "coordinator: Redlock: a server is named twice"),
        ("redlock://", "1s", yes, 2, "coordinator: after redlock:// come host:port"),
        ("paper://desk", "1s", yes, 2, "coordinator: `paper://desk`: one of etcd://"),
        ("etcd://", "1s", yes, 2, "coordinator: after etcd:// come host:port"),
        (&url, "1500ms", yes, 2, "ttl_us: etcd takes whole seconds"),
        (&url, "1s", &["--rtt", "400ms", "--kill-before", "100ms", "--", "true"], 2, "rtt_us: "),
        (&url, "1s", &["--kill-before", "1s", "--", "true"], 2, "kill_before_us: "),
        (&url, "1s", &["--holder", "twelve-bytes", "--", "true"], 2, "holder: `--holder twelve-bytes`"),
        (&url, "3s", &["--", "/nowhere/nothing"], 127, "command: `/nowhere/nothing`: there is none"),
        (&url, "3s", &["--", "/etc/passwd"], 126, "command: `/etc/passwd` is not a program"),
        (&url, "3s", &["--gate", "tcp://127.0.0.1:1", "--", "true"], 2, "key_file: missing"),
    ] {
        let said = with(coordinator, ttl, more);
        assert_eq!(said.status, status, "{coordinator} {ttl} {more:?}: {said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    let odd = "ü 'x' \"y\" $z; --";
    let arguments = ["hold", "--coordinator", &url, "--lock", odd, "--drift", "1ppm", "--ttl", "2s", "--", "true"];
    let said = Said::by(fencegate().args(arguments));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "any name that can be read is a name");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");
    assert_eq!(Said::by(&mut server.etcdctl(&["lease", "list"])).out.trim(), "found 0 leases");
}

#[test]
fn the_doctor_measures_the_way_and_leaves_nothing_behind() {
    let (server, gate) = (Server::etcd(), EmulatedGate::new());
    let url = etcd_url(&server);
    let mut doctor = fencegate();
    doctor.args(["doctor", "--coordinator", &url, "--look", "500ms", "--samples", "5", "--work", "200ms", "--json"]);
    let said = Said::by(doctor.args(["--gate", &gate.port, "--key-file"]).arg(gate.key_file()));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said:?}");
    let found = said.json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{value}: {found}"));
    let (coordinator, at_gate) = (&found["coordinator"], &found["gate"]);
    assert_eq!((number(&coordinator["calls"]), number(&at_gate["calls"])), (6, 5));
    let worst = number(&coordinator["worst_us"]);
    assert!(number(&coordinator["median_us"]) <= worst);
    let size = &found["size"];
    assert_eq!(number(&size["rtt_us"]), 2 * worst, "samples are no bound");
    assert_eq!(number(&size["work_us"]), 200_000 + 4 * number(&at_gate["worst_us"]));
    assert_eq!(number(&size["drift_ppb"]), number(&found["clock_drift_ppb"]) + 500_000);
    assert!(number(&found["clock_drift_ppb"]) >= 500_000);
    assert_eq!(number(&found["ttl_us"]) % 1_000_000, 0, "whole seconds, as etcd takes them");
    assert_eq!(Said::by(&mut server.etcdctl(&["get", "--prefix", ""])).out, "", "nothing is left");

    let said = Said::by(fencegate().args(["doctor", "--look", "10ms"]));
    assert!(said.status == 0 && said.out.contains("no coordinator was asked"), "{said:?}");
    let said = Said::by(fencegate().args(["doctor", "--look", "10ms", "--coordinator", "etcd://127.0.0.1:1"]));
    assert_eq!((said.status, said.out.as_str(), said.err.lines().count()), (3, "", 1), "{said:?}");
}
