//! One entry of the cache, and its locks.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use et_rewriter::rewrite::{EventSet, Witness};
use serde::{Deserialize, Serialize};

use super::{beside, seals};
use crate::artifact::Settings;
use crate::files::{FileError, remove_any, write_beside};

/// Ends of the names of lock files, which stay when an entry goes: another process may be waiting for them.
pub(super) const USE: &str = "use";
const UPDATE: &str = "update";
/// End of the name of the file that says what an entry was made of.
const ABOUT: &str = "about";
/// And of the name of a folder that is being removed.
const GONE: &str = "gone";

/// Description of what an entry was made from, for users: the key is only a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The JDK that was copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jdk: Option<PathBuf>,
    /// The options that made it differ from others.
    pub options: Vec<String>,
}

impl About {
    /// Describes these settings, omitting defaults.
    pub fn new(jdk: Option<&Path>, settings: &Settings) -> Self {
        let (events, witness) = (settings.events.with(Witness::None), settings.events.witness());
        let mut options = Vec::new();
        if events != EventSet::ALL.with(Witness::None) {
            options.push(format!("--events {events}"));
        }
        if witness != Witness::None {
            options.push(format!("--witness {}", format!("{witness:?}").to_lowercase()));
        }
        if jdk.is_none() {
            options.extend(settings.filter.options());
        }
        Self { jdk: jdk.map(Path::to_owned), options }
    }

    pub(super) fn of(folder: &Path) -> Self {
        let text = fs::read(beside(folder, ABOUT)).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }
}

/// How long a lock is waited for in silence.
const SILENT: Duration = Duration::from_secs(1);
/// Time between two attempts meanwhile.
const BETWEEN: Duration = Duration::from_millis(20);

/// A folder identified by a key. It cannot be removed during the lifetime of this value.
#[derive(Debug)]
pub struct CacheEntry {
    folder: PathBuf,
    /// None in a cache that is only read.
    in_use: Option<File>,
}

/// Exclusive right to change the entry, during the lifetime of this value.
#[derive(Debug)]
pub struct Update(#[allow(dead_code)] File);

impl CacheEntry {
    /// Opens the entry. `say` is called with a message before waiting for others.
    pub(super) fn open(parent: &Path, key: &str, say: &dyn Fn(&str)) -> Result<Self, FileError> {
        let folder = parent.join(key);
        let path = beside(&folder, USE);
        let in_use = open_lock(&path)?;
        let waiting = || say(&format!("waiting for another process, which has locked {}", path.display()));
        lock(&path, || in_use.try_lock_shared(), || in_use.lock_shared(), waiting)?;
        // Its modification time records when the entry was last used; if that fails, it may be removed too early.
        let _ = in_use.set_modified(SystemTime::now());
        Ok(Self { folder, in_use: Some(in_use) })
    }

    /// An entry in a read-only cache.
    pub(super) fn read_only(parent: &Path, key: &str) -> Self {
        Self { folder: parent.join(key), in_use: None }
    }

    /// Whether it is to stay as it is.
    pub fn is_read_only(&self) -> bool {
        self.in_use.is_none()
    }

    /// Where the content is, or is to be.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes what it was made of, if that is not noted yet.
    pub fn note(&self, about: &About) -> Result<(), FileError> {
        if self.is_read_only() || About::of(&self.folder) == *about && beside(&self.folder, ABOUT).exists() {
            return Ok(());
        }
        write_beside(&beside(&self.folder, ABOUT), &serde_json::to_vec(about).unwrap_or_default())
    }

    /// Waits until no other process changes the entry. `waiting` is called if that takes time.
    pub fn update(&self, waiting: impl FnOnce()) -> Result<Update, FileError> {
        let path = beside(&self.folder, UPDATE);
        let file = open_lock(&path)?;
        lock(&path, || file.try_lock(), || file.lock(), waiting)?;
        Ok(Update(file))
    }

    /// Like [`update`](Self::update), but returns `None` instead of waiting.
    pub fn update_now(&self) -> Option<Update> {
        let file = (!self.is_read_only()).then(|| open_lock(&beside(&self.folder, UPDATE)).ok()).flatten()?;
        file.try_lock().is_ok().then_some(Update(file))
    }
}

/// Acquires a lock, with a message before waiting: any process that can open the file can hold the lock.
fn lock(
    path: &Path,
    attempt: impl Fn() -> Result<(), TryLockError>,
    wait: impl FnOnce() -> io::Result<()>,
    waiting: impl FnOnce(),
) -> Result<(), FileError> {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(FileError::at("lock", path)(error)),
            Err(TryLockError::WouldBlock) if start.elapsed() < SILENT => thread::sleep(BETWEEN),
            Err(TryLockError::WouldBlock) => break,
        }
    }
    waiting();
    wait().map_err(FileError::at("lock", path))
}

/// Removes an entry's folder unless it is in use. Says whether it is gone.
pub(super) fn remove(folder: &Path) -> Result<bool, FileError> {
    let path = beside(folder, USE);
    let lock = open_lock(&path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(FileError::at("lock", &path)(error)),
    }
    // Under its own name it is whole or not there, also if this is interrupted.
    let gone = beside(folder, GONE);
    remove_any(&gone)?;
    match fs::rename(folder, &gone).and_then(|()| fs::remove_dir_all(&gone)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(FileError::at("remove", folder)(error)),
        _ => {
            remove_any(&beside(folder, ABOUT))?;
            seals::forget(folder).map(|()| true)
        }
    }
}

/// The file is only accessible to its owner.
fn open_lock(path: &Path) -> Result<File, FileError> {
    const OURS: u32 = 0o600;
    let file = File::options().read(true).write(true).create(true).truncate(false).mode(OURS).open(path);
    let file = file.map_err(FileError::at("write", path))?;
    if file.metadata().is_ok_and(|found| found.permissions().mode() & 0o777 != OURS) {
        file.set_permissions(Permissions::from_mode(OURS)).map_err(FileError::at("write", path))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> CacheEntry {
        CacheEntry::open(folder, "k", &|line| panic!("{line}")).unwrap()
    }

    #[test]
    fn what_is_in_use_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let entry = open(folder.path());
        fs::create_dir(entry.folder()).unwrap();
        let again = open(folder.path());
        assert!(!remove(entry.folder()).unwrap());
        let path = entry.folder().to_owned();
        drop((entry, again));
        assert!(remove(&path).unwrap() && !path.exists());
        assert!(remove(&path).unwrap(), "and nothing there is no error");
    }

    #[test]
    fn one_changes_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let entry = open(folder.path());
        let first = entry.update(|| panic!("nobody else is there")).unwrap();
        let (told, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| entry.update(|| told.send(()).unwrap()).unwrap());
            waits.recv().unwrap();
            drop(first);
            second.join().unwrap();
        });
    }

    #[test]
    fn another_holder_of_a_lock_is_reported_after_a_second() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        let path = folder.path().join("k.use");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let held = File::open(&path).unwrap();
        held.lock().unwrap();
        let start = Instant::now();
        let said = std::cell::RefCell::new(Vec::new());
        let say = |line: &str| {
            said.borrow_mut().push((line.to_owned(), start.elapsed()));
            held.unlock().unwrap();
        };
        CacheEntry::open(folder.path(), "k", &say).unwrap();
        let said = said.into_inner();
        assert!(said[0].0.contains("k.use") && said[0].1 >= SILENT && said.len() == 1, "{said:?}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "older ones are closed, too");
    }
}
