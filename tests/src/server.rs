//! Lock services and stores as Debian packs them: started on 127.0.0.1, on a port and in a folder of their own, and killed
//! when they are dropped.

mod aws;
mod etcd;
mod gcs;
mod zookeeper;

use crate::Authority;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take until it answers, on a machine that does much else.
const READY: Duration = Duration::from_mins(1);

const POSTGRES_PASSWORD: &str = "only-in-a-file";

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens: 127.0.0.1, unless it has a machine of its own.
    pub host: String,
    /// On which port.
    pub port: u16,
    folder: tempfile::TempDir,
    /// Whose process it is, where it refuses to be root's.
    user: Option<&'static str>,
}

/// A port that nobody listens on, and that nobody else here gets. It is none of those that the system gives to whoever asks for
/// any (Linux: from 32,768 on), so that no connection takes it before the server does.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = process::id().wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(10_000 + next % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A command that dies with the thread that starts it, even where that is killed, and runs as `user`.
pub(crate) fn kept(user: Option<&str>, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command.arg("--").arg(program).stdin(Stdio::null());
    command
}

/// Whether this is root, who may do what others may not.
///
/// # Panics
/// Where the system does not say who this is.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0"
}

impl Server {
    fn start(command: &mut Command, port: u16, folder: tempfile::TempDir, user: Option<&'static str>) -> Self {
        Self::start_at(command, "127.0.0.1", port, folder, user)
    }

    fn start_at(
        command: &mut Command,
        host: &str,
        port: u16,
        folder: tempfile::TempDir,
        user: Option<&'static str>,
    ) -> Self {
        let said = File::options().create(true).append(true).open(folder.path().join("said")).unwrap();
        command.stdout(said.try_clone().unwrap()).stderr(said).current_dir(folder.path());
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut server = Self { child, host: host.to_owned(), port, folder, user };
        let begun = Instant::now();
        while TcpStream::connect((host, port)).is_err() {
            let gone = server.child.try_wait().unwrap();
            assert!(gone.is_none() && begun.elapsed() < READY, "{command:?} ({gone:?}): {}", server.said());
            sleep(Duration::from_millis(20));
        }
        server
    }

