//! What a hostile or merely broken host can do to the emulated board while another drives an output: nothing.

use cobs::{decode_vec, encode_vec};
use crc::{CRC_32_ISO_HDLC, Crc};
use fencegate_host::fencegate::{Deadline, Duration, Epoch, HolderId, Token};
use fencegate_host::wire::{
    Client, MAX_FRAME, MAX_PAYLOAD, Operation, Output, Provisioning, Reason, Request, Role, Timing,
};
use fencegate_host::{GateClient, clock, emulator};
use fencegate_tests::{EmulatedGate, Host, Over, Random, board, drive, is_soak, seed};
use serde_json::json;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration as Span, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use xtask::board::Board;
use xtask::emulator::Sides;
use xtask::gate::{Gate, Image, LATENESS, Powering, runtime};
use xtask::workspace;

/// The output that is driven, as a bit.
const DRIVEN: u32 = 1;
/// What the host that runs the emulator, and looks at its pins, may be late. The board's own lateness is in the window.
const HOST_LATENESS: Span = Span::from_millis(250);

const CHECK: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

fn holder(name: &str) -> Role {
    Role::Holder(HolderId::new(name).unwrap())
}

/// `payload` as a frame with the right check value.
fn framed(payload: &[u8]) -> Vec<u8> {
    let check = CHECK.checksum(payload).to_le_bytes();
    let stuffed = encode_vec(&[payload, &check].concat());
    [&[0], &stuffed[..], &[0]].concat()
}

/// What is in a frame, without the check value.
fn payload(frame: &[u8]) -> Vec<u8> {
    let mut payload = decode_vec(frame.split(|byte| *byte == 0).find(|part| !part.is_empty()).unwrap()).unwrap();
    payload.truncate(payload.len() - 4);
    payload
}

/// A frame of every kind, each of which the gate has taken or refused already: what one on the line could have recorded.
fn recorded(gate: &EmulatedGate) -> Vec<Vec<u8>> {
    let mut b = gate.speak(holder("b"));
    let window = Duration::from_secs(2);
    assert_eq!(b.raise(1, 5), Some(Ok(())));
    for value in [1, 0, 1] {
        assert_eq!(b.drive(1, 5, value, window), Some(Ok(())));
    }
    assert_eq!(b.drive(1, 4, 1, window), Some(Err(Reason::Stale)));
    for request in [Request::Status, Request::Channel { channel: 0 }, Request::Counters, Request::Log { from: 0 }] {
        b.call(Operation::new(request)).unwrap();
    }
    b.call(Operation::new(Request::Acquire { channel: 3, ttl: window })).unwrap();
    b.call(Operation::new(Request::Renew { channel: 3, epoch: Epoch(0), token: Token::new(1).unwrap() })).unwrap();
    assert_eq!(b.raise(4, 3), Some(Ok(())));
    let (epoch, token) = (Epoch(0), Token::new(3).unwrap());
    b.call(Operation::new(Request::Release { channel: 4, epoch, token })).unwrap();
    let mut operator = gate.speak(Role::Operator);
    let Provisioning { gate: config, channels, outputs } = emulator().unwrap();
    for request in [
        Request::Epoch { channel: 2, epoch: Epoch(1), floor: 9 },
        Request::Rearm { channel: 1 },
        // With nobody beside the board.
        Request::SetOutput { output: 0, config: outputs[0].clone() },
        Request::SetChannel { channel: 0, config: channels[0].clone() },
        Request::Provision { config, channels: 1, outputs: 1 },
    ] {
        operator.call(Operation::new(request)).unwrap();
    }
    gate.monitor()
        .falls(u32::MAX, Instant::now() + Span::from(window) + HOST_LATENESS)
        .expect("the last window is over");
    [b.said, operator.said].concat()
}

