//! PostgreSQL: a row in `fencegate_lease`, on the database's own clock; the token is from a sequence, in the same statement.
//!
//! The sequence is read after the row is locked, so that of two challengers the later one gets the higher token. It is
//! never rolled back; a restore, or a fail-over to a standby that lagged, takes it back, and then the operator raises the
//! epoch, in the row: `UPDATE fencegate_lease SET epoch = epoch + 1 WHERE lock = 'press-7'`.
//!
//! The row's end is on the wall clock of the database's machine. That clock must be slewed, not stepped; by how much it may
//! be stepped all the same belongs into `clock_offset` of the plan. Table and sequence are made where they are not there.
//!
//! Several servers in an address (`a,b:5433`) are **one database: its primary and its standbys**. The first that lets us in
//! and can be written is asked (`target_session_attrs=read-write`, unless the address has another); which one may be written
//! is for whoever promotes them to say, and two at once grant twice. **The standbys have to be synchronous:** a fail-over to
//! one that lagged loses more than the sequence. A lease that had not come to it is not there, and its holder may be inside
//! its window. So keep what was promoted away from its clients until the longest TTL has passed since the old primary
//! answered last, or have every resource behind a gate or a guard, which the higher epoch then fences.

mod hosts;

use super::asked::Asked;
use super::{Access, Acquired, Call, Coordinator, CoordinatorError, Grant, Renewed};
use fencegate::{Duration, Epoch, HolderId, Stamp, Token};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Config, NoTls, Row, config::SslMode, error::SqlState};

/// Several may do it at once, hence the lock; and who may not create may still use. A table of before there were marks is
/// given the column for them.
const TABLE: &str = "DO $$ BEGIN
    IF to_regclass('fencegate_lease') IS NULL THEN
        PERFORM pg_advisory_xact_lock(7366001);
        CREATE SEQUENCE IF NOT EXISTS fencegate_token;
        CREATE TABLE IF NOT EXISTS fencegate_lease (
            lock text PRIMARY KEY, epoch bigint NOT NULL DEFAULT 0, token bigint NOT NULL, holder text NOT NULL,
            ends timestamptz NOT NULL, asked text);
    ELSIF NOT EXISTS (SELECT FROM pg_attribute
        WHERE attrelid = to_regclass('fencegate_lease') AND attname = 'asked' AND NOT attisdropped) THEN
        ALTER TABLE fencegate_lease ADD COLUMN IF NOT EXISTS asked text;
    END IF;
END $$";

const ACQUIRE: &str = "INSERT INTO fencegate_lease AS l (lock, token, holder, asked, ends)
    VALUES ($1, nextval('fencegate_token'), $2, $4, clock_timestamp() + $3::bigint * interval '1 microsecond')
    ON CONFLICT (lock) DO UPDATE SET token = nextval('fencegate_token'), holder = excluded.holder, asked = excluded.asked,
        ends = clock_timestamp() + $3::bigint * interval '1 microsecond'
    WHERE l.ends <= clock_timestamp()
    RETURNING token, epoch";

/// It may have been released since: nothing can be taken from an end at minus infinity.
const LEFT: &str =
    "SELECT CASE WHEN isfinite(ends) THEN (extract(epoch FROM ends - clock_timestamp()) * 1000000)::bigint
        ELSE 0 END, holder, token, coalesce(asked, '')
    FROM fencegate_lease WHERE lock = $1";

const RENEW: &str = "UPDATE fencegate_lease SET ends = clock_timestamp() + $4::bigint * interval '1 microsecond'
    WHERE lock = $1 AND holder = $2 AND token = $3 AND ends > clock_timestamp()";

const RELEASE: &str = "UPDATE fencegate_lease SET ends = '-infinity' WHERE lock = $1 AND holder = $2 AND token = $3";

/// A release comes without a TTL to go by.
const RELEASED_WITHIN: Duration = Duration::from_secs(10);

/// One lock in a database.
pub struct Postgres {
    hosts: Vec<Config>,
    name: String,
    holder: HolderId,
    asked: Asked,
    /// Only where the address or the certificates ask for it.
    #[cfg(feature = "tls")]
    tls: Option<tokio_postgres_rustls::MakeRustlsConnect>,
    client: Mutex<Option<Arc<Client>>>,
    suspect: AtomicBool,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("name", &self.name).field("holder", &self.holder).finish_non_exhaustive()
    }
}

