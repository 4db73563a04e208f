//! What only the Raspberry Pi Pico has: outputs that drop by hardware, a flash that stops the processor, and a USB port beside
//! the UART. Times are the emulated board's own, to the nanosecond.

use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fencegate_host::fencegate::{Duration, Epoch, FenceRecord, GrantRecord, HolderId};
use fencegate_host::wire::{Operation, Reason, Request, Role};
use fencegate_node::{Boot, Entry, Store};
use fencegate_tests::{BlankBoard, EmulatedGate, Host, Monitor, Over, Said};
use object::{Object, ObjectSymbol};
use serde_json::json;
use std::cell::RefCell;
use std::convert::Infallible;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use xtask::board::Board;
use xtask::gate::runtime;
use xtask::workspace;

/// How much earlier than its end an output may drop, in ns: counts of 50 µs, and two of them for handing one over
/// (`embedded/firmware/rp2040/src/outputs.rs`).
const EARLY_NS: u64 = 170_000;

/// The longest erase of the flash (its data sheet), in ms.
const WORST_ERASE: &str = "erase 400";

fn pico() -> EmulatedGate {
    EmulatedGate::of(Board::Rp2040, tempfile::tempdir().unwrap())
}

fn speak(gate: &EmulatedGate, name: &str) -> Host {
    gate.speak(Role::Holder(HolderId::new(name).unwrap()))
}

fn speak_usb(gate: &EmulatedGate, name: &str) -> Host {
    gate.speak_usb(Role::Holder(HolderId::new(name).unwrap()))
}

/// The pairs of numbers in an answer of the monitor, a line each; the second is hexadecimal where it says so.
fn pairs(monitor: &mut Monitor, question: &str) -> Vec<(u64, u64)> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    let answer = monitor.ask(question);
    let lines = answer.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(first, second)| (number(first).unwrap(), number(second).unwrap())).collect()
}

/// When output 1 fell for the last time, in ns since the power came.
fn fell(monitor: &mut Monitor) -> u64 {
    let edges = pairs(monitor, "edges");
    let falls = edges.windows(2).filter(|pair| pair[0].1 & 2 != 0 && pair[1].1 & 2 == 0);
    falls.map(|pair| pair[1].0).next_back().unwrap_or_else(|| panic!("it never fell: {edges:?}"))
}

/// How much before `end` (µs on the gate's clock) the output fell.
fn early(fell: u64, end: u64) -> u64 {
    let end = end * 1_000;
    assert!(fell <= end, "{} ns after its end", fell - end);
    end - fell
}

/// Waits for the end of output 1's window, and for its fall; how much earlier that was.
fn ends(monitor: &mut Monitor, end: u64) -> u64 {
    while pairs(monitor, "time")[0].0 < end * 1_000 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    early(fell(monitor), end)
}

/// The flash of a gate, as a host has it, and how often it was erased.
#[derive(Clone)]
struct Cells(Rc<RefCell<(Vec<u8>, usize)>>);

impl ErrorType for Cells {
    type Error = Infallible;
}

impl ReadNorFlash for Cells {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.copy_from_slice(&self.0.borrow().0[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.borrow().0.len()
    }
}

impl NorFlash for Cells {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4_096;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        let (cells, erases) = &mut *self.0.borrow_mut();
        cells[from as usize..to as usize].fill(0xff);
        *erases += 1;
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        let cells = &mut self.0.borrow_mut().0[offset as usize..];
        cells.iter_mut().zip(bytes).for_each(|(cell, byte)| *cell &= byte);
        Ok(())
    }
}

