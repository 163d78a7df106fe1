//! `cargo xtask docs`: generates the tables of options in `docs/`.

use std::path::Path;

use anyhow::Result;

use crate::command;
use crate::layout::Layout;

/// Writes the tables.
pub fn run(layout: &Layout) -> Result<()> {
    reference(layout, Build::Debug, "docs", &layout.repo)
}

/// The profile to build with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// The profile of tests.
    Debug,
    /// The profile of packages.
    Release,
}

/// Runs `et-reference`, which knows all options because it links the tools and the runtime; if xtask linked them,
/// every task would have to wait for their compilation. The profile is the one that is likely to be compiled already:
/// that of tests for docs, the release for packages.
pub(crate) fn reference(layout: &Layout, build: Build, what: &str, folder: &Path) -> Result<()> {
    let mut reference = command::cargo(&layout.repo);
    reference.args(["run", "--locked", "-p", "et-reference"]);
    if build == Build::Release {
        reference.arg("--release");
    }
    command::run(reference.arg("--").arg(what).arg(folder).current_dir(&layout.repo))
}
