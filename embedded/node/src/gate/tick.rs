//! What happens without a request: time passes, and inputs change.

use super::{Gate, LATCH_AGAIN, LATCH_FAILURES};
use crate::Stored;
use crate::channel::Wanted;
use crate::entry::Entry;
use crate::inputs::Inputs;
use crate::latched::Latched;
use crate::line::on_its_way;
use crate::store::StoreError;
use fencegate::{Deadline, Duration, Instant};
use fencegate_wire::{Cause, ChannelState, Fault, OutputConfig, What};

/// How often an output on its way to its safe value is set, and contacts and the inhibit are looked at, while it matters.
const BEAT: Duration = Duration::from_millis(10);

impl Gate {
    /// Takes the inputs' levels, lets go of every channel whose window is over at `now`, and says when to call again at
    /// the latest.
    pub fn poll(&mut self, now: Instant, inputs: Inputs) -> Option<Instant> {
        if self.clock.read(now).is_err() && self.fault.is_none() {
            self.fault = Some(Fault::Clock);
            self.log.write(now, None, What::Fault { fault: Fault::Clock });
        }
        self.sense(now, inputs);
        for n in 0..self.channels.len() {
            self.settle(now, n);
        }
        self.watch_contacts(now);
        self.next(now)
    }

    /// Whether nothing is driven, or on its way to its safe state.
    pub(crate) fn is_safe(&self) -> bool {
        self.channels.iter().all(|channel| !channel.is_driven() && !channel.is_letting_go())
    }

    /// An inhibit makes everything safe, and uses up every challenge: no command from before it is done after it.
    fn sense(&mut self, now: Instant, inputs: Inputs) {
        let inhibited = inputs.inhibit && !self.inputs.inhibit;
        self.inputs = inputs;
        if inhibited {
            self.challenger.void();
            self.log.write(now, None, What::Fault { fault: Fault::Inhibited });
        }
        if inputs.inhibit {
            for channel in &mut self.channels {
                channel.let_go(now, Cause::Fault);
                if channel.fault != Some(Fault::Feedback) {
                    channel.hold(Fault::Inhibited, self.challenger.last());
                }
                channel.rearming = false;
            }
        }
    }

    /// Lets a channel go whose window is over, and sets its outputs.
    fn settle(&mut self, now: Instant, n: usize) {
        let Some(channel) = self.channels.get_mut(n) else { return };
        let number = u8::try_from(n).ok();
        if self.fault.is_some() {
            channel.drop();
        }
        if channel.expire(now) {
            let rearm = self.config.channels.get(n).is_some_and(|config| config.rearm_after_window);
            if rearm && channel.fault.is_none() {
                channel.hold(Fault::Expired, self.challenger.last());
            }
            self.log.write(now, number, What::Ended);
        } else if channel.warn(now, self.config.gate.warning) {
            self.log.write(now, number, What::Warned);
        }
        for (i, at) in self.config.span(n).enumerate() {
            if let (Some(config), Some(line)) = (self.config.outputs.get(at), self.lines.get_mut(at)) {
                let value = match channel.wanted(i) {
                    Wanted::Safe => config.safe,
                    Wanted::Value(value) => value,
                    Wanted::From(from, since) => {
                        on_its_way(config, from, now.since(since).unwrap_or(config.action.time()))
                    }
                };
                line.set(config, value, now);
            }
        }
    }

    /// A contact that does not follow its output is a fault of its channel.
    fn watch_contacts(&mut self, now: Instant) {
        for n in 0..self.channels.len() {
            let astray = self.is_astray(n, now);
            let Some(channel) = self.channels.get_mut(n) else { return };
            channel.takes_contacts(astray, self.challenger.last());
            if astray && channel.fault != Some(Fault::Feedback) {
                channel.let_go(now, Cause::Fault);
                channel.hold(Fault::Feedback, self.challenger.last());
                self.log.write(now, u8::try_from(n).ok(), What::Fault { fault: Fault::Feedback });
                self.settle(now, n);
                // Let go of, they may have their time again: that began with this fault, and not at the next look.
                let astray = self.is_astray(n, now);
                let Some(channel) = self.channels.get_mut(n) else { return };
                channel.takes_contacts(astray, self.challenger.last());
            }
        }
    }

    /// Whether a contact behind an output of this channel has not followed for too long.
    pub(super) fn is_astray(&mut self, n: usize, now: Instant) -> bool {
        let mut any = false;
        for at in self.config.span(n) {
            if let (Some(config), Some(line)) = (self.config.outputs.get(at), self.lines.get_mut(at)) {
                any |= line.follow(config, self.inputs.is_closed(at), now);
            }
        }
        any
    }

    /// What the flash does not know of the faults that hold channels until they are rearmed: what a reset would forget.
    pub(crate) fn unlatched(&self) -> Option<Latched> {
        let next = self.latched.next(self.channels.iter().map(|channel| channel.fault))?;
        (self.unsure || !next.says(self.latched)).then_some(next)
    }