/// Raises channel 0 for `b` in the flash of a gate without power, until its page is full but for a few records, all pages
/// having been used before; the token that it has come to from `token` on.
fn age(file: &Path, mut token: u64) -> u64 {
    let cells = Cells(Rc::new(RefCell::new((std::fs::read(file).unwrap(), 0))));
    let mut store = Store::new(cells.clone());
    let holder = HolderId::new("b").unwrap();
    runtime().unwrap().block_on(async {
        assert!(matches!(store.boot().await, Boot::Gate(..)));
        let (mut erased_at, mut before) = (Vec::new(), 0);
        while erased_at.len() < 2 || token < 2 * erased_at[1] - erased_at[0] {
            token += 1;
            let mark = FenceRecord { epoch: Epoch(0), token, holder: Some(holder), released: false };
            let mark = GrantRecord { mark, ttl: Duration::ZERO };
            let _ = store.put(&Entry::Mark { channel: 0, mark }).await.unwrap();
            let erases = cells.0.borrow().1;
            if erases > std::mem::replace(&mut before, erases) {
                erased_at.push(token);
            }
        }
    });
    std::fs::write(file, &cells.0.borrow().0).unwrap();
    token
}

/// One holder drives, again and again, with less of its window left than two worst erases take; another raises another
/// channel, again and again, until such a raise has to erase. The processor is then deaf for 800 ms, and the window ends in
/// the middle of it.
#[test]
fn an_erase_of_400_ms_does_not_move_the_end_of_another_channels_window() {
    let mut folder = pico().power_cut();
    let mut token = 0;
    // On a host that has other things to do, drive and raise may be too far apart: then it is tried again.
    for boots in 2..7 {
        token = age(&folder.path().join("gate.flash"), token);
        let gate = EmulatedGate::of(Board::Rp2040, folder);
        // Whose log is full all round: a boot reads all of it.
        println!("boot {boots} was ready at {} µs on its clock", gate.ask("log").1["events"][0]["at_us"]);
        if ends_in_an_erase(&gate, &mut token) {
            assert_eq!(gate.channel(1)["state"], "safe");
            assert_eq!((&gate.ask("status").1["boots"], gate.gave_up()), (&json!(boots), false), "no reset");
            return;
        }
        folder = gate.power_cut();
    }
    panic!("no window ended in an erase");
}

/// Drives and raises until a raise erases; whether the window ended meanwhile. If so, the output fell when it ended. Who raises
/// is at the USB port, so that its controller has something to say while nobody hears it.
fn ends_in_an_erase(gate: &EmulatedGate, token: &mut u64) -> bool {
    let mut monitor = gate.monitor();
    monitor.ask(WORST_ERASE);
    let (mut a, mut b) = (speak(gate, "a"), speak_usb(gate, "b"));
    assert_eq!(a.raise(1, 7), Some(Ok(())));
    for _ in 0..100 {
        // A host that was held up for as long as its window has nothing left of it.
        let driven = a.drive(1, 7, 1, Duration::from_millis(700));
        if driven == Some(Err(Reason::Expired)) {
            continue;
        }
        assert_eq!(driven, Some(Ok(())));
        let end = a.end.unwrap();
        *token += 1;
        assert_eq!(b.raise(0, *token), Some(Ok(())), "no store waits for a window that ends by hardware");
        let erases = pairs(&mut monitor, "erases");
        if erases.is_empty() {
            continue;
        }
        let within = |(from, to): &(u64, u64)| (from + 1_000_000..to - 1_000_000).contains(&(end * 1_000));
        let Some((from, to)) = erases.into_iter().find(within) else { return false };
        let early = early(fell(&mut monitor), end);
        println!(
            "raise {token}: deaf from {from} to {to} ns; the window ended at {end} µs, the output {early} ns before"
        );
        assert!(early <= EARLY_NS);
        return true;
    }
    false
}

