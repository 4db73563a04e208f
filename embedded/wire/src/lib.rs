#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod client;
mod frame;
mod key;
mod message;
mod provisioning;
mod seal;

pub use client::{Client, Failure, Operation, Output, Timing};
pub use frame::{Deframer, Frame, Framed, MAX_FRAME, MAX_PAYLOAD, Noise};
pub use key::{BaseKey, DirectionKeys, Domain, Key, Keyring, Role};
pub use message::{
    Answer, Challenge, ChannelState, ChannelStatus, Counters, Fault, GateStatus, MAX_CHANNELS, MAX_OUTPUTS, Reason,
    Refused, Reply, Request, Sealed, Values, Version,
};
pub use provisioning::{Authority, BadProvisioning, ChannelConfig, OutputConfig, Provisioning};
pub use seal::{Credential, GateId, Header, Nonce, Tag, TooLong, Unverified, Verified, seal};
