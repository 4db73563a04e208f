//! The Raspberry Pi Pico in its emulator, in the emulated board's own time; and how fast the emulator runs.

use super::table;
use crate::board::Board;
use crate::emulator::{Emulator, Sides};
use crate::firmware;
use crate::gate::{Gate, Image, LATENESS, Powering, runtime};
use crate::{setup, workspace};
use anyhow::{Context, Result, ensure};
use fencegate_host::fencegate::{Deadline, Duration, Epoch, HolderId, Token};
use fencegate_host::wire::{Role, Values};
use fencegate_host::{GateClient, clock};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// How often a command is given.
const TIMES: usize = 32;
/// Bits that a byte takes on the line.
const BITS: u64 = 10;

/// Cycles from the end of the power-on reset to the boot ROM's hand-over, reckoned from its source
/// (`raspberrypi/pico-bootrom-rp2040`: `bootrom_main.c`, `program_flash_generic.c`, `bootrom_misc.S`) for a flash whose first
/// 256 bytes are right at the first reading: the look at the BOOTSEL button, the flash's way out of XIP, a command of 4 bytes
/// and 256 of answer at 48 cycles each, and the checksum's 59 cycles for each of 252 bytes.
const BOOT_ROM: u64 = (400 * 3 + 9 * (4 * 3 + 10)) + (2 * 2_048 * 3 + 10 * 48) + (4 + 256) * 48 + 252 * 59;
/// The ring oscillator's speed meanwhile, in Hz: typical, and within which bounds (RP2040 data sheet, 2.17, "Frequency
/// Variation").
const RING: [u64; 3] = [6_500_000, 12_000_000, 1_800_000];

/// Round trips, cycles and instructions of a drive that needs no store, at both speeds of the line; a boot's times; the
/// emulator's speed.
pub(super) fn measure(root: &Path) -> Result<String> {
    setup::ensure(setup::FIRMWARE)?;
    setup::ensure(Board::Rp2040.emulator())?;
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(workspace::target_dir(root)?)?;
    let fast = firmware::build_for(root, Board::Rp2040, true)?;
    let image = firmware::for_boot_loader(root, Board::Rp2040, false)?;
    let elf = Image::Gate.build(root, Board::Rp2040)?;
    let flash = folder.path().join("bench.flash");
    let rows = [
        row(115_200, &runtime()?.block_on(drives(&elf, &flash))?)?,
        row(1_000_000, &runtime()?.block_on(drives(&fast, &folder.path().join("fast.flash")))?)?,
    ];
    let heads = [
        "a drive, baud",
        "round trip, least",
        "median",
        "most",
        "its bytes alone",
        "median by that",
        "cycles at work",
        "instructions",
    ];
    Ok([table(heads, rows), boots_and_speed(&image, &flash)?].join("\n"))
}

/// A frame and its answer.
#[derive(Clone, Copy, Debug)]
struct Trip {
    nanos: u64,
    cycles: u64,
    instructions: u64,
    bytes: u64,
}

/// Drives again and again.
async fn drives(elf: &Path, flash: &Path) -> Result<Vec<Trip>> {
    let powering = Powering { board: Board::Rp2040, elf, flash, image: Image::Gate };
    let Gate { mut board, mut line, keys } = Gate::boot(&powering, LATENESS, &Sides::default()).await?;
    let give_up = Deadline::after(clock::now(), Duration::from_secs(120)).context("the clock is at its end")?;
    let window = Duration::from_secs(30);
    let holder = Role::Holder(HolderId::new("press-a#9f3c").context("a holder")?);
    let mut gate = GateClient::new(&mut line, keys.credential(holder))?;
    let stamp = (Epoch(0), Token::new(1).context("zero is no token")?);
    gate.raise(0, stamp, give_up).await?;
    let mut trips = Vec::new();
    for n in 0..=TIMES {
        let end = Deadline::after(clock::now(), window).context("the clock is at its end")?;
        gate.drive(0, stamp, Values::from_iter([1]), (end, window), give_up).await?;
        let mut said = answered(&mut board).await?;
        // The first one comes with what was said before. One that was repeated has two, and is left out.
        if n > 0 && said.len() == 1 {
            trips.append(&mut said);
        }
    }
    drop(gate);
    board.power_cut().await?;
    Ok(trips)
}

/// What was said on the line since this was last asked.
async fn answered(board: &mut Emulator) -> Result<Vec<Trip>> {
    let said = board.ask("trips").await?;
    Ok(said.lines().filter_map(trip).collect())
}