/// Junk comes over the UART as fast as its line carries it, and goes on while the flash erases: what the UART cannot hold is
/// lost, and nothing else. The host beside it is on USB.
#[test]
fn a_flood_at_line_speed_overruns_the_uart_and_harms_nothing_else() {
    let folder = pico().power_cut();
    let mut token = age(&folder.path().join("gate.flash"), 0);
    let gate = EmulatedGate::of(Board::Rp2040, folder);
    let mut monitor = gate.monitor();
    monitor.ask(WORST_ERASE);
    let mut host = speak_usb(&gate, "b");
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let _told = Over(&over);
        let mut line = TcpStream::connect(gate.address()).unwrap();
        line.set_write_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
        let over = &over;
        threads.spawn(move || {
            let junk: Vec<u8> = (0..=255).cycle().take(4_096).collect();
            while !over.load(Ordering::Relaxed) {
                let _ = line.write(&junk); // it is slowed down to the line's speed
            }
        });
        assert_eq!(host.raise(1, 7), Some(Ok(())));
        while pairs(&mut monitor, "erases").is_empty() {
            token += 1;
            assert_eq!(host.raise(0, token), Some(Ok(())));
        }
        let lost = pairs(&mut monitor, "overruns")[0].0;
        println!("{lost} bytes lost");
        // Of 400 ms the emulator's line carries what it was given before they began.
        assert!(lost > 0, "the UART holds 32 bytes");
        let mut short = || host.drive(1, 7, 1, Duration::from_secs(1));
        let driven = (0..20).map(|_| short()).find(|driven| *driven != Some(Err(Reason::Expired)));
        assert_eq!(driven, Some(Some(Ok(()))));
        let early = ends(&mut monitor, host.end.unwrap());
        assert!(early <= EARLY_NS, "{early} ns early");
    });
    assert_eq!(speak(&gate, "a").raise(2, 7), Some(Ok(())), "the line is as it was");
    let status = gate.ask("status").1;
    assert_eq!((&status["boots"], gate.gave_up()), (&json!(2), false), "no reset");
    assert!(status["counters"]["noise"].as_u64().unwrap() > 0);
}

/// The same end without any erase: by the same hardware, just as early.
#[test]
fn an_output_falls_just_before_its_end_and_never_after_it() {
    let gate = pico();
    let mut monitor = gate.monitor();
    let mut a = speak(&gate, "a");
    assert_eq!(a.raise(1, 7), Some(Ok(())));
    for window in [200_u32, 333, 1_000] {
        // Twice: the second takes the place of the first while that is running.
        assert_eq!(a.drive(1, 7, 1, Duration::from_secs(30)), Some(Ok(())));
        // On a host that has other things to do, a short one may be over before it begins.
        let mut short = || a.drive(1, 7, 1, Duration::from_millis(window));
        let driven = (0..20).map(|_| short()).find(|driven| *driven != Some(Err(Reason::Expired)));
        assert_eq!(driven, Some(Some(Ok(()))));
        let end = a.end.unwrap();
        std::thread::sleep(std::time::Duration::from_millis(u64::from(window) + 200));
        let early = early(fell(&mut monitor), end);
        println!("a window of {window} ms: {early} ns early");
        assert!(early <= EARLY_NS, "{early} ns early");
    }
}

