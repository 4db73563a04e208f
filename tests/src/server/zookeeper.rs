//! ZooKeeper's servers.

use super::{READY, Server, free_port, kept};
use crate::Said;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where Debian puts ZooKeeper's classes, and what shows its log.
const ZOOKEEPER: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";

impl Server {
    /// One server of ZooKeeper, alone, with ticks of half a second, sessions of a minute at the most, and without waiting for
    /// its disk.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn zookeeper() -> Self {
        let server = Self::zookeeper_member(free_port(), None, "");
        server.is_ready();
        server
    }

    /// The same, with sessions of 12 s at the least.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn zookeeper_with_long_sessions() -> Self {
        let server = Self::zookeeper_member(free_port(), None, "minSessionTimeout=12000\n");
        server.is_ready();
        server
    }

    /// An ensemble of ZooKeeper's. A server that is cut off from its leader goes on answering for 20 ticks, 10 s.
    ///
    /// # Panics
    /// Where a server does not start, or there is no leader.
    pub fn zookeeper_ensemble<const N: usize>() -> [Self; N] {
        let ports = [(); N].map(|()| (free_port(), free_port(), free_port()));
        let members = ports.iter().enumerate();
        let members = members.map(|(n, (_, peer, vote))| format!("server.{}=127.0.0.1:{peer}:{vote}\n", n + 1));
        let ensemble = format!("initLimit=40\nsyncLimit=20\n{}", members.collect::<String>());
        let mut n = 0;
        let servers = ports.map(|(port, ..)| {
            n += 1;
            Self::zookeeper_member(port, Some(n), &ensemble)
        });
        servers.iter().for_each(Self::is_ready);
        servers
    }

    /// With more to its configuration; and its number, where it is one of several.
    fn zookeeper_member(port: u16, n: Option<usize>, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let config = format!(
            "tickTime=500\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
             maxSessionTimeout=60000\n4lw.commands.whitelist=srvr,cons\n{more}",
            data.display()
        );
        if let Some(n) = n {
            fs::write(data.join("myid"), n.to_string()).unwrap();
        }
        fs::write(folder.path().join("zoo.cfg"), config).unwrap();
        let mut command = kept(None, "java");
        command.args(["-Xmx128m", "-Dzookeeper.forceSync=no", "-cp", ZOOKEEPER]);
        command.args(["org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]);
        Self::start(&mut command, port, folder, None)
    }

    /// Waits until it serves.
    fn is_ready(&self) {
        let begun = Instant::now();
        while Said::by(&mut self.zookeeper_client(&["ls", "/"])).status != 0 {
            assert!(begun.elapsed() < READY, "{}", self.said());
            sleep(Duration::from_millis(50));
        }
    }

    /// Whether this server of ZooKeeper follows another.
    ///
    /// # Panics
    /// Where it does not say.
    pub fn follows(&self) -> bool {
        let said = self.zookeeper_says("srvr");
        assert!(said.contains("Mode: "), "{said}");
        said.contains("Mode: follower")
    }

    /// What it says to a word of four letters: `srvr`, of itself; `cons`, of its sessions.
    ///
    /// # Panics
    /// Where it does not answer.
    pub fn zookeeper_says(&self, word: &str) -> String {
        let mut line = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        line.write_all(word.as_bytes()).unwrap();
        let mut said = String::new();
        line.read_to_string(&mut said).unwrap();
        said
    }

    /// Its own client for it, for one command.
    pub fn zookeeper_client(&self, words: &[&str]) -> Command {
        let mut command = Command::new("java");
        command.args(["-Xmx64m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", ZOOKEEPER]);
        command.args(["org.apache.zookeeper.ZooKeeperMain", "-server", &format!("127.0.0.1:{}", self.port)]);
        command.args(words).stdin(Stdio::null());
        command
    }
}
