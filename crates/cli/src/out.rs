//! Standard output.

use std::io::{self, Write};

use et_names::escape::{Json, Lines};
use serde::Serialize;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct Unwritten(pub io::Error);

impl Unwritten {
    /// Whether the reader of standard output has closed it.
    pub fn is_closed(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Prints a value as JSON. Serialization cannot fail, since there are only strings, numbers and lists.
pub fn print_json(value: &impl Serialize) -> Result<(), Unwritten> {
    write_out(&format!("{}\n", Json(serde_json::to_string_pretty(value).unwrap_or_default())))
}

/// Prints text with special characters escaped, so that names are harmless in a terminal.
pub fn print(text: &str) -> Result<(), Unwritten> {
    write_out(&Lines(text).to_string())
}

/// Writes text unchanged, with a single write.
pub fn write_out(text: &str) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Unwritten)
}
