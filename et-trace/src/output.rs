//! Output files: written beside what they replace, so that nobody ever finds half of one, and only over files of the same kind.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use et_files::Whole;
use et_trace::TraceFile;
use et_trace::recover::RECOVERED;
use et_trace::text::starts;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text of any dialect.
    Text,
    /// A names file.
    Names,
    /// A recovered trace. One that a run left is not replaced.
    Recovered,
    /// A profile for another tool, which nothing shows to be ours.
    Profile,
    /// A report.
    Report,
    /// A heap dump.
    HeapDump,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text of a trace",
            Self::Names => "names file",
            Self::Recovered => "recovered trace",
            Self::Profile => "profile",
            Self::Report => "report",
            Self::HeapDump => "heap dump",
        }
    }

    /// Whether what lies there can be made again as this is made.
    fn is_at(self, path: &Path) -> io::Result<bool> {
        let mut start = Vec::new();
        File::open(path)?.take(64).read_to_end(&mut start)?;
        let starts_with = |text: &str| start.starts_with(text.as_bytes());
        Ok(start.is_empty()
            || match self {
                Self::Text => starts_with(starts::TEXT) || starts_with(starts::ORACLE),
                Self::Names => starts_with(starts::NAMES),
                // An empty file is nobody's loss.
                Self::Profile => false,
                Self::Report => starts_with(et_report::START),
                Self::HeapDump => starts_with("JAVA PROFILE 1.0."),
                Self::Recovered => {
                    let trace = TraceFile::open(path).ok();
                    trace.is_some_and(|trace| trace.end().is_some_and(|end| end.reason == RECOVERED))
                }
            })
    }
}

/// Why an output cannot be written.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum OutputError {
    #[error("{path} is the trace itself (or the other output): write to another file", path = path.display())]
    SameFile { path: PathBuf },
    #[error("{path} exists and is not a {what}: write to another file, or replace it with --force", path = path.display(), what = kind.name())]
    NotOurs { path: PathBuf, kind: Kind },
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
    /// A device or a pipe.
    Directly(File),
    /// A file that is put in place when it is complete.
    Place(Whole),
}

/// How the names of files begin that are not in their place yet.
const PREFIX: &str = ".et-trace-";

impl Output {
    /// Begins a file that is none of `taken`, under whatever name: the trace is still mapped while it is read.
    pub fn create(path: &Path, kind: Kind, force: bool, taken: &[&Path]) -> Result<Self, OutputError> {
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
            return Err(OutputError::SameFile { path: path.to_owned() });
        }
        let to = match &there {
            Some(there) if !there.is_file() => To::Directly(File::options().write(true).open(path).map_err(fail)?),
            there => {
                if there.is_some() && !force && !kind.is_at(path).map_err(fail)? {
                    let path = path.to_owned();
                    return Err(match kind {
                        // What one tool's profile looks like, another's may.
                        Kind::Profile => OutputError::Exists { path },
                        kind => OutputError::NotOurs { path, kind },
                    });
                }
                // A link stays one, and what it leads to is replaced.
                let place = if there.is_some() { path.canonicalize().map_err(fail)? } else { path.to_owned() };
                // A new file is whosever the umask says it is.
                let mode = there.as_ref().map_or(0o666, |there| there.permissions().mode() & 0o777);
                To::Place(Whole::create(&place, mode, PREFIX).map_err(fail)?)
            }
        };
        Ok(Self { path: path.to_owned(), to })
    }

    fn file(&mut self) -> &mut File {
        match &mut self.to {
            To::Directly(file) => file,
            To::Place(file) => file.file(),
        }
    }

    /// The file is complete.
    pub fn finish(mut self) -> Result<(), OutputError> {
        let done = self.flush().and_then(|()| match self.to {
            To::Directly(_) => Ok(()),
            To::Place(file) => file.finish(),
        });
        done.map_err(|source| OutputError::Io { path: self.path, source })
    }

    /// What writing to it came to.
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

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn a_file_is_replaced_when_the_new_one_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let begin = |force| Output::create(&path, Kind::Text, force, &[]);
        let names = || fs::read_dir(&folder).unwrap().count();
        let mut new = begin(false).unwrap();
        new.write_all(b"half").unwrap();
        assert_eq!(names(), usize::from(matches!(&new.to, To::Place(file) if !file.is_nameless())));
        drop(new);
        assert_eq!(names(), 0, "what was not finished is gone");
        let old = format!("{}et\n", starts::TEXT);
        fs::write(&path, &old).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut new = begin(false).unwrap();
        new.write_all(b"other").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), old);
        new.finish().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("other", 1));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        // It is not ours any more.
        let error = begin(false).unwrap_err().to_string();
        assert!(
            error.ends_with("is not a text of a trace: write to another file, or replace it with --force"),
            "{error}"
        );
        begin(true).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn links_stay_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut new = Output::create(&link, Kind::Names, false, &[]).unwrap();
        new.write_all(b"names").unwrap();
        new.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"names");
        let error = Output::create(&link, Kind::Text, true, &[&target]).unwrap_err();
        assert!(matches!(error, OutputError::SameFile { .. }), "{error}");
        Output::create(Path::new("/dev/null"), Kind::Text, false, &[]).unwrap().finish().unwrap();
        assert!(Path::new("/dev/null").exists());
    }
}
