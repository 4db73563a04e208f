//! etcd: a lease and a key that hangs on it; the token is the key's create revision.
//!
//! The key `NAME` has the holder as its value and lives as long as its lease. Revisions only go up, so a later holder's
//! token is higher; a restore from a snapshot takes them back, and then the operator raises the epoch, a decimal number in
//! the key `NAME/epoch`, before anybody works: `etcdctl put press-7/epoch 1`. It is read in the transaction that makes the
//! key. A release deletes the key only at its create revision.
//!
//! TTLs are whole seconds. The server may lengthen one (its own least TTL), and a new leader extends every lease; neither
//! touches a window, which counts from our own requests. A renewal is a keep-alive *and* a look at the key: a lease may
//! outlive a key that somebody has deleted.

use super::asked::Asked;
use super::{Access, Acquired, Call, Coordinator, CoordinatorError, Grant, Renewed};
use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error, EventType, GetOptions, KeyValue, PutOptions, Txn, TxnOp,
    TxnOpResponse, WatchOptions,
};
use fencegate::{Duration, Epoch, HolderId, Stamp, Token};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often a connection shows that it is alive, and how long it may take to: a server that is cut off is found out.
const ALIVE: (std::time::Duration, std::time::Duration) =
    (std::time::Duration::from_secs(1), std::time::Duration::from_secs(2));

/// One lock at an etcd cluster.
pub struct Etcd {
    /// One for each endpoint, and not one that spreads its calls: of those a third would go to a frozen member of three.
    clients: Vec<Client>,
    /// The one that answered last, as a number that only grows.
    preferred: AtomicUsize,
    name: String,
    holder: HolderId,
    asked: Asked,
    /// etcd's lease under each token that was granted here.
    leases: Mutex<BTreeMap<Token, i64>>,
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Etcd").field("name", &self.name).field("holder", &self.holder).finish_non_exhaustive()
    }
}

impl Etcd {
    /// The lock `name` at the cluster with these endpoints (`host:port`, or `https://host:port` in TLS), for `user` where
    /// there are such, and for `holder`; the connection is made when it is needed.
    ///
    /// # Errors
    /// Where an endpoint is none, a user has no password, or the certificates are none or of no use.
    pub async fn new<E: AsRef<str>>(
        endpoints: &[E],
        user: Option<&str>,
        access: &Access,
        name: &str,
        holder: HolderId,
    ) -> Result<Self, CoordinatorError> {
        // A member that has lost its leader is to say so, and not to wait for one.
        let mut options = ConnectOptions::new().with_require_leader(true);
        options = options.with_keep_alive(ALIVE.0, ALIVE.1).with_connect_timeout(ALIVE.1);
        if let Some(user) = user {
            let password = access.password.as_deref().ok_or_else(|| unfit("etcd: the user has no password"))?;
            options = options.with_user(user, password);
        }
        if endpoints.iter().any(|endpoint| endpoint.as_ref().starts_with("https://")) {
            options = in_tls(options, access)?;
        } else if access.ca.is_some() {
            return Err(unfit("etcd: certificates are for etcds://, and this address is for plain TCP"));
        }
        let mut clients = Vec::new();
        for endpoint in endpoints {
            clients.push(Client::connect([endpoint.as_ref()], Some(options.clone())).await.map_err(said)?);
        }
        if clients.is_empty() {
            return Err(CoordinatorError::Unfit("etcd: no endpoint".to_owned()));
        }
        let (preferred, asked, leases) = (AtomicUsize::new(0), Asked::default(), Mutex::default());
        Ok(Self { clients, preferred, name: name.to_owned(), holder, asked, leases })
    }

    fn client(&self) -> Result<Client, CoordinatorError> {
        let turn = self.preferred.load(Ordering::Relaxed) % self.clients.len().max(1);
        self.clients.get(turn).cloned().ok_or_else(|| CoordinatorError::Unfit("etcd: no endpoint".to_owned()))
    }

