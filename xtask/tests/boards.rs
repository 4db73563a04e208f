//! What `embedded/PORTING.md` says of boards that cannot be run here: how one begins from the template, and how thin one is.

use object::{Endianness, Object, ObjectSegment, read::elf::ElfFile32};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use xtask::workspace::{self, root, same_paths, target_dir};

/// The template, and the board that is made of it: a chip of the same family with half of the flash and of the RAM.
const TEMPLATE: &str = "nrf52840";
const PORT: &str = "nrf52833";
const TARGET: &str = "thumbv7em-none-eabihf";

/// Where the gate's part of that board's flash begins.
const BEGIN: u32 = 0x0006_0000;

/// What the steps of `PORTING.md` change beside the chip's name: the file, and what stands there before and after.
const EDITS: [(&str, &str, &str); 3] = [
    ("memory.x", "LENGTH = 1024K - 128K", "LENGTH = 512K - 128K"),
    ("memory.x", "LENGTH = 256K", "LENGTH = 128K"),
    ("src/flash.rs", "BEGIN: u32 = 0x000e_0000;", "BEGIN: u32 = 0x0006_0000;"),
];

/// Every file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Makes `copy` a folder with what is in `folder`, by links, without the names in `apart`.
fn link(folder: &Path, copy: &Path, apart: &[&str]) {
    fs::create_dir_all(copy).unwrap();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if !apart.iter().any(|apart| name == *apart) {
            symlink(entry.path(), copy.join(name)).unwrap();
        }
    }
}

/// The repository once more, with room for another board; in a place that stays the same, so that its build is warm.
fn copy_of_the_repository() -> PathBuf {
    let copy = target_dir(root()).unwrap().join("port");
    match fs::remove_dir_all(&copy) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
        _ => (),
    }
    link(root(), &copy, &["Cargo.toml", "Cargo.lock", "embedded", "target", ".git"]);
    link(&root().join("embedded"), &copy.join("embedded"), &["firmware"]);
    link(&root().join("embedded/firmware"), &copy.join("embedded/firmware"), &[]);
    for file in ["Cargo.toml", "Cargo.lock"] {
        fs::copy(root().join(file), copy.join(file)).unwrap();
    }
    copy
}

/// Replaces in a file what has to be there.
fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{} has no {from:?}", file.display());
    fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn a_port_is_made_from_the_template_alone() {
    // Step 1: a copy of the folder, and a line in the workspace.
    let copy = copy_of_the_repository();
    let template = root().join("embedded/firmware").join(TEMPLATE);
    let board = copy.join("embedded/firmware").join(PORT);
    for file in files(&template) {
        let at = board.join(file.strip_prefix(&template).unwrap());
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, fs::read(file).unwrap()).unwrap();
    }
    let member = |name: &str| format!("    \"embedded/firmware/{name}\",\n");
    edit(&copy.join("Cargo.toml"), &member(TEMPLATE), &(member(PORT) + &member(TEMPLATE)));
    // Steps 2 and 3: the chip's name, wherever it stands.
    for file in files(&board) {
        let text = fs::read_to_string(&file).unwrap();
        let chip = |name: &str| name.replace("nrf", "nRF");
        fs::write(file, text.replace(TEMPLATE, PORT).replace(&chip(TEMPLATE), &chip(PORT))).unwrap();
    }
    // Steps 3 and 4: sizes, and where the gate's part begins.
    for (file, from, to) in EDITS {
        edit(&board.join(file), from, to);
    }
    // Step 5, with what was fetched and built for the template.
    let target = target_dir(root()).unwrap();
    let mut cargo = workspace::cargo(&board);
    cargo.args(["build", "--release", "--quiet", "--offline", "--config", &same_paths(root(), TARGET)]);
    assert!(cargo.env("CARGO_TARGET_DIR", &target).status().unwrap().success());
    let elf = target.join(TARGET).join("release").join(format!("fencegate-{PORT}"));
    let elf = fs::read(elf).unwrap();
    let image = ElfFile32::<Endianness>::parse(&*elf).unwrap();
    // (What has no bytes in the image is in RAM.)
    let ends = image.segments().filter_map(|segment| {
        let bytes = u32::try_from(segment.data().unwrap().len()).unwrap();
        (bytes > 0).then(|| segment.elf_program_header().p_paddr.get(image.endian()) + bytes)
    });
    let end = ends.max().unwrap();
    assert!((1..=BEGIN).contains(&end), "a segment ends at {end:#x}, in the gate's part");
}

#[test]
fn each_board_that_never_ran_is_under_200_lines() {
    for board in [TEMPLATE, "stm32f4"] {
        let sources = files(&root().join("embedded/firmware").join(board).join("src"));
        let lines: usize = sources.iter().map(|file| fs::read_to_string(file).unwrap().lines().count()).sum();
        assert!(!sources.is_empty() && lines < 200, "{board}: {lines}");
    }
}
