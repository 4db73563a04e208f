//! Lock services as they are configured: every key with its default, what the token is, and where all that is written.
//!
//! A source is `owner/repository path (name)` on GitHub, or a document; each was opened when it was written down here.
//! The rules that hold a configuration against them are in `check`.

use crate::units::{Round, UnitError, parse_count, parse_drift, parse_duration};
use crate::{DEFAULT_DRIFT_FACTOR, DEFAULT_DRIFT_FIXED, Drift, Duration};
use core::fmt;

/// A lock service, or a client's way of locking with one, whose configuration can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum System {
    /// The Redlock algorithm on independent Redis nodes.
    Redlock,
    /// Redisson's `RLock` and `RFencedLock`.
    Redisson,
    /// Leases of etcd.
    Etcd,
    /// Sessions of ZooKeeper.
    #[cfg_attr(feature = "serde", serde(rename = "zookeeper"))]
    ZooKeeper,
    /// Google's Chubby, as published.
    Chubby,
    /// The leader key of Patroni.
    Patroni,
    /// Leader election of Kubernetes' client-go.
    Kubernetes,
    /// Sessions of Consul.
    Consul,
    /// The DynamoDB lock client of AWS Labs.
    #[cfg_attr(feature = "serde", serde(rename = "dynamodb"))]
    DynamoDb,
    /// ShedLock for scheduled tasks.
    #[cfg_attr(feature = "serde", serde(rename = "shedlock"))]
    ShedLock,
    /// Leases of Azure's blobs.
    AzureBlob,
    /// Locks of Hazelcast's CP subsystem.
    Hazelcast,
}

/// What a value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kind {
    /// The lease: a duration of which what lies between two microseconds is dropped.
    Ttl,
    /// Any other duration: what lies between two microseconds rounds up.
    Time,
    /// A whole number.
    Count,
    /// A drift: what lies between two ppb rounds up.
    Drift,
    /// `true` or `false`.
    Flag,
}

/// A word that some key takes instead of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Literal {
    /// `-1`: half the TTL, rounded down to whole seconds (Patroni's safety margin).
    HalfTheTtl,
    /// `infinite` (an Azure lease).
    Infinite,
}

impl Literal {
    /// How it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HalfTheTtl => "-1",
            Self::Infinite => "infinite",
        }
    }
}

/// The value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Value {
    /// A duration.
    Time(Duration),
    /// A whole number.
    Count(u64),
    /// A drift.
    Drift(Drift),
    /// Yes or no.
    Flag(bool),
    /// A word instead of a duration.
    Literal(Literal),
}

impl fmt::Display for Value {
    /// As the value is written on a command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time(d) => Exact(d).fmt(f),
            Self::Count(n) => n.fmt(f),
            Self::Drift(drift) if drift.as_ppb().is_multiple_of(10_000_000) => {
                write!(f, "{}%", drift.as_ppb() / 10_000_000)
            }
            Self::Drift(drift) => write!(f, "{}ppb", drift.as_ppb()),
            Self::Flag(yes) => yes.fmt(f),
            Self::Literal(word) => f.write_str(word.name()),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Value {
    /// Counts and flags as such, all else as it is written on a command line.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(n) => to.serialize_u64(*n),
            Self::Flag(yes) => to.serialize_bool(*yes),
            _ => to.collect_str(self),
        }
    }
}

/// A duration as it is written on a command line, to the microsecond: `30s`, `1.5s`, `24h`, `250us`.
pub(crate) struct Exact(pub(crate) Duration);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const S: u64 = 1_000_000;
        let (unit, digits, name) = match self.0.as_micros() {
            us if us > 0 && us.is_multiple_of(3_600 * S) => (3_600 * S, 0, "h"),
            us if us == 0 || us >= S => (S, 6, "s"),
            us if us >= 1_000 => (1_000, 3, "ms"),
            _ => (1, 0, "us"),
        };
        let (mut part, mut digits) = (self.0.as_micros() % unit, digits);
        write!(f, "{}", self.0.as_micros() / unit)?;
        while part != 0 && part.is_multiple_of(10) {
            (part, digits) = (part / 10, digits - 1);
        }
        if part != 0 {
            write!(f, ".{part:0digits$}")?;
        }
        f.write_str(name)
    }
}