    /// `redis-server` without a disk.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn redis() -> Self {
        let port = free_port();
        Self::redis_with(port, &["--port", &port.to_string()])
    }

    fn redis_with(port: u16, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = kept(None, "redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]).args(words);
        Self::start(&mut command, port, folder, None)
    }

    /// The same, in TLS alone, with the password `secret`.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn redis_in_tls(authority: &Authority) -> Self {
        let port = free_port();
        let (certificate, key, ca) = (authority.certificate(), authority.key(), authority.ca());
        let [certificate, key, ca] = [&certificate, &key, &ca].map(|file| file.to_str().unwrap());
        let tls = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", ca];
        let port_words = ["--port", "0", "--tls-port", &port.to_string(), "--tls-auth-clients", "no"];
        Self::redis_with(port, &[&port_words[..], &tls, &["--requirepass", "secret"]].concat())
    }

    /// `PostgreSQL`, with the one user `tester` and the one database `postgres`.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn postgres() -> Self {
        Self::postgres_with(None)
    }

    /// The same, which lets nobody in without TLS and the password `only-in-a-file`.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn postgres_in_tls(authority: &Authority) -> Self {
        Self::postgres_with(Some(authority))
    }

    fn postgres_with(tls: Option<&Authority>) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        // It refuses to run as root; its package brings a user.
        let user = is_root().then_some("postgres");
        if let Some(user) = user {
            assert!(Command::new("chown").args([user, "."]).current_dir(folder.path()).status().unwrap().success());
        }
        let programs = Self::postgres_programs();
        let data = folder.path().join("data");
        let mut init = kept(user, programs.join("initdb"));
        let password = folder.path().join("password");
        fs::write(&password, POSTGRES_PASSWORD).unwrap();
        init.arg("--pgdata")
            .arg(&data)
            .args(["--username", "tester", "--auth", "trust", "--no-sync", "--pwfile"])
            .arg(password);
        init.args(["--encoding", "UTF8", "--locale", "C.UTF-8"]).current_dir(folder.path());
        let made = init.output().unwrap();
        assert!(made.status.success(), "{init:?}: {made:?}");
        let mut command = kept(user, programs.join("postgres"));
        command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", "", "-F"]);
        if let Some(authority) = tls {
            let own = |from: PathBuf, name: &str| {
                let file = data.join(name);
                fs::copy(from, &file).unwrap();
                fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
                let user = user.unwrap_or("0");
                assert!(user == "0" || Command::new("chown").arg(user).arg(&file).status().unwrap().success());
            };
            own(authority.certificate(), "server.crt");
            own(authority.key(), "server.key");
            fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256\n").unwrap();
            command.args(["-c", "ssl=on"]);
        }
        let server = Self::start(&mut command, port, folder, user);
        let begun = Instant::now();
        while !server.psql(&["-c", "SELECT 1"]).output().unwrap().status.success() {
            assert!(begun.elapsed() < READY, "{}", server.said());
            sleep(Duration::from_millis(50));
        }
        server
    }

    /// MariaDB, with the user `root` without a password, and the database `test`.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn mariadb() -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let user = is_root().then_some("mysql");
        if let Some(user) = user {
            assert!(Command::new("chown").args([user, "."]).current_dir(folder.path()).status().unwrap().success());
        }
        let data = format!("--datadir={}", folder.path().join("data").display());
        let mut init = kept(user, "mariadb-install-db");
        init.args(["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-name-resolve"]);
        let made = init.current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{init:?}: {made:?}");
        let mut command = kept(user, "/usr/sbin/mariadbd");
        command.args(["--no-defaults", &data, "--bind-address=127.0.0.1", &format!("--port={port}")]);
        command.arg(format!("--socket={}", folder.path().join("socket").display()));
        command.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-name-resolve"]);
        let server = Self::start(&mut command, port, folder, user);
        let begun = Instant::now();
        while !server.mariadb_client(&["-e", "CREATE DATABASE IF NOT EXISTS test"]).output().unwrap().status.success() {
            assert!(begun.elapsed() < READY, "{}", server.said());
            sleep(Duration::from_millis(50));
        }
        server
    }

    /// `mariadb` for it: bare rows.
    pub fn mariadb_client(&self, words: &[&str]) -> Command {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "-h", "127.0.0.1", "-P", &self.port.to_string(), "-u", "root", "-N", "-B"]);
        command.args(words).stdin(Stdio::null());
        command
    }

    /// Where Debian puts the programs of the newest version.
    fn postgres_programs() -> PathBuf {
        let mut versions: Vec<u32> = fs::read_dir("/usr/lib/postgresql")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
            .collect();
        versions.sort_unstable();
        PathBuf::from(format!("/usr/lib/postgresql/{}/bin", versions.last().unwrap()))
    }

    /// `psql` for it: bare rows, the first error ends it.
    pub fn psql(&self, words: &[&str]) -> Command {
        let mut command = Command::new("psql");
        command.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        command.args(["-U", "tester", "-d", "postgres"]).args(words).stdin(Stdio::null());
        command.env("PGPASSWORD", POSTGRES_PASSWORD);
        command
    }

    /// A folder that only it and the test use.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it has said.
    ///
    /// # Panics
    /// Where that cannot be read.
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }

    /// Sends it a signal: `STOP` freezes it, `CONT` lets it go on.
    ///
    /// # Panics
    /// Where it cannot be sent.
    pub fn signal(&self, name: &str) {
        assert!(Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Kills it now.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if self.user.is_some() {
            // Its children notice a moment later, and write into the folder until then.
            let data = self.folder.path().join("data");
            let begun = Instant::now();
            while data.exists() && fs::remove_dir_all(&data).is_err() && begun.elapsed() < READY {
                sleep(Duration::from_millis(50));
            }
        }
    }
}
