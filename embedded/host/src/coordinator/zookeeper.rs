//! ZooKeeper: an ephemeral sequential node under the lock's; the token is the transaction that made it (its `czxid`).
//!
//! The nodes of the lock `NAME` are `/fencegate/NAME/lease-HOLDER.NNNNNNNNNN`, and the one with the lowest number holds it.
//! Nobody waits in line: who finds another's node makes none, and who was second takes its own away again. So a node is never
//! older than the acquire that it was made for, a waiter that dies is in nobody's way, and nodes are made in the order of
//! their transactions. The operator's epoch is a decimal number in `/fencegate/NAME/epoch`
//! (`zkCli.sh set /fencegate/press-7/epoch 1`); the transaction that makes a node checks that it is still the one that was
//! read. What is not a letter, a digit, `-` or `_` in a name is written as `%` and two hexadecimal digits a byte.
//!
//! **A renewal is a write to our own node.** The client's hidden pings count for nothing here, and neither would a read: a
//! follower that is cut off answers both, while the leader lets the session expire. A write that is answered went through
//! the leader and a majority. It does not touch the session at the leader, however: a follower reports which sessions it has
//! heard from with its answers to the leader's pings, two in a tick. So what a renewal proves is that the session had been
//! heard from up to a heartbeat and half a tick before. That is why **a session is asked for with twice the TTL**: the half
//! that no window uses pays for that delay, whatever the tick, because a session has at least two ticks (where nobody has
//! set `minSessionTimeout` lower). A server that gives less is refused (`maxSessionTimeout`); one that gives more lengthens
//! nothing. **All members need the same limits, and `minSessionTimeout` not below two ticks:** the client says once what it was
//! given, and nobody looks at a member's ticks. The price is a take-over after up to
//! twice the TTL and a tick where a holder dies without a release.
//!
//! A session that is lost takes its node with it; the next acquire begins another. Sessions are detached: a holder that is
//! dropped, or whose window is over, leaves its lease to lapse.

use super::asked::{self, Asked};
use super::{Access, Acquired, Call, Coordinator, CoordinatorError, Grant, Renewed};
use fencegate::{Duration, Epoch, HolderId, Stamp, Token};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, EventType, MultiWriteError, MultiWriteResult};

/// Everything of ours is below this node.
const ROOT: &str = "/fencegate";
/// What the name of a lease's node begins with.
const LEASE: &str = "lease-";
/// The digits of a sequential node's number.
const DIGITS: usize = 10;

/// One lock at a ZooKeeper ensemble.
pub struct Zookeeper {
    servers: String,
    user: Option<String>,
    /// The lock's node.
    folder: String,
    holder: HolderId,
    asked: Asked,
    client: Mutex<Option<Client>>,
    /// The node under each token that was granted here.
    nodes: Mutex<BTreeMap<Token, Node>>,
}

/// A node of ours.
#[derive(Clone)]
struct Node {
    path: String,
    /// Holder and mark.
    data: String,
}

/// A lease's node, as its name has it.
#[derive(Debug, PartialEq, Eq)]
struct Lease {
    number: u32,
    path: String,
}

impl std::fmt::Debug for Zookeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Zookeeper").field("folder", &self.folder).field("holder", &self.holder).finish_non_exhaustive()
    }
}