/// The LED, as it is seen from outside: a flash every two seconds while all is safe, on for as long as a window runs, and fast
/// once the emergency stop was pressed in one.
#[test]
fn the_led_shows_safe_driven_and_fault() {
    let gate = pico();
    let mut monitor = gate.monitor();
    let mut lit = 0;
    // Whether it is lit now, and each change until the board's clock has gone on for so long.
    let mut shown = |ms: u64| {
        let from = pairs(&mut monitor, "time")[0].0;
        while pairs(&mut monitor, "time")[0].0 < from + ms * 1_000_000 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let edges = pairs(&mut monitor, "lamp");
        let (before, since): (Vec<_>, Vec<_>) = edges.into_iter().partition(|(at, _)| *at < from);
        let now = before.last().map_or(lit, |(_, lit)| *lit);
        lit = since.last().map_or(now, |(_, lit)| *lit);
        (now, since)
    };
    // How long it is lit at a time and how often, in ms, from its changes.
    let rhythm = |edges: &[(u64, u64)]| -> Vec<(u64, u64)> {
        let ms = |from: u64, to: u64| (to - from + 500_000) / 1_000_000;
        let lit: Vec<_> = edges.iter().skip_while(|(_, lit)| *lit == 0).map(|(at, _)| *at).collect();
        lit.windows(3).step_by(2).map(|edges| (ms(edges[0], edges[1]), ms(edges[0], edges[2]))).collect()
    };
    // It is set when the gate's loop comes by, every 50 ms where nothing else happens: so late may each change be.
    let near = |rhythm: &[(u64, u64)], lit: u64, period: u64| {
        !rhythm.is_empty() && rhythm.iter().all(|each| each.0.abs_diff(lit) < 60 && each.1.abs_diff(period) < 60)
    };
    let (_, safe) = shown(6_500);
    assert!(near(&rhythm(&safe), 150, 2_000), "{safe:?}");

    let mut a = speak(&gate, "a");
    assert_eq!(a.raise(1, 7), Some(Ok(())));
    assert_eq!(a.drive(1, 7, 1, Duration::from_secs(30)), Some(Ok(())));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (driven, changed) = shown(3_000);
    assert_eq!((driven, changed), (1, vec![]), "on, and nothing else");

    gate.monitor().ask("glitch 100");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(gate.channel(1)["state"], "fault");
    let (_, fault) = shown(3_000);
    assert!(near(&rhythm(&fault), 200, 400), "{fault:?}");
}

/// The firmware with the fast line: a drive and its answer are over before 115,200 baud would have had them through.
#[test]
fn the_fast_line_is_fast() {
    let gate = EmulatedGate::fast();
    let mut monitor = gate.monitor();
    gate.done("raise --channel 1 --token 7 --holder a");
    monitor.ask("trips");
    gate.done("drive --channel 1 --token 7 --holder a --value 1 --window 5s");
    assert_eq!(monitor.outputs(), 2);
    let answer = monitor.ask("trips");
    let mut trips = answer.lines().filter_map(|line| line.split_once(": ")).map(|(from, rest)| {
        let numbers: Vec<u64> = [from].into_iter().chain(rest.split(' ')).map(|n| n.trim().parse().unwrap()).collect();
        let [from, to, _, _, there, back] = numbers[..] else { panic!("{answer:?}") };
        (to - from, (there + back) * 10 * 1_000_000_000 / 115_200)
    });
    let (took, bytes) = trips.next_back().unwrap();
    assert!(took < bytes, "{took} ns, and {bytes} ns at 115,200 baud");
}

/// From the first instruction on, and after the RUN pin was pulled, each output is driven or pulled down; and the inputs are
/// pulled: UART0's, the contacts behind the outputs and the stop up, presence down. Nothing floats on a board to which only the
/// USB cable goes, nor where a wire has broken.
#[test]
fn nothing_floats() {
    let gate = pico();
    let mut monitor = gate.monitor();
    let nothing_floats = |monitor: &mut Monitor| {
        assert_eq!(pairs(monitor, "floats"), [(0, 0)]);
        for pin in [1, 8, 9, 10, 11, 12, 13, 14, 15] {
            let pad = pairs(monitor, &format!("pad {pin}"))[0].1;
            let pulled = if pin == 15 { 0x44 } else { 0x48 };
            assert_eq!(pad & 0x4c, pulled, "GP{pin}: input, pulled one way: {pad:#x}");
        }
        let pad = pairs(monitor, "pad 1")[0].1;
        assert_eq!(pad & 2, 2, "with a Schmitt trigger: {pad:#x}");
    };
    nothing_floats(&mut monitor);
    monitor.ask("system_reset");
    assert_eq!(gate.ask("status").1["boots"], 2);
    nothing_floats(&mut monitor);
}

