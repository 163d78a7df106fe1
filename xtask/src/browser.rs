//! The browser in which reports are tested, and the scripts that drive it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::layout::Layout;
use crate::{assets, command, packages};

/// Names of the command.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser, if there is one.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|file| file.is_file())
}

/// Installs a browser if there is none.
pub fn ensure() -> Result<()> {
    if find().is_some() {
        return Ok(());
    }
    packages::apt_install(&["chromium"])
}

/// Why pages cannot be tested; `None` if they can.
pub fn obstacle() -> Option<String> {
    if find().is_none() {
        return Some("chromium is not installed".into());
    }
    without_npm()
}

/// Why JavaScript libraries cannot be downloaded and run; `None` if they can.
pub fn without_npm() -> Option<String> {
    ["node", "npm"]
        .into_iter()
        .find(|program| !command::exists(program))
        .map(|program| format!("{program} is not installed"))
}

/// Copies a script of `tests/` to a folder, with what it needs: `report/browse.mjs` and the scripts beside it.
pub fn driver(layout: &Layout, script: &str, folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let script = layout.repo.join("tests").join(script);
    let (from, name) = script.parent().zip(script.file_name()).context("a script is in a folder")?;
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "mjs" || end == "json") {
            let to = folder.join(path.file_name().unwrap_or_default());
            std::fs::copy(&path, to).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    assets::install(folder)?;
    Ok(folder.join(name))
}
