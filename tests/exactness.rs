//! Exactness: every figure of the calculator against an oracle in rationals of arbitrary precision.
//!
//! The oracle knows no rounding and no width. A figure is right if it is the exact value rounded to its safe side, and
//! never a microsecond further; an error is right if an input is out of range or an exact figure does not fit. Boundaries
//! are visited exhaustively; beside them a run takes at least a million random inputs.
//!
//! A run prints its seed. `FENCEGATE_SEED=… cargo test -p fencegate-tests --test exactness` repeats it, and
//! `FENCEGATE_RUNS=…` sets how many
//! random inputs it takes.

use fencegate::{
    Drift, Duration, GateTiming, OutOfRange, PPB, Plan, PlanInput, RedlockInput, SizeInput, Start, WindowInput, quorum,
};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::fmt::{self, Debug};
use std::ops::{Add, Div, Mul, Sub};

/// The largest answer: 2⁶³−1.
const MOST: u64 = i64::MAX.cast_unsigned();
const US: fn(u64) -> Duration = Duration::from_micros;

/// Random inputs a run, over all properties.
const RUNS: u64 = 1_200_000;

/// A fraction of any size, above or below zero. It is never reduced: nine tenths of `num-rational`'s time goes into the
/// greatest common divisors that keep its fractions small, and the ones here never grow for long.
#[derive(Clone, Debug)]
struct Rational {
    over: BigInt,
    /// Always positive.
    under: BigInt,
}

fn whole(n: u64) -> Rational {
    part(n, 1)
}

/// a/b, exactly.
fn part(a: u64, b: u64) -> Rational {
    Rational { over: BigInt::from(a), under: BigInt::from(b) }
}

impl Rational {
    fn zero() -> Self {
        whole(0)
    }

    fn is_zero(&self) -> bool {
        self.over.sign() == Sign::NoSign
    }

    fn is_positive(&self) -> bool {
        self.over.sign() == Sign::Plus
    }

    fn is_negative(&self) -> bool {
        self.over.sign() == Sign::Minus
    }

    /// The greatest integer that is not above it. Division of integers rounds towards zero.
    fn floor(&self) -> Self {
        let (quotient, rest) = (&self.over / &self.under, &self.over % &self.under);
        let over = if rest.sign() == Sign::Minus { quotient - 1 } else { quotient };
        Self { over, under: BigInt::from(1) }
    }

    /// The least integer that is not below it.
    fn ceil(&self) -> Self {
        let negative = Self { over: -&self.over, under: self.under.clone() }.floor();
        Self { over: -negative.over, under: negative.under }
    }

    fn max(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
}

impl Add for &Rational {
    type Output = Rational;
    fn add(self, other: &Rational) -> Rational {
        if self.under == other.under {
            return Rational { over: &self.over + &other.over, under: self.under.clone() };
        }
        Rational { over: &self.over * &other.under + &other.over * &self.under, under: &self.under * &other.under }
    }
}

impl Sub for &Rational {
    type Output = Rational;
    fn sub(self, other: &Rational) -> Rational {
        self + &Rational { over: -&other.over, under: other.under.clone() }
    }
}

impl Mul for &Rational {
    type Output = Rational;
    fn mul(self, other: &Rational) -> Rational {
        Rational { over: &self.over * &other.over, under: &self.under * &other.under }
    }
}

impl Div for &Rational {
    type Output = Rational;
    /// The divisor is positive wherever the oracle divides.
    fn div(self, other: &Rational) -> Rational {
        assert!(other.is_positive(), "{self} / {other}");
        Rational { over: &self.over * &other.under, under: &self.under * &other.over }
    }
}

/// The same with what need not be kept.
macro_rules! by_value {
    ($($op:ident $name:ident),+) => {
        $(impl $op for Rational {
            type Output = Rational;
            fn $name(self, other: Rational) -> Rational {
                (&self).$name(&other)
            }
        }
        impl $op<&Rational> for Rational {
            type Output = Rational;
            fn $name(self, other: &Rational) -> Rational {
                (&self).$name(other)
            }
        }
        impl $op<Rational> for &Rational {
            type Output = Rational;
            fn $name(self, other: Rational) -> Rational {
                self.$name(&other)
            }
        })+
    };
}

by_value!(Add add, Sub sub, Mul mul, Div div);

impl PartialEq for Rational {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some((&self.over * &other.under).cmp(&(&other.over * &self.under)))
    }
}

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.over, self.under)
    }
}

