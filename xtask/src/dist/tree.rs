//! A folder whose content becomes a package.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use crate::folders;

/// Folders that build tools leave in the examples.
pub const LEFT_BY_BUILDS: [&str; 3] = ["build", ".gradle", "target"];

/// The folder.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Creates an empty folder; previous content is deleted.
    pub(super) fn new(root: &Path) -> Result<Self> {
        folders::empty(root)?;
        Ok(Self { root: root.to_owned() })
    }

    /// Copies a file into a folder and returns its new path.
    pub(super) fn add(&self, file: &Path, to: impl AsRef<Path>) -> Result<PathBuf> {
        let name = file.file_name().with_context(|| format!("{} is not a file", file.display()))?;
        let folder = self.place(to)?;
        folders::make(&folder)?;
        let place = folder.join(name);
        fs::copy(file, &place).with_context(|| format!("cannot copy {} to {}", file.display(), place.display()))?;
        Ok(place)
    }

    /// Copies a folder into another, except folders with the names in `without`.
    pub(super) fn add_folder(&self, folder: &Path, to: impl AsRef<Path>, without: &[&str]) -> Result<()> {
        let name = folder.file_name().with_context(|| format!("{} is not a folder", folder.display()))?;
        copy_folder(folder, &self.place(to)?.join(name), without)
    }

    /// A path in the tree; fails if it is outside.
    fn place(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        ensure!(path.is_relative(), "{} is not in the package", path.display());
        Ok(self.root.join(path))
    }

    /// Writes a generated file.
    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let path = self.place(path)?;
        if let Some(folder) = path.parent() {
            folders::make(folder)?;
        }
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// All files, sorted by their paths in the tree.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>> {
        let all = below(&self.root, &[])?;
        let files = all.into_iter().filter(|path| !path.is_dir());
        files.map(|path| Ok(path.strip_prefix(&self.root)?.to_owned())).collect()
    }

    /// Gives all files the same time, and modes that do not depend on the umask.
    pub(super) fn settle(&self, time: SystemTime) -> Result<()> {
        let mut all = below(&self.root, &[])?;
        all.push(self.root.clone());
        for path in all {
            let programs = path.parent().is_some_and(|folder| folder.ends_with("bin"));
            let mode = if path.is_dir() || programs { 0o755 } else { 0o644 };
            let settled = fs::set_permissions(&path, Permissions::from_mode(mode))
                .and_then(|()| File::open(&path)?.set_times(FileTimes::new().set_modified(time)));
            settled.with_context(|| format!("cannot change {}", path.display()))?;
        }
        Ok(())
    }
}

/// Everything below a folder except folders with the names in `without`; each folder before its content.
fn below(folder: &Path, without: &[&str]) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let is_folder = path.is_dir();
        if is_folder && without.iter().any(|left_out| path.ends_with(left_out)) {
            continue;
        }
        all.push(path.clone());
        if is_folder {
            all.extend(below(&path, without)?);
        }
    }
    Ok(all)
}

/// Copies a folder with everything below except folders with the names in `without`.
pub fn copy_folder(from: &Path, to: &Path, without: &[&str]) -> Result<()> {
    folders::make(to)?;
    for path in below(from, without)? {
        let place = to.join(path.strip_prefix(from)?);
        if path.is_dir() {
            folders::make(&place)?;
        } else {
            fs::copy(&path, &place).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}
