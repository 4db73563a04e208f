//! A gate's client: the wire's state machine over a line, timed by the boot-time clock.

use crate::clock;
use crate::transport::Line;
use fencegate::{Deadline, Duration, Epoch, FenceRecord, Instant, Token};
use fencegate_wire::{
    ChannelStatus, Client, Counters, Credential, Deframer, Event, Failure, Fault, Framed, GateId, Operation, Output,
    Provisioning, Refused, Reply, Request, Timing, Values, Version,
};
use std::fmt;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Why a call has no answer that can be used.
#[derive(Debug)]
pub enum CallError {
    /// Nobody answered in time. Whether the gate did what was asked is not known.
    NoAnswer,
    /// Answers came, and none was authentic. Whether the gate did what was asked is not known.
    NotAuthentic,
    /// The line broke before an answer came. Whether the gate did what was asked is not known.
    Line(io::Error),
    /// The gate refused.
    Refused(Refused),
    /// The answer is authentic and answers something else: the gate speaks another version.
    Unexpected,
    /// The request does not fit a frame.
    TooLong,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer => f.write_str("no answer in time"),
            Self::NotAuthentic => f.write_str("the answer is not authentic"),
            Self::Line(error) => write!(f, "the line broke: {error}"),
            Self::Refused(refused) => write!(f, "refused: {}", refused.reason.as_str()),
            Self::Unexpected => f.write_str("the answer is none to what was asked"),
            Self::TooLong => f.write_str("the request does not fit a frame"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Line(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoAnswer => Self::NoAnswer,
            Failure::NotAuthentic => Self::NotAuthentic,
            Failure::TooLong => Self::TooLong,
        }
    }
}

/// What a gate answers to something that it has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Where the channel's fence stands now.
    pub record: FenceRecord,
    /// What is left of the window on the gate's clock; zero unless driven.
    pub window_left: Duration,
}

/// All that a gate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Which gate.
    pub gate: GateId,
    /// Its firmware's version.
    pub firmware: Version,
    /// How often it has booted.
    pub boots: u32,
    /// How many of its records had to be mended from their other copy at this boot.
    pub mended: u8,
    /// Its channels, in order.
    pub channels: Vec<ChannelStatus>,
    /// How often it gave each reason, and how often it had to stay silent.
    pub counters: Counters,
    /// What keeps the whole gate in its safe state.
    pub fault: Option<Fault>,
}

/// One host's conversation with a gate, one call after the other.
///
/// Every call ends by its `give_up`, an instant of [`clock`]. One that is dropped half-way may leave part of a frame
/// on the line, which the next one's first byte ends.
#[derive(Debug)]
pub struct GateClient<L> {
    gate: GateId,
    client: Client,
    line: L,
    deframer: Deframer,
}

impl<L: Line> GateClient<L> {
    /// Speaks as `credential` says over `line`.
    ///
    /// # Errors
    /// Where the system has no random numbers for the nonces.
    pub fn new(line: L, credential: Credential) -> io::Result<Self> {
        Self::with_timing(line, credential, Timing::default())
    }

