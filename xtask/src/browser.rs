//! The browser that reports are looked at with, and what drives it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::layout::Layout;
use crate::{assets, command, packages};

/// What it is called, here and there.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser, if there is one.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|file| file.is_file())
}

/// Installs one where there is none and that is possible.
pub fn ensure() -> Result<()> {
    if find().is_some() {
        return Ok(());
    }
    packages::apt_install(&["chromium"])
}

/// Why no page can be looked at.
pub fn obstacle() -> Option<String> {
    if find().is_none() {
        return Some("there is no chromium".into());
    }
    without_npm()
}

/// Why no JavaScript can be fetched and run.
pub fn without_npm() -> Option<String> {
    ["node", "npm"]
        .into_iter()
        .find(|program| !command::exists(program))
        .map(|program| format!("there is no {program}"))
}

/// Copies a script of `tests/` to a folder, with what it needs: `report/browse.mjs`.
pub fn driver(layout: &Layout, script: &str, folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let script = layout.repo.join("tests").join(script);
    let (from, name) = script.parent().zip(script.file_name()).context("a script is in a folder")?;
    for name in ["package.json", "package-lock.json"].map(Path::new).into_iter().chain([Path::new(name)]) {
        std::fs::copy(from.join(name), folder.join(name)).with_context(|| format!("cannot copy {}", name.display()))?;
    }
    assets::install(folder)?;
    Ok(folder.join(name))
}
