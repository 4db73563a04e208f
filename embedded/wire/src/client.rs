//! The client's half of a conversation, without I/O: ask [`Client::poll`] what to do, tell it what came.
//!
//! A request that changes state needs a challenge: the client asks for one unless the last answer brought it, seals
//! what is left of the window *when that challenge arrived*, and repeats the identical frame until it is answered: a
//! gate answers a repetition again and never does it again. A gate that is `busy`, or that has rebooted since the
//! challenge, is asked again with the challenge of its refusal and the window reckoned anew.

use crate::frame::Frame;
use crate::message::{Answer, Challenge, Reason, Refused, Reply, Request, Sealed, Values};
use crate::seal::{Credential, Header, Nonce, Unverified, seal};
use fencegate::{Deadline, Duration, Epoch, Instant, Token};

/// How patient a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// After how long without an answer the same frame is sent again.
    pub resend: Duration,
    /// How long to leave a busy gate alone.
    pub busy: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { resend: Duration::from_millis(250), busy: Duration::from_millis(50) }
    }
}

/// What a host wants of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    request: Request,
    window: Option<(Deadline, Duration)>,
}

impl Operation {
    /// An operation without a window.
    pub const fn new(request: Request) -> Self {
        Self { request, window: None }
    }

    /// Drives a channel until `deadline`, the end of the holder's lease window on the host's clock, whose whole
    /// length is `window`.
    pub fn drive(
        channel: u8,
        (epoch, token): (Epoch, Token),
        values: Values,
        deadline: Deadline,
        window: Duration,
    ) -> Self {
        let request = Request::Drive { channel, epoch, token, window, values };
        Self { request, window: Some((deadline, window)) }
    }

    /// The request, with what is left of its window when the challenge was received.
    fn request_at(&self, received: Instant) -> Request {
        let mut request = self.request.clone();
        if let (Request::Drive { window, .. }, Some((deadline, whole))) = (&mut request, self.window) {
            *window = deadline.left(received).min(whole);
        }
        request
    }
}

/// What the client wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Output {
    /// Put this onto the line, then poll again.
    Send(Frame),
    /// Nothing to do before this instant, unless something is received.
    Wait(Instant),
    /// The operation is over: the gate's reply, proven.
    Done(Reply),
    /// The operation failed.
    Failed(Failure),
    /// There is no operation.
    Idle,
}

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answered in time.
    NoAnswer,
    /// Answers came in time, and none was authentic.
    NotAuthentic,
    /// The request does not fit a frame, or the clock went past its end.
    TooLong,
}

#[derive(Debug)]
enum Phase {
    /// No operation.
    Idle,
    /// A frame is to be sent; then its answer is awaited.
    Send { frame: Frame, sealed: Option<Challenge> },
    /// Awaiting the answer to `frame`, which is sent again at `again`.
    Await { frame: Frame, sealed: Option<Challenge>, again: Instant },
    /// Leaving a busy gate alone; where time is up first, its refusal is the answer.
    Pause { until: Instant, refused: Refused },
    /// Over.
    Over(Result<Reply, Failure>),
}

/// One host's half of its conversation with a gate.
#[derive(Debug)]
pub struct Client {
    credential: Credential,
    timing: Timing,
    /// Counts up from a random start, so that no nonce comes twice.
    nonce: u64,
    /// The last challenge, and when it was received.
    challenge: Option<(Challenge, Instant)>,
    operation: Option<Operation>,
    give_up: Deadline,
    /// How often the operation's challenge was refused, so far.
    replays: u8,
    forged: bool,
    phase: Phase,
}

/// How often an operation is tried again with a new challenge: other hosts may go on using newer ones first.
const REPLAYS: u8 = 8;

impl Client {
    /// A client that speaks with `credential`. `random` comes from a good random source and is never used twice.
    pub const fn new(credential: Credential, random: u64, timing: Timing) -> Self {
        Self {
            credential,
            timing,
            nonce: random,
            challenge: None,
            operation: None,
            give_up: Deadline::at(Instant::from_micros(0)),
            replays: 0,
            forged: false,
            phase: Phase::Idle,
        }
    }

