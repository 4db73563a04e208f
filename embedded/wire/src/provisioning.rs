//! What makes a board a gate: its identity, its keys, its clock's bounds, its channels and its outputs.
//!
//! It travels and is stored in pieces, one for each output, one for each channel and one for the whole, so that neither
//! a frame nor a record has to hold all of it.

use crate::key::{Key, Keyring};
use crate::message::{MAX_CHANNELS, MAX_OUTPUTS, Request, Values};
use crate::seal::GateId;
use core::ops::Range;
use fencegate::{Drift, Duration, Epoch, GateTiming, GrantTerms, Limits, PPB, RaiseBudget};
use serde::{Deserialize, Serialize};

/// The most outputs that a gate has, over all its channels.
pub const MAX_GATE_OUTPUTS: usize = 16;

/// Everything that makes a board a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioning {
    /// What it is as a whole.
    pub gate: GateConfig,
    /// The channels, numbered from 0.
    pub channels: heapless::Vec<ChannelConfig, MAX_CHANNELS>,
    /// The outputs in their order on the board: those of channel 0, then those of channel 1, and so on.
    pub outputs: heapless::Vec<OutputConfig, MAX_GATE_OUTPUTS>,
}

/// What a gate is as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateConfig {
    /// The gate's identity.
    pub gate: GateId,
    /// Its keys.
    pub keys: Keyring,
    /// ε, the bound on the drift of the gate's own clock.
    pub drift: Drift,
    /// L, the gate's worst lateness: interrupt-off time included.
    pub lateness: Duration,
    /// The longest window that it honours, the longest TTL that it grants, and the age at which a challenge dies.
    pub longest_window: Duration,
    /// How often fences may be raised and leases granted.
    pub raises: RaiseBudget,
    /// How far an operator's epoch may leap; 1 at the least.
    pub epoch_jump: u32,
    /// How long before a window's end the gate warns; zero for never.
    pub warning: Duration,
}

/// Where a channel's tokens come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Authority {
    /// 0: from a coordinator outside.
    Outside,
    /// 1: from the gate itself.
    Own,
}

/// One channel: what one stamp governs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ChannelConfig {
    /// Where its tokens come from.
    pub authority: Authority,
    /// How many of the gate's outputs are its.
    pub outputs: u8,
    /// How long its actuators take to follow their outputs. A, what a window loses, is this and the longest safe action.
    pub reaction: Duration,
    /// How far a token may leap; 1 at the least.
    pub token_jump: u64,
    /// Its first epoch.
    pub epoch: Epoch,
    /// The floor that the first token must exceed.
    pub floor: u64,
    /// How long after a lease of its own authority has run out nothing is granted; a release saves it.
    pub lock_delay: Duration,
    /// Whether it waits for the operator's rearm after a window has ended, too.
    pub rearm_after_window: bool,
}

/// One output of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OutputConfig {
    /// The least value that a command may carry.
    pub min: i32,
    /// The greatest value that a command may carry.
    pub max: i32,
    /// The value of the safe state.
    pub safe: i32,
    /// The explicit yes to a safe state, or a way there, that is more power (further from 0) than some command it replaces.
    pub powered: bool,
    /// How it gets to its safe value.
    pub action: SafeAction,
    /// For how long it stays off its safe value at the least, before a command may set it back; safe never waits.
    pub least_on: Duration,
    /// For how long it stays at its safe value at the least, from boot too.
    pub least_off: Duration,
    /// Within what time the contact behind it follows: closed where the value is not 0. `None` where none is wired.
    pub feedback: Option<Duration>,
}

/// How an output gets to its safe value. Its length is part of A: a window ends so much earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum SafeAction {
    /// 0: at once.
    AtOnce,
    /// 1: it keeps the driven value for a while (a valve that closes after its pump has stopped).
    Keep {
        /// For how long.
        time: Duration,
    },
    /// 2: it has another value for a while (a brake).
    Hold {
        /// Which.
        value: i32,
        /// For how long.
        time: Duration,
    },
    /// 3: in a straight line from the driven value (a motor).
    Ramp {
        /// In how long.
        time: Duration,
    },
}

impl SafeAction {
    /// How long it takes.
    pub const fn time(self) -> Duration {
        match self {
            Self::AtOnce => Duration::ZERO,
            Self::Keep { time } | Self::Hold { time, .. } | Self::Ramp { time } => time,
        }
    }
}

