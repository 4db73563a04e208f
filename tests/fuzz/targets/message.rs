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
    if let Some(provisioning) = read::<Provisioning>(bytes)
        && provisioning.check().is_ok()
    {
        for channel in &provisioning.channels {
            assert!(channel.accepts(&channel.safe()), "the safe values are not accepted");
            assert!(provisioning.timing(channel).window(provisioning.longest_window).is_ok_and(|w| w.is_some()));
        }
    }
});