    /// The same, to be stored now, unless that would delay another channel's dead man's switch: then it is waited for, as for
    /// any store. Come back with it to [`Self::latched`].
    pub fn latch(&mut self, now: Instant) -> Option<Entry> {
        let latched = self.unlatched()?;
        // A flash that fails is not worn out by trying again and again, and for its sake nobody is kept from driving.
        let left_alone = self.latch_again.is_some_and(|until| !until.is_over(now)) || self.mends && !self.is_safe();
        (!left_alone && self.not_busy(now, None).is_ok()).then_some(Entry::Latched(latched))
    }

    /// Takes what [`Self::latch`] asked for with the evidence that it is stored; whether it is.
    pub fn latched(&mut self, now: Instant, stored: Result<Stored, StoreError>) -> bool {
        self.takes(&stored);
        let latched = stored.ok().and_then(|stored| stored.latched());
        self.unsure = latched.is_none();
        if let Some(latched) = latched {
            (self.latched, self.latch_again, self.latch_failures) = (latched, None, 0);
        } else {
            // Either copy may have it. What is stored next comes after it.
            self.latched.serial = self.latched.serial.saturating_add(1);
            let pause = LATCH_AGAIN.as_micros() << self.latch_failures;
            self.latch_again = Deadline::after(now, Duration::from_micros(pause));
            self.latch_failures = (self.latch_failures + 1).min(LATCH_FAILURES);
            self.challenger.void();
            self.log.write(now, None, What::Fault { fault: Fault::Storage });
        }
        latched.is_some()
    }

    /// Takes whether a store has failed half-way, the store's own of its boots among them: then the next one mends first, and of
    /// a provisioning that is under way it knows nothing any more.
    pub(crate) fn takes<T>(&mut self, stored: &Result<T, StoreError>) {
        self.mends = matches!(stored, Err(StoreError::Flash | StoreError::ReadBack));
        if self.mends {
            (self.staged.outputs, self.staged.channels) = (0, 0);
        }
    }

    /// When to call again at the latest.
    fn next(&self, now: Instant) -> Option<Instant> {
        let moving = self.channels.iter().any(|channel| channel.deadline().is_some());
        let contacts = self.config.outputs.iter().any(|output| output.feedback.is_some());
        let beat = (moving || contacts).then(|| now.checked_add(BEAT)).flatten();
        let warning = self.config.gate.warning;
        let channels = self.channels.iter().flat_map(|channel| [channel.deadline(), channel.warning(warning)]);
        channels.chain([beat]).flatten().min()
    }

    /// Until when each output may have its value, in their order on the board, where the board's hardware sees to that
    /// ([`Output::DROPS`](crate::Output::DROPS)); `None` where nothing ends, or only a processor can end it: an output whose
    /// safe value is not 0, or that has a way to go there.
    pub fn ends(&self) -> impl Iterator<Item = Option<Instant>> + '_ {
        self.channels.iter().enumerate().flat_map(|(n, channel)| {
            let end = channel.deadline().filter(|_| channel.is_driven() && self.board.drops);
            self.config.outputs_of(n).iter().map(move |output| end.filter(|_| falls(output)))
        })
    }

    /// Whether the end of this channel's window needs no processor.
    pub(super) fn drops(&self, n: usize) -> bool {
        self.board.drops && self.config.outputs_of(n).iter().all(falls)
    }

    /// By when a hang must be over; `None` where every channel has its safe values. It is the first channel's deadline and
    /// the lateness, and a store more for a channel whose end needs no processor: there the reset is the second thing that
    /// ends it.
    pub fn hang_by(&self) -> Option<Instant> {
        let ends = self.channels.iter().enumerate().filter_map(|(n, channel)| {
            let end = channel.deadline()?;
            let store = if self.drops(n) { self.board.worst_store } else { Duration::ZERO };
            let end = end.checked_add(self.lateness()).and_then(|end| end.checked_add(store));
            Some(end.unwrap_or(Instant::from_micros(u64::MAX)))
        });
        ends.min()
    }

    /// What a lamp on the board shows: a fault of any channel first, then that one is driven.
    pub fn shows(&self) -> ChannelState {
        if self.status().fault.is_some() {
            return ChannelState::Fault;
        }
        let states = self.channels.iter().map(|channel| channel.state(None).0);
        states.fold(ChannelState::Safe, |shown, state| match (shown, state) {
            (ChannelState::Fault, _) | (_, ChannelState::Fault) => ChannelState::Fault,
            (ChannelState::Driven, _) | (_, ChannelState::Driven) => ChannelState::Driven,
            (ChannelState::Safe, ChannelState::Safe) => ChannelState::Safe,
        })
    }
}

/// Whether an output is safe once it is 0, at once.
fn falls(output: &OutputConfig) -> bool {
    output.safe == 0 && output.action.time().is_zero()
}
