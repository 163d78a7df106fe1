//! The file with the event buffers: its place and its owner (`docs/inside/trace-file.md`).
#![allow(unsafe_code, reason = "the system is asked who we are")]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use et_format::buffers::{self, MAGIC};
use et_format::progress::RunId;
use thiserror::Error;

/// Where to make the buffer file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Beside this trace, where `et-trace` looks for it.
    Beside(PathBuf),
    /// In this folder, with a name that is in the trace.
    In(PathBuf),
    /// In this folder, unnamed: the reader of the trace inherits it open.
    Nameless(PathBuf),
}

/// The buffer file cannot be created.
#[derive(Debug, Error)]
#[error("cannot make the event buffers {path}: {error}", path = .path.display())]
pub struct BufferError {
    path: PathBuf,
    error: io::Error,
}

/// The buffer file. It is locked while it is open, so that no other run removes it as left over.
#[derive(Debug)]
pub struct BufferFile {
    file: File,
    /// None if it is unnamed.
    path: Option<PathBuf>,
}

impl BufferFile {
    /// Creates a new file for this run only. An existing file is left alone, unless an earlier run of this user has
    /// left it.
    pub fn create(place: &Place, run: RunId) -> Result<Self, BufferError> {
        let names: Vec<PathBuf> = match place {
            Place::Beside(trace) => buffers::beside(trace, run).into(),
            Place::In(folder) => vec![folder.join(buffers::pipe_name(run))],
            Place::Nameless(folder) => {
                // Not supported by all file systems.
                if let Ok(file) = options().custom_flags(libc::O_TMPFILE).open(folder) {
                    return Ok(Self { file, path: None });
                }
                vec![folder.join(buffers::pipe_name(run))]
            }
        };
        let mut failure = None;
        let own = names.len() - 1;
        for (index, path) in names.into_iter().enumerate() {
            remove_left_over(&path);
            match create_new(&path, index == own) {
                Ok(file) if matches!(place, Place::Nameless(_)) => {
                    let _ = fs::remove_file(&path);
                    return Ok(Self { file, path: None });
                }
                Ok(file) => return Ok(Self { file, path: Some(path) }),
                Err(error) => {
                    let is_taken = error.kind() == io::ErrorKind::AlreadyExists;
                    failure = Some(BufferError { path, error });
                    if !is_taken {
                        break;
                    }
                }
            }
        }
        Err(failure.unwrap_or_else(|| BufferError { path: PathBuf::new(), error: io::ErrorKind::NotFound.into() }))
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its name for messages.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "without a name".into(), |path| path.display().to_string())
    }

    /// Removes its name, if the name still refers to it. Processes that have it open or mapped keep it.
    pub fn remove(&self) {
        if let Some(path) = &self.path
            && is_at(&self.file, path)
        {
            let _ = fs::remove_file(path);
        }
    }

    /// Removes the file, which cannot be used, and returns the error.
    pub fn fail(&self, place: &Place, error: io::Error) -> BufferError {
        self.remove();
        let (Place::Beside(near) | Place::In(near) | Place::Nameless(near)) = place;
        BufferError { path: self.path.as_ref().unwrap_or(near).clone(), error }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Exclusive: does not follow links, not even dangling ones. With `is_own`, the name cannot be that of another run.
fn create_new(path: &Path, is_own: bool) -> io::Result<File> {
    let file = options().create_new(true).open(path)?;
    let is_locked = lock(&file);
    // Until it is locked, another run that starts may take it for left over.
    if is_own || (!matches!(is_locked, Lock::Others) && is_at(&file, path)) {
        Ok(file)
    } else {
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// The process that has locked a file.
enum Lock {
    /// This process, while the file is open.
    Ours,
    Others,
    /// No process, because locks are not supported, as on some network file systems.
    None,
}

fn lock(file: &File) -> Lock {
    match file.try_lock() {
        Ok(()) => Lock::Ours,
        Err(TryLockError::WouldBlock) => Lock::Others,
        Err(TryLockError::Error(error)) => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOLCK | libc::EINVAL) => Lock::None,
            // Unknown, so assume that it is locked.
            _ => Lock::Others,
        },
    }
}

/// Whether the file is still the one with that name.
pub fn is_at(file: &File, path: &Path) -> bool {
    let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(file), Ok(there)) => identity(file) == identity(there),
        _ => false,
    }
}

/// Removes the file of an earlier run of this user that was killed.
fn remove_left_over(path: &Path) {
    let is_ours = |meta: &fs::Metadata| meta.is_file() && meta.uid() == us();
    if !fs::symlink_metadata(path).is_ok_and(|meta| is_ours(&meta)) {
        return;
    }
    // Opened for writing too, because NFS requires that for a lock.
    let Ok(mut file) = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path) else {
        return;
    };
    let mut start = Vec::new();
    let read = (&mut file).take(MAGIC.len() as u64).read_to_end(&mut start);
    let is_one = read.is_ok() && (start.is_empty() || start == MAGIC);
    // Two runs that start at once may look at the same file: only the one with the lock removes it, and only if the
    // name still refers to it.
    if is_one && !matches!(lock(&file), Lock::Others) && is_at(&file, path) {
        let _ = fs::remove_file(path);
    }
}

