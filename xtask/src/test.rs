//! `cargo xtask test`: what CI runs, in the order in which it fails fastest.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::layout::Layout;
use crate::workloads::{self, Runner, TEST_SCALE};
use crate::{build, command, jdks, plugins, setup};

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

/// Runs it all; the test runner's summary comes last.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    setup::for_tests(layout)?;
    if !options.no_lints {
        command::run(cargo(layout).args(["fmt", "--all", "--check"]))?;
        command::run(cargo(layout).args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))?;
    }
    build::run(layout)?;
    say_what_is_skipped(layout)?;
    let mut tests = cargo(layout);
    if command::exists("cargo-nextest") {
        tests.args(["nextest", "run", "--no-fail-fast"]);
    } else {
        tests.args(["test", "--no-fail-fast"]);
    }
    command::run(tests.args(["--workspace", "--locked"]).args(&options.runner))
}

/// Test runners count skipped tests and keep the reasons to themselves. Programs of `tests/java` that need a newer
/// JDK say so in a line that starts with `// needs:`.
fn say_what_is_skipped(layout: &Layout) -> Result<()> {
    let compiler = jdks::compiler(layout)?;
    if let Some(reason) = plugins::gradle::obstacle(layout, &compiler) {
        eprintln!("the Gradle plugin: its test is skipped: {reason}");
    }
    if let Some(reason) = plugins::maven::obstacle(layout) {
        eprintln!("the Maven plugin: its test is skipped: {reason}");
    }
    if !command::exists("dpkg-deb") {
        eprintln!("the Debian package: its test is skipped: no dpkg-deb found");
    }
    if !command::exists("zsh") {
        eprintln!("completions for zsh: their test is skipped: no zsh found");
    }
    for feature in JDKS {
        let Some(jdk) = jdks::of_feature(layout, feature) else {
            eprintln!("JDK {feature}: none found, its tests are skipped");
            continue;
        };
        eprintln!("JDK {feature}: {} in {}", jdk.version, jdk.home.display());
        let runner = Runner::new(layout, &layout.target.join("e2e"), TEST_SCALE, &compiler, &jdk)?;
        for workload in workloads::in_tests(feature) {
            if let Some(reason) = runner.obstacle(&workload, &jdk) {
                eprintln!("JDK {feature}: {} is skipped: {reason}", workload.name);
            }
        }
    }
    Ok(())
}

fn cargo(layout: &Layout) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&layout.repo);
    cargo
}