/// Something that is nearly a frame, or a frame that nobody has sealed.
fn hostile(random: &mut Random, recorded: &[Vec<u8>]) -> Vec<u8> {
    let any = |random: &mut Random| recorded[random.index(recorded.len())].clone();
    let mut frame = any(random);
    match random.below(9) {
        0 => {
            for _ in 0..=random.below(3) {
                let at = random.index(frame.len());
                frame[at] ^= 1 << random.below(8);
            }
            frame
        }
        1 => frame[..random.index(frame.len())].to_vec(),
        2 => frame[random.index(frame.len())..].to_vec(),
        3 => {
            let other = any(random);
            [&frame[..random.index(frame.len())], &other[random.index(other.len())..]].concat()
        }
        4 => frame,
        5 => {
            let at = random.index(frame.len());
            let count = random.index(2 * MAX_FRAME);
            frame.splice(at..at, random.bytes(count));
            frame
        }
        6 => {
            // One byte of it changed, and the check value with it.
            let mut payload = payload(&frame);
            let at = random.index(payload.len());
            payload[at] = random.bytes(1)[0];
            framed(&payload)
        }
        7 => {
            // Its header, and anything behind it.
            let mut payload = payload(&frame);
            payload.truncate(35);
            let count = random.index(MAX_PAYLOAD - 35);
            payload.extend(random.bytes(count));
            framed(&payload)
        }
        _ => {
            let count = random.index(MAX_PAYLOAD);
            framed(&random.bytes(count))
        }
    }
}

/// Drives channel 0 again and again, for at least so long as [`HELD`], and at last for no longer than [`LAST`]: when that
/// window ends at the latest.
fn hold(host: &mut Host) -> Instant {
    let until = Instant::now() + HELD;
    while Instant::now() < until {
        assert_eq!(host.drive(0, 7, 1, WINDOW), Some(Ok(())), "the holder is served");
        sleep(Span::from_millis(200));
    }
    for _ in 0..10 {
        let begun = Instant::now();
        match host.drive(0, 7, 1, LAST) {
            Some(Ok(())) => return begun + Span::from(LAST),
            Some(Err(Reason::Expired)) => {} // it had to wait for its turn
            other => panic!("the holder is served: {other:?}"),
        }
    }
    panic!("the holder waits for its turn for longer than {LAST:?} each time");
}

/// How many hostile frames are on their way at once.
const BATCH: u64 = 20;

/// W of the one that drives: longer than anything else may keep this machine, and with it the emulator, from its work.
const WINDOW: Duration = Duration::from_secs(60);

/// For how long it does before it falls silent.
const HELD: Span = Span::from_secs(3);

/// W of its last drive.
const LAST: Duration = Duration::from_secs(3);

/// Long enough for two falls.
const TWO_FALLS: Span = Span::from_secs(7);

/// What must be true however bad the line was: no reset, no fault, no last words, and the gate answers.
fn is_unharmed(gate: &EmulatedGate) {
    let (_, status) = gate.ask("status --timeout 20s");
    assert_eq!((&status["boots"], &status["fault"]), (&json!(1), &json!(null)), "{status}");
    assert!(!gate.gave_up(), "a firmware's last words: {}", gate.noise());
}

