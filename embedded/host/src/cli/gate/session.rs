//! With which gate a command speaks, as whom and for how long, and what a call without an answer means.

use super::super::output::{Failure, Outcome, has};
use super::answer::Told;
use fencegate::{Deadline, Duration, Instant};
use fencegate_host::{CallError, GateClient, KeyFile, Line, Port, Secret, clock};
use fencegate_wire::Credential;
use tokio::time::timeout;

/// With which gate, as whom, and for how long.
pub(super) struct Session {
    pub(super) port: Port,
    pub(super) keys: KeyFile,
    /// When the command was started.
    pub(super) started: Instant,
    pub(super) timeout: Duration,
    pub(super) json: bool,
}

/// Runs a conversation to its end.
pub(super) fn block_on(conversation: impl Future<Output = Result<Outcome, Failure>>) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(3, format_args!("no connection: {error}")))?;
    let outcome = runtime.block_on(conversation);
    runtime.shutdown_background(); // a name that is still being looked up holds nobody up
    outcome
}

impl Session {
    /// When what began at `from` has taken too long.
    pub(super) fn give_up(&self, from: Instant) -> Result<Deadline, Failure> {
        Deadline::after(from, self.timeout)
            .ok_or_else(|| Failure::input("timeout_us: `--timeout`: it ends after the clock does"))
    }

    pub(super) async fn connect(
        &self,
        credential: Credential,
        give_up: Deadline,
    ) -> Result<GateClient<Box<dyn Line>>, Failure> {
        let none = |why: String| Failure::new(3, format_args!("no connection to {}: {why}", self.port));
        match timeout(give_up.left(clock::now()).into(), self.port.open()).await {
            Ok(Ok(line)) => GateClient::new(line, credential).map_err(|error| none(error.to_string())),
            Ok(Err(error)) => Err(none(error.to_string())),
            Err(_elapsed) => Err(none(format!("none within {}", has(self.timeout)))),
        }
    }

    /// What a call without an answer means; `told` what was to be changed, if something was.
    pub(super) fn failure(&self, error: CallError, told: Option<&Told>) -> Failure {
        let unknown = if told.is_some() { "; whether it was done is not known" } else { "" };
        let port = &self.port;
        match error {
            CallError::NoAnswer => {
                let why = match (&self.keys.secret, told.and_then(Told::holder)) {
                    (Secret::Holder { holder, .. }, Some(claimed)) if claimed.name() != holder.name() => {
                        format!("the key is {holder}'s and not {claimed}'s")
                    }
                    _ => "a gate is silent to a key that it does not know".to_owned(),
                };
                let waited = has(self.timeout);
                Failure::new(3, format_args!("no answer from {port} within {waited}: is it there? ({why}){unknown}"))
            }
            CallError::Line(error) => Failure::new(3, format_args!("no answer from {port}: {error}{unknown}")),
            CallError::NotAuthentic => Failure::new(
                4,
                format_args!("the answer from {port} is not authentic: not made with the gate's key{unknown}"),
            ),
            CallError::Unexpected => {
                Failure::new(4, format_args!("the answer from {port} is to something else: another version?{unknown}"))
            }
            CallError::TooLong | CallError::Refused(_) => Failure::input(error),
        }
    }
}
