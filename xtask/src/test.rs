//! `cargo xtask test`: what CI runs, in the order in which it fails fastest.

use std::env;
use std::path::Path;

use anyhow::Result;

use crate::layout::Layout;
use crate::skips::Skips;
use crate::tidy::WorkTree;
use crate::{build, command, deny, jdks, setup};

/// Options of `cargo xtask test`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Leave out formatting and lints
    #[arg(long)]
    no_lints: bool,
    /// What to pass on to the test runner, such as a part of a test's name
    #[arg(last = true)]
    runner: Vec<String>,
}

/// The JDKs that end-to-end tests run on.
pub const JDKS: [u32; 4] = [11, 17, 21, 25];

/// Programs that tests use if they are there, and what is left out if they are not.
const OPTIONAL: [(&str, &str); 5] = [
    ("git", "tidy: whether tests leave files in the work tree"),
    ("zsh", "completions::zsh, dist::packages: completions for zsh"),
    ("bash", "completions::bash"),
    ("fish", "dist::packages: completions for fish"),
    ("man", "dist::packages: how man shows the pages"),
];

/// Runs it all; behind the test runner's summary comes what was not tested.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    say_room(&layout.target);
    say_room(&env::temp_dir());
    setup::for_tests(layout)?;
    if !options.no_lints {
        command::run(command::cargo(&layout.repo).args(["fmt", "--all", "--check"]))?;
        command::run(command::cargo(&layout.repo).args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))?;
    }
    // Without MMTk and allocators, which take minutes to compile: `cargo xtask collectors` tests those.
    build::run(layout)?;
    say_jdks(layout)?;
    let skips = Skips::of(layout);
    skips.clear()?;
    if !options.no_lints {
        match deny::program(layout) {
            Ok(program) => deny::with(layout, &program)?,
            Err(error) => skips.note("licences, sources and duplicates of dependencies", &format!("{error:#}"))?,
        }
    }
    for (program, test) in OPTIONAL {
        if !command::exists(program) {
            skips.note(test, &format!("there is no {program}"))?;
        }
    }
    let mut tests = command::cargo(&layout.repo);
    if command::exists("cargo-nextest") {
        tests.args(["nextest", "run", "--no-fail-fast"]);
    } else {
        tests.args(["test", "--no-fail-fast"]);
    }
    let before = WorkTree::look(&layout.repo);
    if let Err(error) = &before {
        skips.note("whether tests leave files in the work tree", &format!("{error:#}"))?;
    }
    let outcome = command::run(tests.args(["--workspace", "--locked"]).args(&options.runner));
    // Tests that were not chosen are in it, too: the reason is the same.
    eprint!("{}", skips.table()?);
    let is_tidy = before.map_or(Ok(()), |before| before.ensure_unchanged(&layout.repo));
    outcome.and(is_tidy)
}

/// Bytes that `target` has after all tests, and those that single tests have there and in the temporary folder meanwhile.
const ROOM: u64 = 30 << 30;

/// A full disk fails tests of many kinds, and not all of them say so.
fn say_room(folder: &Path) {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    let Some(Ok(system)) = there.map(rustix::fs::statvfs) else { return };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if free < ROOM {
        let (free, room) = (free >> 30, ROOM >> 30);
        eprintln!("note: {} has {free} GB left; all tests together may take up to {room}", folder.display());
    }
}

/// The JDKs that there are to test with.
fn say_jdks(layout: &Layout) -> Result<()> {
    for feature in JDKS {
        match jdks::of_feature(layout, feature) {
            Some(jdk) => eprintln!("JDK {feature}: {} in {}", jdk.version, jdk.home.display()),
            None => eprintln!("JDK {feature}: none found"),
        }
    }
    Ok(())
}