impl Zookeeper {
    /// The lock `name` at the ensemble of `servers` (`host:port`, joined by commas), for `holder`; the session begins when it
    /// is needed. With a user the nodes are for that user and this password alone. Over plain TCP: put it on a network that
    /// you trust.
    pub fn new(servers: &str, user: Option<&str>, access: &Access, name: &str, holder: HolderId) -> Self {
        let password = access.password.as_deref().unwrap_or_default();
        Self {
            servers: servers.to_owned(),
            user: user.map(|user| format!("{user}:{password}")),
            folder: format!("{ROOT}/{}", written(name)),
            holder,
            asked: Asked::default(),
            client: Mutex::new(None),
            nodes: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<Token, Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made_by(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(if self.user.is_some() { Acls::creator_all() } else { Acls::anyone_all() })
    }

    /// The session that is there, or a new one that is long enough for `ttl`. Within a session the client finds another
    /// server by itself.
    async fn client(&self, ttl: Duration) -> Result<Client, CoordinatorError> {
        let session = ttl.as_micros().checked_mul(2).filter(|us| *us / 1_000 <= i32::MAX.unsigned_abs().into());
        let session = session.filter(|us| *us > 0 && us.is_multiple_of(2_000)).map(Duration::from_micros);
        let session = session.ok_or_else(|| {
            CoordinatorError::Unfit("ttl_us: ZooKeeper takes whole milliseconds, from 1 to 1073741823".to_owned())
        })?;
        let client = if let Some(client) = self.session() {
            client
        } else {
            let mut connector = Client::connector().with_detached().with_fail_eagerly();
            // A server that is silent for a quarter of the TTL is left for the next one.
            let idle = std::time::Duration::from(ttl) / 4;
            connector = connector.with_session_timeout(session.into()).with_connection_timeout(idle);
            if let Some(user) = &self.user {
                connector = connector.with_auth("digest", user.as_bytes());
            }
            let new = connector.connect(&self.servers).await.map_err(said)?;
            // Another acquire may have been as fast; all that is ours belongs into one session.
            let mut kept = self.kept();
            let alive = kept.take().filter(|client| !client.state().is_terminated());
            kept.insert(alive.unwrap_or(new)).clone()
        };
        let given = client.session_timeout();
        if given < std::time::Duration::from(session) {
            let ms = given.as_millis();
            return Err(CoordinatorError::Unfit(format!(
                "ttl_us: this ZooKeeper gives sessions of at most {ms} ms, and a session has to be twice the TTL: ask for \
                 {} ms, or raise its maxSessionTimeout",
                ms / 2
            )));
        }
        Ok(client)
    }

    /// The session that is there, if it is not known to be over.
    fn session(&self) -> Option<Client> {
        self.kept().clone().filter(|client| !client.state().is_terminated())
    }

    /// The leases' nodes, the one that holds the lock first.
    async fn leases(&self, client: &Client) -> Result<Vec<Lease>, CoordinatorError> {
        match client.list_children(&self.folder).await {
            Ok(names) => self.in_order(&names),
            Err(Error::NoNode) => Ok(Vec::new()),
            Err(error) => Err(said(error)),
        }
    }

    fn in_order(&self, names: &[String]) -> Result<Vec<Lease>, CoordinatorError> {
        let leases = names.iter().filter(|name| name.starts_with(LEASE)).map(|name| self.lease(name));
        let mut leases = leases.collect::<Result<Vec<_>, _>>()?;
        leases.sort_by_key(|lease| lease.number);
        Ok(leases)
    }

    /// The numbers have 31 bits, and what comes after them would be lower than what is there.
    fn lease(&self, name: &str) -> Result<Lease, CoordinatorError> {
        let parts = name.strip_prefix(LEASE).and_then(|rest| rest.split_at_checked(rest.len().checked_sub(DIGITS)?));
        parts
            .and_then(|(holder, number)| {
                let number = number.bytes().all(|digit| digit.is_ascii_digit()).then(|| number.parse().ok())??;
                holder.strip_suffix('.')?;
                Some(Lease { number, path: format!("{}/{name}", self.folder) })
            })
            .ok_or_else(|| {
                let folder = &self.folder;
                CoordinatorError::Unfit(format!(
                    "ZooKeeper: `{folder}/{name}` is no lease of ours, or the numbers of {folder} have run out: when nobody \
                     holds the lock, delete {folder} and let it be made again"
                ))
            })
    }

    /// The epoch, and the version of its node, which is made where it is missing.
    async fn epoch(&self, client: &Client) -> Result<(Epoch, i32), CoordinatorError> {
        let path = format!("{}/epoch", self.folder);
        let (text, stat) = match client.get_data(&path).await {
            Err(Error::NoNode) => {
                let root = CreateMode::Persistent.with_acls(Acls::anyone_all());
                client.mkdir(ROOT, &root).await.map_err(said)?;
                client.mkdir(&self.folder, &self.made_by(CreateMode::Persistent)).await.map_err(said)?;
                match client.create(&path, b"0", &self.made_by(CreateMode::Persistent)).await {
                    Ok(_) | Err(Error::NodeExists) => {}
                    Err(error) => return Err(said(error)),
                }
                client.get_data(&path).await.map_err(said)?
            }
            found => found.map_err(said)?,
        };
        let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).map(Epoch);
        let epoch = number
            .ok_or_else(|| CoordinatorError::Unfit(format!("epoch: the node {path} has to be a number of 32 bits")));
        Ok((epoch?, stat.version))
    }

    async fn grant(&self, ttl: Duration) -> Result<Acquired, CoordinatorError> {
        let asking = self.asked.begin()?;
        let client = self.client(ttl).await?;
        let me = written(&self.holder.to_string());
        if let Some(first) = self.leases(&client).await?.into_iter().next() {
            let (data, stat) = match client.get_data(&first.path).await {
                Err(Error::NoNode) => return Ok(Acquired::Held { wait: None, by: None }), // gone while we looked
                found => found.map_err(said)?,
            };
            let (by, mark) = std::str::from_utf8(&data).map_or((None, ""), asked::read);
            if u64::try_from(stat.czxid).is_ok_and(|token| asking.may_undo(mark, token)) {
                // The answer to an earlier acquire was lost, and nobody knows since when its lease runs.
                self.delete(&client, &first.path).await?;
                let why = "an earlier acquire had been granted unheard; it was undone";
                return Err(CoordinatorError::NoAnswer(why.to_owned()));
            }
            return Ok(Acquired::Held { wait: None, by });
        }

        let (epoch, version) = self.epoch(&client).await?;
        let mut writer = client.new_multi_writer();
        writer.add_check_version(&format!("{}/epoch", self.folder), version).map_err(said)?;
        let data = asked::marked(&self.holder, asking.mark());
        let node = format!("{}/{LEASE}{me}.", self.folder);
        let node_of = self.made_by(CreateMode::EphemeralSequential);
        writer.add_create(&node, data.as_bytes(), &node_of).map_err(said)?;
        let path = match writer.commit().await {
            Ok(made) => made.into_iter().find_map(|result| match result {
                MultiWriteResult::Create { path, .. } => Some(path),
                _ => None,
            }),
            Err(MultiWriteError::OperationFailed { index: 0, .. }) => {
                return Err(CoordinatorError::NoAnswer("ZooKeeper: the epoch was changed meanwhile".to_owned()));
            }
            Err(error) => return Err(said(error.into())),
        };
        let path = path.ok_or_else(|| CoordinatorError::NoAnswer("ZooKeeper: no node was made".to_owned()))?;
        // The answer of a transaction does not say which one it was; the node does.
        let stat = client.check_stat(&path).await.map_err(said)?;
        let stat = stat.filter(|stat| stat.ephemeral_owner == client.session_id().0);
        let stat = stat.ok_or_else(|| CoordinatorError::NoAnswer("ZooKeeper: the session was lost".to_owned()))?;
        let token = u64::try_from(stat.czxid).ok().and_then(Token::new);
        let token = token.ok_or_else(|| CoordinatorError::Unfit("ZooKeeper gave no transaction id".to_owned()))?;
        if self.leases(&client).await?.first().is_none_or(|first| first.path != path) {
            self.delete(&client, &path).await?;
            return Ok(Acquired::Held { wait: None, by: None });
        }
        self.nodes().insert(token, Node { path, data });
        asking.grant(token);
        Ok(Acquired::Granted(Grant { token, epoch, ttl: None }))
    }

    async fn write(&self, stamp: Stamp) -> Result<Renewed, CoordinatorError> {
        let Some(Node { path, data }) = self.nodes().get(&stamp.token).cloned() else { return Ok(Renewed::Gone) };
        // A session that is over took its node with it; another session's write would renew nothing.
        let Some(client) = self.session() else { return Ok(Renewed::Gone) };
        match client.set_data(&path, data.as_bytes(), None).await {
            Ok(stat) if is_of(&stat, stamp) && stat.ephemeral_owner == client.session_id().0 => {
                Ok(Renewed::Renewed { ttl: None })
            }
            Ok(_) | Err(Error::NoNode | Error::SessionExpired) => Ok(Renewed::Gone),
            Err(error) => Err(said(error)),
        }
    }

    async fn delete(&self, client: &Client, path: &str) -> Result<(), CoordinatorError> {
        match client.delete(path, None).await {
            Ok(()) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(said(error)),
        }
    }

    async fn give_back(&self, stamp: Stamp) -> Result<(), CoordinatorError> {
        let Some(Node { path, .. }) = self.nodes().get(&stamp.token).cloned() else { return Ok(()) };
        // Without a session the node is gone, or goes with the session that made it.
        if let Some(client) = self.session() {
            match client.check_stat(&path).await {
                Ok(Some(stat)) if is_of(&stat, stamp) => self.delete(&client, &path).await?,
                Ok(_) | Err(Error::SessionExpired) => {}
                Err(error) => return Err(said(error)),
            }
        }
        self.nodes().remove(&stamp.token);
        Ok(())
    }

    async fn wait(&self, stamp: Option<Stamp>) -> Result<(), CoordinatorError> {
        let lost = || CoordinatorError::NoAnswer("ZooKeeper: the session was lost".to_owned());
        let ours = stamp.and_then(|stamp| self.nodes().get(&stamp.token).map(|node| node.path.clone()));
        let client = self.session().ok_or_else(lost)?;
        loop {
            let (names, watch) = match client.list_and_watch_children(&self.folder).await {
                Err(Error::NoNode) => return Ok(()),
                listed => listed.map_err(said)?,
            };
            let leases = self.in_order(&names)?;
            let is_over = match (stamp, &ours) {
                (None, _) => leases.is_empty(),
                (Some(_), ours) => !leases.iter().any(|lease| Some(&lease.path) == ours.as_ref()),
            };
            if is_over {
                return Ok(());
            }
            if watch.changed().await.event_type == EventType::Session {
                return Err(lost());
            }
        }
    }
}

impl Coordinator for Zookeeper {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(self.grant(ttl))
    }

