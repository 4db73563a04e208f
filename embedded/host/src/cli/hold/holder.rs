//! Who holds it: every start is an instance of its own.

use super::super::output::Failure;
use fencegate::HolderId;

/// How many hexadecimal digits an instance has, if they fit, and at the least.
const DIGITS: (usize, usize) = (8, 4);

/// `name#instance` as it is, or `name` with a random instance.
pub(in crate::cli) fn instance(name: &str) -> Result<HolderId, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::input(format_args!("holder: `--holder {name}`: {why}"));
    let id = HolderId::new(name).map_err(|error| wrong(&error))?;
    if name.contains('#') {
        return Ok(id);
    }
    let digits = HolderId::MAX_LEN.saturating_sub(name.len() + 1).min(DIGITS.0);
    if digits < DIGITS.1 {
        return Err(wrong(&"at most 11 characters, so that an instance fits; or give one, as in press-a#1"));
    }
    let random = getrandom::u32().map_err(|error| Failure::new(126, format_args!("no random numbers: {error}")))?;
    let hex = format!("{random:08x}");
    HolderId::new(&format!("{name}#{}", &hex[..digits])).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_is_an_instance_of_its_own() {
        let (a, b) = (instance("press-a").unwrap(), instance("press-a").unwrap());
        assert_eq!((a.name(), b.name()), (HolderId::new("press-a").unwrap(), HolderId::new("press-a").unwrap()));
        assert_ne!(a, b);
        assert_eq!(instance("press-a#1").unwrap(), HolderId::new("press-a#1").unwrap());
        assert_eq!(instance("elevenbytes").unwrap().to_string().len(), 16);
        for wrong in ["", "twelve-bytes", "seventeen-bytes-x", "a#"] {
            assert!(instance(wrong).unwrap_err().to_string().starts_with("holder: "), "{wrong}");
        }
    }
}
