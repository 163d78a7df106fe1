//! Measurements and long checks: `cargo xtask` builds this when one of them is asked for (`xtask/src/lab.rs`).
#![allow(clippy::print_stderr, reason = "a tool for developers")]

mod bench;
mod collectors;
mod completeness;
mod cost;
mod deaths;
mod exploring;
mod fuzz;
mod jvmpi;
mod markdown;
mod memory;
mod monitoring;
mod programs;
mod reading;
mod startup;
mod tour;
mod verify_world;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::layout::Layout;

/// Measurements and long checks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Names and descriptions are those of [`xtask::lab::Command`].
#[derive(Subcommand)]
enum Command {
    /// Measure slowdown, memory, rewriting speed and trace size
    Bench(bench::Options),
    /// Measure the startup time of Hello World, plain and traced
    Startup(startup::Options),
    /// Run real programs plain and traced: same output, valid traces
    Programs(programs::Options),
    /// Compare traces with the VM's own count of allocated objects
    Completeness(completeness::Options),
    /// Compare deaths in traces of real programs with those that the collector reports
    Deaths(deaths::Options),
    /// Measure how long et-trace takes to read large traces, and how much memory
    Reading(reading::Options),
    /// Measure how long the explorer takes to answer a session of clicks, on traces of a given size
    Exploring(exploring::Options),
    /// Instrument all classes of four JDKs and of hundreds of jars, and verify each in a JVM
    VerifyWorld(verify_world::Options),
    /// Measure whether memory grows in a long run
    Memory(memory::Options),
    /// Measure what a monitor costs the VM it watches, and what watching many VMs costs the monitor
    Monitoring(monitoring::Options),
    /// Fuzz for hours, each target in turn; needs cargo-fuzz and a C++ compiler
    Fuzz(fuzz::Options),
    /// Stress the JVMPI host with each collector, or measure what an agent costs
    Jvmpi(jvmpi::Options),
    /// Run random programs on each of MMTk's collectors, checked after each collection; or measure real ones
    Collectors(collectors::Options),
    /// Run a command and record its cost
    #[command(hide = true)]
    Cost(cost::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    if let Command::Cost(options) = &command {
        return cost::run(options);
    }
    let layout = Layout::find()?;
    match command {
        Command::Bench(options) => bench::run(&layout, &options),
        Command::Startup(options) => startup::run(&layout, &options),
        Command::Programs(options) => programs::run(&layout, &options),
        Command::Completeness(options) => completeness::run(&layout, &options),
        Command::Deaths(options) => deaths::run(&layout, &options),
        Command::Reading(options) => reading::run(&layout, &options),
        Command::Exploring(options) => exploring::run(&layout, &options),
        Command::VerifyWorld(options) => verify_world::run(&layout, &options),
        Command::Memory(options) => memory::run(&layout, &options),
        Command::Monitoring(options) => monitoring::run(&layout, &options),
        Command::Fuzz(options) => fuzz::run(&layout, &options),
        Command::Jvmpi(options) => jvmpi::run(&layout, &options),
        Command::Collectors(options) => collectors::run(&layout, &options),
        Command::Cost(_) => Ok(()),
    }
    .map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn xtask_lists_these_commands() {
        let listed = |parser: clap::Command| -> Vec<(String, String)> {
            let commands = parser.get_subcommands().filter(|command| !command.is_hide_set());
            let about = |command: &clap::Command| command.get_about().map(ToString::to_string).unwrap_or_default();
            commands.map(|command| (command.get_name().to_owned(), about(command))).collect()
        };
        let by_xtask = xtask::lab::Command::augment_subcommands(clap::Command::new("xtask"));
        assert_eq!(listed(by_xtask), listed(Cli::command()));
    }
}
