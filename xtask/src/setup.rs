//! What a command needs that is not in the repository, and getting it.
//!
//! [`ensure`] may be called at any time: what is there already is neither touched nor downloaded.

use crate::board::Board;
use crate::step::Step;
use crate::workspace::{self, root};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Something from outside that a command cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The standard library for another machine.
    RustTarget(&'static str),
    /// A part of the Rust toolchain; `probe` is a file that it brings, from the toolchain's root.
    RustComponent {
        /// rustup's name for it.
        component: &'static str,
        /// A file that is there if it is installed.
        probe: &'static str,
    },
    /// A system package; `probe` is a program that it brings.
    AptPackage {
        /// Debian's name for it.
        package: &'static str,
        /// A program that is on `PATH` if it is installed.
        probe: &'static str,
    },
    /// A system package without a program; `probe` is a file that it brings.
    AptFile {
        /// Debian's name for it.
        package: &'static str,
        /// A file that is there if it is installed.
        probe: &'static str,
    },
    /// A part of another Rust toolchain, and that toolchain itself.
    Toolchain {
        /// rustup's name for it.
        name: &'static str,
        /// rustup's name for the part.
        component: &'static str,
        /// A file that is there if it is installed, from the toolchain's root.
        probe: &'static str,
    },
    /// A program of crates.io in exactly this version, built into the target folder: it touches nobody's own.
    Program(&'static str, &'static str),
    /// Programs of Python packages, in the versions of a lock file, in a folder of their own below the target folder.
    PythonPackages {
        /// The lock file, from the repository's root.
        lock: &'static str,
    },
    /// Node.js with npm. It is only looked for: which one to install is not ours to choose.
    Node,
    /// The npm packages of a folder, as its lock file has them.
    NpmPackages {
        /// The folder with the `package-lock.json`, from the repository's root.
        dir: &'static str,
    },
}

/// The oldest Node.js that the page's tools run on.
const NODE: (u32, u32) = (20, 19);

/// The oldest toolchain that compiles the core; `core/Cargo.toml` says it too.
pub const OLDEST: &str = "1.88";

/// To check that promise.
pub const OLDEST_RUST: &[Need] = &[Need::Toolchain { name: OLDEST, component: "rustc", probe: "bin/rustc" }];

/// To check style, and to build what is only built.
pub const LINT: &[Need] = &[
    Need::RustComponent { component: "rustfmt", probe: "bin/rustfmt" },
    Need::RustComponent { component: "clippy", probe: "bin/clippy-driver" },
    Need::RustTarget("thumbv6m-none-eabi"),
    Need::RustTarget("thumbv7m-none-eabi"),
    Need::RustTarget("thumbv7em-none-eabihf"),
    Need::RustTarget("wasm32-unknown-unknown"),
];

/// To build what `tests/bare` counts and looks at.
pub const BARE: &[Need] = &[
    Need::RustTarget("thumbv6m-none-eabi"),
    Need::RustTarget("thumbv7em-none-eabi"),
    Need::RustTarget("wasm32-unknown-unknown"),
];

/// To build firmware for any board that has an emulator; what the others are built for is in [`LINT`].
pub const FIRMWARE: &[Need] = &[Need::RustTarget("thumbv6m-none-eabi"), Need::RustTarget("thumbv7m-none-eabi")];

/// To build the command `fencegate` with etcd, whose client makes its messages from their definitions.
pub const COMMAND: &[Need] = &[
    Need::AptPackage { package: "protobuf-compiler", probe: "protoc" },
    Need::AptFile { package: "libprotobuf-dev", probe: "/usr/include/google/protobuf/descriptor.proto" },
];

/// To test against lock services and stores as they are.
pub const SERVERS: &[Need] = &[
    Need::AptPackage { package: "etcd-server", probe: "etcd" },
    Need::AptPackage { package: "etcd-client", probe: "etcdctl" },
    Need::AptPackage { package: "iproute2", probe: "ip" },
    Need::AptPackage { package: "default-jre-headless", probe: "java" },
    Need::AptFile { package: "libzookeeper-java", probe: "/usr/share/java/zookeeper.jar" },
    Need::AptPackage { package: "openssl", probe: "openssl" },
    Need::AptPackage { package: "mariadb-server", probe: "mariadb-install-db" },
    Need::AptPackage { package: "postgresql", probe: "pg_ctlcluster" },
    Need::AptPackage { package: "redis-server", probe: "redis-server" },
    Need::AptPackage { package: "sqlite3", probe: "sqlite3" },
    Need::PythonPackages { lock: "tests/stand-ins.txt" },
];