/// A key of a system's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Key {
    /// How it is written.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// The word that may stand instead.
    pub literal: Option<Literal>,
    /// What holds where it is left out. The first key of a system without a default must be given; any other one that has
    /// none is unset (and `granted` is all nodes).
    pub default: Option<Value>,
    /// Where the default is written, or what the key stands for.
    pub source: &'static str,
}

impl Key {
    /// Reads a value as it is typed; what lies between two microseconds goes down for the lease and up for all else.
    ///
    /// # Errors
    /// [`BadValue`] for text that is no value of this key.
    ///
    /// # Example
    /// ```
    /// use fencegate::{Duration, System, Value};
    /// let ttl = System::Etcd.key("ttl").expect("etcd has it");
    /// assert_eq!(ttl.read("1m30s"), Ok(Value::Time(Duration::from_secs(90))));
    /// assert!(ttl.read("90").is_err());
    /// ```
    pub fn read(&self, text: &str) -> Result<Value, BadValue> {
        if let Some(word) = self.literal
            && word.name() == text
        {
            return Ok(Value::Literal(word));
        }
        let read = match self.kind {
            Kind::Ttl => parse_duration(text, Round::Down).map(Value::Time),
            Kind::Time => parse_duration(text, Round::Up).map(Value::Time),
            Kind::Count => parse_count(text).map(Value::Count),
            Kind::Drift => parse_drift(text).map(Value::Drift),
            Kind::Flag => return text.parse().map(Value::Flag).map_err(|_| BadValue::Flag),
        };
        read.map_err(|why| BadValue::Number(why, self.literal))
    }
}

/// Text that is no value of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BadValue {
    /// No number of the key's units; beside what is wrong, the word that would do too.
    Number(UnitError, Option<Literal>),
    /// Neither `true` nor `false`.
    Flag,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(why, None) => why.fmt(f),
            Self::Number(why, Some(word)) => write!(f, "{why}; or the word {}", word.name()),
            Self::Flag => f.write_str("true or false is needed"),
        }
    }
}

impl core::error::Error for BadValue {}

const fn key(name: &'static str, kind: Kind, default: Option<Value>, source: &'static str) -> Key {
    Key { name, kind, literal: None, default, source }
}

const fn time(name: &'static str, default: Duration, source: &'static str) -> Key {
    key(name, Kind::Time, Some(Value::Time(default)), source)
}

const fn ttl(name: &'static str, default: Duration, source: &'static str) -> Key {
    key(name, Kind::Ttl, Some(Value::Time(default)), source)
}

const fn or(key: Key, literal: Literal) -> Key {
    Key { literal: Some(literal), ..key }
}

const fn s(seconds: u32) -> Duration {
    Duration::from_secs(seconds)
}

/// Every system takes it: ε of both clocks together, for the plan. Given more than once (once a clock) it adds up.
pub const DRIFT: Key = key("drift", Kind::Drift, None, "the drift of both clocks together");
/// Every system takes it: d, the worst round trip, for the plan.
pub const RTT: Key = time("rtt", Duration::ZERO, "the worst round trip of an acquire or renew call");

/// A system as it comes: what its keys are, whether it can fence, and where that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Preset {
    /// How it is written; a [`System`] where its configuration can be checked.
    pub system: &'static str,
    /// Its keys, the lease first.
    #[cfg_attr(feature = "serde", serde(serialize_with = "defaults"))]
    pub defaults: &'static [Key],
    /// What serves as a fencing token; `None` where nothing does.
    pub token: Option<&'static str>,
    /// Whether tokens are ordered, so that a fence can tell the later one.
    pub ordered: bool,
    /// Whether the usual client renews the lease by itself.
    pub renews: bool,
    /// What to know before relying on it.
    pub notes: &'static str,
    /// Where all this is written.
    pub sources: &'static [&'static str],
}

/// The keys as one object, `null` where a key has no default.
#[cfg(feature = "serde")]
fn defaults<S: serde::Serializer>(keys: &&'static [Key], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(keys.iter().map(|key| (key.name, key.default)))
}

