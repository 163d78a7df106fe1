#![allow(clippy::print_stderr, reason = "a tool for developers")]
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{
    assets, book, build, demo, deny, dist, docs, jdks, lab, layout::Layout, loom, quick, replayer, setup, test,
};

/// Build, test, package and measure Elephant Tracks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the tools and the runtime, laid out under target/et as they are installed
    Build(build::Options),
    /// Trace a small program that leaks, on an instrumented JDK, and show what its objects did
    Demo,
    /// Run what is quick, after each change: formatting, compilation, unit tests, one program traced on one JDK
    Quick,
    /// Run everything that CI runs: formatting, lints, unit tests, end-to-end tests
    Test(test::Options),
    /// Check licenses, sources and duplicates of dependencies with cargo-deny, downloading it if it is missing
    Deny,
    /// Download JDKs 11, 21 and 25 (run time only) if they are missing, and list all JDKs found
    Jdks(jdks::Options),
    /// Check that buffers reach the writer, and results of readers those who wait for them, whatever the order of threads (loom)
    Loom,
    /// Build et-replay as one static program, for machine simulators, under target/et/static
    Replayer,
    /// Make an archive to unpack anywhere, and a Debian package
    Dist(dist::Options),
    /// Make a Python wheel of the tools, with the package that reads traces
    Wheel(dist::wheel::Options),
    /// Rebuild the bundles of JavaScript libraries that reports and the explorer use (needs npm)
    Assets,
    /// Generate the parts of docs that come from the code, such as tables of options
    Docs,
    /// Make a searchable book of all pages under target/book, with mdBook, which is installed if it is missing
    Book,
    /// Install what the tests need, or list it if this user may not install packages
    Setup,
    #[command(flatten)]
    Lab(lab::Command),
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    let layout = Layout::find()?;
    match task {
        Task::Build(options) => build::with(&layout, options).map(drop),
        Task::Demo => demo::run(&layout),
        Task::Quick => quick::run(&layout),
        Task::Test(options) => test::run(&layout, &options),
        Task::Deny => deny::run(&layout),
        Task::Jdks(options) => jdks::run(&layout, &options),
        Task::Loom => loom::run(&layout),
        Task::Replayer => replayer::run(&layout).map(drop),
        Task::Dist(options) => dist::run(&layout, &options),
        Task::Wheel(options) => dist::wheel::run(&layout, &options),
        Task::Assets => assets::run(&layout),
        Task::Docs => docs::run(&layout),
        Task::Book => book::run(&layout),
        Task::Setup => setup::for_tests(&layout).map(|lacks| setup::report(&lacks)),
        Task::Lab(_) => return lab::run(&layout),
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
                if words[0] != "cargo" {
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
