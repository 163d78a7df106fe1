//! Lists folders in an order that does not depend on the file system.

use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::{class_file, jar};
use crate::files::FileError;
use crate::report::Skip;

/// A folder's content as paths relative to it, sorted.
#[derive(Debug, Default)]
pub struct Folder {
    /// Folders, parents first.
    pub folders: Vec<PathBuf>,
    pub classes: Vec<PathBuf>,
    /// Jars, wars and ears.
    pub jars: Vec<PathBuf>,
    pub others: Vec<PathBuf>,
    /// Neither file nor folder: a copy does without.
    pub left_out: Vec<Skip>,
}

impl Folder {
    /// Lists a folder. Links are followed, since changing the copy must not change what is outside of it.
    pub fn list(root: &Path) -> Result<Self, FileError> {
        let mut folder = Self::default();
        for item in WalkDir::new(root).follow_links(true).sort_by_file_name().min_depth(1) {
            let item = match item {
                Ok(item) => item,
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_owned();
                    let dangling = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
                    if dangling && error.loop_ancestor().is_none() {
                        folder.leave_out(root, &path, "a dangling link");
                        continue;
                    }
                    let why = error.into_io_error().unwrap_or_else(|| std::io::Error::other("circular links"));
                    return Err(FileError::at("read", &path)(why));
                }
            };
            let path = item.path().strip_prefix(root).unwrap_or(item.path()).to_owned();
            if item.file_type().is_dir() {
                folder.folders.push(path);
            } else if !item.file_type().is_file() {
                folder.leave_out(root, item.path(), "neither a file nor a folder");
            } else if class_file::has_class_name(&path) {
                folder.classes.push(path);
            } else if jar::is_archive(&path.to_string_lossy()) {
                folder.jars.push(path);
            } else {
                folder.others.push(path);
            }
        }
        Ok(folder)
    }

    fn leave_out(&mut self, root: &Path, path: &Path, reason: &str) {
        let entry = path.strip_prefix(root).unwrap_or(path).display().to_string();
        self.left_out.push(Skip { entry, reason: reason.into() });
    }
}

/// Copies a file with its mode and time. Returns its size.
pub fn copy(from: &Path, to: &Path) -> Result<u64, FileError> {
    // `fs::copy` names neither file in its error.
    if let Err(error) = fs::File::open(from) {
        return Err(FileError::at("read", from)(error));
    }
    let size = fs::copy(from, to).map_err(FileError::at("write", to))?;
    like(from, to);
    Ok(size)
}

/// Copies permissions and modification time from `from` to `to`. Failure is ignored, since file systems may not support
/// it.
pub fn like(from: &Path, to: &Path) {
    let Ok(metadata) = fs::metadata(from) else { return };
    if let (Ok(time), Ok(file)) = (metadata.modified(), fs::File::options().write(true).open(to)) {
        let _ = file.set_modified(time);
    }
    let _ = fs::set_permissions(to, metadata.permissions());
}
