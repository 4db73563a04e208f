//! The way to one Redis server.

#[cfg(feature = "tls")]
use crate::coordinator::access::settle_cryptography;
use crate::coordinator::{Access, CoordinatorError};
#[cfg(feature = "tls")]
use redis::TlsCertificates;
use redis::aio::MultiplexedConnection;
use redis::{
    Client, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError, ScriptInvocation,
    ServerErrorKind,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection that is made when it is needed, and made anew when it has broken.
pub(super) struct Link {
    client: Client,
    connection: Mutex<Option<MultiplexedConnection>>,
    suspect: AtomicBool,
}

impl std::fmt::Debug for Link {
    /// Without what is in the address: it may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn new(url: &str, access: &Access) -> Result<Self, CoordinatorError> {
        let unfit = |error: RedisError| CoordinatorError::Unfit(format!("Redis: {error}"));
        let mut to = url.into_connection_info().map_err(unfit)?;
        if let Some(password) = &access.password {
            let settings = to.redis_settings().clone().set_password(password);
            to = to.set_redis_settings(settings);
        }
        let client = match to.addr() {
            #[cfg(feature = "tls")]
            ConnectionAddr::TcpTls { .. } => {
                settle_cryptography();
                let certificates = TlsCertificates { client_tls: None, root_cert: access.ca.clone() };
                Client::build_with_tls(to, certificates)
            }
            #[cfg(not(feature = "tls"))]
            ConnectionAddr::TcpTls { .. } => {
                return Err(CoordinatorError::Unfit("this fencegate was built without tls".to_owned()));
            }
            _ if access.ca.is_some() => {
                let why = "Redis: certificates are for rediss://, and this address is for plain TCP";
                return Err(CoordinatorError::Unfit(why.to_owned()));
            }
            _ => Client::open(to),
        };
        Ok(Self { client: client.map_err(unfit)?, connection: Mutex::new(None), suspect: AtomicBool::new(false) })
    }

    fn kept(&self) -> MutexGuard<'_, Option<MultiplexedConnection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that is there, or a new one. Who waits for a new one holds up nobody.
    async fn connection(&self) -> Result<MultiplexedConnection, CoordinatorError> {
        {
            let mut kept = self.kept();
            if self.suspect.swap(false, Ordering::Relaxed) {
                *kept = None;
            }
            if let Some(connection) = kept.as_ref() {
                return Ok(connection.clone());
            }
        }
        let connection = self.client.get_multiplexed_async_connection().await.map_err(|error| self.said(&error))?;
        *self.kept() = Some(connection.clone());
        Ok(connection)
    }

    /// Runs a script there.
    pub(super) async fn invoke<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, CoordinatorError> {
        let mut connection = self.connection().await?;
        call.invoke_async(&mut connection).await.map_err(|error| self.said(&error))
    }

    /// The next call uses another connection.
    pub(super) fn suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }

    /// What the client means. A connection that broke is not used again.
    fn said(&self, error: &RedisError) -> CoordinatorError {
        let why = format!("Redis: {error}");
        match error.kind() {
            ErrorKind::AuthenticationFailed
            | ErrorKind::InvalidClientConfig
            | ErrorKind::Server(ServerErrorKind::NoPerm | ServerErrorKind::ResponseError) => {
                CoordinatorError::Unfit(why)
            }
            _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => CoordinatorError::Unfit(why),
            _ => {
                self.suspect();
                CoordinatorError::NoAnswer(why)
            }
        }
    }
}