/// ε as a fraction of one.
fn epsilon(drift: Drift) -> Rational {
    part(drift.as_ppb(), PPB)
}

fn one() -> Rational {
    whole(1)
}

/// What is wrong with a figure, or nothing.
type Verdict = Result<(), String>;

/// Rounded up, and not a microsecond further: exact ≤ figure < exact + 1.
fn rounded_up(name: &str, figure: u64, exact: &Rational) -> Verdict {
    let figure = whole(figure);
    if *exact <= figure && figure < exact + one() {
        Ok(())
    } else {
        Err(format!("{name}: {figure} is not ⌈{exact}⌉"))
    }
}

/// Rounded down, and not a microsecond further: exact − 1 < figure ≤ exact.
fn rounded_down(name: &str, figure: u64, exact: &Rational) -> Verdict {
    let figure = whole(figure);
    if figure <= *exact && *exact < &figure + one() {
        Ok(())
    } else {
        Err(format!("{name}: {figure} is not ⌊{exact}⌋"))
    }
}

/// max(0, exact).
fn left(exact: Rational) -> Rational {
    if exact.is_negative() { Rational::zero() } else { exact }
}

fn equal<T: PartialEq + Debug + Copy>(name: &str, got: T, want: T) -> Verdict {
    if got == want { Ok(()) } else { Err(format!("{name}: {got:?} is not {want:?}")) }
}

fn truth(name: &str, holds: bool) -> Verdict {
    if holds { Ok(()) } else { Err(name.to_owned()) }
}

/// Whether an exact figure, rounded up, is above the largest answer.
fn too_long(exact: &Rational) -> bool {
    exact.ceil() > whole(MOST)
}

/// The exact margin of a lease.
fn exact_margin(lease: &WindowInput) -> Rational {
    let latency = if lease.start == Start::Grant { lease.rtt.as_micros() } else { 0 };
    whole(lease.ttl.as_micros()) * epsilon(lease.drift) + whole(latency) + whole(lease.clock_offset.as_micros())
}

/// Which fields may be blamed for an input; none where it has an answer.
fn blamed_of_window(lease: &WindowInput) -> Vec<&'static str> {
    let mut fields = Vec::new();
    if lease.drift.as_ppb() >= PPB {
        return vec!["drift_ppb"];
    }
    let margin = exact_margin(lease);
    let window = left(whole(lease.ttl.as_micros()) - margin.ceil());
    if lease.ttl.is_zero() || too_long(&margin) || too_long(&window) {
        fields.push("ttl_us");
    }
    fields
}

fn blames(fields: &[&str], error: OutOfRange) -> Verdict {
    truth(&format!("{error:?} blames {}, and not one of {fields:?}", error.field()), fields.contains(&error.field()))
}

fn window_is_exact(lease: &WindowInput) -> Verdict {
    let mut fields = blamed_of_window(lease);
    if lease.ttl.is_zero() && !fields.contains(&"ttl_us") {
        fields.push("ttl_us"); // either is a reason
    }
    match lease.window() {
        Err(error) => blames(&fields, error),
        Ok(answer) => {
            truth("an answer where none fits", fields.is_empty())?;
            let exact = exact_margin(lease);
            rounded_up("margin", answer.margin.as_micros(), &exact)?;
            // T is whole, so that rounding the margin up is rounding the window down.
            rounded_down("window", answer.window.as_micros(), &left(whole(lease.ttl.as_micros()) - &exact))?;
            equal("safe", answer.safe, answer.window.as_micros() > 0)
        }
    }
}

fn exact_takeover(input: &PlanInput) -> Rational {
    let waits = whole(input.rtt.as_micros()) * whole(2) + whole(input.poll.as_micros());
    whole(input.ttl.as_micros()) / (one() - epsilon(input.drift)) + waits
}

fn blamed_of_plan(input: &PlanInput) -> Vec<&'static str> {
    let mut fields = blamed_of_window(&input.lease());
    if input.attempts < 2 {
        fields.push("attempts");
    }
    if input.ttl.as_micros() < input.attempts || input.drift.as_ppb() < PPB && too_long(&exact_takeover(input)) {
        fields.push("ttl_us");
    }
    fields
}

