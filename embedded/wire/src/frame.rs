//! Frames: how a payload travels over a line that may lose, add or garble bytes.

use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

/// The most bytes of a payload: header, body, tag and check value.
pub const MAX_PAYLOAD: usize = 250;

/// The most bytes of a frame on the line: a zero, the stuffed payload, a zero.
pub const MAX_FRAME: usize = 1 + cobs::max_encoding_length(MAX_PAYLOAD) + 1;

// What PROTOCOL.md says.
const _: () = assert!(MAX_FRAME == 253);

/// A frame as it goes onto the line.
pub type Frame = heapless::Vec<u8, MAX_FRAME>;

/// The check value at the end of a payload: CRC-32 as in ISO/IEC 13239, without a table, for size.
const CHECK: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);
pub(crate) const CHECK_LEN: usize = 4;

/// What came over the line is no frame of ours: bytes that were garbled, cut, or never meant as one. No answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Noise;

/// Where the payload begins in a frame: behind the zero that ends whatever junk stood on the line before, and the first
/// byte of the stuffing.
pub(crate) const PAYLOAD: usize = 2;

/// A frame whose payload is to be appended, and then [`close`] to be called.
pub(crate) fn begin() -> Frame {
    Frame::from_iter([0; PAYLOAD])
}

/// Appends the check value to the payload and stuffs both in place.
///
/// `None` where they exceed [`MAX_PAYLOAD`].
pub(crate) fn close(frame: &mut Frame) -> Option<()> {
    let check = CHECK.checksum(frame.get(PAYLOAD..)?);
    frame.extend_from_slice(&check.to_le_bytes()).ok()?;
    // COBS of fewer than 254 bytes: each zero becomes the way to the next, and the last one the way to the end.
    let mut next = frame.len();
    for (at, byte) in frame.iter_mut().enumerate().skip(1).rev().filter(|(_, byte)| **byte == 0) {
        *byte = u8::try_from(next - at).ok()?;
        next = at;
    }
    frame.push(0).ok()
}

/// Takes the stuffing out of `bytes` in place and checks the check value; the payload without it.
pub(crate) fn decode(bytes: &mut [u8]) -> Result<&mut [u8], Noise> {
    let len = cobs::decode_in_place(bytes).map_err(|_| Noise)?;
    let at = len.checked_sub(CHECK_LEN).ok_or(Noise)?;
    let (payload, check) = bytes.split_at_mut_checked(at).ok_or(Noise)?;
    let expected = CHECK.checksum(payload).to_le_bytes();
    if check.get(..CHECK_LEN) == Some(&expected[..]) { Ok(payload) } else { Err(Noise) }
}

/// What the line has brought when a zero byte ends it.
#[derive(Debug)]
pub enum Framed<'a> {
    /// A frame, still stuffed.
    Frame(&'a mut [u8]),
    /// More bytes than any frame has.
    Overlong,
}

/// Cuts what comes over the line into frames. After junk of any length it is in step again at the next zero byte.
#[derive(Clone, Debug, Default)]
pub struct Deframer {
    bytes: Frame,
    overlong: bool,
    done: bool,
}

impl Deframer {
    /// A deframer at the beginning of a frame.
    pub const fn new() -> Self {
        Self { bytes: Frame::new(), overlong: false, done: false }
    }

    /// Takes one byte; the frame that it ends, if it ends one.
    pub fn push(&mut self, byte: u8) -> Option<Framed<'_>> {
        if self.done {
            self.bytes.clear();
            self.overlong = false;
            self.done = false;
        }
        if byte != 0 {
            self.overlong |= self.bytes.push(byte).is_err();
            return None;
        }
        self.done = true;
        match (self.overlong, self.bytes.is_empty()) {
            (true, _) => Some(Framed::Overlong),
            (false, true) => None,
            (false, false) => Some(Framed::Frame(&mut self.bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(payload: &[u8]) -> Option<Frame> {
        let mut frame = begin();
        frame.extend_from_slice(payload).ok()?;
        close(&mut frame)?;
        Some(frame)
    }

    fn deframe(deframer: &mut Deframer, line: &[u8]) -> Vec<Option<Vec<u8>>> {
        line.iter()
            .filter_map(|byte| match deframer.push(*byte)? {
                Framed::Overlong => Some(None),
                Framed::Frame(bytes) => Some(decode(bytes).ok().map(|p| p.to_vec())),
            })
            .collect()
    }

    #[test]
    fn payloads_of_every_length_come_through() {
        for len in 0..=MAX_PAYLOAD - CHECK_LEN {
            let bytes: Vec<u8> = (0..len).map(|i| u8::try_from(i % 256).unwrap()).collect();
            let frame = encode(&bytes).unwrap();
            assert_eq!(deframe(&mut Deframer::new(), &frame), [Some(bytes)]);
        }
        for len in 0..=MAX_PAYLOAD - CHECK_LEN {
            let frame = encode(&vec![0; len]).unwrap();
            assert_eq!(deframe(&mut Deframer::new(), &frame), [Some(vec![0; len])]);
        }
        assert!(encode(&[1; MAX_PAYLOAD - CHECK_LEN + 1]).is_none());
    }

    #[test]
    fn every_flipped_bit_is_noise_or_a_broken_frame() {
        let frame = encode(b"drive\0the\0valve").unwrap();
        for bit in 8..(frame.len() - 1) * 8 {
            let mut line = frame.clone();
            line[bit / 8] ^= 1 << (bit % 8);
            assert!(deframe(&mut Deframer::new(), &line).iter().all(Option::is_none), "bit {bit}");
        }
    }

    #[test]
    fn after_junk_of_any_length_the_next_frame_is_heard() {
        let frame = encode(b"hello").unwrap();
        for junk in (0..=3).chain(MAX_FRAME - 2..=MAX_FRAME + 2) {
            let mut line = vec![0x55; junk];
            line.extend_from_slice(&frame);
            assert_eq!(deframe(&mut Deframer::new(), &line).last(), Some(&Some(b"hello".to_vec())), "{junk} bytes");
        }
    }
}
