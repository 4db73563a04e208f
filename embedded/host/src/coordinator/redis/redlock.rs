//! Redlock: the same lock at a majority of N Redis servers that know nothing of each other. For efficiency only.
//!
//! It survives the loss of a minority of its servers, and promises no more than one Redis does: a server that restarts
//! without its keys, or whose clock jumps, may give a majority to a second holder. So it protects no gate without
//! `--efficiency` either.
//!
//! All servers are asked at once, each for a twentieth of the TTL at the most. What is left of the lock is what the contract's
//! `redlock` says it is, [`RedlockInput`], from before the first was asked until the last has answered; where that is
//! nothing, or no majority has granted it, it is given back at all of them. A [`Plan`](fencegate::Plan) does not know of the
//! drift that this formula allows for: [`Redlock::plan`] puts it in, so that no window is longer than the validity.
//!
//! The token is the highest count among those that granted the lock, written back to them before it is answered: two
//! majorities have a server in common, so that the next token is higher, as long as no server forgets. The keys are those of
//! the single server; the lock's value has a random number and no token, which is not known yet when it is written.

use super::link::Link;
use super::{RELEASE, RENEW, in_range, keys, milliseconds};
use crate::clock;
use crate::coordinator::{Access, Acquired, Call, Coordinator, CoordinatorError, Grant, Renewed};
use fencegate::{
    DEFAULT_DRIFT_FACTOR, DEFAULT_DRIFT_FIXED, Duration, HolderId, Instant, PlanInput, RedlockInput, Stamp, Token,
};
use redis::{FromRedisValue, Script};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

const ACQUIRE: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then return {0, 0, 0} end
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
return {1, redis.call('INCR', KEYS[2]), tonumber(redis.call('GET', KEYS[3]) or '0')}";

/// Writes the token back, where the lock is still this one.
const COUNT: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if tonumber(redis.call('GET', KEYS[2]) or '0') < tonumber(ARGV[2]) then redis.call('SET', KEYS[2], ARGV[2]) end
return 1";

/// One lock at several servers.
#[derive(Debug)]
pub struct Redlock {
    links: Vec<Arc<Link>>,
    keys: [String; 3],
    holder: HolderId,
    /// The lock's value under each token that was granted here.
    values: Mutex<BTreeMap<Token, String>>,
}

/// What came of asking all of them.
struct Answers<T> {
    /// Of those that answered, by their places.
    given: Vec<(usize, T)>,
    errors: Vec<CoordinatorError>,
}

impl Redlock {
    /// The lock `name` at the servers at `urls` (as [`Redis`](super::Redis) takes one), for `holder`.
    ///
    /// # Errors
    /// Where an address is none, or one comes twice: it would count twice.
    pub fn new<U: AsRef<str>>(
        urls: &[U],
        access: &Access,
        name: &str,
        holder: HolderId,
    ) -> Result<Self, CoordinatorError> {
        let mut links = Vec::new();
        for (n, url) in urls.iter().enumerate() {
            let url = url.as_ref();
            if urls.iter().take(n).any(|other| other.as_ref() == url) {
                return Err(CoordinatorError::Unfit(
                    "Redlock: a server is named twice, and would count twice".to_owned(),
                ));
            }
            links.push(Arc::new(Link::new(url, access)?));
        }
        if links.is_empty() {
            return Err(CoordinatorError::Unfit("Redlock: no server".to_owned()));
        }
        Ok(Self { links, keys: keys(name), holder, values: Mutex::default() })
    }

    /// The plan with what the contract's `redlock` allows for drift: at least 1 % of the TTL, and 2 ms.
    #[must_use]
    pub fn plan(mut plan: PlanInput) -> PlanInput {
        plan.drift = plan.drift.max(DEFAULT_DRIFT_FACTOR);
        plan.clock_offset = plan.clock_offset.checked_add(DEFAULT_DRIFT_FIXED).unwrap_or(plan.clock_offset);
        plan
    }

