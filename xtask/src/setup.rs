//! Installs what tests and builds need; if this user may not install, names it.

use anyhow::Result;

use crate::browser;
use crate::jdks;
use crate::layout::Layout;
use crate::packages;
use crate::plugins::maven;
use crate::workloads;

/// Installs what the whole test suite needs in addition to cargo: a JDK with a compiler, the jars of the workloads,
/// other JDKs.
pub fn for_tests(layout: &Layout) -> Result<()> {
    jdks::compiler(layout)?;
    // Without the packages all other tests still run; tests that need them report that.
    // Of the other languages only that of a program which tests run.
    if let Err(error) = programs(layout).and_then(|()| packages::ensure(&["groovy".to_owned()])) {
        eprintln!("note: tests with real programs will be skipped: {error:#}");
    }
    if let Err(error) = packages::ensure(&["zsh".to_owned()]) {
        eprintln!("note: the test of zsh completions will be skipped: {error:#}");
    }
    if let Err(error) = packages::ensure(&["libxml2-utils".to_owned()]) {
        eprintln!("note: logs of the monitor agent will not be checked against their schema: {error:#}");
    }
    if let Err(error) = packages::ensure(&["libmockito-java".to_owned()]) {
        eprintln!("note: tests with mocks and advice will be skipped: {error:#}");
    }
    if let Err(error) = packages::ensure(&["junit5".to_owned()]) {
        eprintln!("note: limits of allocations in JUnit 5 will not be tested: {error:#}");
    }
    if let Err(error) = build_tools() {
        eprintln!("note: tests of plugins will be skipped: {error:#}");
    }
    if let Err(error) = browser::ensure() {
        eprintln!("note: tests of reports in a browser will be skipped: {error:#}");
    }
    if let Err(error) = jdks::fetch_missing(layout) {
        eprintln!("note: tests on some JDKs will be skipped: {error:#}");
    }
    Ok(())
}

/// Installs the packages of the nine programs.
pub fn programs(layout: &Layout) -> Result<()> {
    packages::ensure(&workloads::packages(layout)?)
}

/// Installs the build tools whose plugins are tested, and the dependencies of their examples.
pub fn build_tools() -> Result<()> {
    let packages = ["gradle"].iter().chain(&maven::PACKAGES);
    packages::ensure(&packages.map(|package| (*package).to_owned()).collect::<Vec<_>>())
}

/// Installs the packages of the programs in other languages.
pub fn language_programs(layout: &Layout) -> Result<()> {
    packages::ensure(&workloads::language_packages(layout)?)
}
