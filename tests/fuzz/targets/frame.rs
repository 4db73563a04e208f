//! Bytes off the line: no junk stops the deframer, and nothing is believed that nobody has sealed.
#![no_main]

use fencegate_wire::{Deframer, Framed, Key, MAX_FRAME, Unverified};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let key = Key::new([7; Key::LEN]);
    let mut deframer = Deframer::new();
    for byte in line {
        if let Some(Framed::Frame(frame)) = deframer.push(*byte) {
            assert!(!frame.is_empty() && frame.len() <= MAX_FRAME && !frame.contains(&0));
            if let Ok(claimed) = Unverified::read(frame) {
                assert!(claimed.verify(&key).is_none(), "forged");
            }
        }
    }
});