/// What is wrong with a provisioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BadProvisioning {
    /// The gate identity is all zeros, which is nobody's.
    Gate,
    /// The drift is 100 % or more.
    Drift,
    /// The longest window leaves nothing after drift, lateness, a channel's reaction and its safe action; or a time is
    /// beyond what the clock can count.
    LongestWindow,
    /// The raise budget allows none.
    Raises,
    /// No epoch could follow on the first.
    EpochJump,
    /// No token could follow on the first.
    TokenJump,
    /// No channel, a channel without outputs or with too many, or outputs that are no channel's.
    Outputs,
    /// A range is empty, or the safe value or that of the way there lies outside it.
    SafeValue,
    /// The safe value, or one on the way there, is more power than some command, and nobody has said that it may be.
    MorePower,
    /// A floor above which no token could follow.
    Floor,
    /// The last epoch, on which none could follow.
    Epoch,
}

impl core::fmt::Display for BadProvisioning {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate: an identity of zeros is nobody's",
            Self::Drift => "drift: the clock's drift is less than 100 %",
            Self::LongestWindow => {
                "longest_window: nothing of it is left after drift, lateness, reaction and safe action, or a time is too long"
            }
            Self::Raises => "raises: a budget of none leaves every fence where it is",
            Self::EpochJump => "epoch_jump: an epoch has to rise by 1 at the least",
            Self::TokenJump => "token_jump: a token has to rise by 1 at the least",
            Self::Outputs => "outputs: every channel has at least one output and at most 8, and all of them at most 16",
            Self::SafeValue => "safe: a safe value lies within the output's range, as does the value of a hold",
            Self::MorePower => {
                "powered: this safe value (or hold) is further from 0 than a command may be; say `powered = true` if it \
                 is to be so"
            }
            Self::Floor => "floor: no token could follow above 2^63-2",
            Self::Epoch => "epoch: none could follow on 4294967295",
        })
    }
}

impl core::error::Error for BadProvisioning {}

impl Provisioning {
    /// Nobody's: the factory's keys, no channel and no output. No gate works with it.
    pub const fn nobodys() -> Self {
        let minute = Duration::from_secs(60);
        let gate = GateConfig {
            gate: GateId::FACTORY,
            keys: Keyring { root: Key::new([0; Key::LEN]), operator: Key::new([0; Key::LEN]), instance: 0, id: 0 },
            drift: Drift::ZERO,
            lateness: Duration::ZERO,
            // For so long a challenge of a board that is no gate is good.
            longest_window: minute,
            raises: RaiseBudget { burst: 0, every: minute },
            epoch_jump: 0,
            warning: Duration::ZERO,
        };
        Self { gate, channels: heapless::Vec::new(), outputs: heapless::Vec::new() }
    }

    /// Checks what no gate could work with.
    ///
    /// # Errors
    /// The first [`BadProvisioning`] that applies.
    pub fn check(&self) -> Result<(), BadProvisioning> {
        self.gate.check()?;
        self.outputs.iter().try_for_each(OutputConfig::check)?;
        let outputs: usize = self.channels.iter().map(|channel| usize::from(channel.outputs)).sum();
        if self.channels.is_empty() || outputs != self.outputs.len() {
            return Err(BadProvisioning::Outputs);
        }
        let mut channels = self.channels.iter().enumerate();
        channels.try_for_each(|(n, channel)| self.gate.check_channel(channel, self.longest_action(n)))
    }

    /// How long the safe actions of a channel's outputs take, which begin together.
    fn longest_action(&self, channel: usize) -> Duration {
        self.outputs_of(channel).iter().map(|output| output.action.time()).max().unwrap_or(Duration::ZERO)
    }

    /// Which of the gate's outputs are those of a channel; an empty range where there is no such channel.
    pub fn span(&self, channel: usize) -> Range<usize> {
        let count = |channel: &ChannelConfig| usize::from(channel.outputs);
        let start: usize = self.channels.iter().take(channel).map(count).sum();
        start..start + self.channels.get(channel).map_or(0, count)
    }

    /// The outputs of a channel.
    pub fn outputs_of(&self, channel: usize) -> &[OutputConfig] {
        self.outputs.get(self.span(channel)).unwrap_or_default()
    }

    /// What a holder's window loses on this gate's `channel`; `None` where that is beyond counting.
    pub fn timing(&self, channel: usize) -> Option<GateTiming> {
        self.gate.timing(self.channels.get(channel)?, self.longest_action(channel))
    }

    /// What a channel that is its own authority keeps to.
    pub fn terms(&self, channel: usize) -> GrantTerms {
        GrantTerms {
            drift: self.gate.drift,
            lock_delay: self.channels.get(channel).map_or(Duration::ZERO, |channel| channel.lock_delay),
            longest_ttl: self.gate.longest_window,
            epoch_jump: self.gate.epoch_jump,
        }
    }

    /// What a channel's fence accepts beyond "higher".
    pub fn limits(&self, channel: usize) -> Limits {
        let token_jump = self.channels.get(channel).map_or(Limits::TOKEN_JUMP, |channel| channel.token_jump);
        Limits { epoch_jump: self.gate.epoch_jump, token_jump, ..Limits::default() }
    }

