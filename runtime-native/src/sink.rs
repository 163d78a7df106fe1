//! Where the bytes of a trace go: a file, a command, or the program that makes a text of them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use et_instrument::trace_path;
use et_trace::file::format::FILE_MAGIC;
use et_trace::file::format::buffers::pipe_name;
use et_trace::file::progress::{PROGRESS_AT, Progress};
use thiserror::Error;

use crate::options::{Target, Text};
use crate::text::{Maker, TextOutput, TextTo};

/// Why a trace cannot be written.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The file cannot be made.
    #[error("cannot write the trace {path}: {error}", path = .path.display())]
    Create {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What is there is no trace.
    #[error("{path} exists and is not a {what}: choose another traceFile, or remove it", path = .path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// Nothing to make the text.
    #[error("format=text needs the program et-trace, and {why}: name it with traceTool")]
    Tool {
        /// What is wrong.
        why: String,
    },
    /// No shell, no process.
    #[error("cannot start the command of traceFile ({command}): {error}")]
    Spawn {
        /// Which.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// The disk is full, the command is gone.
    #[error("tracing stops here, the program runs on: cannot write to {to}: {error}")]
    Write {
        /// The file or command.
        to: String,
        /// Why.
        error: io::Error,
    },
    /// Somebody has removed the file, or its folder: what is written to it nobody will ever read.
    #[error("tracing stops here, the program runs on: the trace {path} was removed", path = .path.display())]
    Removed {
        /// Which.
        path: PathBuf,
    },
    /// What makes the text ended as it should not.
    #[error("{tool}, which was to make the text, failed: {status}", tool = .tool.display())]
    Text {
        /// Which program.
        tool: PathBuf,
        /// How.
        status: String,
    },
    /// The command came back with a failure.
    #[error("the command of traceFile ({command}) failed: {status}")]
    Status {
        /// Which.
        command: String,
        /// How.
        status: String,
    },
}

impl SinkError {
    /// Why, without what follows from it.
    pub fn cause(&self) -> String {
        match self {
            Self::Write { to, error } => format!("cannot write to {to}: {error}"),
            other => other.to_string(),
        }
    }
}

/// An open trace.
#[derive(Debug)]
pub struct Sink {
    out: Output,
    /// Bytes of whole blocks, what is left if writing fails.
    whole: u64,
    /// Not a pipe, a device or a command.
    is_plain: bool,
    /// Events are not written at all, only counted: what is measured then is all but the writing.
    discards_events: bool,
    /// Stands for a full disk.
    #[cfg(test)]
    pub limit: Option<u64>,
}

#[derive(Debug)]
enum Output {
    File { file: File, path: PathBuf },
    Command { child: Child, command: String },
    Text(Box<TextOutput>),
}

/// What a file may hold that is written over.
#[derive(Clone, Copy)]
enum Old {
    Trace,
    Text,
}

impl Old {
    fn is_it(self, start: &[u8]) -> bool {
        match self {
            Self::Trace => FILE_MAGIC.iter().zip(start).all(|(magic, byte)| magic == byte),
            Self::Text => trace_path::starts_text(start),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Text => "text of a trace",
        }
    }
}

impl Sink {
    /// Opens the target. A trace that is there is replaced once something is written. A trace that another process is writing (a traced
    /// program that starts another with the same options) is left alone: this one gets the process id into its
    /// name, as [`Sink::path`] then tells.
    pub fn open(target: &Target) -> Result<Self, SinkError> {
        Self::open_as(target, None)
    }

    /// As [`open`](Self::open); what is written becomes a text on its way.
    pub fn open_as(target: &Target, text: Option<&Text>) -> Result<Self, SinkError> {
        let maker = text.map(Maker::find).transpose()?;
        let out = match (target, maker) {
            (Target::File(path), None) => {
                let (file, path) = open_unless_busy(path, Old::Trace)?;
                Output::File { file, path }
            }
            (Target::File(path), Some(maker)) => {
                let (file, path) = open_unless_busy(path, Old::Text)?;
                Output::Text(Box::new(TextOutput::new(maker, TextTo::File(file, path))))
            }
            (Target::Command(command), Some(maker)) => {
                Output::Text(Box::new(TextOutput::new(maker, TextTo::Command(command.clone()))))
            }
            (Target::Command(command), None) => {
                let child = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).spawn();
                let command = command.clone();
                match child {
                    Ok(child) => Output::Command { child, command },
                    Err(error) => return Err(SinkError::Spawn { command, error }),
                }
            }
        };
        let is_plain = matches!(&out, Output::File { file, .. } if file.metadata().is_ok_and(|meta| meta.is_file()));
        Ok(Self {
            out,
            whole: 0,
            is_plain,
            discards_events: false,
            #[cfg(test)]
            limit: None,
        })
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        self.file().map(|(_, path)| path)
    }

    /// What is opened, trace or text.
    fn file(&self) -> Option<(&File, &Path)> {
        match &self.out {
            Output::File { file, path } => Some((file, path)),
            Output::Text(text) => match text.to() {
                TextTo::File(file, path) => Some((file, path)),
                TextTo::Command(_) => None,
            },
            Output::Command { .. } => None,
        }
    }

    /// Whether events are to be thrown away.
    pub fn discarding_events(self, discards_events: bool) -> Self {
        Self { discards_events, ..self }
    }

    /// See [`discarding_events`](Self::discarding_events).
    pub fn discards_events(&self) -> bool {
        self.discards_events
    }

    /// Where the buffer file lies: beside the trace, or in the temporary folder when that is not a plain file.
    pub fn buffer_path(&self) -> PathBuf {
        match &self.out {
            Output::File { path, .. } if self.is_plain => beside(path),
            _ => std::env::temp_dir().join(pipe_name(std::process::id())),
        }
    }

    /// Whether it is a plain file, of which parts can be written over.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    fn plain_file(&self) -> Option<(&File, &Path)> {
        match &self.out {
            Output::File { file, path } if self.is_plain => Some((file, path)),
            _ => None,
        }
    }

    /// Writes over the `Progress` block; false if the target does not allow that.
    ///
    /// It takes no room on the disk that the file does not have already, so it works when nothing else does.
    pub fn write_progress(&self, progress: &Progress) -> bool {
        let block = self.plain_file().map(|(file, _)| file.write_all_at(&progress.fixed_block(), PROGRESS_AT));
        // An error here is not worth more than the one that is told already, or will be.
        block.is_some()
    }

    /// Writes whole blocks. With the first, a trace that was there goes: a JVM that does not start leaves it. After an error
    /// the target is cut back to the last whole block, as far as it can be.
    pub fn write(&mut self, blocks: &[u8]) -> Result<(), SinkError> {
        if let Some((file, path)) = self.plain_file() {
            if file.metadata().is_ok_and(|meta| meta.nlink() == 0) {
                return Err(SinkError::Removed { path: path.to_owned() });
            }
            if self.whole == 0 {
                file.set_len(0).map_err(|error| SinkError::Write { to: self.name(), error })?;
            }
        }
        #[cfg(test)]
        if let (Some(limit), Output::File { file, .. }) = (self.limit, &mut self.out)
            && self.whole + blocks.len() as u64 > limit
        {
            let half = file.write_all(&blocks[..blocks.len() / 2]);
            let cut = half.and_then(|()| file.set_len(self.whole));
            let error = cut.err().unwrap_or_else(|| io::ErrorKind::StorageFull.into());
            return Err(SinkError::Write { to: self.name(), error });
        }
        let result = match &mut self.out {
            Output::File { file, .. } => file.write_all(blocks),
            Output::Command { child, .. } => match &mut child.stdin {
                Some(stdin) => stdin.write_all(blocks),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            Output::Text(text) => text.write(blocks),
        };
        match result {
            Ok(()) => {
                self.whole += blocks.len() as u64;
                Ok(())
            }
            Err(error) => {
                if let Output::File { file, .. } = &self.out {
                    let _ = file.set_len(self.whole);
                }
                Err(SinkError::Write { to: self.name(), error })
            }
        }
    }

    /// Closes it; a command is waited for.
    pub fn close(self) -> Result<(), SinkError> {
        match self.out {
            Output::File { .. } => Ok(()),
            Output::Text(text) => text.close(),
            Output::Command { mut child, command } => {
                drop(child.stdin.take());
                match child.wait() {
                    Ok(status) if status.success() => Ok(()),
                    Ok(status) => Err(SinkError::Status { command, status: status.to_string() }),
                    Err(error) => Err(SinkError::Status { command, status: error.to_string() }),
                }
            }
        }
    }

    /// Gives up before anything was written: an empty file is removed.
    pub fn discard(self) {
        if let Some((file, path)) = self.file()
            && file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0)
        {
            let _ = fs::remove_file(path);
        }
        let _ = self.close();
    }

    fn name(&self) -> String {
        match &self.out {
            Output::File { path, .. } => path.display().to_string(),
            Output::Command { command, .. } => format!("({command})"),
            Output::Text(_) => "et-trace text".into(),
        }
    }
}

