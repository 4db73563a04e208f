#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod client;
mod decoder;
mod keys;
mod value;

pub use client::GateClient;
pub use decoder::Decoder;
pub use keys::Keys;
use wasm_bindgen::prelude::wasm_bindgen;

/// As small as an allocator that gives memory back can be.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

/// The declarations that editors and `tsc` see; a test holds their fields against what the calls return.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.d.ts");
