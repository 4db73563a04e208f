#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod config;
mod fields;
mod names;
mod output;
mod story;
mod wrong;

use fencegate::{
    CLOCKS, Clock, Drift, Duration, PRESETS, Plan, PlanInput, Preset, RedlockInput, Round, SizeInput, UnitError,
    WindowInput, parse_drift, parse_duration,
};
use fields::Fields;
use js_sys::{Array, Error};
use serde::Serialize;
pub use story::Story;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wrong::Wrong;

/// As small as an allocator that gives memory back can be.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

/// The declarations that editors and `tsc` see; a test holds their fields against what the functions return.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.d.ts");

/// The margin and the window of a lease.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for an input that is wrong.
#[wasm_bindgen(skip_typescript)]
pub fn window(input: &JsValue) -> Result<JsValue, Error> {
    let window = read_lease(input)?.window().map_err(Wrong::from)?;
    output::plain(&window)
}

/// The plan of a lease: the window, the renewals, the cancellation and the takeover.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for an input that is wrong.
#[wasm_bindgen(skip_typescript)]
pub fn plan(input: &JsValue) -> Result<JsValue, Error> {
    let plan = read_plan(input)?.plan().map_err(Wrong::from)?;
    output::plain(&plan)
}

/// The least TTL for the work, the pause and the renewals that may be lost, beside its plan; `ttl_us` is null, and stands
/// alone, where no TTL is long enough.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for an input that is wrong.
#[wasm_bindgen(skip_typescript)]
pub fn size(input: &JsValue) -> Result<JsValue, Error> {
    match read_size(input)?.size().map_err(Wrong::from)? {
        Some(size) => output::plain(&size),
        None => output::plain(&NoTtl { ttl_us: None }),
    }
}

/// What is left of a Redlock.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for an input that is wrong.
#[wasm_bindgen(skip_typescript)]
pub fn redlock(input: &JsValue) -> Result<JsValue, Error> {
    let redlock = read_redlock(input)?.redlock().map_err(Wrong::from)?;
    output::plain(&redlock)
}

/// How many of a number of nodes are needed, and how many may be missing.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for an input that is wrong.
#[wasm_bindgen(skip_typescript)]
pub fn quorum(input: &JsValue) -> Result<JsValue, Error> {
    let nodes = Fields::of("input", input, &["nodes"])?.required("nodes")?;
    output::plain(&fencegate::quorum(nodes).map_err(Wrong::from)?)
}

/// Lock services as they come, and clocks worth knowing.
///
/// # Errors
/// None; it is the form that every answer has.
#[wasm_bindgen(skip_typescript)]
pub fn presets() -> Result<JsValue, Error> {
    output::plain(&Presets { systems: &PRESETS, clocks: &CLOCKS })
}

/// A lock service's configuration against its own rules.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for a system or a value that is wrong.
#[wasm_bindgen(skip_typescript)]
pub fn check(system: &JsValue, values: &JsValue) -> Result<JsValue, Error> {
    let check = config::read(system, values)?.check().map_err(Wrong::from)?;
    output::plain(&check)
}

/// What a chain of time-outs adds up to, and how far something travels meanwhile.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for an input that is wrong.
#[wasm_bindgen(skip_typescript)]
pub fn chain(input: &JsValue) -> Result<JsValue, Error> {
    let fields = Fields::of("input", input, &["parts_us", "speed_mm_s"])?;
    let parts =
        fields.get("parts_us").and_then(|parts| parts.dyn_ref::<Array>()).ok_or_else(|| Wrong::missing("parts_us"))?;
    let mut total = Duration::ZERO;
    for part in parts.iter() {
        let part = Duration::from_micros(fields::whole("parts_us", &part)?);
        total = total.checked_add(part).ok_or_else(|| Wrong::beyond_64_bits("parts_us"))?;
    }
    let speed = fields.whole("speed_mm_s")?.unwrap_or(0);
    // µs · mm/s = nm; up to whole micrometres.
    let travel = total.as_micros().checked_mul(speed).ok_or_else(|| Wrong::beyond_64_bits("speed_mm_s"))?;
    Ok(output::Plain::new().whole("total_us", total.as_micros()).whole("travel_um", travel.div_ceil(1_000)).done())
}

/// A duration as it is typed, in whole microseconds; what lies between two of them goes `down` or `up`. Where it is wrong,
/// the error names `field`.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for text that is no duration.
#[wasm_bindgen(js_name = parseDuration, skip_typescript)]
pub fn duration(text: &JsValue, round: &JsValue, field: &JsValue) -> Result<JsValue, Error> {
    let round = match round.as_string().as_deref() {
        Some("down") => Round::Down,
        Some("up") => Round::Up,
        _ => return Err(Wrong::none_of("round", &["down", "up"]).into()),
    };
    let parse = |text: &str| parse_duration(text, round).map(Duration::as_micros);
    Ok(output::number(read(text, field, "not_a_duration", parse)?))
}

