//! What the gates of these tests are provisioned with.

pub(crate) const LATENESS: u64 = 5_000;
pub(crate) const LONGEST: u64 = 2_000_000;
pub(crate) const WORST_STORE: u64 = 20_000;
pub(crate) const BURST: u64 = 3;
pub(crate) const EVERY: u64 = 1_500_000;
pub(crate) const CHANNELS: usize = 3;

/// What a channel is: its authority, its reaction and safe action, its lock delay.
pub(crate) struct Terms {
    pub(crate) own: bool,
    pub(crate) reaction: u64,
    pub(crate) action: u64,
    pub(crate) lock_delay: u64,
    pub(crate) rearm_after_window: bool,
    pub(crate) outputs: &'static [Output],
}

/// What an output is: from 0, which is safe, to `max`. It may keep its value for a while when it is let go of.
pub(crate) struct Output {
    pub(crate) max: i32,
    pub(crate) keep: u64,
    pub(crate) least_on: u64,
    pub(crate) least_off: u64,
    pub(crate) feedback: Option<u64>,
}

const SWITCH: Output = Output { max: 1, keep: 0, least_on: 0, least_off: 0, feedback: None };
const OUTSIDE: Terms =
    Terms { own: false, reaction: 0, action: 0, lock_delay: 0, rearm_after_window: false, outputs: &[SWITCH] };

pub(crate) const TERMS: [Terms; CHANNELS] = [
    Terms {
        reaction: 2_000,
        outputs: &[Output { max: 3, least_on: 30_000, least_off: 20_000, feedback: Some(50_000), ..SWITCH }],
        ..OUTSIDE
    },
    Terms { own: true, lock_delay: 300_000, ..OUTSIDE },
    Terms {
        action: 40_000,
        rearm_after_window: true,
        outputs: &[Output { keep: 40_000, ..SWITCH }, SWITCH],
        ..OUTSIDE
    },
];
