//! Configurations of every system with any values: a check, or an error that names the key, and all of it in words.
#![no_main]

use arbitrary::Arbitrary;
use fencegate::{Config, Drift, Duration, Literal, MAX_FINDINGS, System, Value};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Kind {
    Time,
    Count,
    Drift,
    Flag,
    HalfTheTtl,
    Infinite,
}

#[derive(Arbitrary, Debug)]
struct Set<'a> {
    key: Result<u8, &'a str>,
    kind: Kind,
    n: u64,
}

fuzz_target!(|input: (u8, Vec<Set<'_>>)| {
    let (system, sets) = input;
    let system = System::ALL[usize::from(system) % System::ALL.len()];
    let mut config = Config::new(system);
    for Set { key, kind, n } in sets {
        let names: Vec<_> = system.keys().iter().map(|key| key.name).chain(["drift", "rtt"]).collect();
        let key = key.map_or_else(|word| word, |at| names[usize::from(at) % names.len()]);
        let value = match kind {
            Kind::Time => Value::Time(Duration::from_micros(n)),
            Kind::Count => Value::Count(n),
            Kind::Drift => Value::Drift(Drift::from_ppb(n)),
            Kind::Flag => Value::Flag(n % 2 == 0),
            Kind::HalfTheTtl => Value::Literal(Literal::HalfTheTtl),
            Kind::Infinite => Value::Literal(Literal::Infinite),
        };
        let before = config;
        match config.set(key, value) {
            Ok(()) => assert!(config.get(key).is_some()),
            Err(error) => {
                assert_eq!(config, before, "{error}");
                assert!(!error.reason().is_empty());
            }
        }
    }
    match config.check() {
        Ok(check) => {
            assert!(check.findings().count() <= MAX_FINDINGS);
            for finding in check.findings() {
                assert!(!finding.to_string().is_empty() && !finding.rule().is_empty() && !finding.source().is_empty());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.field().is_empty()),
    }
});
