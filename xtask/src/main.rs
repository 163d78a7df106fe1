use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{bench, build, demo, jdks, layout::Layout, setup, test};

/// The project's chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build the tools and the runtime and lay them out under target/et
    Build,
    /// Instrument a JDK and a small example, run it, show what its objects did
    Demo,
    /// Everything CI runs: formatting, lints, unit tests, end-to-end tests
    Test(test::Options),
    /// Measure slowdown, rewriting speed and trace size
    Bench(bench::Options),
    /// List the JDKs found; fetch a run-time JDK 25 if there is none
    Jdks {
        /// Only list
        #[arg(long)]
        list: bool,
    },
    /// Install, or name, what the tests need: a JDK, the workloads' packages
    Setup,
}

fn main() -> ExitCode {
    match run(Cli::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    let layout = Layout::find()?;
    match chore {
        Chore::Build => build::run(&layout).map(drop),
        Chore::Demo => demo::run(&layout),
        Chore::Test(options) => test::run(&layout, &options),
        Chore::Bench(options) => bench::run(&layout, &options),
        Chore::Jdks { list } => jdks::run(&layout, list),
        Chore::Setup => setup::for_tests(&layout),
    }
}
