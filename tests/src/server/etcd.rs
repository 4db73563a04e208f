//! etcd's members.

use super::{READY, Server, free_port, kept};
use crate::Authority;
use crate::network::Network;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where a member listens: its address, its port for clients, and the one for the other members.
type Place = (String, u16, u16);

impl Server {
    /// One member of etcd, a cluster of its own.
    ///
    /// # Panics
    /// Where it does not start, or has no leader.
    pub fn etcd() -> Self {
        let [one] = Self::etcd_cluster::<1>();
        one
    }

    /// The same, whose elections are so slow that no lease is shorter than 6 s.
    ///
    /// # Panics
    /// As [`Self::etcd`].
    pub fn etcd_with_long_leases() -> Self {
        let places = [("127.0.0.1".to_owned(), free_port(), free_port())];
        let [one] = Self::etcd_cluster_at(&places, |_| {
            let mut command = kept(None, "etcd");
            command.args(["--election-timeout", "4000"]);
            command
        });
        one
    }

    /// A cluster of etcd.
    ///
    /// # Panics
    /// Where a member does not start, or there is no leader.
    pub fn etcd_cluster<const N: usize>() -> [Self; N] {
        let places = [(); N].map(|()| ("127.0.0.1".to_owned(), free_port(), free_port()));
        Self::etcd_cluster_at(&places, |_| kept(None, "etcd"))
    }

    /// A cluster of etcd, each member on a machine of its own.
    ///
    /// # Panics
    /// As [`Self::etcd_cluster`].
    pub fn etcd_cluster_on<const N: usize>(network: &Network) -> [Self; N] {
        let places = std::array::from_fn(|n| (network.address(n), 2379, 2380));
        Self::etcd_cluster_at(&places, |n| {
            let mut command = kept(None, "ip");
            command.args(["netns", "exec", &network.machine(n), "etcd"]);
            command
        })
    }

    fn etcd_cluster_at<const N: usize>(places: &[Place; N], command: impl Fn(usize) -> Command) -> [Self; N] {
        Self::etcd_members(places, command, |_, _, _| {})
    }

    /// The members of a cluster, each in a folder of its own, which `prepare` finds empty: its number, that folder, and who
    /// belongs to the cluster.
    fn etcd_members<const N: usize>(
        places: &[Place; N],
        command: impl Fn(usize) -> Command,
        prepare: impl Fn(usize, &Path, &str),
    ) -> [Self; N] {
        let member = |(n, (host, _, peer)): (usize, &Place)| format!("m{n}=http://{host}:{peer}");
        let members = places.iter().enumerate().map(member).collect::<Vec<_>>().join(",");
        let cluster = std::array::from_fn(|n| {
            let folder = tempfile::tempdir().unwrap();
            prepare(n, folder.path(), &members);
            Self::etcd_member(command(n), n, &places[n], &members, folder)
        });
        for server in &cluster {
            server.has_a_leader(&mut server.etcdctl(&["endpoint", "health"]));
        }
        cluster
    }

    fn has_a_leader(&self, health: &mut Command) {
        let begun = Instant::now();
        while !health.output().unwrap().status.success() {
            assert!(begun.elapsed() < READY, "no leader: {}", self.said());
            sleep(Duration::from_millis(50));
        }
    }

    fn etcd_member(
        mut command: Command,
        n: usize,
        (host, port, peer): &Place,
        cluster: &str,
        folder: tempfile::TempDir,
    ) -> Self {
        let (client, peer) = (format!("http://{host}:{port}"), format!("http://{host}:{peer}"));
        command.args(["--name", &format!("m{n}"), "--data-dir"]).arg(folder.path().join("data"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", cluster, "--unsafe-no-fsync"]);
        Self::start_at(&mut command, host, *port, folder, None)
    }

    /// One member of etcd, a cluster of its own, that speaks TLS alone.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn etcd_in_tls(authority: &Authority) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let (client, peer) = (format!("https://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", free_port()));
        let mut command = kept(None, "etcd");
        command.args(["--name", "m0", "--data-dir"]).arg(folder.path().join("data")).arg("--unsafe-no-fsync");
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("m0={peer}"), "--cert-file"]).arg(authority.certificate());
        let server = Self::start(command.arg("--key-file").arg(authority.key()), port, folder, None);
        let mut health = Command::new("etcdctl");
        health.env("ETCDCTL_API", "3").env("ETCDCTL_CACERT", authority.ca()).env("ETCDCTL_ENDPOINTS", client);
        health.args(["endpoint", "health"]);
        server.has_a_leader(&mut health);
        server
    }

    /// Takes a whole cluster back to an earlier snapshot of it, revisions and all: every member is killed, and has the same
    /// data anew, in one new cluster. They answer where they did before.
    ///
    /// # Panics
    /// Where the snapshot cannot be restored.
    #[must_use]
    pub fn etcd_restored<const N: usize>(mut cluster: [Self; N], snapshot: &Path) -> [Self; N] {
        cluster.iter_mut().for_each(Self::kill);
        let places = cluster.each_ref().map(|member| (member.host.clone(), member.port, free_port()));
        Self::etcd_members(
            &places,
            |_| kept(None, "etcd"),
            |n, folder, members| {
                let mut restore = Command::new("etcdctl");
                restore.env("ETCDCTL_API", "3").args(["snapshot", "restore"]).arg(snapshot);
                restore.args(["--name", &format!("m{n}"), "--initial-cluster", members]);
                restore.args(["--initial-advertise-peer-urls", &format!("http://{}:{}", places[n].0, places[n].2)]);
                let made = restore.arg("--data-dir").arg(folder.join("data")).output().unwrap();
                assert!(made.status.success(), "{made:?}");
            },
        )
    }

    /// Whether this member of etcd leads.
    ///
    /// # Panics
    /// Where it does not say.
    pub fn leads(&self) -> bool {
        let said = self.etcdctl(&["endpoint", "status", "--write-out", "json"]).output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        let status = &said[0]["Status"];
        status["header"]["member_id"] == status["leader"]
    }

    /// `etcdctl` for it.
    pub fn etcdctl(&self, words: &[&str]) -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", format!("http://{}:{}", self.host, self.port));
        command.args(words).stdin(Stdio::null());
        command
    }
}
