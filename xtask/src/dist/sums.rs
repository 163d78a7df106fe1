//! Checksums of the packages, as `sha256sum --check` reads them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

const FILE: &str = "SHA256SUMS";

/// Writes the checksums of these files, which are in the folder `output`.
pub(super) fn write(output: &Path, files: &[PathBuf]) -> Result<PathBuf> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = command::read(Command::new("sha256sum").current_dir(output).arg("--").args(names))?;
    let path = output.join(FILE);
    fs::write(&path, sums).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.deb");
        fs::write(&file, "x").unwrap();
        let sums = write(folder.path(), std::slice::from_ref(&file)).unwrap();
        let check = || Command::new("sha256sum").current_dir(folder.path()).arg("--check").arg(&sums).output().unwrap();
        assert!(check().status.success());
        fs::write(&file, "y").unwrap();
        assert!(!check().status.success());
    }
}