    /// Begins an operation, which ends one way or the other by `give_up`. An unfinished one is forgotten.
    pub fn begin(&mut self, operation: Operation, give_up: Deadline) {
        self.give_up = give_up;
        self.forged = false;
        self.replays = 0;
        self.operation = Some(operation);
        self.next_request();
    }

    /// What to do at `now`.
    pub fn poll(&mut self, now: Instant) -> Output {
        if self.give_up.is_over(now) && !matches!(self.phase, Phase::Idle | Phase::Over(_)) {
            self.phase = Phase::Over(match self.phase {
                Phase::Pause { refused, .. } => Ok(Reply::Refused(refused)),
                _ if self.forged => Err(Failure::NotAuthentic),
                _ => Err(Failure::NoAnswer),
            });
        }
        match core::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => Output::Idle,
            Phase::Over(Ok(reply)) => Output::Done(reply),
            Phase::Over(Err(failure)) => Output::Failed(failure),
            Phase::Pause { until, .. } if now >= until => {
                self.next_request();
                self.poll(now)
            }
            Phase::Pause { until, refused } => {
                self.phase = Phase::Pause { until, refused };
                Output::Wait(until.min(self.give_up.instant()))
            }
            Phase::Await { frame, sealed, again } if now < again => {
                self.phase = Phase::Await { frame, sealed, again };
                Output::Wait(again.min(self.give_up.instant()))
            }
            Phase::Send { frame, sealed } | Phase::Await { frame, sealed, .. } => {
                let Some(again) = now.checked_add(self.timing.resend) else { return Output::Failed(Failure::TooLong) };
                self.phase = Phase::Await { frame: frame.clone(), sealed, again };
                Output::Send(frame)
            }
        }
    }

    /// Takes a frame off the line, received at `now`. What is not the answer to this client's request is ignored:
    /// several hosts may share the line.
    pub fn receive(&mut self, now: Instant, frame: &mut [u8]) {
        let Phase::Await { sealed, .. } = self.phase else { return };
        let Ok(unverified) = Unverified::read(frame) else { return };
        if *unverified.claim() != self.header().reply() {
            return;
        }
        let Some(verified) = unverified.verify(&self.credential.keys.answer) else {
            self.forged = true;
            return;
        };
        // What a later gate says and this version cannot read is no answer, and no forgery either.
        let Some(Answer { challenge, reply }) = verified.body() else { return };
        self.challenge = Some((challenge, now));
        let asked_for_challenge = sealed.is_none() && self.operation.as_ref().is_some_and(|op| op.request.changes());
        match reply {
            Reply::Challenge if asked_for_challenge => self.next_request(),
            Reply::Refused(refused) if refused.reason == Reason::Busy => {
                self.phase = match now.checked_add(self.timing.busy) {
                    Some(until) => Phase::Pause { until, refused },
                    None => Phase::Over(Err(Failure::TooLong)),
                };
            }
            // The challenge grew old, another host used a newer one first, or the gate has rebooted since.
            Reply::Refused(refused)
                if refused.reason == Reason::Replay
                    && sealed.is_some_and(|old| old != challenge)
                    && self.replays < REPLAYS =>
            {
                self.replays += 1;
                self.next_request();
            }
            reply => {
                self.operation = None;
                self.phase = Phase::Over(Ok(reply));
            }
        }
    }

    /// Seals the next request of the operation: itself where it can be, else one for a challenge.
    fn next_request(&mut self) {
        let Some(operation) = self.operation.as_ref() else { return };
        let (challenge, request) = if operation.request.changes() {
            match self.challenge.take() {
                Some((challenge, received)) => (Some(challenge), operation.request_at(received)),
                None => (None, Request::Challenge),
            }
        } else {
            (None, operation.request.clone())
        };
        self.nonce = self.nonce.wrapping_add(1); // a nonce only has to differ; it wraps after 2⁶⁴ requests
        self.phase = match seal(&self.header(), &self.credential.keys.request, &Sealed { challenge, request }) {
            Ok((frame, _)) => Phase::Send { frame, sealed: challenge },
            Err(_) => Phase::Over(Err(Failure::TooLong)),
        };
    }

    const fn header(&self) -> Header {
        let Credential { gate, role, key_id, .. } = self.credential;
        Header { answer: false, role, key_id, gate, nonce: Nonce(self.nonce.to_le_bytes()) }
    }
}

#[cfg(test)]
mod tests;