#[expect(clippy::many_single_char_names, reason = "the contract's letters")]
fn plan_is_exact(input: &PlanInput) -> Verdict {
    let fields = blamed_of_plan(input);
    let plan = match input.plan() {
        Err(error) => return blames(&fields, error),
        Ok(plan) => plan,
    };
    truth("an answer where none fits", fields.is_empty())?;
    let &PlanInput { ttl, rtt, attempts, work, .. } = input;
    let (t, d) = (ttl.as_micros(), whole(rtt.as_micros()));

    let margin = exact_margin(&input.lease());
    rounded_up("margin", plan.margin.as_micros(), &margin)?;
    rounded_down("window", plan.window.as_micros(), &left(whole(t) - &margin))?;
    equal("safe", plan.safe, plan.window.as_micros() > 0)?;
    rounded_up("takeover", plan.takeover.as_micros(), &exact_takeover(input))?;
    rounded_down("cancel_after", plan.cancel_after.as_micros(), &part(t, 3))?;

    // h: the even share where its answer comes before cancellation, else what leaves room for the answer, else even.
    let (c, h) = (whole(plan.cancel_after.as_micros()), whole(plan.heartbeat.as_micros()));
    let even = part(t, attempts).floor();
    let (want, sustainable) = if &even + &d <= c {
        (even, true)
    } else if c > d {
        (&c - &d, true)
    } else {
        (even, false)
    };
    truth(&format!("heartbeat: {h} is not {want}"), h == want)?;
    equal("sustainable", plan.sustainable, sustainable)?;
    truth("a heartbeat of nothing", h.is_positive())?;

    let window = whole(plan.window.as_micros());
    let k = whole(plan.renewals_in_window);
    truth("the last renewal counted is not in the window", k.is_zero() || &k * &h + &d < window)?;
    truth("one more renewal is in the window", (&k + one()) * &h + &d >= window)?;
    let misses = if sustainable { left(((&c - &d) / &h).floor() - one()) } else { Rational::zero() };
    truth("misses_before_cancel", whole(plan.misses_before_cancel) == misses)?;
    rounded_down("stall_tolerance", plan.stall_tolerance.as_micros(), &left(&window - &h - &d))?;
    rounded_down("work_deadline", plan.work_deadline.as_micros(), &left(&window - whole(work.as_micros())))?;
    rounded_down("renewals_per_hour", plan.renewals_per_hour, &(whole(3_600_000_000) / &h))
}

/// T·(1−ε) − m·T/n − d ≥ W + P + 1 in exact fractions.
fn leaves_room(input: &SizeInput, t: &Rational) -> bool {
    let m = whole(input.lost) + one();
    let room = t * (one() - epsilon(input.drift)) - m * t / whole(input.attempts) - whole(input.rtt.as_micros());
    room >= whole(input.work.as_micros()) + whole(input.pause.as_micros()) + one()
}

fn size_is_exact(input: &SizeInput) -> Verdict {
    let mut fields = Vec::new();
    if input.drift.as_ppb() >= PPB {
        fields.push("drift_ppb");
    }
    if input.attempts < 2 {
        fields.push("attempts");
    }
    if input.granularity.is_zero() {
        fields.push("granularity_us");
    }
    let size = input.size();
    if !fields.is_empty() {
        return size.map_or_else(|error| blames(&fields, error), |_| Err("an answer to a wrong input".to_owned()));
    }
    let (n, m) = (whole(input.attempts), whole(input.lost) + one());
    let share = one() - epsilon(input.drift) - &m / &n;
    if !share.is_positive() {
        return truth(&format!("{size:?}, and no TTL is long enough"), size == Ok(None));
    }
    let sum = [input.work, input.pause, input.rtt].iter().fold(one(), |sum, us| sum + whole(us.as_micros()));
    let exact = (sum / share).ceil();
    let step = whole(input.granularity.as_micros());
    let stepped = (exact.clone().max(n.clone()) / &step).ceil() * &step;

    // The least TTL that leaves room is `exact`: one less does not.
    truth("the oracle's own TTL leaves no room", leaves_room(input, &exact))?;
    truth("the oracle's own TTL is not the least", !leaves_room(input, &(&exact - one())))?;
    match size {
        Err(error) => {
            blames(&["ttl_us"], error)?;
            let fits = stepped <= whole(MOST) && {
                let ttl = u64::try_from(&stepped.floor().over).expect("it fits");
                blamed_of_plan(&input.plan_for(US(ttl))).is_empty()
            };
            truth("an error, and there is a TTL that fits with its plan", !fits)
        }
        Ok(None) => Err(format!("no TTL, and {stepped} leaves room")),
        Ok(Some(size)) => {
            let (ttl, plan) = (whole(size.ttl.as_micros()), size.plan);
            truth(&format!("ttl: {ttl} is not {stepped}"), ttl == stepped)?;
            truth("the plan beside it is another's", Ok(plan) == input.plan_for(size.ttl).plan())?;
            let spent = m * whole(plan.heartbeat.as_micros())
                + [input.work, input.pause, input.rtt].iter().fold(Rational::zero(), |s, us| s + whole(us.as_micros()));
            truth("m·h + d + W + P is not below the window", spent < whole(plan.window.as_micros()))
        }
    }
}

