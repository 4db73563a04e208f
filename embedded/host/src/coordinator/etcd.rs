//! etcd: a lease and a key that hangs on it; the token is the key's create revision.
//!
//! The key `NAME` has the holder as its value, and who has asked for it, and lives as long as its lease. Revisions only go
//! up, so a later holder's token is higher; a restore from a snapshot takes them back, and then the operator raises the epoch,
//! a decimal number in the key `NAME/epoch`, before anybody works: `etcdctl put press-7/epoch 1`. It is read in the
//! transaction that makes the key. A release deletes the key only at its create revision, and with our own value: after a
//! restore the same revision may be another's.
//!
//! **A restore takes back more than the revisions: a lease that was granted after the snapshot is not in it, and its holder may
//! be inside its window**, beside the next one, whose token may be the same. So keep every member down until the longest TTL
//! has passed since any of the old ones answered last, and raise the epoch then; or have every resource behind a gate or a
//! guard, which the higher epoch then fences.
//!
//! TTLs are whole seconds. The server may lengthen one (its own least TTL), and a new leader extends every lease; neither
//! touches a window, which counts from our own requests.
//!
//! **A renewal is a look at the key, and only then a keep-alive.** A leader that stood still while another was elected takes
//! itself for the leader for a while, and answers a keep-alive by itself; at the other the lease runs out. The look is a
//! linearizable read, which a leader answers once it has heard from a majority, after we sent it, that they still follow it.
//! So every later leader was elected after that sending, and gives every lease its whole TTL when it takes over. And the
//! member that has answered the look hands the keep-alive to that leader or a later one, never to one before. Whichever of
//! them takes it, the lease then lasts for a TTL from when the *look* was sent, at the least; and the window counts from
//! when the renewal began, which is earlier. The look alone would renew nothing, and a keep-alive alone, or before the look,
//! proves nothing. The look also finds out that somebody has deleted the key, which a lease outlives.
//!
//! For that **each endpoint has to be a member itself**: behind a balancer or a proxy, look and keep-alive may meet two of
//! them. Two more things are the cluster's, and no client can mend them. Before 3.4.31 and 3.5.13 a leader that stood still
//! may end the leases that ran out on its own clock meanwhile, though the next leader has renewed them (etcd's issue 15247):
//! use a later one. And lease checkpoints, an experiment that is off unless somebody turns it on, have to stay off: with
//! them a new leader gives a long lease only what it had left.

use super::asked::{self, Asked, Asking};
use super::{Access, Acquired, Call, Coordinator, CoordinatorError, Grant, Renewed};
use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error, EventType, GetResponse, KeyValue, LeaseGrantResponse,
    PutOptions, Txn, TxnOp, TxnOpResponse, WatchOptions,
};
use fencegate::{Duration, Epoch, HolderId, Stamp, Token};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a connection shows that it is alive, and how long it may take to: a server that is cut off is found out.
const ALIVE: (std::time::Duration, std::time::Duration) =
    (std::time::Duration::from_secs(1), std::time::Duration::from_secs(2));

/// One lock at an etcd cluster.
pub struct Etcd {
    endpoints: Vec<Endpoint>,
    options: ConnectOptions,
    /// Whose turn it is, as a number that only grows.
    preferred: AtomicUsize,
    name: String,
    holder: HolderId,
    asked: Asked,
    /// etcd's lease under each token that was granted here.
    leases: Mutex<BTreeMap<Token, i64>>,
}

/// One member. It has a client of its own, and not one that spreads its calls: of those a third would go to a frozen member
/// of three.
struct Endpoint {
    address: String,
    /// Made when it is needed: where there is a user, the member has to answer for that.
    client: Mutex<Option<Client>>,
}

