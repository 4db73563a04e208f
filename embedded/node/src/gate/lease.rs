//! The gate as its own authority: acquire and renew. A lease is released as any stamp is.

use super::{Asked, Decided, Denied, Gate, Guard, pending};
use crate::challenger::Used;
use crate::pending::{Change, Mark};
use fencegate::{Admitted, Duration, Epoch, GrantDenied, Token};
use fencegate_wire::{Cause, Reason, Role};

impl Gate {
    pub(super) fn acquire(&mut self, asked: &Asked, number: u8, ttl: Duration) -> Result<Decided, Denied> {
        let Role::Holder(holder) = asked.header.role else { return Err(Reason::Role.into()) };
        if !self.is_own(number) {
            return Err(Reason::Authority.into());
        }
        if ttl.is_zero() || ttl > self.config.gate.longest_window {
            return Err(Reason::Range.into());
        }
        let channel = self.channel(number)?;
        if channel.is_lost() {
            return Err(Reason::Storage.into());
        }
        // Strictly increasing over the channel: an old request for a lease must not take one later.
        let challenge = self.fresh(asked, Some(number), channel.used)?;
        if self.fault.is_some() {
            return Err(Reason::Fault.into());
        }
        let wait = self.channel(number)?.wait(asked.now);
        if !wait.is_zero() {
            return Err(Denied { reason: Reason::Held, wait });
        }
        let free = self.may_store(asked.now, number);
        let free = free.and_then(|()| self.let_go(asked.now, number, Cause::Raised));
        self.taken_over(asked.now, number, free)?;
        let Guard::Grantor(grantor) = &mut self.channel_mut(number)?.guard else { return Err(Reason::Storage.into()) };
        let granting = grantor.acquire(asked.now, holder, ttl)?;
        self.budget.spend();
        Ok(pending(asked, challenge, Change::Mark(number, Mark::Grant(granting))))
    }

    pub(super) fn renew(&mut self, asked: &Asked, number: u8, epoch: Epoch, token: Token) -> Result<Decided, Denied> {
        if matches!(asked.header.role, Role::Holder(_)) && !self.is_own(number) {
            return Err(Reason::Authority.into());
        }
        let stamp = self.stamp(asked, number, epoch, token)?;
        let channel = self.channel(number)?;
        let Admitted::Current(_) = channel.admit(stamp)? else { return Err(Reason::Authority.into()) };
        // Granted under other terms: it runs out, and is granted anew.
        if channel.ttl().is_some_and(|ttl| ttl > self.config.gate.longest_window) {
            return Err(Reason::Range.into());
        }
        let challenge = self.fresh(asked, Some(number), channel.used)?;
        if channel.lease().is_none_or(|lease| lease.is_over(asked.now)) {
            return Err(Reason::Expired.into());
        }
        if self.fault.is_some() {
            return Err(Reason::Fault.into());
        }
        let Guard::Grantor(grantor) = &mut self.channel_mut(number)?.guard else { return Err(Reason::Storage.into()) };
        let _ = grantor.renew(asked.now, stamp)?;
        let used = Used { tag: Some(asked.tag), challenge };
        Ok(Decided::Reply(self.done(asked.now, &asked.header, number, used)))
    }
}

impl From<GrantDenied> for Denied {
    fn from(denied: GrantDenied) -> Self {
        match denied {
            GrantDenied::Held { wait } => Self { reason: Reason::Held, wait },
            GrantDenied::Ttl => Reason::Range.into(),
            GrantDenied::Refused(refused) => Reason::from(refused.reason).into(),
            GrantDenied::NotGranted => Reason::Authority.into(),
            GrantDenied::Expired => Reason::Expired.into(),
            GrantDenied::Clock => Reason::Fault.into(),
            // The node decides one thing at a time, so that no decision is ever open; and no token is left.
            _ => Reason::Storage.into(),
        }
    }
}
