//! Bodies of every message: what can be read is written again as it was understood.
#![no_main]

use fencegate_wire::{Answer, Provisioning, Sealed};
use libfuzzer_sys::fuzz_target;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let (message, _) = postcard::take_from_bytes::<T>(bytes).ok()?;
    let written = postcard::to_stdvec(&message).unwrap();
    assert_eq!(postcard::from_bytes::<T>(&written).as_ref(), Ok(&message));
    Some(message)
}

fuzz_target!(|bytes: &[u8]| {
    read::<Sealed>(bytes);
    read::<Answer>(bytes);
    let Ok(((gate, channels, outputs), _)) = postcard::take_from_bytes(bytes) else { return };
    let provisioning = Provisioning { gate, channels, outputs };
    if provisioning.check().is_err() {
        return;
    }
    for n in 0..provisioning.channels.len() {
        assert!(provisioning.accepts(n, &provisioning.safe(n)), "the safe values are not accepted");
        let window = provisioning.timing(n).unwrap().window(provisioning.gate.longest_window);
        assert!(window.is_ok_and(|window| window.is_some()));
    }
});
