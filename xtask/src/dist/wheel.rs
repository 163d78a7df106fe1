//! `cargo xtask wheel`: the tools as a Python wheel, with the package in `tools/python` that reads traces.
//!
//! Hatchling writes the wheel; here is what goes into it and for which machines it is.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::tree::{Tree, copy_folder};
use super::{EPOCH, NAME, Parts, VERSION, check, epoch, needs, notices, seconds};
use crate::layout::{Layout, Tools};
use crate::{build, command, folders, packages, python};

/// Options of `cargo xtask wheel`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Install it where only a JDK and Python of Debian are, and run the examples of the pages and the tests of tools/python there
    #[arg(long)]
    check: bool,
    /// Pack the tools as they were last built, also by cargo xtask test
    #[arg(long)]
    no_build: bool,
    /// Folder for the wheel [default: target/dist]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A wheel of release builds stays below this.
const MOST_BYTES: u64 = 25_000_000;

/// What builds it.
const HATCHLING: &[&str] = &["hatchling==1.33.0"];

/// Builds, packs and checks.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let tools = if options.no_build { layout.tools() } else { build::run(layout)? };
    let output = options.output.clone().unwrap_or_else(|| layout.target.join("dist"));
    let work = layout.target.join("wheel-work");
    let wheel = write(layout, &tools, &work, &output)?;
    let bytes = fs::metadata(&wheel).with_context(|| format!("cannot read {}", wheel.display()))?.len();
    println!("{} ({bytes} bytes)", wheel.display());
    // Other builds have programs that are twice as large.
    ensure!(options.no_build || bytes < MOST_BYTES, "the wheel has {bytes} bytes, more than {MOST_BYTES}");
    if options.check {
        check::run(layout, &wheel, &work)?;
    }
    Ok(())
}

/// Writes the wheel to the folder `output`; temporary files go to `work`.
pub fn write(layout: &Layout, tools: &Tools, work: &Path, output: &Path) -> Result<PathBuf> {
    // The plugins are in it if they were built.
    let with_plugins = ["gradle", "maven"].iter().all(|name| tools.lib().join(name).is_dir());
    let parts = Parts { layout, tools, share: work, with_plugins, level: 9 };
    let installed = work.join("installed");
    let tree = Tree::new(&installed)?;
    parts.install_programs(&tree)?;
    let time = epoch(layout)?;
    tree.settle(time)?;
    let is_program = |path: &PathBuf| path.starts_with("bin") || path.extension().is_some_and(|end| end == "so");
    let programs: Vec<PathBuf> =
        tree.files()?.into_iter().filter(is_program).map(|path| installed.join(path)).collect();
    let glibc = needs::c_library(&programs)?;
    let platform = format!("manylinux_{}_{}_{ARCH}", glibc[0], glibc[1]);

    let project = work.join("python");
    folders::remove(&project)?;
    copy_folder(&layout.repo.join("tools/python"), &project, &check::LEFT_BY_PYTHON)?;
    let license = project.join("LICENSE");
    fs::copy(layout.repo.join("LICENSE"), &license).with_context(|| format!("cannot write {}", license.display()))?;
    for (name, text) in notices::of(layout)? {
        let path = project.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    folders::make(output)?;
    let output = fs::canonicalize(output).with_context(|| format!("cannot read {}", output.display()))?;
    let installed = fs::canonicalize(&installed).with_context(|| format!("cannot read {}", installed.display()))?;
    let hatchling = python::fetched(layout, HATCHLING)?;
    let mut hatch = Command::new(packages::python()?);
    hatch.args(["-m", "hatchling", "build", "--target", "wheel", "--directory"]).arg(&output).current_dir(&project);
    hatch.env("PYTHONPATH", python::path(&[hatchling])?).env("PYTHONDONTWRITEBYTECODE", "1");
    hatch.env(EPOCH, seconds(time).to_string());
    hatch.env("ET_WHEEL_TOOLS", &installed).env("ET_WHEEL_PLATFORM", &platform);
    command::quiet(&mut hatch)?;
    let wheel = output.join(format!("{}-{}-py3-none-{platform}.whl", NAME.replace('-', "_"), version()));
    ensure!(wheel.is_file(), "hatchling did not write {}", wheel.display());
    Ok(wheel)
}

/// The version as Python writes it (PEP 440): 1.0.0rc1 for 1.0.0-rc.1.
fn version() -> String {
    VERSION.replace("-rc.", "rc")
}
