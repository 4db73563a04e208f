//! What a gate is told to do with a channel, by a holder or by the operator: one request, one answer.

use super::super::output::{Failure, Outcome};
use super::super::units::{self, DURATION};
use super::Session;
use super::answer::{self, Told};
use super::values;
use fencegate::{Deadline, Duration, Epoch, HolderId, Instant, Token};
use fencegate_host::{CallError, Done, GateClient, Line, clock};
use fencegate_wire::{Reason, Role, Values};

/// What every command of a holder's carries.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Stamp {
    /// Which channel, from 0
    #[arg(long, value_name = "N", value_parser = values::channel)]
    channel: u8,
    /// The token that came with the lease, from 1
    #[arg(long, value_name = "N", value_parser = values::token)]
    token: Token,
    /// Who acquired the lease: a name, or name#instance; 1 to 16 printable ASCII characters
    #[arg(long, value_name = "NAME")]
    holder: HolderId,
    /// The operator's epoch at the acquisition
    #[arg(long, value_name = "N", value_parser = values::epoch, default_value = "0")]
    epoch: Epoch,
}

#[derive(Debug, clap::Args)]
pub(super) struct Drive {
    #[command(flatten)]
    stamp: Stamp,
    /// One integer for each output of the channel, applied together: 1, or 1,0
    #[arg(long, value_name = "VALUES", value_parser = values::values)]
    value: Values,
    /// What was left of the lease's window when this command was started
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    window: Option<Duration>,
    /// The end of the lease's window on this machine's boot-time clock (in /proc/uptime's terms): 1234.5s
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Acquire {
    /// Which channel, from 0; it has to be its own authority
    #[arg(long, value_name = "N", value_parser = values::channel)]
    channel: u8,
    /// Who is to hold the lease: a name, or name#instance; 1 to 16 printable ASCII characters
    #[arg(long, value_name = "NAME")]
    holder: HolderId,
    /// For how long, at most the gate's longest window
    #[arg(long, value_name = DURATION, value_parser = units::has)]
    ttl: Duration,
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct SetEpoch {
    /// Which channel, from 0
    #[arg(long, value_name = "N", value_parser = values::channel)]
    channel: u8,
    /// The new epoch, above the channel's
    #[arg(long, value_name = "N", value_parser = values::epoch)]
    set: Epoch,
    /// The token that the new epoch's tokens must exceed
    #[arg(long, value_name = "TOKEN", value_parser = units::parse_count, default_value = "0")]
    floor: u64,
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Rearm {
    /// Which channel, from 0
    #[arg(long, value_name = "N", value_parser = values::channel)]
    channel: u8,
}

/// One thing for a channel to do.
#[derive(Debug)]
pub(super) enum Order {
    Raise(Stamp),
    Drive(Drive),
    Release(Stamp),
    Acquire(Acquire),
    Renew(Stamp),
    Epoch(SetEpoch),
    Rearm(Rearm),
}

impl Drive {
    /// The end of the holder's window, and how long it is from the start of this command.
    fn lease(&self, started: Instant) -> Result<(Deadline, Duration), Failure> {
        match (self.window, self.deadline) {
            (Some(_), Some(_)) => {
                Err(Failure::input("window_us, deadline_us: one of `--window` and `--deadline`, and not both"))
            }
            (Some(window), None) if window.is_zero() => {
                Err(Failure::input("window_us: `--window`: nothing is left of the lease"))
            }
            (Some(window), None) => match Deadline::after(started, window) {
                Some(end) => Ok((end, window)),
                None => Err(Failure::input("window_us: `--window`: it ends after the clock does")),
            },
            // One that is over goes to the gate all the same: its refusal may name a stamp that has come since.
            (None, Some(_)) if !clock::IS_THE_MACHINES => Err(Failure::input(
                "deadline_us: `--deadline`: this system has no clock that two programs share; use --window",
            )),
            (None, Some(deadline)) => {
                let end = Deadline::at(Instant::from_micros(deadline.as_micros()));
                Ok((end, end.left(started)))
            }
            (None, None) => Err(Failure::input("window_us: missing; add --window <DURATION> or --deadline <DURATION>")),
        }
    }
}

impl Stamp {
    fn grant(&self) -> (Epoch, Token) {
        (self.epoch, self.token)
    }
}

impl Order {
    fn channel(&self) -> u8 {
        match self {
            Self::Raise(stamp) | Self::Release(stamp) | Self::Renew(stamp) => stamp.channel,
            Self::Drive(drive) => drive.stamp.channel,
            Self::Acquire(acquire) => acquire.channel,
            Self::Epoch(epoch) => epoch.channel,
            Self::Rearm(rearm) => rearm.channel,
        }
    }

    fn told(&self) -> Told {
        match self {
            Self::Raise(stamp) => Told::Raise(stamp.holder),
            Self::Drive(drive) => Told::Drive(drive.stamp.holder, drive.value.clone()),
            Self::Release(stamp) => Told::Release(stamp.holder),
            Self::Acquire(acquire) => Told::Acquire(acquire.holder, acquire.ttl),
            Self::Renew(stamp) => Told::Renew(stamp.holder),
            Self::Epoch(_) => Told::Epoch,
            Self::Rearm(_) => Told::Rearm,
        }
    }

    pub(super) async fn run(self, session: &Session) -> Result<Outcome, Failure> {
        let give_up = session.give_up(session.started)?;
        let (channel, told) = (self.channel(), self.told());
        let lease = match &self {
            Self::Drive(drive) => Some(drive.lease(session.started)?),
            Self::Acquire(Acquire { ttl, .. }) if ttl.is_zero() => {
                return Err(Failure::input("ttl_us: `--ttl`: a lease has some TTL"));
            }
            _ => None,
        };
        let role = told.holder().map_or(Role::Operator, Role::Holder);
        let mut gate = session.connect(session.keys.credential(role), give_up).await?;
        match self.call(&mut gate, lease, give_up).await {
            Ok(done) => answer::done(session.json, channel, &told, done),
            Err(CallError::Refused(refused)) => {
                let mut known = None;
                if let (Reason::Range, Told::Drive(_, values), false) = (refused.reason, &told, session.json) {
                    // How many values it takes is known to its status; which ones, to its provisioning alone.
                    known = gate.channel(channel, give_up).await.ok().and_then(|status| {
                        let (takes, given) = (status.values.len(), values.len());
                        (takes != given).then(|| answer::takes(channel, takes, given))
                    });
                }
                answer::refused(session.json, Some(channel), &told, refused, known)
            }
            Err(error) => Err(session.failure(error, Some(&told))),
        }
    }

    async fn call<L: Line>(
        self,
        gate: &mut GateClient<L>,
        lease: Option<(Deadline, Duration)>,
        give_up: Deadline,
    ) -> Result<Done, CallError> {
        let channel = self.channel();
        match self {
            Self::Raise(stamp) => gate.raise(channel, stamp.grant(), give_up).await,
            Self::Drive(Drive { stamp, value, .. }) => {
                // Without one nothing is left of its window, which a gate refuses.
                let lease = lease.unwrap_or((Deadline::at(Instant::from_micros(0)), Duration::ZERO));
                gate.drive(channel, stamp.grant(), value, lease, give_up).await
            }
            Self::Release(stamp) => gate.release(channel, stamp.grant(), give_up).await,
            Self::Acquire(Acquire { ttl, .. }) => gate.acquire(channel, ttl, give_up).await,
            Self::Renew(stamp) => gate.renew(channel, stamp.grant(), give_up).await,
            Self::Epoch(SetEpoch { set, floor, .. }) => gate.epoch(channel, set, floor, give_up).await,
            Self::Rearm(_) => gate.rearm(channel, give_up).await,
        }
    }
}
