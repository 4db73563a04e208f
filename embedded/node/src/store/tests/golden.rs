//! The layout that every later firmware reads.

use super::record::{FORMAT, VALUE, decode, encode};
use super::*;
use serde::{Serialize, de::DeserializeOwned};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// Writes as these bytes, and is read from them.
fn golden<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(key: Key, number: u8, value: &T, bytes: &str) {
    let mut buffer = [0; VALUE];
    let len = encode(value, &mut buffer).unwrap();
    assert_eq!(hex(&buffer[..len]), bytes, "{value:?}");
    assert_eq!(decode::<T>(&buffer[..len]).as_ref(), Some(value));
    assert!(key.is(&buffer[..len]));
    assert_eq!(key.number(), number);
}

#[test]
fn the_records_are_these_bytes() {
    let gate = provisioning(1);
    let whole = Whole { serial: 300, marks: 3, channels: 3, outputs: 4, config: gate.gate.clone() };
    golden(
        Key::GATE,
        0x00,
        &whole,
        "01ac0203030470726573732d303701010101010101010101010101010101010101010101010101010101010101010202\
         0202020202020202020202020202020202020202020202020202020202020301a08d068827808ece1c0580ade2048080\
         04c09a0c2069dd15",
    );
    golden(Key::BOOTS, 0x01, &Boots { count: 70_000, rested: 300 }, "01f0a204ac02c0c97d3e");
    golden(Key::STAGE, 0x02, &Stage::Underway, "0100be23c258");
    golden(Key::STAGE, 0x02, &Stage::Done, "01012813c52f");
    golden(Key::STAGE, 0x02, &Stage::Replacing, "01029242ccb6");
    golden(Key::LATCHED, 0x03, &Latched { serial: 300, inhibited: 0x85, astray: 2 }, "01ac0285025ca18157");
    let holder = HolderId::new("press-a#9f3c").ok();
    let fence = FenceRecord { epoch: Epoch(3), token: 1_501, holder, released: false };
    let stands = Mark::Stands(GrantRecord { mark: fence, ttl: Duration::from_secs(10) });
    golden(Key::mark(7).unwrap(), 0x17, &stands, "010003dd0b010c70726573732d6123396633630080ade204f912e67c");
    golden(Key::mark(0).unwrap(), 0x10, &Mark::Stands(GrantRecord::floor(Epoch(0), 0)), "01000000000000cad41b3b");
    golden(
        Key::mark(1).unwrap(),
        0x11,
        &Mark::Lost(FenceRecord { released: true, ..fence }),
        "010103dd0b010c70726573732d61233966336301b9f67c98",
    );
    golden(Key::output(0, 0).unwrap(), 0x40, &gate.outputs[0], "01c701c801000003e0a712000000bc1d965c");
    golden(Key::output(1, 15).unwrap(), 0x6f, &gate.outputs[1], "01000200010202a0c21e00000028ae4072");
    let feedback = OutputConfig { feedback: Some(Duration::from_millis(50)), ..gate.outputs[2].clone() };
    golden(Key::output(2, 1).unwrap(), 0x41, &feedback, "010002000000000001d086031f666025");
    golden(Key::channel(0, 7).unwrap(), 0x57, &gate.channels[0], "010002a09c018080808080804000000000647575d7");
    golden(Key::channel(1, 0).unwrap(), 0x70, &gate.channels[1], "010001008080808080804000000000e21e61d9");
}

/// The log around the records: a page's marker, then check value, length and check of the length, key and value. The stage
/// is first; what comes next is written twice, as the first record of a boot.
#[test]
fn the_flash_begins_with_these_bytes() {
    let flash = gate::<nor::Nor<4>>();
    let half = flash.bytes.len() / 2;
    let begins = "0000000022689971070031f5020100be23c258002c0659b001005bf0000000002c0659b001005bf0";
    assert_eq!(hex(&flash.bytes[..40]), begins);
    assert_eq!(hex(&flash.bytes[half..half + 40]), begins);
    assert_eq!(hex(&log::log_check(&flash.bytes[12..19]).to_le_bytes()), "22689971");
}

#[test]
fn no_two_records_share_a_key() {
    let mut numbers: Vec<u8> = Key::all().map(Key::number).collect();
    assert_eq!(numbers.len(), 4 + 8 + 2 * (16 + 8));
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 4 + 8 + 2 * (16 + 8));
    assert!(numbers.iter().all(|number| *number < 128), "a bit of a `u128` for each");
}

#[test]
fn a_record_of_another_format_fails_closed() {
    let mut bytes = [0; VALUE];
    let mark = Mark::Stands(mark(7));
    let len = encode(&mark, &mut bytes).unwrap();
    assert_eq!(decode::<Mark>(&bytes[..len]), Some(mark));
    bytes[0] = FORMAT + 1;
    let check = record::CHECK.checksum(&bytes[..len - 4]).to_le_bytes();
    bytes[len - 4..len].copy_from_slice(&check);
    assert_eq!(decode::<Mark>(&bytes[..len]), None);
    for len in 0..8 {
        assert_eq!(decode::<Mark>(&bytes[..len]), None);
    }
}

/// The longest of every kind is no longer than what the buffers are made for.
#[test]
fn the_longest_records_fit() {
    let ages = Duration::from_micros(u64::MAX);
    let mut gate = provisioning(0).gate;
    gate.keys.instance = u64::MAX;
    gate.keys.id = u8::MAX;
    gate.drift = Drift::from_ppb(u64::from(u32::MAX));
    (gate.lateness, gate.longest_window, gate.warning) = (ages, ages, ages);
    gate.raises = RaiseBudget { burst: u32::MAX, every: ages };
    gate.epoch_jump = u32::MAX;
    let whole = Whole { serial: u32::MAX, marks: 8, channels: 8, outputs: 16, config: gate };
    assert_eq!(encode(&whole, &mut [0; VALUE]), Some(VALUE));
    let holder = HolderId::new("sixteen-bytes-xx").ok();
    let fence = FenceRecord { epoch: Epoch(u32::MAX), token: u64::MAX, holder, released: true };
    let mark = encode(&Mark::Stands(GrantRecord { mark: fence, ttl: ages }), &mut [0; VALUE]);
    assert_eq!(mark, Some(record::MARK + record::OVERHEAD));
    let channel = ChannelConfig { reaction: ages, token_jump: u64::MAX, lock_delay: ages, ..ChannelConfig::new() };
    let channel = ChannelConfig { epoch: Epoch(u32::MAX), floor: u64::MAX, ..channel };
    assert!(encode(&channel, &mut [0; VALUE]).is_some_and(|len| len <= record::PIECE + record::OVERHEAD));
}
