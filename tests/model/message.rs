//! What is said over the network.

use fencegate::{Request, Stamp};

/// One message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    /// The holder that sent it or is to receive it.
    pub(crate) who: u8,
    /// Which start of that holder's process: an answer reaches the instance that has asked, or nobody.
    pub(crate) instance: u16,
    pub(crate) text: Text,
    /// The last tick at which the answer may come where nothing fails.
    pub(crate) due: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    // To the coordinator.
    Acquire(Request),
    Renew(Request, Stamp),
    Release(Stamp),
    // To the resource.
    Raise(Stamp),
    Write(Stamp),
    // To a holder.
    Granted(Request, Stamp),
    Renewed(Request),
    Refused(Request, u64),
    Released(Stamp),
    Raised(Stamp),
    Fenced(Stamp),
}

impl Message {
    /// Orders messages, so that the network is a set and not a history.
    pub(crate) fn key(&self) -> (u8, u8, u16, u64, u64, u32) {
        let token = |stamp: Stamp| (u64::from(stamp.epoch.0) << 32) + stamp.token.get();
        let (kind, a, b) = match self.text {
            Text::Acquire(request) => (0, request.number(), 0),
            Text::Renew(request, stamp) => (1, request.number(), token(stamp)),
            Text::Release(stamp) => (2, token(stamp), 0),
            Text::Raise(stamp) => (3, token(stamp), 0),
            Text::Write(stamp) => (4, token(stamp), 0),
            Text::Granted(request, stamp) => (5, request.number(), token(stamp)),
            Text::Renewed(request) => (6, request.number(), 0),
            Text::Refused(request, wait) => (7, request.number(), wait),
            Text::Released(stamp) => (8, token(stamp), 0),
            Text::Raised(stamp) => (9, token(stamp), 0),
            Text::Fenced(stamp) => (10, token(stamp), 0),
        };
        (kind, self.who, self.instance, a, b, self.due)
    }

    pub(crate) fn destination(&self) -> Destination {
        match self.text {
            Text::Acquire(_) | Text::Renew(..) | Text::Release(_) => Destination::Coordinator,
            Text::Raise(_) | Text::Write(_) => Destination::Resource,
            _ => Destination::Holder,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Coordinator,
    Resource,
    Holder,
}
