//! The command line of `et-trace`. What it says of a trace is worked out in `et-analysis`; what a trace is, `et-trace` the library
//! knows.

mod bar;
pub mod cli;
mod output;
mod signals;

use et_cli::Program;

/// Prefix of messages.
const PROGRAM: Program = Program("et-trace");
