//! The module for JavaScript and the page around it.

use crate::{wasm, web, workspace};
use anyhow::Result;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Builds the module; its folder.
pub fn module(root: &Path) -> Result<PathBuf> {
    wasm::build(root, &workspace::target_dir(root)?, wasm::wasm_opt(root).as_deref())
}

/// Builds the page around a module that is built; its folder.
pub fn build(root: &Path) -> Result<PathBuf> {
    web::build(root)
}

/// Serves the page that is in `folder` until the process ends.
pub fn serve(folder: &Path, listen: SocketAddr) -> Result<()> {
    web::serve(folder, listen)
}
