//! `cargo xtask demo`: the story of a command that comes too late, with real frames, real processes and real freezes.
//!
//! The lock service is played by this program: it hands out token 33, waits until that lease is over, and hands out
//! 34. Everything else is what it is: two holders in processes of their own, the firmware in its emulator, and the
//! output pin as the emulated hardware shows it, not as the firmware says.

mod holder;
mod stage;
mod timeline;

use crate::board::Board;
use crate::gate::{Image, Powering, runtime};
use crate::{setup, workspace};
use anyhow::{Result, ensure};
use fencegate_host::fencegate::{Duration, Plan};
use stage::{Holder, Pin, Powered};
use std::path::Path;
use std::time::{Duration as Span, Instant};
use timeline::{Actor, Ledger, Timeline};

pub use holder::Arguments as HolderArguments;

/// T: how long a lease of the story lasts.
const TTL_MS: u32 = 3_000;
/// How soon after its command the output is seen to move.
const SOON: Span = Span::from_secs(1);
const TTL: Span = Span::from_millis(TTL_MS as u64);

/// Plays the story, with the check or, in the demonstration image, without. Fails if anything deviates.
pub fn run(root: &Path, board: Board, fencing: bool) -> Result<()> {
    setup::ensure(setup::FIRMWARE)?;
    setup::ensure(board.emulator())?;
    let image = if fencing { Image::Gate } else { Image::Demonstration };
    let elf = image.build(root, board)?;
    let folder = tempfile::Builder::new().prefix("demo-").tempdir_in(workspace::target_dir(root)?)?;
    let deviations =
        runtime()?.block_on(play(&Powering { board, elf: &elf, flash: &folder.path().join("demo.flash"), image }))?;
    ensure!(deviations == 0, "the story deviated {deviations} times: see above");
    Ok(())
}

