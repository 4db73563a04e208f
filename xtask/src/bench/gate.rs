//! The gate: what a frame costs it, and what the image that ships takes of the stack and of the interrupts.

use super::bare::{Counted, M0, count, program};
use super::table;
use crate::board::Board;
use crate::emulator::{Sides, Socket};
use crate::gate::{Gate, Image, LATENESS, Powering, runtime};
use crate::{setup, workspace};
use anyhow::{Context, Result, bail, ensure};
use fencegate_host::fencegate::{Deadline, Duration, Epoch, HolderId, Token};
use fencegate_host::wire::{Role, Timing, Values};
use fencegate_host::{GateClient, clock};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
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
    let (stack, trace) = runtime()?.block_on(work(&elf, folder.path()))?;
    let off = interrupts_off(&elf, &trace)?;
    let shipped = table(
        ["the image that ships, at work", "most"],
        [("bytes of stack", stack), ("instructions in a row with interrupts off", off)]
            .map(|(what, n)| [what.to_owned(), n.to_string()]),
    );
    Ok([frames, ram, shipped].join("\n"))
}

/// Has a gate do everything that a gate does; how much stack that took, and the trace of it.
async fn work(elf: &Path, folder: &Path) -> Result<(u64, std::path::PathBuf)> {
    let panel = folder.join("panel");
    let sides = Sides { panel: Some(Socket::File(panel.clone())), ..Sides::default() };
    let flash = folder.join("bench.flash");
    let powering = Powering { board: Board::Mps2, elf, flash: &flash, image: Image::Gate };
    let Gate { mut board, mut line, keys } = Gate::boot(&powering, LATENESS, &sides).await?;
    let holder = Role::Holder(HolderId::new("press-a#9f3c").context("a holder")?);
    let give_up = Deadline::after(clock::now(), Duration::from_secs(240)).context("the clock is at its end")?;
    let window = Duration::from_secs(50);
    // Traced, the emulator is slow: who repeats a question only makes it slower.
    let timing = Timing { resend: Duration::from_secs(60), ..Timing::default() };
    let stamp = |token| Token::new(token).map(|token| (Epoch(0), token)).context("zero is no token");
    let end = || Deadline::after(clock::now(), window).context("the clock is at its end");
    {
        let mut gate = GateClient::with_timing(&mut line, keys.credential(Role::Operator), timing)?;
        // A stop, which is latched, and the rearm that ends that.
        let mut panel = UnixStream::connect(&panel).await.context("the front panel")?;
        for level in ["i1", "i0"] {
            panel.write_all(level.as_bytes()).await?;
            panel.read_exact(&mut [0; 3]).await?;
            while gate.status(give_up).await?.fault.is_some() != (level == "i1") {}
        }
        gate.rearm(0, give_up).await?;
        gate.epoch(1, Epoch(1), 0, give_up).await?;
        gate.log(0, give_up).await?;
    }
    let mut gate = GateClient::with_timing(&mut line, keys.credential(holder), timing)?;
    gate.raise(0, stamp(1)?, give_up).await?;
    gate.release(0, stamp(1)?, give_up).await?;
    let granted = gate.acquire(3, Duration::from_secs(30), give_up).await?.record;
    gate.renew(3, stamp(granted.token)?, give_up).await?;
    gate.status(give_up).await?;
    let trace = folder.join("trace");
    board.ask(&format!("logfile {}", trace.display())).await?;
    board.ask("singlestep on").await?;
    board.ask("log exec,nochain").await?;
    gate.drive(0, stamp(2)?, Values::from_iter([1]), (end()?, window), give_up).await?;
    gate.drive(0, stamp(2)?, Values::from_iter([1]), (end()?, window), give_up).await?;
    board.ask("log none").await?;
    let memory = folder.join("stack");
    let said = board.ask(&format!("pmemsave {:#x} {STACK:#x} \"{}\"", RAM_END - STACK, memory.display())).await?;
    let stack = fs::read(&memory).with_context(|| format!("the emulator did not save its memory: {said}"))?;
    // The emulator's memory begins as zeros, and nothing but the stack lies so high.
    let untouched = stack.iter().take_while(|byte| **byte == 0).count();
    ensure!(untouched > 0, "the stack is deeper than what was looked at");
    board.power_cut().await?;
    Ok((STACK - u64::try_from(untouched)?, trace))
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