impl System {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 12] = [
        Self::Redlock,
        Self::Redisson,
        Self::Etcd,
        Self::ZooKeeper,
        Self::Chubby,
        Self::Patroni,
        Self::Kubernetes,
        Self::Consul,
        Self::DynamoDb,
        Self::ShedLock,
        Self::AzureBlob,
        Self::Hazelcast,
    ];

    /// The preset of this system.
    pub const fn preset(self) -> &'static Preset {
        match self {
            Self::Redlock => &REDLOCK,
            Self::Redisson => &REDISSON,
            Self::Etcd => &ETCD,
            Self::ZooKeeper => &ZOOKEEPER,
            Self::Chubby => &CHUBBY,
            Self::Patroni => &PATRONI,
            Self::Kubernetes => &KUBERNETES,
            Self::Consul => &CONSUL,
            Self::DynamoDb => &DYNAMODB,
            Self::ShedLock => &SHEDLOCK,
            Self::AzureBlob => &AZURE_BLOB,
            Self::Hazelcast => &HAZELCAST,
        }
    }

    /// How it is written.
    pub const fn name(self) -> &'static str {
        self.preset().system
    }

    /// The system of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.name() == name)
    }

    /// Its keys, the lease first; [`DRIFT`] and [`RTT`] besides.
    pub const fn keys(self) -> &'static [Key] {
        self.preset().defaults
    }

    /// The key of that name, [`DRIFT`] and [`RTT`] among them.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().iter().chain([&DRIFT, &RTT]).find(|key| key.name == name)
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Every preset: the systems that can be checked, and three that have nothing to check.
pub const PRESETS: [&Preset; 15] = [
    &REDIS,
    &REDLOCK,
    &REDISSON,
    &ETCD,
    &ZOOKEEPER,
    &CHUBBY,
    &PATRONI,
    &KUBERNETES,
    &CONSUL,
    &DYNAMODB,
    &SHEDLOCK,
    &POSTGRES_ADVISORY,
    &AZURE_BLOB,
    &HAZELCAST,
    &S3,
];

pub(crate) const REDLOCK_DOC: &str = "redis/redis-doc docs/manual/patterns/distributed-locks.md";
pub(crate) const REDLOCK_RB: &str = "leandromoreira/redlock-rb lib/redlock/client.rb (CLOCK_DRIFT_FACTOR, drift)";

static REDIS: Preset = Preset {
    system: "redis",
    defaults: &[],
    token: None,
    ordered: false,
    renews: false,
    notes: "SET NX PX with a random value: the value frees only its own lock, and says nothing of order",
    sources: &["redis/redis-doc commands/set.md", REDLOCK_DOC],
};

static REDLOCK: Preset = Preset {
    system: "redlock",
    defaults: &[
        key("ttl", Kind::Ttl, None, "the caller's choice in every client"),
        key("nodes", Kind::Count, Some(Value::Count(5)), REDLOCK_DOC),
        time("elapsed", Duration::ZERO, "what acquiring took"),
        key("granted", Kind::Count, None, "all nodes unless it is given"),
        key("drift_factor", Kind::Drift, Some(Value::Drift(DEFAULT_DRIFT_FACTOR)), REDLOCK_RB),
        time("drift_fixed", DEFAULT_DRIFT_FIXED, REDLOCK_RB),
    ],
    token: None,
    ordered: false,
    renews: false,
    notes: "random values on independent nodes: nothing that a resource could order",
    sources: &[REDLOCK_DOC, REDLOCK_RB],
};

pub(crate) const REDISSON_CONFIG: &str =
    "redisson/redisson redisson/src/main/java/org/redisson/config/Config.java (lockWatchdogTimeout)";
pub(crate) const REDISSON_LOCKS: &str = "redisson/redisson docs/data-and-services/locks-and-synchronizers.md";
pub(crate) const REDISSON_FENCED: &str =
    "redisson/redisson redisson/src/main/java/org/redisson/RedissonFencedLock.java";

static REDISSON: Preset = Preset {
    system: "redisson",
    defaults: &[
        ttl("ttl", s(30), REDISSON_CONFIG),
        key("lease_time", Kind::Time, None, REDISSON_LOCKS),
        key("fenced", Kind::Flag, Some(Value::Flag(false)), REDISSON_LOCKS),
    ],
    token: Some("the token of an RFencedLock; an RLock has none"),
    ordered: true,
    renews: true,
    notes: "renewed every third of ttl unless a leaseTime is given; the token is a counter in Redis, and a failover to a \
            replica that lags can set it back",
    sources: &[
        REDISSON_CONFIG,
        REDISSON_LOCKS,
        REDISSON_FENCED,
        "redisson/redisson redisson/src/main/java/org/redisson/renewal/RenewalTask.java (schedule)",
        REDLOCK_DOC,
    ],
};

