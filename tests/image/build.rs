//! Gives the linker the board's `memory.x`: a copy in this build's own folder, so that two clones that share a target folder
//! do not link each with the other's.

use std::env::var_os;
use std::path::PathBuf;
use std::{fs, io};

fn main() -> io::Result<()> {
    let out = PathBuf::from(var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let memory = if var_os("CARGO_FEATURE_PICO").is_some() { "pico.x" } else { "memory.x" };
    fs::copy(memory, out.join("memory.x"))?;
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed={memory}");
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}