/// The addresses of what an image calls so.
fn symbols(is: impl Fn(&str) -> bool) -> Vec<u64> {
    let elf = std::fs::read(xtask::firmware::build(workspace::root(), Board::Rp2040.name()).unwrap()).unwrap();
    let elf = object::File::parse(&*elf).unwrap();
    elf.symbols().filter(|symbol| symbol.name().is_ok_and(&is)).map(|symbol| symbol.address()).collect()
}

/// A fault while a line of the log is being written: the log, entered twice, panics, and the panic's own line would do so
/// again, without an end. There is one reset, at once, and no last word.
#[test]
fn a_fault_within_the_log_ends_in_a_reset() {
    let (encoder, [fault], [handler]) = (
        symbols(|name| name.contains("RTT_ENCODER")),
        &symbols(|name| name == "HardFault")[..],
        &symbols(|name| name == "UART0_IRQ")[..],
    ) else {
        panic!("the image has one of each");
    };
    let gate = pico();
    let mut host = speak(&gate, "a");
    assert_eq!(host.raise(1, 7), Some(Ok(())));
    // The next interrupt of the UART goes to the fault's handler: `ldr r0, =HardFault; bx r0`.
    let at = handler & !1;
    let mut code = if at % 4 == 0 { vec![] } else { vec![0xc0, 0x46] }; // nop
    code.extend([0x00, 0x48, 0x00, 0x47]);
    code.extend(u32::try_from(fault | 1).unwrap().to_le_bytes());
    gate.overwrite(at, &code);
    assert!(!encoder.is_empty());
    for flag in encoder {
        gate.overwrite(flag, &[1]); // a line is being written
    }
    host.send(&[0]);
    assert_eq!(gate.ask("status").1["boots"], 2);
    assert!(gate.gave_up(), "by its own reset, and not the watchdog's: {}", gate.noise());
}

/// A contact that opens for a tenth of a millisecond while the processor sleeps: the output is low at once, and stays so.
#[test]
fn an_emergency_stop_that_is_over_before_anybody_looks_counts() {
    let gate = pico();
    let mut monitor = gate.monitor();
    let mut a = speak(&gate, "a");
    assert_eq!(a.raise(1, 7), Some(Ok(())));
    assert_eq!(a.drive(1, 7, 1, Duration::from_secs(30)), Some(Ok(())));
    monitor.ask("edges");
    let opened = pairs(&mut monitor, "glitch 100")[0].0;
    let fell = fell_after(&mut monitor, opened);
    println!("the output fell {} ns after the contact opened", fell - opened);
    assert!(fell - opened <= 60_000, "a turn of the state machine, and not a look of the processor");
    // The gate learns of it although the contact is closed again.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(gate.channel(1)["state"], "fault");
    assert_eq!(a.drive(1, 7, 1, Duration::from_secs(30)), Some(Err(Reason::Fault)), "until it is rearmed");
    gate.done("rearm --channel 1");
    assert_eq!(a.drive(1, 7, 1, Duration::from_secs(30)), Some(Ok(())));
}

/// When all outputs were low for the first time after `opened`.
fn fell_after(monitor: &mut Monitor, opened: u64) -> u64 {
    let edges = pairs(monitor, "edges");
    edges.iter().find(|(at, pins)| *at >= opened && *pins == 0).unwrap_or_else(|| panic!("{edges:?}")).0
}

/// A board is made a gate, driven and asked over USB alone, by the command that a person types. Each call of it puts the cable
/// in and pulls it again.
#[test]
fn a_new_board_is_provisioned_and_driven_over_usb() {
    let board = BlankBoard::on_usb();
    let say = |words: &str| {
        let said = Said::by(board.host("press.key", words).arg("--json"));
        assert_eq!(said.status, 0, "{words}: {said:?}");
        said.json()
    };
    let file = board.folder().join("press.toml");
    let example = Said::by(&mut board.host("press.key", "provision --example"));
    std::fs::write(&file, example.out).unwrap();
    assert_eq!(say(&format!("provision --config {} --timeout 20s", file.display()))["done"], true);
    let driven = "drive --channel 0 --token 5 --holder a --value 1 --window 3s";
    assert_eq!(say(driven)["done"], true);
    let status = say("status");
    assert_eq!((&status["channels"][0]["token"], &status["channels"][0]["holder"]), (&json!(5), &json!("a")));
}

