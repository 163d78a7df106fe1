//! The Debian package: the same files below `/usr`, where Debian expects them.

use std::env;
use std::env::consts::ARCH;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tree::Tree;
use super::{EPOCH, NAME, Parts, VERSION, epoch, needs, notices, seconds};
use crate::{command, folders};

const PREFIX: &str = "usr";
const DOC: &str = "usr/share/doc/elephant-tracks";

/// Where packages put completions for zsh on Debian; `site-functions` belongs to the administrator.
const ZSH: [&str; 2] = ["usr/share/zsh/site-functions", "usr/share/zsh/vendor-completions"];

const DESCRIPTION: &str = "\
traces what every object of a Java program does
 Rewrites Java classes, those of the JDK included, so that a run leaves a
 trace: where each object is made, what it comes to refer to, which methods
 run on it, which exceptions it meets, and when it dies, in one exact order.
 .
 et-instrument rewrites and runs programs, et-trace sums up and checks traces
 and turns them into text, et-replay runs them on simulated collectors,
 et-monitor shows what running VMs do, et-jvmpi drives profilers of Java 1.2
 to 5 from a trace. Plugins for Gradle and Maven are in
 /usr/lib/elephant-tracks.
";

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Elephant Tracks

Files: *
Copyright: the authors of Elephant Tracks
License: Apache-2.0
Comment: The programs contain libraries with licenses of their own. They are
 listed, with these, in THIRD-PARTY-NOTICES.gz beside this file.

License: Apache-2.0
 On Debian systems the text of the license is in
 /usr/share/common-licenses/Apache-2.0.
";

/// Creates the package and returns its path.
pub(super) fn write(parts: &Parts, work: &Path, output: &Path) -> Result<PathBuf> {
    let architecture = architecture()?;
    let root = work.join("deb");
    let tree = Tree::new(&root)?;
    let prefix = Tree::new(&root.join(PREFIX))?;
    parts.install_programs(&prefix)?;
    prefix.add_folder(parts.share, "", &[])?;
    fs::rename(root.join(ZSH[0]), root.join(ZSH[1])).context("no completions for zsh")?;
    parts.install_docs(&tree, DOC)?;
    tree.write(&format!("{DOC}/copyright"), COPYRIGHT)?;
    for (name, text) in notices::of(parts.layout)? {
        tree.write(&format!("{DOC}/{name}"), text)?;
    }
    let files = tree.files()?;
    compress(&root, &files)?;

    let files = tree.files()?;
    let programs = files.iter().filter(|file| is_machine_code(file)).map(|file| root.join(file));
    let depends = needs::of(&programs.collect::<Vec<_>>())?;
    let kilobytes = files.iter().map(|file| fs::metadata(root.join(file)).map_or(0, |found| found.len())).sum::<u64>();
    tree.write("DEBIAN/control", control(&architecture, &depends, kilobytes.div_ceil(1024)))?;
    let mut sums = Command::new("md5sum");
    let sums = command::read(sums.current_dir(&root).arg("--").args(&files))?;
    tree.write("DEBIAN/md5sums", sums)?;

    let time = epoch(parts.layout)?;
    tree.settle(time)?;
    folders::make(output)?;
    let package = output.join(format!("{NAME}_{}_{architecture}.deb", version()));
    let mut build = Command::new("dpkg-deb");
    // gzip, which every dpkg unpacks quickly; the jars of the plugins would not get smaller with other compressions.
    build
        .env(EPOCH, seconds(time).to_string())
        .args(["--root-owner-group", "-Zgzip"])
        .arg(format!("-z{}", parts.level));
    command::quiet(build.arg("--build").arg(&root).arg(&package))?;
    Ok(package)
}

/// The version as Debian writes it: what comes before 1.0.0 has a tilde.
fn version() -> String {
    VERSION.replacen('-', "~", 1)
}

/// Debian's name for the architecture of this machine.
fn architecture() -> Result<String> {
    match ARCH {
        "x86_64" => Ok("amd64".into()),
        "aarch64" => Ok("arm64".into()),
        other => bail!("no Debian architecture is known for {other}: use --without-deb"),
    }
}

fn is_machine_code(file: &Path) -> bool {
    file.starts_with("usr/bin") || file.extension().is_some_and(|extension| extension == "so")
}

/// Compresses man pages and long texts, as in Debian, except targets of links.
fn compress(root: &Path, files: &[PathBuf]) -> Result<()> {
    let is_long = |file: &&PathBuf| {
        file.starts_with("usr/share/man") || file.file_name().is_some_and(|name| name == notices::FILE)
    };
    let long: Vec<&PathBuf> = files.iter().filter(is_long).collect();
    command::quiet(Command::new("gzip").args(["-9", "--no-name", "--"]).args(long).current_dir(root)).map(drop)
}

fn control(architecture: &str, depends: &str, kilobytes: u64) -> String {
    // The variables that Debian's own tools read.
    let name = env::var("DEBFULLNAME").unwrap_or_else(|_| "Elephant Tracks".into());
    let address = env::var("DEBEMAIL").unwrap_or_else(|_| "elephant-tracks@localhost".into());
    let mut text = String::new();
    for (field, value) in [
        ("Package", NAME),
        ("Version", &version()),
        ("Architecture", architecture),
        ("Maintainer", &format!("{name} <{address}>")),
        ("Installed-Size", &kilobytes.to_string()),
        ("Depends", depends),
        ("Suggests", "default-jdk-headless | java-sdk-headless, gradle, maven"),
        ("Section", "java"),
        ("Priority", "optional"),
        ("Description", DESCRIPTION.trim_end()),
    ] {
        let _ = writeln!(text, "{field}: {value}");
    }
    text
}
