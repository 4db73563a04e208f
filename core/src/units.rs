//! Durations, drifts and counts as people write them, read exactly.
//!
//! ```text
//! duration = term { term }        term = number unit     unit = "d" | "h" | "m" | "s" | "ms" | "us" | "µs" | "ns"
//! drift    = number ("ppb" | "ppm" | "%")                number = digits [ "." digits ]
//! ```
//!
//! No sign, no space, no exponent, and a unit always. The terms of a duration go from the longest unit to the shortest,
//! each at most once: `1m30s`, and not `30s1m`, which is more likely to be a slip than a wish. A day has 24 hours.
//! The terms are added up exactly, however many decimals they have, and rounded once, to the side that is safe.

use crate::{Drift, Duration};
use core::fmt;

/// Which way what lies between two microseconds goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Round {
    /// For what a holder has: a TTL, a window.
    Down,
    /// For what is spent or waited for: everything else.
    Up,
}

/// What has units of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Quantity {
    /// `d h m s ms us ns`.
    Duration,
    /// `% ppm ppb`.
    Drift,
}

/// What can be wrong with a duration, a drift or a count: the closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum UnitError {
    /// Nothing was written.
    Empty,
    /// A plus or a minus.
    Sign,
    /// A number was expected where there is none.
    Number,
    /// A number without a unit.
    NoUnit(Quantity),
    /// A unit that is not known.
    UnknownUnit(Quantity),
    /// A longer unit after a shorter one, or one twice.
    Order,
    /// More than one drift in one value.
    Joined,
    /// Something else than a whole number.
    NotWhole,
    /// More than 64 bits of microseconds, ppb or whatever is counted.
    TooLarge,
}

const NANOS_PER_MICRO: u128 = 1_000;

/// From the largest to the smallest, each with its count of the smallest.
const DURATIONS: [(&str, u64); MOST_TERMS] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

const DRIFTS: [(&str, u64); 3] = [("%", 10_000_000), ("ppm", 1_000), ("ppb", 1)];

/// As many as there are units, since each stands at most once.
const MOST_TERMS: usize = 7;

impl Quantity {
    const fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Duration => &DURATIONS,
            Self::Drift => &DRIFTS,
        }
    }
}

/// Reads a duration such as `1m30s` or `1.5s` in whole microseconds.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_duration(text: &str, round: Round) -> Result<Duration, UnitError> {
    let sum = Sum::of(&terms(text, Quantity::Duration)?)?;
    let part = sum.whole % NANOS_PER_MICRO != 0 || sum.and_more;
    let up = u128::from(part && round == Round::Up);
    u64::try_from(sum.whole / NANOS_PER_MICRO + up).map(Duration::from_micros).map_err(|_| UnitError::TooLarge)
}

/// Reads a drift such as `500ppm` or `0.1%`, rounded up to whole ppb.
///
/// # Errors
/// [`UnitError`] for anything else. What no calculation takes (100 % and more) is left to the calculation.
pub fn parse_drift(text: &str) -> Result<Drift, UnitError> {
    let terms = terms(text, Quantity::Drift)?;
    if terms.iter().flatten().count() > 1 {
        return Err(UnitError::Joined);
    }
    let sum = Sum::of(&terms)?;
    let ppb = sum.whole.checked_add(u128::from(sum.and_more)).and_then(|ppb| u64::try_from(ppb).ok());
    ppb.map(Drift::from_ppb).ok_or(UnitError::TooLarge)
}

/// Reads a count: digits and nothing else.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    match text.as_bytes() {
        [] => Err(UnitError::Empty),
        [b'-' | b'+', ..] => Err(UnitError::Sign),
        digits if !digits.iter().all(u8::is_ascii_digit) => Err(UnitError::NotWhole),
        _ => text.parse().map_err(|_| UnitError::TooLarge),
    }
}

/// One number with its unit: the digits before the dot, those after it, and the unit's count of the smallest unit.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
struct Term<'a> {
    whole: &'a str,
    decimals: &'a str,
    unit: u64,
}

/// The terms of a text, each in the place of its unit.
type Terms<'a> = [Option<Term<'a>>; MOST_TERMS];

