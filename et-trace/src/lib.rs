//! The command line of `et-trace`. What it says of a trace is worked out in `et-analysis`; what a trace is, `et-trace` the library
//! knows.

mod analyses;
mod bar;
pub mod cli;
mod diff;
mod export;
mod output;
mod report;
