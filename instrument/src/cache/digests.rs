//! Digests of files, remembered by their stamps: a JDK is 300 MB, and must not be read anew for each run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::stamp::{Digest, Stamp, metadata};
use crate::files::{FileError, write_beside};
use crate::input::InputError;

/// What is remembered, in one file of the cache.
#[derive(Debug)]
pub struct Digests {
    file: PathBuf,
    known: BTreeMap<String, Known>,
    changed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    digest: Digest,
}

impl Digests {
    /// Reads what is remembered. What cannot be read was never there.
    pub fn open(file: PathBuf) -> Self {
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, known, changed: false }
    }

    /// The digest of a file's content.
    pub fn of(&mut self, path: &Path) -> Result<Digest, InputError> {
        let metadata = metadata(path)?;
        let name = path.to_string_lossy().into_owned();
        if let Some(known) = self.known.get(&name).filter(|known| known.stamp == Stamp::of(&metadata)) {
            return Ok(known.digest);
        }
        let digest = Digest::of_file(path)?;
        self.known.insert(name, Known { stamp: Stamp::lasting(&metadata), digest });
        self.changed = true;
        Ok(digest)
    }

    /// Writes down what is new.
    pub fn save(&self) -> Result<(), FileError> {
        if !self.changed {
            return Ok(());
        }
        write_beside(&self.file, &serde_json::to_vec(&self.known).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_file_is_read_again_only_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (memo, file) = (folder.path().join("memo"), folder.path().join("file"));
        fs::write(&file, "one").unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let set_time = || fs::File::options().write(true).open(&file).unwrap().set_modified(hour_ago).unwrap();
        set_time();
        let mut digests = Digests::open(memo.clone());
        assert_eq!(digests.of(&file).unwrap(), Digest::of(b"one"));
        digests.save().unwrap();
        // The same size, time and inode: it is not read.
        fs::write(&file, "two").unwrap();
        set_time();
        assert_eq!(Digests::open(memo.clone()).of(&file).unwrap(), Digest::of(b"one"));
        fs::write(&file, "three").unwrap();
        assert_eq!(Digests::open(memo.clone()).of(&file).unwrap(), Digest::of(b"three"));
        fs::write(&memo, "{ damaged").unwrap();
        assert_eq!(Digests::open(memo).of(&file).unwrap(), Digest::of(b"three"));
    }
}
