//! The gate: what a frame costs it, and what the image that ships takes of the stack and of the interrupts.

use super::bare::{Counted, M0, count, program};
use super::table;
use crate::board::Board;
use crate::emulator::{Emulator, Sides, Socket};
use crate::gate::{Gate, Image, LATENESS, Powering, runtime};
use crate::{setup, workspace};
use anyhow::{Context, Result, bail, ensure};
use fencegate_host::fencegate::{Deadline, Duration, Epoch, HolderId, Token};
use fencegate_host::wire::{Provisioning, Role, Timing, Values};
use fencegate_host::{CallError, GateClient, Secret, clock, new_keys, next_id};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Code for the Cortex-M3, which the emulated board has.
const M3: &str = "thumbv7m-none-eabi";

/// The end of the board's RAM, where its stack begins, and how much of it is looked at (`memory.x` of the board).
const RAM_END: u64 = 0x2040_0000;
const STACK: u64 = 0x4_0000;

/// Instructions, bytes, stack, and time with interrupts off.
pub(super) fn measure(root: &Path) -> Result<String> {
    setup::ensure(setup::BARE)?;
    setup::ensure(setup::FIRMWARE)?;
    setup::ensure(Board::Mps2.emulator())?;
    let m0 = count(&program(root, "gate", M0)?, "mps2-an385")?;
    let m3 = count(&program(root, "gate", M3)?, "mps2-an385")?;
    let of = |lines: &[Counted], kind: &str, name: &str| {
        lines
            .iter()
            .find(|line| line.kind == kind && line.name == name)
            .map_or_else(String::new, |line| line.n.to_string())
    };
    let names = m3.iter().filter(|line| line.kind == "instructions").map(|line| line.name.clone());
    let frames = table(
        ["a frame", "instructions, Cortex-M0+", "Cortex-M3", "bytes there", "bytes back"],
        names.map(|name| {
            let [m0, m3s] = [&m0, &m3].map(|lines| of(lines, "instructions", &name));
            let back = if name == "noise" { "none".to_owned() } else { of(&m3, "answer", &name) };
            let there = of(&m3, "frame", &name);
            [name, m0, m3s, there, back]
        }),
    );
    let ram = m3.iter().filter(|line| line.kind == "bytes").map(|line| [line.name.clone(), line.n.to_string()]);
    let ram = table(["bytes of RAM", "Cortex-M"], ram);

    let elf = Image::Gate.build(root, Board::Mps2)?;
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(workspace::target_dir(root)?)?;
    let Work { stack, trace } = runtime()?.block_on(work(&elf, folder.path()))?;
    let off = interrupts_off(&elf, &trace)?;
    let shipped = table(
        ["the image that ships, at work", "most"],
        [("bytes of stack", stack), ("instructions in a row with interrupts off", off)]
            .map(|(what, n)| [what.to_owned(), n.to_string()]),
    );
    Ok([frames, ram, shipped].join("\n"))
}

/// What an image took while it did everything that a gate does: bytes of stack, and a trace of each instruction.
struct Work {
    stack: u64,
    trace: PathBuf,
}

/// A gate's two lives: in the first it does what it is for, before the second its flash is damaged and in it it is provisioned
/// anew.
async fn work(elf: &Path, folder: &Path) -> Result<Work> {
    let sides = Sides { panel: Some(Socket::File(folder.join("panel"))), ..Sides::default() };
    let flash = folder.join("bench.flash");
    let powering = Powering { board: Board::Mps2, elf, flash: &flash, image: Image::Gate };

    let mut gate = Gate::boot(&powering, LATENESS, &sides).await?;
    let trace = folder.join("trace");
    gate.board.ask(&format!("logfile {}", trace.display())).await?;
    gate.board.ask("singlestep on").await?;
    gate.board.ask("log exec,nochain").await?;
    let mut panel = UnixStream::connect(folder.join("panel")).await.context("the front panel")?;
    operate(&mut gate, &mut panel).await?;
    hold(&mut gate).await?;
    gate.board.ask("log none").await?;
    let first = stack(&mut gate.board, folder).await?;
    gate.board.power_cut().await?;

    damage(&flash)?;
    let mut gate = Gate::boot(&powering, LATENESS, &sides).await?;
    let mut panel = UnixStream::connect(folder.join("panel")).await.context("the front panel")?;
    anew(&mut gate, &mut panel).await?;
    let second = stack(&mut gate.board, folder).await?;
    gate.board.power_cut().await?;
    Ok(Work { stack: first.max(second), trace })
}

/// For so long anything may take: traced, the emulator is slow.
fn give_up() -> Result<Deadline> {
    Deadline::after(clock::now(), Duration::from_secs(240)).context("the clock is at its end")
}

/// Who asks a traced emulator again only makes it slower.
const TIMING: Timing = Timing { resend: Duration::from_secs(60), busy: Duration::from_millis(50) };

async fn press(panel: &mut UnixStream, level: &str) -> Result<()> {
    panel.write_all(level.as_bytes()).await?;
    panel.read_exact(&mut [0; 3]).await?;
    Ok(())
}

/// What the operator does: a stop, which is latched, and the rearm that ends that; an epoch; a look at the log.
async fn operate(gate: &mut Gate, panel: &mut UnixStream) -> Result<()> {
    let mut client = GateClient::with_timing(&mut gate.line, gate.keys.credential(Role::Operator), TIMING)?;
    for level in ["i1", "i0"] {
        press(panel, level).await?;
        while client.status(give_up()?).await?.fault.is_some() != (level == "i1") {}
    }
    client.rearm(0, give_up()?).await?;
    client.epoch(1, Epoch(1), 0, give_up()?).await?;
    client.log(0, give_up()?).await?;
    Ok(())
}

