//! The emulated board is killed in the middle of raising, again and again.

use fencegate_host::fencegate::{Duration, HolderId};
use fencegate_host::wire::{Reason, Role};
use fencegate_tests::{EmulatedGate, Host, Random, board, is_soak, seed};
use serde_json::json;
use std::thread;
use xtask::board::Board;

/// How far a holder has got.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The highest token that the gate was asked to take.
    asked: u64,
    /// The highest that it has acknowledged.
    acknowledged: u64,
}

/// Raises as fast as the gate can, and drives now and then, until nobody answers any more.
fn raise(mut host: Host, mut progress: Progress) -> (Host, Progress) {
    for token in progress.asked + 1.. {
        progress.asked = token;
        let outcome = match token % 4 {
            0 => host.drive(0, token, 1, Duration::from_secs(60)),
            _ => host.raise(0, token),
        };
        match outcome {
            Some(Ok(())) => progress.acknowledged = token,
            Some(Err(reason)) => panic!("token {token} is refused: {reason:?}"),
            None => break,
        }
    }
    (host, progress)
}

#[test]
fn what_was_acknowledged_outlives_every_kill_and_nothing_stale_is_done_after_any() {
    let mut random = Random(seed("kill"));
    let a = Role::Holder(HolderId::new("a").unwrap());
    let mut gate = EmulatedGate::new();
    let mut progress = Progress { asked: 0, acknowledged: 0 };
    // A raise takes a host far longer where the line has its real speed and the emulator is slower than the board.
    let (kills, slower, least) = match board() {
        Board::Mps2 => (20, 1, 3),
        Board::Rp2040 => (5, 5, 2),
    };
    let kills = if is_soak() { 200 } else { kills };
    // So that there is something stale from the first kill on.
    for token in [1, 2] {
        assert_eq!(gate.speak(a).raise(0, token), Some(Ok(())));
        progress = Progress { asked: token, acknowledged: token };
    }
    let mut earlier: Vec<Vec<u8>> = Vec::new();
    let mut in_between = 0;
    for kill in 1..=kills {
        let host = gate.speak(a);
        let raising = thread::spawn(move || raise(host, progress));
        thread::sleep(std::time::Duration::from_millis((20 + random.below(280)) * slower));
        let folder = gate.power_cut();
        let (host, after) = raising.join().unwrap();
        progress = after;
        earlier.extend(host.said.into_iter().rev().take(20));

        gate = EmulatedGate::on(folder);
        assert_eq!(gate.outputs(), 0, "safe at boot");
        let (_, status) = gate.ask("status");
        let channel = &status["channels"][0];
        let fence = channel["token"].as_u64().unwrap();
        assert!((progress.acknowledged..=progress.asked).contains(&fence), "kill {kill}: {fence} of {progress:?}");
        assert_eq!((&status["boots"], &status["fault"]), (&json!(kill + 1), &json!(null)), "kill {kill}");
        assert_eq!(channel["state"], "safe");
        in_between += u32::from(fence > progress.acknowledged);

        let mut host = gate.speak(a);
        for _ in 0..3 {
            let stale = 1 + random.below(fence - 1);
            assert_eq!(host.raise(0, stale), Some(Err(Reason::Stale)), "kill {kill}: {stale} after {fence}");
        }
        // What was said to earlier boots, the command that was cut off among it.
        for frame in &earlier[earlier.len().saturating_sub(100)..] {
            host.send(frame);
        }
        assert_eq!(host.raise(0, fence - 1), Some(Err(Reason::Stale)), "and all before it has been heard");
        assert_eq!(gate.outputs(), 0, "kill {kill}: a frame of an earlier boot moves nothing");
        assert_eq!(gate.channel(0)["token"], fence, "kill {kill}");
        progress.asked = fence;
    }
    println!(
        "counted: {kills} kills over {} tokens; {in_between} times the last one was stored and not yet acknowledged",
        progress.asked
    );
    assert!(progress.asked > least * kills, "nothing much happened: {progress:?}");
    assert!(!gate.gave_up(), "a firmware's last words: {}", gate.noise());
}
