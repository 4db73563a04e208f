//! An authority that vouches for the servers of a test, made by `openssl`.

use std::path::PathBuf;
use std::process::Command;

/// Its certificate, and one for a server on 127.0.0.1 with its key, in a folder of their own.
#[derive(Debug)]
pub struct Authority(tempfile::TempDir);

impl Authority {
    /// A new one, which nobody else knows.
    ///
    /// # Panics
    /// Where `openssl` does not make it.
    pub fn new() -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256";
        authority.openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"));
        authority.openssl(&format!("req {key} -keyout server.key -out server.csr -subj /CN=server"));
        let names = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
        std::fs::write(authority.0.path().join("names"), names).unwrap();
        authority.openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -sha256 -extfile names",
        );
        authority
    }

    fn openssl(&self, words: &str) {
        let made = Command::new("openssl").args(words.split(' ')).current_dir(self.0.path()).output().unwrap();
        assert!(made.status.success(), "openssl {words}: {made:?}");
    }

    /// The certificate that it signs with.
    pub fn ca(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    /// A server's.
    pub fn certificate(&self) -> PathBuf {
        self.0.path().join("server.pem")
    }

    /// And its key.
    pub fn key(&self) -> PathBuf {
        self.0.path().join("server.key")
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