/// To build the modules for JavaScript, and the page around them, with a board and its emulator in it.
pub const WEB: &[Need] = &[
    Need::Node,
    Need::RustTarget("wasm32-unknown-unknown"),
    Need::NpmPackages { dir: "web" },
    Need::NpmPackages { dir: "embedded/firmware/rp2040/emulator" },
];

/// To test the module under Node and the page in a browser.
pub const BROWSER: &[Need] =
    &[Need::Node, Need::AptPackage { package: "chromium", probe: "chromium" }, Need::NpmPackages { dir: "tests/js" }];

/// What breaks the core on purpose (`cargo xtask mutants`).
pub const CARGO_MUTANTS: Need = Need::Program("cargo-mutants", "27.1.0");
/// What builds and runs fuzz targets (`cargo xtask fuzz`).
pub const CARGO_FUZZ: Need = Need::Program("cargo-fuzz", "0.13.2");

/// To interpret the core's tests, undefined behaviour being an error.
pub const MIRI: &[Need] = &[
    Need::Toolchain { name: "nightly", component: "miri", probe: "bin/miri" },
    Need::Toolchain { name: "nightly", component: "rust-src", probe: "lib/rustlib/src/rust/library/Cargo.lock" },
];

/// To fuzz. `rustc` is in every toolchain: the need is the toolchain.
pub const FUZZ: &[Need] = &[Need::Toolchain { name: "nightly", component: "rustc", probe: "bin/rustc" }, CARGO_FUZZ];

/// Everything that any command needs, but for what is outside `test` and long to build: `mutants`, `miri` and `fuzz` get
/// their tools themselves.
pub fn everything() -> Vec<Need> {
    let emulators = Board::ALL.map(Board::emulator).concat();
    [LINT, BARE, COMMAND, FIRMWARE, &emulators, SERVERS, WEB, BROWSER].concat()
}

/// Gets what is missing of `needs`.
///
/// What only a person can install is found out before anything is downloaded.
pub fn ensure(needs: &[Need]) -> Result<()> {
    if needs.contains(&Need::Node) {
        node()?;
    }
    let packages = missing(needs, |need| match need {
        Need::AptPackage { package, probe } if find_program(probe).is_none() => Some(package),
        Need::AptFile { package, probe } if !Path::new(probe).exists() => Some(package),
        Need::PythonPackages { .. } if !has_venv() => Some("python3-venv"),
        _ => None,
    });
    if !packages.is_empty() {
        install_packages(&packages)?;
        for need in needs {
            if let Need::AptPackage { package, probe } = need
                && find_program(probe).is_none()
            {
                bail!("the package {package} is installed and brought no `{probe}`: put `{probe}` on PATH");
            }
        }
    }

    if needs.iter().any(|need| matches!(need, Need::RustTarget(_) | Need::RustComponent { .. })) {
        let sysroot = sysroot()?;
        let targets = missing(needs, |need| match need {
            Need::RustTarget(target) if !sysroot.join("lib/rustlib").join(target).join("lib").is_dir() => Some(target),
            _ => None,
        });
        let components = missing(needs, |need| match need {
            Need::RustComponent { component, probe } if !program_file(&sysroot.join(probe)).is_file() => {
                Some(component)
            }
            _ => None,
        });
        rustup("target", &targets)?;
        rustup("component", &components)?;
    }

    for need in needs {
        match need {
            Need::Toolchain { name, component, probe } => toolchain(name, component, probe)?,
            Need::Program(package, version) => build_program(package, version)?,
            Need::PythonPackages { lock } => python_packages(lock)?,
            _ => {}
        }
    }

    for need in needs {
        if let Need::NpmPackages { dir } = need {
            npm_packages(&root().join(dir), dir)?;
        }
    }
    Ok(())
}