/// Opens a file, or, if another process is writing it, one with the process id in its name.
fn open_unless_busy(path: &Path, old: Old) -> Result<(File, PathBuf), SinkError> {
    if let Some(file) = open_file(path, old)? {
        return Ok((file, path.to_owned()));
    }
    let path = trace_path::beside_busy(path, std::process::id());
    let busy = || SinkError::Create { path: path.clone(), error: io::ErrorKind::ResourceBusy.into() };
    Ok((open_file(&path, old)?.ok_or_else(busy)?, path))
}

/// Opens a trace file; `None` if another process is writing it. The lock lasts as long as the file is open.
fn open_file(path: &Path, old: Old) -> Result<Option<File>, SinkError> {
    let create = |error| SinkError::Create { path: path.to_owned(), error };
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(create)?;
    if !file.metadata().map_err(create)?.is_file() {
        // A device or a pipe: nothing to lose, nothing to lock.
        return Ok(Some(file));
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        // Some network file systems have no locks.
        Err(TryLockError::Error(_)) => {}
    }
    let mut start = Vec::new();
    let enough = FILE_MAGIC.len().max(trace_path::TEXT_START) as u64;
    (&mut file).take(enough).read_to_end(&mut start).map_err(create)?;
    if !start.is_empty() && !old.is_it(&start) {
        return Err(SinkError::Foreign { path: path.to_owned(), what: old.name() });
    }
    file.rewind().map_err(create)?;
    Ok(Some(file))
}

