//! The `fencegate` command: the calculator of leases and a gate's client, in a shell.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a lease's window counts from here.
    cli::main(fencegate_host::clock::start())
}