    fn nodes(&self) -> u64 {
        u64::try_from(self.links.len()).unwrap_or(u64::MAX)
    }

    fn values(&self) -> std::sync::MutexGuard<'_, BTreeMap<Token, String>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a script at the servers of these places, all at once.
    async fn at<T: FromRedisValue + Send + 'static>(
        &self,
        places: impl IntoIterator<Item = usize>,
        script: &str,
        arguments: &[String],
        ttl: Duration,
    ) -> Answers<T> {
        let patience = Duration::from_micros((ttl.as_micros() / 20).max(1_000));
        let mut calls = JoinSet::new();
        for n in places {
            let Some(link) = self.links.get(n).map(Arc::clone) else { continue };
            let (script, keys, arguments) = (Script::new(script), self.keys.clone(), arguments.to_vec());
            calls.spawn(async move {
                let mut call = script.prepare_invoke();
                call.key(&keys[0]).key(&keys[1]).key(&keys[2]).arg(arguments);
                let answer = tokio::time::timeout(patience.into(), link.invoke(&call)).await;
                let answer = answer.unwrap_or_else(|_| {
                    link.suspect();
                    Err(CoordinatorError::NoAnswer("Redis: no answer in a twentieth of the TTL".to_owned()))
                });
                (n, answer)
            });
        }
        let mut answers = Answers { given: Vec::new(), errors: Vec::new() };
        while let Some(ended) = calls.join_next().await {
            match ended {
                Ok((n, Ok(answer))) => answers.given.push((n, answer)),
                Ok((_, Err(error))) => answers.errors.push(error),
                Err(error) => answers.errors.push(CoordinatorError::NoAnswer(error.to_string())),
            }
        }
        answers
    }

    /// Whether the contract holds a lock that this many have granted since `began`.
    fn is_held(&self, ttl: Duration, began: Instant, granted: usize) -> Result<bool, CoordinatorError> {
        let elapsed = clock::now().since(began).unwrap_or(ttl);
        let granted = u64::try_from(granted).unwrap_or(0);
        let input = RedlockInput { elapsed, granted, ..RedlockInput::new(ttl, self.nodes()) };
        input.redlock().map(|left| left.held).map_err(|error| CoordinatorError::Unfit(error.to_string()))
    }

    /// Whether so many are a majority.
    fn is_quorum(&self, answers: usize) -> bool {
        answers > self.links.len() / 2
    }

    /// Why there is no majority that answered.
    fn silent<T>(&self, answers: &Answers<T>) -> CoordinatorError {
        let unfit = |error: &&CoordinatorError| matches!(error, CoordinatorError::Unfit(_));
        if let Some(error) = answers.errors.iter().find(unfit) {
            return error.clone();
        }
        let why = answers.errors.first().map(ToString::to_string).unwrap_or_default();
        let (given, all) = (answers.given.len(), self.links.len());
        CoordinatorError::NoAnswer(format!("Redlock: {given} of {all} servers answered; {why}"))
    }

    async fn grant(&self, ttl: Duration) -> Result<Acquired, CoordinatorError> {
        let ms = milliseconds(ttl)?;
        let nonce = getrandom::u64().map_err(|why| CoordinatorError::NoAnswer(format!("no random numbers: {why}")))?;
        let value = format!("{}:{nonce:016x}", self.holder);
        let began = clock::start();
        let all = 0..self.links.len();
        let answers = self.at::<(u8, i64, i64)>(all, ACQUIRE, &[value.clone(), ms.to_string()], ttl).await;
        let granted: Vec<_> = answers.given.iter().filter(|(_, (granted, ..))| *granted == 1).collect();
        let token =
            granted.iter().filter_map(|(_, (_, count, _))| u64::try_from(*count).ok()).max().and_then(Token::new);
        let epoch = granted.iter().map(|(_, (.., epoch))| *epoch).max();
        let mut wrong = None;
        if let (Some(token), Some(epoch)) = (token, epoch)
            && self.is_held(ttl, began, granted.len())?
        {
            match in_range(epoch) {
                Ok(epoch) => {
                    let places = granted.iter().map(|(n, _)| *n);
                    let counted = self.at::<u8>(places, COUNT, &[value.clone(), token.to_string()], ttl).await;
                    let granted = counted.given.iter().filter(|(_, done)| *done == 1).count();
                    if self.is_held(ttl, began, granted)? {
                        self.values().insert(token, value);
                        return Ok(Acquired::Granted(Grant { token, epoch, ttl: Some(ttl) }));
                    }
                }
                Err(why) => wrong = Some(why),
            }
        }
        // Also where no answer came: it may have been granted there all the same.
        self.at::<u8>(0..self.links.len(), RELEASE, &[value], ttl).await;
        if let Some(why) = wrong {
            return Err(why);
        }
        if self.is_quorum(answers.given.len()) {
            Ok(Acquired::Held { wait: None, by: None })
        } else {
            Err(self.silent(&answers))
        }
    }

    async fn extend(&self, stamp: Stamp, ttl: Duration) -> Result<Renewed, CoordinatorError> {
        let Some(value) = self.values().get(&stamp.token).cloned() else { return Ok(Renewed::Gone) };
        let ms = milliseconds(ttl)?;
        let began = clock::start();
        let answers = self.at::<u8>(0..self.links.len(), RENEW, &[value, ms.to_string()], ttl).await;
        let renewed = answers.given.iter().filter(|(_, done)| *done == 1).count();
        if self.is_held(ttl, began, renewed)? {
            return Ok(Renewed::Renewed { ttl: Some(ttl) });
        }
        // Those that are silent might still have it; a majority that has not is the end of it.
        let gone = answers.given.len().saturating_sub(renewed);
        if self.is_quorum(self.links.len().saturating_sub(gone)) {
            Err(self.silent(&answers))
        } else {
            Ok(Renewed::Gone)
        }
    }

    async fn give_back(&self, stamp: Stamp) -> Result<(), CoordinatorError> {
        let Some(value) = self.values().get(&stamp.token).cloned() else { return Ok(()) };
        // Without a TTL to go by, as long as a renewal at a TTL of some seconds may take.
        let answers = self.at::<u8>(0..self.links.len(), RELEASE, &[value], Duration::from_secs(10)).await;
        if !self.is_quorum(answers.given.len()) {
            return Err(self.silent(&answers));
        }
        self.values().remove(&stamp.token); // where a minority did not answer it lapses
        Ok(())
    }
}