pub(crate) const ETCD_SESSION: &str = "etcd-io/etcd client/v3/concurrency/session.go (defaultSessionTTL)";
pub(crate) const ETCD_LESSOR: &str = "etcd-io/etcd server/lease/lessor.go (MaxLeaseTTL, Grant)";
pub(crate) const ETCD_SERVER: &str = "etcd-io/etcd server/etcdserver/server.go (minTTL)";
pub(crate) const ETCD_CONFIG: &str = "etcd-io/etcd server/embed/config.go (ElectionMs, TickMs, maxElectionMs)";

static ETCD: Preset = Preset {
    system: "etcd",
    defaults: &[
        ttl("ttl", s(60), ETCD_SESSION),
        time("election_timeout", s(1), ETCD_CONFIG),
        time("heartbeat_interval", Duration::from_millis(100), ETCD_CONFIG),
    ],
    token: Some("the create revision of the lock's key"),
    ordered: true,
    renews: true,
    notes: "a new leader gives every lease its TTL anew (what is left of it, where that is checkpointed) and an election \
            timeout more: a dead holder may be waited for that much longer",
    sources: &[
        ETCD_SESSION,
        ETCD_LESSOR,
        ETCD_SERVER,
        ETCD_CONFIG,
        "etcd-io/etcd client/v3/concurrency/mutex.go (myRev)",
        "etcd-io/etcd server/lease/lease.go (refresh)",
    ],
};

pub(crate) const ZOOKEEPER_SERVER: &str = "apache/zookeeper zookeeper-server/src/main/java/org/apache/zookeeper/server/ZooKeeperServer.java (processConnectRequest)";

static ZOOKEEPER: Preset = Preset {
    system: "zookeeper",
    defaults: &[
        ttl(
            "session_timeout",
            s(30),
            "apache/zookeeper zookeeper-server/src/main/java/org/apache/zookeeper/ZooKeeperMain.java (timeout)",
        ),
        time("tick", s(2), "apache/zookeeper conf/zoo_sample.cfg (tickTime)"),
    ],
    token: Some("the zxid that created the lock's node, or its sequence number"),
    ordered: true,
    renews: true,
    notes: "a session of T ends after more than T and at most T + tick; the server's own default tick is 3s, that of its \
            sample configuration 2s",
    sources: &[
        ZOOKEEPER_SERVER,
        "apache/zookeeper zookeeper-server/src/main/java/org/apache/zookeeper/server/ExpiryQueue.java (roundToNextInterval)",
        "apache/zookeeper zookeeper-server/src/main/java/org/apache/zookeeper/ZooKeeperMain.java (timeout)",
        "apache/zookeeper conf/zoo_sample.cfg (tickTime)",
    ],
};

pub(crate) const CHUBBY_PAPER: &str =
    "M. Burrows, The Chubby lock service for loosely-coupled distributed systems, OSDI 2006, sections 2.4 and 2.8";

static CHUBBY: Preset = Preset {
    system: "chubby",
    defaults: &[ttl("lease", s(12), CHUBBY_PAPER), time("grace", s(45), CHUBBY_PAPER)],
    token: Some("the sequencer: name, mode and generation of the lock"),
    ordered: true,
    renews: true,
    notes: "locks are advisory; while the lease has run out and the grace period runs (jeopardy), nothing may act",
    sources: &[CHUBBY_PAPER],
};

pub(crate) const PATRONI_CONFIG: &str = "patroni/patroni patroni/config.py (_validate_and_adjust_timeouts)";
pub(crate) const PATRONI_WATCHDOG: &str =
    "patroni/patroni patroni/watchdog/base.py (WatchdogConfig.timeout, timing_slack)";
pub(crate) const PATRONI_DYNAMIC: &str = "patroni/patroni docs/dynamic_configuration.rst";

