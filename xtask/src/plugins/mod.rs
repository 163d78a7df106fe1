//! Plugins of build tools, compiled if the build tool is installed, and laid out as Maven repositories, where Gradle
//! and Maven look for plugins.

pub mod gradle;
pub mod maven;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::jdks::Jdk;
use crate::layout::{Layout, Tools};
use crate::runtime_java::java_files;

const GROUP: &str = "org.elephanttracks";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the plugins whose build tools are installed.
pub fn build(layout: &Layout, compiler: &Jdk, tools: &Tools) -> Result<()> {
    match gradle::home() {
        Some(home) => gradle::build(compiler, &home, layout, &tools.lib()).context("the Gradle plugin")?,
        None => eprintln!("note: the Gradle plugin was not built: {}", gradle::MISSING),
    }
    match maven::missing() {
        None => maven::build(compiler, layout, &tools.lib()).context("the Maven plugin"),
        Some(reason) => {
            eprintln!("note: the Maven plugin was not built: {reason}");
            Ok(())
        }
    }
}

/// Path of a program in `PATH`. Not started, because build tools take long to start.
fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether a jar is newer than all sources in a folder and than other files.
fn is_newer(jar: &Path, sources: &Path, others: &[PathBuf]) -> Result<bool> {
    let time = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let older = |path: &PathBuf| time(path) < time(jar);
    Ok(jar.is_file() && java_files(sources)?.iter().chain(others).all(older))
}

/// The folder of an artifact in a repository.
fn place(repository: &Path, group: &str, name: &str) -> PathBuf {
    repository.join(group.replace('.', "/")).join(name).join(VERSION)
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
