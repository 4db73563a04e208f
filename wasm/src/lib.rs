#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod fields;
mod output;
mod wrong;

use fencegate::{Plan, PlanInput, WindowInput};
use fields::Fields;
use js_sys::Error;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wrong::Wrong;

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

fn read_lease(input: &JsValue) -> Result<WindowInput, Wrong> {
    let fields = Fields::of(input, &["ttl_us", "drift_ppb", "rtt_us", "start", "clock_offset_us"])?;
    let mut lease = WindowInput::new(fields.ttl()?, fields.drift()?);
    lease.rtt = fields.duration("rtt_us")?;
    lease.start = fields.start()?;
    lease.clock_offset = fields.duration("clock_offset_us")?;
    Ok(lease)
}

fn read_plan(input: &JsValue) -> Result<PlanInput, Wrong> {
    let fields = Fields::of(
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
