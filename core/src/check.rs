//! The check: a configuration held against its system's own rules, and the plan beside it.

mod finding;

pub use finding::{Finding, Severity};

use crate::systems::{DRIFT, Key, Kind, Literal, RTT, System, Value};
use crate::{Drift, Duration, OutOfRange, Plan, PlanInput, RedlockInput};
use core::fmt;

/// The most keys that a system has; their count is held against it when this is compiled.
const MAX_KEYS: usize = 6;
/// The most findings that a check can have; each system's rules are held against it when this is compiled.
pub const MAX_FINDINGS: usize = 6;

const _: () = {
    let mut i = 0;
    while i < System::ALL.len() {
        assert!(System::ALL[i].keys().len() <= MAX_KEYS);
        i += 1;
    }
};

/// What is wrong with a configuration as it was given, before any rule looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConfigError {
    /// The system has no such key.
    UnknownKey(System),
    /// The key was given before.
    Twice(&'static str),
    /// The key's value is of another kind, or a word that the key does not take.
    WrongKind(&'static str),
    /// The key has no default and was not given.
    Missing(&'static str),
    /// A sum or a product with this key's value does not fit 2⁶³−1 µs.
    TooLong(&'static str),
    /// The calculator's own refusal.
    OutOfRange(OutOfRange),
}

impl ConfigError {
    /// The key that is to blame, or the contract's name of the field where the calculator refused.
    pub const fn field(self) -> &'static str {
        match self {
            Self::UnknownKey(_) => "key",
            Self::Twice(key) | Self::WrongKind(key) | Self::Missing(key) | Self::TooLong(key) => key,
            Self::OutOfRange(error) => error.field(),
        }
    }

    /// What is wrong, and what would be right, without the key's name.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::UnknownKey(_) => "the system has no such key",
            Self::Twice(_) => "it is given more than once",
            Self::WrongKind(_) => "its value is of another kind",
            Self::Missing(_) => "it has no default and must be given",
            Self::TooLong(_) => "what follows from it does not fit 2⁶³−1 µs",
            Self::OutOfRange(error) => error.reason(),
        }
    }
}

impl From<OutOfRange> for ConfigError {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field(), self.reason())
    }
}

impl core::error::Error for ConfigError {}

/// A system's configuration: every key's default until it is set.
///
/// # Example
/// ```
/// use fencegate::*;
/// let mut config = Config::new(System::Patroni);
/// config.set("ttl", Value::Time(Duration::from_secs(30)))?;
/// config.set("loop_wait", Value::Time(Duration::from_secs(15)))?;
/// let check = config.check()?;
/// assert!(!check.ok());
/// assert_eq!(check.findings().next().map(|finding| finding.rule()), Some("retry_budget"));
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    system: System,
    given: [Option<Value>; MAX_KEYS],
    drift: Option<Drift>,
    rtt: Option<Duration>,
}

impl Config {
    /// The system as it comes.
    pub const fn new(system: System) -> Self {
        Self { system, given: [None; MAX_KEYS], drift: None, rtt: None }
    }

    /// Whose configuration it is.
    pub const fn system(&self) -> System {
        self.system
    }

    /// Sets the value of a key. `drift` may be set more than once, once a clock: it adds up.
    ///
    /// # Errors
    /// [`ConfigError::UnknownKey`], [`ConfigError::WrongKind`] or [`ConfigError::Twice`]; nothing is changed then.
    pub fn set(&mut self, key: &str, value: Value) -> Result<(), ConfigError> {
        let key = self.system.key(key).ok_or(ConfigError::UnknownKey(self.system))?;
        let of_its_kind = match value {
            Value::Time(_) => matches!(key.kind, Kind::Ttl | Kind::Time),
            Value::Count(_) => key.kind == Kind::Count,
            Value::Drift(_) => key.kind == Kind::Drift,
            Value::Flag(_) => key.kind == Kind::Flag,
            Value::Literal(word) => key.literal == Some(word),
        };
        if !of_its_kind {
            return Err(ConfigError::WrongKind(key.name));
        }
        match value {
            Value::Drift(drift) if key.name == DRIFT.name => {
                self.drift = Some(self.drift.map_or(drift, |sum| sum + drift));
            }
            Value::Time(rtt) if key.name == RTT.name && self.rtt.is_none() => self.rtt = Some(rtt),
            value => match self.slot(key.name) {
                Some(slot @ None) => *slot = Some(value),
                _ => return Err(ConfigError::Twice(key.name)),
            },
        }
        Ok(())
    }

    /// Where the value of one of the system's own keys is kept.
    fn slot(&mut self, key: &str) -> Option<&mut Option<Value>> {
        let at = self.system.keys().iter().position(|k| k.name == key)?;
        self.given.get_mut(at)
    }