impl Coordinator for Redlock {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(self.grant(ttl))
    }

    fn renew(&self, stamp: Stamp, ttl: Duration) -> Call<'_, Renewed> {
        Box::pin(self.extend(stamp, ttl))
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(self.give_back(stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencegate::{Drift, Plan};

    /// The window of a plan is the contract's validity of the same TTL, as it was when the first server was asked.
    #[test]
    fn no_window_is_longer_than_the_validity() {
        for ttl in [1_000, 3_000, 10_000, 60_001].map(Duration::from_millis) {
            let validity = RedlockInput::new(ttl, 5).redlock().unwrap().validity;
            for (ppm, is_exact) in [(0, true), (500, true), (10_000, true), (10_001, false), (50_000, false)] {
                let plan = Plan::for_ttl(ttl).round_trip(Duration::from_millis(10)).drift(Drift::from_ppm(ppm));
                let plan = Redlock::plan(plan).build().unwrap();
                assert!(plan.window() <= validity);
                assert_eq!(plan.window() == validity, is_exact, "{ttl:?} {ppm}");
            }
        }
    }

    #[test]
    fn a_server_that_is_named_twice_is_refused() {
        let (id, open) = (HolderId::new("a").unwrap(), Access::default());
        let twice = ["redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:1"];
        assert!(Redlock::new(&twice, &open, "x", id).unwrap_err().to_string().contains("named twice"));
        assert!(Redlock::new(&twice[..0], &open, "x", id).is_err());
        assert!(Redlock::new(&twice[..2], &open, "x", id).is_ok());
    }
}
