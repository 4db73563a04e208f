//! The shipped image really hangs while it drives an output: an instruction of it is overwritten in the running machine
//! by one that jumps to itself. The reset that follows loads the image again.

use fencegate_host::fencegate::{Duration, HolderId};
use fencegate_host::wire::Role;
use fencegate_tests::{EmulatedGate, board};
use object::{Object, ObjectSymbol};
use serde_json::json;
use std::time::Instant;
use xtask::board::Board;
use xtask::{firmware, workspace};

/// `b .`
const STAY_HERE: [u8; 2] = 0xE7FE_u16.to_le_bytes();
/// `cpsid i`, `b .`: with interrupts off as well.
const STAY_HERE_DEAF: [u8; 4] = [0x72, 0xB6, STAY_HERE[0], STAY_HERE[1]];

/// What the host that runs the emulator, and looks at its pins, may be late. The board's own lateness is in the window.
const HOST_LATENESS: std::time::Duration = std::time::Duration::from_millis(250);

/// Where the firmware hangs.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the task that runs the gate.
    Task,
    /// In the handler of the alarm.
    Alarm,
    /// In the handler of the line.
    Line,
}

/// Whether that is the place, by the name that its symbol has in the board's image.
fn is_there(place: Place, symbol: &str) -> bool {
    let ours = |function: &str| {
        let mangled = function.split("::").fold(String::new(), |name, part| format!("{name}{}{part}", part.len()));
        symbol.contains("fencegate_mps2") && symbol.contains(&mangled)
    };
    match (board(), place) {
        (Board::Mps2, Place::Task) => ours("executor::on_tasks"),
        (Board::Mps2, Place::Alarm) => ours("time_driver::on_alarm"),
        (Board::Mps2, Place::Line) => ours("uart::on_receive"),
        // There is another task, of the USB port: what the gate's does in every turn.
        (Board::Rp2040, Place::Task) => symbol.contains("fencegate_node3run") && symbol.contains("6settle17h"),
        (Board::Rp2040, Place::Alarm) => symbol == "TIMER_IRQ_0",
        (Board::Rp2040, Place::Line) => symbol == "UART0_IRQ",
    }
}

/// Its address.
fn address(place: Place) -> u64 {
    let elf = std::fs::read(firmware::build(workspace::root(), board().name()).unwrap()).unwrap();
    let elf = object::File::parse(&*elf).unwrap();
    let found: Vec<_> = elf.symbols().filter(|symbol| symbol.name().is_ok_and(|name| is_there(place, name))).collect();
    let [function] = &found[..] else { panic!("{place:?}: {found:?}") };
    function.address() & !1 // a Thumb function's lowest bit is set
}

/// Drives an output, lets the firmware hang, and sees the output low by the window's end.
fn hangs(place: Place, instructions: &[u8]) {
    let address = address(place);
    let gate = EmulatedGate::new();
    let mut host = gate.speak(Role::Holder(HolderId::new("a").unwrap()));
    // Shorter than what the watchdog is loaded with when nothing is driven.
    let window = Duration::from_millis(1_500);
    let sent = Instant::now();
    assert_eq!(host.drive(0, 7, 1, window), Some(Ok(())));
    let end = sent + std::time::Duration::from(window);
    assert_eq!(gate.outputs(), 1);

    let stood_still = gate.overwrite(address, instructions);
    host.send(&[0]); // something to listen to
    let mut monitor = gate.monitor();
    let fell = monitor.falls(1, end + stood_still + HOST_LATENESS).expect("the output falls by the window's end");
    println!(
        "{place:?}: low {:?} after the command went out, of a window of {:?}; the machine stood still for {stood_still:?}",
        fell - sent,
        std::time::Duration::from(window)
    );

    let (_, status) = gate.ask("status");
    assert_eq!(status["boots"], 2, "it was reset");
    assert_eq!((&status["channels"][0]["state"], &status["channels"][0]["token"]), (&json!("safe"), &json!(7)));
    assert_eq!(status["fault"], json!(null));
    assert_eq!(monitor.outputs(), 0, "what it did before does not come back by itself");
    assert_eq!(host.drive(0, 7, 1, window), Some(Ok(())), "and it goes on");
    assert_eq!(monitor.outputs(), 1);
    assert!(!gate.gave_up(), "it hung and did not give up: {}", gate.noise());
}

#[test]
fn the_task_makes_no_progress_any_more() {
    hangs(Place::Task, &STAY_HERE);
}

#[test]
fn the_alarm_never_returns_and_nothing_below_it_runs() {
    hangs(Place::Alarm, &STAY_HERE);
}

#[test]
fn nothing_interrupts_the_hang() {
    hangs(Place::Task, &STAY_HERE_DEAF);
}

#[test]
fn the_line_is_never_listened_to_again() {
    hangs(Place::Line, &STAY_HERE);
}
