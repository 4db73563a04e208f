//! The core on a microcontroller: instructions counted in an emulator, bytes of code and of RAM.

use super::{shipped, table};
use crate::board::Board;
use crate::step::Step;
use crate::{setup, workspace};
use anyhow::{Context, Result, bail};
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Code for the Cortex-M0+, which every Cortex-M runs.
pub(super) const M0: &str = "thumbv6m-none-eabi";
/// Code for the Cortex-M4.
const M4: &str = "thumbv7em-none-eabi";

/// The modules of what is reckoned at a desk and seldom on a microcontroller.
const DESK: [&str; 5] = ["audit", "check", "redlock", "size", "systems"];

/// A program of `tests/bare`.
pub(super) fn program(root: &Path, name: &str, target: &str) -> Result<PathBuf> {
    let mut cargo = workspace::cargo(&root.join("tests/bare"));
    cargo.args(["build", "--release", "--bin", name, "--target", target]);
    Step::new(format!("building {name} for {target}"), cargo).run()?;
    Ok(workspace::target_dir(root)?.join(target).join("release").join(name))
}

/// Instructions, code and RAM.
pub(super) fn measure(root: &Path) -> Result<String> {
    setup::ensure(setup::BARE)?;
    setup::ensure(Board::Mps2.emulator())?;
    let m0 = count(&program(root, "count", M0)?, "mps2-an385")?;
    let m4 = count(&program(root, "count", M4)?, "mps2-an386")?;

    let of = |lines: &[Counted], kind: &str| lines.iter().filter(|line| line.kind == kind).cloned().collect::<Vec<_>>();
    let (instructions, theirs) = (of(&m0, "instructions"), of(&m4, "instructions"));
    let rows = instructions.iter().zip(&theirs).map(|(m0, m4)| [m0.name.clone(), m0.n.to_string(), m4.n.to_string()]);
    let instructions = table(["instructions a call", "Cortex-M0+", "Cortex-M4"], rows);
    let ram = table(
        ["bytes of RAM", "Cortex-M"],
        of(&m0, "bytes").into_iter().map(|Counted { name, n, .. }| [name, n.to_string()]),
    );

    let empty = shipped::bytes(&program(root, "empty", M0)?)?.flash;
    let fence = shipped::bytes(&program(root, "fence", M0)?)?.flash;
    let modules = modules(root)?;
    let on_board: u64 = modules.iter().filter(|(name, _)| !DESK.contains(&name.as_str())).map(|(_, code)| code).sum();
    let all: u64 = modules.values().sum();
    let summary = [
        ("an empty image".to_owned(), empty),
        ("a fence alone (`admit`, `commit`, `act`), above that".to_owned(), fence - empty),
        ("the core's code, without what is reckoned at a desk".to_owned(), on_board),
        ("the core's code".to_owned(), all),
    ];
    let each = modules.into_iter().map(|(name, code)| (format!("of it `{name}`"), code));
    let code = summary.into_iter().chain(each).map(|(name, bytes)| [name, bytes.to_string()]);
    Ok([instructions, table(["bytes of code", "Cortex-M0+"], code), ram].join("\n"))
}

/// A line of what an image that counts says.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) n: u64,
}

/// Runs an image that counts in QEMU, where an instruction takes a nanosecond.
pub(super) fn count(elf: &Path, machine: &str) -> Result<Vec<Counted>> {
    let mut qemu = Command::new("qemu-system-arm");
    qemu.args(["-machine", machine, "-icount", "shift=0", "-display", "none", "-monitor", "none", "-serial", "none"]);
    qemu.args(["-semihosting-config", "enable=on,target=native", "-kernel"]).arg(elf);
    let said = Step::new(format!("counting instructions on {machine}"), qemu).output()?;
    let lines: Option<Vec<_>> = said.lines().map(counted).collect();
    match lines {
        Some(lines) if !lines.is_empty() && lines.iter().all(|line| line.kind != "wrong") => Ok(lines),
        _ => bail!("the image that counts did not: {said}"),
    }
}

fn counted(line: &str) -> Option<Counted> {
    let [kind, name, n] = line.trim_end().split('\t').collect::<Vec<_>>().try_into().ok()?;
    Some(Counted { kind: kind.to_owned(), name: name.to_owned(), n: n.parse().ok()? })
}

/// Bytes of the core's own functions by module, in its object file: compiled as it ships, before anybody inlines or
/// drops them. Words (`Display`, `Debug`) are left out, and the library functions of the compiler are not in it.
fn modules(root: &Path) -> Result<BTreeMap<String, u64>> {
    let target = workspace::target_dir(root)?.join("sizes");
    fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
    let object = target.join("fencegate.o");
    let mut cargo = workspace::cargo(root);
    cargo.args(["rustc", "--package", "fencegate", "--lib", "--release", "--features", "heapless", "--target", M0]);
    // An object file of its own instead of one for link-time optimisation.
    cargo.args(["--config", "profile.release.lto=false", "--target-dir"]).arg(&target);
    cargo.arg("--").arg(format!("--emit=obj={}", object.display()));
    // Cargo does not know of the object file: where it is gone, or another command line has made it, begin anew.
    cargo.env_remove("CARGO_TARGET_DIR");
    let _ = fs::remove_file(&object);
    let _ = fs::remove_dir_all(target.join(M0).join("release/.fingerprint"));
    Step::new("compiling the core for its size", cargo).run()?;
    let data = fs::read(&object).with_context(|| format!("reading {}", object.display()))?;
    let file = object::File::parse(&*data)?;
    let mut modules = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        if let Some(module) = symbol.name().ok().and_then(module) {
            *modules.entry(module.to_owned()).or_default() += symbol.size();
        }
    }
    Ok(modules)
}

/// The module of a function of the core: `fence` of `_ZN9fencegate5fence5Fence5admit…` and of
/// `_ZN…$LT$fencegate..fence..Fence$u20$as$u20$…`; none for words.
fn module(symbol: &str) -> Option<&str> {
    let (_, path) = symbol.split_once("fencegate")?;
    if symbol.contains("3fmt") || symbol.contains("..fmt..") {
        return None;
    }
    let path = path.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    path.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_their_modules() {
        assert_eq!(module("_ZN9fencegate5fence5Fence5admit17h035ee568bdfca7b1E"), Some("fence"));
        assert_eq!(
            module("_ZN65_$LT$fencegate..holder_id..HolderId$u20$as$u20$core..cmp..Eq$GT$2eqE"),
            Some("holder_id")
        );
        assert_eq!(module("_ZN60_$LT$fencegate..stamp..Stamp$u20$as$u20$core..fmt..Debug$GT$3fmt17hE"), None);
        assert_eq!(module("memcpy"), None);
    }

    #[test]
    fn a_line_is_kind_name_and_number() {
        let line = counted("instructions\ta name: a case\t17\r").unwrap();
        assert_eq!((&*line.kind, &*line.name, line.n), ("instructions", "a name: a case", 17));
        assert!(counted("panicked").is_none());
    }
}
