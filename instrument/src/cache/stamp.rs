//! Whether a file has changed, told without reading it if possible.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::files::FileError;
use crate::input::{Input, InputError};

/// Clocks of file systems are coarse: a file written twice within this time may show one time for both.
const COARSE: Duration = Duration::from_millis(100);

/// What the file system tells of a file. Two equal stamps: the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    size: u64,
    seconds: i64,
    nanos: i64,
    inode: u64,
}

impl Stamp {
    /// Of a file, links followed.
    pub fn of(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), seconds: metadata.mtime(), nanos: metadata.mtime_nsec(), inode: metadata.ino() }
    }

    /// The stamp to note for later: of a file that was written just now, one that equals no other.
    pub fn lasting(metadata: &Metadata) -> Self {
        let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        let stamp = Self::of(metadata);
        if age.is_some_and(|age| age > COARSE) { stamp } else { Self { inode: 0, ..stamp } }
    }
}

/// What the file system tells of a file that this cache has made: whoever cuts it off or writes over it leaves another
/// size or time. The inode may change, as when the cache is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    size: u64,
    seconds: i64,
    nanos: i64,
}

impl Seal {
    /// Of a file that was just made.
    pub fn of(path: &Path) -> Result<Self, FileError> {
        Ok(Self::told(&metadata(path)?))
    }

    fn told(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), seconds: metadata.mtime(), nanos: metadata.mtime_nsec() }
    }

    /// Whether the file is there, and as it was made.
    pub fn holds(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && Self::told(&metadata) == *self)
    }
}

/// A hash of content, wide enough to stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub u128);

impl Digest {
    /// Of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(bytes))
    }

    /// Of a file's content.
    pub fn of_file(path: &Path) -> Result<Self, InputError> {
        Ok(Self::of(&Input::open(path)?))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A digest of several parts, each told from its neighbours.
#[derive(Default)]
pub struct Digester(Xxh3);

impl std::fmt::Debug for Digester {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Digester({})", self.digest())
    }
}

impl Digester {
    /// Adds a part.
    pub fn add(&mut self, part: impl AsRef<[u8]>) -> &mut Self {
        let part = part.as_ref();
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    /// Of all parts so far.
    pub fn digest(&self) -> Digest {
        Digest(self.0.digest128())
    }
}

/// The metadata of what is to be a file or folder.
pub fn metadata(path: &Path) -> Result<Metadata, FileError> {
    fs::metadata(path).map_err(FileError::at("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_just_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "1").unwrap();
        let now = metadata(&path).unwrap();
        assert_ne!(Stamp::lasting(&now), Stamp::of(&now));
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        fs::File::options().write(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
        let old = metadata(&path).unwrap();
        assert_eq!(Stamp::lasting(&old), Stamp::of(&old));
        fs::write(&path, "2").unwrap();
        assert_ne!(Stamp::lasting(&old), Stamp::of(&metadata(&path).unwrap()));
    }

    #[test]
    fn a_seal_tells_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "12345").unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let open = || fs::File::options().write(true).open(&path).unwrap();
        open().set_modified(hour_ago).unwrap();
        let seal = Seal::of(&path).unwrap();
        fs::rename(&path, folder.path().join("y")).unwrap();
        assert!(!seal.holds(&path));
        fs::copy(folder.path().join("y"), &path).unwrap();
        open().set_modified(hour_ago).unwrap();
        assert!(seal.holds(&path), "the copy of a cache is as good");
        fs::write(&path, "12x45").unwrap();
        assert!(!seal.holds(&path));
        open().set_len(3).unwrap();
        open().set_modified(hour_ago).unwrap();
        assert!(!seal.holds(&path));
    }

    #[test]
    fn parts_are_told_apart() {
        let of = |parts: &[&str]| {
            let mut digester = Digester::default();
            parts.iter().for_each(|part| _ = digester.add(part));
            digester.digest()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        let text = serde_json::to_string(&of(&["a"])).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), of(&["a"]));
    }
}