    fn leases(&self) -> std::sync::MutexGuard<'_, BTreeMap<Token, i64>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key as it was created at `revision`; 0: as it is not there.
    fn created(&self, revision: i64) -> Compare {
        Compare::create_revision(self.name.as_str(), CompareOp::Equal, revision)
    }

    async fn grant(&self, ttl: Duration) -> Result<Acquired, CoordinatorError> {
        let seconds = whole_seconds(ttl)?;
        let asking = self.asked.begin();
        let mut client = self.client()?;
        let lease = client.lease_grant(seconds, None).await.map_err(said)?;
        let put = PutOptions::new().with_lease(lease.id());
        let make = [
            TxnOp::put(self.name.as_str(), self.holder.to_string(), Some(put)),
            TxnOp::get(format!("{}/epoch", self.name), None),
        ];
        let look = [TxnOp::get(self.name.as_str(), None)];
        let txn = Txn::new().when([self.created(0)]).and_then(make).or_else(look);
        let answer = client.txn(txn).await.map_err(said)?;
        let mut found = answer.op_responses().into_iter().filter_map(|response| match response {
            TxnOpResponse::Get(got) => Some(got.kvs().first().cloned()),
            _ => None,
        });
        let found: Option<KeyValue> = found.next().flatten();
        if answer.succeeded() {
            let epoch = epoch(&self.name, found)?;
            let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
            let token = u64::try_from(revision).ok().and_then(Token::new);
            let token = token.ok_or_else(|| CoordinatorError::Unfit("etcd gave no revision".to_owned()))?;
            self.leases().insert(token, lease.id());
            asking.grant(token);
            let granted = u64::try_from(lease.ttl()).ok().and_then(|s| s.checked_mul(1_000_000));
            return Ok(Acquired::Granted(Grant { token, epoch, ttl: granted.map(Duration::from_micros) }));
        }
        // Not needed; should this be lost, it lapses.
        let _ = client.lease_revoke(lease.id()).await;
        match found {
            // The answer to an earlier acquire of this very instance was lost. Its lease is not taken over, since nobody
            // knows since when it runs: it is deleted, and the next try is granted a token of its own.
            Some(kv)
                if kv.value() == self.holder.to_string().as_bytes()
                    && u64::try_from(kv.create_revision()).is_ok_and(|token| asking.may_undo(token)) =>
            {
                let delete = [TxnOp::delete(self.name.as_str(), None)];
                client
                    .txn(Txn::new().when([self.created(kv.create_revision())]).and_then(delete))
                    .await
                    .map_err(said)?;
                Err(CoordinatorError::NoAnswer("an earlier acquire had been granted unheard; it was undone".to_owned()))
            }
            _ => Ok(Acquired::Held { wait: None }),
        }
    }

    async fn keep_alive(&self, stamp: Stamp) -> Result<Renewed, CoordinatorError> {
        let Some(lease) = self.leases().get(&stamp.token).copied() else { return Ok(Renewed::Gone) };
        let mut client = self.client()?;
        match client.lease_keep_alive(lease).await {
            Ok(_stream) => {}
            Err(Error::LeaseKeepAliveError(_)) => return Ok(Renewed::Gone),
            Err(error) => return Err(said(error)),
        }
        let there = client.txn(Txn::new().when([self.created(revision(stamp))])).await.map_err(said)?;
        Ok(if there.succeeded() { Renewed::Renewed { ttl: None } } else { Renewed::Gone })
    }

    async fn delete(&self, stamp: Stamp) -> Result<(), CoordinatorError> {
        let mut client = self.client()?;
        let delete = [TxnOp::delete(self.name.as_str(), None)];
        client.txn(Txn::new().when([self.created(revision(stamp))]).and_then(delete)).await.map_err(said)?;
        let lease = self.leases().remove(&stamp.token);
        if let Some(lease) = lease {
            let _ = client.lease_revoke(lease).await; // nothing hangs on it any more; it lapses
        }
        Ok(())
    }