/// What holders do, one too late among them, and junk on the line.
async fn hold(gate: &mut Gate) -> Result<()> {
    let holder = Role::Holder(HolderId::new("press-a#9f3c").context("a holder")?);
    let window = Duration::from_secs(50);
    let stamp = |token| Token::new(token).map(|token| (Epoch(0), token)).context("zero is no token");
    let end = || Deadline::after(clock::now(), window).context("the clock is at its end");
    // Longer than a frame may be, and not one.
    gate.line.write_all(&[0x55; 400]).await?;
    gate.line.write_all(&[0]).await?;
    let mut client = GateClient::with_timing(&mut gate.line, gate.keys.credential(holder), TIMING)?;
    client.raise(0, stamp(1)?, give_up()?).await?;
    client.release(0, stamp(1)?, give_up()?).await?;
    let granted = client.acquire(3, Duration::from_secs(30), give_up()?).await?.record;
    client.renew(3, stamp(granted.token)?, give_up()?).await?;
    client.status(give_up()?).await?;
    client.drive(0, stamp(2)?, Values::from_iter([1]), (end()?, window), give_up()?).await?;
    client.drive(0, stamp(2)?, Values::from_iter([1]), (end()?, window), give_up()?).await?;
    let late = client.drive(0, stamp(1)?, Values::from_iter([1]), (end()?, window), give_up()?).await;
    ensure!(matches!(late, Err(CallError::Refused(_))), "a late drive was done: {late:?}");
    Ok(())
}

/// What a gate does that is provisioned once more.
async fn anew(gate: &mut Gate, panel: &mut UnixStream) -> Result<()> {
    let mut client = GateClient::with_timing(&mut gate.line, gate.keys.credential(Role::Operator), TIMING)?;
    let mended = client.status(give_up()?).await?.mended;
    ensure!(mended > 0, "the damage to the flash was none: nothing was mended");
    press(panel, "p1").await?;
    let Secret::Root(keys) = &gate.keys.secret else { bail!("the gate's key file has not its root") };
    let mut wanted = Provisioning::emulator(gate.keys.gate, new_keys(next_id(keys.id))?);
    for channel in &mut wanted.channels {
        (channel.epoch, channel.floor) = (Epoch(2), 0);
    }
    client.provision(&wanted, give_up()?).await?;
    Ok(())
}

/// Clears what was written last to the second copy: its newest records, the latest of which are there twice.
fn damage(flash: &Path) -> Result<()> {
    let mut bytes = fs::read(flash)?;
    let half = bytes.len() / 2;
    let written = bytes.iter().skip(half).rposition(|byte| *byte != 0xff).context("the second copy is empty")?;
    bytes.iter_mut().skip(half).take(written + 1).rev().take(200).for_each(|byte| *byte = 0);
    Ok(fs::write(flash, bytes)?)
}

/// How deep the stack was: the emulator's memory begins as zeros, and nothing but the stack lies so high.
async fn stack(board: &mut Emulator, folder: &Path) -> Result<u64> {
    let memory = folder.join("stack");
    let said = board.ask(&format!("pmemsave {:#x} {STACK:#x} \"{}\"", RAM_END - STACK, memory.display())).await?;
    let stack = fs::read(&memory).with_context(|| format!("the emulator did not save its memory: {said}"))?;
    let untouched = stack.iter().take_while(|byte| **byte == 0).count();
    ensure!(untouched > 0, "the stack is deeper than what was looked at");
    Ok(STACK - u64::try_from(untouched)?)
}

/// The most instructions from the one that switches the interrupts off to the one that gives back what was: a critical
/// section of `cortex-m` begins with `cpsid i` and ends with `msr PRIMASK, …`, and one may lie within another.
fn interrupts_off(elf: &Path, trace: &Path) -> Result<u64> {
    let data = fs::read(elf).with_context(|| format!("reading {}", elf.display()))?;
    let file = object::File::parse(&*data)?;
    let text = file.section_by_name(".text").context("the image has no code")?;
    let code = text.uncompressed_data()?;
    let switches: BTreeMap<u64, bool> = (text.address()..)
        .step_by(2)
        .zip(code.windows(4).step_by(2))
        .filter_map(|(at, code)| match code {
            [0x72, 0xb6, ..] => Some((at, false)),
            [register, 0xf3, 0x10, 0x88] if register & 0xf0 == 0x80 => Some((at, true)),
            _ => None,
        })
        .collect();
    let (mut most, mut begun, mut depth, mut seen) = (0, 0, 0_u32, 0_u64);
    for line in BufReader::new(File::open(trace).context("the emulator wrote no trace")?).split(b'\n') {
        let Some(at) = program_counter(&String::from_utf8_lossy(&line?)) else { continue };
        seen += 1;
        match switches.get(&at) {
            Some(false) => {
                begun = if depth == 0 { seen } else { begun };
                depth += 1;
            }
            Some(true) => {
                depth = depth.saturating_sub(1);
                most = if depth == 0 { most.max(seen - begun) } else { most };
            }
            None => {}
        }
    }
    if most == 0 {
        bail!("no interrupt was switched off in {seen} instructions: the trace is not one of the image");
    }
    Ok(most)
}

/// The address in `Trace 0: 0x7f0a3c000100 [00000000/000001a4/00000110/ff000001] name`.
fn program_counter(line: &str) -> Option<u64> {
    let (_, state) = line.strip_prefix("Trace ")?.split_once('[')?;
    u64::from_str_radix(state.split('/').nth(1)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_names_the_instruction() {
        assert_eq!(program_counter("Trace 0: 0x7f0a3c000100 [00000000/000001a4/00000110/ff000001] main"), Some(0x1a4));
        assert_eq!(program_counter("IN: main"), None);
    }
}
