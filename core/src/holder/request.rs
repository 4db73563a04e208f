//! Requests to the coordinator are numbered, so that a late or repeated answer is known for what it is.

use crate::{Duration, Instant};

/// The number of one acquire or renewal. It belongs to one sending: a second try is a second request.
///
/// Every [`Holder`](crate::Holder) counts from 1, a restarted process's too: an answer must reach the instance that has
/// asked, over a connection of its own or with the instance's name in it, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Request(u64);

impl Request {
    /// The request of this number, as an answer names it.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number, for a protocol that carries it.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A request that has gone out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Sent {
    request: Request,
    at: Instant,
    /// Whether the caller has said when; it says so once, since an answer might be to the first sending.
    told: bool,
}

/// The latest requests that have no answer yet. The answer to an older one counts for nothing, which is the safe side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) struct Unanswered([Option<Sent>; Self::KEPT]);

impl Unanswered {
    /// How many are kept. At three heartbeats a TTL a window has room for three requests and one more on its edge.
    const KEPT: usize = 4;

    pub(super) const fn new() -> Self {
        Self([None; Self::KEPT])
    }

    pub(super) fn push(&mut self, request: Request, at: Instant) {
        let [a, b, c, _] = self.0;
        self.0 = [Some(Sent { request, at, told: false }), a, b, c];
    }

    /// Whether this is the latest request, and still without an answer.
    pub(super) fn is_latest(&self, request: Request) -> bool {
        self.0[0].is_some_and(|sent| sent.request == request)
    }

    /// Moves the sending of a request to `now`, the first time that the caller says so.
    pub(super) fn tell(&mut self, request: Request, now: Instant) -> bool {
        let untold = self.0.iter_mut().flatten().find(|sent| sent.request == request && !sent.told);
        untold.map(|sent| (sent.at, sent.told) = (now, true)).is_some()
    }

    /// Takes out one request: when it was sent.
    pub(super) fn take(&mut self, request: Request) -> Option<Instant> {
        let slot = self.0.iter_mut().find(|slot| slot.is_some_and(|sent| sent.request == request))?;
        slot.take().map(|sent| sent.at)
    }

    /// Takes out one request and all before it, whose answers then come too late to count.
    pub(super) fn take_up_to(&mut self, request: Request) -> Option<Instant> {
        let at = self.0.iter().flatten().find(|sent| sent.request == request)?.at;
        for slot in &mut self.0 {
            *slot = slot.filter(|sent| sent.request > request);
        }
        Some(at)
    }

    pub(super) fn forget(&mut self) {
        *self = Self::new();
    }
}

/// A pause of more than half of `longest` and at most the whole, spread by the caller's random number:
/// longest − ⌊⌊longest/2⌋·random/2³²⌋, exact in 64 bits.
pub(super) const fn jitter(longest: Duration, random: u32) -> Duration {
    let half = longest.as_micros() / 2;
    let (high, low, random) = (half >> 32, half & 0xFFFF_FFFF, random as u64);
    longest.less(Duration::from_micros(high * random + ((low * random) >> 32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_micros;
    const R: fn(u64) -> Request = Request::from_number;

    fn three() -> Unanswered {
        let mut unanswered = Unanswered::new();
        (1..=3).for_each(|n| unanswered.push(R(n), AT(n * 10)));
        unanswered
    }

    #[test]
    fn an_answer_counts_once_and_from_its_own_sending() {
        let mut unanswered = three();
        assert_eq!(unanswered.take(R(2)), Some(AT(20)));
        assert_eq!(unanswered.take(R(2)), None);
        assert_eq!(unanswered.take(R(1)), Some(AT(10)));
        assert_eq!(unanswered.take(R(7)), None);
    }

    #[test]
    fn an_answer_overtakes_those_before_it() {
        let mut unanswered = three();
        assert_eq!(unanswered.take_up_to(R(2)), Some(AT(20)));
        assert_eq!(unanswered.take_up_to(R(1)), None);
        assert_eq!(unanswered.take_up_to(R(3)), Some(AT(30)));
        assert_eq!(unanswered, Unanswered::new());
    }

    #[test]
    fn a_number_travels() {
        assert_eq!((R(7), R(7).number()), (Request::from_number(7), 7));
    }

    #[test]
    fn the_oldest_of_five_is_forgotten() {
        let mut unanswered = three();
        unanswered.push(R(4), AT(40));
        unanswered.push(R(5), AT(50));
        assert_eq!(unanswered.take(R(1)), None);
        assert_eq!(unanswered.take(R(2)), Some(AT(20)));
        assert!(unanswered.is_latest(R(5)) && !unanswered.is_latest(R(4)));
    }

    #[test]
    fn a_sending_is_told_once() {
        let mut unanswered = three();
        assert!(unanswered.tell(R(3), AT(33)));
        assert!(!unanswered.tell(R(3), AT(39)), "an answer might be to the first");
        assert_eq!(unanswered.take(R(3)), Some(AT(33)));
        assert!(!unanswered.tell(R(3), AT(40)));
    }

    #[test]
    fn jitter_spreads_over_the_upper_half() {
        for us in [0, 1, 2, 3, 1_000, 1 << 33, u64::MAX] {
            let longest = Duration::from_micros(us);
            for random in [0, 1, 1 << 31, u32::MAX] {
                let expected = us - u64::try_from((u128::from(us / 2) * u128::from(random)) >> 32).unwrap();
                assert_eq!(jitter(longest, random).as_micros(), expected);
                assert!(jitter(longest, random).as_micros() >= us.div_ceil(2));
            }
        }
    }
}