fn beside(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".buf");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_and_has_its_buffers_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        let mut sink = Sink::open(&Target::File(path.clone())).unwrap();
        assert_eq!(sink.buffer_path(), folder.path().join("t.ettrace.buf"));
        sink.write(b"abc").unwrap();
        sink.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abc");
    }

    #[test]
    fn a_command_gets_the_bytes_and_its_failure_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut sink = Sink::open(&Target::Command(format!("cat > '{}'", path.display()))).unwrap();
        sink.write(b"abc").unwrap();
        sink.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        let failing = Sink::open(&Target::Command("cat >/dev/null; exit 3".into())).unwrap();
        assert!(failing.close().unwrap_err().to_string().contains('3'));
    }

    #[test]
    fn a_full_disk_is_an_error_with_the_name_of_the_file() {
        let mut sink = Sink::open(&Target::File("/dev/full".into())).unwrap();
        assert!(!sink.buffer_path().starts_with("/dev"));
        let error = sink.write(&[0; 100]).unwrap_err().to_string();
        assert!(error.contains("/dev/full"), "{error}");
    }

    #[test]
    fn only_traces_are_replaced_and_never_one_that_is_being_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        fs::write(&path, b"PK\x03\x04 a jar").unwrap();
        let error = Sink::open(&Target::File(path.clone())).unwrap_err().to_string();
        assert!(error.contains("not a trace"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"PK\x03\x04 a jar");

        let text = Text { dialect: "et".into(), names: None, tool: Some("/bin/cat".into()) };
        let error = Sink::open_as(&Target::File(path.clone()), Some(&text)).unwrap_err().to_string();
        assert!(error.contains("not a text"), "{error}");

        let old = [&FILE_MAGIC[..], b"an old one"].concat();
        fs::write(&path, &old).unwrap();
        Sink::open(&Target::File(path.clone())).unwrap().discard();
        assert_eq!(fs::read(&path).unwrap(), old, "as long as nothing is written");
        let mut first = Sink::open(&Target::File(path.clone())).unwrap();
        first.write(b"new").unwrap();
        let second = Sink::open(&Target::File(path.clone())).unwrap();
        assert_eq!(first.path(), Some(path.as_path()));
        let other = folder.path().join(format!("t.{}.ettrace", std::process::id()));
        assert_eq!(second.path(), Some(other.as_path()));
        assert_ne!(second.buffer_path(), first.buffer_path());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_removed_trace_is_an_error_a_renamed_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        let mut sink = Sink::open(&Target::File(path.clone())).unwrap();
        let other = folder.path().join("other.ettrace");
        fs::rename(&path, &other).unwrap();
        sink.write(b"abc").unwrap();
        fs::remove_file(&other).unwrap();
        let error = sink.write(b"abc").unwrap_err().to_string();
        assert!(error.contains("t.ettrace was removed") && error.contains("the program runs on"), "{error}");
    }

    #[test]
    fn only_a_plain_file_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        let mut sink = Sink::open(&Target::File(path.clone())).unwrap();
        sink.write(&[7; 2000]).unwrap();
        assert!(sink.write_progress(&Progress::default()));
        sink.write(&[8]).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len(), bytes[15], bytes[16], bytes[1040], bytes[2000]), (2001, 7, b'E', 7, 8));
        assert!(!Sink::open(&Target::File("/dev/full".into())).unwrap().write_progress(&Progress::default()));
    }

    #[test]
    fn an_unused_file_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        Sink::open(&Target::File(path.clone())).unwrap().discard();
        assert!(!path.exists());
        assert!(Sink::open(&Target::File(folder.path().join("no/t"))).is_err());
    }
}
