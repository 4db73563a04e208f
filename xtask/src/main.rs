//! `cargo xtask`: the words of the command line. What they do is in the library.
#![forbid(unsafe_code)]

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::board::Board;
use xtask::emulator::{Sides, Socket};
use xtask::ledger::Ledger;
use xtask::{demo, firmware, gate, lint, mutants, nightly, setup, soak, step, workspace};

/// Everything around the code: each command first sets up what it needs.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = "Example: cargo xtask test")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Gets everything that any command needs, but the tools of `mutants`, `miri` and `fuzz`.
    ///
    /// Rust targets and components come through rustup, system packages through apt (as root on Debian or Ubuntu;
    /// otherwise it says what to run), npm packages from the lock files. What is there already is not fetched again.
    #[command(after_help = "Example: cargo xtask setup")]
    Setup,

    /// Checks style, documentation and the arrows between the rooms.
    ///
    /// Clippy and rustdoc run with warnings denied, on the host, for the boards and for wasm.
    #[command(after_help = "Example: cargo xtask lint")]
    Lint,

    /// Checks style, builds everything and runs every test.
    ///
    /// Afterwards a table says how long each part took, and the last line how many checks and tests passed and failed.
    /// A check that fails does not stop the others. The boards are emulated, the page runs in Chromium.
    #[command(after_help = "Example: cargo xtask test\nOne crate's own tests: cargo test --package fencegate")]
    Test,

    /// Plays the story of a command that comes too late, against firmware in an emulator.
    ///
    /// Two holders, a freeze, a successor, a power cut; what the output pin does is read from the emulated hardware.
    /// The exit status is not zero if anything deviates.
    #[command(after_help = "Example: cargo xtask demo --fencing off")]
    Demo {
        /// The board.
        #[arg(long, value_enum, default_value = "mps2")]
        board: Board,
        /// With the check, or in an image that leaves it out, so that the corrupted run can be seen.
        #[arg(long, value_enum, default_value = "on")]
        fencing: Fencing,
    },

    /// Boots a gate in its board's emulator, with its serial line on a TCP port and its flash in a file.
    ///
    /// Prints one line once it is ready, and stays until a signal ends it. To kill it is a power cut: the same flash
    /// file boots again with the same keys. A flash file that does not exist is a new gate.
    #[command(after_help = "Example: cargo xtask gate --board mps2 --listen 127.0.0.1:7033 --flash target/gate.flash")]
    Gate {
        /// The board.
        #[arg(long, value_enum, default_value = "mps2")]
        board: Board,
        /// With a line of 1,000,000 baud instead of 115,200.
        #[arg(long)]
        fast: bool,
        /// Where hosts connect.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7033")]
        listen: SocketAddr,
        /// The file that is the board's flash; the key file lies beside it.
        #[arg(long, value_name = "FILE", default_value = "target/gate.flash")]
        flash: PathBuf,
        /// Where its front panel is: emergency stop, presence, feedback contacts.
        ///
        /// `bash -c 'echo i1 > /dev/tcp/127.0.0.1/7034'` presses the emergency stop, i0 pulls it out again; p1 and p0
        /// are somebody's presence; o3, c3 and f3 make the contact behind output 3 stick open, stick closed, or follow.
        #[arg(long, value_name = "FILE|ADDRESS")]
        panel: Option<Socket>,
        /// Where the board's USB port is, if it has one: to connect puts the cable in, to leave pulls it.
        ///
        /// It takes one host, for whom it is `fencegate gate --port tcp://ADDRESS`.
        #[arg(long, value_name = "FILE|ADDRESS")]
        usb: Option<Socket>,
        /// Where the emulator's monitor is, for one who looks at pins and memory.
        #[arg(long, value_name = "FILE|ADDRESS")]
        monitor: Option<Socket>,
        /// Shows the firmware's log on standard error, which must then be read: a log that nobody takes stops the board.
        #[arg(long)]
        log: bool,
    },

    /// Builds the firmware of a board as the file that its boot loader takes: drag it onto the board's drive.
    #[command(after_help = "Example: cargo xtask firmware rp2040")]
    Firmware {
        /// The board.
        #[arg(value_enum)]
        board: Board,
        /// With a line of 1,000,000 baud instead of 115,200.
        #[arg(long)]
        fast: bool,
    },

    /// One holder of the demonstration.
    #[command(hide = true)]
    Holder(demo::HolderArguments),

    /// Measures bytes, instructions, nanoseconds and lines per second, and writes them into tests/BENCH.md.
    #[command(after_help = "Example: cargo xtask bench bare")]
    Bench {
        /// Only these parts of the record.
        #[arg(value_enum)]
        parts: Vec<Bench>,
    },

    /// Changes the core in every small way, and sees that some test of the core notices each.
    ///
    /// Changes that make no difference are listed in .cargo/mutants.toml, with the reason.
    #[command(after_help = "Example: cargo xtask mutants core/src/fence.rs")]
    Mutants {
        /// Only the changes of these files.
        files: Vec<String>,
    },

    /// Runs the core's tests in an interpreter in which undefined behaviour is an error.
    #[command(after_help = "Example: cargo xtask miri")]
    Miri,

    /// Feeds random bytes to each parser and state machine of core and wire.
    #[command(after_help = "Example: cargo xtask fuzz --seconds 60 fence")]
    Fuzz {
        /// For how long, each.
        #[arg(long, value_name = "N", default_value = "60")]
        seconds: u32,
        /// Only this one, a name in tests/fuzz/targets.
        target: Option<String>,
    },

    /// Runs the full counts of what `test` samples.
    ///
    /// The model checker's larger spaces, fifty million inputs against the oracle, random walks over more simulated
    /// hours, a store cut at every byte, ten million frames without sense, more kills and more hostile frames for the
    /// emulated board. All of it takes hours; what each has counted is written into tests/BENCH.md.
    #[command(after_help = "Example: cargo xtask soak store decoder")]
    Soak {
        /// Only these.
        #[arg(value_parser = PossibleValuesParser::new(soak::keys()))]
        runs: Vec<String>,
    },

    /// Builds the modules for JavaScript into wasm/pkg and wasm/gate/pkg.
    #[command(after_help = "Example: cargo xtask wasm")]
    Wasm,

    /// Builds the page, with the Pico's firmware in it, and serves it on this machine.
    #[command(after_help = "Example: cargo xtask web --listen 127.0.0.1:9000")]
    Web {
        /// Where to serve it.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
        listen: SocketAddr,
    },
}

