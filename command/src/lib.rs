//! What the commands have in common: how arguments are refused, exit codes, messages, and output that does a terminal no harm.

pub mod code;
mod out;

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use et_names::escape::OneLine;

pub use out::{Unwritten, print, print_json, write_out};

/// A program of ours, by its name: what its messages begin with.
#[derive(Clone, Copy, Debug)]
pub struct Program(pub &'static str);

/// Why a command failed: one line.
pub trait Failure: Display {
    /// What could not be written to standard output, if it was that.
    fn unwritten(&self) -> Option<&Unwritten>;
}

impl Program {
    /// A line on standard error, in one piece. If nobody reads it there is nobody to tell.
    pub fn say(self, line: fmt::Arguments<'_>) {
        let line = format!("{}: {}\n", self.0, OneLine(line));
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// The exit code of what was done, once a failure is said.
    pub fn end(self, done: Result<u8, impl Failure>) -> ExitCode {
        ExitCode::from(match done {
            Ok(code) => code,
            // Whoever reads us has seen enough: nothing is to be said, but not all was written.
            Err(error) if error.unwritten().is_some_and(Unwritten::is_closed) => code::CLOSED,
            Err(error) => {
                self.say(format_args!("{error}"));
                code::FAILED
            }
        })
    }
}

/// Says what is wrong with the command line of this process, or helps: the exit code.
pub fn refuse<P: Parser>(error: clap::Error) -> ExitCode {
    // Arguments stand in the message as they were given: it is made of safe ones.
    let safe = std::env::args_os().map(|argument| OneLine(argument.to_string_lossy()).to_string());
    let error = P::try_parse_from(safe).err().unwrap_or(error);
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(code::FAILED))
}
