//! Installs what tests and builds need; if this user may not install, names it.

use anyhow::Result;

use crate::browser;
use crate::jdks;
use crate::layout::Layout;
use crate::packages;
use crate::plugins::maven;
use crate::workloads;

/// Installs what the whole test suite needs in addition to cargo: a JDK with a compiler, the jars of the workloads,
/// other JDKs. Returns what could not be installed: tests that need it report that, and all others still run.
pub fn for_tests(layout: &Layout) -> Result<Vec<String>> {
    jdks::compiler(layout)?;
    let package = |name: &str| packages::ensure(&[name.to_owned()]);
    let mut lacks = Vec::new();
    let mut wants = |what: &str, installed: Result<()>| {
        if let Err(error) = installed {
            lacks.push(format!("{what}: {error:#}"));
        }
    };
    // Of the other languages only that of a program which tests run.
    wants("tests with real programs will be skipped", programs(layout).and_then(|()| package("groovy")));
    wants("the test of zsh completions will be skipped", package("zsh"));
    wants("logs of the monitor agent will not be checked against their schema", package("libxml2-utils"));
    wants("tests with mocks and advice will be skipped", package("libmockito-java"));
    wants("limits of allocations in JUnit 5 will not be tested", package("junit5"));
    wants("tests of plugins will be skipped", build_tools());
    wants("tests of reports in a browser will be skipped", browser::ensure());
    wants("tests on some JDKs will be skipped", jdks::fetch_missing(layout));
    Ok(lacks)
}

/// Says what [`for_tests`] could not install.
pub fn report(lacks: &[String]) {
    lacks.iter().for_each(|lack| eprintln!("note: {lack}"));
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
