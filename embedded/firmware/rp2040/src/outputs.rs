//! The six outputs: GPIO 2 to 7, high is driven, low is safe.
//!
//! Each is the output of a state machine of its own, which is a one-shot that can be triggered again: it is told for how
//! long the pin may be high, counts that down, and drops the pin by itself. It needs no processor, no interrupt, no flash
//! and no bus: an erase that stops the processor for 400 ms, or a hang, moves the end by nothing. It also looks at the
//! inhibit input at every count, so that an emergency stop is not late either.
//!
//! Before the state machine's output there is the pin's own override, which the processor sets at once: low, whatever the
//! state machine does; the state machine's; or high, for an output whose safe value that is.
//!
//! A count is [`COUNT_US`]. The pin drops up to [`EARLY_US`] + [`COUNT_US`] before the end that was asked for and never
//! after it.

use embassy_rp::clocks::clk_sys_freq;
use embassy_rp::pac::io::vals::{Oeover, Outover};
use embassy_rp::pac::{self, IO_BANK0};
use embassy_rp::pio::program::{Program, pio_asm};
use embassy_rp::pio::{Common, Config, Instance, LoadedProgram, PioPin, StateMachine};
use embassy_rp::{Peri, gpio::Pull};
use embassy_time::Instant;
use fencegate_node::Instant as End;

use crate::inputs::INHIBIT;

/// How many outputs there are.
pub(crate) const COUNT: usize = 6;

/// The GPIO of the first output; the others come after it.
const FIRST: usize = 2;

/// How often the state machines do a step, in Hz.
const STEP_HZ: u32 = 100_000;

/// What one count is worth: five steps, in µs.
const COUNT_US: u64 = 50;

/// From handing a count over to the first step of its countdown, and from its last to the drop: nine steps at the most, in
/// µs, and one for the processor on its way.
const EARLY_US: u64 = 100;

/// `set pindirs, 1`: the instruction, its destination and its value.
const DRIVE: u16 = (0b111 << 13) | (0b100 << 5) | 1;

/// The one-shot. While it is low it waits for a count. While it is high it takes a newer count over at every turn, or goes
/// on with its own: where nothing was handed over, `pull noblock` copies X.
pub(crate) fn program() -> Program<32> {
    pio_asm!(
        ".side_set 1",
        "low:",
        "    pull block    side 0",
        "    mov x, osr    side 0",
        "    jmp pin low   side 0", // the inhibit is open
        "    jmp !x low    side 0", // 0 is: be low
        ".wrap_target",
        "    jmp x-- turn  side 1", // X is not 0 here: always taken, and one less afterwards
        "turn:",
        "    pull noblock  side 1",
        "    mov x, osr    side 1",
        "    jmp pin low   side 1",
        "    jmp !x low    side 1",
        ".wrap",
    )
    .program
}

/// One output. Each exists once.
pub(crate) struct Output {
    block: pac::pio::Pio,
    machine: usize,
    gpio: usize,
    /// The end that its state machine was told; `None` where it was told to be low.
    end: Option<End>,
}

impl Output {
    /// Makes an output of a pin and a state machine of `block`, whose registers these are. It is low.
    pub(crate) fn new<'d, P: Instance, const SM: usize>(
        common: &mut Common<'d, P>,
        program: &LoadedProgram<'d, P>,
        mut machine: StateMachine<'d, P, SM>,
        block: pac::pio::Pio,
        pin: Peri<'d, impl PioPin + 'd>,
    ) -> Self {
        let gpio = pin.pin();
        let output = Self { block, machine: SM, gpio: usize::from(gpio), end: None };
        // What follows takes the pin's pull-down away and both overrides back. So that it floats for no instruction, it is
        // driven low by the overrides until it is the block's, and the block has been driving it low, unheard, before that.
        IO_BANK0.gpio(output.gpio).ctrl().modify(|w| {
            w.set_outover(Outover::LOW);
            w.set_oeover(Oeover::ENABLE);
        });
        output.block.sm(SM).pinctrl().write(|w| {
            w.set_set_base(gpio);
            w.set_set_count(1);
        });
        output.block.sm(SM).instr().write(|w| w.set_instr(DRIVE));
        let mut pin = common.make_pio_pin(pin);
        pin.set_pull(Pull::Down);
        output.select(Outover::LOW);
        let mut config = Config::default();
        config.use_program(program, &[&pin]);
        let divider = u16::try_from(clk_sys_freq() / STEP_HZ).expect("the divider has 16 bits");
        config.clock_divider = divider.into();
        machine.set_config(&config);
        // Not through `Config`, which wants a pin of the block's own; a jump looks at any.
        output.block.sm(SM).execctrl().modify(|w| w.set_jmp_pin(INHIBIT));
        machine.set_enable(true);
        // Dropped, it would take its block's pins back.
        core::mem::forget(machine);
        output
    }

    /// Says what the pin follows.
    fn select(&self, what: Outover) {
        IO_BANK0.gpio(self.gpio).ctrl().modify(|w| w.set_outover(what));
    }

    /// Hands a count over as soon as there is room: the state machine takes one in each turn, of [`COUNT_US`].
    fn count(&self, count: impl FnOnce() -> u32) {
        while self.block.fstat().read().txfull() & 1 << self.machine != 0 {}
        self.block.txf(self.machine).write_value(count());
    }
}

impl fencegate_node::Output for Output {
    const DROPS: bool = true;

    fn set(&mut self, value: i32) {
        self.select(if value == 0 { Outover::LOW } else { Outover::HIGH });
        if self.end.take().is_some() {
            self.count(|| 0);
        }
    }

    fn hold(&mut self, value: i32, end: End) {
        if value == 0 {
            return self.set(0);
        }
        if self.end != Some(end) {
            // Nothing comes in between: what is handed over is what is left.
            let left = || end.as_micros().saturating_sub(Instant::now().as_micros());
            critical_section::with(|_| self.count(|| counts(left())));
            self.end = Some(end);
        }
        self.select(Outover::NORMAL);
    }
}

/// How many counts end within `left_us`; 0 is none at all. More than a state machine can count is as many as it can.
const fn counts(left_us: u64) -> u32 {
    let counts = left_us.saturating_sub(EARLY_US) / COUNT_US;
    #[expect(clippy::cast_possible_truncation, reason = "it is the smaller of the two")]
    if counts > u32::MAX as u64 { u32::MAX } else { counts as u32 }
}

/// Drives every output low, from wherever the program is: it takes no lock and cannot fail.
pub(crate) fn all_low() {
    for gpio in FIRST..FIRST + COUNT {
        IO_BANK0.gpio(gpio).ctrl().modify(|w| w.set_outover(Outover::LOW));
    }
}
