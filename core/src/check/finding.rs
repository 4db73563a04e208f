//! What a check can find: the closed list, each with its figures, its words and its source.

use crate::Duration;
use crate::systems::{self as of, Exact};
use core::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Severity {
    /// The system refuses the configuration, changes it, or is not safe with it.
    Error,
    /// It works, and somebody will be surprised.
    Warning,
}

impl Severity {
    /// The contract's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

macro_rules! findings {
    ($($(#[$doc:meta])* $name:ident $({ $($field:ident: $type:ty),* })? = $rule:literal $severity:ident $source:expr,
        $text:literal;)+) => {
        /// A rule that a configuration breaks, or a warning that belongs to it, with the figures of the case.
        ///
        /// [`Display`](fmt::Display) puts it in words: the values, and what to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[expect(missing_docs, reason = "a figure is named as the key that it is the value of")]
        #[non_exhaustive]
        pub enum Finding {
            $($(#[$doc])* $name $({ $($field: $type),* })?,)+
        }

        impl Finding {
            /// The rule's name, unique within its system.
            pub const fn rule(&self) -> &'static str {
                match self {
                    $(Self::$name $({ $($field: _),* })? => $rule,)+
                }
            }

            /// How bad it is.
            pub const fn severity(&self) -> Severity {
                match self {
                    $(Self::$name $({ $($field: _),* })? => Severity::$severity,)+
                }
            }

            /// Where the rule is written.
            pub const fn source(&self) -> &'static str {
                match self {
                    $(Self::$name $({ $($field: _),* })? => $source,)+
                }
            }
        }

        impl fmt::Display for Finding {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name $({ $($field),* })? => {
                        $($(let $field = Shown::shown($field);)*)?
                        write!(f, $text)
                    })+
                }
            }
        }
    };
}

/// A figure in words: durations as they are typed, all else as it is.
trait Shown {
    type As: fmt::Display;
    fn shown(self) -> Self::As;
}

impl Shown for Duration {
    type As = Exact;
    fn shown(self) -> Exact {
        Exact(self)
    }
}

impl Shown for u64 {
    type As = Self;
    fn shown(self) -> Self {
        self
    }
}

impl Shown for &'static str {
    type As = Self;
    fn shown(self) -> Self {
        self
    }
}

