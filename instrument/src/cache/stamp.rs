//! Detects whether a file has changed, if possible without reading it.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::files::FileError;
use crate::input::{Input, InputError};

/// Clocks of file systems are coarse: a file written twice within this time may show one time for both.
const COARSE: Duration = Duration::from_millis(100);

/// Metadata of a file. If two stamps are equal, the content is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    size: u64,
    seconds: i64,
    nanos: i64,
    inode: u64,
    /// Change time (ctime): when the content, owner, mode or link count was changed. Unlike the modification time, it
    /// cannot be set.
    changed: (i64, i64),
}

impl Stamp {
    /// Stamp of a file; symbolic links are followed.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            seconds: metadata.mtime(),
            nanos: metadata.mtime_nsec(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The stamp to note for later: of a file that was written just now, one that equals no other.
    pub fn lasting(metadata: &Metadata) -> Self {
        let stamp = Self::of(metadata);
        let (seconds, nanos) = stamp.changed;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0));
        let is_old = since.checked_sub(changed).is_some_and(|age| age > COARSE);
        if is_old { stamp } else { Self { inode: 0, ..stamp } }
    }
}

/// A file that this cache has made: its content. The stamp saves reading it; another one, as after the cache was moved, means no
/// more than that it is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    stamp: Stamp,
    digest: Digest,
}

impl Seal {
    /// Of a file that was just made.
    pub fn of(path: &Path) -> Result<Self, InputError> {
        let digest = Digest::of_file(path)?;
        Ok(Self { stamp: Stamp::lasting(&metadata(path)?), digest })
    }

    /// The seal of the file that is there if it is as it was made: this one, or one with another stamp.
    pub fn renewed(&self, path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(|found| found.is_file() && found.len() == self.stamp.size)?;
        if Stamp::of(&found) == self.stamp {
            return Some(*self);
        }
        match Digest::of_file(path) {
            Ok(digest) => (digest == self.digest).then(|| Self { stamp: Stamp::lasting(&found), digest }),
            // Readable by its owner only, such as passwords: runs do not read it either.
            Err(InputError::File(error)) if error.source.kind() == ErrorKind::PermissionDenied => Some(*self),
            Err(_) => None,
        }
    }

    /// Whether the file is there, and as it was made.
    pub fn holds(&self, path: &Path) -> bool {
        self.renewed(path).is_some()
    }
}

/// A hash of content, wide enough to identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub u128);

impl Digest {
    /// Digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(bytes))
    }

    /// Digest of a file's content.
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

/// Computes a digest of several parts, with unambiguous boundaries.
#[derive(Default)]
pub struct Digester(Xxh3);

impl std::fmt::Debug for Digester {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Digester({})", self.digest())
    }
}

impl Digester {
    pub fn add(&mut self, part: impl AsRef<[u8]>) -> &mut Self {
        let part = part.as_ref();
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    /// The digest of all parts so far.
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
        std::thread::sleep(2 * COARSE);
        assert_eq!(Stamp::lasting(&now), Stamp::of(&now));
        fs::write(&path, "2").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(now.modified().unwrap()).unwrap();
        assert_ne!(Stamp::lasting(&now), Stamp::of(&metadata(&path).unwrap()));
    }

    #[test]
    fn a_seal_tells_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "12345").unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let set_time = || fs::File::options().write(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
        set_time();
        let seal = Seal::of(&path).unwrap();
        fs::rename(&path, folder.path().join("y")).unwrap();
        assert!(!seal.holds(&path));
        fs::copy(folder.path().join("y"), &path).unwrap();
        assert!(seal.holds(&path), "the copy of a cache is as good, whatever its times are");
        fs::write(&path, "12x45").unwrap();
        set_time();
        assert!(!seal.holds(&path), "of the same size and time");
        fs::write(&path, "123").unwrap();
        assert!(!seal.holds(&path));
    }

    #[test]
    fn a_seal_with_a_stamp_that_lasts_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "12345").unwrap();
        std::thread::sleep(2 * COARSE);
        let seal = Seal::of(&path).unwrap();
        assert_eq!(seal.renewed(&path), Some(seal));
        assert_eq!(seal.stamp, Stamp::of(&metadata(&path).unwrap()));
        fs::File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(seal.renewed(&path).is_some_and(|renewed| renewed != seal && renewed.digest == seal.digest));
    }

    #[test]
    fn parts_are_distinguished() {
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