/// While a holder drives output 0, `disturb` does what it does until told to stop. Nothing else is ever driven. Now and then
/// the holder falls silent: the output stays up as long as it renews, and falls in time once it does not, disturbed all the
/// while.
fn drives_undisturbed(
    gate: &EmulatedGate,
    by: &str,
    lasting: Option<Span>,
    disturb: impl FnOnce(&AtomicBool, &AtomicBool) + Send,
) {
    let (enough, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut host = gate.speak(holder("a"));
    let mut monitor = gate.monitor();
    let mut falls = vec![];
    thread::scope(|scope| {
        let disturbing = scope.spawn(|| disturb(&enough, &over));
        let told = Over(&over);
        let begun = Instant::now();
        while !lasting.map_or_else(|| enough.load(Ordering::Relaxed), |lasting| begun.elapsed() >= lasting) {
            assert_eq!(host.drive(0, 7, 1, WINDOW), Some(Ok(())), "a new window");
            let end = thread::scope(|scope| {
                let holding = scope.spawn(|| hold(&mut host));
                while !holding.is_finished() {
                    assert!(!disturbing.is_finished(), "it gave up");
                    let driven = monitor.outputs();
                    if driven == 0 && holding.is_finished() {
                        break; // this thread has not been here for longer than the last window
                    }
                    assert!(driven == DRIVEN, "{driven:#x} is driven: {}", gate.ask("log --timeout 20s").1);
                    sleep(Span::from_millis(5));
                }
                holding.join().unwrap()
            });
            let fell = monitor.falls(DRIVEN, end + HOST_LATENESS).expect("the dead man's switch falls in time");
            assert!(!disturbing.is_finished(), "it gave up");
            falls.push((end, fell));
        }
        drop(told);
        disturbing.join().unwrap();
    });
    let ms = |later: &Instant, earlier| i64::try_from(later.saturating_duration_since(earlier).as_millis()).unwrap();
    let late = falls.iter().map(|(end, fell)| ms(fell, *end) - ms(end, *fell)).max().expect("one fall at least");
    println!("counted: {} falls amid {by}, the latest {late} ms after its window's end", falls.len());
}

#[test]
fn frames_that_nobody_sealed_do_nothing() {
    let mut random = Random(seed("hostile"));
    // A line with its real speed carries fewer in the same time.
    let count = match board() {
        _ if is_soak() => 100_000,
        Board::Mps2 => 3_000,
        Board::Rp2040 => 800,
    };
    let gate = EmulatedGate::new();
    let recorded = recorded(&gate);
    let before = gate.ask("status").1;
    let mut line = gate.speak(Role::Observer);
    drives_undisturbed(&gate, "hostile frames", None, |enough, over| {
        // All of it once more, whatever is drawn after that.
        for frame in &recorded {
            line.send(frame);
        }
        let mut sent = 0;
        while !over.load(Ordering::Relaxed) {
            for _ in 0..BATCH {
                line.send(&hostile(&mut random, &recorded));
            }
            // All before it has been taken once this is answered.
            line.call(Operation::new(Request::Challenge)).expect("the gate answers in between");
            sent += BATCH;
            if sent >= count {
                enough.store(true, Ordering::Relaxed);
            }
        }
        println!("counted: {sent} frames");
    });
    is_unharmed(&gate);
    let after = gate.ask("status").1;
    for channel in 1..5 {
        let [before, after] = [&before, &after].map(|status| &status["channels"][channel]);
        assert_eq!(before, after, "channel {channel} is as it was");
    }
    let counted =
        ["noise", "forged", "replay", "stale", "released"].map(|why| after["counters"][why].as_u64().unwrap());
    println!("counted: noise, forged, replay, stale, released: {counted:?}");
    assert!(counted.iter().all(|count| *count > 0) && counted[0] > count / 2, "of everything there was some");
}

#[test]
fn a_flood_of_bytes_starves_neither_switch_nor_watchdog() {
    let mut random = Random(seed("hostile"));
    let gate = EmulatedGate::new();
    let mut line = TcpStream::connect(gate.address()).unwrap();
    line.set_write_timeout(Some(Span::from_millis(100))).unwrap();
    let floods = [vec![0x55; 4_000], vec![0; 4_000], random.bytes(4_000)];
    drives_undisturbed(&gate, "a flood of bytes", Some(TWO_FALLS), |_, over| {
        while !over.load(Ordering::Relaxed) {
            // It is slowed down, and says no more than it can.
            let _ = line.write(&floods[random.index(floods.len())]);
        }
    });
    is_unharmed(&gate);
}

#[test]
fn a_host_that_asks_and_never_reads_starves_neither() {
    let gate = EmulatedGate::new();
    let mut deaf = gate.speak(Role::Observer);
    deaf.call(Operation::new(Request::Status)).unwrap();
    drives_undisturbed(&gate, "questions of a deaf host", Some(TWO_FALLS), |_, over| {
        while !over.load(Ordering::Relaxed) {
            let question = deaf.seal(Operation::new(Request::Counters));
            deaf.send(&question);
            // As often as the slower line carries the answers: asked faster, it is a flood, and the holder waits behind it.
            sleep(Span::from_millis(30));
        }
    });
    is_unharmed(&gate);
}

/// Five hundred commands, each with a challenge of its own and all of them good, are held back on their way, and arrive
/// after somebody has pressed the emergency stop.
#[test]
fn a_burst_of_commands_after_an_emergency_stop_does_nothing_and_neither_does_it_after_the_rearm() {
    let gate = EmulatedGate::new();
    let minute = Duration::from_secs(60);
    let mut host = gate.speak(holder("a"));
    assert_eq!(host.drive(0, 7, 1, minute), Some(Ok(())));
    let commands: Vec<_> = (0..500)
        .map(|n| {
            host.call(Operation::new(Request::Challenge)).unwrap();
            host.seal(drive(0, 7, i32::from(n % 2 == 0), minute))
        })
        .collect();
    let mut monitor = gate.monitor();
    assert_eq!(monitor.outputs(), DRIVEN);

    gate.press_stop(true);
    monitor.falls(DRIVEN, Instant::now() + HOST_LATENESS).expect("the stop lets go of the output");
    let mut burst = |when: &str| {
        let mut line = TcpStream::connect(gate.address()).unwrap();
        let mut answers = line.try_clone().unwrap();
        thread::spawn(move || while matches!(answers.read(&mut [0; 4_096]), Ok(1..)) {});
        for command in &commands {
            line.write_all(command).unwrap();
            assert_eq!(monitor.outputs(), 0, "{when}");
        }
        // Whatever was sent before has been taken once this is answered.
        gate.ask("status --timeout 20s");
        assert_eq!(monitor.outputs(), 0, "{when}");
    };
    burst("while the stop is pressed");
    gate.press_stop(false);
    burst("after it was pulled out");
    gate.done("rearm --channel 0");
    burst("after the rearm");
    assert_eq!(gate.channel(0)["state"], "safe");
    assert_eq!(host.drive(0, 7, 1, minute), Some(Ok(())), "a command that was given after it");
    assert_eq!(monitor.outputs(), DRIVEN);
    is_unharmed(&gate);
}

/// Without a bridge in between: whoever has the line to himself and never reads holds the board's transmitter.
#[test]
fn a_host_that_has_the_line_to_itself_and_never_reads_holds_up_the_answers_and_nothing_else() {
    runtime().unwrap().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (board, image) = (board(), Image::Gate);
        let elf = image.build(workspace::root(), board).unwrap();
        let flash = folder.path().join("gate.flash");
        let powering = Powering { board, elf: &elf, flash: &flash, image };
        let Gate { mut board, mut line, keys } = Gate::boot(&powering, LATENESS, &Sides::default()).await.unwrap();
        let soon = || Deadline::after(clock::now(), Duration::from_secs(10)).unwrap();
        let window = Duration::from_secs(2);
        let mut a = GateClient::new(&mut line, keys.credential(holder("a"))).unwrap();
        let sent = Instant::now();
        let deadline = Deadline::after(clock::now(), window).unwrap();
        let values = [1].into_iter().collect();
        a.drive(0, (Epoch(0), Token::new(7).unwrap()), values, (deadline, window), soon()).await.unwrap();
        assert_eq!(board.pins().await.unwrap(), DRIVEN);

        let mut deaf = Client::new(keys.credential(Role::Observer), 1, Timing::default());
        deaf.begin(Operation::new(Request::Counters), soon());
        let Output::Send(question) = deaf.poll(clock::now()) else { panic!("a question comes first") };
        let mut questions = 0;
        let fell = loop {
            // It takes no more once nobody reads what it answers; then the time passes here.
            if let Ok(written) = timeout(Span::from_millis(5), line.write_all(&question)).await {
                written.unwrap();
                questions += 1;
            }
            if board.pins().await.unwrap() == 0 {
                break Instant::now();
            }
        };
        let late = fell.saturating_duration_since(sent + Span::from(window));
        println!("{questions} questions; low {:?} after the command went out", fell - sent);
        assert!(late < HOST_LATENESS, "{late:?}");

        // Once it reads, all is well.
        let mut heard = [0; 4_096];
        while matches!(timeout(Span::from_millis(500), line.read(&mut heard)).await, Ok(Ok(1..))) {}
        let status = GateClient::new(&mut line, keys.reader()).unwrap().status(soon()).await.unwrap();
        assert_eq!((status.boots, status.fault), (1, None), "the watchdog was fed");
    });
}