    /// Whether `values` has one value for each output of `channel`, each within its range.
    pub fn accepts(&self, channel: usize, values: &[i32]) -> bool {
        let outputs = self.outputs_of(channel);
        values.len() == outputs.len()
            && values.iter().zip(outputs).all(|(value, output)| (output.min..=output.max).contains(value))
    }

    /// The values of a channel's safe state.
    pub fn safe(&self, channel: usize) -> Values {
        self.outputs_of(channel).iter().map(|output| output.safe).take(MAX_OUTPUTS).collect()
    }

    /// What to tell the gate, in this order.
    pub fn requests(&self) -> impl Iterator<Item = Request> + '_ {
        let outputs =
            (0..).zip(&self.outputs).map(|(output, config)| Request::SetOutput { output, config: config.clone() });
        let channels =
            (0..).zip(&self.channels).map(|(channel, config)| Request::SetChannel { channel, config: config.clone() });
        let count = |n: usize| u8::try_from(n).unwrap_or(u8::MAX); // at most 16
        let last = Request::Provision {
            config: self.gate.clone(),
            channels: count(self.channels.len()),
            outputs: count(self.outputs.len()),
        };
        outputs.chain(channels).chain(core::iter::once(last))
    }
}

impl GateConfig {
    /// Checks what is wrong with it by itself.
    ///
    /// # Errors
    /// The first [`BadProvisioning`] that applies.
    pub fn check(&self) -> Result<(), BadProvisioning> {
        if self.gate == GateId::FACTORY {
            return Err(BadProvisioning::Gate);
        }
        if self.drift.as_ppb() >= PPB {
            return Err(BadProvisioning::Drift);
        }
        if self.raises.burst == 0 {
            return Err(BadProvisioning::Raises);
        }
        if self.epoch_jump == 0 { Err(BadProvisioning::EpochJump) } else { Ok(()) }
    }

    /// Checks a channel of this gate, where the longest safe action of its outputs takes `action`.
    ///
    /// # Errors
    /// The first [`BadProvisioning`] that applies.
    pub fn check_channel(&self, channel: &ChannelConfig, action: Duration) -> Result<(), BadProvisioning> {
        channel.check()?;
        let timing = self.timing(channel, action).ok_or(BadProvisioning::LongestWindow)?;
        if !matches!(timing.window(self.longest_window), Ok(Some(_))) {
            return Err(BadProvisioning::LongestWindow);
        }
        // What a lease of its own takes on this clock at the longest, lock delay included, can be counted.
        (self.drift.outlast(self.longest_window).ok())
            .and_then(|longest| longest.checked_add(channel.lock_delay))
            .filter(|longest| *longest <= Duration::MAX_ANSWER)
            .map(drop)
            .ok_or(BadProvisioning::LongestWindow)
    }

    /// What a holder's window loses on a channel whose safe action takes so long.
    fn timing(&self, channel: &ChannelConfig, action: Duration) -> Option<GateTiming> {
        Some(GateTiming {
            drift: self.drift,
            lateness: self.lateness,
            reaction: channel.reaction.checked_add(action)?,
            longest_window: self.longest_window,
        })
    }
}

impl ChannelConfig {
    /// A channel with one output that takes tokens from outside, the rest as a user would expect.
    pub const fn new() -> Self {
        Self {
            authority: Authority::Outside,
            outputs: 1,
            reaction: Duration::ZERO,
            token_jump: Limits::TOKEN_JUMP,
            epoch: Epoch(0),
            floor: 0,
            lock_delay: Duration::ZERO,
            rearm_after_window: false,
        }
    }