/// Plays it; how often it deviated.
async fn play(powering: &Powering<'_>) -> Result<u32> {
    let Powering { flash, image, .. } = *powering;
    let fenced = image == Image::Gate;
    let mut t = Timeline::new(fenced);
    let mut ledger = Ledger::default();
    let window = Plan::for_ttl(Duration::from_millis(TTL_MS)).drift(holder::DRIFT).plan()?.window;
    let window = Span::from(window);

    let mut gate = Powered::boot(powering).await?;
    t.tell(Actor::Gate, gate.pin(), "boots, provisioned and safe: nobody has spoken yet");
    t.check(!gate.pin().high, "the output is safe at boot");
    let mut a = Holder::start("a", &gate, flash, image)?;
    let mut b = Holder::start("b", &gate, flash, image)?;

    // A works.
    let a_leased = a.lease(33, TTL_MS).await?;
    t.tell(Actor::A, gate.pin(), "acquires the lease: token 33, for 3 s");
    let raised = a.ask("raise").await?;
    t.tell(Actor::A, gate.pin(), &format!("raises the fence to 33: {raised}"));
    t.check(raised == "done", "A raises the fence");
    let driven = a.drive(1).await?;
    ledger.write(33, "a", 1, &driven);
    let pin = gate.pin_becomes(true, SOON).await;
    t.tell(Actor::A, pin, &format!("opens the valve: {driven}"));
    t.check(driven == "done" && pin.high, "A's command moves the output");

    // A freezes between its check and its command.
    let checked = a.ask("drive 0").await?;
    let left = checked.strip_prefix("checked ").and_then(|left| left.parse::<u64>().ok()).unwrap_or(0);
    t.tell(Actor::A, gate.pin(), &format!("checks its lease: {} ms left, time enough to close it again", left / 1_000));
    t.check(left > 0, "A's lease is good when it checks");
    a.freeze().await?;
    a.tell("go").await?;
    t.tell(Actor::A, gate.pin(), "freezes (SIGSTOP), its command about to go");
    let pin = gate.pin_becomes(false, TTL).await;
    t.tell(Actor::Gate, pin, "A is silent: lets go before A's window ends");
    t.safe_in_time(pin, a_leased, window);

    // Its lease runs out, and B gets the next one.
    tokio::time::sleep_until((a_leased + TTL + Span::from_millis(10)).into()).await;
    t.tell(Actor::Service, gate.pin(), "A's lease is over; it may go to somebody else");
    b_works(
        &mut t,
        &mut ledger,
        &mut gate,
        &mut b,
        ["acquires the lease: token 34, for 3 s", "raises the fence to 34, as its first act"],
    )
    .await?;

    // A wakes up and finishes what it was doing.
    a.wake().await?;
    let late = a.hear().await?;
    ledger.write(33, "a", 0, &late);
    let pin = gate.pin_becomes(false, Span::from_millis(300)).await;
    t.tell(Actor::A, pin, &format!("wakes up (SIGCONT) and sends its command, token 33: {late}"));
    if fenced {
        t.check(late == "refused stale 0 34 b", "the late command is refused as stale, and 34 of b is named");
        t.check(pin.high, "B's work stands");
    } else {
        t.check(late == "done" && !pin.high, "without the check the late command lands on B's work");
    }

    // A power cut in the middle of things.
    b.tell("drive 1").await?;
    b.hear().await?;
    b.tell("go").await?;
    gate.power_cut().await?;
    let unplugged = Pin { high: false, since: Instant::now() };
    let cut = b.hear().await?;
    t.tell(Actor::Gate, unplugged, "POWER CUT, in the middle of B's next command");
    t.check(cut != "refused stale 0 34 b", "B was not refused");
    (a, b) = {
        drop((a, b));
        gate = Powered::boot(powering).await?;
        (Holder::start("a", &gate, flash, image)?, Holder::start("b", &gate, flash, image)?)
    };
    t.tell(Actor::Gate, gate.pin(), "boots from the same flash, safe");
    t.check(!gate.pin().high, "the output is safe after the power cut");

    // A tries again.
    a.lease(33, TTL_MS).await?; // it believes that it still has it
    let again = a.drive(1).await?;
    ledger.write(33, "a", 1, &again);
    let pin = gate.pin_becomes(!fenced, Span::from_millis(300)).await;
    t.tell(Actor::A, pin, &format!("tries token 33 again: {again}"));
    if fenced {
        t.check(again == "refused stale 0 34 b" && !pin.high, "the fence has outlived the power cut");
    } else {
        t.check(again == "done" && pin.high, "without the check nothing was remembered");
    }

    // B goes on, and falls silent.
    let b_leased = b_works(
        &mut t,
        &mut ledger,
        &mut gate,
        &mut b,
        ["renews its lease: token 34, for 3 s", "raises the fence to 34 once more"],
    )
    .await?;
    t.tell(Actor::B, gate.pin(), "falls silent");
    let pin = gate.pin_becomes(false, TTL).await;
    t.tell(Actor::Gate, pin, "lets go before B's window ends");
    t.safe_in_time(pin, b_leased, window);
    gate.power_cut().await?;

    ledger.print();
    t.check(ledger.corrupted() != fenced, if fenced { "no stale write landed" } else { "the run was corrupted" });
    Ok(t.end(ledger.corrupted()))
}

/// B's turn: the lease, the raise as its first act, the drive. When it asked for the lease.
async fn b_works(
    t: &mut Timeline,
    ledger: &mut Ledger,
    gate: &mut Powered,
    b: &mut Holder,
    [acquires, raises]: [&str; 2],
) -> Result<Instant> {
    let leased = b.lease(34, TTL_MS).await?;
    t.tell(Actor::B, gate.pin(), acquires);
    let answer = b.ask("raise").await?;
    t.tell(Actor::B, gate.pin(), &format!("{raises}: {answer}"));
    t.check(answer == "done", "B raises the fence");
    let driven = b.drive(1).await?;
    ledger.write(34, "b", 1, &driven);
    let pin = gate.pin_becomes(true, SOON).await;
    t.tell(Actor::B, pin, &format!("opens the valve: {driven}"));
    t.check(driven == "done" && pin.high, "B's command moves the output");
    Ok(leased)
}