fn redlock_is_exact(input: &RedlockInput) -> Verdict {
    let mut fields = Vec::new();
    if quorum(input.nodes).is_err() {
        fields.push("nodes");
    }
    if input.granted > input.nodes {
        fields.push("granted");
    }
    let factor = input.drift_factor;
    if factor.as_ppb() >= PPB {
        fields.push("drift_factor_ppb");
    }
    let drift = whole(input.ttl.as_micros()) * epsilon(factor) + whole(input.drift_fixed.as_micros());
    let validity = whole(input.ttl.as_micros()) - whole(input.elapsed.as_micros()) - drift.ceil();
    if input.ttl.is_zero() || too_long(&drift) || too_long(&left(validity.clone())) {
        fields.push("ttl_us");
    }
    match input.redlock() {
        Err(error) => blames(&fields, error),
        Ok(answer) => {
            truth("an answer where none fits", fields.is_empty())?;
            rounded_up("drift", answer.drift.as_micros(), &drift)?;
            rounded_down("validity", answer.validity.as_micros(), &left(validity.clone()))?;
            equal("quorum", Ok(answer.quorum), quorum(input.nodes).map(|q| q.quorum))?;
            equal("held", answer.held, validity.is_positive() && input.granted >= answer.quorum)
        }
    }
}

fn quorum_is_exact(nodes: u64) -> Verdict {
    let exact = (whole(nodes) / whole(2)).floor() + one();
    match quorum(nodes) {
        Err(error) => {
            blames(&["nodes"], error)?;
            truth("there is a quorum", nodes == 0 || exact > whole(MOST))
        }
        Ok(answer) => {
            truth("⌊N/2⌋ + 1", whole(answer.quorum) == exact)?;
            truth("the parts of N", whole(answer.quorum) + whole(answer.tolerates) == whole(nodes))?;
            truth("two quorums that do not meet", whole(answer.quorum) * whole(2) > whole(nodes))
        }
    }
}

/// w′ = ⌊w·(1−ε)⌋ − L − A, clamped before and never below nothing.
fn gate_is_exact(gate: &GateTiming, w: Duration) -> Verdict {
    match gate.window(w) {
        Err(error) => {
            blames(&["drift_ppb"], error)?;
            truth("a drift that can be reckoned with", gate.drift.as_ppb() >= PPB)
        }
        Ok(answer) => {
            truth("a drift of everything", gate.drift.as_ppb() < PPB)?;
            let w = whole(w.min(gate.longest_window).as_micros());
            let spent = whole(gate.lateness.as_micros()) + whole(gate.reaction.as_micros());
            let exact = left((w * (one() - epsilon(gate.drift))).floor() - spent);
            truth("w′", whole(answer.map_or(0, Duration::as_micros)) == exact && answer != Some(Duration::ZERO))
        }
    }
}

/// Panics with what is needed to see it again.
#[track_caller]
fn hold(verdict: Verdict, input: &dyn Debug, from: &str) {
    if let Err(why) = verdict {
        panic!("{why}\n  input: {input:?}\n  from:  {from}");
    }
}

