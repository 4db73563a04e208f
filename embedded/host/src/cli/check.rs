//! `fencegate check`: a lock service's configuration against its own rules.

use super::output::{self, Failure, Outcome, Table, has, spends};
use super::plan;
use super::units::{self, UnitError};
use fencegate::{Check, Config, ConfigError, Key, Kind, System, Value};
use std::fmt::Display;

const EXAMPLE: &str = "Examples:
  fencegate check patroni ttl=30s loop_wait=10s retry_timeout=10s
  fencegate check etcd ttl=10s drift=500ppm drift=500ppm rtt=5ms
  fencegate check azure-blob lease=infinite

What is left out has the system's default. drift (once a clock) and rtt go with every system, and give a plan.
`fencegate presets` lists the keys, their defaults and their sources.

Exit status: 0 no rule is broken, 1 one is, 2 the input is wrong.";

/// The arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The lock service: redlock, redisson, etcd, zookeeper, chubby, patroni, kubernetes, consul, dynamodb, shedlock,
    /// azure-blob, hazelcast
    system: String,
    /// The configuration: key=value, with units as in 30s or 1%
    #[arg(value_name = "KEY=VALUE")]
    values: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let check = read(&self.system, &self.values)?.check().map_err(wrong)?;
        if self.json {
            output::print_json(&check)?;
        } else {
            output::print(table(&check))?;
        }
        Ok(check.ok().into())
    }
}

fn wrong(error: ConfigError) -> Failure {
    Failure::input(error)
}

fn read(system: &str, values: &[String]) -> Result<Config, Failure> {
    let system = System::from_name(system).ok_or_else(|| {
        let names: Vec<_> = System::ALL.iter().map(|system| system.name()).collect();
        Failure::input(format_args!("system: `{system}`: no such system; there are {}", names.join(", ")))
    })?;
    let mut config = Config::new(system);
    for given in values {
        let Some((name, text)) = given.split_once('=') else {
            return Err(Failure::input(format_args!("`{given}`: a key and its value are joined by =, as in ttl=30s")));
        };
        let key = system.key(name).ok_or_else(|| unknown_key(system, name))?;
        let value = value(key, text).map_err(|why| Failure::input(format_args!("{name}: `{given}`: {why}")))?;
        config.set(name, value).map_err(wrong)?;
    }
    Ok(config)
}

fn unknown_key(system: System, name: &str) -> Failure {
    let names: Vec<_> = system.keys().iter().map(|key| key.name).chain(["drift", "rtt"]).collect();
    Failure::input(format_args!("{name}: no such key of {system}; there are {}", names.join(", ")))
}

/// Reads a value of the key's kind; what lies between two microseconds goes down for the lease and up for all else.
fn value(key: &Key, text: &str) -> Result<Value, String> {
    if let Some(word) = key.literal
        && word.name() == text
    {
        return Ok(Value::Literal(word));
    }
    let read: Result<Value, UnitError> = match key.kind {
        Kind::Ttl => units::has(text).map(Value::Time),
        Kind::Time => units::spends(text).map(Value::Time),
        Kind::Count => units::parse_count(text).map(Value::Count),
        Kind::Drift => units::parse_drift(text).map(Value::Drift),
        Kind::Flag => match text {
            "true" => Ok(Value::Flag(true)),
            "false" => Ok(Value::Flag(false)),
            _ => return Err("true or false is needed".to_owned()),
        },
    };
    read.map_err(|why| match key.literal {
        Some(word) => format!("{why}; or the word {}", word.name()),
        None => why.to_string(),
    })
}

fn table(check: &Check) -> Table {
    let errors = check.findings().filter(|finding| finding.severity() == fencegate::Severity::Error).count();
    let system = check.system();
    let mut table = match errors {
        0 => Table::new(true, "ok", format_args!("no rule of {system}'s is broken")),
        1 => Table::new(false, "not ok", format_args!("{system} has a rule against this")),
        n => Table::new(false, "not ok", format_args!("{system} has {n} rules against this")),
    };
    for finding in check.findings() {
        let rule: &dyn Display = finding;
        table.row(finding.severity().name(), finding.rule(), rule);
    }
    if let Some(plan) = check.plan() {
        table.row("window", has(plan.window), "the lease is over when this much has passed since the request was sent");
        table.row("margin", spends(plan.margin), "off the TTL for drift");
        plan::schedule(&mut table, plan);
    }
    table
}
