//! Installs Debian packages, among them a Python with pip; if this user may not install, names them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;

/// Installs missing packages.
pub fn ensure(wanted: &[String]) -> Result<()> {
    let missing = missing(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    apt_install(&missing.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Installs Debian packages; if this is not Debian or the user is not root, the error names them.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    let line = packages.join(" ");
    if !command::exists("apt-get") {
        bail!("please install {line} (names of Debian packages)");
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

fn missing(wanted: &[String]) -> Vec<String> {
    if !Path::new("/var/lib/dpkg").is_dir() {
        return Vec::new();
    }
    let installed = |package: &str| {
        let query = Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]).output();
        query.is_ok_and(|output| output.stdout.starts_with(b"installed"))
    };
    wanted.iter().filter(|package| !installed(package)).cloned().collect()
}

/// The command of a Python with pip.
pub fn python() -> Result<&'static str> {
    let with_pip = |python: &&str| command::quiet(Command::new(python).args(["-m", "pip", "--version"])).is_ok();
    let names = ["python3", "python"];
    if let Some(python) = names.iter().find(|python| with_pip(python)) {
        return Ok(python);
    }
    apt_install(&["python3-pip"])?;
    names.into_iter().find(|python| with_pip(python)).context("no Python with pip: please install python3-pip")
}
