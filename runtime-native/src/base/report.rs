//! Messages of the runtime to the user: one line at a time on standard error.

use std::fmt::Display;
use std::io;

use et_names::escape;

/// Writes one line, with control characters escaped. Errors are ignored: a closed standard error must not disturb the program.
pub fn say(line: impl Display) {
    escape::say(&mut io::stderr(), format_args!("elephant-tracks: {line}"));
}