/// A drift as it is typed, in whole parts per billion, rounded up; of a list, one a clock, what they add up to. Where it
/// is wrong, the error names `field`.
///
/// # Errors
/// A JavaScript `Error` with `code` and `field` for text that is no drift.
#[wasm_bindgen(js_name = parseDrift, skip_typescript)]
pub fn drift(text: &JsValue, field: &JsValue) -> Result<JsValue, Error> {
    let parse = |text: &str| parse_drift(text).map(Drift::as_ppb);
    let clocks = text.dyn_ref::<Array>().filter(|clocks| clocks.length() > 0).cloned();
    let mut sum: u64 = 0;
    for clock in clocks.unwrap_or_else(|| Array::of1(text)).iter() {
        let more = sum.checked_add(read(&clock, field, "not_a_drift", parse)?);
        sum = more.ok_or_else(|| Wrong::unit("out_of_range", named(field), UnitError::TooLarge))?;
    }
    Ok(output::number(sum))
}

fn read(
    text: &JsValue,
    field: &JsValue,
    code: &'static str,
    parse: impl Fn(&str) -> Result<u64, UnitError>,
) -> Result<u64, Wrong> {
    let text = text.as_string().ok_or_else(|| Wrong::not_text("text"))?;
    parse(&text).map_err(|why| Wrong::unit(code, named(field), why))
}

/// What an error about text is to name.
fn named(field: &JsValue) -> String {
    field.as_string().unwrap_or_else(|| "text".to_owned())
}

/// The answer where no TTL is long enough.
#[derive(Serialize)]
struct NoTtl {
    ttl_us: Option<u64>,
}

#[derive(Serialize)]
struct Presets {
    systems: &'static [&'static Preset],
    clocks: &'static [Clock],
}

fn read_lease(input: &JsValue) -> Result<WindowInput, Wrong> {
    let fields = Fields::of("input", input, &["ttl_us", "drift_ppb", "rtt_us", "start", "clock_offset_us"])?;
    let mut lease = WindowInput::new(fields.ttl()?, fields.drift()?);
    lease.rtt = fields.duration("rtt_us")?;
    lease.start = fields.start()?;
    lease.clock_offset = fields.duration("clock_offset_us")?;
    Ok(lease)
}

fn read_plan(input: &JsValue) -> Result<PlanInput, Wrong> {
    let fields = Fields::of(
        "input",
        input,
        &["ttl_us", "drift_ppb", "rtt_us", "start", "clock_offset_us", "attempts", "work_us", "pause_us", "poll_us"],
    )?;
    let mut plan = Plan::for_ttl(fields.ttl()?).drift(fields.drift()?);
    plan.rtt = fields.duration("rtt_us")?;
    plan.start = fields.start()?;
    plan.clock_offset = fields.duration("clock_offset_us")?;
    plan.attempts = fields.whole("attempts")?.unwrap_or(plan.attempts);
    plan.work = fields.duration("work_us")?;
    plan.pause = fields.duration("pause_us")?;
    plan.poll = fields.duration("poll_us")?;
    Ok(plan)
}

fn read_size(input: &JsValue) -> Result<SizeInput, Wrong> {
    let fields = Fields::of(
        "input",
        input,
        &["drift_ppb", "rtt_us", "attempts", "work_us", "pause_us", "poll_us", "lost", "granularity_us"],
    )?;
    let mut size = SizeInput::new(fields.drift()?);
    size.rtt = fields.duration("rtt_us")?;
    size.attempts = fields.whole("attempts")?.unwrap_or(size.attempts);
    size.work = fields.duration("work_us")?;
    size.pause = fields.duration("pause_us")?;
    size.poll = fields.duration("poll_us")?;
    size.lost = fields.whole("lost")?.unwrap_or(size.lost);
    size.granularity = fields.whole("granularity_us")?.map_or(size.granularity, Duration::from_micros);
    Ok(size)
}

fn read_redlock(input: &JsValue) -> Result<RedlockInput, Wrong> {
    let fields = Fields::of(
        "input",
        input,
        &["ttl_us", "elapsed_us", "nodes", "granted", "drift_factor_ppb", "drift_fixed_us"],
    )?;
    let mut redlock = RedlockInput::new(fields.ttl()?, fields.required("nodes")?);
    redlock.elapsed = fields.required("elapsed_us").map(Duration::from_micros)?;
    redlock.granted = fields.required("granted")?;
    redlock.drift_factor = fields.whole("drift_factor_ppb")?.map_or(redlock.drift_factor, Drift::from_ppb);
    redlock.drift_fixed = fields.whole("drift_fixed_us")?.map_or(redlock.drift_fixed, Duration::from_micros);
    Ok(redlock)
}
