#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod entry;
mod memory;
mod store;
mod words;

pub use entry::{Entry, Stored};
pub use memory::{Board, Memory, Remembered};
pub use store::{Boot, Store, StoreError};
pub use words::{Words, WordsError};
