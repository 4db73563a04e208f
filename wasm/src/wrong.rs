//! What can be wrong with an input, as the `Error` that JavaScript sees.

use fencegate::{BadValue, ConfigError, Key, Kind, OutOfRange, System, Unfit, UnitError};
use js_sys::{Error, Reflect};
use std::borrow::Cow;

/// A wrong input. Boxed, since hardly any is made and nearly every function hands one on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong(Box<What>);

/// A short stable code for programs, the field's contract name, and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
struct What {
    code: &'static str,
    field: Cow<'static, str>,
    reason: Cow<'static, str>,
}

impl Wrong {
    fn new(code: &'static str, field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(What { code, field: field.into(), reason: reason.into() }))
    }

    /// The whole argument is not an object; it has no field to name but itself.
    pub(crate) fn not_an_object(what: &'static str) -> Self {
        Self::new("not_an_object", what, "a plain object with the fields is needed")
    }

    /// A field that the call does not take.
    pub(crate) fn unknown_field(field: String, known: &[&str]) -> Self {
        Self::new("unknown_field", field, format!("no such field here; there are {}", known.join(", ")))
    }

    /// A required field that is not there.
    pub(crate) fn missing(field: &'static str) -> Self {
        Self::new("missing", field, "this field is required")
    }

    /// No whole number: a fraction, `NaN`, a string, `null`.
    pub(crate) fn not_an_integer(field: &'static str) -> Self {
        Self::new("not_an_integer", field, "a whole number is needed, as a number or a BigInt")
    }

    /// A whole number below 0 or above 2⁶⁴−1.
    pub(crate) fn beyond_64_bits(field: &'static str) -> Self {
        Self::new("out_of_range", field, "a whole number from 0 to 18446744073709551615 is needed")
    }

    /// A whole number that is too large for JavaScript's `number` to tell it from its neighbours.
    pub(crate) fn inexact(field: &'static str) -> Self {
        Self::new("out_of_range", field, "a number beyond 9007199254740991 is not exact; a BigInt from 0 is")
    }

    /// A value that the story cannot be told with.
    pub(crate) fn out_of_range(field: &'static str, reason: &'static str) -> Self {
        Self::new("out_of_range", field, reason)
    }

    /// Neither true nor false.
    pub(crate) fn not_a_flag(field: &'static str) -> Self {
        Self::new("not_a_flag", field, "true or false is needed")
    }

    /// No text where text is needed.
    pub(crate) fn not_text(field: &'static str) -> Self {
        Self::new("not_text", field, "text is needed")
    }

    /// None of the words that there are.
    pub(crate) fn none_of(field: &'static str, words: &[&str]) -> Self {
        Self::new("not_a_word", field, format!("one of {} is needed", words.join(", ")))
    }

    /// Text that is no duration or drift.
    pub(crate) fn unit(code: &'static str, field: String, why: UnitError) -> Self {
        let code = if why == UnitError::TooLarge { "out_of_range" } else { code };
        Self::new(code, field, why.to_string())
    }

    /// A plan that no holder can live by. The core's words begin with the field, and so does every message of ours.
    pub(crate) fn unfit(unfit: Unfit) -> Self {
        let field = match unfit {
            Unfit::OutOfRange(e) => return e.into(),
            Unfit::StartsAtGrant => "start",
            Unfit::WorkTooLong => "work_us",
            Unfit::NoRoundTrip | Unfit::NotSustainable => "rtt_us",
            _ => "ttl_us",
        };
        let words = unfit.to_string();
        let reason = words.get(field.len() + 2..).unwrap_or_default();
        Self::new("out_of_range", field, reason.to_owned())
    }

    /// The same, in an entry of a list.
    pub(crate) fn within(mut self, list: &str, at: usize) -> Self {
        self.0.field = format!("{list}[{at}].{}", self.0.field).into();
        self
    }

    /// A start that is neither.
    pub(crate) fn not_a_start() -> Self {
        Self::new("not_a_start", "start", "\"send\" or \"grant\" is needed")
    }

    /// No name of a system whose configuration can be checked.
    pub(crate) fn unknown_system() -> Self {
        let reason = format!("no such system; there are {}", System::ALL.map(System::name).join(", "));
        Self::new("unknown_system", "system", reason)
    }

    /// Neither text nor anything else that the key takes.
    pub(crate) fn not_of_its_kind(key: &Key) -> Self {
        let (code, reason) = match key.kind {
            Kind::Ttl | Kind::Time => {
                ("not_a_duration", "text with its unit is needed, as in \"30s\", or whole microseconds")
            }
            Kind::Count => return Self::not_an_integer(key.name),
            Kind::Drift => ("not_a_drift", "text with its unit is needed, as in \"500ppm\", or whole ppb"),
            Kind::Flag => return Self::not_a_flag(key.name),
        };
        Self::new(code, key.name, reason)
    }

    /// Text that cannot be read as a value of the key.
    pub(crate) fn bad_value(key: &Key, bad: BadValue) -> Self {
        let code = match bad {
            BadValue::Number(UnitError::TooLarge, _) => "out_of_range",
            _ => Self::not_of_its_kind(key).0.code,
        };
        Self::new(code, key.name, bad.to_string())
    }
}

impl From<OutOfRange> for Wrong {
    fn from(e: OutOfRange) -> Self {
        Self::new("out_of_range", e.field(), e.reason())
    }
}

impl From<ConfigError> for Wrong {
    /// A configuration is made of keys, so that the calculator's `drift_ppb` is the key `drift` here.
    fn from(e: ConfigError) -> Self {
        let code = if matches!(e, ConfigError::Missing(_)) { "missing" } else { "out_of_range" };
        let field = e.field();
        let key = field.strip_suffix("_us").or_else(|| field.strip_suffix("_ppb")).unwrap_or(field);
        Self::new(code, key, e.reason())
    }
}

impl From<Wrong> for Error {
    fn from(Wrong(wrong): Wrong) -> Self {
        let error = Error::new(&format!("{}: {}", wrong.field, wrong.reason));
        for (key, value) in [("code", wrong.code), ("field", &*wrong.field)] {
            // Fails only for a frozen or sealed object, which an error made the line before is not.
            let _ = Reflect::set(&error, &key.into(), &value.into());
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cores_refusals_keep_their_field_and_their_sentence() {
        for e in [OutOfRange::TtlTooShort, OutOfRange::TtlTooLong, OutOfRange::Drift, OutOfRange::Attempts] {
            let wrong = Wrong::from(e).0;
            assert_eq!((wrong.code, &*wrong.field, &*wrong.reason), ("out_of_range", e.field(), e.reason()));
        }
    }

    #[test]
    fn an_unknown_field_is_named_beside_those_there_are() {
        let wrong = Wrong::unknown_field("tll_us".into(), &["ttl_us", "drift_ppb"]).0;
        assert_eq!((wrong.code, &*wrong.field), ("unknown_field", "tll_us"));
        assert!(wrong.reason.ends_with("there are ttl_us, drift_ppb"));
    }
}