impl Postgres {
    /// The lock `name` in the database at `url` (`postgres://user@host:port/database`; several hosts are a primary and its
    /// standbys), for `holder`; the connection is made when it is needed. Over plain TCP, unless the address says
    /// `sslmode=require` or `access` has certificates: then the server has to show one for its name, which is more than
    /// `require` asks for elsewhere.
    ///
    /// # Errors
    /// Where the address is none, or the certificates are none.
    pub fn new(url: &str, access: &Access, name: &str, holder: HolderId) -> Result<Self, CoordinatorError> {
        let mut hosts = hosts::hosts(url).map_err(|error| CoordinatorError::Unfit(said(&error)))?;
        for config in &mut hosts {
            if let Some(password) = &access.password {
                config.password(password);
            }
            if !url.contains("sslmode=") {
                config.ssl_mode(if access.ca.is_some() { SslMode::Require } else { SslMode::Disable });
            }
        }
        let plain = hosts.iter().all(|config| config.get_ssl_mode() == SslMode::Disable);
        #[cfg(feature = "tls")]
        let tls = if plain { None } else { Some(tokio_postgres_rustls::MakeRustlsConnect::new(access.tls()?)) };
        #[cfg(not(feature = "tls"))]
        if !plain {
            return Err(CoordinatorError::Unfit("this fencegate was built without tls".to_owned()));
        }
        Ok(Self {
            hosts,
            name: name.to_owned(),
            holder,
            asked: Asked::default(),
            #[cfg(feature = "tls")]
            tls,
            client: Mutex::new(None),
            suspect: AtomicBool::new(false),
        })
    }

    async fn connect(&self, ttl: Duration) -> Result<Client, CoordinatorError> {
        hosts::first(&self.hosts, ttl, |config| {
            #[cfg(feature = "tls")]
            let tls = self.tls.clone();
            async move {
                #[cfg(feature = "tls")]
                if let Some(tls) = tls {
                    let (client, connection) = config.connect(tls).await.map_err(unanswered)?;
                    tokio::spawn(connection); // ends with the client
                    return Ok(client);
                }
                let (client, connection) = config.connect(NoTls).await.map_err(unanswered)?;
                tokio::spawn(connection);
                Ok(client)
            }
        })
        .await
    }

    fn kept(&self) -> MutexGuard<'_, Option<Arc<Client>>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that is there, or a new one. Who waits for a new one holds up nobody: the next call may find a server
    /// that answers.
    async fn client(&self, ttl: Duration) -> Result<Arc<Client>, CoordinatorError> {
        {
            let mut kept = self.kept();
            if self.suspect.swap(false, Ordering::Relaxed) {
                *kept = None;
            }
            if let Some(client) = kept.as_ref().filter(|client| !client.is_closed()) {
                return Ok(Arc::clone(client));
            }
        }
        let client = self.connect(ttl).await?;
        client.batch_execute(TABLE).await.map_err(unanswered)?;
        let client = Arc::new(client);
        *self.kept() = Some(Arc::clone(&client));
        Ok(client)
    }

    async fn grant(&self, ttl: Duration) -> Result<Acquired, CoordinatorError> {
        let us = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
        let asking = self.asked.begin()?;
        let (client, holder, mark) = (self.client(ttl).await?, self.holder.to_string(), asking.mark().to_owned());
        if let Some(row) = client.query_opt(ACQUIRE, &[&self.name, &holder, &us, &mark]).await.map_err(unanswered)? {
            let (token, epoch): (i64, i64) = (cell(&row, 0)?, cell(&row, 1)?);
            let (token, epoch) = match usable(token, epoch) {
                Ok(usable) => usable,
                Err(why) => {
                    // Else it would be held by nobody for a TTL.
                    let _ = client.execute(RELEASE, &[&self.name, &holder, &token]).await;
                    return Err(why);
                }
            };
            asking.grant(token);
            return Ok(Acquired::Granted(Grant { token, epoch, ttl: Some(ttl) }));
        }
        let Some(row) = client.query_opt(LEFT, &[&self.name]).await.map_err(unanswered)? else {
            return Ok(Acquired::Held { wait: None, by: None });
        };
        let (left, by, token): (i64, String, i64) = (cell(&row, 0)?, cell(&row, 1)?, cell(&row, 2)?);
        let mark: String = cell(&row, 3)?;
        // One that is older than marks leaves somebody's there.
        if by == holder && u64::try_from(token).is_ok_and(|token| asking.may_undo(&mark, token)) {
            // The answer to an earlier acquire was lost, and nobody knows since when its lease runs.
            client.execute(RELEASE, &[&self.name, &holder, &token]).await.map_err(unanswered)?;
            let why = "an earlier acquire had been granted unheard; it was undone";
            return Err(CoordinatorError::NoAnswer(why.to_owned()));
        }
        let wait = u64::try_from(left).ok().map(Duration::from_micros);
        Ok(Acquired::Held { wait, by: HolderId::new(&by).ok() })
    }

