//! The firmware's log, as a person reads it: `defmt` frames in, lines on standard error out.

use anyhow::Result;
use std::fs::File;
use std::path::Path;

/// Reads the log of the image `elf` from `frames` until it ends, in a thread of its own: should standard error not be
/// read, it is the board that waits, and not the line to it.
#[cfg(feature = "log")]
pub(crate) fn start(elf: &Path, mut frames: File) -> Result<()> {
    use anyhow::Context;
    use defmt_decoder::{DecodeError, Table};
    use std::io::Read;

    let image = std::fs::read(elf).with_context(|| format!("reading {}", elf.display()))?;
    let table = Table::parse(&image)?.with_context(|| format!("{} has no log", elf.display()))?;
    std::thread::spawn(move || {
        let mut decoder = table.new_stream_decoder();
        let mut bytes = [0; 4_096];
        while let Ok(read @ 1..) = frames.read(&mut bytes) {
            decoder.received(&bytes[..read]);
            loop {
                match decoder.decode() {
                    Ok(frame) => eprintln!("{}", frame.display(false)),
                    // A reset has cut it; the next begins after a zero.
                    Err(DecodeError::Malformed) => eprintln!("(an entry of the log is damaged)"),
                    Err(DecodeError::UnexpectedEof) => break,
                }
            }
        }
    });
    Ok(())
}

/// Without the feature there is nothing that could read it.
#[cfg(not(feature = "log"))]
pub(crate) fn start(_: &Path, _: File) -> Result<()> {
    anyhow::bail!("the log needs the feature `log` of xtask")
}
