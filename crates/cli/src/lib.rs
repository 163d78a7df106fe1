//! What the commands have in common: usage errors, exit codes, messages, and terminal-safe output.

pub mod code;
mod heartbeat;
mod out;

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use et_names::escape::{self, OneLine};

pub use heartbeat::Heartbeat;
pub use out::{Unwritten, print, print_json, write_out};

/// Name of a command, with which its messages begin.
#[derive(Clone, Copy, Debug)]
pub struct Program(pub &'static str);

impl Program {
    /// Writes a line to standard error with a single write. Errors are ignored, as there is nowhere else to report
    /// them.
    pub fn say(self, line: fmt::Arguments<'_>) {
        escape::say(&mut io::stderr(), format_args!("{}: {line}", self.0));
    }

    /// Reports a failure and returns the exit code. Failures caused by [`Unwritten`] are not reported if standard
    /// output was closed.
    pub fn end<E: Error>(self, done: Result<u8, E>) -> ExitCode {
        ExitCode::from(done.unwrap_or_else(|error| {
            let code = code_of(&error);
            if code != code::CLOSED {
                self.say(format_args!("{error}"));
            }
            code
        }))
    }
}

/// A closed output is no reason for a message, but not everything was written.
fn code_of(error: &impl Error) -> u8 {
    let unwritten = error.source().and_then(|source| source.downcast_ref::<Unwritten>());
    if unwritten.is_some_and(Unwritten::is_closed) { code::CLOSED } else { code::FAILED }
}

/// Writes clap's error or help for the command line of this process, and returns the exit code.
pub fn refuse<P: Parser>(error: clap::Error) -> ExitCode {
    // The message quotes the arguments, so they are escaped first.
    let safe = std::env::args_os().map(|argument| OneLine(argument.to_string_lossy()).to_string());
    let error = P::try_parse_from(safe).err().unwrap_or(error);
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(code::FAILED))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Failed {
        #[error("{0}")]
        Stdout(#[from] Unwritten),
        #[error("it is damaged")]
        Damaged,
    }

    #[test]
    fn a_closed_output_is_no_failure_to_tell_of() {
        let unwritten = |kind: ErrorKind| Failed::from(Unwritten(kind.into()));
        assert_eq!(code_of(&unwritten(ErrorKind::BrokenPipe)), code::CLOSED);
        assert_eq!(code_of(&unwritten(ErrorKind::StorageFull)), code::FAILED);
        assert_eq!(code_of(&Failed::Damaged), code::FAILED);
    }

    #[test]
    fn what_is_missing_shows_in_the_exit_code() {
        let codes = [(false, 0), (true, 0), (false, 1), (true, 1)].map(|(cut, lost)| code::of_trace(cut, lost));
        assert_eq!(codes, [code::OK, code::CUT_OFF, code::DAMAGED, code::DAMAGED]);
    }
}