    async fn wait(&self, stamp: Option<Stamp>) -> Result<(), CoordinatorError> {
        let mut client = self.client()?;
        let now = client.get(self.name.as_str(), Some(GetOptions::new())).await.map_err(said)?;
        let key = now.kvs().first();
        let over = match (stamp, key) {
            (None, key) => key.is_none(),
            (Some(stamp), key) => key.is_none_or(|kv| kv.create_revision() != revision(stamp)),
        };
        if over {
            return Ok(());
        }
        let next = now.header().map_or(0, etcd_client::ResponseHeader::revision).checked_add(1).unwrap_or(0);
        let options = WatchOptions::new().with_start_revision(next);
        let mut watch = client.watch(self.name.as_str(), Some(options)).await.map_err(said)?;
        while let Some(answer) = watch.message().await.map_err(said)? {
            if answer.events().iter().any(|event| event.event_type() == EventType::Delete) {
                return Ok(());
            }
        }
        Err(CoordinatorError::NoAnswer("the watch has ended".to_owned()))
    }
}

impl Coordinator for Etcd {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(self.grant(ttl))
    }

    fn renew(&self, stamp: Stamp, _: Duration) -> Call<'_, Renewed> {
        Box::pin(self.keep_alive(stamp))
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(self.delete(stamp))
    }

    fn changed(&self, stamp: Option<Stamp>) -> Call<'_, ()> {
        Box::pin(self.wait(stamp))
    }

    /// The next endpoint's turn.
    fn suspect(&self) {
        self.preferred.fetch_add(1, Ordering::Relaxed); // it wraps, at worst to the same one again
    }
}

fn unfit(why: &str) -> CoordinatorError {
    CoordinatorError::Unfit(why.to_owned())
}

#[cfg(feature = "tls")]
fn in_tls(options: ConnectOptions, access: &Access) -> Result<ConnectOptions, CoordinatorError> {
    access.tls()?; // says what is wrong with certificates; the client takes them as they are
    let tls = etcd_client::TlsOptions::new();
    let tls = match &access.ca {
        Some(ca) => tls.ca_certificate(etcd_client::Certificate::from_pem(ca)),
        None => tls.with_native_roots(),
    };
    Ok(options.with_tls(tls))
}

#[cfg(not(feature = "tls"))]
fn in_tls(_: ConnectOptions, _: &Access) -> Result<ConnectOptions, CoordinatorError> {
    Err(unfit("this fencegate was built without tls"))
}

/// A token of ours is a create revision.
fn revision(stamp: Stamp) -> i64 {
    i64::try_from(stamp.token.get()).unwrap_or(i64::MAX)
}

fn whole_seconds(ttl: Duration) -> Result<i64, CoordinatorError> {
    let us = ttl.as_micros();
    match i64::try_from(us / 1_000_000) {
        Ok(seconds @ 1..) if us.is_multiple_of(1_000_000) => Ok(seconds),
        _ => Err(CoordinatorError::Unfit("ttl_us: etcd takes whole seconds, at least one".to_owned())),
    }
}

fn epoch(name: &str, kept: Option<KeyValue>) -> Result<Epoch, CoordinatorError> {
    let Some(kv) = kept else { return Ok(Epoch(0)) };
    let number = kv.value_str().ok().and_then(|text| text.trim().parse().ok()).map(Epoch);
    number.ok_or_else(|| CoordinatorError::Unfit(format!("epoch: the key {name}/epoch has to be a number of 32 bits")))
}

/// What etcd's client means.
#[expect(clippy::needless_pass_by_value, reason = "what map_err hands over")]
fn said(error: Error) -> CoordinatorError {
    match &error {
        Error::GRpcStatus(status) => {
            let why = format!("etcd: {}", status.message());
            // UNAVAILABLE, CANCELLED and the like may pass; an argument, a credential or a permission does not.
            match status.code() as i32 {
                3 | 7 | 16 => CoordinatorError::Unfit(why),
                _ => CoordinatorError::NoAnswer(why),
            }
        }
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::EndpointError(_) => {
            CoordinatorError::Unfit(format!("etcd: {error}"))
        }
        _ => CoordinatorError::NoAnswer(format!("etcd: {error}")),
    }
}