    async fn update(&self, stamp: Stamp, ttl: Option<Duration>) -> Result<bool, CoordinatorError> {
        let Ok(token) = i64::try_from(stamp.token.get()) else { return Ok(false) };
        let (client, holder) = (self.client(ttl.unwrap_or(RELEASED_WITHIN)).await?, stamp.holder.to_string());
        let rows = match ttl {
            Some(ttl) => {
                let us = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
                client.execute(RENEW, &[&self.name, &holder, &token, &us]).await
            }
            None => client.execute(RELEASE, &[&self.name, &holder, &token]).await,
        };
        Ok(rows.map_err(unanswered)? == 1)
    }
}

impl Coordinator for Postgres {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(self.grant(ttl))
    }

    fn renew(&self, stamp: Stamp, ttl: Duration) -> Call<'_, Renewed> {
        Box::pin(async move {
            let renewed = self.update(stamp, Some(ttl)).await?;
            Ok(if renewed { Renewed::Renewed { ttl: Some(ttl) } } else { Renewed::Gone })
        })
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(async move { self.update(stamp, None).await.map(drop) })
    }

    fn suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }
}

/// What was granted, where a stamp can be made of it.
fn usable(token: i64, epoch: i64) -> Result<(Token, Epoch), CoordinatorError> {
    let token = u64::try_from(token).ok().and_then(Token::new);
    let token = token.ok_or_else(|| CoordinatorError::Unfit("the sequence gave no token".to_owned()))?;
    let epoch = u32::try_from(epoch).map(Epoch);
    let epoch = epoch.map_err(|_| CoordinatorError::Unfit("epoch: not a number of 32 bits".to_owned()))?;
    Ok((token, epoch))
}

/// A cell of a row of ours; somebody else's table of that name may have others.
fn cell<T: for<'a> FromSql<'a>>(row: &Row, n: usize) -> Result<T, CoordinatorError> {
    row.try_get(n).map_err(|error| CoordinatorError::Unfit(said(&error)))
}

/// An error with what lies beneath it: alone it says as little as "db error".
fn said(error: &tokio_postgres::Error) -> String {
    use std::error::Error;
    match (error.as_db_error(), error.source()) {
        (Some(db), _) => format!("PostgreSQL: {}", db.message()),
        (None, Some(source)) => format!("PostgreSQL: {error}: {source}"),
        (None, None) => format!("PostgreSQL: {error}"),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err hands over")]
fn unanswered(error: tokio_postgres::Error) -> CoordinatorError {
    let why = said(&error);
    let unfit = error.code().is_some_and(|code| {
        let of_class = |class| code.code().starts_with(class);
        // Authorisation, no such database or table, no such right, numbers out of range.
        of_class("28") || of_class("3D") || of_class("22") || of_class("42") || *code == SqlState::INVALID_PASSWORD
    });
    if unfit { CoordinatorError::Unfit(why) } else { CoordinatorError::NoAnswer(why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencegate::Epoch;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    /// A server that takes connections and says nothing.
    #[tokio::test]
    async fn a_call_that_hangs_while_it_connects_holds_up_no_other() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://tester@{}/postgres", silent.local_addr().unwrap());
        let holder = HolderId::new("a#1").unwrap();
        let lock = Arc::new(Postgres::new(&url, &Access::default(), "press-7", holder).unwrap());
        let stamp = Stamp { epoch: Epoch(0), token: Token::new(1).unwrap(), holder };
        let ttl = Duration::from_secs(600);
        let mut calls = tokio::task::JoinSet::new();
        let mut lines = Vec::new();
        for n in 0..3 {
            let lock = lock.clone();
            calls.spawn(async move {
                if n == 0 { lock.acquire(ttl).await.map(drop) } else { lock.renew(stamp, ttl).await.map(drop) }
            });
            let (mut line, _) = silent.accept().await.unwrap();
            assert!(line.read_u32().await.is_ok(), "each asks on a connection of its own");
            lines.push(line);
        }
        drop((lines, silent));
        while let Some(ended) = calls.join_next().await {
            assert!(matches!(ended.unwrap(), Err(CoordinatorError::NoAnswer(_))));
        }
    }
}
