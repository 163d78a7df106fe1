//! Python packages for tests, downloaded from PyPI into `target/python`, one folder per set of packages.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::layout::Layout;
use crate::{command, packages};

/// DuckDB, which runs the queries on tables.
pub const DUCKDB: &[&str] = &["duckdb==2.0.0"];
/// The command `duckdb`, which runs the queries too.
pub const DUCKDB_COMMAND: &[&str] = &["duckdb-cli==1.5.6"];
/// Spark, which runs the queries too; 450 MB, so only on request.
pub const SPARK: &[&str] = &["pyspark==4.3.0"];
/// Packages of the notebook besides DuckDB and ours; 400 MB unpacked.
pub const NOTEBOOK: &[&str] = &["pyarrow==26.0.1", "pandas==3.1.1", "matplotlib==3.11.2"];

/// Downloads packages if they are missing, and returns their folder.
pub fn fetched(layout: &Layout, wanted: &[&str]) -> Result<PathBuf> {
    let mut install = pip("install")?;
    // Python compiles the modules that it loads; pip would compile all of them.
    install.args(["--no-compile", "--root-user-action", "ignore", "--target"]);
    downloaded(layout, wanted, "", install)
}

/// Downloads packages and what they depend on as wheels, for a Python of that version (3.11), and returns their folder.
pub fn wheels(layout: &Layout, wanted: &[&str], version: &str) -> Result<PathBuf> {
    let mut download = pip("download")?;
    download.args(["--only-binary=:all:", "--python-version", version, "--dest"]);
    downloaded(layout, wanted, &format!("wheels-{version}-"), download)
}

fn pip(task: &str) -> Result<Command> {
    let mut pip = Command::new(packages::python()?);
    pip.args(["-m", "pip", task, "--quiet", "--disable-pip-version-check", "--no-input"]);
    Ok(pip)
}

/// Downloads packages by a command to which the folder for them and their names are added.
fn downloaded(layout: &Layout, wanted: &[&str], prefix: &str, mut pip: Command) -> Result<PathBuf> {
    let folders = layout.target.join("python");
    let name = format!("{prefix}{}", wanted.join("+").replace("==", "-"));
    let folder = folders.join(&name);
    if folder.is_dir() {
        return Ok(folder);
    }
    eprintln!("downloading {} from PyPI", wanted.join(", "));
    // Several tests may do this at the same time.
    let part = folders.join(format!("{name}.{}.part", std::process::id()));
    fs::create_dir_all(&folders).with_context(|| format!("cannot make {}", folders.display()))?;
    let done = command::quiet(pip.arg(&part).args(wanted));
    if let Err(error) = done.with_context(|| format!("cannot download {} from PyPI", wanted.join(", "))) {
        let _ = fs::remove_dir_all(&part);
        return Err(error);
    }
    if fs::rename(&part, &folder).is_err() {
        // Another test was faster.
        let _ = fs::remove_dir_all(&part);
    }
    Ok(folder)
}

/// `PYTHONPATH` with these folders in front.
pub fn path(folders: &[PathBuf]) -> Result<OsString> {
    let there = env::var_os("PYTHONPATH").unwrap_or_default();
    let all = folders.iter().cloned().chain(env::split_paths(&there));
    env::join_paths(all.filter(|path| !path.as_os_str().is_empty())).context("the name of a folder contains a colon")
}