    /// The value of a key: as it was given, else its default.
    pub fn get(&self, key: &str) -> Option<Value> {
        let mut keys = self.system.keys().iter().zip(&self.given);
        match keys.find(|(k, _)| k.name == key) {
            Some((key, given)) => given.or(key.default),
            None if key == DRIFT.name => self.drift.map(Value::Drift),
            None if key == RTT.name => self.rtt.map(Value::Time).or(RTT.default),
            None => None,
        }
    }

    fn time(&self, key: &'static str) -> Result<Duration, ConfigError> {
        match self.get(key) {
            Some(Value::Time(d)) => Ok(d),
            _ => Err(ConfigError::Missing(key)),
        }
    }

    fn time_if_given(&self, key: &str) -> Option<Duration> {
        match self.get(key) {
            Some(Value::Time(d)) => Some(d),
            _ => None,
        }
    }

    fn count(&self, key: &str) -> Option<u64> {
        match self.get(key) {
            Some(Value::Count(n)) => Some(n),
            _ => None,
        }
    }

    fn drift_of(&self, key: &str) -> Drift {
        match self.get(key) {
            Some(Value::Drift(drift)) => drift,
            _ => Drift::ZERO,
        }
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key) == Some(Value::Flag(true))
    }

    /// Holds the configuration against its system's rules.
    ///
    /// # Errors
    /// [`ConfigError`] where a key that must be given is missing, where a drift is 100 % or more, where a Redlock's
    /// figures are out of their range, or where a figure that a rule needs does not fit 2⁶³−1 µs.
    pub fn check(&self) -> Result<Check, ConfigError> {
        let first: &Key = self.system.keys().first().ok_or(ConfigError::UnknownKey(self.system))?;
        if self.get(first.name).is_none() {
            return Err(ConfigError::Missing(first.name));
        }
        let findings = match self.system {
            System::Redlock => all(self.redlock()?),
            System::Redisson => all(self.redisson()),
            System::Etcd => all(self.etcd()?),
            System::ZooKeeper => all(self.zookeeper()?),
            System::Chubby => all(self.chubby()?),
            System::Patroni => all(self.patroni()?),
            System::Kubernetes => all(self.kubernetes()?),
            System::Consul => all(self.consul()?),
            System::DynamoDb => all(self.dynamodb()?),
            System::ShedLock => all(self.shedlock()?),
            System::AzureBlob => all(self.azure_blob()),
            System::Hazelcast => all(self.hazelcast()?),
        };
        Ok(Check { system: self.system, findings, plan: self.plan(first.name)? })
    }

    /// The plan for the system's lease, with the heartbeats that it makes; `None` without a drift, for a lease without
    /// end, for a heartbeat of zero, and for a TTL that has no plan (zero, or too long): a plan never decides anything.
    fn plan(&self, ttl: &str) -> Result<Option<Plan>, ConfigError> {
        let Some(drift) = self.drift else { return Ok(None) };
        drift.checked()?;
        let Some(ttl) = self.time_if_given(ttl) else { return Ok(None) };
        let heartbeat = ["loop_wait", "retry_period", "heartbeat"].iter().find_map(|key| self.time_if_given(key));
        let attempts = match heartbeat {
            Some(every) => match ttl.as_micros().checked_div(every.as_micros()) {
                Some(n) => n.max(2),
                None => return Ok(None),
            },
            None if self.system == System::Consul => 2,
            None => 3,
        };
        let rtt = self.rtt.unwrap_or(Duration::ZERO);
        let input = PlanInput { rtt, attempts, ..Plan::for_ttl(ttl).drift(drift) };
        Ok(input.plan().ok())
    }

    fn redlock(&self) -> Result<[Option<Finding>; 3], ConfigError> {
        let nodes = self.count("nodes").ok_or(ConfigError::Missing("nodes"))?;
        let input = RedlockInput {
            ttl: self.time("ttl")?,
            elapsed: self.time("elapsed")?,
            nodes,
            granted: self.count("granted").unwrap_or(nodes),
            drift_factor: self.drift_of("drift_factor"),
            drift_fixed: self.time("drift_fixed")?,
        };
        let RedlockInput { ttl, elapsed, granted, .. } = input;
        let lock = input.redlock()?;
        Ok([
            lock.validity.is_zero().then_some(Finding::NoValidity { ttl, elapsed, drift: lock.drift }),
            (granted < lock.quorum).then_some(Finding::NoQuorum { granted, quorum: lock.quorum, nodes }),
            Some(Finding::RandomValues),
        ])
    }

    fn redisson(&self) -> [Option<Finding>; 2] {
        let lease_time = self.time_if_given("lease_time").map(|lease_time| Finding::NotRenewed { lease_time });
        [lease_time, Some(if self.flag("fenced") { Finding::TokenMayGoBack } else { Finding::NotFenced })]
    }

    fn etcd(&self) -> Result<[Option<Finding>; 4], ConfigError> {
        const SECOND: u64 = 1_000_000;
        let (ttl, election, heartbeat) =
            (self.time("ttl")?, self.time("election_timeout")?, self.time("heartbeat_interval")?);
        let (us, e, h) = (ttl.as_micros(), election.as_micros(), heartbeat.as_micros());
        // The server would not start with other timeouts, and has no least TTL then. Within them, with k = ⌊e/h⌋,
        // ⌊3k/2⌋ = k + ⌊k/2⌋ and (k + ⌊k/2⌋)·h is at most 75 s.
        let starts = h > 0 && h <= e / 5 && election <= Duration::from_secs(50);
        let least = if starts { ((e / h + e / h / 2) * h).div_ceil(SECOND) * SECOND } else { 0 };
        Ok([
            (!us.is_multiple_of(SECOND)).then_some(Finding::NotWholeSeconds { ttl }),
            (us > 9_000_000_000 * SECOND).then_some(Finding::AboveEtcdsMost { ttl }),
            (!starts).then_some(Finding::ElectionTimeout { election, heartbeat }),
            (us < least).then_some(Finding::Lengthened { ttl, least: Duration::from_micros(least) }),
        ])
    }

    fn zookeeper(&self) -> Result<[Option<Finding>; 1], ConfigError> {
        let (asked, tick) = (self.time("session_timeout")?, self.time("tick")?);
        let ticks = |n: u64| {
            let us = tick.as_micros().checked_mul(n).map(Duration::from_micros);
            us.filter(|d| *d <= Duration::MAX_ANSWER).ok_or(ConfigError::TooLong("tick"))
        };
        // Not `clamp`, which would panic if the least were above the most.
        let given = asked.max(ticks(2)?).min(ticks(20)?);
        let ends = given.checked_add(tick).ok_or(ConfigError::TooLong("tick"))?;
        Ok([(given != asked).then_some(Finding::Clamped { asked, given, ends })])
    }

    fn chubby(&self) -> Result<[Option<Finding>; 2], ConfigError> {
        let (lease, grace) = (self.time("lease")?, self.time("grace")?);
        Ok([lease.is_zero().then_some(Finding::NoLease), Some(Finding::Advisory { grace })])
    }

    fn patroni(&self) -> Result<[Option<Finding>; 6], ConfigError> {
        const SECOND: u64 = 1_000_000;
        let (ttl, loop_wait, retry_timeout) = (self.time("ttl")?, self.time("loop_wait")?, self.time("retry_timeout")?);
        let budget = (loop_wait.checked_add(retry_timeout))
            .and_then(|sum| sum.checked_add(retry_timeout))
            .ok_or(ConfigError::TooLong("retry_timeout"))?;
        let half = Duration::from_micros(ttl.as_micros() / 2 / SECOND * SECOND);
        let halved = self.get("safety_margin") == Some(Value::Literal(Literal::HalfTheTtl));
        let margin = if halved { half } else { self.time("safety_margin")? };
        let slack = ttl.checked_sub(margin).is_some_and(|watchdog| watchdog >= loop_wait);
        let least = |key, value: Duration, least: u32| {
            let least = Duration::from_secs(least);
            (value < least).then_some(Finding::BelowPatronisLeast { key, value, least })
        };
        Ok([
            least("ttl", ttl, 20),
            least("loop_wait", loop_wait, 1),
            least("retry_timeout", retry_timeout, 3),
            (budget > ttl).then_some(Finding::RetryBudget { ttl, budget }),
            (!slack).then_some(Finding::WatchdogSlack { ttl, margin, loop_wait }),
            // The contract's margin is ⌊T/2⌋; Patroni makes ⌊T/2⌋ the watchdog's timeout, which of an odd TTL is less.
            (halved && slack && half < loop_wait).then_some(Finding::WatchdogHalf { watchdog: half, loop_wait }),
        ])
    }

    fn kubernetes(&self) -> Result<[Option<Finding>; 3], ConfigError> {
        const SECOND: u64 = 1_000_000;
        let (lease, deadline, retry) =
            (self.time("lease_duration")?, self.time("renew_deadline")?, self.time("retry_period")?);
        let kept = Duration::from_micros(lease.as_micros() / SECOND * SECOND);
        // deadline > 6/5·retry is deadline > ⌊6/5·retry⌋, since the deadline is whole; a sum that does not fit is above it.
        let jittered = retry.checked_add(Duration::from_micros(retry.as_micros() / 5));
        Ok([
            (lease <= deadline).then_some(Finding::DeadlineNotBeforeLease { lease, deadline }),
            (jittered.is_none_or(|most| deadline <= most))
                .then_some(Finding::RetryNotBeforeDeadline { deadline, retry }),
            (lease > deadline && kept <= deadline).then_some(Finding::RecordKeepsSeconds { lease, kept, deadline }),
        ])
    }

    fn consul(&self) -> Result<[Option<Finding>; 3], ConfigError> {
        let (ttl, lock_delay) = (self.time("ttl")?, self.time("lock_delay")?);
        let expiry = ttl.checked_add(ttl).ok_or(ConfigError::TooLong("ttl"))?;
        let takeover = expiry.checked_add(lock_delay).filter(|sum| *sum <= Duration::MAX_ANSWER);
        let takeover = takeover.ok_or(ConfigError::TooLong("ttl"))?;
        let fits = (Duration::from_secs(10)..=Duration::from_secs(86_400)).contains(&ttl);
        Ok([
            (!fits).then_some(Finding::OutsideConsulsTtl { ttl }),
            (lock_delay > Duration::from_secs(60)).then_some(Finding::LockDelay { lock_delay }),
            Some(Finding::Takeover { takeover, expiry, lock_delay }),
        ])
    }

    fn dynamodb(&self) -> Result<[Option<Finding>; 3], ConfigError> {
        let (lease, heartbeat) = (self.time("lease_duration")?, self.time("heartbeat")?);
        let at_least = |times| heartbeat.as_micros() <= lease.as_micros() / times;
        let beats = match (at_least(2), at_least(4)) {
            (true, true) => None,
            (true, false) => Some(Finding::FewHeartbeats { lease, heartbeat }),
            (false, _) => Some(Finding::TooFewHeartbeats { lease, heartbeat }),
        };
        let safe_time =
            self.time_if_given("safe_time").filter(|safe_time| *safe_time <= heartbeat || *safe_time >= lease);
        Ok([
            beats,
            safe_time.map(|safe_time| Finding::SafeTime { safe_time, heartbeat, lease }),
            Some(Finding::UnorderedVersion),
        ])
    }

    fn shedlock(&self) -> Result<[Option<Finding>; 3], ConfigError> {
        let (most, least, skew) =
            (self.time("lock_at_most_for")?, self.time("lock_at_least_for")?, self.time("clock_skew")?);
        Ok([
            (least > most).then_some(Finding::LeastAboveMost { least, most }),
            (skew > least && !self.flag("db_time")).then_some(Finding::ClockSkew { skew, least }),
            Some(Finding::NeitherTokenNorRenewal),
        ])
    }

    fn azure_blob(&self) -> [Option<Finding>; 3] {
        let lease = self.time_if_given("lease");
        let fits = |lease: &Duration| (Duration::from_secs(15)..=Duration::from_secs(60)).contains(lease);
        [
            lease.filter(|lease| !fits(lease)).map(|lease| Finding::OutsideAzuresLease { lease }),
            Some(Finding::UnorderedIds),
            lease.is_none().then_some(Finding::WithoutEnd),
        ]
    }

    fn hazelcast(&self) -> Result<[Option<Finding>; 1], ConfigError> {
        let (ttl, heartbeat) = (self.time("session_ttl")?, self.time("heartbeat")?);
        Ok([(ttl <= heartbeat).then_some(Finding::HeartbeatNotBeforeTtl { ttl, heartbeat })])
    }
}

