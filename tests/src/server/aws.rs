//! What stands in for AWS.

use super::{Server, free_port, kept};
use crate::Said;
use std::process::{Command, Stdio};

impl Server {
    /// `moto`, which stands in for `DynamoDB` and S3; it takes any credentials.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn moto() -> Self {
        Self::moto_that_checks(u32::MAX)
    }

    /// The same, which after some calls takes those of users that it knows, and no others.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn moto_that_checks(calls: u32) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let mut command = kept(None, xtask::setup::python_program("moto_server").unwrap());
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.env("INITIAL_NO_AUTH_ACTION_COUNT", calls.to_string());
        Self::start(&mut command, port, folder, None)
    }

    /// Gives a command the credentials, the Region and the endpoint that lead to it, and AWS's own command.
    ///
    /// # Panics
    /// Where this machine has no search path, or one that cannot be put together again.
    pub fn for_aws<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let programs = xtask::setup::python_program("").unwrap();
        let path = std::env::join_paths(
            [programs].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        command.env("PATH", path.unwrap()).env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port));
        command.env("AWS_ACCESS_KEY_ID", "tester").env("AWS_SECRET_ACCESS_KEY", "secret");
        command.env("AWS_DEFAULT_REGION", "eu-central-1").env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("AWS_CONFIG_FILE", self.folder.path().join("none"));
        command.env("AWS_SHARED_CREDENTIALS_FILE", self.folder.path().join("none"))
    }

    /// AWS's own command for it.
    ///
    /// # Panics
    /// Where cargo does not say where its target folder is.
    pub fn aws(&self, words: &[&str]) -> Command {
        let mut command = Command::new(xtask::setup::python_program("aws").unwrap());
        self.for_aws(&mut command).args(words).stdin(Stdio::null());
        command
    }

    /// A table with one key, a string.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn dynamodb_table(&self, table: &str, key: &str) {
        let (attribute, schema) =
            (format!("AttributeName={key},AttributeType=S"), format!("AttributeName={key},KeyType=HASH"));
        let words = ["dynamodb", "create-table", "--table-name", table, "--billing-mode", "PAY_PER_REQUEST"];
        let shape = ["--attribute-definitions", &attribute, "--key-schema", &schema];
        let said = Said::by(&mut self.aws(&[&words[..], &shape].concat()));
        assert_eq!(said.status, 0, "{said:?}");
    }
}
