//! One entry of the cache, and its locks.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// What an entry was made of, for people: the key tells it from others, and says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The JDK that was copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jdk: Option<PathBuf>,
    /// The options that made it differ from others.
    pub options: Vec<String>,
}

impl About {
    /// With these settings; those that hold without options are not told.
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

/// A folder under a key. As long as this lives, nobody removes it.
#[derive(Debug)]
pub struct CacheEntry {
    folder: PathBuf,
    _in_use: File,
}

/// As long as this lives, nobody else changes the entry.
#[derive(Debug)]
pub struct Update(#[allow(dead_code)] File);

impl CacheEntry {
    pub(super) fn open(parent: &Path, key: &str) -> Result<Self, FileError> {
        let folder = parent.join(key);
        let path = beside(&folder, USE);
        let in_use = open_lock(&path)?;
        in_use.lock_shared().map_err(FileError::at("lock", &path))?;
        // Its time tells when the entry was used last; if that cannot be noted, it is only removed too early.
        let _ = in_use.set_modified(SystemTime::now());
        Ok(Self { folder, _in_use: in_use })
    }

    /// Where the content is, or is to be.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes what it was made of, if that is not noted yet.
    pub fn note(&self, about: &About) -> Result<(), FileError> {
        if About::of(&self.folder) == *about && beside(&self.folder, ABOUT).exists() {
            return Ok(());
        }
        write_beside(&beside(&self.folder, ABOUT), &serde_json::to_vec(about).unwrap_or_default())
    }

    /// Waits until nobody else changes the entry. `waiting` is called if that takes time.
    pub fn update(&self, waiting: impl FnOnce()) -> Result<Update, FileError> {
        let path = beside(&self.folder, UPDATE);
        let file = open_lock(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock().map_err(FileError::at("lock", &path))?;
            }
            Err(TryLockError::Error(error)) => return Err(FileError::at("lock", &path)(error)),
        }
        Ok(Update(file))
    }
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

fn open_lock(path: &Path) -> Result<File, FileError> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(FileError::at("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let entry = CacheEntry::open(folder.path(), "k").unwrap();
        fs::create_dir(entry.folder()).unwrap();
        let again = CacheEntry::open(folder.path(), "k").unwrap();
        assert!(!remove(entry.folder()).unwrap());
        let path = entry.folder().to_owned();
        drop((entry, again));
        assert!(remove(&path).unwrap() && !path.exists());
        assert!(remove(&path).unwrap(), "and nothing there is no error");
    }

    #[test]
    fn one_changes_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let entry = CacheEntry::open(folder.path(), "k").unwrap();
        let first = entry.update(|| panic!("nobody else is there")).unwrap();
        let (told, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| entry.update(|| told.send(()).unwrap()).unwrap());
            waits.recv().unwrap();
            drop(first);
            second.join().unwrap();
        });
    }
}
