//! The command `et-replay`: replays a trace on simulated collectors, allocators and caches, and on real ones. The
//! simulators are in `et_simulate`; here are the command line, the child processes, charts and pages.

mod chart;
mod children;
pub mod cli;
mod collect;
mod memory_curve;
mod output;
