//! A holder's text and its padded form: what is taken comes back as it was, what is not is an error.
#![no_main]

use fencegate::HolderId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(id) = HolderId::new(text)
    {
        assert_eq!(id.to_string(), text);
        assert_eq!(HolderId::parse_padded(&id.to_padded()), Ok(id));
        let name = id.name();
        assert!(text.starts_with(&name.to_string()));
        assert_eq!(name.name(), name);
    }
    if let Some(padded) = bytes.first_chunk()
        && let Ok(id) = HolderId::parse_padded(padded)
    {
        assert_eq!(id.to_padded(), *padded);
        assert_eq!(id.to_string().parse(), Ok(id));
    }
});
