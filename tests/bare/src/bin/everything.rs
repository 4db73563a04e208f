//! Every public function of the core, called with inputs of which the compiler knows nothing: whatever a function can
//! reach is in this file. `tests/bare.rs` sees that none is left out, and looks at what has been linked.
//!
//! What is called is named in full, `Type::function`: so the test finds it. Only words are missing (`Display`, `Debug`):
//! the padding and slicing inside `core::fmt` itself has panics that nobody outside can take away, and whoever formats
//! on a microcontroller links them.

#![no_std]
#![no_main]

use core::str::FromStr;
use fencegate::{
    Act, Admitted, BadHolderId, Check, Config, ConfigError, Deadline, Drift, Duration, Epoch, EpochRaise, Fence,
    FenceRecord, Finding, GateTiming, HolderId, Instant, Limits, Literal, LogFence, LogWrite, Monotonic, OutOfRange,
    Pass, Plan, PlanInput, Policy, Proof, Raise, RedlockInput, Release, Severity, SizeInput, Stamp, Start, System,
    Token, Value, Verdict, WindowInput, quorum,
};
use fencegate_bare::black_box as any;

fencegate_bare::image!(everything);

/// Calls a function and uses what it answers.
macro_rules! call {
    ($($call:expr),+ $(,)?) => {
        {
            $(let _ = any($call);)+
        }
    };
}

fn everything() {
    clocks();
    durations();
    embassy();
    stamps();
    fence();
    epochs_and_releases();
    calculator();
    systems();
    checks();
    log();
}

fn n() -> u64 {
    any(1)
}

fn us() -> Duration {
    any(Duration::ZERO)
}

fn at() -> Instant {
    any(Instant::from_micros(0))
}

fn deadline() -> Deadline {
    any(Deadline::at(at()))
}

fn drift() -> Drift {
    any(Drift::ZERO)
}

fn text() -> &'static str {
    any("press-a#9f3c")
}

fn holder() -> HolderId {
    any(HolderId::new(text())).unwrap_or_else(|_| loop {})
}

fn token() -> Token {
    any(Token::new(n())).unwrap_or_else(|| loop {})
}

fn stamp() -> Stamp {
    Stamp { epoch: any(Epoch(0)), token: token(), holder: holder() }
}

fn record() -> FenceRecord {
    any(FenceRecord { epoch: any(Epoch(0)), token: n(), holder: any(Some(holder())), released: any(false) })
}

fn durations() {
    call!(
        Duration::from_micros(n()),
        Duration::from_millis(any(1)),
        Duration::from_secs(any(1)),
        Duration::as_micros(us()),
        Duration::is_zero(us()),
        Duration::checked_add(us(), us()),
        Duration::checked_sub(us(), us()),
        Duration::less(us(), us()),
        Duration::floor_from(any(core::time::Duration::ZERO)),
        Duration::ceil_from(any(core::time::Duration::ZERO)),
        core::time::Duration::from(us()),
        us().cmp(&us()),
    );
    call!(
        Drift::from_ppb(n()),
        Drift::from_ppm(any(1)),
        Drift::as_ppb(drift()),
        Drift::of(drift(), us()),
        Drift::outlast(drift(), us()),
        drift() + drift(),
    );
}

fn clocks() {
    call!(
        Instant::from_micros(n()),
        Instant::as_micros(at()),
        Instant::checked_add(at(), us()),
        Instant::since(at(), at()),
        Deadline::at(at()),
        Deadline::after(at(), us()),
        Deadline::instant(deadline()),
        Deadline::left(deadline(), at()),
        Deadline::is_over(deadline(), at()),
    );
    let mut clock = any(Monotonic::new());
    call!(Monotonic::read(&mut clock, at()), clock);
}

fn embassy() {
    let (ticks, instant) = (any(embassy_time::Duration::MIN), any(embassy_time::Instant::MIN));
    call!(
        Duration::floor_from_embassy(ticks),
        Duration::ceil_from_embassy(ticks),
        Instant::start_from_embassy(instant),
        Instant::now_from_embassy(instant),
        embassy_time::Instant::try_from(at()),
    );
}

