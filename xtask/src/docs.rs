//! `cargo xtask docs`: the tables of options in `docs/`.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::layout::Layout;

/// Writes them.
pub fn run(layout: &Layout) -> Result<()> {
    reference(layout, "docs", &layout.repo)
}

/// Has `et-reference` write something to a folder. It knows all options because it has both tools and the runtime in it;
/// here they would make every chore wait for them. As tests build it, not for release: it is used once.
pub(crate) fn reference(layout: &Layout, what: &str, folder: &Path) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut reference = Command::new(cargo);
    reference.args(["run", "--quiet", "--locked", "-p", "et-reference", "--", what]).arg(folder);
    command::run(reference.current_dir(&layout.repo))
}
