//! A gate: as a resource whose fence is raised, and as the authority of a channel of its own.

use super::{Acquired, Call, Coordinator, CoordinatorError, Grant, RaiseError, Renewed, Resource};
use crate::client::{CallError, Done, GateClient};
use crate::clock;
use crate::transport::{Line, Port};
use fencegate::{Deadline, Duration, Epoch, Stamp, Token};
use fencegate_wire::{Credential, Reason, Refused};
use std::pin::Pin;

/// One channel of a gate, spoken to as one holder. Each call has a connection of its own, as a TCP bridge allows; so does a
/// serial device between two calls.
#[derive(Clone, Debug)]
pub struct GateChannel {
    port: Port,
    credential: Credential,
    channel: u8,
    patience: Duration,
}

impl GateChannel {
    /// The channel at the other end of `port`; each call waits for an answer for `patience`.
    pub fn new(port: Port, credential: Credential, channel: u8, patience: Duration) -> Self {
        Self { port, credential, channel, patience }
    }

    async fn connect(&self) -> Result<(GateClient<Box<dyn Line>>, Deadline), CallError> {
        let give_up = Deadline::after(clock::now(), self.patience).ok_or(CallError::NoAnswer)?;
        let opened = tokio::time::timeout(self.patience.into(), self.port.open()).await;
        let line = opened.map_err(|_| CallError::NoAnswer)?.map_err(CallError::Line)?;
        Ok((GateClient::new(line, self.credential.clone()).map_err(CallError::Line)?, give_up))
    }

    /// How long the gate takes to answer for its channel, asked as often; the first with the connecting.
    ///
    /// # Errors
    /// The first call without an answer, or that was refused.
    pub async fn round_trips(&self, calls: u64) -> Result<Vec<Duration>, CallError> {
        let mut start = clock::start();
        let (mut gate, _) = self.connect().await?;
        let mut trips = Vec::new();
        for _ in 0..calls {
            let give_up = Deadline::after(start, self.patience).ok_or(CallError::NoAnswer)?;
            gate.channel(self.channel, give_up).await?;
            trips.push(clock::now().since(start).unwrap_or_default());
            start = clock::start();
        }
        Ok(trips)
    }

    async fn raise_to(&self, stamp: Stamp) -> Result<(), CallError> {
        let (mut gate, give_up) = self.connect().await?;
        gate.raise(self.channel, (stamp.epoch, stamp.token), give_up).await.map(drop)
    }
}

/// What says to try again: a later answer may be another.
const fn may_pass(reason: Reason) -> bool {
    matches!(reason, Reason::Busy | Reason::Rate | Reason::Replay | Reason::Presence)
}

impl Resource for GateChannel {
    fn raise(&self, stamp: Stamp) -> Pin<Box<dyn Future<Output = Result<(), RaiseError>> + Send + '_>> {
        Box::pin(async move {
            self.raise_to(stamp).await.map_err(|error| match error {
                CallError::Refused(refused) if !may_pass(refused.reason) => {
                    RaiseError::Refused(format!("channel {}: {}", self.channel, beaten(&refused)))
                }
                error => RaiseError::NoAnswer(format!("channel {}: {error}", self.channel)),
            })
        })
    }
}

fn beaten(refused: &Refused) -> String {
    match refused.by.and_then(|by| by.holder.map(|holder| (by, holder))) {
        Some((by, holder)) => {
            format!("{}, it has seen epoch {} token {} of {holder}", refused.reason.as_str(), by.epoch, by.token)
        }
        None => refused.reason.as_str().to_owned(),
    }
}

/// A lease that a gate grants on a channel that is its own authority. Its raise is part of the grant.
#[derive(Clone, Debug)]
pub struct GateLease(pub GateChannel);

fn granted(done: Done) -> Result<(Token, Epoch), CoordinatorError> {
    let token =
        Token::new(done.record.token).ok_or_else(|| CoordinatorError::Unfit("the gate gave no token".into()))?;
    Ok((token, done.record.epoch))
}

fn unanswered(error: CallError) -> CoordinatorError {
    match error {
        CallError::Refused(refused) if !may_pass(refused.reason) => {
            CoordinatorError::Unfit(format!("the gate refused: {}", refused.reason.as_str()))
        }
        CallError::Unexpected | CallError::TooLong => CoordinatorError::Unfit(error.to_string()),
        error => CoordinatorError::NoAnswer(error.to_string()),
    }
}

impl Coordinator for GateLease {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(async move {
            let (mut gate, give_up) = self.0.connect().await.map_err(unanswered)?;
            match gate.acquire(self.0.channel, ttl, give_up).await {
                Ok(done) => {
                    let (token, epoch) = granted(done)?;
                    Ok(Acquired::Granted(Grant { token, epoch, ttl: None }))
                }
                Err(CallError::Refused(Refused { reason: Reason::Held, wait, by })) => {
                    Ok(Acquired::Held { wait: Some(wait), by: by.and_then(|by| by.holder) })
                }
                Err(error) => Err(unanswered(error)),
            }
        })
    }

    fn renew(&self, stamp: Stamp, _: Duration) -> Call<'_, Renewed> {
        Box::pin(async move {
            let (mut gate, give_up) = self.0.connect().await.map_err(unanswered)?;
            match gate.renew(self.0.channel, (stamp.epoch, stamp.token), give_up).await {
                Ok(_) => Ok(Renewed::Renewed { ttl: None }),
                Err(CallError::Refused(refused)) if !may_pass(refused.reason) => Ok(Renewed::Gone),
                Err(error) => Err(unanswered(error)),
            }
        })
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(async move {
            let (mut gate, give_up) = self.0.connect().await.map_err(unanswered)?;
            released(gate.release(self.0.channel, (stamp.epoch, stamp.token), give_up).await)
        })
    }
}

/// What has become of a release: refused for good, it is not there any more; refused for now, it still is.
fn released(answer: Result<Done, CallError>) -> Result<(), CoordinatorError> {
    match answer {
        Ok(_) => Ok(()),
        Err(CallError::Refused(refused)) if !may_pass(refused.reason) => Ok(()),
        Err(error) => Err(unanswered(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_whose_release_was_refused_for_now_is_still_there() {
        for reason in Reason::ALL {
            let answer = released(Err(CallError::Refused(Refused { reason, by: None, wait: Duration::ZERO })));
            match reason {
                Reason::Busy | Reason::Rate | Reason::Replay | Reason::Presence => {
                    assert!(matches!(answer, Err(CoordinatorError::NoAnswer(_))), "{reason:?}");
                }
                _ => assert!(answer.is_ok(), "{reason:?}"),
            }
        }
        assert!(matches!(released(Err(CallError::NoAnswer)), Err(CoordinatorError::NoAnswer(_))));
    }
}
