//! `et-instrument cache`: what is there, and away with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use walkdir::WalkDir;

use super::entry::{self, About, USE};
use super::error::CacheError;
use super::{Cache, Kind, beside};

/// An entry that has not been used for this long is removed when another is made.
const UNUSED: Duration = Duration::from_secs(60 * 24 * 3600);

/// An entry of the cache, for listing.
#[derive(Debug)]
pub struct Listed {
    pub kind: Kind,
    pub folder: PathBuf,
    /// Bytes that go with it: files shared with the original by hard links are not counted.
    pub bytes: u64,
    /// When a run last used it; `None` if unknown.
    pub used: Option<SystemTime>,
    /// What it was made from.
    pub about: About,
}

impl Listed {
    /// Unique name of the entry.
    pub fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Result of clearing.
#[derive(Debug, Default)]
pub struct Cleared {
    /// Number of entries removed.
    pub entries: usize,
    /// Bytes freed.
    pub bytes: u64,
    /// Kept, since programs are running on them.
    pub in_use: Vec<PathBuf>,
}

impl Cache {
    /// All entries of the cache, JDKs first.
    pub fn entries(&self) -> Vec<Listed> {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            let items = fs::read_dir(self.root.join(kind.folder())).into_iter().flatten().flatten();
            let mut folders: Vec<PathBuf> =
                items.filter(|item| item.file_type().is_ok_and(|kind| kind.is_dir())).map(|item| item.path()).collect();
            folders.sort();
            found.extend(folders.into_iter().map(|folder| {
                let used = fs::metadata(beside(&folder, USE)).and_then(|lock| lock.modified()).ok();
                Listed { kind, bytes: bytes(&folder), used, about: About::of(&folder), folder }
            }));
        }
        found
    }

    /// Removes all that is not in use.
    pub fn clear(&self) -> Result<Cleared, CacheError> {
        self.remove(|_| true)
    }

    /// Removes entries, named by their folders, the names of these, or what only one of these begins with.
    pub fn remove_entries(&self, names: &[String]) -> Result<Cleared, CacheError> {
        let entries = self.entries();
        let wanted =
            names.iter().map(|name| self.find_entry(&entries, name)).collect::<Result<Vec<_>, CacheError>>()?;
        self.remove(|entry| wanted.contains(&entry.folder))
    }

    fn find_entry(&self, entries: &[Listed], name: &str) -> Result<PathBuf, CacheError> {
        let path = std::path::absolute(name).unwrap_or_default();
        let exact = entries.iter().find(|entry| entry.folder == path || entry.name() == name);
        let begun: Vec<&Listed> = entries.iter().filter(|entry| entry.name().starts_with(name)).collect();
        let fail = |why: &'static str| CacheError::NoEntry { name: name.to_owned(), cache: self.root.clone(), why };
        match (exact, begun.as_slice()) {
            (Some(entry), _) => Ok(entry.folder.clone()),
            (None, [entry]) if !name.is_empty() => Ok(entry.folder.clone()),
            (None, []) => Err(fail("no entry has that name")),
            (None, _) => Err(fail("several entries match")),
        }
    }

    /// Removes what has not been used for a long time. Failure to remove something does not prevent the run.
    pub(crate) fn remove_unused(&self) {
        let long_ago = SystemTime::now() - UNUSED;
        let _ = self.remove(|entry| entry.used.is_some_and(|used| used < long_ago));
    }

    fn remove(&self, wanted: impl Fn(&Listed) -> bool) -> Result<Cleared, CacheError> {
        self.check()?;
        let mut cleared = Cleared::default();
        for listed in self.entries().into_iter().filter(wanted) {
            if entry::remove(&listed.folder)? {
                cleared.entries += 1;
                cleared.bytes += listed.bytes;
            } else {
                cleared.in_use.push(listed.folder);
            }
        }
        Ok(cleared)
    }
}

fn bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = WalkDir::new(folder).into_iter().flatten().filter(|item| item.file_type().is_file());
    let sizes = files.filter_map(|item| item.metadata().ok()).filter(|metadata| metadata.nlink() == 1);
    sizes.map(|metadata| metadata.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_listed_and_cleared_unless_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::find(Some(&folder.path().join("cache"))).unwrap();
        assert!(cache.entries().is_empty());
        assert_eq!(cache.clear().unwrap().entries, 0);
        cache.create().unwrap();
        cache.create().unwrap();
        for (kind, key) in [(Kind::Jdk, "jdk-17-a"), (Kind::Program, "b")] {
            let entry = cache.entry(kind, key, &|_| ()).unwrap();
            fs::create_dir(entry.folder()).unwrap();
            fs::write(entry.folder().join("x"), "12345").unwrap();
        }
        let listed = cache.entries();
        assert_eq!(
            listed.iter().map(|entry| (entry.kind, entry.bytes)).collect::<Vec<_>>(),
            [(Kind::Jdk, 5), (Kind::Program, 5)]
        );
        assert!(listed[0].used.is_some());
        cache.remove_unused();
        assert_eq!(cache.entries().len(), 2);
        let used = cache.entry(Kind::Program, "c", &|_| ()).unwrap();
        fs::create_dir(used.folder()).unwrap();
        let about = About { jdk: None, options: vec!["--events alloc".into()] };
        used.note(&about).unwrap();
        assert_eq!(cache.entries()[2].about, about);
        let fails = |name: &str| cache.remove_entries(&[name.to_owned()]).unwrap_err().to_string();
        assert!(fails("x").contains("no entry has that name") && fails("").contains("several entries match"));
        assert_eq!(cache.remove_entries(&["c".into()]).unwrap().in_use, [used.folder()]);
        let place = used.folder().display().to_string();
        drop(used);
        assert_eq!(cache.remove_entries(&[place]).unwrap().entries, 1);
        assert_eq!(cache.entries().len(), 2, "the others stay");
        let used = cache.entry(Kind::Jdk, "jdk-17-a", &|_| ()).unwrap();
        let cleared = cache.clear().unwrap();
        assert_eq!((cleared.entries, cleared.bytes), (1, 5));
        assert_eq!(cleared.in_use, [used.folder()]);
    }
}
