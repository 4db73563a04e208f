//! Which lock service, and which gates.

#![cfg_attr(
    not(all(feature = "dynamodb", feature = "etcd", feature = "postgres", feature = "redis", feature = "zookeeper")),
    allow(dead_code, unused_imports, unused_variables, reason = "what only the services that were left out need")
)]

mod open;

use super::super::output::Failure;
use fencegate::{DEFAULT_DRIFT_FACTOR, DEFAULT_DRIFT_FIXED, Drift, Duration, HolderId};
use fencegate_host::coordinator::gate::{GateChannel, GateLease};
use fencegate_host::coordinator::{Access, Coordinator, CoordinatorError, Resource};
use fencegate_host::wire::{Credential, Role};
use fencegate_host::{KeyFile, Port, Secret};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long one call to a gate may take.
const GATE: Duration = Duration::from_secs(2);

/// A lock service as it was named, with the lock.
#[derive(Debug)]
pub(in crate::cli) enum Service {
    Dynamodb(Place),
    Etcd(Place),
    Zookeeper(Place),
    Postgres(Place),
    Redis(Place),
    Redlock(Place),
    Gate(Port, u8),
}

/// Where a lock is, as it was typed, and what it is called there.
#[derive(Debug)]
pub(in crate::cli) struct Place {
    url: String,
    lock: String,
}

/// What does not belong into an address, which every user of this machine can read.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Secrets {
    /// The file with the password of the user that the coordinator's address names
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The file with the certificates (PEM) of those who vouch for the coordinator; without it, those this machine trusts
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl Secrets {
    pub(in crate::cli) fn read(&self) -> Result<Access, Failure> {
        let read = |field: &str, file: &Path| {
            let flag = field.replace('_', "-");
            let wrong = |why| Failure::input(format_args!("{field}: `--{flag} {}`: {why}", file.display()));
            std::fs::read(file).map_err(|error| wrong(format!("cannot be read: {error}")))
        };
        let mut access = Access::default();
        if let Some(file) = &self.password_file {
            let text = String::from_utf8(read("password_file", file)?);
            let text = text.map_err(|_| Failure::input("password_file: the password is not UTF-8"))?;
            let password = text.strip_suffix('\n').unwrap_or(&text);
            let password = password.strip_suffix('\r').unwrap_or(password);
            if password.is_empty() {
                return Err(Failure::input("password_file: there is no password in it"));
            }
            access.password = Some(password.to_owned());
        }
        if let Some(file) = &self.ca_file {
            access.ca = Some(read("ca_file", file)?);
        }
        Ok(access)
    }
}

fn wrong(why: impl std::fmt::Display) -> Failure {
    Failure::input(format_args!("coordinator: {why}"))
}

/// Whether a service has something else under this name: what it keeps beside a lock.
fn is_kept(scheme: &str, lock: &str) -> bool {
    match scheme {
        "etcd" | "etcds" => lock.ends_with("/epoch"),
        "redis" | "rediss" | "redlock" | "redlocks" => {
            lock.starts_with('{') && ["}:token", "}:epoch"].iter().any(|end| lock.ends_with(end))
        }
        _ => false,
    }
}

/// An address that is none, without what may be a password in it.
fn shown(url: &str) -> &str {
    if url.contains(['@', '?']) { url.split_once("://").map_or("…@…", |(scheme, _)| scheme) } else { url }
}

