//! What the runtime says to the user: one line at a time on standard error, never more.

use std::fmt::Display;
use std::io::Write;

/// Writes one line. A closed standard error is no reason to disturb the program.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "elephant-tracks: {line}");
}
