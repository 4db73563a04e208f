//! Redis: `SET NX PX` in a script, compare-and-extend, compare-and-delete. For efficiency only.
//!
//! Redis has no durable order. A primary acknowledges before its replicas and its disk know of the lock, so that a fail-over
//! or a crash gives it to two holders; and the token, from an `INCR` beside it, goes back in the same fail-over. So it keeps
//! two workers from doing the same work most of the time, and it cannot fence: `fencegate hold` refuses to protect a gate
//! with it unless it is told that this is for efficiency only.
//!
//! Keys: `NAME` has the holder, the token and who has asked for it, `{NAME}:token` the count, `{NAME}:epoch` the operator's
//! epoch. TTLs are whole milliseconds.

mod link;
pub mod redlock;

use super::asked::Asked;
use super::{Access, Acquired, Call, Coordinator, CoordinatorError, Grant, Renewed};
use ::redis::Script;
use fencegate::{Duration, Epoch, HolderId, Stamp, Token};
use link::Link;

const ACQUIRE: &str = "
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then return {0, left, 0, redis.call('GET', KEYS[1])} end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. token .. ':' .. ARGV[3], 'NX', 'PX', ARGV[2])
return {1, token, tonumber(redis.call('GET', KEYS[3]) or '0') or -1, ''}";

const RENEW: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0";

const RELEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";

/// One lock at a Redis server.
#[derive(Debug)]
pub struct Redis {
    link: Link,
    keys: [String; 3],
    holder: HolderId,
    asked: Asked,
}

/// The lock, its count, its epoch.
fn keys(name: &str) -> [String; 3] {
    [name.to_owned(), format!("{{{name}}}:token"), format!("{{{name}}}:epoch")]
}

impl Redis {
    /// The lock `name` at the server at `url` (`redis://user@host:port/0`, or `rediss://` in TLS), for `holder`; the
    /// connection is made when it is needed.
    ///
    /// # Errors
    /// Where the address is none, or the certificates are none or of no use for it.
    pub fn new(url: &str, access: &Access, name: &str, holder: HolderId) -> Result<Self, CoordinatorError> {
        Ok(Self { link: Link::new(url, access)?, keys: keys(name), holder, asked: Asked::default() })
    }

    async fn grant(&self, ttl: Duration) -> Result<Acquired, CoordinatorError> {
        let asking = self.asked.begin()?;
        let script = Script::new(ACQUIRE);
        let mut call = script.prepare_invoke();
        call.key(&self.keys[0]).key(&self.keys[1]).key(&self.keys[2]);
        call.arg(self.holder.to_string()).arg(milliseconds(ttl)?).arg(asking.mark());
        let (granted, n, epoch, value): (u8, i64, i64, String) = self.link.invoke(&call).await?;
        if granted != 1 {
            let (by, token, mark) = read(&value);
            // Ours by an acquire whose answer was lost: nobody knows since when it runs.
            if token.is_some_and(|token| asking.may_undo(mark, token.get())) {
                self.compare(RELEASE, &value, None).await?;
                let why = "an earlier acquire had been granted unheard; it was undone";
                return Err(CoordinatorError::NoAnswer(why.to_owned()));
            }
            let wait = u64::try_from(n).ok().and_then(|ms| ms.checked_mul(1_000)).map(Duration::from_micros);
            return Ok(Acquired::Held { wait, by });
        }
        let (token, epoch) = match usable(n, epoch) {
            Ok(usable) => usable,
            Err(why) => {
                // Else it would be held by nobody for a TTL.
                let value = format!("{}:{n}:{}", self.holder, asking.mark());
                let _ = self.compare(RELEASE, &value, None).await;
                return Err(why);
            }
        };
        asking.grant(token);
        Ok(Acquired::Granted(Grant { token, epoch, ttl: Some(ttl) }))
    }

    /// The lock's value under this stamp, as this coordinator has written it.
    fn value(&self, stamp: Stamp) -> Result<String, CoordinatorError> {
        Ok(format!("{}:{}:{}", stamp.holder, stamp.token, self.asked.mark()?))
    }

    async fn compare(&self, script: &str, value: &str, ttl: Option<Duration>) -> Result<bool, CoordinatorError> {
        let script = Script::new(script);
        let mut call = script.prepare_invoke();
        call.key(&self.keys[0]).arg(value);
        if let Some(ttl) = ttl {
            call.arg(milliseconds(ttl)?);
        }
        let done: u8 = self.link.invoke(&call).await?;
        Ok(done == 1)
    }
}

impl Coordinator for Redis {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(self.grant(ttl))
    }

    fn renew(&self, stamp: Stamp, ttl: Duration) -> Call<'_, Renewed> {
        Box::pin(async move {
            let renewed = self.compare(RENEW, &self.value(stamp)?, Some(ttl)).await?;
            Ok(if renewed { Renewed::Renewed { ttl: Some(ttl) } } else { Renewed::Gone })
        })
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(async move { self.compare(RELEASE, &self.value(stamp)?, None).await.map(drop) })
    }

    fn suspect(&self) {
        self.link.suspect();
    }
}

/// Holder, token and mark of a lock's value.
fn read(value: &str) -> (Option<HolderId>, Option<Token>, &str) {
    let (held, mark) = value.rsplit_once(':').unwrap_or((value, ""));
    let (holder, token) = held.rsplit_once(':').unwrap_or((held, ""));
    (HolderId::new(holder).ok(), token.parse().ok().and_then(Token::new), mark)
}

/// What was granted, where a stamp can be made of it.
fn usable(token: i64, epoch: i64) -> Result<(Token, Epoch), CoordinatorError> {
    let token = u64::try_from(token).ok().and_then(Token::new);
    let token = token.ok_or_else(|| CoordinatorError::Unfit("Redis: the count gave no token".to_owned()))?;
    Ok((token, in_range(epoch)?))
}

fn in_range(epoch: i64) -> Result<Epoch, CoordinatorError> {
    let epoch = u32::try_from(epoch).map(Epoch);
    epoch.map_err(|_| CoordinatorError::Unfit("epoch: not a number of 32 bits".to_owned()))
}

fn milliseconds(ttl: Duration) -> Result<u64, CoordinatorError> {
    let us = ttl.as_micros();
    if us == 0 || !us.is_multiple_of(1_000) {
        return Err(CoordinatorError::Unfit("ttl_us: Redis takes whole milliseconds, at least one".to_owned()));
    }
    Ok(us / 1_000)
}