/// The findings of one system in the room that there is for any.
fn all<const N: usize>(found: [Option<Finding>; N]) -> [Option<Finding>; MAX_FINDINGS] {
    const { assert!(N <= MAX_FINDINGS) };
    let mut findings = [None; MAX_FINDINGS];
    findings.iter_mut().zip(found).for_each(|(slot, finding)| *slot = finding);
    findings
}

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Check {
    system: System,
    findings: [Option<Finding>; MAX_FINDINGS],
    plan: Option<Plan>,
}

impl Check {
    /// Whose configuration was checked.
    pub const fn system(&self) -> System {
        self.system
    }

    /// Whether no finding is an error.
    pub fn ok(&self) -> bool {
        self.findings().all(|finding| finding.severity() != Severity::Error)
    }

    /// What was found, in the order of the contract's rules.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().flatten()
    }

    /// The plan for the system's lease, where a drift was given and there is one.
    pub const fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Check {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        struct Findings<'a>(&'a Check);
        impl serde::Serialize for Findings<'_> {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_seq(self.0.findings())
            }
        }
        let mut check = to.serialize_struct("Check", 4)?;
        check.serialize_field("system", self.system.name())?;
        check.serialize_field("ok", &self.ok())?;
        check.serialize_field("findings", &Findings(self))?;
        check.serialize_field("plan", &self.plan)?;
        check.end()
    }
}

#[cfg(test)]
mod tests;
