//! Files and folders, with errors that name them.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use thiserror::Error;

/// The operating system refused something.
#[derive(Debug, Error)]
#[error("cannot {what} {path}: {source}")]
pub struct FileError {
    /// The operation: `read`, `write`, `create` …
    pub what: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    pub source: io::Error,
}

impl FileError {
    /// Adds the path to an I/O error: `map_err(FileError::at("read", path))`.
    pub fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self { what, path, source }
    }
}

/// Creates a folder and its missing parents.
pub(crate) fn create_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(FileError::at("create", path))
}

pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    fs::write(path, bytes).map_err(FileError::at("write", path))
}

/// A random number for a file name that others cannot guess and create first.
pub(crate) fn unguessable() -> u64 {
    // Its keys are the system's random numbers.
    RandomState::new().build_hasher().finish()
}

/// Writes a file so that others see all of it or nothing.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, |part| fs::write(part, bytes))
}

/// Like the function above, for a file with these permissions, which others must not read before it has them.
pub(crate) fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    replace(path, |part| {
        // A file left by another process would keep its permissions.
        let _ = fs::remove_file(part);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))
    })
}

/// Permissions for the copy of a file or folder: as in the original, but writable by the owner only.
pub(crate) fn mode_of_copy(original: &Metadata) -> u32 {
    let ours = if original.is_dir() { 0o700 } else { 0o600 };
    let mode = original.mode() & 0o755 | ours;
    // The copy is of our group: another one's members are as all others are.
    let is_our_group = original.gid() == rustix::process::getegid().as_raw();
    if is_our_group { mode } else { mode & !0o070 | (mode & 0o007) << 3 }
}

/// No files and folders that others may write, as long as this lives, whatever the user has said of those that programs make.
#[derive(Debug)]
pub(crate) struct Umask(Mode);

impl Umask {
    /// Tightens the umask from now on.
    pub(crate) fn tightened() -> Self {
        let before = rustix::process::umask(Mode::from_raw_mode(0o022));
        rustix::process::umask(before | Mode::from_raw_mode(0o022));
        Self(before)
    }
}

impl Drop for Umask {
    fn drop(&mut self) {
        rustix::process::umask(self.0);
    }
}

/// The same with `write`, which makes the file under another name.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), FileError> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    write(&part).and_then(|()| fs::rename(&part, path)).map_err(|error| {
        let _ = fs::remove_file(&part);
        FileError::at("write", path)(error)
    })
}

/// Removes whatever is at a path; for a link, the link itself.
pub(crate) fn remove_any(path: &Path) -> Result<(), FileError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::at("remove", path)(error)),
        _ => Ok(()),
    }
}

/// An absolute path without links in the part of it that exists.
pub fn absolute(path: &Path) -> Result<PathBuf, FileError> {
    let whole = std::path::absolute(path).map_err(FileError::at("find", path))?;
    let mut rest = Vec::new();
    let mut head = whole.as_path();
    loop {
        if let Ok(real) = fs::canonicalize(head) {
            return Ok(rest.iter().rev().fold(real, |path, name| path.join(name)));
        }
        match (head.parent(), head.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                head = parent;
            }
            _ => return Ok(whole),
        }
    }
}
