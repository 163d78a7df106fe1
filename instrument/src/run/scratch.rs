//! Files that a run passes to the JVM, in a folder that only this user can access.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

use crate::files::FileError;

/// Such a folder, removed with all that is in it after the run.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// An empty one in the folder for temporary files; if there can be none, as on a read-only system without one, in `instead`.
    pub fn new(instead: &Path) -> Result<Self, FileError> {
        let folder = |parent: &Path| {
            Builder::new().prefix("et-run-").permissions(Permissions::from_mode(0o700)).tempdir_in(parent)
        };
        let temporary = std::env::temp_dir();
        let made = folder(&temporary).or_else(|error| folder(instead).map_err(|_| error));
        Ok(Self(made.map_err(FileError::at("make a folder in", &temporary))?))
    }

    /// Writes a new file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, FileError> {
        let path = self.0.path().join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(FileError::at("write", &path))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_folder_is_private_and_removed() {
        let instead = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(instead.path()).unwrap();
        let path = scratch.write("a", "text").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        assert!(scratch.write("a", "again").is_err());
        drop(scratch);
        assert!(!path.parent().unwrap().exists());
    }
}
