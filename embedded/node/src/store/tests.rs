//! The store under power cuts at every byte and damage at every word.

use super::*;

/// The fence of a channel, unless it is lost.
fn trusted(memory: &Memory, channel: usize) -> Option<FenceRecord> {
    match memory.records[channel] {
        Remembered::Fence(record) => Some(record),
        Remembered::Lost(_) => None,
    }
}

/// Whether no channel's fence is lost.
fn all_trusted(memory: &Memory) -> bool {
    memory.records.iter().all(|record| matches!(record, Remembered::Fence(_)))
}

fn all_lost(memory: &Memory) -> bool {
    memory.records.iter().all(|record| matches!(record, Remembered::Lost(_)))
}

use embassy_futures::block_on;
use embedded_storage_async::nor_flash::{ErrorType, NorFlashError, NorFlashErrorKind, ReadNorFlash};
use fencegate::{Duration, HolderId, RaiseBudget, Stamp, Token};
use fencegate_wire::{Authority, ChannelConfig, GateId, Key, Keyring, OutputConfig};

const PAGE: usize = 4096;
const PAGES: usize = 4;

/// NOR flash in memory whose power fails after so many bytes, a word half-programmed, a page half-erased.
#[derive(Clone)]
struct Nor {
    bytes: Vec<u8>,
    power: usize,
}

#[derive(Debug)]
struct Dead;

impl NorFlashError for Dead {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl Nor {
    fn erased() -> Self {
        Self { bytes: vec![0xff; PAGE * PAGES], power: usize::MAX }
    }