/// Where 64-bit arithmetic goes wrong, if it does.
const EDGES: [u64; 17] = [
    0,
    1,
    2,
    3,
    7,
    PPB - 1,
    PPB,
    PPB + 1,
    3 * PPB - 1,
    u32::MAX as u64,
    (1 << 53) + 1,
    MOST / PPB,
    MOST / 3,
    MOST - 1,
    MOST,
    MOST + 1,
    u64::MAX,
];

/// Drifts around the ends of their range, and such as clocks have.
const DRIFTS: [u64; 11] =
    [0, 1, 20_000, 1_000_000, 83_333_334, 333_333_333, 333_333_334, 500_000_000, PPB - 1, PPB, u64::MAX];

#[test]
fn every_window_at_the_boundaries() {
    for ttl in EDGES {
        for drift in DRIFTS.map(Drift::from_ppb) {
            for rtt in EDGES {
                for offset in EDGES {
                    for start in [Start::Send, Start::Grant] {
                        let (ttl, rtt, clock_offset) = (US(ttl), US(rtt), US(offset));
                        let lease = WindowInput { ttl, drift, rtt, start, clock_offset };
                        hold(window_is_exact(&lease), &lease, "the boundaries");
                    }
                }
            }
        }
    }
}

#[test]
fn every_plan_at_the_boundaries() {
    for ttl in EDGES {
        for drift in DRIFTS.map(Drift::from_ppb) {
            for rtt in EDGES {
                for attempts in [0, 1, 2, 3, 4, 10, MOST, u64::MAX] {
                    for (other, start) in
                        [(0, Start::Send), (1, Start::Grant), (MOST, Start::Send), (u64::MAX, Start::Send)]
                    {
                        let mut plan =
                            Plan::for_ttl(US(ttl)).drift(drift).round_trip(US(rtt)).attempts(attempts).start(start);
                        hold(plan_is_exact(&plan), &plan, "the boundaries");
                        plan.poll = US(other);
                        plan.work = US(other);
                        hold(plan_is_exact(&plan), &plan, "the boundaries");
                    }
                }
            }
        }
    }
}

/// Leases of a few microseconds, where every rounding shows: each TTL, latency, margin and count.
#[test]
fn every_small_plan() {
    for ttl in 0..=36 {
        for ppb in [0, 1, 333_333_333, 333_333_334, 500_000_000, 999_999_999] {
            for rtt in 0..=14 {
                for attempts in 2..=7 {
                    for start in [Start::Send, Start::Grant] {
                        let mut plan = Plan::for_ttl(US(ttl)).drift(Drift::from_ppb(ppb)).round_trip(US(rtt));
                        plan = plan.attempts(attempts).start(start).work(US(rtt / 2));
                        hold(plan_is_exact(&plan), &plan, "small plans");
                    }
                }
            }
        }
    }
}

#[test]
fn every_small_size() {
    for ppb in [0, 1, 250_000_000, 333_333_333, 333_333_334, 500_000_000, 600_000_000, 999_999_999] {
        for (attempts, lost) in (2..=7).flat_map(|n| (0..=n).map(move |lost| (n, lost))) {
            for work in 0..=12 {
                for rtt in 0..=3 {
                    for granularity in [1, 2, 7] {
                        let mut size = SizeInput::new(Drift::from_ppb(ppb)).work(US(work)).round_trip(US(rtt));
                        (size.attempts, size.lost, size.granularity) = (attempts, lost, US(granularity));
                        hold(size_is_exact(&size), &size, "small sizes");
                    }
                }
            }
        }
    }
}

#[test]
fn every_size_at_the_boundaries() {
    for drift in DRIFTS.map(Drift::from_ppb) {
        for work in EDGES {
            for rtt in [0, 1, MOST / 2, MOST, u64::MAX] {
                for attempts in EDGES {
                    for lost in [0, 1, 2, PPB, MOST, u64::MAX - 1, u64::MAX] {
                        let mut size = SizeInput::new(drift).work(US(work)).round_trip(US(rtt));
                        (size.attempts, size.lost) = (attempts, lost);
                        hold(size_is_exact(&size), &size, "the boundaries");
                    }
                }
                for granularity in EDGES {
                    let mut size = SizeInput::new(drift).work(US(work)).pause(US(rtt));
                    size.granularity = US(granularity);
                    hold(size_is_exact(&size), &size, "the boundaries");
                }
            }
        }
    }
}

