//! What the runtime says to the user: one line at a time on standard error, never more.

use std::fmt::Display;
use std::io;

use et_names::escape;

/// Writes one line; names in it do no harm to a terminal. A closed standard error is no reason to disturb the program.
pub fn say(line: impl Display) {
    escape::say(&mut io::stderr(), format_args!("elephant-tracks: {line}"));
}