    fn renew(&self, stamp: Stamp, _: Duration) -> Call<'_, Renewed> {
        Box::pin(self.write(stamp))
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(self.give_back(stamp))
    }

    fn changed(&self, stamp: Option<Stamp>) -> Call<'_, ()> {
        Box::pin(self.wait(stamp))
    }

    /// The client pings for as long as it lives, and the session lives as long as the pings.
    fn let_lapse(&self) {
        *self.kept() = None;
    }
}

/// Whether a node is the one that was made under this token.
fn is_of(stat: &zookeeper_client::Stat, stamp: Stamp) -> bool {
    u64::try_from(stat.czxid).is_ok_and(|czxid| czxid == stamp.token.get())
}

/// A name as a part of a path.
fn written(name: &str) -> String {
    name.bytes().fold(String::new(), |text, byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' => text + char::from(byte).encode_utf8(&mut [0; 4]),
        _ => text + &format!("%{byte:02X}"),
    })
}

/// What ZooKeeper's client means.
#[expect(clippy::needless_pass_by_value, reason = "what map_err hands over")]
fn said(error: Error) -> CoordinatorError {
    let why = format!("ZooKeeper: {error}");
    match error {
        Error::NoAuth
        | Error::AuthFailed
        | Error::InvalidAcl
        | Error::QuotaExceeded
        | Error::BadArguments(_)
        | Error::Unimplemented
        | Error::NotReadOnly => CoordinatorError::Unfit(why),
        _ => CoordinatorError::NoAnswer(why),
    }
}

#[cfg(test)]
mod tests;