findings! {
    /// Redlock: no validity is left.
    NoValidity { ttl: Duration, elapsed: Duration, drift: Duration } = "validity" Error of::REDLOCK_DOC,
    "nothing is left of a ttl of {ttl} after {elapsed} of acquiring and {drift} for drift: raise ttl, or ask the nodes at \
     once and with a shorter timeout";
    /// Redlock: no majority granted it.
    NoQuorum { granted: u64, quorum: u64, nodes: u64 } = "quorum" Error of::REDLOCK_DOC,
    "{granted} of {nodes} nodes granted the lock and {quorum} are needed: release it everywhere and try again";
    /// Redlock: nothing to fence with.
    RandomValues = "token" Warning of::REDLOCK_DOC,
    "random values cannot fence: a resource cannot tell the later of two holders; take the token from a counter that a \
     majority agrees on (etcd, ZooKeeper), or do without fencing knowingly";
    /// Redisson: a lease time switches the watchdog off.
    NotRenewed { lease_time: Duration } = "renewal" Warning of::REDISSON_CONFIG,
    "with lease_time {lease_time} the watchdog does not renew the lock, which ends after that whatever its holder does: \
     leave lease_time out, or size it for the longest work";
    /// Redisson: an `RLock` has no token.
    NotFenced = "token" Warning of::REDISSON_LOCKS,
    "an RLock has no token, so that nothing can refuse a holder that wakes up late: use RFencedLock (fenced=true) and \
     check its token at the resource";
    /// Redisson: the token of an `RFencedLock` is a counter in Redis.
    TokenMayGoBack = "token" Warning of::REDISSON_FENCED,
    "the token is counted in Redis, and on asynchronous replicas a failover can set it back: raise the epoch after one, \
     or take the token from etcd or ZooKeeper";
    /// etcd: a TTL is an integer of seconds.
    NotWholeSeconds { ttl: Duration } = "whole_seconds" Error of::ETCD_LESSOR,
    "etcd takes a ttl in whole seconds, and {ttl} is not: round it up";
    /// etcd: the longest TTL.
    AboveEtcdsMost { ttl: Duration } = "max_ttl" Error of::ETCD_LESSOR,
    "etcd refuses a ttl above 9000000000s, and {ttl} is: lower it";
    /// etcd: the server does not start with these timeouts.
    ElectionTimeout { election: Duration, heartbeat: Duration } = "election_timeout" Error of::ETCD_CONFIG,
    "etcd does not start with an election_timeout of {election} and a heartbeat_interval of {heartbeat}: the election \
     takes at least 5 heartbeats and at most 50s, and a heartbeat is above 0s";
    /// etcd: the server's least TTL.
    Lengthened { ttl: Duration, least: Duration } = "min_ttl" Warning of::ETCD_SERVER,
    "the server lengthens a ttl of {ttl} to {least}, its least with these election timeouts: count on the ttl that the \
     grant answers, or ask for {least}";
    /// ZooKeeper: the server clamps the session timeout.
    Clamped { asked: Duration, given: Duration, ends: Duration } = "clamped" Warning of::ZOOKEEPER_SERVER,
    "a session_timeout of {asked} is not within 2 to 20 ticks, and the server makes it {given}; the session then ends \
     after more than {given} and at most {ends}: ask for {given}, or change tick";
    /// Chubby: a lease of nothing.
    NoLease = "lease" Error of::CHUBBY_PAPER,
    "a lease of 0s never holds: give it a length";
    /// Chubby: nothing but the sequencer protects.
    Advisory { grace: Duration } = "sequencer" Warning of::CHUBBY_PAPER,
    "locks are advisory: check the sequencer at the resource; once the lease has run out, for the {grace} of grace that \
     the session is in jeopardy, nothing may act";
    /// Patroni: a value below its minimum.
    BelowPatronisLeast { key: &'static str, value: Duration, least: Duration } = "minimum" Error of::PATRONI_CONFIG,
    "{key} is {value}, and Patroni raises what is below {least} to that: set it to {least} or more";
    /// Patroni: the retries do not fit the TTL.
    RetryBudget { ttl: Duration, budget: Duration } = "retry_budget" Error of::PATRONI_CONFIG,
    "loop_wait + 2 * retry_timeout is {budget} and above the ttl of {ttl}, so that Patroni shortens both: raise ttl to \
     {budget}, or lower loop_wait or retry_timeout";
    /// Patroni: the watchdog would fire before the loop comes round.
    WatchdogSlack { ttl: Duration, margin: Duration, loop_wait: Duration } = "watchdog_slack" Error of::PATRONI_WATCHDOG,
    "a ttl of {ttl} less a safety_margin of {margin} does not leave the watchdog a loop_wait of {loop_wait}, so that \
     Patroni runs without it: lower loop_wait or safety_margin, or raise ttl";
    /// Patroni: half of an odd TTL.
    WatchdogHalf { watchdog: Duration, loop_wait: Duration } = "watchdog_half" Warning of::PATRONI_WATCHDOG,
    "with a safety_margin of -1 Patroni's watchdog fires after {watchdog}, sooner than a loop_wait of {loop_wait}: raise \
     ttl by 1s or lower loop_wait";
    /// Kubernetes: the lease ends before the holder gives up.
    DeadlineNotBeforeLease { lease: Duration, deadline: Duration } = "renew_deadline" Error of::CLIENT_GO,
    "lease_duration {lease} must be longer than renew_deadline {deadline}, or a challenger takes over from a holder that \
     still tries: lower renew_deadline";
    /// Kubernetes: no second try before the deadline.
    RetryNotBeforeDeadline { deadline: Duration, retry: Duration } = "retry_period" Error of::CLIENT_GO,
    "renew_deadline {deadline} must be longer than 1.2 times retry_period {retry}, or there is no second try: lower \
     retry_period";
    /// Kubernetes: the record's whole seconds.
    RecordKeepsSeconds { lease: Duration, kept: Duration, deadline: Duration } = "whole_seconds" Error of::CLIENT_GO,
    "the record keeps {kept} of a lease_duration of {lease}, and challengers wait no longer than that, while the holder \
     tries until its renew_deadline of {deadline}: use whole seconds above it";
    /// Consul: the TTL's range.
    OutsideConsulsTtl { ttl: Duration } = "ttl" Error of::CONSUL_ENDPOINT,
    "Consul takes a ttl from 10s to 24h, and {ttl} is not within that";
    /// Consul: the lock delay's range.
    LockDelay { lock_delay: Duration } = "lock_delay" Error of::CONSUL_STRUCTS,
    "Consul honours no lock_delay above 60s, and {lock_delay} is: lower it";
    /// Consul: how long a challenger waits.
    Takeover { takeover: Duration, expiry: Duration, lock_delay: Duration } = "takeover" Warning of::CONSUL_TTL,
    "the lock of a dead holder is free after at most {takeover}: the server waits {expiry}, twice the ttl, and then the \
     lock_delay of {lock_delay}";
    /// DynamoDB: the client refuses so few heartbeats.
    TooFewHeartbeats { lease: Duration, heartbeat: Duration } = "heartbeat" Error of::DYNAMODB_CLIENT,
    "the client refuses a lease_duration of {lease} with a heartbeat of {heartbeat}: it must be at least twice as long, \
     and four times is better";
    /// DynamoDB: one late heartbeat loses the lease.
    FewHeartbeats { lease: Duration, heartbeat: Duration } = "heartbeat" Warning of::DYNAMODB_CLIENT,
    "a lease_duration of {lease} is less than 4 heartbeats of {heartbeat}, so that a late one can lose it: lower heartbeat";
    /// DynamoDB: the session monitor's range.
    SafeTime { safe_time: Duration, heartbeat: Duration, lease: Duration } = "safe_time" Error of::DYNAMODB_CLIENT,
    "the client refuses a safe_time of {safe_time}: it lies strictly between the heartbeat, {heartbeat}, and the \
     lease_duration, {lease}";
    /// DynamoDB: the record version is a GUID.
    UnorderedVersion = "token" Warning of::DYNAMODB_CLIENT,
    "the record version number is a random UUID and has no order: it cannot fence; count acquisitions in an attribute of \
     your own, with a condition on the write";
    /// ShedLock: at least is longer than at most.
    LeastAboveMost { least: Duration, most: Duration } = "at_least" Error of::SHEDLOCK_CONFIG,
    "ShedLock refuses a lock_at_least_for of {least} above a lock_at_most_for of {most}: swap or shorten them";
    /// ShedLock: wall clocks too far apart.
    ClockSkew { skew: Duration, least: Duration } = "clock_skew" Error of::SHEDLOCK_README,
    "wall clocks {skew} apart need a lock_at_least_for of that much, and it is {least}: a node whose clock is ahead runs \
     the task again; raise it, or let the database tell the time (db_time=true)";
    /// ShedLock: neither token nor renewal.
    NeitherTokenNorRenewal = "token" Warning of::SHEDLOCK_README,
    "there is no token and no renewal: a task that outlives lock_at_most_for runs beside its successor, and nothing can \
     refuse it";
    /// Azure: the lease's range.
    OutsideAzuresLease { lease: Duration } = "lease" Error of::AZURE_DOC,
    "Azure takes a lease from 15s to 60s, or an infinite one, and {lease} is neither";
    /// Azure: lease ids are GUIDs.
    UnorderedIds = "token" Warning of::AZURE_DOC,
    "lease ids have no order: the blob itself refuses a write without its current one, and no other resource can fence \
     with it";
    /// Azure: nothing ends the lease.
    WithoutEnd = "infinite" Warning of::AZURE_DOC,
    "an infinite lease outlives its holder: a dead one keeps it until somebody breaks it";
    /// Hazelcast: a session that ends before its first heartbeat.
    HeartbeatNotBeforeTtl { ttl: Duration, heartbeat: Duration } = "heartbeat" Error of::HAZELCAST_CONFIG,
    "session_ttl {ttl} must be longer than heartbeat {heartbeat}, or the session ends between two: lower heartbeat";
}

#[cfg(feature = "serde")]
impl serde::Serialize for Finding {
    /// `rule`, `severity` and `message`.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        struct Message<'a>(&'a Finding);
        impl serde::Serialize for Message<'_> {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self.0)
            }
        }
        let mut finding = to.serialize_struct("Finding", 3)?;
        finding.serialize_field("rule", self.rule())?;
        finding.serialize_field("severity", &self.severity())?;
        finding.serialize_field("message", &Message(self))?;
        finding.end()
    }
}