    /// The same for a line, or a gate, that wants more patience or less.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_timing(line: L, credential: Credential, timing: Timing) -> io::Result<Self> {
        let gate = credential.gate;
        let client = Client::new(credential, getrandom::u64()?, timing);
        Ok(Self { gate, client, line, deframer: Deframer::new() })
    }

    /// The line, for another to speak on.
    pub fn into_line(self) -> L {
        self.line
    }

    /// Asks for one thing. A refusal is a reply.
    ///
    /// # Errors
    /// Every [`CallError`] but `Refused` and `Unexpected`.
    pub async fn call(&mut self, operation: Operation, give_up: Deadline) -> Result<Reply, CallError> {
        self.client.begin(operation, give_up);
        loop {
            let io = match self.client.poll(clock::now()) {
                Output::Send(frame) => {
                    let left = give_up.left(clock::now());
                    // Out of time with the frame half written, the next poll says so.
                    timeout(left.into(), send(&mut self.line, &frame)).await.unwrap_or(Ok(()))
                }
                Output::Wait(until) => self.listen(until).await,
                Output::Done(reply) => return Ok(reply),
                Output::Failed(failure) => return Err(failure.into()),
                Output::Idle => return Err(CallError::NoAnswer),
            };
            if let Err(broken) = io {
                // No more will come: as it would end if time were up.
                return match self.client.poll(give_up.instant()) {
                    Output::Failed(Failure::NotAuthentic) => Err(CallError::NotAuthentic),
                    _ => Err(CallError::Line(broken)),
                };
            }
        }
    }

    /// Takes what the line brings, or waits until `until`: never long, since an unanswered frame is soon sent again,
    /// so that a machine that slept finds out soon.
    async fn listen(&mut self, until: Instant) -> io::Result<()> {
        let mut bytes = [0; 1_024];
        let left = Deadline::at(until).left(clock::now());
        let Ok(read) = timeout(left.into(), self.line.read(&mut bytes)).await else { return Ok(()) };
        let received = clock::now();
        match bytes.get(..read?) {
            None | Some([]) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other end closed it")),
            Some(bytes) => bytes.iter().for_each(|byte| {
                if let Some(Framed::Frame(frame)) = self.deframer.push(*byte) {
                    self.client.receive(received, frame);
                }
            }),
        }
        Ok(())
    }

    /// Calls, and takes a refusal for an error.
    async fn ask(&mut self, operation: Operation, give_up: Deadline) -> Result<Reply, CallError> {
        match self.call(operation, give_up).await? {
            Reply::Refused(refused) => Err(CallError::Refused(refused)),
            reply => Ok(reply),
        }
    }

    async fn done(&mut self, operation: Operation, give_up: Deadline) -> Result<Done, CallError> {
        match self.ask(operation, give_up).await? {
            Reply::Done { record, window_left } => Ok(Done { record, window_left }),
            _ => Err(CallError::Unexpected),
        }
    }

    /// The state of the gate and of every channel: one call each, so that a change may fall between two.
    pub async fn status(&mut self, give_up: Deadline) -> Result<Status, CallError> {
        let Reply::Status(gate) = self.ask(Operation::new(Request::Status), give_up).await? else {
            return Err(CallError::Unexpected);
        };
        let mut channels = Vec::new();
        for channel in 0..gate.channels {
            channels.push(self.channel(channel, give_up).await?);
        }
        let Reply::Counters(counters) = self.ask(Operation::new(Request::Counters), give_up).await? else {
            return Err(CallError::Unexpected);
        };
        Ok(Status {
            gate: self.gate,
            firmware: gate.firmware,
            boots: gate.boots,
            mended: gate.mended,
            channels,
            counters,
            fault: gate.fault,
        })
    }

    /// The state of one channel.
    pub async fn channel(&mut self, channel: u8, give_up: Deadline) -> Result<ChannelStatus, CallError> {
        match self.ask(Operation::new(Request::Channel { channel }), give_up).await? {
            Reply::Channel(status) => Ok(status),
            _ => Err(CallError::Unexpected),
        }
    }

    /// What the gate still remembers of the last things that happened to it, from event number `from` on, in order.
    /// Numbers that are missing were overwritten; they begin again with a boot.
    pub async fn log(&mut self, mut from: u32, give_up: Deadline) -> Result<Vec<Event>, CallError> {
        let mut events = Vec::new();
        loop {
            let Reply::Log(some) = self.ask(Operation::new(Request::Log { from }), give_up).await? else {
                return Err(CallError::Unexpected);
            };
            for event in &some {
                // A gate that counts otherwise would keep us here for ever.
                if event.number < from {
                    return Err(CallError::Unexpected);
                }
                events.push(*event);
                match event.number.checked_add(1) {
                    Some(next) => from = next,
                    None => return Ok(events),
                }
            }
            if some.is_empty() {
                return Ok(events);
            }
        }
    }

    /// Raises the channel's fence to the credential's holder's stamp.
    pub async fn raise(
        &mut self,
        channel: u8,
        (epoch, token): (Epoch, Token),
        give_up: Deadline,
    ) -> Result<Done, CallError> {
        self.done(Operation::new(Request::Raise { channel, epoch, token }), give_up).await
    }

    /// Drives the channel's outputs, raising its fence first where the stamp is higher, until `end`: that is the end
    /// of the holder's lease window on [`clock`], whose whole length is `window`.
    pub async fn drive(
        &mut self,
        channel: u8,
        stamp: (Epoch, Token),
        values: Values,
        (end, window): (Deadline, Duration),
        give_up: Deadline,
    ) -> Result<Done, CallError> {
        self.done(Operation::drive(channel, stamp, values, end, window), give_up).await
    }

    /// Lets go of the channel's outputs and gives the stamp back for good.
    pub async fn release(
        &mut self,
        channel: u8,
        (epoch, token): (Epoch, Token),
        give_up: Deadline,
    ) -> Result<Done, CallError> {
        self.done(Operation::new(Request::Release { channel, epoch, token }), give_up).await
    }

    /// Asks for a lease of `ttl` on a channel that is its own authority. Its stamp is in the answer; it runs from when
    /// the gate took the request, and so no earlier than from when that was sent.
    pub async fn acquire(&mut self, channel: u8, ttl: Duration, give_up: Deadline) -> Result<Done, CallError> {
        self.done(Operation::new(Request::Acquire { channel, ttl }), give_up).await
    }

    /// Renews a lease that the channel itself has granted: for its TTL from now.
    pub async fn renew(
        &mut self,
        channel: u8,
        (epoch, token): (Epoch, Token),
        give_up: Deadline,
    ) -> Result<Done, CallError> {
        self.done(Operation::new(Request::Renew { channel, epoch, token }), give_up).await
    }

    /// Lets the channel be driven again after a fault, or after its window's end where it was provisioned so
    /// (operator).
    pub async fn rearm(&mut self, channel: u8, give_up: Deadline) -> Result<Done, CallError> {
        self.done(Operation::new(Request::Rearm { channel }), give_up).await
    }

    /// Makes the gate what `provisioning` says, piece by piece (operator, or a blank board's factory key). It then
    /// restarts, and answers to the new keys alone.
    pub async fn provision(&mut self, provisioning: &Provisioning, give_up: Deadline) -> Result<(), CallError> {
        for request in provisioning.requests() {
            match self.ask(Operation::new(request), give_up).await? {
                Reply::Provisioned => {}
                _ => return Err(CallError::Unexpected),
            }
        }
        Ok(())
    }

    /// Moves the channel's epoch (operator): its tokens must exceed `floor` afterwards.
    pub async fn epoch(&mut self, channel: u8, epoch: Epoch, floor: u64, give_up: Deadline) -> Result<Done, CallError> {
        self.done(Operation::new(Request::Epoch { channel, epoch, floor }), give_up).await
    }
}

async fn send(line: &mut impl Line, frame: &[u8]) -> io::Result<()> {
    line.write_all(frame).await?;
    line.flush().await
}