#[test]
fn every_redlock_and_quorum_at_the_boundaries() {
    for nodes in EDGES.into_iter().chain(0..=64).chain(u64::MAX - 64..=u64::MAX) {
        hold(quorum_is_exact(nodes), &nodes, "the boundaries");
    }
    for ttl in EDGES {
        for drift_factor in DRIFTS.map(Drift::from_ppb) {
            for elapsed in EDGES {
                for fixed in [0, 1, 2_000, MOST, u64::MAX] {
                    for (nodes, granted) in
                        [(0, 0), (1, 1), (4, 2), (5, 3), (5, 6), (u64::MAX - 2, MOST), (u64::MAX, 0)]
                    {
                        let (ttl, elapsed, drift_fixed) = (US(ttl), US(elapsed), US(fixed));
                        let lock = RedlockInput { ttl, elapsed, nodes, granted, drift_factor, drift_fixed };
                        hold(redlock_is_exact(&lock), &lock, "the boundaries");
                    }
                }
            }
        }
    }
}

#[test]
fn every_gates_window_at_the_boundaries() {
    for drift in DRIFTS.map(Drift::from_ppb) {
        for w in EDGES {
            for lateness in EDGES {
                for longest in EDGES {
                    let (lateness, reaction, longest_window) = (US(lateness), US(lateness / 2), US(longest));
                    let gate = GateTiming { drift, lateness, reaction, longest_window };
                    hold(gate_is_exact(&gate, US(w)), &(gate, w), "the boundaries");
                }
            }
        }
    }
}

/// S. Vigna's `SplitMix64`: enough to scatter inputs, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number of any length in bits, each length as often as another.
    fn any(&mut self) -> u64 {
        match self.below(66) {
            0 => 0,
            65 => EDGES[usize::try_from(self.below(17)).expect("an index")],
            bits => self.next() >> (64 - bits),
        }
    }

    /// A number of at most that many bits.
    fn up_to(&mut self, bits: u64) -> u64 {
        match self.below(bits + 1) {
            0 => 0,
            bits => self.next() >> (64 - bits),
        }
    }

    /// A duration: mostly one that a lease has, now and then any.
    fn time(&mut self, bits: u64) -> Duration {
        US(if self.below(16) == 0 { self.any() } else { self.up_to(bits) })
    }

    fn drift(&mut self) -> Drift {
        Drift::from_ppb(match self.below(32) {
            0 => self.any(),
            1 => DRIFTS[usize::try_from(self.below(11)).expect("an index")],
            2..9 => self.below(PPB),
            _ => self.up_to(24),
        })
    }

    /// A count of at least 2, mostly small.
    fn count(&mut self) -> u64 {
        if self.below(32) == 0 { self.any() } else { self.below(12) + 1 }
    }

    fn start(&mut self) -> Start {
        if self.below(2) == 0 { Start::Send } else { Start::Grant }
    }

    fn plan(&mut self) -> PlanInput {
        PlanInput {
            ttl: self.time(50),
            drift: self.drift(),
            rtt: self.time(40),
            start: self.start(),
            clock_offset: self.time(30),
            attempts: self.count(),
            work: self.time(45),
            pause: self.time(45),
            poll: self.time(30),
        }
    }

    fn size(&mut self) -> SizeInput {
        SizeInput {
            drift: self.drift(),
            rtt: self.time(40),
            attempts: self.count(),
            work: self.time(50),
            pause: self.time(50),
            poll: self.time(30),
            lost: if self.below(32) == 0 { self.any() } else { self.below(6) },
            granularity: if self.below(2) == 0 { US(1) } else { self.time(30) },
        }
    }

    fn redlock(&mut self) -> RedlockInput {
        let nodes = self.count();
        RedlockInput {
            ttl: self.time(50),
            elapsed: self.time(45),
            nodes,
            granted: if self.below(8) == 0 { self.any() } else { self.below(nodes.saturating_add(1).max(1)) },
            drift_factor: self.drift(),
            drift_fixed: self.time(30),
        }
    }

    fn gate(&mut self) -> (GateTiming, Duration) {
        let gate = GateTiming {
            drift: self.drift(),
            lateness: self.time(20),
            reaction: self.time(20),
            longest_window: self.time(40),
        };
        (gate, self.time(40))
    }
}

