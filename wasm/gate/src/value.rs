//! Values on their way in and out.

use fencegate::{FenceRecord, Instant};
use fencegate_wire::{Refused, Reply, Request};
use js_sys::{Array, BigInt, Error, Number, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

/// A plain object, made field by field.
pub(crate) struct Plain(Object);

impl Plain {
    pub(crate) fn new() -> Self {
        Self(Object::new())
    }

    pub(crate) fn of(kind: &str) -> Self {
        Self::new().set("kind", kind)
    }

    pub(crate) fn set(self, field: &str, value: impl Into<JsValue>) -> Self {
        // Fails only for a frozen or sealed object, which one made by `new` is not.
        let _ = Reflect::set(&self.0, &field.into(), &value.into());
        self
    }

    pub(crate) fn whole(self, field: &str, whole: u64) -> Self {
        // A number while it is exact, else a `BigInt`.
        let number = Number::try_from(whole).map_or_else(|_| BigInt::from(whole).into(), JsValue::from);
        self.set(field, number)
    }

    pub(crate) fn done(self) -> JsValue {
        self.0.into()
    }
}

pub(crate) fn wrong(words: &str) -> Error {
    Error::new(words)
}

/// The whole number in a field of an object; 0 where it is absent.
pub(crate) fn whole(object: &JsValue, field: &str) -> Result<u64, Error> {
    let value = Reflect::get(object, &field.into()).unwrap_or_default();
    if value.is_undefined() {
        return Ok(0);
    }
    let big = match value.dyn_ref::<BigInt>() {
        Some(big) => Some(big.clone()),
        None => BigInt::new(&value).ok(),
    };
    big.and_then(|big| u64::try_from(big).ok()).ok_or_else(|| wrong(&["no whole number: ", field].concat()))
}

/// The instant `us` of the caller's clock.
pub(crate) fn instant(us: f64) -> Instant {
    // A clock that JavaScript counts in floating point is exact to the microsecond for 285 years; below 0 it is 0.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Instant::from_micros(us as u64)
}

/// Where a fence stands; `null` where there is none.
pub(crate) fn record(record: Option<&FenceRecord>) -> JsValue {
    let Some(record) = record else { return JsValue::NULL };
    Plain::new()
        .whole("epoch", record.epoch.0.into())
        .whole("token", record.token)
        .set("holder", record.holder.map_or(JsValue::NULL, |holder| JsValue::from(&*holder.to_string())))
        .set("released", record.released)
        .done()
}

fn values(values: &[i32]) -> Array {
    values.iter().map(|value| JsValue::from(*value)).collect()
}

/// What a host asks, by the name that the protocol has for it.
pub(crate) fn request(request: &Request) -> JsValue {
    let kind = match request {
        Request::Challenge => "challenge",
        Request::Status => "status",
        Request::Channel { .. } => "channel",
        Request::Counters => "counters",
        Request::Raise { .. } => "raise",
        Request::Drive { .. } => "drive",
        Request::Release { .. } => "release",
        Request::Epoch { .. } => "epoch",
        Request::Rearm { .. } => "rearm",
        Request::Acquire { .. } => "acquire",
        Request::Renew { .. } => "renew",
        Request::Log { .. } => "log",
        Request::SetOutput { .. } => "set_output",
        Request::SetChannel { .. } => "set_channel",
        Request::Provision { .. } => "provision",
    };
    let mut plain = Plain::of(kind);
    if let Some(channel) = request.channel() {
        plain = plain.set("channel", channel);
    }
    match request {
        Request::Raise { token, .. } | Request::Release { token, .. } | Request::Renew { token, .. } => {
            plain.whole("token", token.get())
        }
        Request::Drive { token, window, values: to, .. } => {
            plain.whole("token", token.get()).whole("window_us", window.as_micros()).set("values", values(to))
        }
        Request::Epoch { epoch, floor, .. } => plain.whole("epoch", epoch.0.into()).whole("floor", *floor),
        _ => plain,
    }
    .done()
}

/// What a gate answers.
pub(crate) fn reply(reply: &Reply) -> JsValue {
    match reply {
        Reply::Challenge => Plain::of("challenge").done(),
        Reply::Status(status) => Plain::of("status")
            .set("firmware", &*status.firmware.to_string())
            .set("boots", status.boots)
            .set("channels", status.channels)
            .set("fault", status.fault.map_or(JsValue::NULL, |fault| JsValue::from(fault.as_str())))
            .done(),
        Reply::Channel(status) => Plain::of("channel")
            .set("fence", record(Some(&status.record)))
            .set("values", values(&status.values))
            .whole("window_left_us", status.window_left.as_micros())
            .set("fault", status.fault.map_or(JsValue::NULL, |fault| JsValue::from(fault.as_str())))
            .done(),
        Reply::Counters(_) => Plain::of("counters").done(),
        Reply::Done { record: fence, window_left } => {
            Plain::of("done").set("fence", record(Some(fence))).whole("window_left_us", window_left.as_micros()).done()
        }
        Reply::Refused(Refused { reason, by, .. }) => {
            Plain::of("refused").set("reason", reason.as_str()).set("by", record(by.as_ref())).done()
        }
        Reply::Provisioned => Plain::of("provisioned").done(),
        Reply::Log(_) => Plain::of("log").done(),
    }
}