/// What `which` picks, each once.
fn missing(needs: &[Need], which: impl Fn(Need) -> Option<&'static str>) -> Vec<&'static str> {
    let mut names: Vec<_> = needs.iter().filter_map(|need| which(*need)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Where the toolchain that builds this repository lives.
fn sysroot() -> Result<PathBuf> {
    let Some(sysroot) = printed_sysroot(&mut Command::new("rustc")) else {
        bail!("`rustc` does not run here: install Rust from https://rustup.rs")
    };
    Ok(sysroot)
}

fn printed_sysroot(rustc: &mut Command) -> Option<PathBuf> {
    let output = rustc.args(["--print", "sysroot"]).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Sees that a toolchain is there, with `component`.
fn toolchain(name: &str, component: &str, probe: &str) -> Result<()> {
    let sysroot = printed_sysroot(Command::new("rustup").args(["run", name, "rustc"]));
    if sysroot.is_some_and(|sysroot| program_file(&sysroot.join(probe)).is_file() || sysroot.join(probe).is_file()) {
        return Ok(());
    }
    if find_program("rustup").is_none() {
        bail!(
            "the Rust toolchain {name} is needed and there is no rustup to get it: install rustup from https://rustup.rs"
        );
    }
    let mut command = Command::new("rustup");
    command.args(["toolchain", "install", name, "--profile", "minimal", "--component", component]);
    Step::new(format!("installing the Rust toolchain {name} with {component}"), command)
        .advice(format!("see that the network can be reached, then run `rustup toolchain install {name}`"))
        .run()
}

/// Where a [`Need::Program`] is.
pub fn program(need: Need) -> Result<PathBuf> {
    let Need::Program(package, version) = need else { bail!("{need:?} is no program") };
    Ok(program_file(&program_dir(package, version)?.join("bin").join(package)))
}

fn program_dir(package: &str, version: &str) -> Result<PathBuf> {
    Ok(workspace::target_dir(root())?.join("tools").join(format!("{package}-{version}")))
}

/// Builds a program of crates.io, unless this very version is there.
fn build_program(package: &'static str, version: &'static str) -> Result<()> {
    if program(Need::Program(package, version))?.is_file() {
        return Ok(());
    }
    let dir = program_dir(package, version)?;
    let mut cargo = workspace::cargo(root());
    cargo.args(["install", "--locked", "--version", version, package, "--root"]).arg(dir);
    Step::new(format!("building {package} {version}"), cargo)
        .advice(format!("see that the network can be reached, then try again: {package} comes from crates.io"))
        .run()
}

/// Where a program of [`Need::PythonPackages`] is.
pub fn python_program(name: &str) -> Result<PathBuf> {
    Ok(python_dir()?.join("bin").join(name))
}

fn python_dir() -> Result<PathBuf> {
    Ok(workspace::target_dir(root())?.join("tools/python"))
}

/// Whether Python is there with what makes folders of packages, which Debian packs apart.
fn has_venv() -> bool {
    Command::new("python3").args(["-c", "import ensurepip, venv"]).output().is_ok_and(|output| output.status.success())
}

/// Installs Python packages, unless those of this very lock file are there.
fn python_packages(lock: &'static str) -> Result<()> {
    let Ok(wanted) = fs::read(root().join(lock)) else {
        bail!("{lock} cannot be read: restore it with `git checkout {lock}`");
    };
    let dir = python_dir()?;
    let stamp = dir.join("fencegate-lock"); // written last, as npm's
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(&dir).current_dir(root());
    let advice = "see that `python3 -m venv` works, which Debian packs as python3-venv";
    Step::new("making a folder for Python packages", venv).advice(advice).run()?;
    let mut pip = Command::new(dir.join("bin/python"));
    pip.args(["-m", "pip", "install", "--no-deps", "--requirement", lock]).current_dir(root());
    Step::new(format!("installing the Python packages of {lock}"), pip)
        .advice("see that the network can be reached, then try again: they come from PyPI")
        .run()?;
    if let Err(error) = fs::write(&stamp, &wanted) {
        bail!("{} cannot be written ({error}): make it writable", stamp.display());
    }
    Ok(())
}

fn rustup(what: &str, names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let list = names.join(" ");
    if find_program("rustup").is_none() {
        bail!(
            "the Rust toolchain lacks the {what} {list} and there is no rustup to add it: \
             install rustup from https://rustup.rs, or add the {what} the way this toolchain was installed"
        );
    }
    let mut command = Command::new("rustup");
    command.args([what, "add"]).args(names).current_dir(root());
    Step::new(format!("adding Rust {what} {list}"), command)
        .advice(format!("see that the network can be reached, then run `rustup {what} add {list}`"))
        .run()
}

/// Installs Debian packages, or says how.
fn install_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let debian = Path::new("/etc/debian_version").exists() && find_program("apt-get").is_some();
    if !debian {
        bail!("missing on this machine: {list} (Debian's names): install them with its package manager");
    }
    let by_hand = format!("sudo apt-get install --no-install-recommends {list}");
    if !is_root() {
        bail!("missing on this machine: {list}: run `{by_hand}`, then this again");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-y", "-o", "DPkg::Lock::Timeout=300"]).args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let install = |how: &str| {
        let command = apt(&[&["install", "--no-install-recommends"], packages].concat());
        Step::new(format!("installing {list}{how}"), command)
            .advice(format!("see that the network can be reached and what apt says above, then run `{by_hand}`"))
            .run()
    };
    // The lists of a fresh machine are empty, those of an old one out of date: then the first try fails quickly.
    if install(", by the package lists at hand").is_ok() {
        return Ok(());
    }
    Step::new("updating the package lists", apt(&["update"]))
        .advice("see that the network can be reached, then run `sudo apt-get update`")
        .run()?;
    install("")
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Sees that Node.js is there, with npm, and not too old.
fn node() -> Result<()> {
    let (major, minor) = NODE;
    let wanted = format!("Node.js {major}.{minor} or newer, with npm, is needed");
    let then = "install it (https://nodejs.org), then run this again";
    let Some(node) = find_program("node") else { bail!("{wanted} and there is none on PATH: {then}") };
    let version = Command::new(node).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if node_version(&version).is_none_or(|found| found < NODE) {
        bail!("{wanted} and `node` on PATH is {version:?}: {then}");
    }
    if find_program("npm").is_none() {
        bail!("{wanted} and there is no `npm` on PATH: {then}");
    }
    Ok(())
}

/// Major and minor of `v20.19.4`.
fn node_version(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v')?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Installs the npm packages of `dir` (called `name`), unless those of this very lock file are there.
fn npm_packages(dir: &Path, name: &str) -> Result<()> {
    let Ok(lock) = fs::read(dir.join("package-lock.json")) else {
        bail!("{name}/package-lock.json cannot be read: restore it with `git checkout {name}/package-lock.json`");
    };
    // A copy of the lock file, written last: it is there only after everything else is.
    let stamp = dir.join("node_modules/.fencegate-lock");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(dir);
    Step::new(format!("installing the npm packages of {name}/"), npm)
        .advice(format!("see that the network can be reached, then run `cd {name} && npm ci`"))
        .run()?;
    // A package without dependencies has no folder for them.
    let written = fs::create_dir_all(dir.join("node_modules")).and_then(|()| fs::write(&stamp, &lock));
    if let Err(error) = written {
        bail!("{} cannot be written ({error}): make it writable", stamp.display());
    }
    Ok(())
}

/// A program on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| program_file(&dir.join(name))).find(|file| file.is_file())
}

/// The file of a program, with `.exe` where programs have it.
fn program_file(path: &Path) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(env::consts::EXE_SUFFIX);
    file.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_left_alone() {
        // This very test was compiled by a toolchain that is there.
        ensure(&[Need::AptPackage { package: "no-such-package", probe: "rustc" }]).unwrap();
        let compiler = Need::RustComponent { component: "no-such-component", probe: "bin/rustc" };
        ensure(&[compiler]).unwrap();
    }

    #[test]
    fn a_folder_without_lock_file_is_a_sentence() {
        let error = ensure(&[Need::NpmPackages { dir: "core" }]).unwrap_err();
        assert!(error.to_string().starts_with("core/package-lock.json cannot be read"), "{error}");
    }

    #[test]
    fn packages_of_this_very_lock_file_are_not_installed_again() {
        let dir = env::temp_dir().join(format!("fencegate-npm-{}", std::process::id()));
        fs::create_dir_all(dir.join("node_modules")).unwrap();
        fs::write(dir.join("package-lock.json"), "not a lock file that npm could read").unwrap();
        fs::write(dir.join("node_modules/.fencegate-lock"), "not a lock file that npm could read").unwrap();
        npm_packages(&dir, "here").unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn versions_of_node_compare_as_numbers() {
        assert_eq!(node_version("v20.19.4"), Some((20, 19)));
        assert!(node_version("v9.11.2").unwrap() < NODE);
        assert!(node_version("v100.0.0").unwrap() > NODE);
        assert_eq!(node_version("command not found"), None);
    }
}
