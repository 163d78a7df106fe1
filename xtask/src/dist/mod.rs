//! `cargo xtask dist`: packs what `cargo xtask build` builds: an archive that can be unpacked anywhere, a Debian package, a Python
//! wheel; with checksums, and a list of the components inside.
//!
//! Packages are reproducible: files are sorted, belong to root, and have the time of the last commit.

mod archive;
mod check;
mod components;
mod deb;
mod needs;
mod notices;
mod sums;
mod tree;
pub mod wheel;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

use crate::layout::{
    DDM_JAR, HEAP_PROXY_JARS, JVMPI_LIBRARY, JVMPI_PROXY_JAR, Layout, MONITOR_LIBRARY, RUNTIME_LIBRARY, TEST_JAR, Tools,
};
use crate::plugins::{gradle, maven};
use crate::{build, command, docs, folders, setup};
use tree::Tree;

pub use tree::{LEFT_BY_BUILDS, copy_folder};

const NAME: &str = "elephant-tracks";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The variable with the time of all files, see reproducible-builds.org.
const EPOCH: &str = "SOURCE_DATE_EPOCH";
/// The time of all files if neither that variable nor git gives one: the year 2000, as in our jars.
const LONG_AGO: u64 = 946_684_800;

/// Options of `cargo xtask dist`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Leave out the plugins, which take Gradle and Maven to build
    #[arg(long)]
    without_plugins: bool,
    /// Make no Debian package, which takes dpkg-deb
    #[arg(long)]
    without_deb: bool,
    /// Make no Python wheel, which takes Python and hatchling
    #[arg(long)]
    without_wheel: bool,
    /// Folder for the packages [default: target/dist]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Builds and packs.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    if !options.without_plugins {
        setup::build_tools().context("--without-plugins leaves out what needs them")?;
    }
    if !options.without_deb && !command::exists("dpkg-deb") {
        bail!("no dpkg-deb found: install dpkg, or use --without-deb");
    }
    let steps = 4 + usize::from(!options.without_deb) + usize::from(!options.without_wheel);
    let say = |step: usize, what: &str| eprintln!("dist, step {step} of {steps}: {what}");
    say(1, "building the tools");
    let tools = build::run(layout)?;
    say(2, "writing man pages and completions");
    let work = layout.target.join("dist-work");
    let share = work.join("share");
    folders::remove(&share)?;
    docs::reference(layout, docs::Build::Release, "share", &share)?;
    let parts = Parts { layout, tools: &tools, share: &share, with_plugins: !options.without_plugins, level: 9 };
    let output = options.output.clone().unwrap_or_else(|| layout.target.join("dist"));
    say(3, "packing the archive");
    let mut made = vec![archive::write(&parts, &work, &output)?];
    if !options.without_deb {
        say(4, "packing the Debian package");
        made.push(deb::write(&parts, &work, &output)?);
    }
    if !options.without_wheel {
        say(steps - 1, "packing the Python wheel");
        made.push(wheel::write(layout, &tools, &layout.target.join("wheel-work"), &output)?);
    }
    say(steps, "listing components and checksums");
    made.push(notices::list_of_components(layout, &output)?);
    made.push(sums::write(&output, &made)?);
    made.iter().for_each(|path| println!("{}", path.display()));
    Ok(())
}

/// The parts of both packages.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The repository.
    pub layout: &'a Layout,
    /// The tools to pack.
    pub tools: &'a Tools,
    /// Man pages and completions, as `et-reference share` writes them.
    pub share: &'a Path,
    /// Whether to pack the plugins, which must have been built.
    pub with_plugins: bool,
    /// The level of gzip: 9 for what is shipped, which takes eight times as long as 1 and is a tenth smaller.
    pub level: u8,
}

impl Parts<'_> {
    /// Writes the archive to the folder `output`; temporary files go to `work`.
    pub fn archive(&self, work: &Path, output: &Path) -> Result<PathBuf> {
        archive::write(self, work, output)
    }

    /// Writes the Debian package, likewise.
    pub fn debian_package(&self, work: &Path, output: &Path) -> Result<PathBuf> {
        deb::write(self, work, output)
    }

    /// Installs the programs and the files that they need, in the expected places.
    fn install_programs(&self, tree: &Tree) -> Result<()> {
        let tools = self.tools;
        let programs =
            [tools.et_instrument(), tools.et_trace(), tools.et_replay(), tools.et_monitor(), tools.et_jvmpi()];
        for program in programs {
            stripped(&tree.add(&program, "bin")?)?;
        }
        let (lib, to) = (self.tools.lib(), "lib/elephant-tracks");
        for library in [RUNTIME_LIBRARY, JVMPI_LIBRARY, MONITOR_LIBRARY] {
            stripped(&tree.add(&lib.join(library), to)?)?;
        }
        for jar in HEAP_PROXY_JARS.into_iter().chain([JVMPI_PROXY_JAR, DDM_JAR, TEST_JAR]) {
            tree.add(&lib.join(jar), to)?;
        }
        if self.with_plugins {
            for repository in [gradle::repository(&lib), maven::repository(&lib)] {
                if !repository.is_dir() {
                    bail!(
                        "{} is missing: build on a machine with Gradle and Maven, or use --without-plugins",
                        repository.display()
                    );
                }
                tree.add_folder(&repository, to, &[])?;
            }
        }
        Ok(())
    }

    /// Installs the documents in the folder `to`, with all files that they link to.
    fn install_docs(&self, tree: &Tree, to: &str) -> Result<()> {
        let repo = &self.layout.repo;
        for file in ["README.md", "LICENSE", "CHANGELOG.md"] {
            tree.add(&repo.join(file), to)?;
        }
        for folder in ["docs", "examples", "queries"] {
            tree.add_folder(&repo.join(folder), to, &LEFT_BY_BUILDS)?;
        }
        // Required by the example for Maven on Debian.
        tree.add(&repo.join("maven-plugin/debian-settings.xml"), Path::new(to).join("maven-plugin"))?;
        Ok(())
    }
}

/// Removes debug information, nine tenths of each file; keeps symbols, for the backtraces of panics.
fn stripped(file: &Path) -> Result<()> {
    command::quiet(Command::new("strip").arg("--strip-debug").arg(file)).map(drop)
}

/// The time of all files.
fn epoch(layout: &Layout) -> Result<SystemTime> {
    let seconds = match env::var(EPOCH) {
        Ok(given) => given.parse().with_context(|| format!("{EPOCH}={given} is not a number of seconds"))?,
        Err(_) => {
            let commit = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&layout.repo).output();
            let seconds = commit.ok().and_then(|commit| String::from_utf8(commit.stdout).ok()?.trim().parse().ok());
            seconds.unwrap_or(LONG_AGO)
        }
    };
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
