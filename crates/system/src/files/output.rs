//! Output files: written beside what they replace, so that there is never a partial one, and only over files of the
//! same kind.

use std::fmt::Debug;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Whole;

/// A kind of output file.
pub trait Kind: Copy + Debug {
    /// What messages call the input files.
    const INPUT: &'static str;
    /// Prefix of the names of files that are not in place yet.
    const PREFIX: &'static str;

    /// Name with an article, for messages; `None` if the output of one tool may look like that of another.
    fn name(self) -> Option<&'static str>;

    /// Whether the file at the path can be overwritten because it is of this kind. An empty file always can.
    fn is_at(self, path: &Path) -> io::Result<bool>;
}

/// Why an output could not be written.
#[derive(Debug, Error)]
pub enum OutputError {
    #[error("{path} is {input}: write to another file", path = path.display())]
    SameFile { path: PathBuf, input: &'static str },
    #[error("{path} exists and is not {kind}: write to another file, or replace it with --force", path = path.display())]
    NotOurs { path: PathBuf, kind: &'static str },
    #[error("{path} exists: write to another file, or replace it with --force", path = path.display())]
    Exists { path: PathBuf },
    #[error("cannot write {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A file that is being written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    /// A device or a pipe, written to directly.
    Directly(File),
    /// A regular file, put in place when it is complete.
    Place(Whole),
}

impl Output {
    /// Starts a file. Fails if it is one of `taken`, under whatever name: these are still mapped.
    pub fn create<K: Kind>(path: &Path, kind: K, force: bool, taken: &[&Path]) -> Result<Self, OutputError> {
        let fail = |source| OutputError::Io { path: path.to_owned(), source };
        let there = match path.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let is_taken = |mine: &Metadata| {
            taken.iter().any(|other| other.metadata().is_ok_and(|other| identity(&other) == identity(mine)))
        };
        if there.as_ref().is_some_and(is_taken) {
            return Err(OutputError::SameFile { path: path.to_owned(), input: K::INPUT });
        }
        let to = match &there {
            Some(there) if !there.is_file() => To::Directly(File::options().write(true).open(path).map_err(fail)?),
            there => {
                if there.is_some() && !force && !kind.is_at(path).map_err(fail)? {
                    let path = path.to_owned();
                    return Err(match kind.name() {
                        Some(kind) => OutputError::NotOurs { path, kind },
                        None => OutputError::Exists { path },
                    });
                }
                // A symbolic link is kept; its target is replaced.
                let place = if there.is_some() { path.canonicalize().map_err(fail)? } else { path.to_owned() };
                // A new file gets its permissions from the umask.
                let mode = there.as_ref().map_or(0o666, |there| there.permissions().mode() & 0o777);
                To::Place(Whole::create(&place, mode, K::PREFIX).map_err(fail)?)
            }
        };
        Ok(Self { path: path.to_owned(), to })
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        match &mut self.to {
            To::Directly(file) => file,
            To::Place(file) => file.file(),
        }
    }

    /// Whether nothing remains in the directory if the process is killed now.
    pub fn is_nameless(&self) -> bool {
        match &self.to {
            To::Directly(_) => true,
            To::Place(file) => file.is_nameless(),
        }
    }

    /// Writes the whole content and completes the file.
    pub fn write_whole(mut self, content: &[u8]) -> Result<(), OutputError> {
        self.write_all(content).map_err(|source| self.error(source))?;
        self.finish()
    }

    /// Completes the file and puts it in place.
    pub fn finish(mut self) -> Result<(), OutputError> {
        let done = self.flush().and_then(|()| match self.to {
            To::Directly(_) => Ok(()),
            To::Place(file) => file.finish(),
        });
        done.map_err(|source| OutputError::Io { path: self.path, source })
    }

    /// Adds the path to a write error.
    pub fn error(&self, source: io::Error) -> OutputError {
        OutputError::Io { path: self.path.clone(), source }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}
