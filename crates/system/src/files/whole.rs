//! A file that is put in place when it is complete.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::nameless::{self, parent};

/// A file that is being written. Until [`finish`](Self::finish), its destination is unchanged.
#[derive(Debug)]
pub struct Whole {
    place: PathBuf,
    /// Prefix of the names of files that are not in place yet.
    prefix: &'static str,
    file: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Unnamed until it is complete, so that it vanishes however the process ends.
    Nameless(File),
    /// Named, on file systems without unnamed files: it remains if the process is killed.
    Named(NamedTempFile),
}

impl Whole {
    /// Starts a file with these permissions. A temporary name, if one is needed, begins with the prefix.
    pub fn create(place: &Path, mode: u32, prefix: &'static str) -> io::Result<Self> {
        let file = match nameless::create(parent(place), mode)?.filter(nameless::can_be_named) {
            Some(file) => Kind::Nameless(file),
            None => {
                let mut builder = tempfile::Builder::new();
                let builder = builder.prefix(prefix).permissions(Permissions::from_mode(mode));
                Kind::Named(builder.tempfile_in(parent(place))?)
            }
        };
        Ok(Self { place: place.to_owned(), prefix, file })
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        match &mut self.file {
            Kind::Nameless(file) => file,
            Kind::Named(file) => file.as_file_mut(),
        }
    }

    /// Whether nothing remains if the process is killed now.
    pub fn is_nameless(&self) -> bool {
        matches!(self.file, Kind::Nameless(_))
    }

    /// Moves the completed file to its destination, replacing an existing one.
    pub fn finish(mut self) -> io::Result<()> {
        self.file().flush()?;
        let named = match self.file {
            Kind::Named(file) => file.into_temp_path(),
            // A link cannot replace a file, so it is created under a temporary name and renamed.
            Kind::Nameless(file) => {
                let mut builder = tempfile::Builder::new();
                let name = |path: &Path| nameless::name(&file, path);
                builder.prefix(self.prefix).make_in(parent(&self.place), name)?.into_temp_path()
            }
        };
        named.persist(&self.place).map_err(|error| error.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_place_is_as_it_was_until_the_file_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        let names = || fs::read_dir(&folder).unwrap().count();
        fs::write(&place, "old").unwrap();
        let mut dropped = Whole::create(&place, 0o666, ".new-").unwrap();
        dropped.file().write_all(b"half").unwrap();
        assert_eq!(dropped.is_nameless(), names() == 1);
        drop(dropped);
        assert_eq!((fs::read(&place).unwrap().as_slice(), names()), (&b"old"[..], 1));
        let mut complete = Whole::create(&place, 0o640, ".new-").unwrap();
        complete.file().write_all(b"new").unwrap();
        complete.finish().unwrap();
        assert_eq!((fs::read(&place).unwrap().as_slice(), names()), (&b"new"[..], 1));
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }
}