/// Whether the demonstration's gate checks stamps.
#[derive(Clone, Copy, ValueEnum)]
enum Fencing {
    On,
    Off,
}

/// The parts of the record.
#[derive(Clone, Copy, ValueEnum)]
enum Bench {
    /// Bytes of the firmware and of the module.
    Shipped,
    /// The core on a microcontroller: instructions, code, RAM.
    Bare,
    /// The gate: instructions and bytes a frame, its stack, its time with interrupts off.
    Gate,
    /// The Raspberry Pi Pico in its emulator: round trips, cycles, and how fast the emulator runs.
    Pico,
    /// The core on this machine: nanoseconds.
    Host,
    /// The audit of ten million lines.
    Audit,
    /// Leases that are held: what one costs, renewals at etcd, what `hold` adds to a command's start
    Leases,
    /// The module and the page: bytes, times in a browser, calls a second.
    Web,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(asked) if !asked.use_stderr() => asked.exit(),
        Err(wrong) => {
            // One sentence; clap's usage is what `--help` is for.
            let text = wrong.to_string();
            let sentence = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            step::report(&anyhow::anyhow!("{sentence} (`--help` says what there is)"));
            return ExitCode::from(2);
        }
    };
    match run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            step::report(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    let root = workspace::root();
    match command {
        Command::Setup => {
            setup::ensure(&setup::everything())?;
            println!("everything is there");
            Ok(())
        }
        Command::Lint => {
            setup::ensure(&[setup::LINT, setup::COMMAND].concat())?;
            let mut ledger = Ledger::default();
            lint::run(root, &mut ledger)?;
            ledger.close()
        }
        Command::Demo { board, fencing } => demo::run(root, *board, matches!(fencing, Fencing::On)),
        Command::Firmware { board, fast } => {
            println!("{}", firmware::for_boot_loader(root, *board, *fast)?.display());
            Ok(())
        }
        Command::Gate { log: true, .. } if cfg!(not(feature = "log")) => again_with("log"),
        Command::Gate { board, fast, listen, flash, panel, usb, monitor, log } => {
            let sides = Sides { panel: panel.clone(), usb: usb.clone(), monitor: monitor.clone(), log: *log };
            gate::run(root, *board, *fast, *listen, flash, &sides)
        }
        Command::Soak { runs } => soak::run(root, runs),
        Command::Mutants { files } => mutants::run(root, files),
        Command::Miri => nightly::miri(root),
        Command::Fuzz { seconds, target } => nightly::fuzz(root, *seconds, target.as_deref()),
        Command::Holder(arguments) => arguments.clone().run(),
        Command::Test => {
            setup::ensure(&setup::everything())?;
            with_web(command)
        }
        Command::Bench { .. } | Command::Wasm | Command::Web { .. } => {
            setup::ensure(setup::WEB)?;
            with_web(command)
        }
    }
}

/// The rest of a command that needs the feature `web`.
#[cfg(feature = "web")]
fn with_web(command: &Command) -> Result<()> {
    use xtask::{bench, page, test};

    let root = workspace::root();
    match command {
        Command::Test => test::run(root),
        Command::Bench { parts } => {
            let all = if parts.is_empty() { Bench::value_variants() } else { parts };
            let parts = all.iter().map(|part| match part {
                Bench::Shipped => bench::Part::Shipped,
                Bench::Bare => bench::Part::Bare,
                Bench::Gate => bench::Part::Gate,
                Bench::Pico => bench::Part::Pico,
                Bench::Host => bench::Part::Host,
                Bench::Audit => bench::Part::Audit,
                Bench::Leases => bench::Part::Leases,
                Bench::Web => bench::Part::Web,
            });
            bench::run(root, &parts.collect::<Vec<_>>())
        }
        Command::Web { listen } => {
            page::module(root)?;
            page::serve(&page::build(root)?, *listen)
        }
        _ => page::module(root).map(drop),
    }
}

/// It needs the feature `web`.
#[cfg(not(feature = "web"))]
fn with_web(_: &Command) -> Result<()> {
    again_with("web")
}

/// Starts the same command in an `xtask` that has the feature.
fn again_with(feature: &str) -> Result<()> {
    let mut cargo = workspace::cargo(workspace::root());
    cargo.args(["run", "--package", "xtask", "--features", feature, "--"]).args(std::env::args_os().skip(1));
    step::go_on_as(cargo)
}
