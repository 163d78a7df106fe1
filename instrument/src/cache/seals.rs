//! The state of the files in a cache entry, so that damage is noticed without reading them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use super::stamp::Seal;
use crate::files::{FileError, remove_any, write_beside};
use crate::input::InputError;

/// Extension of the file, which is beside the entry's folder.
const END: &str = "seals";

/// The state of all files below a folder.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seals(BTreeMap<String, Seal>);

/// Result of checking a folder.
#[derive(Debug)]
pub enum Look {
    /// The files are unchanged.
    Whole,
    /// The content is, and some stamps are others, as after a copy: it takes reading to find out.
    Moved(Renewed),
    /// The first file that is not as it was, or the folder itself if it was never noted.
    Broken(PathBuf),
}

/// New states that save reading the next time.
#[derive(Debug)]
pub struct Renewed {
    read: Vec<u8>,
    seals: Seals,
}

impl Renewed {
    /// Notes it, unless something else was noted meanwhile. The entry is not to be changed by others now.
    pub fn save(&self, folder: &Path) -> Result<(), FileError> {
        let path = file(folder);
        if fs::read(&path).is_ok_and(|now| now == self.read) { self.seals.write(&path) } else { Ok(()) }
    }
}

impl Seals {
    /// Records the state of all files in a folder, in a file beside it.
    pub fn note(folder: &Path) -> Result<(), InputError> {
        let items = WalkDir::new(folder).into_iter().flatten().filter(|item| item.file_type().is_file());
        // A name that is not valid Unicode cannot be recorded; no JDK has one.
        let name = |path: &Path| path.strip_prefix(folder).ok().and_then(Path::to_str).map(str::to_owned);
        let paths: Vec<_> = items.filter_map(|item| Some((name(item.path())?, item.into_path()))).collect();
        let seals = paths.into_par_iter().map(|(name, path)| Ok((name, Seal::of(&path)?)));
        Ok(Self(seals.collect::<Result<_, InputError>>()?).write(&file(folder))?)
    }

    /// Whether a folder is as it was when it was noted.
    pub fn look(folder: &Path) -> Look {
        let read = fs::read(file(folder)).unwrap_or_default();
        let Ok(Self(noted)) = serde_json::from_slice(&read) else { return Look::Broken(folder.to_owned()) };
        let names: Vec<(String, Seal)> = noted.into_iter().collect();
        let found: Vec<_> = names.par_iter().map(|(name, seal)| seal.renewed(&folder.join(name))).collect();
        match found.iter().position(Option::is_none) {
            Some(broken) => Look::Broken(folder.join(&names[broken].0)),
            None if names.iter().zip(&found).all(|((_, old), new)| Some(*old) == *new) => Look::Whole,
            None => {
                let renewed = names.into_iter().zip(found.into_iter().flatten());
                Look::Moved(Renewed { read, seals: Self(renewed.map(|((name, _), seal)| (name, seal)).collect()) })
            }
        }
    }

    fn write(&self, path: &Path) -> Result<(), FileError> {
        write_beside(path, &serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Deletes the states of a folder that is removed.
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
        let broken = || match Seals::look(&folder) {
            Look::Broken(path) => Some(path),
            _ => None,
        };
        assert_eq!(broken(), Some(folder.clone()));
        Seals::note(&folder).unwrap();
        assert_eq!(broken(), None);
        fs::write(folder.join("more"), "does no harm").unwrap();
        assert_eq!(broken(), None);
        fs::File::options().write(true).open(folder.join("lib/modules")).unwrap().set_len(2).unwrap();
        assert_eq!(broken(), Some(folder.join("lib/modules")));
        fs::remove_file(folder.join("et.args")).unwrap();
        assert_eq!(broken(), Some(folder.join("et.args")));
    }

    #[test]
    fn a_copy_is_as_good_and_read_once() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("jdk");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("et.args"), "x").unwrap();
        Seals::note(&folder).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let Look::Moved(renewed) = Seals::look(&folder) else { panic!("it was noted when it was just made") };
        renewed.save(&folder).unwrap();
        assert!(matches!(Seals::look(&folder), Look::Whole));
        fs::write(file(&folder), "{}").unwrap();
        renewed.save(&folder).unwrap();
        assert_eq!(fs::read_to_string(file(&folder)).unwrap(), "{}", "somebody else has noted something");
    }
}
