//! The command `et-replay`: a trace as the program that simulated collectors, allocators and caches run. The simulators are `et_simulate`; here are the
//! command line, processes that replay for it, charts and pages.

mod chart;
mod children;
pub mod cli;
mod collect;
mod memory_curve;
mod output;