/// The user that owns our files.
pub fn us() -> u32 {
    // SAFETY: a system call that cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn run(id: u8) -> RunId {
        RunId::from_bytes([id; 6])
    }

    /// Creates a file as a run does, with its first bytes.
    fn create(trace: PathBuf, run: RunId) -> Result<BufferFile, BufferError> {
        use std::io::Write;
        let made = BufferFile::create(&Place::Beside(trace), run)?;
        made.file().write_all(&MAGIC).unwrap();
        Ok(made)
    }

    /// Names and permissions of the files in the folder.
    fn listing(folder: &Path) -> Vec<(String, u32)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut found: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().mode() & 0o7777))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = create("/no/such/folder/t".into(), run(1)).unwrap_err().to_string();
        assert!(error.contains("/no/such/folder/t.buf"), "{error}");
    }

    #[test]
    fn no_link_is_followed_and_no_file_of_others_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(at("victim"), at("t.buf")).unwrap();
        std::os::unix::fs::symlink(at("nothing"), at("u.buf")).unwrap();
        fs::write(at("v.buf"), "notes of mine").unwrap();
        for trace in ["t", "u", "v"] {
            let made = create(at(trace), run(1)).unwrap();
            assert_eq!(made.name(), at(&format!("{trace}.010101010101.buf")).display().to_string());
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
        assert_eq!(fs::read_to_string(at("v.buf")).unwrap(), "notes of mine");
        assert!(!at("nothing").exists());
        let made: Vec<_> = listing(folder.path()).into_iter().filter(|(name, _)| name.contains("0101")).collect();
        assert!(made.len() == 3 && made.iter().all(|(_, mode)| *mode == 0o600), "{made:?}");
        // Once more: even an unpredictable name is not taken from an existing file.
        assert!(create(at("t"), run(1)).is_ok(), "a file that we have left there is ours");
        fs::remove_file(at("t.010101010101.buf")).unwrap();
        std::os::unix::fs::symlink(at("victim"), at("t.010101010101.buf")).unwrap();
        let error = create(at("t"), run(1)).unwrap_err().to_string();
        assert!(error.contains("t.010101010101.buf") && error.contains("exists"), "{error}");
    }

    #[test]
    fn what_a_killed_run_has_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        drop(create(trace.clone(), run(1)).unwrap());
        let again = create(trace.clone(), run(2)).unwrap();
        assert_eq!(listing(folder.path()), [("t.buf".to_owned(), 0o600)]);
        assert!(is_at(again.file(), &folder.path().join("t.buf")));
        drop(again);
        // Killed before its first write.
        fs::write(folder.path().join("t.buf"), "").unwrap();
        let _again = create(trace, run(2)).unwrap();
        assert_eq!(listing(folder.path()), [("t.buf".to_owned(), 0o600)]);
    }

    #[test]
    fn what_a_run_uses_is_not_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        let first = create(trace.clone(), run(1)).unwrap();
        let second = create(trace.clone(), run(2)).unwrap();
        let names = || listing(folder.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(), ["t.020202020202.buf", "t.buf"]);
        second.remove();
        assert_eq!(names(), ["t.buf"]);
        // The file was removed, and another run has the name now.
        fs::remove_file(folder.path().join("t.buf")).unwrap();
        let third = create(trace, run(2)).unwrap();
        first.remove();
        assert_eq!(names(), ["t.buf"]);
        third.remove();
        assert_eq!(names(), [""; 0]);
    }

    #[test]
    fn what_somebody_has_locked_is_not_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.buf");
        fs::write(&path, MAGIC).unwrap();
        let others = File::open(&path).unwrap();
        assert!(matches!(lock(&others), Lock::Ours));
        remove_left_over(&path);
        assert!(path.exists());
        drop(others);
        remove_left_over(&path);
        assert!(!path.exists());
    }

    #[test]
    fn of_runs_that_start_at_once_each_has_a_file() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..50_u8 {
            let trace = folder.path().join(round.to_string());
            drop(create(trace.clone(), run(1)).unwrap());
            let starts = [2_u8, 3, 4, 5].map(|id| {
                let trace = trace.clone();
                thread::spawn(move || create(trace, run(id)).unwrap())
            });
            let made = starts.map(|start| start.join().unwrap());
            for file in made {
                assert!(is_at(file.file(), file.path.as_ref().unwrap()), "{}", file.name());
            }
        }
    }
}
