//! What an entry of the cache was made of: damage is noticed without reading anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use super::stamp::Seal;
use crate::files::{FileError, remove_any, write_beside};

/// End of the name of the file, which lies beside the entry's folder.
const END: &str = "seals";

/// All files below a folder.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seals(BTreeMap<String, Seal>);

impl Seals {
    /// Notes all files of a folder, beside it.
    pub fn note(folder: &Path) -> Result<(), FileError> {
        let mut seals = Self::default();
        for item in WalkDir::new(folder).into_iter().flatten().filter(|item| item.file_type().is_file()) {
            // A name that is no text cannot be noted; no JDK has one.
            if let Some(name) = item.path().strip_prefix(folder).ok().and_then(Path::to_str) {
                seals.0.insert(name.to_owned(), Seal::of(item.path())?);
            }
        }
        write_beside(&file(folder), &serde_json::to_vec(&seals).unwrap_or_default())
    }

    /// The first file of a folder that is not as it was when they were noted; the folder itself if they never were.
    pub fn broken(folder: &Path) -> Option<PathBuf> {
        let noted: Option<Self> = fs::read(file(folder)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let Some(Self(noted)) = noted else { return Some(folder.to_owned()) };
        noted
            .iter()
            .map(|(name, seal)| (folder.join(name), seal))
            .find(|(path, seal)| !seal.holds(path))
            .map(|(path, _)| path)
    }
}

/// What is noted of a folder goes with it.
pub(super) fn forget(folder: &Path) -> Result<(), FileError> {
    remove_any(&file(folder))
}

fn file(folder: &Path) -> PathBuf {
    super::beside(folder, END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("jdk");
        fs::create_dir_all(folder.join("lib")).unwrap();
        fs::write(folder.join("lib/modules"), "12345").unwrap();
        fs::write(folder.join("et.args"), "").unwrap();
        assert_eq!(Seals::broken(&folder), Some(folder.clone()));
        Seals::note(&folder).unwrap();
        assert_eq!(Seals::broken(&folder), None);
        fs::write(folder.join("more"), "does no harm").unwrap();
        assert_eq!(Seals::broken(&folder), None);
        fs::File::options().write(true).open(folder.join("lib/modules")).unwrap().set_len(2).unwrap();
        assert_eq!(Seals::broken(&folder), Some(folder.join("lib/modules")));
        fs::remove_file(folder.join("et.args")).unwrap();
        assert_eq!(Seals::broken(&folder), Some(folder.join("et.args")));
    }
}
