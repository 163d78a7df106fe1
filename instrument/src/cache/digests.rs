//! Digests of files, remembered by their stamps: a JDK is 300 MB, and must not be read anew for each run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::stamp::{Digest, Stamp, metadata};
use crate::files::{FileError, write_beside};
use crate::input::InputError;

/// Remembered digests of files, kept in one file of the cache.
#[derive(Debug)]
pub struct Digests {
    file: PathBuf,
    known: BTreeMap<String, Known>,
    changed: bool,
    is_kept: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    digest: Digest,
}

impl Digests {
    /// Reads what is remembered. What cannot be read was never there. Whether what is new `is_kept`.
    pub fn open(file: PathBuf, is_kept: bool) -> Self {
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, known, changed: false, is_kept }
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

    /// Writes new digests to the file.
    pub fn save(&self) -> Result<(), FileError> {
        if !self.changed || !self.is_kept {
            return Ok(());
        }
        write_beside(&self.file, &serde_json::to_vec(&self.known).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_is_read_again_only_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (memo, file) = (folder.path().join("memo"), folder.path().join("file"));
        fs::write(&file, "one").unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let mut digests = Digests::open(memo.clone(), true);
        assert_eq!(digests.of(&file).unwrap(), Digest::of(b"one"));
        digests.save().unwrap();
        // The remembered digest is returned, which shows that the file is not read.
        let text =
            fs::read_to_string(&memo).unwrap().replace(&Digest::of(b"one").to_string(), &Digest::of(b"x").to_string());
        fs::write(&memo, text).unwrap();
        assert_eq!(Digests::open(memo.clone(), true).of(&file).unwrap(), Digest::of(b"x"));
        // The same size and time, and another content.
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "two").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        let mut digests = Digests::open(memo.clone(), false);
        assert_eq!(digests.of(&file).unwrap(), Digest::of(b"two"));
        digests.save().unwrap();
        assert!(!fs::read_to_string(&memo).unwrap().contains(&Digest::of(b"two").to_string()), "it is not to be kept");
        fs::write(&memo, "{ damaged").unwrap();
        assert_eq!(Digests::open(memo, true).of(&file).unwrap(), Digest::of(b"two"));
    }
}
