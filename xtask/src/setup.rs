//! Installs what is missing, or says in one line what to install.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::jdks;
use crate::layout::Layout;
use crate::plugins::maven;
use crate::workloads;

/// What the whole test suite needs beyond cargo: a JDK with a compiler, the workloads' jars, other JDKs.
pub fn for_tests(layout: &Layout) -> Result<()> {
    jdks::compiler(layout)?;
    // A developer without the packages can still run all other tests: those that need them say so.
    if let Err(error) = programs(layout).and_then(|()| language_programs(layout)) {
        eprintln!("note: tests with real programs will be skipped: {error:#}");
    }
    if let Err(error) = ensure_packages(&["zsh".to_owned()]) {
        eprintln!("note: the test of completions for zsh will be skipped: {error:#}");
    }
    if let Err(error) = build_tools() {
        eprintln!("note: tests of plugins will be skipped: {error:#}");
    }
    if let Err(error) = jdks::fetch_missing(layout) {
        eprintln!("note: tests on some JDKs will be skipped: {error:#}");
    }
    Ok(())
}

/// The packages of the nine programs.
pub fn programs(layout: &Layout) -> Result<()> {
    ensure_packages(&workloads::packages(layout)?)
}

/// Build tools whose plugins are tested, and what the examples for them need.
pub fn build_tools() -> Result<()> {
    let packages = ["gradle"].iter().chain(&maven::PACKAGES);
    ensure_packages(&packages.map(|package| (*package).to_owned()).collect::<Vec<_>>())
}

/// The packages of the programs in other languages.
pub fn language_programs(layout: &Layout) -> Result<()> {
    ensure_packages(&workloads::language_packages(layout)?)
}

/// Installs those of the packages that are not there.
pub fn ensure_packages(wanted: &[String]) -> Result<()> {
    let missing = missing_packages(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    apt_install(&missing.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Installs Debian packages when we may, else names them.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    let line = packages.join(" ");
    if !command::exists("apt-get") {
        bail!("please install: {line} (Debian's names)");
    }
    if !command::is_root() {
        bail!("please run: sudo apt-get install {line}");
    }
    eprintln!("installing {line}");
    command::quiet(apt().arg("update"))?;
    command::quiet(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages))
        .with_context(|| format!("cannot install {line}"))?;
    Ok(())
}

fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet");
    apt
}

fn missing_packages(wanted: &[String]) -> Vec<String> {
    if !Path::new("/var/lib/dpkg").is_dir() {
        return Vec::new();
    }
    let installed = |package: &str| {
        let query = Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]).output();
        query.is_ok_and(|output| output.stdout.starts_with(b"installed"))
    };
    wanted.iter().filter(|package| !installed(package)).cloned().collect()
}

/// A Python that has pip.
pub fn python() -> Result<&'static str> {
    let with_pip = |python: &&str| command::quiet(Command::new(python).args(["-m", "pip", "--version"])).is_ok();
    let names = ["python3", "python"];
    if let Some(python) = names.iter().find(|python| with_pip(python)) {
        return Ok(python);
    }
    apt_install(&["python3-pip"])?;
    names.into_iter().find(|python| with_pip(python)).context("no Python with pip: please install python3-pip")
}