fn environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let read = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    Some(read.unwrap_or_else(|why| panic!("{name}={text}: {why}")))
}

/// A million inputs and more, no two runs alike unless they are asked to be.
#[test]
fn at_random() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock after 1970");
    let seed = environment("FENCEGATE_SEED")
        .unwrap_or_else(|| Random(now.as_secs() << 30 | u64::from(now.subsec_nanos())).next());
    let runs = environment("FENCEGATE_RUNS").unwrap_or(RUNS);
    println!("counted: FENCEGATE_SEED={seed:#x}, {runs} inputs");

    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let answered: Vec<[u64; 4]> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..cores).map(|part| scope.spawn(move || run_part(seed, part, cores, runs))).collect();
        parts.into_iter().map(|part| part.join().unwrap_or_else(|why| std::panic::resume_unwind(why))).collect()
    });
    // A generator whose inputs are nearly all out of range would prove nothing.
    for (property, name) in ["plan", "size", "redlock", "gate"].into_iter().enumerate() {
        let answered: u64 = answered.iter().map(|part| part[property]).sum();
        println!("counted: {name}: {answered} of {} had an answer", runs.div_ceil(4));
        assert!(answered >= runs / 16, "{name}: only {answered} inputs had an answer");
    }
}

/// Every `cores`th input from `part` on; an input depends on the seed and its number alone.
fn run_part(seed: u64, part: u64, cores: u64, runs: u64) -> [u64; 4] {
    let mut answered = [0; 4];
    for number in (part..runs).step_by(usize::try_from(cores).expect("a few")) {
        let mut random = Random(seed ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        let from = || format!("FENCEGATE_SEED={seed:#x}, input {number}");
        let (property, has_answer) = match number % 4 {
            0 => {
                let plan = random.plan();
                hold_lazily(plan_is_exact(&plan), &plan, from);
                hold_lazily(window_is_exact(&plan.lease()), &plan, from);
                (0, plan.plan().is_ok())
            }
            1 => {
                let size = random.size();
                hold_lazily(size_is_exact(&size), &size, from);
                (1, matches!(size.size(), Ok(Some(_))))
            }
            2 => {
                let lock = random.redlock();
                hold_lazily(redlock_is_exact(&lock), &lock, from);
                hold_lazily(quorum_is_exact(lock.nodes), &lock, from);
                (2, lock.redlock().is_ok())
            }
            _ => {
                let (gate, w) = random.gate();
                hold_lazily(gate_is_exact(&gate, w), &(gate, w), from);
                (3, gate.window(w).is_ok_and(|w| w.is_some()))
            }
        };
        answered[property] += u64::from(has_answer);
    }
    answered
}

#[track_caller]
fn hold_lazily(verdict: Verdict, input: &dyn Debug, from: impl Fn() -> String) {
    if verdict.is_err() {
        hold(verdict, input, &from());
    }
}

/// The oracle is no rubber stamp: figures that are off by one, either way, do not pass.
#[test]
fn a_figure_off_by_one_does_not_pass() {
    let (half, less) = (part(1, 2), part(1, 2) - whole(4));
    assert!(less.is_negative() && less == part(1, 2) - part(12, 3) && less < half);
    assert!(less.floor() == Rational::zero() - whole(4) && less.ceil() == Rational::zero() - whole(3));
    assert!(half.floor().is_zero() && half.ceil() == one() && one().ceil() == one() && one() / &half == whole(2));

    let exact = part(7, 2);
    for (figure, up, down) in [(2, false, false), (3, false, true), (4, true, false), (5, false, false)] {
        assert_eq!(rounded_up("x", figure, &exact).is_ok(), up, "{figure}");
        assert_eq!(rounded_down("x", figure, &exact).is_ok(), down, "{figure}");
    }
    for (figure, both) in [(3, false), (4, true), (5, false)] {
        assert_eq!(rounded_up("x", figure, &whole(4)).is_ok(), both, "{figure}");
        assert_eq!(rounded_down("x", figure, &whole(4)).is_ok(), both, "{figure}");
    }
}
