//! `cargo xtask test`: the checks of CI, those that fail fastest first.

use std::env;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::Result;

use crate::layout::{self, Layout};
use crate::skips::Skips;
use crate::tidy::WorkTree;
use crate::times::{self, Phases};
use crate::{build, command, deny, jdks, setup};

/// Options of `cargo xtask test`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Skip formatting, lints and the checks of dependencies
    #[arg(long)]
    no_lints: bool,
    /// Run each test on all JDKs, rather than on one or two that its name chooses
    #[arg(long)]
    all_jdks: bool,
    /// Arguments for the test runner, such as part of a test's name
    #[arg(last = true)]
    runner: Vec<String>,
}

/// The JDKs that end-to-end tests run on.
pub const JDKS: [u32; 4] = [11, 17, 21, 25];

/// Programs that tests use if they are installed, and what is not tested without them.
const OPTIONAL: [(&str, &str); 5] = [
    ("git", "tidy: whether tests leave files in the work tree"),
    ("zsh", "completions::zsh, dist::packages: completions for zsh"),
    ("bash", "completions::bash"),
    ("fish", "dist::packages: completions for fish"),
    ("man", "dist::packages: how man shows the pages"),
];

/// Runs all checks; after the test runner's summary, lists what was not tested.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    say_room(&layout.target);
    say_room(&env::temp_dir());
    let mut phases = Phases::begin();
    if options.no_lints {
        setup::report(&setup::for_tests(layout)?);
        phases.end("setup");
    } else {
        command::run(command::cargo(&layout.repo).args(["fmt", "--all", "--check"]))?;
        // Setup waits for the network while Clippy uses the processors.
        let (setup, lints) = thread::scope(|scope| {
            let setup = scope.spawn(|| {
                let begun = Instant::now();
                setup::for_tests(layout).map(|lacks| (lacks, begun.elapsed()))
            });
            let lints = clippy(layout);
            (setup.join(), lints)
        });
        lints?;
        let (lacks, took) = setup.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        phases.end("lints, and setup beside them");
        setup::report(&lacks);
        eprintln!("setup took {:.0} s", took.as_secs_f64());
    }
    // Without MMTk and allocators, which take minutes to compile: `cargo xtask collectors` tests them.
    build::for_tests(layout)?;
    phases.end("build");
    say_jdks(layout)?;
    let skips = Skips::of(layout);
    skips.clear()?;
    if !options.no_lints {
        match deny::program(layout) {
            Ok(program) => deny::with(layout, &program)?,
            Err(error) => skips.note("licenses, sources and duplicates of dependencies", &format!("{error:#}"))?,
        }
    }
    phases.end("dependencies");
    for (program, test) in OPTIONAL {
        if !command::exists(program) {
            skips.note(test, &format!("{program} is not installed"))?;
        }
    }
    let mut tests = command::cargo(&layout.repo);
    if command::exists("cargo-nextest") {
        tests.args(["nextest", "run", "--no-fail-fast"]);
        if env::var_os(THREADS).is_none() {
            tests.env(THREADS, at_a_time().to_string());
        }
    } else {
        tests.args(["test", "--no-fail-fast"]);
    }
    if options.all_jdks {
        tests.env("ET_JDKS", "all");
    }
    let before = WorkTree::look(&layout.repo);
    if let Err(error) = &before {
        skips.note("whether tests leave files in the work tree", &format!("{error:#}"))?;
    }
    tests.args(["--workspace", "--locked"]).args(&options.runner).env(layout::TARGET, &layout.target);
    let report = layout.target.join(times::REPORT);
    // An old one would be taken for that of this run.
    _ = fs::remove_file(&report);
    let outcome = command::run(&mut tests);
    phases.end("tests");
    // Includes tests that were not selected: they could not have run either.
    eprint!("{}", skips.table()?);
    eprint!("{}{phases}", times::of_last_run(&layout.target));
    let is_tidy = before.map_or(Ok(()), |before| before.ensure_unchanged(&layout.repo));
    outcome.and(is_tidy)
}

fn clippy(layout: &Layout) -> Result<()> {
    command::run(command::cargo(&layout.repo).args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

/// The variable of nextest for the number of tests at a time; its option `--test-threads` prevails.
const THREADS: &str = "NEXTEST_TEST_THREADS";

/// One more test than there are processors: many wait for a timer or for what the system writes, and use none meanwhile.
fn at_a_time() -> usize {
    thread::available_parallelism().map_or(1, usize::from) + 1
}

/// Free space in bytes that all tests together need in `target` and in the temporary folder.
const ROOM: u64 = 20 << 30;

/// Warns if there is too little space: a full disk fails tests in many ways, not all of them obvious.
fn say_room(folder: &Path) {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    let Some(Ok(system)) = there.map(rustix::fs::statvfs) else { return };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if free < ROOM {
        let (free, room) = (free >> 30, ROOM >> 30);
        eprintln!("note: {} has {free} GB left; all tests together may take up to {room} GB", folder.display());
    }
}

/// Prints the JDKs used by tests.
fn say_jdks(layout: &Layout) -> Result<()> {
    for feature in JDKS {
        match jdks::of_feature(layout, feature) {
            Some(jdk) => eprintln!("JDK {feature}: {} in {}", jdk.version, jdk.home.display()),
            None => eprintln!("JDK {feature}: none found"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_names::releases::TESTED;

    #[test]
    fn tests_run_on_the_releases_that_are_called_tested() {
        assert_eq!(JDKS, TESTED.map(u32::from));
    }
}
