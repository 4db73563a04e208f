//! The core on bare machines: no panic, no heap, no floating point, nothing asked of the environment. Looked for in the
//! files of `tests/bare`, whose image `everything` calls every public function.

use object::{Object, ObjectSymbol};
use std::fs;
use std::path::{Path, PathBuf};

const THUMB: &str = "thumbv6m-none-eabi";
const WASM: &str = "wasm32-unknown-unknown";

/// A program of `tests/bare`, built as it would ship.
fn program(name: &str, target: &str) -> Vec<u8> {
    let root = xtask::workspace::root();
    let mut cargo = xtask::workspace::cargo(&root.join("tests/bare"));
    cargo.args(["build", "--release", "--quiet", "--bin", name, "--target", target]);
    assert!(cargo.status().unwrap().success(), "{name} does not build for {target}");
    let mut file = xtask::workspace::target_dir(root).unwrap().join(target).join("release").join(name);
    if target == WASM {
        file.set_extension("wasm");
    }
    fs::read(file).unwrap()
}

/// What a symbol of that name means, if it means something that must not be.
fn offence(symbol: &str) -> Option<&'static str> {
    // Soft floating point of the Arm run-time ABI (IHI0043, 4.1.2), and the same under LLVM's names.
    let is_float = |name: &str| {
        let arm = name.strip_prefix("__aeabi_").is_some_and(|rest| {
            rest.starts_with(['f', 'd']) || ["i2", "ui2", "l2", "ul2", "cf", "cd"].iter().any(|p| rest.starts_with(p))
        });
        let llvm = name.strip_prefix("__").is_some_and(|rest| {
            let rest = rest.trim_end_matches(|c: char| c.is_ascii_digit());
            ["sf", "df", "hf", "tf"].iter().any(|kind| rest.ends_with(kind)) || rest.starts_with("fix")
        });
        arm || llvm
    };
    if symbol == "fencegate_panicked" || symbol.contains("panic") || symbol.contains("rust_begin_unwind") {
        Some("a panic")
    } else if ["__rust_alloc", "__rust_realloc", "__rust_dealloc", "__rdl_alloc", "5alloc", "GlobalAlloc"]
        .iter()
        .any(|part| symbol.contains(part))
        || ["malloc", "calloc", "realloc", "free"].contains(&symbol)
    {
        Some("the heap")
    } else if is_float(symbol) || symbol.contains("compiler_builtins5float") {
        Some("floating point")
    } else {
        None
    }
}

/// What must not be in an ELF file and is: what it means, and the symbol.
fn offences(elf: &[u8]) -> Vec<(&'static str, String)> {
    let file = object::File::parse(elf).unwrap();
    let symbols: Vec<_> = file.symbols().filter_map(|symbol| symbol.name().ok()).collect();
    assert!(symbols.len() > 20, "a file without symbols proves nothing");
    symbols.into_iter().filter_map(|name| Some((offence(name)?, name.to_owned()))).collect()
}

#[test]
fn no_panic_no_heap_no_float_whatever_is_called() {
    assert_eq!(offences(&program("everything", THUMB)), []);
}

#[test]
fn an_image_that_has_them_is_found_out() {
    let mut found: Vec<_> = offences(&program("offender", THUMB)).into_iter().map(|(what, _)| what).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, ["a panic", "floating point", "the heap"]);
}

/// The names of what a wasm module imports, from its import section (WebAssembly Core Specification, 5.5.5).
fn imports(wasm: &[u8]) -> u64 {
    fn number(bytes: &mut &[u8]) -> u64 {
        let mut n = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        n
    }
    let mut rest = wasm.strip_prefix(b"\0asm\x01\0\0\0").expect("a wasm module");
    while let Some((id, after)) = rest.split_first() {
        rest = after;
        let len = usize::try_from(number(&mut rest)).unwrap();
        let (mut section, after) = rest.split_at(len);
        if *id == 2 {
            return number(&mut section);
        }
        rest = after;
    }
    0
}

#[test]
fn the_wasm_build_imports_nothing() {
    let module = program("everything", WASM);
    assert!(module.len() > 10_000, "{} bytes: everything is called", module.len());
    assert_eq!(imports(&module), 0);
    // A module that imports one function of the type () → (): it would be seen.
    assert_eq!(imports(b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x07\x01\x01e\x01f\0\0"), 1);
}

/// Every `pub fn` of a source file outside its tests, as the image has to name it.
///
/// The sources are formatted, so that a line tells where an `impl` begins and ends. The functions that a macro makes for
/// `$name` are those of every type that the macro is called with.
fn public_functions(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines: Vec<_> = source.lines().collect();
    // `decided!(`, documentation, `    Raise`, `);`
    let made: Vec<_> = lines.windows(2).filter(|pair| pair[1] == ");").map(|pair| pair[0].trim()).collect();
    let mut found = Vec::new();
    let mut current: Option<(String, String)> = None;
    for line in lines {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        if text.starts_with("impl") && text.ends_with('{') && !text.contains(" for ") {
            current = Some((implemented(text), format!("{indent}}}")));
        } else if current.as_ref().is_some_and(|(_, end)| end == line) {
            current = None;
        } else if let Some(name) = function(text) {
            match &current {
                None => found.push(format!("{name}(")),
                Some((of, _)) if of == "$name" => found.extend(made.iter().map(|of| format!("{of}::{name}("))),
                Some((of, _)) => found.push(format!("{of}::{name}(")),
            }
        }
    }
    found
}

/// `Type` of `impl<A: B> Type<A> {`.
fn implemented(header: &str) -> String {
    let mut rest = header.strip_prefix("impl").unwrap();
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        rest = &rest[end.unwrap() + 1..];
    }
    rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || "_$".contains(*c)).collect()
}

/// `name` of `pub const fn name(`.
fn function(line: &str) -> Option<&str> {
    let name = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub const fn "))?;
    name.split(['(', '<']).next()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let is_tests = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_tests {
            files.extend(sources(&path));
        } else if !is_tests && path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn no_public_function_is_left_out() {
    let root = xtask::workspace::root();
    let image = sources(&root.join("tests/bare/src/bin/everything"));
    let image: String = image.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let called = |function: &str| {
        image.match_indices(function).any(|(at, _)| !image[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let functions: Vec<_> = sources(&root.join("core/src"))
        .iter()
        .flat_map(|f| public_functions(&fs::read_to_string(f).unwrap()))
        .collect();
    assert!(functions.len() > 80, "{functions:?}");
    for named in ["quorum(", "Release::record(", "LogFence::take(", "Finding::rule(", "Instant::now_from_embassy("] {
        assert!(functions.iter().any(|function| function == named), "the search has missed {named}: {functions:?}");
    }
    let forgotten: Vec<_> = functions.iter().filter(|function| !called(function)).collect();
    assert!(forgotten.is_empty(), "call these in tests/bare/src/bin/everything: {forgotten:?}");
}