fn stamps() {
    call!(
        HolderId::new(text()),
        HolderId::from_str(text()),
        HolderId::to_padded(holder()),
        HolderId::parse_padded(&any([0; HolderId::MAX_LEN])),
        HolderId::name(holder()),
        holder() == holder(),
        any(BadHolderId::Empty) == any(BadHolderId::TooLong),
        Token::new(n()),
        Token::get(token()),
        stamp() == stamp(),
    );
}

fn limits() -> Limits {
    any(Limits::default())
}

fn fence() {
    call!(
        FenceRecord::floor(any(Epoch(0)), n()),
        FenceRecord::order(&record(), &record()),
        Fence::from_proof(Proof::read_back(record()), limits()),
    );
    let mut fence = any(Fence::new(record(), limits()));
    call!(Fence::record(&fence), Fence::current(&fence));
    let pass = match Fence::admit(&fence, stamp()) {
        Admitted::Current(pass) => Some(pass),
        Admitted::Raise(raise) => {
            call!(Raise::record(&raise));
            Fence::commit(&mut fence, any(raise), Proof::read_back(record())).ok()
        }
        Admitted::Refused(refused) => {
            call!(refused);
            None
        }
    };
    if let Some(pass) = any(pass) {
        call!(Pass::stamp(&pass));
        if let Ok(act) = Pass::act(pass, at(), deadline()) {
            call!(Act::stamp(&act), Act::deadline(&act), Act::left(&act, at()), act);
        }
    }
    call!(fence);
}

fn epochs_and_releases() {
    let mut fence = any(Fence::new(record(), limits()));
    if let Ok(release) = Fence::release(&fence, stamp()) {
        call!(Release::record(&release));
        call!(Fence::commit_release(&mut fence, any(release), Proof::read_back(record())));
    }
    if let Ok(raise) = Fence::raise_epoch(&fence, any(Epoch(1)), n()) {
        call!(EpochRaise::record(&raise));
        call!(Fence::commit_epoch(&mut fence, any(raise), Proof::read_back(record())));
    }
    call!(fence);
}

fn calculator() {
    call!(WindowInput::new(us(), drift()));
    let mut plan = Plan::for_ttl(us());
    plan = PlanInput::drift(plan, drift());
    plan = PlanInput::round_trip(plan, us());
    plan = PlanInput::start(plan, any(Start::Grant));
    plan = PlanInput::attempts(plan, n());
    plan = PlanInput::work(plan, us());
    let plan = any(PlanInput { clock_offset: us(), pause: us(), poll: us(), ..plan });
    call!(PlanInput::lease(&plan), PlanInput::plan(&plan), WindowInput::window(&any(PlanInput::lease(&plan))));

    let gate = GateTiming { drift: drift(), lateness: us(), reaction: us(), longest_window: us() };
    call!(GateTiming::window(&any(gate), us()));

    let lock = any(RedlockInput::new(us(), n()));
    let lock = RedlockInput { elapsed: us(), granted: n(), drift_factor: drift(), drift_fixed: us(), ..lock };
    call!(RedlockInput::redlock(&any(lock)), quorum(n()));

    let mut size = SizeInput::new(drift());
    size = SizeInput::round_trip(size, us());
    size = SizeInput::work(size, us());
    size = SizeInput::pause(size, us());
    let size = any(SizeInput { attempts: n(), poll: us(), lost: n(), granularity: us(), ..size });
    call!(SizeInput::plan_for(&size, us()), SizeInput::size(&size));

    let error = any(OutOfRange::Drift);
    call!(OutOfRange::field(error), OutOfRange::reason(error));
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
    );
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
            call!(ConfigError::field(error), ConfigError::reason(error), ConfigError::from(any(OutOfRange::Nodes)))
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
