//! The last things that happened: a fixed ring that the operator reads, and the same through `defmt`.

use fencegate::Instant;
use fencegate_wire::{Event, MAX_EVENTS, Reason, What};

/// How many events are kept.
const KEPT: usize = 16;

/// A ring of events. The oldest gives way to the newest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    events: heapless::Deque<Event, KEPT>,
    next: u32,
}

impl Log {
    pub(crate) const fn new() -> Self {
        Self { events: heapless::Deque::new(), next: 0 }
    }

    /// Writes an event down.
    pub(crate) fn write(&mut self, at: Instant, channel: Option<u8>, what: What) {
        let event = Event { number: self.next, at, channel, what };
        #[cfg(feature = "defmt")]
        defmt::info!("{}", event);
        if self.events.is_full() {
            self.events.pop_front();
        }
        let _ = self.events.push_back(event); // there is room
        self.next = self.next.wrapping_add(1); // 2³² events take the flash's lifetime many times over
    }

    /// Writes a refusal down. The same again, one after the other, is one event with a number: a flood of them does not
    /// wash everything else out.
    pub(crate) fn refuse(&mut self, at: Instant, channel: Option<u8>, reason: Reason) {
        if let Some(last) = self.events.back_mut()
            && let What::Refused { reason: before, times } = &mut last.what
            && *before == reason
            && last.channel == channel
        {
            *times = times.saturating_add(1);
            last.at = at;
            return;
        }
        self.write(at, channel, What::Refused { reason, times: 1 });
    }

    /// The first few events from number `from` on.
    pub(crate) fn since(&self, from: u32) -> heapless::Vec<Event, MAX_EVENTS> {
        self.events.iter().filter(|event| event.number >= from).take(MAX_EVENTS).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_a_flood_of_refusals_is_one_event() {
        let mut log = Log::new();
        let at = Instant::from_micros;
        for n in 0..20 {
            log.write(at(n), Some(1), What::Ended);
        }
        for n in 20..30 {
            log.refuse(at(n), Some(0), Reason::Stale);
        }
        log.refuse(at(30), Some(1), Reason::Stale);
        let numbers = |log: &Log, from| log.since(from).iter().map(|event| event.number).collect::<Vec<_>>();
        assert_eq!(numbers(&log, 0), [6, 7, 8], "sixteen are kept");
        assert_eq!(numbers(&log, 20), [20, 21]);
        let flood = log.since(20)[0];
        assert_eq!((flood.at, flood.what), (at(29), What::Refused { reason: Reason::Stale, times: 10 }));
        assert!(numbers(&log, 22).is_empty());
    }
}
