//! A host that speaks with a gate itself, and keeps every frame that it has sent.

use fencegate_host::clock;
use fencegate_host::fencegate::{Deadline, Duration, Epoch, Token};
use fencegate_host::wire::{
    Answer, Client, Credential, Deframer, Failure, Framed, Operation, Output, Reason, Reply, Request, Timing,
    Unverified, Values,
};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// How long a call may take, tries and all.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a host speaks on.
pub(crate) trait Line: Read + Write + Send + std::fmt::Debug {
    /// Lets the next read give up after so long.
    fn patience(&self, patience: std::time::Duration) -> io::Result<()>;
}

impl Line for TcpStream {
    fn patience(&self, patience: std::time::Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))
    }
}

impl Line for UnixStream {
    fn patience(&self, patience: std::time::Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))
    }
}

/// A host and its line.
#[derive(Debug)]
pub struct Host {
    line: Box<dyn Line>,
    client: Client,
    credential: Credential,
    deframer: Deframer,
    /// Every frame that was sent, repetitions too.
    pub said: Vec<Vec<u8>>,
    /// How many frames came back that were for somebody else, or were garbled.
    pub strange: usize,
    /// When the window ends that the last answer spoke of, in microseconds of the gate's clock.
    pub end: Option<u64>,
}

impl Host {
    pub(crate) fn new(address: &str, credential: Credential) -> Self {
        let line = TcpStream::connect(address).unwrap();
        line.set_nodelay(true).unwrap();
        Self::at(Box::new(line), credential)
    }

    pub(crate) fn at(line: Box<dyn Line>, credential: Credential) -> Self {
        let nonce = clock::now().as_micros() << 20; // never the same within a test
        let client = Client::new(credential.clone(), nonce, Timing::default());
        Self { line, client, credential, deframer: Deframer::new(), said: Vec::new(), strange: 0, end: None }
    }

    /// Asks for one thing and waits for the reply.
    ///
    /// # Errors
    /// Where there is none, the line's end among it.
    ///
    /// # Panics
    /// Where the clock is at its end.
    pub fn call(&mut self, operation: Operation) -> Result<Reply, Failure> {
        self.client.begin(operation, Deadline::after(clock::now(), PATIENCE).unwrap());
        loop {
            match self.client.poll(clock::now()) {
                Output::Send(frame) => {
                    self.said.push(frame.to_vec());
                    self.line.write_all(&frame).map_err(|_| Failure::NoAnswer)?;
                }
                Output::Wait(until) => {
                    let left = Deadline::at(until).left(clock::now()).max(Duration::from_millis(1));
                    self.line.patience(left.into()).map_err(|_| Failure::NoAnswer)?;
                    self.listen()?;
                }
                Output::Done(reply) => return Ok(reply),
                Output::Failed(failure) => return Err(failure),
                Output::Idle => return Err(Failure::NoAnswer),
            }
        }
    }

    fn listen(&mut self) -> Result<(), Failure> {
        let mut bytes = [0; 1_024];
        let read = match self.line.read(&mut bytes) {
            Ok(0) => return Err(Failure::NoAnswer),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(()),
            Err(_) => return Err(Failure::NoAnswer),
        };
        let received = clock::now();
        for byte in &bytes[..read] {
            if let Some(Framed::Frame(frame)) = self.deframer.push(*byte) {
                let mut bytes = frame.to_vec();
                let answer =
                    Unverified::read(&mut bytes).ok().and_then(|answer| answer.verify(&self.credential.keys.answer));
                self.strange += usize::from(answer.is_none());
                let answer = answer.and_then(|answer| answer.body::<Answer>());
                // An answer carries a challenge of the instant at which it was made.
                if let Some(Answer { challenge, reply: Reply::Done { window_left, .. } }) = answer {
                    self.end = Some(challenge.tick + window_left.as_micros());
                }
                self.client.receive(received, frame);
            }
        }
        Ok(())
    }

    /// Seals a request with the challenge that the last answer brought, and does not send it.
    ///
    /// # Panics
    /// Where there is no such challenge, or it is too old.
    pub fn seal(&mut self, operation: Operation) -> Vec<u8> {
        self.client.begin(operation, Deadline::after(clock::now(), PATIENCE).unwrap());
        match self.client.poll(clock::now()) {
            Output::Send(frame) => frame.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    /// Sends bytes, whatever they are.
    ///
    /// # Panics
    /// Where the line is broken.
    pub fn send(&mut self, bytes: &[u8]) {
        self.line.write_all(bytes).unwrap();
    }

    /// Raises the fence to a token; what is refused, and `None` where that cannot be known.
    ///
    /// # Panics
    /// Where the token is none.
    pub fn raise(&mut self, channel: u8, token: u64) -> Option<Result<(), Reason>> {
        let token = Token::new(token).unwrap();
        self.outcome(Operation::new(Request::Raise { channel, epoch: Epoch(0), token }))
    }

    /// Drives the channel's only output for at most so long from now.
    ///
    /// # Panics
    /// Where the token is none.
    pub fn drive(&mut self, channel: u8, token: u64, value: i32, window: Duration) -> Option<Result<(), Reason>> {
        self.outcome(drive(channel, token, value, window))
    }

    fn outcome(&mut self, operation: Operation) -> Option<Result<(), Reason>> {
        match self.call(operation).ok()? {
            Reply::Done { .. } => Some(Ok(())),
            Reply::Refused(refused) => Some(Err(refused.reason)),
            other => panic!("{other:?}"),
        }
    }
}

/// To drive the channel's only output for at most so long from now.
///
/// # Panics
/// Where the token is none.
pub fn drive(channel: u8, token: u64, value: i32, window: Duration) -> Operation {
    let stamp = (Epoch(0), Token::new(token).unwrap());
    let values: Values = [value].into_iter().collect();
    Operation::drive(channel, stamp, values, Deadline::after(clock::now(), window).unwrap(), window)
}
