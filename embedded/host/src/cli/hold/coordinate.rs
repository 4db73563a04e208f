//! Which lock service, and which gates.

#![cfg_attr(
    not(all(feature = "dynamodb", feature = "etcd", feature = "postgres", feature = "redis", feature = "zookeeper")),
    allow(dead_code, clippy::unused_async, reason = "a service that was left out is named, and leads nowhere")
)]

use super::super::output::Failure;
use fencegate::{Duration, HolderId, PlanInput};
use fencegate_host::coordinator::gate::{GateChannel, GateLease};
use fencegate_host::coordinator::{Coordinator, CoordinatorError, Resource};
use fencegate_host::wire::Role;
use fencegate_host::{KeyFile, Port};
use std::path::Path;
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

/// Where a lock is, and what it is called there.
#[derive(Debug)]
pub(in crate::cli) struct Place {
    url: String,
    lock: String,
}

fn wrong(why: impl std::fmt::Display) -> Failure {
    Failure::input(format_args!("coordinator: {why}"))
}

impl Service {
    pub(in crate::cli) fn read(url: &str, lock: &str) -> Result<Self, Failure> {
        if lock.is_empty() || lock.len() > 190 || lock.chars().any(char::is_control) {
            let why = "lock: `--lock`: a name of 1 to 190 bytes without control characters";
            return Err(Failure::input(why));
        }
        let place = |url: &str| Place { url: url.to_owned(), lock: lock.to_owned() };
        match url.split_once(':') {
            Some(("dynamodb", rest)) => Ok(Self::Dynamodb(place(rest.trim_start_matches('/')))),
            Some(("etcd", rest)) => Ok(Self::Etcd(place(rest.trim_start_matches('/')))),
            Some(("zookeeper", rest)) => Ok(Self::Zookeeper(place(rest.trim_start_matches('/')))),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(place(url))),
            Some(("redis", _)) => Ok(Self::Redis(place(url))),
            Some(("redlock", rest)) => Ok(Self::Redlock(place(rest.trim_start_matches('/')))),
            Some(("gate", port)) => {
                let channel = super::values::channel(lock);
                let channel =
                    channel.map_err(|error| Failure::input(format_args!("lock: `--lock {lock}`: {error}")))?;
                Ok(Self::Gate(port.parse().map_err(wrong)?, channel))
            }
            _ => Err(wrong(format_args!(
                "`{url}`: one of etcd://, zookeeper://, postgres://, dynamodb://, redis://, redlock://, gate:PORT"
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

    /// Whether it keeps no durable order, so that it cannot protect a gate; and what it is called then.
    pub(in crate::cli) const fn only_for_efficiency(&self) -> Option<&'static str> {
        match self {
            Self::Redis(_) => Some("redis"),
            Self::Redlock(_) => Some("redlock"),
            _ => None,
        }
    }

    /// A plan with what this service's own formula takes off the window.
    pub(in crate::cli) fn plan(&self, plan: PlanInput) -> PlanInput {
        match self {
            #[cfg(feature = "redis")]
            Self::Redlock(_) => fencegate_host::coordinator::redis::redlock::Redlock::plan(plan),
            _ => plan,
        }
    }

    pub(in crate::cli) async fn open(
        self,
        id: HolderId,
        key_file: Option<&Path>,
    ) -> Result<Arc<dyn Coordinator>, Failure> {
        let opened = match self {
            #[cfg(feature = "dynamodb")]
            Self::Dynamodb(place) => dynamodb(&place, id),
            #[cfg(not(feature = "dynamodb"))]
            Self::Dynamodb(_) => left_out("dynamodb"),
            #[cfg(feature = "etcd")]
            Self::Etcd(place) => etcd(&place, id).await,
            #[cfg(not(feature = "etcd"))]
            Self::Etcd(_) => left_out("etcd"),
            #[cfg(feature = "zookeeper")]
            Self::Zookeeper(place) => zookeeper(&place, id),
            #[cfg(not(feature = "zookeeper"))]
            Self::Zookeeper(_) => left_out("zookeeper"),
            #[cfg(feature = "postgres")]
            Self::Postgres(place) => postgres(&place, id),
            #[cfg(not(feature = "postgres"))]
            Self::Postgres(_) => left_out("postgres"),
            #[cfg(feature = "redis")]
            Self::Redis(place) => redis(&place, id),
            #[cfg(feature = "redis")]
            Self::Redlock(place) => redlock(&place, id),
            #[cfg(not(feature = "redis"))]
            Self::Redis(_) | Self::Redlock(_) => left_out("redis"),
            Self::Gate(port, channel) => {
                let credential = keys(key_file)?.credential(Role::Holder(id));
                Ok(Arc::new(GateLease(GateChannel::new(port, credential, channel, GATE))) as Arc<dyn Coordinator>)
            }
        };
        opened.map_err(wrong)
    }
}

type Opened = Result<Arc<dyn Coordinator>, CoordinatorError>;

/// User and servers of `user:password@host:port,host:port`.
#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
fn servers<'a>(place: &'a Place, scheme: &str) -> Result<(Option<&'a str>, Vec<&'a str>), CoordinatorError> {
    let (user, servers) = match place.url.rsplit_once('@') {
        Some((user, servers)) => (Some(user), servers),
        None => (None, place.url.as_str()),
    };
    let servers: Vec<_> = servers.trim_end_matches('/').split(',').collect();
    let is_address = |server: &&str| {
        server
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
    };
    if !servers.iter().all(is_address) {
        return Err(CoordinatorError::Unfit(format!("after {scheme}:// come host:port, joined by commas")));
    }
    Ok((user, servers))
}

#[cfg(feature = "dynamodb")]
fn dynamodb(place: &Place, id: HolderId) -> Opened {
    use fencegate_host::coordinator::dynamodb::Dynamodb;
    let is_plain =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    match place.url.trim_end_matches('/').split_once('/') {
        Some((region, table)) if is_plain(region) && is_plain(table) => {
            Ok(Arc::new(Dynamodb::new(region, table, &place.lock, id)))
        }
        _ => Err(CoordinatorError::Unfit("after dynamodb:// come a Region and a table: eu-central-1/locks".to_owned())),
    }
}

#[cfg(feature = "etcd")]
async fn etcd(place: &Place, id: HolderId) -> Opened {
    let (user, endpoints) = servers(place, "etcd")?;
    let user = user.and_then(|user| user.split_once(':'));
    Ok(Arc::new(fencegate_host::coordinator::etcd::Etcd::new(&endpoints, user, &place.lock, id).await?))
}

#[cfg(feature = "zookeeper")]
fn zookeeper(place: &Place, id: HolderId) -> Opened {
    use fencegate_host::coordinator::zookeeper::Zookeeper;
    let (user, servers) = servers(place, "zookeeper")?;
    Ok(Arc::new(Zookeeper::new(&servers.join(","), user, &place.lock, id)))
}

#[cfg(feature = "postgres")]
fn postgres(place: &Place, id: HolderId) -> Opened {
    Ok(Arc::new(fencegate_host::coordinator::postgres::Postgres::new(&place.url, &place.lock, id)?))
}

#[cfg(feature = "redis")]
fn redis(place: &Place, id: HolderId) -> Opened {
    Ok(Arc::new(fencegate_host::coordinator::redis::Redis::new(&place.url, &place.lock, id)?))
}

/// The user and the number of the database, where there are such, are the same at every server.
#[cfg(feature = "redis")]
fn redlock(place: &Place, id: HolderId) -> Opened {
    let (address, database) = match place.url.rsplit_once('/') {
        Some((address, database)) => (address, database),
        None => (place.url.as_str(), ""),
    };
    let address = Place { url: address.to_owned(), lock: String::new() };
    let (user, servers) = servers(&address, "redlock")?;
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let urls: Vec<_> = servers.iter().map(|server| format!("redis://{user}{server}/{database}")).collect();
    Ok(Arc::new(fencegate_host::coordinator::redis::redlock::Redlock::new(&urls, &place.lock, id)?))
}

#[cfg(not(all(
    feature = "dynamodb",
    feature = "etcd",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
)))]
fn left_out(name: &str) -> Opened {
    Err(CoordinatorError::Unfit(format!("this fencegate was built without {name}: build it with `--features {name}`")))
}

fn keys(file: Option<&Path>) -> Result<KeyFile, Failure> {
    let path = file.ok_or_else(|| Failure::input("key_file: missing; add --key-file <FILE>"))?;
    KeyFile::read(path).map_err(|error| Failure::input(format_args!("key_file: {error}")))
}

/// A gate's channel that the lease is for.
#[derive(Debug)]
pub(in crate::cli) struct Protected(GateChannel);

impl Protected {
    pub(in crate::cli) fn read(
        gate: Option<&Port>,
        channels: &[u8],
        key_file: Option<&Path>,
        id: HolderId,
    ) -> Result<Vec<Self>, Failure> {
        let Some(port) = gate else { return Ok(Vec::new()) };
        let credential = keys(key_file)?.credential(Role::Holder(id));
        let channel = |n: &u8| Self(GateChannel::new(port.clone(), credential.clone(), *n, GATE));
        Ok(channels.iter().map(channel).collect())
    }

    pub(in crate::cli) const fn channel(&self) -> &GateChannel {
        &self.0
    }

    pub(in crate::cli) fn resource(self) -> Arc<dyn Resource> {
        Arc::new(self.0)
    }
}