/// Splits `text` into terms, their units strictly falling.
fn terms(text: &str, of: Quantity) -> Result<Terms<'_>, UnitError> {
    if text.is_empty() {
        return Err(UnitError::Empty);
    }
    let (mut rest, mut terms, mut next) = (text, [None; MOST_TERMS], 0);
    while !rest.is_empty() {
        let (at, term, after) = term(rest, of)?;
        let place = terms.get_mut(at).filter(|_| at >= next).ok_or(UnitError::Order)?;
        *place = Some(term);
        (rest, next) = (after, at + 1);
    }
    Ok(terms)
}

/// Takes one term off the front of `text`: the place of its unit, the term, and what follows.
fn term(text: &str, of: Quantity) -> Result<(usize, Term<'_>, &str), UnitError> {
    let (whole, rest) = split_where(text, |b| !b.is_ascii_digit());
    if whole.is_empty() {
        return Err(if rest.starts_with(['-', '+']) { UnitError::Sign } else { UnitError::Number });
    }
    let (decimals, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_where(rest, |b| !b.is_ascii_digit()),
        None => ("0", rest),
    };
    if decimals.is_empty() || rest.starts_with('.') {
        return Err(UnitError::Number);
    }
    let (name, rest) = split_where(rest, |b| b.is_ascii_digit() || b == b'.');
    let name = match name {
        "" => return Err(UnitError::NoUnit(of)),
        "µs" | "μs" => "us", // the micro sign and the Greek letter
        name => name,
    };
    let unit = of.units().iter().enumerate().find(|(_, (unit, _))| *unit == name);
    let (at, &(_, unit)) = unit.ok_or(UnitError::UnknownUnit(of))?;
    Ok((at, Term { whole, decimals, unit }, rest))
}

/// Splits before the first byte that is an `end`. Either side of every cut asked for is ASCII: no character is cut.
fn split_where(text: &str, end: impl Fn(u8) -> bool) -> (&str, &str) {
    text.bytes().position(end).and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

/// A sum in the smallest unit: the whole ones, and whether there is any fraction beside them.
struct Sum {
    whole: u128,
    and_more: bool,
}

impl Sum {
    /// Adds the terms up as one does on paper, from the last decimal to the first: what a decimal place does not pass
    /// on to the next is a fraction of the smallest unit. Exact for any number of decimals.
    ///
    /// A place holds at most 9 units of each kind and what it was passed, which is less than one of each: far below
    /// 2¹²⁸. Only the whole numbers can be too large.
    fn of(terms: &Terms<'_>) -> Result<Self, UnitError> {
        let terms = || terms.iter().flatten();
        let places = terms().map(|term| term.decimals.len()).max().unwrap_or(0);
        let (mut passed_on, mut and_more) = (0_u128, false);
        for place in (0..places).rev() {
            for term in terms() {
                passed_on += digit(term.decimals.as_bytes().get(place)) * u128::from(term.unit);
            }
            and_more |= passed_on % 10 != 0;
            passed_on /= 10;
        }
        let whole = terms().try_fold(passed_on, |sum, term| {
            term.whole
                .bytes()
                .try_fold(0_u128, |n, b| n.checked_mul(10)?.checked_add(digit(Some(&b))))
                .and_then(|n| n.checked_mul(u128::from(term.unit)))
                .and_then(|n| n.checked_add(sum))
        });
        whole.map(|whole| Self { whole, and_more }).ok_or(UnitError::TooLarge)
    }
}

/// The value of an ASCII digit; a place that is not there is zero.
fn digit(b: Option<&u8>) -> u128 {
    b.map_or(0, |b| u128::from(b - b'0'))
}

impl fmt::Display for Quantity {
    /// Its units.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(((last, _), others)) = self.units().split_last() else { return Ok(()) };
        others.iter().try_for_each(|(unit, _)| write!(f, "{unit}, "))?;
        write!(f, "or {last}")
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing is written there"),
            Self::Sign => f.write_str("it takes no sign"),
            Self::Number => f.write_str("a number such as 2 or 1.5 goes before each unit, without spaces"),
            Self::NoUnit(of) => write!(f, "the unit is missing ({of})"),
            Self::UnknownUnit(of) => write!(f, "no such unit (known are {of})"),
            Self::Order => f.write_str("units go from long to short, each once, as in 1m30s"),
            Self::Joined => f.write_str("one drift at a time; those of two clocks add up"),
            Self::NotWhole => f.write_str("a whole number is needed"),
            Self::TooLarge => f.write_str("it does not fit 64 bits"),
        }
    }
}

