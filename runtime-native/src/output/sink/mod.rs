//! The destination of a trace: a file, a command, or the tool that makes a text.

mod error;
mod text;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::base::patience::{self, Patience};
use crate::buffers::file::{self as buffer_file, Place};
use crate::options::{Target, Text};
pub use error::SinkError;
use error::ended;
use et_format::progress::{PROGRESS_AT, PROGRESS_BLOCK, Progress};
use et_format::trace_path;
use et_format::{FILE_HEADER, FILE_MAGIC};
use text::{Maker, TextOutput, TextTo};

/// An open trace.
#[derive(Debug)]
pub struct Sink {
    out: Output,
    patience: Arc<Patience>,
    /// Bytes of complete blocks, to which a file is truncated if writing fails.
    whole: u64,
    /// The first of these bytes, to recognize whether the file is still ours.
    start: Vec<u8>,
    /// Whether it is a regular file, not a pipe, a device or a command.
    is_plain: bool,
    /// Simulates a full disk.
    #[cfg(test)]
    pub limit: Option<u64>,
}

#[derive(Debug)]
enum Output {
    File { file: File, path: PathBuf },
    Command { child: Child, command: String },
    Text(Box<TextOutput>),
}

/// Content that a file may have to be replaced.
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
    /// Opens the target. An existing trace is replaced once something is written. If another process is writing it (a
    /// traced program that starts another with the same options), it is left alone, and the process id is added to the
    /// name of this one; see [`Sink::path`].
    #[cfg(test)]
    pub fn open(target: &Target) -> Result<Self, SinkError> {
        Self::open_as(target, None, Arc::new(Patience::new(std::time::Duration::from_secs(20))))
    }

    /// As [`open`](Self::open), but makes a text if `text` is given.
    pub fn open_as(target: &Target, text: Option<&Text>, patience: Arc<Patience>) -> Result<Self, SinkError> {
        let maker = text.map(Maker::find).transpose()?;
        let out = match (target, maker) {
            (Target::File(path), None) => {
                let (file, path) = open_unless_busy(path, Old::Trace)?;
                Output::File { file, path }
            }
            (Target::File(path), Some(maker)) => {
                let (file, path) = open_unless_busy(path, Old::Text)?;
                Output::Text(Box::new(TextOutput::new(maker, TextTo::File(file, path), patience.clone())))
            }
            (Target::Command(command), Some(maker)) => {
                let to = TextTo::Command(command.clone());
                Output::Text(Box::new(TextOutput::new(maker, to, patience.clone())))
            }
            (Target::Command(command), None) => {
                let child = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).spawn();
                let command = command.clone();
                match child {
                    Ok(child) => {
                        if let Some(stdin) = &child.stdin {
                            let failed = |error| SinkError::Spawn { command: command.clone(), error };
                            patience::unblock(stdin).map_err(failed)?;
                        }
                        Output::Command { child, command }
                    }
                    Err(error) => return Err(SinkError::Spawn { command, error }),
                }
            }
        };
        let is_plain = matches!(&out, Output::File { file, .. } if file.metadata().is_ok_and(|meta| meta.is_file()));
        if let Output::File { file, path } = &out
            && !is_plain
        {
            patience::unblock(file).map_err(|error| SinkError::Create { path: path.clone(), error })?;
        }
        Ok(Self {
            out,
            patience,
            whole: 0,
            start: Vec::new(),
            is_plain,
            #[cfg(test)]
            limit: None,
        })
    }

    /// The path of the file; none for a command.
    pub fn path(&self) -> Option<&Path> {
        self.file().map(|(_, path)| path)
    }

    /// The open file and its path, for a trace or a text; `None` for a command.
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

    /// Place of the buffer file.
    pub fn buffer_place(&self) -> Place {
        match &self.out {
            Output::File { path, .. } if self.is_plain => Place::Beside(path.clone()),
            Output::File { .. } | Output::Command { .. } => Place::In(std::env::temp_dir()),
            Output::Text(_) => Place::Nameless(std::env::temp_dir()),
        }
    }

    /// Passes the buffer file on to the tool that makes the text, if there is one.
    pub fn hand_over(&mut self, buffers: io::Result<File>) {
        if let Output::Text(text) = &mut self.out {
            text.hand_over(buffers.ok());
        }
    }

    /// Whether a process reads the output, possibly slowly.
    pub fn has_reader(&self) -> bool {
        !self.is_plain
    }

    /// Whether it is a regular file, parts of which can be overwritten.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    fn plain_file(&self) -> Option<(&File, &Path)> {
        match &self.out {
            Output::File { file, path } if self.is_plain => Some((file, path)),
            _ => None,
        }
    }

    /// Overwrites the `Progress` block; false if the target does not allow that.
    ///
    /// It takes no additional disk space, so it works when other writes fail.
    pub fn write_progress(&self, progress: &Progress) -> bool {
        let block = self.plain_file().map(|(file, _)| {
            // Another process has overwritten the file: writing would damage it more.
            let room = (FILE_HEADER + PROGRESS_BLOCK) as u64;
            let is_ours = file.metadata().is_ok_and(|meta| meta.len() >= room) && self.starts_well(file);
            if is_ours { file.write_all_at(&progress.fixed_block(), PROGRESS_AT) } else { Ok(()) }
        });
        // Errors are ignored: the cause has been reported, or will be.
        block.is_some()
    }

    /// Writes complete blocks. The first write replaces an existing trace: a JVM that fails to start leaves it. After
    /// an error, the target is truncated to the last complete block if possible.
    pub fn write(&mut self, blocks: &[u8]) -> Result<(), SinkError> {
        if let Some((file, path)) = self.plain_file() {
            if file.metadata().is_ok_and(|meta| meta.nlink() == 0) {
                return Err(SinkError::Removed { path: path.to_owned() });
            }
            if self.whole == 0 {
                file.set_len(0).map_err(|error| SinkError::Write { to: self.name(), error })?;
            } else if file.metadata().is_ok_and(|meta| meta.len() < self.whole) || !self.starts_well(file) {
                return Err(SinkError::Spoilt { path: path.to_owned() });
            }
        }
        if let Output::Text(text) = &self.out {
            text.check()?;
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
            Output::File { file, .. } if self.is_plain => file.write_all(blocks),
            Output::File { file, .. } => self.patience.write(file, blocks),
            Output::Command { child, .. } => match &mut child.stdin {
                Some(stdin) => self.patience.write(stdin, blocks),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            Output::Text(text) => text.write(blocks),
        };
        match result {
            Ok(()) => {
                if self.whole == 0 {
                    if self.has_reader() {
                        report_begun();
                    }
                    self.start = blocks[..blocks.len().min(FILE_HEADER)].to_vec();
                }
                self.whole += blocks.len() as u64;
                Ok(())
            }
            Err(error) => {
                if let Some((file, _)) = self.plain_file() {
                    let _ = file.set_len(self.whole);
                }
                Err(SinkError::Write { to: self.name(), error })
            }
        }
    }

    fn starts_well(&self, file: &File) -> bool {
        let mut start = vec![0; self.start.len()];
        file.read_exact_at(&mut start, 0).is_ok_and(|()| start == self.start)
    }

    /// Closes the target. Waits for a command, within the limits of [`Patience`].
    pub fn close(self) -> Result<(), SinkError> {
        match self.out {
            Output::File { file, path } => {
                let is_pipe = file.metadata().is_ok_and(|meta| meta.file_type().is_fifo());
                let taken = if is_pipe { self.patience.drain(&file) } else { Ok(()) };
                taken.map_err(|error| SinkError::Write { to: path.display().to_string(), error })
            }
            Output::Text(text) => text.close(),
            Output::Command { mut child, command } => {
                drop(child.stdin.take());
                ended(&mut child, &command, &self.patience)
            }
        }
    }

    /// Gives up before the first write: removes an empty file.
    pub fn discard(self) {
        if let Some((file, path)) = self.file()
            && file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0)
            // Removes the target of a link.
            && let Ok(path) = fs::canonicalize(path)
            && buffer_file::is_at(file, &path)
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

/// Tells `et-instrument run`, which cannot see it, that there is a trace.
fn report_begun() {
    report(trace_path::report_line(std::process::id()).as_bytes());
}

/// Appends a line to the report for `et-instrument run`, if it waits for one.
pub fn report(line: &[u8]) {
    let Some(path) = std::env::var_os(trace_path::REPORT) else { return };
    // Only if the file was created by the parent process.
    if let Ok(mut file) = OpenOptions::new().append(true).custom_flags(libc::O_NOFOLLOW).open(path) {
        let _ = file.write_all(line);
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
    let mut file = open_ours(path)?;
    if !file.metadata().map_err(create)?.is_file() {
        // A device or a pipe: there is nothing to lose or to lock.
        return Ok(Some(file));
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        // Some network file systems do not support locks.
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

/// Opens or creates a file, but not one that another user may have planted. Linux has sysctls against this
/// (`fs.protected_symlinks`, `protected_regular`, `protected_fifos`), which are not set on all systems.
fn open_ours(path: &Path) -> Result<File, SinkError> {
    let create = |error| SinkError::Create { path: path.to_owned(), error };
    let strange = |what| SinkError::Strange { path: path.to_owned(), what };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::metadata(folder).map_err(create)?;
    let is_strange = |owner: u32| is_strange((folder.mode(), folder.uid()), owner, buffer_file::us());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = match options.clone().custom_flags(libc::O_NOFOLLOW).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            let link = fs::symlink_metadata(path).map_err(create)?;
            if is_strange(link.uid()) {
                return Err(strange("link"));
            }
            options.open(path)
        }
        opened => opened,
    }
    .map_err(create)?;
    // The target of our own link is in another folder.
    let is_here = fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink());
    if is_here && is_strange(file.metadata().map_err(create)?.uid()) {
        return Err(strange("file"));
    }
    Ok(file)
}

/// Whether a file in a folder with this mode and owner may be a trap: all users may create files there, only owners
/// may remove them, and it belongs neither to us nor to the folder's owner.
fn is_strange(folder: (u32, u32), owner: u32, us: u32) -> bool {
    let for_everybody = libc::S_ISVTX | libc::S_IWOTH;
    folder.0 & for_everybody == for_everybody && owner != us && owner != folder.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn patience() -> Arc<Patience> {
        Arc::new(Patience::new(Duration::from_secs(20)))
    }

    #[test]
    fn a_trace_that_another_process_empties_or_writes_over_is_no_longer_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        let block = vec![b'x'; 3000];
        type Spoil = fn(&Path);
        let spoils: [Spoil; 4] = [
            |path| fs::write(path, "").unwrap(),
            |path| fs::write(path, vec![b'y'; 4000]).unwrap(),
            |path| OpenOptions::new().write(true).open(path).unwrap().set_len(2000).unwrap(),
            |path| {
                let file = OpenOptions::new().write(true).open(path).unwrap();
                file.set_len(0).unwrap();
                file.set_len(9000).unwrap();
            },
        ];
        for (number, spoil) in spoils.into_iter().enumerate() {
            fs::write(&path, "").unwrap();
            let mut sink = Sink::open(&Target::File(path.clone())).unwrap();
            sink.write(&block).unwrap();
            assert!(sink.write_progress(&Progress::default()));
            sink.write(&block).unwrap();
            spoil(&path);
            let before = fs::read(&path).unwrap();
            let error = sink.write(&block).unwrap_err();
            assert!(error.to_string().ends_with("t.ettrace short or written over it"), "{number}: {error}");
            assert!(error.cause().starts_with("another process has cut"), "{}", error.cause());
            assert!(sink.write_progress(&Progress { seconds: 9.0, ..Progress::default() }));
            let after = fs::read(&path).unwrap();
            // If there is still a trace, it contains the reason for its end.
            assert_eq!(before != after, number == 2, "{number}");
        }
    }

    #[test]
    fn what_strangers_plant_is_not_written_to() {
        let (us, stranger, sticky) = (1000, 1001, 0o41777);
        for (folder, owner, expected) in [
            ((sticky, 0), us, false),
            ((sticky, 0), 0, false),
            ((sticky, 0), stranger, true),
            ((sticky, us), stranger, true),
            ((0o40777, 0), stranger, false),
            ((0o41755, 0), stranger, false),
        ] {
            assert_eq!(is_strange(folder, owner, us), expected, "{folder:?} {owner}");
        }
        // Our own links are followed.
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Sink::open(&Target::File(link)).unwrap().write(b"abc").unwrap();
        assert_eq!(fs::read(real).unwrap(), b"abc");
    }

    #[test]
    fn a_command_that_takes_nothing_or_does_not_end_is_not_waited_for_longer_than_said() {
        let open = |command: &str| {
            let patience = Arc::new(Patience::new(Duration::from_millis(200)));
            Sink::open_as(&Target::Command(command.into()), None, patience).unwrap()
        };
        let mut sink = open("exec sleep 5");
        let error = sink.write(&vec![0; 1 << 20]).unwrap_err().to_string();
        assert!(error.contains("(exec sleep 5): nothing of it was taken for 200ms (option patience)"), "{error}");
        let mut sink = open("cat > /dev/null; exec sleep 5");
        sink.write(&vec![0; 1 << 20]).unwrap();
        let error = sink.close().unwrap_err().to_string();
        assert!(error.contains("exec sleep 5) has not ended 200ms after the program"), "{error}");
    }

    #[test]
    fn what_nobody_takes_from_a_pipe_with_a_name_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let write = |limit| {
            let patience = Arc::new(Patience::new(limit));
            let mut sink = Sink::open_as(&Target::File(path.clone()), None, patience).unwrap();
            sink.write(b"abc").unwrap();
            sink
        };
        let error = write(Duration::from_millis(200)).close().unwrap_err().to_string();
        assert!(error.contains("pipe: nothing of it was taken for 200ms"), "{error}");
        let sink = write(Duration::from_secs(20));
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        sink.close().unwrap();
        assert_eq!(reader.join().unwrap(), b"abc");
    }

    #[test]
    fn a_file_is_written_and_has_its_buffers_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        let mut sink = Sink::open(&Target::File(path.clone())).unwrap();
        assert_eq!(sink.buffer_place(), Place::Beside(path.clone()));
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
        assert_eq!(sink.buffer_place(), Place::In(std::env::temp_dir()));
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
        let error = Sink::open_as(&Target::File(path.clone()), Some(&text), patience()).unwrap_err().to_string();
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
        assert_ne!(second.buffer_place(), first.buffer_place());
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
