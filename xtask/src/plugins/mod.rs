//! Plugins of build tools, compiled if the build tool is installed, and laid out as Maven repositories, where Gradle
//! and Maven look for plugins.

pub mod gradle;
pub mod maven;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::jdks::Jdk;
use crate::layout::{Layout, TEST_JAR, Tools};
use crate::runtime_java::java_files;

const GROUP: &str = "org.elephanttracks";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the plugins whose build tools are installed.
pub fn build(layout: &Layout, compiler: &Jdk, tools: &Tools) -> Result<()> {
    match gradle::home() {
        Some(home) => {
            gradle::build(compiler, &home, layout, &tools.lib()).context("the Gradle plugin")?;
            library(&tools.lib(), &gradle::repository(&tools.lib()))?;
        }
        None => eprintln!("note: the Gradle plugin was not built: {}", gradle::MISSING),
    }
    match maven::missing() {
        None => {
            maven::build(compiler, layout, &tools.lib()).context("the Maven plugin")?;
            if library(&tools.lib(), &maven::repository(&tools.lib()))? {
                maven::forget(layout);
            }
            Ok(())
        }
        Some(reason) => {
            eprintln!("note: the Maven plugin was not built: {reason}");
            Ok(())
        }
    }
}

/// Puts the library of tests into a repository, for builds that depend on it by its name; returns whether it is new.
fn library(lib: &Path, repository: &Path) -> Result<bool> {
    const NAME: &str = "et-test";
    let place = place(repository, GROUP, NAME);
    let built = lib.join(TEST_JAR);
    let bytes = fs::read(&built).with_context(|| format!("{} was not built", built.display()))?;
    let jar = place.join(format!("{NAME}-{VERSION}.jar"));
    if fs::read(&jar).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    put(&place.join(format!("{NAME}-{VERSION}.pom")), pom(GROUP, NAME, None).as_bytes())?;
    put(&jar, &bytes)?;
    Ok(true)
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

/// The description of an artifact, perhaps one that only stands for another.
fn pom(group: &str, name: &str, depends_on: Option<&str>) -> String {
    let dependency = depends_on.map(|name| {
        format!(
            "  <dependencies>\n    <dependency>\n      <groupId>{GROUP}</groupId>\n      \
             <artifactId>{name}</artifactId>\n      <version>{VERSION}</version>\n    </dependency>\n  \
             </dependencies>\n"
        )
    });
    let packaging = if depends_on.is_some() { "  <packaging>pom</packaging>\n" } else { "" };
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  \
         <groupId>{group}</groupId>\n  <artifactId>{name}</artifactId>\n  <version>{VERSION}</version>\n\
         {packaging}{}</project>\n",
        dependency.unwrap_or_default()
    )
}

/// Puts a file into a repository, with its checksum, without which Maven prints warnings.
fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes)?;
    let sum = command::read(Command::new("sha1sum").arg(path))?;
    let hex = sum.split_whitespace().next().with_context(|| format!("no checksum of {}", path.display()))?;
    write(Path::new(&format!("{}.sha1", path.display())), hex.as_bytes())
}