static PATRONI: Preset = Preset {
    system: "patroni",
    defaults: &[
        ttl("ttl", s(30), PATRONI_DYNAMIC),
        time("loop_wait", s(10), PATRONI_DYNAMIC),
        time("retry_timeout", s(10), PATRONI_DYNAMIC),
        or(time("safety_margin", s(5), PATRONI_WATCHDOG), Literal::HalfTheTtl),
    ],
    token: None,
    ordered: false,
    renews: true,
    notes: "the leader key is kept in the coordinator below (etcd, ZooKeeper, Consul, …), and PostgreSQL checks no token; \
            the watchdog is the fence",
    sources: &[PATRONI_CONFIG, PATRONI_DYNAMIC, PATRONI_WATCHDOG, "patroni/patroni docs/watchdog.rst"],
};

pub(crate) const CLIENT_GO: &str = "kubernetes/client-go tools/leaderelection/leaderelection.go";
pub(crate) const COMPONENT_BASE: &str = "kubernetes/component-base config/v1alpha1/defaults.go";

static KUBERNETES: Preset = Preset {
    system: "kubernetes",
    defaults: &[
        ttl("lease_duration", s(15), COMPONENT_BASE),
        time("renew_deadline", s(10), COMPONENT_BASE),
        time("retry_period", s(2), COMPONENT_BASE),
    ],
    token: None,
    ordered: false,
    renews: true,
    notes: "client-go says of itself that it does not fence; each challenger times the lease on its own clock",
    sources: &[COMPONENT_BASE, CLIENT_GO],
};

pub(crate) const CONSUL_ENDPOINT: &str =
    "hashicorp/consul agent/consul/session_endpoint.go (Apply: SessionTTLMin to structs.SessionTTLMax)";
pub(crate) const CONSUL_STRUCTS: &str = "hashicorp/consul agent/structs/structs.go (SessionTTLMax, MaxLockDelay)";
pub(crate) const CONSUL_TTL: &str = "hashicorp/consul agent/consul/session_ttl.go (createSessionTimer)";

static CONSUL: Preset = Preset {
    system: "consul",
    defaults: &[
        ttl("ttl", s(15), "hashicorp/consul api/lock.go (DefaultLockSessionTTL)"),
        time("lock_delay", s(15), "hashicorp/consul agent/session_endpoint.go (SessionCreate)"),
    ],
    token: Some("the lock index of the key, with its session"),
    ordered: true,
    renews: true,
    notes: "the server waits for twice the ttl, then for the lock delay; a session with the behaviour delete removes the \
            key, and its lock index starts at 1 again",
    sources: &[
        "hashicorp/consul api/lock.go (DefaultLockSessionTTL)",
        "hashicorp/consul api/session.go (RenewPeriodic)",
        "hashicorp/consul agent/session_endpoint.go (SessionCreate)",
        CONSUL_ENDPOINT,
        CONSUL_STRUCTS,
        CONSUL_TTL,
        "hashicorp/consul agent/consul/state/kvs.go (kvsLockTxn)",
    ],
};

const DYNAMODB_DIR: &str = "awslabs/amazon-dynamodb-lock-client src/main/java/com/amazonaws/services/dynamodbv2/AmazonDynamoDBLockClientOptions.java";
pub(crate) const DYNAMODB_CLIENT: &str =
    "awslabs/amazon-dynamodb-lock-client src/main/java/com/amazonaws/services/dynamodbv2/AmazonDynamoDBLockClient.java";

static DYNAMODB: Preset = Preset {
    system: "dynamodb",
    defaults: &[
        ttl("lease_duration", s(20), DYNAMODB_DIR),
        time("heartbeat", s(5), DYNAMODB_DIR),
        key(
            "safe_time",
            Kind::Time,
            None,
            "awslabs/amazon-dynamodb-lock-client src/main/java/com/amazonaws/services/dynamodbv2/AcquireLockOptions.java \
             (withSessionMonitor)",
        ),
    ],
    token: Some("the record version number, a random UUID"),
    ordered: false,
    renews: true,
    notes: "each challenger times the lease on its own clock, from when it saw the record version number",
    sources: &[
        DYNAMODB_DIR,
        DYNAMODB_CLIENT,
        "awslabs/amazon-dynamodb-lock-client README.md (How we handle clock skew)",
    ],
};

pub(crate) const SHEDLOCK_CONFIG: &str =
    "lukas-krecan/ShedLock shedlock-core/src/main/java/net/javacrumbs/shedlock/core/LockConfiguration.java";
pub(crate) const SHEDLOCK_README: &str = "lukas-krecan/ShedLock README.md";

