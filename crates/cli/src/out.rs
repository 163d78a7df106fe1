//! Standard output.

use std::io::{self, Write};

use et_names::escape::{Json, Lines};
use serde::Serialize;

/// Standard output does not take what is written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct Unwritten(pub io::Error);

impl Unwritten {
    /// Whether whoever reads it has closed it.
    pub fn is_closed(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// A value for programs. Strings, numbers and lists: to make JSON of them cannot fail.
pub fn print_json(value: &impl Serialize) -> Result<(), Unwritten> {
    write_out(&format!("{}\n", Json(serde_json::to_string_pretty(value).unwrap_or_default())))
}

/// Text for people: what is in a name can do no harm to a terminal.
pub fn print(text: &str) -> Result<(), Unwritten> {
    write_out(&Lines(text).to_string())
}

/// Text as it is, all of it at once.
pub fn write_out(text: &str) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Unwritten)
}