    fn spend(&mut self) -> Result<(), Dead> {
        self.power = self.power.checked_sub(1).ok_or(Dead)?;
        Ok(())
    }
}

impl ErrorType for Nor {
    type Error = Dead;
}

impl ReadNorFlash for Nor {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Dead> {
        let offset = offset as usize;
        bytes.copy_from_slice(self.bytes.get(offset..offset + bytes.len()).ok_or(Dead)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        PAGE * PAGES
    }
}

impl NorFlash for Nor {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Dead> {
        let _ = self.bytes.get(to as usize - 1).ok_or(Dead)?;
        for at in from as usize..to as usize {
            if at.is_multiple_of(64) {
                self.spend()?;
            }
            self.bytes[at] = 0xff;
        }
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Dead> {
        assert!(offset.is_multiple_of(4) && bytes.len().is_multiple_of(4), "whole words");
        for (at, byte) in (offset as usize..).zip(bytes) {
            let old = *self.bytes.get(at).ok_or(Dead)?;
            self.spend()?;
            self.bytes[at] = old & byte;
        }
        Ok(())
    }
}

fn provisioning() -> Provisioning {
    let channel = ChannelConfig {
        authority: Authority::Outside,
        reaction: Duration::ZERO,
        token_jump: 1 << 48,
        epoch: Epoch(0),
        floor: 0,
        outputs: [OutputConfig { min: 0, max: 1, safe: 0 }].into_iter().collect(),
    };
    Provisioning {
        gate: GateId(*b"press-07"),
        keys: Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3 },
        drift: fencegate::Drift::from_ppm(100),
        lateness: Duration::from_millis(5),
        longest_window: Duration::from_secs(60),
        raises: RaiseBudget { burst: 5, every: Duration::from_secs(10) },
        channels: [channel.clone(), channel].into_iter().collect(),
    }
}

fn record(token: u64) -> FenceRecord {
    let stamp = Stamp { epoch: Epoch(0), token: Token::new(token).unwrap(), holder: HolderId::new("a").unwrap() };
    FenceRecord { epoch: stamp.epoch, token, holder: Some(stamp.holder), released: false }
}

fn provisioned() -> Nor {
    let mut store = Store::new(Nor::erased());
    block_on(store.provision(&provisioning())).unwrap();
    store.flash
}

/// Boots from `flash`; what it found, and the flash afterwards.
fn boot(flash: Nor) -> (Boot, Nor) {
    let mut store = Store::new(Nor { power: usize::MAX, ..flash });
    (block_on(store.boot()), store.flash)
}

fn memory(flash: Nor) -> (Memory, Nor) {
    match boot(flash) {
        (Boot::Gate(found, memory), flash) => {
            assert_eq!(found, provisioning());
            (memory, flash)
        }
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn a_gate_remembers_and_counts_its_boots() {
    let (first, flash) = memory(provisioned());
    let mut store = Store::new(flash);
    assert_eq!(block_on(store.put_fence(1, record(33))).unwrap(), Proof::read_back(record(33)));
    let (second, _) = memory(store.flash);
    assert_eq!((first.boots, second.boots), (1, 2));
    assert_eq!(second.records[..], [FenceRecord::floor(Epoch(0), 0), record(33)].map(Remembered::Fence));
}

#[test]
fn blank_flash_is_a_blank_board() {
    assert!(matches!(boot(Nor::erased()).0, Boot::Blank));
}

#[test]
fn a_cut_at_any_byte_of_the_provisioning_leaves_a_blank_board_or_a_gate() {
    let mut power = 0;
    loop {
        let mut store = Store::new(Nor { power, ..Nor::erased() });
        let finished = block_on(store.provision(&provisioning())).is_ok();
        match boot(store.flash).0 {
            Boot::Blank => assert!(!finished, "cut after {power} bytes"),
            Boot::Gate(found, memory) => {
                assert_eq!(found, provisioning());
                assert!(all_trusted(&memory), "cut after {power} bytes");
            }
            Boot::Lost => panic!("cut after {power} bytes"),
        }
        if finished {
            break;
        }
        power += 1;
    }
}

#[test]
fn a_cut_at_any_byte_of_the_first_boot_loses_nothing() {
    let flash = provisioned();
    for power in 0.. {
        let mut store = Store::new(Nor { power, ..flash.clone() });
        let _ = block_on(store.boot());
        let whole = store.flash.power > 0;
        let (found, _) = memory(store.flash);
        assert!(found.storable && all_trusted(&found), "cut after {power} bytes");
        if whole {
            break;
        }
    }
}

/// Raises through several page changes, cut at every byte of every raise: the old record or the new one, and what was
/// acknowledged is never lost, nor is the boot that finds it harmed by another cut.
#[test]
fn a_cut_at_any_byte_of_a_raise_leaves_the_old_record_or_the_new_one() {
    let (_, mut flash) = memory(provisioned());
    for token in 1..=120 {
        let mut power = 0;
        loop {
            let mut store = Store::new(Nor { power, ..flash.clone() });
            let acknowledged = block_on(store.put_fence(0, record(token))).is_ok();
            let (found, _) = memory(store.flash.clone());
            let found = trusted(&found, 0).map_or(u64::MAX, |r| r.token);
            let allowed = if acknowledged { token..=token } else { token - 1..=token };
            assert!(allowed.contains(&found), "token {found} after a raise to {token} cut after {power} bytes");
            if acknowledged {
                flash = Nor { power: usize::MAX, ..store.flash };
                break;
            }
            power += if token % 20 == 0 { 1 } else { 7 };
        }
    }
}

/// A raise torn in its second copy, then boots that mend it and are themselves cut at every byte: what one boot has
/// reported, no later boot takes back.
#[test]
fn a_cut_during_the_mending_boot_takes_nothing_back() {
    let (_, flash) = memory(provisioned());
    let mut store = Store::new(flash);
    let _ = block_on(store.put_fence(0, record(1))).unwrap();
    store.flash.power = 30; // copy A has the new record, copy B half of it
    assert!(block_on(store.put_fence(0, record(2))).is_err());
    let torn = store.flash;
    for power in 0.. {
        let mut store = Store::new(Nor { power, ..torn.clone() });
        let Boot::Gate(_, reported) = block_on(store.boot()) else { panic!("cut after {power} bytes") };
        let whole = store.flash.power > 0;
        let later = trusted(&memory(store.flash).0, 0).unwrap().token;
        let reported = trusted(&reported, 0).map_or(0, |r| r.token);
        assert!(later >= reported.max(1), "{reported} was reported, then {later}, cut after {power} bytes");
        if whole {
            assert_eq!(reported, 2);
            break;
        }
    }
}

/// Every single word of one copy damaged, after raises: the other copy's record is the one believed.
#[test]
fn no_damage_to_one_copy_brings_an_older_stamp_back() {
    let (_, flash) = memory(provisioned());
    let mut store = Store::new(flash);
    for token in 1..=5 {
        let _ = block_on(store.put_fence(0, record(token))).unwrap();
    }
    let flash = store.flash;
    for half in [0, PAGE * PAGES / 2] {
        for at in (half..half + PAGE * PAGES / 2).filter(|at| flash.bytes[*at] != 0xff) {
            for bit in [0, 3, 7] {
                let mut damaged = flash.clone();
                damaged.bytes[at] ^= 1 << bit;
                match boot(damaged).0 {
                    // A channel without a record is refused as lost storage, which is safe.
                    Boot::Gate(_, memory) => {
                        assert!(trusted(&memory, 0).is_none_or(|found| found.token == 5), "bit {bit} of byte {at}");
                    }
                    Boot::Lost => {}
                    Boot::Blank => panic!("bit {bit} of byte {at} made a blank board of a gate"),
                }
            }
        }
    }
}

#[test]
fn a_lost_half_is_mended_from_the_other() {
    let (_, flash) = memory(provisioned());
    let mut store = Store::new(flash);
    let _ = block_on(store.put_fence(0, record(9))).unwrap();
    let flash = store.flash;
    for half in [0, PAGE * PAGES / 2] {
        let mut erased = flash.clone();
        erased.bytes[half..half + PAGE * PAGES / 2].fill(0xff);
        let (found, mended) = memory(erased);
        assert_eq!(trusted(&found, 0), Some(record(9)));
        let mut other = mended;
        let rest = PAGE * PAGES / 2 - half;
        other.bytes[rest..rest + PAGE * PAGES / 2].fill(0xff);
        assert_eq!(trusted(&memory(other).0, 0), Some(record(9)), "it was written to both");
    }
}

/// A flash that ends early: older records may stand before the cut, newer ones behind it.
#[test]
fn a_truncated_flash_still_knows_its_keys_and_trusts_nothing_else() {
    let (_, flash) = memory(provisioned());
    let mut store = Store::new(flash);
    for token in 1..=5 {
        let _ = block_on(store.put_fence(0, record(token))).unwrap();
    }
    let mut answering = 0;
    for len in (0..PAGE * PAGES).step_by(64) {
        let mut truncated = store.flash.clone();
        truncated.bytes.truncate(len);
        match boot(truncated).0 {
            Boot::Gate(_, memory) => {
                answering += 1;
                assert!(all_lost(&memory), "{len} bytes");
            }
            Boot::Lost => {}
            Boot::Blank => panic!("{len} bytes made a blank board of a gate"),
        }
    }
    assert!(answering > 0);
}

/// Damage to both copies at once: whatever it is, the board does not come up blank, where it would obey the factory key,
/// and no fence is believed that was older than the last.
#[test]
fn no_damage_to_both_copies_makes_a_blank_board_of_a_gate() {
    let (_, flash) = memory(provisioned());
    let mut store = Store::new(flash);
    let _ = block_on(store.put_fence(0, record(7))).unwrap();
    let (_, flash) = memory(store.flash);
    let half = PAGE * PAGES / 2;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut noise = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random.to_le_bytes()[3]
    };
    let mut damages: Vec<Vec<u8>> = vec![];
    for len in [1, 16, 64, 100, 200, 300, 500, 1_000, PAGE, half] {
        for fill in [Some(0x00), Some(0xff), None] {
            let mut bytes = flash.bytes.clone();
            for at in (0..len).chain(half..half + len) {
                bytes[at] = fill.unwrap_or_else(&mut noise);
            }
            damages.push(bytes);
        }
    }
    damages.push((0..PAGE * PAGES).map(|_| noise()).collect());
    damages.push(vec![0; PAGE * PAGES]);
    let erased = vec![0xff; PAGE * PAGES];
    for bytes in damages.into_iter().filter(|bytes| *bytes != erased) {
        match boot(Nor { bytes, power: usize::MAX }).0 {
            Boot::Gate(_, memory) => assert!(trusted(&memory, 0).is_none_or(|found| found == record(7))),
            Boot::Lost => {}
            Boot::Blank => panic!("a blank board"),
        }
    }
}

/// The boot counter lost in both copies: no fence is trusted, and the new count is none that was.
#[test]
fn a_lost_boot_counter_is_a_loss_and_begins_where_none_was() {
    let (first, mut flash) = memory(provisioned());
    let mut counts = vec![first.boots];
    for _ in 0..5 {
        let mut store = Store::new(flash);
        for copy in [Copy::A, Copy::B] {
            let range = store.range(copy);
            let config = MapConfig::try_new(range).unwrap();
            let mut map = MapStorage::<u8, _, _>::new(&mut store.flash, config, Cache::new_uncached());
            block_on(map.store_item(&mut [0; 64], &BOOTS, &&[0xaa_u8; 9][..])).unwrap();
        }
        let (lost, after) = memory(store.flash);
        assert!(lost.storable && all_lost(&lost));
        assert!(!counts.contains(&lost.boots), "{} again", lost.boots);
        counts.push(lost.boots);
        let (next, after) = memory(after);
        assert_eq!(next.boots, lost.boots + 1);
        counts.push(next.boots);
        flash = after;
    }
}

#[test]
fn a_record_of_another_format_fails_closed() {
    let mut bytes = [0; 64];
    let len = encode(&record(7), &mut bytes).unwrap();
    assert_eq!(decode::<FenceRecord>(&bytes[..len]), Some(record(7)));
    bytes[0] = FORMAT + 1;
    let check = CHECK.checksum(&bytes[..len - 4]).to_le_bytes();
    bytes[len - 4..len].copy_from_slice(&check);
    assert_eq!(decode::<FenceRecord>(&bytes[..len]), None);
    for len in 0..8 {
        assert_eq!(decode::<FenceRecord>(&bytes[..len]), None);
    }
}
