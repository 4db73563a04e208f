//! What a cable, or somebody hostile on it, can make of frames.

use crc::{CRC_32_ISO_HDLC, Crc};

const CHECK: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// The payload of a frame, without its check value: what somebody on the cable reads of it.
pub(crate) fn payload(frame: &[u8]) -> Vec<u8> {
    let mut rest = &frame[1..frame.len() - 1];
    let mut bytes = vec![];
    while let [code, after @ ..] = rest {
        let (run, after) = after.split_at(usize::from(*code) - 1);
        bytes.extend_from_slice(run);
        if *code < 0xff && !after.is_empty() {
            bytes.push(0);
        }
        rest = after;
    }
    let (payload, check) = bytes.split_last_chunk::<4>().unwrap();
    assert_eq!(CHECK.checksum(payload).to_le_bytes(), *check);
    payload.to_vec()
}

/// The frame of a payload, with a check value that fits: what somebody on the cable makes without any key.
pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    let bytes: Vec<u8> = payload.iter().copied().chain(CHECK.checksum(payload).to_le_bytes()).collect();
    let mut frame = vec![0];
    let zeros = bytes.split(|byte| *byte == 0).count();
    for (n, mut run) in bytes.split(|byte| *byte == 0).enumerate() {
        while run.len() >= 254 {
            frame.push(0xff);
            frame.extend_from_slice(&run[..254]);
            run = &run[254..];
            assert!(!run.is_empty() || n + 1 < zeros, "no payload is as long as that");
        }
        frame.push(u8::try_from(run.len() + 1).unwrap());
        frame.extend_from_slice(run);
    }
    frame.push(0);
    frame
}

/// `frame` with one bit the other way.
pub(crate) fn flipped(frame: &[u8], bit: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[bit / 8] ^= 1 << (bit % 8);
    frame
}
