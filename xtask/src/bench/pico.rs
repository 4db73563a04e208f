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

/// Round trips and cycles of a drive that needs no store, at two speeds of the line; a boot's times; the emulator's speed.
pub(super) fn measure(root: &Path) -> Result<String> {
    let image = firmware::for_boot_loader(root, Board::Rp2040)?;
    setup::ensure(Board::Rp2040.emulator())?;
    let elf = Image::Gate.build(root, Board::Rp2040)?;
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(workspace::target_dir(root)?)?;
    let flash = folder.path().join("bench.flash");
    let trips = runtime()?.block_on(drives(&elf, &flash))?;
    let rows = trips.into_iter().map(|(baud, trips)| row(baud, &trips)).collect::<Result<Vec<_>>>()?;
    let heads =
        ["a drive, baud", "round trip, least", "median", "most", "its bytes alone", "median by that", "cycles at work"];
    Ok([table(heads, rows), boots_and_speed(&image, &flash)?].join("\n"))
}

/// A frame and its answer.
#[derive(Clone, Copy, Debug)]
struct Trip {
    nanos: u64,
    cycles: u64,
    bytes: u64,
}

/// Drives again and again, at each speed of the line.
async fn drives(elf: &Path, flash: &Path) -> Result<Vec<(u64, Vec<Trip>)>> {
    let powering = Powering { board: Board::Rp2040, elf, flash, image: Image::Gate };
    let Gate { mut board, mut line, keys } = Gate::boot(&powering, LATENESS, &Sides::default()).await?;
    let give_up = Deadline::after(clock::now(), Duration::from_secs(120)).context("the clock is at its end")?;
    let window = Duration::from_secs(30);
    let holder = Role::Holder(HolderId::new("press-a#9f3c").context("a holder")?);
    let mut gate = GateClient::new(&mut line, keys.credential(holder))?;
    let stamp = (Epoch(0), Token::new(1).context("zero is no token")?);
    gate.raise(0, stamp, give_up).await?;
    let mut all = Vec::new();
    for baud in [115_200, 1_000_000] {
        board.ask(&format!("baud {baud}")).await?;
        let mut trips = Vec::new();
        for n in 0..=TIMES {
            let end = Deadline::after(clock::now(), window).context("the clock is at its end")?;
            gate.drive(0, stamp, Values::from_iter([1]), (end, window), give_up).await?;
            let mut said = answered(&mut board).await?;
            // The first one has the change of speed in it. One that was repeated has two, and is left out.
            if n > 0 && said.len() == 1 {
                trips.append(&mut said);
            }
        }
        all.push((baud, trips));
    }
    drop(gate);
    board.power_cut().await?;
    Ok(all)
}

/// What was said on the line since this was last asked.
async fn answered(board: &mut Emulator) -> Result<Vec<Trip>> {
    let said = board.ask("trips").await?;
    Ok(said.lines().filter_map(trip).collect())
}

/// A line of the monitor's: `from: to cycles there back`.
fn trip(line: &str) -> Option<Trip> {
    let (from, rest) = line.trim().split_once(": ")?;
    let numbers: Option<Vec<u64>> = rest.split(' ').map(|number| number.parse().ok()).collect();
    let [to, cycles, there, back] = numbers?[..] else { return None };
    Some(Trip { nanos: to - from.parse::<u64>().ok()?, cycles, bytes: there + back })
}

/// A row of the table.
fn row(baud: u64, trips: &[Trip]) -> Result<[String; 7]> {
    ensure!(trips.len() * 2 > TIMES, "only {} of {TIMES} drives went through at {baud} baud", trips.len());
    let mut nanos: Vec<_> = trips.iter().map(|trip| trip.nanos).collect();
    nanos.sort_unstable();
    let mut cycles: Vec<_> = trips.iter().map(|trip| trip.cycles).collect();
    cycles.sort_unstable();
    let middle = trips.len() / 2;
    let bytes = trips[middle].bytes;
    ensure!(trips.iter().all(|trip| trip.bytes.abs_diff(bytes) < 8), "drives of different lengths: {trips:?}");
    let alone = bytes * BITS * 1_000_000_000 / baud;
    let ratio = nanos[middle] * 100 / alone;
    let [least, median, most, alone] = [nanos[0], nanos[middle], nanos[trips.len() - 1], alone].map(ms);
    let bytes = format!("{alone} ({bytes} bytes)");
    let ratio = format!("{}.{:02}", ratio / 100, ratio % 100);
    Ok([baud.to_string(), least, median, most, bytes, ratio, cycles[middle].to_string()])
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
    let boot = |which: &str, what: &str| {
        let nanos = said["boots"][which][what].as_u64().context("speed.js names no such time")?;
        Ok::<_, anyhow::Error>(ms(nanos))
    };
    let boots = [
        ["to the outputs' first defined state, low".to_owned(), boot("provisioned", "low")?],
        ["to the first turn of the gate's loop, blank".to_owned(), boot("blank", "loop")?],
        ["to the same, provisioned: from then on it hears".to_owned(), boot("provisioned", "loop")?],
    ];
    let boots = table(["from the boot loader's hand-over", "measured"], boots);
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
        let trip = trip("1000: 14001000 250000 73 84").unwrap();
        assert_eq!((trip.nanos, trip.cycles, trip.bytes), (14_000_000, 250_000, 157));
        assert!(super::trip("(rp2040)").is_none());
        assert_eq!(ms(14_006_000), "14.01 ms");
    }
}
