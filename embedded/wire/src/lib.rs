#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod client;
mod emulator;
mod event;
mod frame;
mod key;
mod message;
mod provisioning;
mod seal;
mod size;

pub use client::{Client, Failure, Operation, Output, Timing};
pub use event::{Event, MAX_EVENTS, What};
pub use frame::{Deframer, Frame, Framed, MAX_FRAME, MAX_PAYLOAD, Noise};
pub use key::{BaseKey, DirectionKeys, Domain, Key, Keyring, Role};
pub use message::{
    Answer, Cause, Challenge, ChannelState, ChannelStatus, Counters, Fault, GateStatus, MAX_CHANNELS, MAX_OUTPUTS,
    Reason, Refused, Reply, Request, Sealed, Values, Version,
};
pub use provisioning::{
    Authority, BadProvisioning, ChannelConfig, GateConfig, MAX_GATE_OUTPUTS, OutputConfig, Provisioning, SafeAction,
};
pub use seal::{Credential, GateId, Header, Nonce, Tag, TooLong, Unverified, Verified, seal};
