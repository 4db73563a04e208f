use super::*;
use crate::runner::Runner;
use fencegate::{Drift, Plan};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

fn lock(name: &str) -> Zookeeper {
    Zookeeper::new("127.0.0.1:1", None, &Access::default(), name, HolderId::new("press-a#9f3c").unwrap())
}

#[test]
fn any_name_is_one_part_of_a_path() {
    for (name, folder) in [
        ("press-7", "/fencegate/press-7"),
        ("a/b", "/fencegate/a%2Fb"),
        ("..", "/fencegate/%2E%2E"),
        ("ü %", "/fencegate/%C3%BC%20%25"),
    ] {
        assert_eq!(lock(name).folder, folder);
    }
}

#[test]
fn the_lowest_number_is_first_and_what_comes_after_the_highest_is_refused() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let lock = lock("press-7");
    let mixed = names(&["epoch", "lease-b-2%23x.2147483647", "lease-press-a%239f3c.0000000009"]);
    let paths: Vec<_> = lock.in_order(&mixed).unwrap().into_iter().map(|lease| lease.path).collect();
    let [first, second] = ["lease-press-a%239f3c.0000000009", "lease-b-2%23x.2147483647"];
    assert_eq!(paths, [first, second].map(|name| format!("/fencegate/press-7/{name}")));
    for wrong in ["lease-a.-2147483648", "lease-a.-000000009", "lease-a.000000001x", "lease-", "lease-a0000000001"] {
        let why = lock.in_order(&names(&[wrong])).unwrap_err().to_string();
        assert!(why.contains("delete /fencegate/press-7"), "{why}");
    }
}

/// ZooKeeper itself, where Debian puts it, with ticks of half a second.
struct Server {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Server {
    async fn start() -> Self {
        const CLASSES: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (data, place) = (folder.path().join("data"), "clientPortAddress=127.0.0.1\nadmin.enableServer=false");
        let config = format!("tickTime=500\ndataDir={}\nclientPort={port}\n{place}\n", data.display());
        std::fs::write(folder.path().join("zoo.cfg"), config).unwrap();
        let mut java = Command::new("java");
        java.args(["-Xmx128m", "-Dzookeeper.forceSync=no", "-cp", CLASSES]);
        java.args(["org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]).current_dir(folder.path());
        let child = java.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { child, port, _folder: folder };
        // Whom it accepts before it serves, it may never answer.
        let patience = std::time::Duration::from_secs(1);
        while !tokio::time::timeout(patience, server.serves()).await.unwrap_or(false) {
            sleep(std::time::Duration::from_millis(50)).await;
        }
        server
    }

    async fn serves(&self) -> bool {
        let Ok(mut line) = TcpStream::connect(("127.0.0.1", self.port)).await else { return false };
        let mut said = String::new();
        line.write_all(b"srvr").await.is_ok()
            && line.read_to_string(&mut said).await.is_ok()
            && said.contains("Mode: standalone")
    }

    fn lock(&self, holder: &str) -> (Arc<Zookeeper>, Runner) {
        let holder = HolderId::new(holder).unwrap();
        let servers = format!("127.0.0.1:{}", self.port);
        let lock = Arc::new(Zookeeper::new(&servers, None, &Access::default(), "press-7", holder));
        let plan = Plan::for_ttl(Duration::from_secs(3)).drift(Drift::from_ppm(1_000));
        let plan = plan.round_trip(Duration::from_millis(100));
        (lock.clone(), Runner::new(lock, plan, holder).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client pings for as long as it lives. A lease that nobody renews is not to live as long.
#[tokio::test]
async fn a_session_ends_with_the_lease_whoever_keeps_the_coordinator() {
    let server = Server::start().await;
    let patience = std::time::Duration::from_mins(1);
    let next = async |holder| {
        let (_, runner) = server.lock(holder);
        let held = runner.hold(CancellationToken::new(), |lease| std::future::ready(lease.stamp().token));
        tokio::time::timeout(patience, held).await.expect("the lock was given up").unwrap().output
    };

    // A worker that hangs, and never returns.
    let (hangs, runner) = server.lock("hangs#1");
    let runner = runner.progress_within(Duration::from_secs(1));
    let (up, began) = tokio::sync::oneshot::channel();
    let hung = tokio::spawn(runner.hold(CancellationToken::new(), |lease| async move {
        up.send(lease.stamp().token).unwrap();
        std::future::pending::<()>().await;
    }));
    let token = began.await.unwrap();
    let after = next("next#1").await;
    assert!(after > token && !hung.is_finished());

    // One whose future is dropped.
    let (dropped, runner) = server.lock("dropped#1");
    let (up, began) = tokio::sync::oneshot::channel();
    let held = tokio::spawn(runner.hold(CancellationToken::new(), |lease| async move {
        up.send(lease.stamp().token).unwrap();
        std::future::pending::<()>().await;
    }));
    let token = began.await.unwrap();
    held.abort();
    assert!(next("next#2").await > token);
    drop((hangs, dropped));
}
