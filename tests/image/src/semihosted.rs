//! Standard input and output of the emulator, or of a debugger.

use core::fmt;
use semihosting::io::{self, Read, Stdin, Stdout, Write};

/// Both of them.
pub(crate) struct Line {
    input: Stdin,
    output: Stdout,
}

impl Line {
    /// Asks for them.
    pub(crate) fn open() -> Self {
        let (Ok(input), Ok(output)) = (io::stdin(), io::stdout()) else { semihosting::process::exit(1) };
        Self { input, output }
    }

    /// The next byte, until the input ends.
    pub(crate) fn read(&mut self) -> Option<u8> {
        let mut byte = [0];
        matches!(self.input.read(&mut byte), Ok(1)).then_some(byte[0])
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.output.write_all(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// There are no questions any more.
pub(crate) fn end() -> ! {
    semihosting::process::exit(0)
}