/// A line of the monitor's: `from: to cycles instructions there back`.
fn trip(line: &str) -> Option<Trip> {
    let (from, rest) = line.trim().split_once(": ")?;
    let numbers: Option<Vec<u64>> = rest.split(' ').map(|number| number.parse().ok()).collect();
    let [to, cycles, instructions, there, back] = numbers?[..] else { return None };
    Some(Trip { nanos: to - from.parse::<u64>().ok()?, cycles, instructions, bytes: there + back })
}

/// A row of the table.
fn row(baud: u64, trips: &[Trip]) -> Result<[String; 8]> {
    ensure!(trips.len() * 2 > TIMES, "only {} of {TIMES} drives went through at {baud} baud", trips.len());
    let sorted = |what: fn(&Trip) -> u64| {
        let mut all: Vec<_> = trips.iter().map(what).collect();
        all.sort_unstable();
        all
    };
    let nanos = sorted(|trip| trip.nanos);
    let middle = trips.len() / 2;
    let [cycles, instructions] =
        [sorted(|trip| trip.cycles), sorted(|trip| trip.instructions)].map(|all| all[middle].to_string());
    let bytes = trips[middle].bytes;
    ensure!(trips.iter().all(|trip| trip.bytes.abs_diff(bytes) < 8), "drives of different lengths: {trips:?}");
    let alone = bytes * BITS * 1_000_000_000 / baud;
    let ratio = nanos[middle] * 100 / alone;
    let [least, median, most, alone] = [nanos[0], nanos[middle], nanos[trips.len() - 1], alone].map(ms);
    let bytes = format!("{alone} ({bytes} bytes)");
    let ratio = format!("{}.{:02}", ratio / 100, ratio % 100);
    Ok([baud.to_string(), least, median, most, bytes, ratio, cycles, instructions])
}

/// Nanoseconds as milliseconds with two digits.
fn ms(nanos: u64) -> String {
    let hundredths = (nanos + 5_000) / 10_000;
    format!("{}.{:02} ms", hundredths / 100, hundredths % 100)
}

/// How long the board boots, and how fast the emulator runs under Node on this machine.
fn boots_and_speed(image: &Path, flash: &Path) -> Result<String> {
    let output = Command::new("node")
        .arg(workspace::root().join("embedded/firmware/rp2040/emulator/speed.js"))
        .arg("--image")
        .arg(image)
        .arg("--flash")
        .arg(flash)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start node")?;
    ensure!(output.status.success(), "speed.js ended with {}", output.status);
    let said: Value = serde_json::from_slice(&output.stdout).context("reading what speed.js printed")?;
    let boot = |which: &str, what: &str| said["boots"][which][what].as_u64().context("speed.js names no such time");
    let [typical, least, most] = RING.map(|hertz| BOOT_ROM * 1_000_000_000 / hertz);
    let ready = boot("provisioned", "loop")?;
    let boots = [
        ["power", "the outputs' first defined state: inputs, pulled down by the chip", "at once", "hardware"]
            .map(str::to_owned),
        ["power", "the boot ROM's hand-over", &format!("{} ({} to {})", ms(typical), ms(least), ms(most)), "reckoned"]
            .map(str::to_owned),
        ["the hand-over", "the outputs driven low", &ms(boot("provisioned", "low")?), "measured"].map(str::to_owned),
        ["the hand-over", "the first turn of the gate's loop, blank", &ms(boot("blank", "loop")?), "measured"]
            .map(str::to_owned),
        ["the hand-over", "the same, provisioned: ready", &ms(ready), "measured"].map(str::to_owned),
        ["power", "ready", &ms(typical + ready), "the sum"].map(str::to_owned),
    ];
    let boots = table(["from", "to", "time", "which is"], boots);
    let hertz = said["hertz"].as_u64().context("speed.js names no clock")?;
    let rows = ["idle", "busy"].map(|what| {
        let number = |name: &str| said[what][name].as_u64().unwrap_or_default();
        let (nanos, percent) = (number("nanosEachMs"), number("busyPercent"));
        let times = nanos / 10_000;
        let cycles = nanos * hertz / 1_000_000_000 * percent / 100 / 1_000;
        let at_work = format!("{percent} %");
        [what.to_owned(), at_work, format!("{}.{:02}", times / 100, times % 100), format!("{cycles} million")]
    });
    let speeds = table(
        ["the emulator in Node", "processor at work", "times real time", "emulated cycles at work a second"],
        rows,
    );
    Ok([boots, speeds].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trip_is_read() {
        let trip = trip("1000: 14001000 250000 125000 73 84").unwrap();
        assert_eq!((trip.nanos, trip.cycles, trip.instructions, trip.bytes), (14_000_000, 250_000, 125_000, 157));
        assert!(super::trip("(rp2040)").is_none());
        assert_eq!(ms(14_006_000), "14.01 ms");
    }
}