impl Endpoint {
    fn kept(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    /// Where there is no endpoint, a user has no password, or the certificates are none or of no use.
    pub fn new<E: AsRef<str>>(
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
        let endpoint = |address: &E| Endpoint { address: address.as_ref().to_owned(), client: Mutex::new(None) };
        let endpoints: Vec<_> = endpoints.iter().map(endpoint).collect();
        if endpoints.is_empty() {
            return Err(unfit("etcd: no endpoint"));
        }
        let (preferred, asked, leases) = (AtomicUsize::new(0), Asked::default(), Mutex::default());
        Ok(Self { endpoints, options, preferred, name: name.to_owned(), holder, asked, leases })
    }

    /// The client of the member whose turn it is. One that does not let the user in, or does not answer, holds up nobody
    /// else's call.
    async fn client(&self) -> Result<Client, CoordinatorError> {
        let turn = self.preferred.load(Ordering::Relaxed) % self.endpoints.len().max(1);
        let endpoint = self.endpoints.get(turn).ok_or_else(|| unfit("etcd: no endpoint"))?;
        if let Some(client) = endpoint.kept().as_ref() {
            return Ok(client.clone());
        }
        let connected = Client::connect([&endpoint.address], Some(self.options.clone())).await;
        let client = connected.map_err(|error| self.said(&error))?;
        Ok(endpoint.kept().get_or_insert(client).clone())
    }

    fn leases(&self) -> MutexGuard<'_, BTreeMap<Token, i64>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key as it was created at `revision`; 0: as it is not there.
    fn created(&self, revision: i64) -> Compare {
        Compare::create_revision(self.name.as_str(), CompareOp::Equal, revision)
    }

    /// Deletes the key that was created at `revision` with this value.
    fn deletion(&self, revision: i64, value: &[u8]) -> Txn {
        let value = Compare::value(self.name.as_str(), CompareOp::Equal, value);
        Txn::new().when([self.created(revision), value]).and_then([TxnOp::delete(self.name.as_str(), None)])
    }

    /// The key's value where it is ours.
    fn value(&self) -> Result<String, CoordinatorError> {
        Ok(asked::marked(&self.holder, &self.asked.mark()?))
    }

    /// Reads the key, through the leader and a majority.
    async fn look(&self, client: &mut Client) -> Result<GetResponse, CoordinatorError> {
        client.get(self.name.as_str(), None).await.map_err(|error| self.said(&error))
    }

    async fn grant(&self, ttl: Duration) -> Result<Acquired, CoordinatorError> {
        let seconds = whole_seconds(ttl)?;
        let asking = self.asked.begin()?;
        let mut client = self.client().await?;
        // Who waits only looks: a lease that is made and given back again would be two writes for the whole cluster.
        if let Some(kv) = self.look(&mut client).await?.kvs().first() {
            return self.taken(&mut client, kv, &asking).await;
        }
        let lease = client.lease_grant(seconds, None).await.map_err(|error| self.said(&error))?;
        let made = self.make(&mut client, &lease, &asking).await;
        if !matches!(made, Ok(Acquired::Granted(_))) {
            // With the key, should that have been made all the same.
            revoke(client, lease.id()).await;
        }
        made
    }

    /// Makes the key on this lease, where there is none.
    async fn make(
        &self,
        client: &mut Client,
        lease: &LeaseGrantResponse,
        asking: &Asking<'_>,
    ) -> Result<Acquired, CoordinatorError> {
        let put = PutOptions::new().with_lease(lease.id());
        let make = [
            TxnOp::put(self.name.as_str(), asked::marked(&self.holder, asking.mark()), Some(put)),
            TxnOp::get(format!("{}/epoch", self.name), None),
        ];
        let look = [TxnOp::get(self.name.as_str(), None)];
        let txn = Txn::new().when([self.created(0)]).and_then(make).or_else(look);
        let answer = client.txn(txn).await.map_err(|error| self.said(&error))?;
        let mut found = answer.op_responses().into_iter().filter_map(|response| match response {
            TxnOpResponse::Get(got) => Some(got.kvs().first().cloned()),
            _ => None,
        });
        let found: Option<KeyValue> = found.next().flatten();
        if answer.succeeded() {
            let epoch = epoch(&self.name, found)?;
            let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
            let token = u64::try_from(revision).ok().and_then(Token::new);
            let token = token.ok_or_else(|| unfit("etcd gave no revision"))?;
            self.leases().insert(token, lease.id());
            asking.grant(token);
            let granted = u64::try_from(lease.ttl()).ok().and_then(|s| s.checked_mul(1_000_000));
            return Ok(Acquired::Granted(Grant { token, epoch, ttl: granted.map(Duration::from_micros) }));
        }
        match found {
            Some(kv) => self.taken(client, &kv, asking).await,
            None => Ok(Acquired::Held { wait: None, by: None }),
        }
    }

    /// Somebody has the key.
    async fn taken(
        &self,
        client: &mut Client,
        kv: &KeyValue,
        asking: &Asking<'_>,
    ) -> Result<Acquired, CoordinatorError> {
        let (by, mark) = kv.value_str().map_or((None, ""), asked::read);
        if u64::try_from(kv.create_revision()).is_ok_and(|token| asking.may_undo(mark, token)) {
            // The answer to an earlier acquire was lost. Its lease is not taken over, since nobody knows since when it runs:
            // it is deleted, and the next try is granted a token of its own.
            let undo = self.deletion(kv.create_revision(), kv.value());
            client.txn(undo).await.map_err(|error| self.said(&error))?;
            revoke(client.clone(), kv.lease()).await;
            return Err(CoordinatorError::NoAnswer(
                "an earlier acquire had been granted unheard; it was undone".to_owned(),
            ));
        }
        Ok(Acquired::Held { wait: None, by })
    }

    /// In this order and on one member: see above.
    async fn keep_alive(&self, stamp: Stamp) -> Result<Renewed, CoordinatorError> {
        let Some(lease) = self.leases().get(&stamp.token).copied() else { return Ok(Renewed::Gone) };
        let mut client = self.client().await?;
        if !self.is_ours(self.look(&mut client).await?.kvs().first(), stamp)? {
            self.lost(client, stamp);
            return Ok(Renewed::Gone);
        }
        match client.lease_keep_alive(lease).await {
            Ok(_stream) => Ok(Renewed::Renewed { ttl: None }),
            Err(Error::LeaseKeepAliveError(_)) => {
                self.leases().remove(&stamp.token);
                Ok(Renewed::Gone)
            }
            Err(error) => Err(self.said(&error)),
        }
    }

    fn is_ours(&self, key: Option<&KeyValue>, stamp: Stamp) -> Result<bool, CoordinatorError> {
        let value = self.value()?;
        Ok(key.is_some_and(|kv| kv.create_revision() == revision(stamp) && kv.value() == value.as_bytes()))
    }

    /// The key is gone; what it hung on is given back. Nobody waits for that with the work to be stopped.
    fn lost(&self, client: Client, stamp: Stamp) {
        if let Some(lease) = self.leases().remove(&stamp.token) {
            tokio::spawn(revoke(client, lease));
        }
    }

    async fn delete(&self, stamp: Stamp) -> Result<(), CoordinatorError> {
        let mut client = self.client().await?;
        let delete = self.deletion(revision(stamp), self.value()?.as_bytes());
        client.txn(delete).await.map_err(|error| self.said(&error))?;
        let lease = self.leases().remove(&stamp.token);
        if let Some(lease) = lease {
            revoke(client, lease).await;
        }
        Ok(())
    }

    async fn wait(&self, stamp: Option<Stamp>) -> Result<(), CoordinatorError> {
        let mut client = self.client().await?;
        self.is_over(&mut client, stamp).await?;
        if let Some(stamp) = stamp {
            self.lost(client, stamp);
        }
        Ok(())
    }

    async fn is_over(&self, client: &mut Client, stamp: Option<Stamp>) -> Result<(), CoordinatorError> {
        let now = self.look(client).await?;
        let key = now.kvs().first();
        let over = match stamp {
            None => key.is_none(),
            Some(stamp) => !self.is_ours(key, stamp)?,
        };
        if over {
            return Ok(());
        }
        let next = now.header().map_or(0, etcd_client::ResponseHeader::revision).checked_add(1).unwrap_or(0);
        let options = WatchOptions::new().with_start_revision(next);
        let watch = client.watch(self.name.as_str(), Some(options)).await;
        let mut watch = watch.map_err(|error| self.said(&error))?;
        while let Some(answer) = watch.message().await.map_err(|error| self.said(&error))? {
            if answer.events().iter().any(|event| event.event_type() == EventType::Delete) {
                return Ok(());
            }
        }
        Err(CoordinatorError::NoAnswer("the watch has ended".to_owned()))
    }

    /// What etcd's client means.
    fn said(&self, error: &Error) -> CoordinatorError {
        let Error::GRpcStatus(status) = error else {
            let why = format!("etcd: {error}");
            return match error {
                Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::EndpointError(_) => CoordinatorError::Unfit(why),
                _ => CoordinatorError::NoAnswer(why),
            };
        };
        let why = format!("etcd: {}", status.message());
        // A member has forgotten whom it had let in (it was started again, or the users were changed): that is asked for anew,
        // and who is no user any more hears it then.
        if status.code() as i32 == 16 || status.message().contains("auth store is old") {
            self.endpoints.iter().for_each(|endpoint| *endpoint.kept() = None);
            return CoordinatorError::NoAnswer(why);
        }
        // UNAVAILABLE, CANCELLED and the like may pass; an argument, a credential or a permission does not, and neither does a
        // user where there are none.
        match status.code() as i32 {
            3 | 7 | 9 => CoordinatorError::Unfit(why),
            _ => CoordinatorError::NoAnswer(why),
        }
    }
}

/// Gives back a lease that nothing is to hang on any more. Should this be lost, it lapses.
async fn revoke(mut client: Client, lease: i64) {
    let _ = tokio::time::timeout(ALIVE.1, client.lease_revoke(lease)).await;
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