static SHEDLOCK: Preset = Preset {
    system: "shedlock",
    defaults: &[
        key("lock_at_most_for", Kind::Ttl, None, SHEDLOCK_README),
        time("lock_at_least_for", Duration::ZERO, SHEDLOCK_README),
        time("clock_skew", Duration::ZERO, "how far the nodes' wall clocks are apart"),
        key("db_time", Kind::Flag, Some(Value::Flag(false)), SHEDLOCK_README),
    ],
    token: None,
    ordered: false,
    renews: false,
    notes: "a task that runs longer than lock_at_most_for runs beside its successor; KeepAliveLockProvider extends locks \
            of at least 30s",
    sources: &[SHEDLOCK_CONFIG, SHEDLOCK_README],
};

static POSTGRES_ADVISORY: Preset = Preset {
    system: "postgres-advisory",
    defaults: &[],
    token: None,
    ordered: false,
    renews: false,
    notes: "no lease: a lock lasts until it is released or its session ends, and the server may notice late that a client \
            is gone",
    sources: &["PostgreSQL documentation, Explicit Locking, Advisory Locks (doc/src/sgml/mvcc.sgml)"],
};

pub(crate) const AZURE_DOC: &str =
    "Azure Storage REST API, Lease Blob (learn.microsoft.com/rest/api/storageservices/lease-blob)";

static AZURE_BLOB: Preset = Preset {
    system: "azure-blob",
    defaults: &[or(ttl("lease", s(60), AZURE_DOC), Literal::Infinite)],
    token: Some("the lease id, a GUID"),
    ordered: false,
    renews: false,
    notes: "the blob itself refuses a write without its current lease id; nothing else can tell which of two ids is the later",
    sources: &[AZURE_DOC, "Azure SDK for .NET, BlobLeaseClient.Acquire"],
};

pub(crate) const HAZELCAST_CONFIG: &str =
    "hazelcast/hazelcast hazelcast/src/main/java/com/hazelcast/config/cp/CPSubsystemConfig.java";

static HAZELCAST: Preset = Preset {
    system: "hazelcast",
    defaults: &[ttl("session_ttl", s(300), HAZELCAST_CONFIG), time("heartbeat", s(5), HAZELCAST_CONFIG)],
    token: Some("the fence of a FencedLock"),
    ordered: true,
    renews: true,
    notes: "only with the CP subsystem switched on; in its unsafe mode (the default) the fence is not kept safe",
    sources: &[
        HAZELCAST_CONFIG,
        "Hazelcast documentation, FencedLock (docs.hazelcast.com/hazelcast/latest/data-structures/fencedlock)",
    ],
};

