//! What the runtime says to the user: one line at a time on standard error, never more.

use std::fmt::Display;
use std::io::Write;

use et_names::escape::OneLine;

/// Writes one line, in one piece; names in it do no harm to a terminal. A closed standard error is no reason to disturb the program.
pub fn say(line: impl Display) {
    let line = format!("elephant-tracks: {}\n", OneLine(line));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
