//! Builds the Maven plugin, with Maven and its dependencies from Debian packages, without network access.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{GROUP, VERSION, in_path, is_newer, place, put};
use crate::command;
use crate::jdks::Jdk;
use crate::layout::Layout;

const NAME: &str = "elephant-tracks-maven-plugin";

/// The file that lists the content of a folder in a repository.
const METADATA: &str = "maven-metadata.xml";

/// The prefix of goals, as in `et:run`.
const PREFIX: &str = "et";

/// Debian packages of Maven and of what the builds of the plugin and of the example need.
pub const PACKAGES: [&str; 8] = [
    "maven",
    "libmaven-compiler-plugin-java",
    "libmaven-install-plugin-java",
    "libmaven-jar-plugin-java",
    "libmaven-plugin-tools-java",
    "libmaven-resources-plugin-java",
    "libsurefire-java",
    "junit4",
];

/// Files that those packages install in Debian's Maven repository.
const REPOSITORY: &str = "/usr/share/maven-repo";
const ARTIFACTS: [&str; 7] = [
    "org/apache/maven/plugins/maven-compiler-plugin",
    "org/apache/maven/plugins/maven-install-plugin",
    "org/apache/maven/plugins/maven-jar-plugin",
    "org/apache/maven/plugins/maven-plugin-plugin",
    "org/apache/maven/plugins/maven-resources-plugin",
    "org/apache/maven/plugins/maven-surefire-plugin",
    "junit/junit",
];

/// Why the plugin cannot be built; `None` if it can.
pub fn missing() -> Option<String> {
    let artifacts = ARTIFACTS.iter().all(|artifact| Path::new(REPOSITORY).join(artifact).is_dir());
    let all = artifacts && in_path("mvn").is_some();
    (!all).then(|| format!("please install {} (names of Debian packages), or see docs/maven.md", PACKAGES.join(" ")))
}

/// Why the plugin cannot be tested; `None` if it can.
pub fn obstacle(layout: &Layout) -> Option<String> {
    missing().or_else(|| {
        let built = repository(&layout.tools().lib()).is_dir();
        (!built).then(|| "it was not built: run cargo xtask build".into())
    })
}

/// The plugin in a repository, in the folder with `lib`.
pub fn repository(lib: &Path) -> PathBuf {
    lib.join("maven")
}

/// Maven, with Debian's packages as its only repository.
pub fn maven(layout: &Layout, compiler: &Jdk) -> Command {
    let mut maven = Command::new("mvn");
    for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "MAVEN_ARGS", "ET_OPTIONS"] {
        maven.env_remove(name);
    }
    // Each run is too short for optimizing compilation to pay.
    maven.env("MAVEN_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC").env("JAVA_HOME", &compiler.home);
    maven.args(["--offline", "--batch-mode", "-Daether.offline.protocols=file", "--settings"]);
    maven.arg(layout.repo.join("maven-plugin/debian-settings.xml"));
    maven.arg(format!("-Dmaven.repo.local={}", local_repository(layout).display()));
    maven
}

/// The local repository, where Maven keeps its copies.
fn local_repository(layout: &Layout) -> PathBuf {
    layout.target.join("maven-repository")
}

/// Maven never updates its copies of what has the same version.
pub fn forget(layout: &Layout) {
    let _ = fs::remove_dir_all(local_repository(layout).join(GROUP.replace('.', "/")));
}

/// Builds the plugin and lays it out as a repository, unless it exists and is newer than the sources.
pub fn build(compiler: &Jdk, layout: &Layout, lib: &Path) -> Result<()> {
    let sources = layout.repo.join("maven-plugin");
    let pom = sources.join("pom.xml");
    let place = place(&repository(lib), GROUP, NAME);
    let jar = place.join(format!("{NAME}-{VERSION}.jar"));
    if is_newer(&jar, &sources, std::slice::from_ref(&pom))? {
        return Ok(());
    }
    let work = layout.target.join("maven-plugin");
    // Otherwise Maven would keep classes whose sources were deleted.
    let _ = fs::remove_dir_all(&work);
    let mut maven = maven(layout, compiler);
    maven.arg("--quiet").arg(format!("-DbuildDirectory={}", work.display())).arg("--file").arg(&pom);
    command::quiet(maven.arg("package"))?;

    let _ = fs::remove_dir_all(repository(lib));
    forget(layout);
    let built = work.join(format!("{NAME}-{VERSION}.jar"));
    let bytes = fs::read(&built).with_context(|| format!("Maven did not make {}", built.display()))?;
    let text = fs::read(&pom).with_context(|| format!("cannot read {}", pom.display()))?;
    put(&place.join(format!("{NAME}-{VERSION}.pom")), &text)?;
    let versions = place.with_file_name(METADATA);
    put(&versions, metadata_of_versions().as_bytes())?;
    put(&repository(lib).join(GROUP.replace('.', "/")).join(METADATA), metadata_of_prefix().as_bytes())?;
    // Written last: if it exists, all files do.
    put(&jar, &bytes)
}

/// Metadata that map the prefix to the plugin, for builds without a declaration of the plugin.
fn metadata_of_prefix() -> String {
    format!(
        "<metadata>\n  <plugins>\n    <plugin>\n      <name>Elephant Tracks</name>\n      <prefix>{PREFIX}</prefix>\n      \
         <artifactId>{NAME}</artifactId>\n    </plugin>\n  </plugins>\n</metadata>\n"
    )
}

/// Metadata with the version of the plugin.
fn metadata_of_versions() -> String {
    format!(
        "<metadata>\n  <groupId>{GROUP}</groupId>\n  <artifactId>{NAME}</artifactId>\n  <versioning>\n    \
         <release>{VERSION}</release>\n    <versions>\n      <version>{VERSION}</version>\n    </versions>\n  \
         </versioning>\n</metadata>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pom_is_that_of_this_plugin() {
        let pom = include_str!("../../../maven-plugin/pom.xml");
        assert!(pom.contains(&format!("<artifactId>{NAME}</artifactId>\n  <version>{VERSION}</version>")));
        assert!(pom.contains(&format!("<goalPrefix>{PREFIX}</goalPrefix>")));
    }
}
