//! The commands of `bench/`: measurements and long checks. They are listed here, so that `cargo xtask --help` shows them without
//! compiling them, and compiled when one is started.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::command;
use crate::layout::Layout;

/// A command of `bench/`. A test in there compares names and descriptions.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Measure slowdown, memory, rewriting speed and trace size
    Bench(Arguments),
    /// Measure the startup time of Hello World, plain and traced
    Startup(Arguments),
    /// Run real programs plain and traced: same output, valid traces
    Programs(Arguments),
    /// Compare traces with the VM's own count of allocated objects
    Completeness(Arguments),
    /// Compare deaths in traces of real programs with those that the collector reports
    Deaths(Arguments),
    /// Measure how long et-trace takes to read large traces, and how much memory
    Reading(Arguments),
    /// Measure how long the explorer takes to answer a session of clicks, on traces of a given size
    Exploring(Arguments),
    /// Instrument all classes of four JDKs and of hundreds of jars, and verify each in a JVM
    VerifyWorld(Arguments),
    /// Measure whether memory grows in a long run
    Memory(Arguments),
    /// Measure what a monitor costs the VM it watches, and what watching many VMs costs the monitor
    Monitoring(Arguments),
    /// Fuzz for hours, each target in turn; needs cargo-fuzz and a C++ compiler
    Fuzz(Arguments),
    /// Stress the JVMPI host with each collector, or measure what an agent costs
    Jvmpi(Arguments),
    /// Run random programs on each of MMTk's collectors, checked after each collection; or measure real ones
    Collectors(Arguments),
}

/// What is passed on to a command of `bench/`.
#[derive(Clone, Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Options of the command; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Builds `bench/` and runs the command that this process was started with.
pub fn run(layout: &Layout) -> Result<ExitCode> {
    // Paths in arguments are relative to the user's working directory.
    let mut bench = command::cargo(&env::current_dir().context("the working directory is gone")?);
    bench.args(["run", "--quiet", "--locked", "--package", "et-bench", "--manifest-path"]);
    bench.arg(layout.repo.join("Cargo.toml")).arg("--").args(env::args_os().skip(1));
    let status = bench.status().context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
