//! `cargo xtask jvmpi`: the JVMPI host under stress, with all collectors: an agent that takes a lock in every event, requests dumps, runs the
//! collector and samples with suspension, all at once.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::layout::Layout;

/// Runs the tests of `tests/tests/jvmpi.rs` that do everything at once, each so many times.
pub fn run(layout: &Layout, runs: u32) -> Result<()> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&layout.repo).env("ET_JVMPI_RUNS", runs.to_string());
    command::run(cargo.args(["test", "-p", "et-tests", "--test", "jvmpi", "--locked", "--", "all_at_once"]))
}
