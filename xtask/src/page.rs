//! The modules for JavaScript and the page around them.

use crate::board::Board;
use crate::{firmware, wasm, web, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where the page's build finds the firmware that its emulator boots.
const FIRMWARE: &str = "web/src/gate/firmware.uf2";

/// Builds the modules; the folder of the one that is for others, too.
pub fn module(root: &Path) -> Result<PathBuf> {
    let (target, optimiser) = (workspace::target_dir(root)?, wasm::wasm_opt(root));
    wasm::build(root, &target, wasm::GATE, optimiser.as_deref())?;
    wasm::build(root, &target, wasm::LEASES, optimiser.as_deref())
}

/// Builds the page around modules that are built, with the very image that a Pico takes; its folder.
pub fn build(root: &Path) -> Result<PathBuf> {
    let image = firmware::for_boot_loader(root, Board::Rp2040, false)?;
    fs::copy(&image, root.join(FIRMWARE)).with_context(|| format!("copying {}", image.display()))?;
    web::build(root)
}

/// Serves the page that is in `folder` until the process ends.
pub fn serve(folder: &Path, listen: SocketAddr) -> Result<()> {
    web::serve(folder, listen)
}
