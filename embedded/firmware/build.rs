//! Gives the linker `memory.x`: a copy in this build's own folder, so that two clones that share a target folder do not link
//! each with the other's.

use std::env::var_os;
use std::path::PathBuf;
use std::{fs, io};

fn main() -> io::Result<()> {
    let out = PathBuf::from(var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::copy("memory.x", out.join("memory.x"))?;
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=memory.x");
    Ok(())
}