impl core::error::Error for UnitError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::ToString;

    /// A duration both ways, in microseconds.
    fn both(text: &str) -> Result<(u64, u64), UnitError> {
        Ok((parse_duration(text, Round::Down)?.as_micros(), parse_duration(text, Round::Up)?.as_micros()))
    }

    #[test]
    fn every_unit_and_their_joins() {
        for (text, us) in [
            ("1000ns", 1),
            ("1us", 1),
            ("1µs", 1),
            ("1μs", 1),
            ("1ms", 1_000),
            ("1s", 1_000_000),
            ("1m", 60_000_000),
            ("1h", 3_600_000_000),
            ("1d", 86_400_000_000),
            ("1m30s", 90_000_000),
            ("1.5s", 1_500_000),
            ("1.5m30s", 120_000_000),
            ("1d1h1m1s1ms1us1000ns", 90_061_001_002),
            ("0s", 0),
            ("0.0ns", 0),
            ("007s", 7_000_000),
        ] {
            assert_eq!(both(text), Ok((us, us)), "{text}");
        }
    }

    #[test]
    fn what_lies_between_two_microseconds_goes_to_the_side_asked_for() {
        for text in ["1ns", "999ns", "0.5us", "0.0000001us", "0.9999999999999999999999999999999999999999999us"] {
            assert_eq!(both(text), Ok((0, 1)), "{text}");
        }
        let tiny = format!("1s0.{}1ns", "0".repeat(10_000));
        assert_eq!(both(&tiny), Ok((1_000_000, 1_000_001)));
    }

    #[test]
    fn the_sum_is_exact_before_it_is_rounded() {
        assert_eq!(both("0.5us500ns"), Ok((1, 1)), "two halves make one");
        assert_eq!(both("0.25us750ns"), Ok((1, 1)));
        assert_eq!(both("0.0000000005s0.0000005ms"), Ok((0, 1)));
        assert_eq!(both("0.99999999999999999999us0.00000000000000001ns"), Ok((1, 1)), "twenty decimals that carry");
        assert_eq!(both("0.99999999999999999999us0.00000000000000002ns"), Ok((1, 2)));
    }

    /// Against 128-bit arithmetic in nanoseconds: every number of decimals, every pair of units.
    #[test]
    fn exact_against_128_bits() {
        for (i, &(long, a)) in DURATIONS.iter().enumerate() {
            for &(short, b) in &DURATIONS[i + 1..] {
                for (whole, decimals) in [(0_u128, 1), (3, 999_999_999), (1_234_567, 500_000_000), (10, 10_000_000)] {
                    let text = format!("{whole}.{decimals:09}{long}{whole}.{decimals:09}{short}");
                    let billionths = (whole * 1_000_000_000 + decimals) * u128::from(a + b);
                    let down = billionths / 1_000_000_000_000;
                    let up = billionths.div_ceil(1_000_000_000_000);
                    let want = u64::try_from(down).and_then(|down| Ok((down, u64::try_from(up)?)));
                    assert_eq!(both(&text), want.map_err(|_| UnitError::TooLarge), "{text}");
                }
            }
        }
    }

    #[test]
    fn the_largest_fits_and_one_more_does_not() {
        assert_eq!(both("18446744073709551615us"), Ok((u64::MAX, u64::MAX)));
        assert_eq!(parse_duration("18446744073709551615999ns", Round::Down), Ok(Duration::from_micros(u64::MAX)));
        assert_eq!(parse_duration("18446744073709551615001ns", Round::Up), Err(UnitError::TooLarge));
        assert_eq!(both("18446744073709551616us"), Err(UnitError::TooLarge));
        assert_eq!(both(&format!("{}s", "9".repeat(10_000))), Err(UnitError::TooLarge));
        assert_eq!(both(&format!("{}d1s", u128::MAX)), Err(UnitError::TooLarge));
        assert_eq!(both(&format!("{}1s", "0".repeat(10_000))), Ok((1_000_000, 1_000_000)));
        assert_eq!(both(&format!("{}.5ns", u128::MAX)), Err(UnitError::TooLarge));
        assert_eq!(parse_drift(&format!("{}.5ppb", u128::MAX)), Err(UnitError::TooLarge));
    }

    #[test]
    fn what_is_no_duration() {
        use UnitError::{Empty, NoUnit, Number, Order, Sign, UnknownUnit};
        for (text, why) in [
            ("", Empty),
            ("-1s", Sign),
            ("+1s", Sign),
            ("--json", Sign),
            ("0", NoUnit(Quantity::Duration)),
            ("1.5", NoUnit(Quantity::Duration)),
            ("1m30", NoUnit(Quantity::Duration)),
            ("s", Number),
            (".5s", Number),
            ("5.s", Number),
            ("1..5s", Number),
            ("1.2.3s", Number),
            ("1s.5ms", Number),
            (" 1s", Number),
            ("٣s", Number),
            ("1 s", UnknownUnit(Quantity::Duration)),
            ("1s ", UnknownUnit(Quantity::Duration)),
            ("1m 30s", UnknownUnit(Quantity::Duration)),
            ("1m-30s", UnknownUnit(Quantity::Duration)),
            ("1S", UnknownUnit(Quantity::Duration)),
            ("1min", UnknownUnit(Quantity::Duration)),
            ("1,5s", UnknownUnit(Quantity::Duration)),
            ("1_000s", UnknownUnit(Quantity::Duration)),
            ("1e3s", UnknownUnit(Quantity::Duration)),
            ("1ppm", UnknownUnit(Quantity::Duration)),
            ("1s\0", UnknownUnit(Quantity::Duration)),
            ("30s1m", Order),
            ("1s1s", Order),
        ] {
            assert_eq!(both(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn an_error_names_the_units_that_there_are() {
        let unit = |text| both(text).unwrap_err().to_string();
        assert_eq!(unit("1"), "the unit is missing (d, h, m, s, ms, us, or ns)");
        assert_eq!(parse_drift("1s").unwrap_err().to_string(), "no such unit (known are %, ppm, or ppb)");
    }

    #[test]
    fn a_drift_rounds_up_to_whole_ppb() {
        for (text, ppb) in [
            ("1ppb", 1),
            ("0ppm", 0),
            ("500ppm", 500_000),
            ("0.1%", 1_000_000),
            ("8.33333333333%", 83_333_334),
            ("0.0000000001ppb", 1),
            ("1.0001ppm", 1_001),
            ("100%", 1_000_000_000),
            ("18446744073709551615ppb", u64::MAX),
        ] {
            assert_eq!(parse_drift(text), Ok(Drift::from_ppb(ppb)), "{text}");
        }
    }

    #[test]
    fn what_is_no_drift() {
        use UnitError::{Empty, Joined, NoUnit, Order, Sign, TooLarge, UnknownUnit};
        for (text, why) in [
            ("", Empty),
            ("-1ppm", Sign),
            ("0.001", NoUnit(Quantity::Drift)),
            ("1s", UnknownUnit(Quantity::Drift)),
            ("1%%", UnknownUnit(Quantity::Drift)),
            ("1%1ppm", Joined),
            ("1ppm1%", Order),
            ("18446744073709551615.5ppb", TooLarge),
            ("99999999999999999999%", TooLarge),
        ] {
            assert_eq!(parse_drift(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn a_count_is_digits() {
        use UnitError::{Empty, NotWhole, Sign, TooLarge};
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        for (text, why) in [
            ("", Empty),
            ("-1", Sign),
            ("+1", Sign),
            ("3.0", NotWhole),
            ("3s", NotWhole),
            ("18446744073709551616", TooLarge),
        ] {
            assert_eq!(parse_count(text), Err(why), "{text:?}");
        }
    }
}
