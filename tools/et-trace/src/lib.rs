//! The command line of `et-trace`. Results are computed in `et-analysis`; traces are read by `et-reader`.

mod bar;
pub mod cli;
mod output;
mod signals;

use et_cli::Program;

/// Prefix of messages.
const PROGRAM: Program = Program("et-trace");
