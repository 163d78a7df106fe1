//! The archive: a folder that works in any place.

use std::env::consts::{ARCH, OS};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::tree::Tree;
use super::{NAME, Parts, VERSION, epoch, notices, seconds};
use crate::{command, folders};

/// Creates the archive and returns its path.
pub(super) fn write(parts: &Parts, work: &Path, output: &Path) -> Result<PathBuf> {
    let name = format!("{NAME}-{VERSION}-{ARCH}-{OS}");
    let above = work.join("archive");
    let tree = Tree::new(&above.join(&name))?;
    parts.install_programs(&tree)?;
    tree.add_folder(parts.share, "", &[])?;
    parts.install_docs(&tree, "")?;
    for (name, text) in notices::of(parts.layout)? {
        tree.write(name, text)?;
    }
    let time = epoch(parts.layout)?;
    tree.settle(time)?;
    folders::make(output)?;
    let archive = output.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    // GNU tar and gzip, available on every Linux, with the options for reproducible archives.
    tar.args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", seconds(time))).arg(format!("--use-compress-program=gzip -{}n", parts.level));
    tar.arg("--file").arg(&archive);
    command::quiet(tar.arg("--directory").arg(&above).arg(&name))?;
    Ok(archive)
}