    /// Checks what is wrong with it by itself.
    ///
    /// # Errors
    /// The first [`BadProvisioning`] that applies.
    pub fn check(&self) -> Result<(), BadProvisioning> {
        if self.outputs == 0 || usize::from(self.outputs) > MAX_OUTPUTS {
            return Err(BadProvisioning::Outputs);
        }
        if self.token_jump == 0 {
            return Err(BadProvisioning::TokenJump);
        }
        if self.floor >= Limits::FIRST_TOKEN - 1 {
            return Err(BadProvisioning::Floor);
        }
        if self.epoch == Epoch(u32::MAX) { Err(BadProvisioning::Epoch) } else { Ok(()) }
    }
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl OutputConfig {
    /// An output that is on or off, off when safe, at once.
    pub const fn switch() -> Self {
        Self {
            min: 0,
            max: 1,
            safe: 0,
            powered: false,
            action: SafeAction::AtOnce,
            least_on: Duration::ZERO,
            least_off: Duration::ZERO,
            feedback: None,
        }
    }

    /// Checks what is wrong with it by itself.
    ///
    /// # Errors
    /// The first [`BadProvisioning`] that applies.
    pub fn check(&self) -> Result<(), BadProvisioning> {
        let held = match self.action {
            SafeAction::Hold { value, .. } => value,
            _ => self.safe,
        };
        if ![self.safe, held].iter().all(|value| (self.min..=self.max).contains(value)) {
            return Err(BadProvisioning::SafeValue);
        }
        // The command with the least power that it could replace.
        let least = if self.min > 0 {
            self.min.unsigned_abs()
        } else if self.max < 0 {
            self.max.unsigned_abs()
        } else {
            0
        };
        let more = self.safe.unsigned_abs() > least || held.unsigned_abs() > least;
        if more && !self.powered { Err(BadProvisioning::MorePower) } else { Ok(()) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A gate with two channels: a motor with its brake, and a relay.
    pub(crate) fn example() -> Provisioning {
        let ms = Duration::from_millis;
        let motor =
            OutputConfig { min: -100, max: 100, action: SafeAction::Ramp { time: ms(300) }, ..OutputConfig::switch() };
        let brake = OutputConfig {
            powered: true,
            action: SafeAction::Hold { value: 1, time: ms(500) },
            ..OutputConfig::switch()
        };
        Provisioning {
            gate: GateConfig {
                gate: GateId(*b"press-07"),
                keys: Keyring { root: Key::new([1; 32]), operator: Key::new([2; 32]), instance: 3, id: 0 },
                drift: Drift::from_ppm(100),
                lateness: ms(5),
                longest_window: Duration::from_secs(60),
                raises: RaiseBudget { burst: 5, every: Duration::from_secs(10) },
                epoch_jump: Limits::EPOCH_JUMP,
                warning: ms(200),
            },
            channels: [ChannelConfig { outputs: 2, reaction: ms(20), ..ChannelConfig::new() }, ChannelConfig::new()]
                .into_iter()
                .collect(),
            outputs: [motor, brake, OutputConfig::switch()].into_iter().collect(),
        }
    }

    #[test]
    fn the_longest_safe_action_is_charged_against_the_window() {
        let gate = example();
        assert_eq!(gate.check(), Ok(()));
        assert_eq!(gate.timing(0).unwrap().reaction, Duration::from_millis(520));
        assert_eq!((gate.span(0), gate.span(1), gate.span(2)), (0..2, 2..3, 3..3));
        assert_eq!(gate.requests().count(), 3 + 2 + 1);
    }

    #[test]
    fn what_no_gate_could_work_with_is_named() {
        type Spoil = fn(&mut Provisioning);
        let cases: [(BadProvisioning, Spoil); 17] = [
            (BadProvisioning::Gate, |p| p.gate.gate = GateId::FACTORY),
            (BadProvisioning::Drift, |p| p.gate.drift = Drift::from_ppb(PPB)),
            (BadProvisioning::Raises, |p| p.gate.raises.burst = 0),
            (BadProvisioning::EpochJump, |p| p.gate.epoch_jump = 0),
            (BadProvisioning::TokenJump, |p| p.channels[1].token_jump = 0),
            (BadProvisioning::Outputs, |p| p.channels.clear()),
            (BadProvisioning::Outputs, |p| p.channels[1].outputs = 0),
            (BadProvisioning::Outputs, |p| p.channels[1].outputs = 2),
            (BadProvisioning::LongestWindow, |p| p.gate.longest_window = Duration::from_millis(525)),
            (BadProvisioning::LongestWindow, |p| p.channels[0].reaction = Duration::from_micros(u64::MAX)),
            (BadProvisioning::LongestWindow, |p| p.channels[0].lock_delay = Duration::from_micros(u64::MAX)),
            (BadProvisioning::SafeValue, |p| p.outputs[2].safe = 2),
            (BadProvisioning::SafeValue, |p| p.outputs[2].min = 3),
            (BadProvisioning::MorePower, |p| p.outputs[2].safe = 1),
            (BadProvisioning::MorePower, |p| p.outputs[1].powered = false),
            (BadProvisioning::Floor, |p| p.channels[0].floor = (1 << 63) - 1),
            (BadProvisioning::Epoch, |p| p.channels[0].epoch = Epoch(u32::MAX)),
        ];
        for (wrong, spoil) in cases {
            let mut gate = example();
            spoil(&mut gate);
            assert_eq!(gate.check(), Err(wrong));
        }
    }

    #[test]
    fn a_safe_value_needs_the_explicit_yes_where_some_command_is_less_power() {
        let fan = |min, max, safe| OutputConfig { min, max, safe, ..OutputConfig::switch() }.check();
        assert_eq!(fan(30, 100, 30), Ok(()), "no command is less");
        assert_eq!(fan(30, 100, 31), Err(BadProvisioning::MorePower));
        assert_eq!(fan(-100, -30, -30), Ok(()));
        assert_eq!(fan(-100, 100, -1), Err(BadProvisioning::MorePower));
    }
}
