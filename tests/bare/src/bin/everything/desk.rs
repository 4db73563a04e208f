//! What is reckoned at a desk and seldom on a microcontroller: sizes, presets, checks, the audit.

use crate::*;
use fencegate::{
    Check, Config, ConfigError, Finding, Key, Literal, LogFence, LogWrite, OutOfRange, Policy, RedlockInput, Round,
    Severity, SizeInput, System, Value, Verdict, parse_count, parse_drift, parse_duration, quorum,
};

pub(crate) fn desk() {
    sizes();
    systems();
    checks();
    log();
}

fn sizes() {
    let lock = any(RedlockInput::new(us(), n()));
    let lock = RedlockInput { elapsed: us(), granted: n(), drift_factor: drift(), drift_fixed: us(), ..lock };
    call!(RedlockInput::redlock(&any(lock)), quorum(n()));

    let mut size = SizeInput::new(drift());
    size = SizeInput::round_trip(size, us());
    size = SizeInput::work(size, us());
    size = SizeInput::pause(size, us());
    let size = any(SizeInput { attempts: n(), poll: us(), lost: n(), granularity: us(), ..size });
    call!(SizeInput::plan_for(&size, us()), SizeInput::size(&size));
}

fn systems() {
    let system = any(System::Etcd);
    call!(
        System::preset(system),
        System::name(system),
        System::from_name(text()),
        System::keys(system),
        System::key(system, text()),
        Literal::name(any(Literal::Infinite)),
        parse_duration(text(), any(Round::Up)),
        parse_drift(text()),
        parse_count(text()),
    );
    if let Some(key) = System::key(system, text()) {
        call!(Key::read(key, text()));
    }
}

fn checks() {
    let mut config = any(Config::new(any(System::Etcd)));
    for value in
        [Value::Time(us()), Value::Count(n()), Value::Drift(drift()), Value::Flag(any(true)), any(Value::Count(n()))]
    {
        call!(Config::set(&mut config, text(), any(value)));
    }
    call!(Config::system(&config), Config::get(&config, text()));
    match Config::check(&config) {
        Ok(check) => {
            call!(Check::system(&check), Check::ok(&check), Check::plan(&check));
            for finding in Check::findings(&check) {
                call!(Finding::rule(finding), Finding::severity(finding), Finding::source(finding));
            }
        }
        Err(error) => {
            call!(ConfigError::field(error), ConfigError::reason(error), ConfigError::from(any(OutOfRange::Nodes)));
        }
    }
    call!(Severity::name(any(Severity::Error)));
}

fn log() {
    let mut fence = any(LogFence::new());
    let write = any(LogWrite { epoch: any(Epoch(0)), token: token(), holder: holder(), seq: any(Some(n())) });
    call!(
        LogFence::judge(&fence, any(Policy::AtLeast), &write),
        LogFence::take(&mut fence, any(Policy::Greater), write),
        LogFence::top(&fence),
        LogWrite::from(stamp()),
        Verdict::name(any(Verdict::Commit)),
    );
}
