//! Input files as byte slices in memory.
#![allow(unsafe_code)] // Mapping a file is an OS boundary; see `Input::open`.

use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use thiserror::Error;

use crate::files::FileError;

/// Why a file could not be read.
#[derive(Debug, Error)]
pub enum InputError {
    /// It is a pipe or a device.
    #[error("{path}: neither a file nor a folder")]
    NoFile {
        /// Path as given by the user.
        path: PathBuf,
    },
    /// The operating system refused it.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The bytes of a file, mapped rather than read: images and jars are large and mostly copied.
#[derive(Debug)]
pub struct Input(Option<Mmap>);

impl Input {
    /// Maps a file into memory.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        // Checked before opening, since opening a FIFO blocks until there is a writer.
        if !fs::metadata(path).map_err(FileError::at("read", path))?.is_file() {
            return Err(InputError::NoFile { path: path.to_owned() });
        }
        let file = File::open(path).map_err(FileError::at("read", path))?;
        let metadata = file.metadata().map_err(FileError::at("read", path))?;
        if metadata.len() == 0 {
            // An empty file cannot be mapped.
            return Ok(Self(None));
        }
        // SAFETY: the map is read-only and private to us. Nothing can stop another process from shortening the
        // file meanwhile (we would get SIGBUS); we write only to new files, and refuse output = input.
        let map = unsafe { Mmap::map(&file) }.map_err(FileError::at("read", path))?;
        Ok(Self(Some(map)))
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_no_input_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.jar");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = Input::open(&pipe).unwrap_err().to_string();
        assert!(error.contains("pipe.jar") && error.contains("neither a file nor a folder"), "{error}");
    }
}
