//! Reading a system's configuration: values as the command takes them, or as JavaScript has them.

use crate::fields::{Fields, whole};
use crate::wrong::Wrong;
use fencegate::{Config, DRIFT, Drift, Duration, Key, Kind, RTT, System, Value};
use wasm_bindgen::JsValue;

/// The configuration of the system of that name; without `values` it is the system as it comes.
pub(crate) fn read(system: &JsValue, values: &JsValue) -> Result<Config, Wrong> {
    let system = system.as_string().and_then(|name| System::from_name(&name)).ok_or_else(Wrong::unknown_system)?;
    let mut config = Config::new(system);
    if values.is_undefined() {
        return Ok(config);
    }
    let keys = || system.keys().iter().chain([&DRIFT, &RTT]);
    let names: Vec<_> = keys().map(|key| key.name).collect();
    let fields = Fields::of("values", values, &names)?;
    for key in keys() {
        match fields.get(key.name) {
            // A key without a default is null in the presets; to hand that back sets nothing.
            Some(given) if !(given.is_null() && key.default.is_none()) => config.set(key.name, value(key, given)?)?,
            _ => {}
        }
    }
    Ok(config)
}

/// Text as the command takes it; else a whole number of microseconds, ppb or whatever is counted, or yes or no.
fn value(key: &Key, given: &JsValue) -> Result<Value, Wrong> {
    if let Some(text) = given.as_string() {
        return key.read(&text).map_err(|bad| Wrong::bad_value(key, bad));
    }
    match key.kind {
        Kind::Flag => given.as_bool().map(Value::Flag),
        _ if given.as_f64().is_none() && !given.is_bigint() => None,
        Kind::Ttl | Kind::Time => Some(Value::Time(Duration::from_micros(whole(key.name, given)?))),
        Kind::Count => Some(Value::Count(whole(key.name, given)?)),
        Kind::Drift => Some(Value::Drift(Drift::from_ppb(whole(key.name, given)?))),
    }
    .ok_or_else(|| Wrong::not_of_its_kind(key))
}
