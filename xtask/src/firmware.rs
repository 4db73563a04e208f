//! Building a board's firmware.

use crate::board::Board;
use crate::step::{self, Step};
use crate::{setup, uf2, workspace};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Builds the firmware that ships for `board`; the path of its ELF file.
pub fn build(root: &Path, board: &str) -> Result<PathBuf> {
    build_with(root, board, &[])
}

/// Builds firmware for `board` with more arguments for cargo (another image's `--bin` and `--features`); the path of
/// its ELF file.
pub fn build_with(root: &Path, board: &str, arguments: &[&str]) -> Result<PathBuf> {
    // In the board's folder, where its `.cargo/config.toml` names target and linker scripts.
    let folder = root.join("embedded/firmware").join(board);
    let configuration = folder.join(".cargo/config.toml");
    let configuration = fs::read_to_string(&configuration)
        .with_context(|| format!("there is no board {board}: reading {}", configuration.display()))?;
    let target = target(&configuration).with_context(|| format!("the folder of {board} names no target"))?;
    let mut cargo = workspace::cargo(&folder);
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics"]).args(arguments);
    // Beside those of the board's own configuration.
    cargo.args(["--config", &workspace::same_paths(root, target)]);
    let name = if arguments.is_empty() {
        format!("building the firmware for {board}")
    } else {
        format!("building the firmware for {board} ({})", arguments.join(" "))
    };
    // What cargo builds with other features has the same name: each is kept under its own before the other can be built.
    let lock = workspace::target_dir(root)?.join("firmware.lock");
    let lock = fs::File::create(&lock).with_context(|| format!("writing {}", lock.display()))?;
    if lock.try_lock().is_err() {
        step::warn("another build of firmware is under way, and is waited for");
        lock.lock().context("waiting for another build of firmware")?;
    }
    let messages = Step::new(name, cargo).output()?;
    let built = executable(&messages).with_context(|| format!("cargo built no program for {board}"))?;
    let kept = built.with_extension(if arguments == FAST { "fast.elf" } else { "elf" });
    let new = kept.with_extension("new");
    fs::copy(&built, &new).with_context(|| format!("writing {}", new.display()))?;
    fs::rename(&new, &kept).with_context(|| format!("writing {}", kept.display()))?;
    Ok(kept)
}

/// With these arguments the Pico's firmware has a line of 1,000,000 baud.
const FAST: &[&str] = &["--features", "fast"];

/// Builds the firmware that ships for a board, with a line of 1,000,000 baud where that is asked for.
pub fn build_for(root: &Path, board: Board, fast: bool) -> Result<PathBuf> {
    ensure!(board == Board::Rp2040 || !fast, "{} has no fast line; `--board rp2040` has one", board.name());
    build_with(root, board.name(), if fast { FAST } else { &[] })
}

/// The same as the file that its boot loader takes; that file.
pub fn for_boot_loader(root: &Path, board: Board, fast: bool) -> Result<PathBuf> {
    setup::ensure(setup::FIRMWARE)?;
    ensure!(board == Board::Rp2040, "{} has no boot loader that takes files", board.name());
    let (elf, suffix) = (build_for(root, board, fast)?, if fast { "-fast" } else { "" });
    let image = workspace::target_dir(root)?.join(format!("fencegate-{}{suffix}.uf2", board.name()));
    let elf = fs::read(&elf).with_context(|| format!("reading {}", elf.display()))?;
    let new = image.with_extension("new");
    fs::write(&new, uf2::of_elf(&elf, uf2::RP2040)?).with_context(|| format!("writing {}", new.display()))?;
    fs::rename(&new, &image).with_context(|| format!("writing {}", image.display()))?;
    Ok(image)
}

/// The target that a board's `.cargo/config.toml` builds for.
fn target(configuration: &str) -> Option<&str> {
    configuration.lines().find_map(|line| line.strip_prefix("target = \"")?.strip_suffix('"'))
}

/// The program among cargo's messages; the last one, where there are several.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_names_a_target_that_is_set_up() {
        let members = workspace::members(workspace::root()).unwrap();
        let folders: Vec<_> = workspace::boards(&members).collect();
        assert!(Board::ALL.iter().all(|board| folders.contains(&board.name())), "{folders:?}");
        for board in folders {
            let configuration = workspace::root().join("embedded/firmware").join(board).join(".cargo/config.toml");
            let configuration = fs::read_to_string(configuration).unwrap();
            let target = target(&configuration).unwrap();
            let set_up = |need: &setup::Need| matches!(need, setup::Need::RustTarget(name) if *name == target);
            assert!(setup::LINT.iter().any(set_up), "{board} wants {target}: add it to `LINT` in xtask/src/setup.rs");
        }
        assert_eq!(target("[build]\n# target\n"), None);
    }

    #[test]
    fn the_program_is_found_among_the_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","executable":null}"#,
            "\nnot JSON\n",
            r#"{"reason":"compiler-artifact","executable":"/t/release/gate"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(executable(messages), Some("/t/release/gate".into()));
        assert_eq!(executable(""), None);
    }
}
