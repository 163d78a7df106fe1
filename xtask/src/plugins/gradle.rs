//! Compiles the Gradle plugin against the oldest supported Gradle, and lays it out for the `plugins` block of a build
//! script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{GROUP, VERSION, in_path, is_newer, place, pom, write};
use crate::command;
use crate::jdks::Jdk;
use crate::layout::Layout;
use crate::runtime_java::java_files;

const ID: &str = "org.elephanttracks.instrument";
const NAME: &str = "elephant-tracks-gradle-plugin";

/// Jars of Debian's Gradle that are outside its folder.
const BESIDE_GRADLE: [&str; 2] = ["/usr/share/java/groovy-all.jar", "/usr/share/java/slf4j-api.jar"];

/// The dependencies of the example in Debian.
const EXAMPLE_NEEDS: &str = "/usr/share/java/junit4.jar";

/// The newest JDK with a security manager, which Debian's Gradle 4.4 needs to run tests.
const NEWEST_JDK: u32 = 17;

/// Why the plugin cannot be built.
pub const MISSING: &str = "no Gradle found: please install gradle (Debian's name)";

/// Home of the Gradle in `PATH`.
pub fn home() -> Option<PathBuf> {
    let home = fs::canonicalize(in_path("gradle")?).ok()?.parent()?.parent()?.to_owned();
    home.join("lib/plugins").is_dir().then_some(home)
}

/// The plugin in a repository, in the folder with `lib`.
pub fn repository(lib: &Path) -> PathBuf {
    lib.join("gradle")
}

/// Why the plugin cannot be tested, in one line; `None` if it can.
pub fn obstacle(layout: &Layout, compiler: &Jdk) -> Option<String> {
    if home().is_none() {
        return Some(MISSING.into());
    }
    if !repository(&layout.tools().lib()).is_dir() {
        return Some("it was not built: run cargo xtask build".into());
    }
    if compiler.feature > NEWEST_JDK {
        return Some(format!("Gradle 4.4 runs tests on JDK {NEWEST_JDK} or older, and {} is newer", compiler.version));
    }
    (!Path::new(EXAMPLE_NEEDS).is_file()).then(|| "please install junit4 (Debian's name)".into())
}

/// Compiles the plugin and lays it out as a repository, unless it exists and is newer than the sources.
pub fn build(compiler: &Jdk, gradle: &Path, layout: &Layout, lib: &Path) -> Result<()> {
    let sources = layout.repo.join("gradle-plugin/src/main");
    let work = layout.target.join("gradle-plugin");
    let place = place(&repository(lib), GROUP, NAME);
    let jar = place.join(format!("{NAME}-{VERSION}.jar"));
    let resources = sources.join("resources");
    let java = sources.join("java");
    if is_newer(&jar, &java, &[])? {
        return Ok(());
    }
    let classes = work.join("classes");
    let _ = fs::remove_dir_all(&classes);
    fs::create_dir_all(&classes).with_context(|| format!("cannot make {}", classes.display()))?;
    let mut javac = Command::new(compiler.home.join("bin/javac"));
    javac.args(["--release", "8", "-g", "-Xlint:-options", "-encoding", "UTF-8", "-d"]).arg(&classes);
    javac.arg("-cp").arg(class_path(gradle)).args(java_files(&java)?);
    command::quiet(&mut javac)?;

    let _ = fs::remove_dir_all(repository(lib));
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let mut pack = Command::new(compiler.home.join("bin/jar"));
    pack.args(["--create", "--no-manifest", "--date=2000-01-01T00:00:00+00:00", "--file"]).arg(&jar);
    command::quiet(pack.arg("-C").arg(&classes).arg(".").arg("-C").arg(&resources).arg("."))?;
    write(&place.join(format!("{NAME}-{VERSION}.pom")), pom(GROUP, NAME, None).as_bytes())?;
    // Gradle derives the name of this artifact from the id of the plugin; it depends on the plugin proper.
    let marker = format!("{ID}.gradle.plugin");
    let place = self::place(&repository(lib), ID, &marker);
    write(&place.join(format!("{marker}-{VERSION}.pom")), pom(ID, &marker, Some(NAME)).as_bytes())
}

fn class_path(gradle: &Path) -> String {
    let own = ["lib/*", "lib/plugins/*"].map(|folder| gradle.join(folder).display().to_string());
    let beside = BESIDE_GRADLE.map(str::to_owned);
    own.into_iter().chain(beside).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_leads_to_the_plugin() {
        let marker = pom(ID, "x", Some(NAME));
        assert!(marker.contains("<packaging>pom</packaging>") && marker.contains(&format!("<artifactId>{NAME}<")));
        assert!(!pom(GROUP, NAME, None).contains("<dependency>"));
    }
}
