#![allow(clippy::print_stderr, reason = "a tool for who develops this")]
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{
    assets, bench, book, build, collectors, completeness, cost, deaths, demo, deny, dist, docs, fuzz, jdks, jvmpi,
    layout::Layout, loom, memory, monitoring, programs, reading, replayer, setup, startup, test, verify_world,
};

/// Build, test and measure the project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build the tools and the runtime and lay them out under target/et
    Build(build::Options),
    /// Instrument a JDK and a small example, run it, show what its objects did
    Demo,
    /// Everything CI runs: formatting, lints, unit tests, end-to-end tests
    Test(test::Options),
    /// Measure slowdown, rewriting speed and trace size
    Bench(bench::Options),
    /// Measure the startup time of Hello World, plain and traced
    Startup(startup::Options),
    /// Run real programs plain and traced: same output, valid traces
    Programs(programs::Options),
    /// Compare traces with the VM's own count of allocated objects
    Completeness(completeness::Options),
    /// Compare deaths of real programs with those that the collector reports
    Deaths(deaths::Options),
    /// Measure how et-trace reads large traces: time and memory
    Reading(reading::Options),
    /// Instrument all classes of four JDKs and of hundreds of jars, and verify each in a JVM
    VerifyWorld(verify_world::Options),
    /// Check licences, sources and duplicates of dependencies with cargo-deny, which is fetched if it is missing
    Deny,
    /// List the JDKs found, after downloading run-time JDKs 11, 21 and 25 if they are missing
    Jdks(jdks::Options),
    /// Run a command and record its cost; used by `bench`
    #[command(hide = true)]
    Cost(cost::Options),
    /// Measure whether memory grows in a long run
    Memory(memory::Options),
    /// Measure what it costs to be looked at by a monitor, and to look at many VMs
    Monitoring(monitoring::Options),
    /// Test passing events to the writer in all orders of threads
    Loom,
    /// Fuzz for hours, each target in turn; needs cargo-fuzz and a C++ compiler
    Fuzz(fuzz::Options),
    /// Run an agent of JVMPI that does everything at once, many times, with each collector; or measure what one costs
    Jvmpi(jvmpi::Options),
    /// Run programs on each of MMTk's collectors: a hundred made at random, checked after each collection, or real ones, measured
    Collectors(collectors::Options),
    /// Build et-replay as one static program, for simulators of machines, under target/et/static
    Replayer,
    /// Make an archive to unpack anywhere, and a Debian package
    Dist(dist::Options),
    /// Bundle the JavaScript libraries of reports anew (needs npm)
    Assets,
    /// Generate the tables of options in docs from the code
    Docs,
    /// Make a searchable book of all pages under target/book, with mdBook, which is installed if it is missing
    Book,
    /// Install or list what the tests need: a JDK, packages of the workloads
    Setup,
}

fn main() -> ExitCode {
    match run(Cli::parse().chore) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<ExitCode> {
    if let Chore::Cost(options) = &chore {
        return cost::run(options);
    }
    let layout = Layout::find()?;
    match chore {
        Chore::Build(options) => build::with(&layout, options).map(drop),
        Chore::Replayer => replayer::run(&layout).map(drop),
        Chore::Collectors(options) => collectors::run(&layout, &options),
        Chore::Demo => demo::run(&layout),
        Chore::Deny => deny::run(&layout),
        Chore::Test(options) => test::run(&layout, &options),
        Chore::Bench(options) => bench::run(&layout, &options),
        Chore::Startup(options) => startup::run(&layout, &options),
        Chore::Programs(options) => programs::run(&layout, &options),
        Chore::Completeness(options) => completeness::run(&layout, &options),
        Chore::Deaths(options) => deaths::run(&layout, &options),
        Chore::Reading(options) => reading::run(&layout, &options),
        Chore::Monitoring(options) => monitoring::run(&layout, &options),
        Chore::Memory(options) => memory::run(&layout, &options),
        Chore::Fuzz(options) => fuzz::run(&layout, &options),
        Chore::Loom => loom::run(&layout),
        Chore::Jvmpi(options) => jvmpi::run(&layout, &options),
        Chore::VerifyWorld(options) => verify_world::run(&layout, &options),
        Chore::Jdks(options) => jdks::run(&layout, &options),
        Chore::Dist(options) => dist::run(&layout, &options),
        Chore::Assets => assets::run(&layout),
        Chore::Docs => docs::run(&layout),
        Chore::Book => book::run(&layout),
        Chore::Setup => setup::for_tests(&layout),
        Chore::Cost(_) => Ok(()),
    }
    .map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use xtask::pages;

    use super::*;

    #[test]
    fn commands_of_pages_are_understood() {
        let repo = Layout::find().unwrap().repo;
        let mut wrong = Vec::new();
        for page in pages::all(&repo).unwrap() {
            for words in pages::commands(&std::fs::read_to_string(&page).unwrap()) {
                if words[0] != "cargo" || words.get(2).is_some_and(|chore| chore == "quick") {
                    continue;
                }
                if let Err(error) = Cli::try_parse_from(&words[1..]) {
                    wrong.push(format!("{}: {}\n{error}", page.display(), words.join(" ")));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