static S3: Preset = Preset {
    system: "s3",
    defaults: &[],
    token: Some("the ETag"),
    ordered: false,
    renews: false,
    notes: "conditional writes (If-None-Match, If-Match) compare and swap one object; an ETag depends on the content and \
            has no order",
    sources: &["Amazon S3 User Guide, How to prevent object overwrites with conditional writes"],
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_name_finds_its_system_and_every_key_itself() {
        for system in System::ALL {
            assert_eq!(System::from_name(system.name()), Some(system));
            for key in system.keys() {
                assert_eq!(system.key(key.name), Some(key));
                assert_ne!((key.name, key.name), (DRIFT.name, RTT.name), "{system}");
            }
            assert_eq!(system.keys()[0].kind, Kind::Ttl, "{system}: the lease comes first");
            assert_eq!(system.keys().iter().filter(|key| key.kind == Kind::Ttl).count(), 1, "{system}");
            assert_eq!((system.key("drift"), system.key("rtt")), (Some(&DRIFT), Some(&RTT)));
        }
        assert_eq!((System::from_name("ETCD"), System::Etcd.key("tll")), (None, None));
    }

    #[test]
    fn every_preset_has_its_sources_and_is_there_once() {
        for preset in PRESETS {
            assert_eq!(PRESETS.iter().filter(|other| other.system == preset.system).count(), 1, "{}", preset.system);
            assert!(!preset.sources.is_empty() && !preset.notes.is_empty(), "{}", preset.system);
            assert!(preset.defaults.iter().all(|key| !key.source.is_empty()), "{}", preset.system);
            assert!(preset.token.is_some() || !preset.ordered, "{}: what is not there is not ordered", preset.system);
        }
        for system in System::ALL {
            assert!(PRESETS.contains(&system.preset()), "{system}");
        }
    }

    #[test]
    fn a_value_reads_as_it_is_typed() {
        for (us, want) in [
            (0, "0s"),
            (1, "1us"),
            (999, "999us"),
            (1_000, "1ms"),
            (1_500, "1.5ms"),
            (250_001, "250.001ms"),
            (1_000_000, "1s"),
            (1_500_000, "1.5s"),
            (10_000_001, "10.000001s"),
            (60_000_000, "60s"),
            (3_600_000_000, "1h"),
            (3_600_000_001, "3600.000001s"),
            (86_400_000_000, "24h"),
        ] {
            assert_eq!(Value::Time(Duration::from_micros(us)).to_string(), want);
        }
        assert_eq!(Value::Drift(DEFAULT_DRIFT_FACTOR).to_string(), "1%");
        assert_eq!(Value::Drift(Drift::from_ppb(7)).to_string(), "7ppb");
        assert_eq!(Value::Literal(Literal::HalfTheTtl).to_string(), "-1");
        assert_eq!(Value::Literal(Literal::Infinite).to_string(), "infinite");
        assert_eq!((Value::Count(5).to_string(), Value::Flag(true).to_string()), ("5".into(), "true".into()));
        assert_eq!(std::format!("{:>6}|", System::Etcd), "  etcd|");
    }

    #[test]
    fn a_default_that_is_typed_back_is_the_default() {
        for key in System::ALL.iter().flat_map(|system| system.keys()).chain([&DRIFT, &RTT]) {
            if let Some(default) = key.default {
                assert_eq!(key.read(&default.to_string()), Ok(default), "{}", key.name);
            }
            assert_eq!(key.literal.map(|word| key.read(word.name())), key.literal.map(|word| Ok(Value::Literal(word))));
        }
    }

    #[test]
    fn a_lease_is_read_downwards_and_all_else_upwards() {
        let read = |system: System, key, text| system.key(key).unwrap().read(text);
        let us = |us| Ok(Value::Time(Duration::from_micros(us)));
        assert_eq!(read(System::Etcd, "ttl", "1.0000009s"), us(1_000_000));
        assert_eq!(read(System::Etcd, "rtt", "1.0000001s"), us(1_000_001));
        assert_eq!(read(System::Etcd, "drift", "0.1ppb"), Ok(Value::Drift(Drift::from_ppb(1))));
        assert_eq!(read(System::Redlock, "nodes", "7"), Ok(Value::Count(7)));
        assert_eq!(read(System::Redisson, "fenced", "true"), Ok(Value::Flag(true)));
    }

    #[test]
    fn what_is_no_value_is_told_with_the_word_that_would_do() {
        let why = |system: System, key, text| system.key(key).unwrap().read(text).unwrap_err().to_string();
        assert_eq!(why(System::AzureBlob, "lease", "-1"), "it takes no sign; or the word infinite");
        assert_eq!(
            why(System::Patroni, "safety_margin", "infinite"),
            "a number such as 2 or 1.5 goes before each unit, without spaces; or the word -1"
        );
        assert_eq!(why(System::Etcd, "ttl", "-1"), "it takes no sign");
        assert_eq!(why(System::Redisson, "fenced", "yes"), "true or false is needed");
        assert_eq!(why(System::Redlock, "nodes", "5s"), "a whole number is needed");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn json_of_a_preset() {
        let json = serde_json::to_value(PATRONI).unwrap();
        let defaults = r#"{"ttl":"30s","loop_wait":"10s","retry_timeout":"10s","safety_margin":"5s"}"#;
        assert_eq!(json["defaults"], serde_json::from_str::<serde_json::Value>(defaults).unwrap());
        assert!(json["token"].is_null());
        let redlock = serde_json::to_value(REDLOCK).unwrap();
        let redisson = serde_json::to_value(REDISSON).unwrap();
        assert_eq!(redisson["defaults"], serde_json::json!({"ttl": "30s", "lease_time": null, "fenced": false}));
        assert_eq!((&redlock["defaults"]["nodes"], &redlock["defaults"]["ttl"]), (&5.into(), &serde_json::Value::Null));
        for system in System::ALL {
            assert_eq!(serde_json::to_value(system).unwrap(), system.name());
        }
    }
}
