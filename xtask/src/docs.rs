//! `cargo xtask docs`: the tables of options in `docs/`.

use std::path::Path;

use anyhow::Result;

use crate::command;
use crate::layout::Layout;

/// Writes them.
pub fn run(layout: &Layout) -> Result<()> {
    reference(layout, Build::Debug, "docs", &layout.repo)
}

/// Which of cargo's profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// As tests are.
    Debug,
    /// As `cargo xtask build` does it.
    Release,
}

/// Has `et-reference` write something to a folder. It knows all options because it has both tools and the runtime in it;
/// here they would make every chore wait for them. It is built from what there is of them already: in the docs' case what tests
/// use, in that of packages the release.
pub(crate) fn reference(layout: &Layout, build: Build, what: &str, folder: &Path) -> Result<()> {
    let mut reference = command::cargo(&layout.repo);
    reference.args(["run", "--locked", "-p", "et-reference"]);
    if build == Build::Release {
        reference.arg("--release");
    }
    command::run(reference.arg("--").arg(what).arg(folder).current_dir(&layout.repo))
}