/// Two hosts at once, one on each line: neither garbles the other, and each hears the answers to its own requests alone; also
/// while one of them has asked for more than its line can carry.
#[test]
fn each_line_hears_the_answers_to_its_own_requests() {
    const ROUNDS: usize = 40;
    const AT_ONCE: usize = 60;
    let gate = pico();
    let hosts = [(speak(&gate, "a"), 0), (speak_usb(&gate, "b"), 1)];
    let strange = hosts.map(|(mut host, channel)| {
        std::thread::spawn(move || {
            let rounds = |host: &mut Host| {
                (0..ROUNDS).for_each(|_| assert_eq!(host.raise(channel, 7), Some(Ok(()))));
            };
            rounds(&mut host);
            let ask = host.seal(Operation::new(Request::Channel { channel }));
            for _ in 0..AT_ONCE {
                host.send(&ask);
            }
            rounds(&mut host);
            host.strange
        })
    });
    assert_eq!(strange.map(|host| host.join().unwrap()), [0, 0]);
}

/// Whoever opens the USB port, asks and asks and never reads holds up neither the other line nor a window's end; nor does one
/// who never stops writing. Once he reads, he is heard again.
#[test]
fn a_host_on_usb_that_never_reads_starves_nothing() {
    let gate = pico();
    let mut monitor = gate.monitor();
    let (mut a, mut deaf) = (speak(&gate, "a"), speak_usb(&gate, "b"));
    assert_eq!((a.raise(1, 7), deaf.raise(2, 7)), (Some(Ok(())), Some(Ok(()))));
    monitor.ask("usb deaf");
    let ask = deaf.seal(Operation::new(Request::Channel { channel: 2 }));
    for _ in 0..40 {
        deaf.send(&ask);
    }
    // And junk: of frames, and without an end.
    deaf.send(&[7, 0].repeat(500));
    deaf.send(&[7; 3_000]);
    assert_eq!(a.drive(1, 7, 1, Duration::from_secs(30)), Some(Ok(())));
    // The emulator is slower than a board while it has so much to do: a short window may be over before it begins.
    let mut short = || a.drive(1, 7, 1, Duration::from_millis(700));
    let driven = (0..20).map(|_| short()).find(|driven| *driven != Some(Err(Reason::Expired)));
    assert_eq!(driven, Some(Some(Ok(()))));
    let early = ends(&mut monitor, a.end.unwrap());
    assert!(early <= EARLY_NS, "{early} ns early");
    monitor.ask("usb listens");
    assert_eq!(deaf.raise(2, 8), Some(Ok(())));
    drop(deaf);
    // Another computer; and no reset in all of this.
    assert_eq!(speak_usb(&gate, "b").raise(2, 9), Some(Ok(())));
    assert_eq!((&gate.ask("status").1["boots"], gate.gave_up()), (&json!(1), false));
}

/// The cable is pulled in the middle of a window: the output stays on until its end, and the other line is as it was.
#[test]
fn a_pulled_usb_cable_changes_nothing_but_that_line() {
    let gate = pico();
    let mut monitor = gate.monitor();
    let mut b = speak_usb(&gate, "b");
    assert_eq!(b.raise(1, 7), Some(Ok(())));
    assert_eq!(b.drive(1, 7, 1, Duration::from_secs(3)), Some(Ok(())));
    let end = b.end.unwrap();
    drop(b);
    let mut a = speak(&gate, "a");
    assert_eq!(a.raise(2, 7), Some(Ok(())));
    let early = ends(&mut monitor, end);
    assert!(early <= EARLY_NS, "{early} ns early");
}