impl Service {
    pub(in crate::cli) fn read(url: &str, lock: &str) -> Result<Self, Failure> {
        if lock.is_empty() || lock.len() > 190 || lock.chars().any(char::is_control) {
            let why = "lock: `--lock`: a name of 1 to 190 bytes without control characters";
            return Err(Failure::input(why));
        }
        if is_kept(url.split(':').next().unwrap_or_default(), lock) {
            return Err(Failure::input(format_args!(
                "lock: `--lock {lock}`: another lock's epoch or token is kept there under this name"
            )));
        }
        let place = |url: &str| Place { url: url.to_owned(), lock: lock.to_owned() };
        match url.split_once(':') {
            Some(("dynamodb", _)) => Ok(Self::Dynamodb(place(url))),
            Some(("etcd" | "etcds", _)) => Ok(Self::Etcd(place(url))),
            Some(("zookeeper", _)) => Ok(Self::Zookeeper(place(url))),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(place(url))),
            Some(("redis" | "rediss", _)) => Ok(Self::Redis(place(url))),
            Some(("redlock" | "redlocks", _)) => Ok(Self::Redlock(place(url))),
            Some(("gate", port)) => {
                let channel = super::values::channel(lock);
                let channel =
                    channel.map_err(|error| Failure::input(format_args!("lock: `--lock {lock}`: {error}")))?;
                Ok(Self::Gate(port.parse().map_err(wrong)?, channel))
            }
            _ => Err(wrong(format_args!(
                "`{}`: one of etcd://, zookeeper://, postgres://, dynamodb://, redis://, redlock://, gate:PORT, and etcds://, rediss://, redlocks:// in TLS",
                shown(url)
            ))),
        }
    }

    /// Its step of the TTL.
    pub(in crate::cli) const fn step(&self) -> Duration {
        match self {
            Self::Etcd(_) => Duration::from_secs(1),
            Self::Redis(_) | Self::Redlock(_) | Self::Zookeeper(_) => Duration::from_millis(1),
            Self::Dynamodb(_) | Self::Postgres(_) | Self::Gate(..) => Duration::from_micros(1),
        }
    }

    /// What has to be built in for it.
    const fn feature(&self) -> &'static str {
        match self {
            Self::Dynamodb(_) => "dynamodb",
            Self::Etcd(_) => "etcd",
            Self::Postgres(_) => "postgres",
            Self::Redis(_) | Self::Redlock(_) => "redis",
            Self::Zookeeper(_) => "zookeeper",
            Self::Gate(..) => "nothing more",
        }
    }

    /// What it is called in its addresses.
    pub(in crate::cli) const fn name(&self) -> &'static str {
        match self {
            Self::Redlock(_) => "redlock",
            Self::Gate(..) => "gate",
            other => other.feature(),
        }
    }

    /// What its own formula allows for drift: at least this, and so much whatever the TTL.
    pub(in crate::cli) const fn allowance(&self) -> (Drift, Duration) {
        match self {
            Self::Redlock(_) => (DEFAULT_DRIFT_FACTOR, DEFAULT_DRIFT_FIXED),
            _ => (Drift::ZERO, Duration::ZERO),
        }
    }

    pub(in crate::cli) fn open(
        self,
        id: HolderId,
        access: &Access,
        key_file: Option<&Path>,
    ) -> Result<Arc<dyn Coordinator>, Failure> {
        if let Self::Gate(port, channel) = self {
            open::takes_none(access, "a gate has a --key-file").map_err(wrong)?;
            let credential = credential(key_file, id)?;
            return Ok(Arc::new(GateLease(GateChannel::new(port, credential, channel, GATE))));
        }
        open::service(self, id, access).map_err(|error| match error {
            CoordinatorError::NoAnswer(why) => Failure::new(3, format_args!("no answer from the coordinator: {why}")),
            CoordinatorError::Unfit(why) => wrong(why),
        })
    }
}

fn keys(file: Option<&Path>) -> Result<KeyFile, Failure> {
    let path = file.ok_or_else(|| Failure::input("key_file: missing; add --key-file <FILE>"))?;
    KeyFile::read(path).map_err(|error| Failure::input(format_args!("key_file: {error}")))
}

/// What `id` seals its requests with. With another's key it would convince nobody, and no gate would answer.
fn credential(file: Option<&Path>, id: HolderId) -> Result<Credential, Failure> {
    let keys = keys(file)?;
    match &keys.secret {
        Secret::Holder { holder, .. } if holder.name() != id.name() => {
            let holder = holder.name();
            Err(Failure::input(format_args!("key_file: this key is {holder}'s; say --holder {holder}")))
        }
        _ => Ok(keys.credential(Role::Holder(id))),
    }
}

/// Whose key it is, where it is a single holder's.
pub(in crate::cli) fn whose(key_file: Option<&Path>) -> Result<Option<HolderId>, Failure> {
    let Some(_) = key_file else { return Ok(None) };
    Ok(match keys(key_file)?.secret {
        Secret::Holder { holder, .. } => Some(holder.name()),
        Secret::Root(_) | Secret::Observer { .. } => None,
    })
}

/// A gate's first channel, to be asked as whom the key is.
pub(in crate::cli) fn asked(port: &Port, key_file: Option<&Path>) -> Result<GateChannel, Failure> {
    Ok(GateChannel::new(port.clone(), keys(key_file)?.reader(), 0, GATE))
}

/// A gate's channel that the lease is for.
#[derive(Debug)]
pub(super) struct Protected(GateChannel);

impl Protected {
    pub(super) fn read(
        gate: Option<&Port>,
        channels: &[u8],
        key_file: Option<&Path>,
        id: HolderId,
    ) -> Result<Vec<Self>, Failure> {
        let Some(port) = gate else { return Ok(Vec::new()) };
        let credential = credential(key_file, id)?;
        let channel = |n: &u8| Self(GateChannel::new(port.clone(), credential.clone(), *n, GATE));
        Ok(channels.iter().map(channel).collect())
    }

    pub(super) fn resource(self) -> Arc<dyn Resource> {
        Arc::new(self.0)
    }
}
