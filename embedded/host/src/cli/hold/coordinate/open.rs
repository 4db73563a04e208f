//! A lock service's coordinator, from its address. A service that was left out of this build is named, and leads nowhere.

use super::{Place, Service};
use fencegate::HolderId;
use fencegate_host::coordinator::{Access, Coordinator, CoordinatorError};
use std::sync::Arc;

type Opened = Result<Arc<dyn Coordinator>, CoordinatorError>;

pub(super) fn service(service: Service, id: HolderId, access: &Access) -> Opened {
    match service {
        #[cfg(feature = "dynamodb")]
        Service::Dynamodb(place) => dynamodb(&place, access, id),
        #[cfg(feature = "etcd")]
        Service::Etcd(place) => etcd(&place, access, id),
        #[cfg(feature = "postgres")]
        Service::Postgres(place) => postgres(&place, access, id),
        #[cfg(feature = "redis")]
        Service::Redis(place) => redis(&place, access, id),
        #[cfg(feature = "redis")]
        Service::Redlock(place) => redlock(&place, access, id),
        #[cfg(feature = "zookeeper")]
        Service::Zookeeper(place) => zookeeper(&place, access, id),
        #[allow(unreachable_patterns, reason = "where every service is in")]
        other => {
            Err(unfit(format!("this fencegate was built without {0}: build it with `--features {0}`", other.feature())))
        }
    }
}

fn unfit(why: impl Into<String>) -> CoordinatorError {
    CoordinatorError::Unfit(why.into())
}

/// Neither password nor certificates are for this service.
pub(super) fn takes_none(access: &Access, instead: &str) -> Result<(), CoordinatorError> {
    if access.password.is_some() || access.ca.is_some() {
        return Err(unfit(format!("--password-file and --ca-file are not for it: {instead}")));
    }
    Ok(())
}

/// What stands in an address like `scheme://user:password@host:port,host:port/rest`.
struct Address<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    password: Option<&'a str>,
    servers: Vec<&'a str>,
    rest: &'a str,
}

impl<'a> Address<'a> {
    fn read(url: &'a str) -> Result<Self, CoordinatorError> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        let rest = rest.trim_start_matches('/');
        // A password may have an @ and a slash in it; what comes after the last @ may have neither.
        let (user, rest) = rest.rsplit_once('@').map_or((None, rest), |(user, rest)| (Some(user), rest));
        let (user, password) = match user.map(|user| user.split_once(':').unwrap_or((user, ""))) {
            Some((user, password)) => (Some(user), Some(password).filter(|password| !password.is_empty())),
            None => (None, None),
        };
        let (servers, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let servers: Vec<_> = servers.split(',').collect();
        let is_address = |server: &&str| {
            server
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
        };
        if !servers.iter().all(is_address) {
            return Err(unfit(format!("after {scheme}:// come host:port, joined by commas")));
        }
        Ok(Self { scheme, user, password, servers, rest })
    }

    /// The password of the address, where there is no other.
    fn fill(&self, access: &Access) -> Access {
        let password = access.password.clone().or_else(|| self.password.map(str::to_owned));
        Access { password, ca: access.ca.clone() }
    }

    /// For those that have nothing after the servers. What is there all the same may be a password, and is not shown.
    fn ends(&self) -> Result<(), CoordinatorError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(unfit(format!("nothing comes after the servers of {}://", self.scheme)))
        }
    }
}

#[cfg(feature = "dynamodb")]
fn dynamodb(place: &Place, access: &Access, id: HolderId) -> Opened {
    use fencegate_host::coordinator::dynamodb::Dynamodb;
    takes_none(access, "credentials for DynamoDB are looked for where AWS's own tools have them")?;
    let is_plain =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let rest = place.url.split_once(':').map_or("", |(_, rest)| rest).trim_matches('/');
    match rest.split_once('/') {
        Some((region, table)) if is_plain(region) && is_plain(table) => {
            Ok(Arc::new(Dynamodb::new(region, table, &place.lock, id)))
        }
        _ => Err(unfit("after dynamodb:// come a Region and a table: eu-central-1/locks")),
    }
}

#[cfg(feature = "etcd")]
fn etcd(place: &Place, access: &Access, id: HolderId) -> Opened {
    use fencegate_host::coordinator::etcd::Etcd;
    let address = Address::read(&place.url)?;
    address.ends()?;
    let http = if address.scheme == "etcds" { "https" } else { "http" };
    let endpoints: Vec<_> = address.servers.iter().map(|server| format!("{http}://{server}")).collect();
    Ok(Arc::new(Etcd::new(&endpoints, address.user, &address.fill(access), &place.lock, id)?))
}

#[cfg(feature = "zookeeper")]
fn zookeeper(place: &Place, access: &Access, id: HolderId) -> Opened {
    use fencegate_host::coordinator::zookeeper::Zookeeper;
    let address = Address::read(&place.url)?;
    address.ends()?;
    let access = address.fill(access);
    if access.ca.is_some() {
        return Err(unfit("ZooKeeper is spoken to over plain TCP: --ca-file is of no use for it"));
    }
    if address.user.is_some() != access.password.is_some() {
        return Err(unfit("ZooKeeper takes a user with a password, or neither"));
    }
    Ok(Arc::new(Zookeeper::new(&address.servers.join(","), address.user, &access, &place.lock, id)))
}

#[cfg(feature = "postgres")]
fn postgres(place: &Place, access: &Access, id: HolderId) -> Opened {
    Ok(Arc::new(fencegate_host::coordinator::postgres::Postgres::new(&place.url, access, &place.lock, id)?))
}

#[cfg(feature = "redis")]
fn redis(place: &Place, access: &Access, id: HolderId) -> Opened {
    Ok(Arc::new(fencegate_host::coordinator::redis::Redis::new(&place.url, access, &place.lock, id)?))
}

/// The user and the number of the database, where there are such, are the same at every server.
#[cfg(feature = "redis")]
fn redlock(place: &Place, access: &Access, id: HolderId) -> Opened {
    use fencegate_host::coordinator::redis::redlock::Redlock;
    let address = Address::read(&place.url)?;
    let scheme = if address.scheme == "redlocks" { "rediss" } else { "redis" };
    let user = address.user.map(|user| format!("{user}:{}@", address.password.unwrap_or_default())).unwrap_or_default();
    let urls: Vec<_> =
        address.servers.iter().map(|server| format!("{scheme}://{user}{server}/{}", address.rest)).collect();
    Ok(Arc::new(Redlock::new(&urls, access, &place.lock, id)?))
}
