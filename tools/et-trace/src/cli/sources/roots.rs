//! Folders and archives of sources: which files they have, by name.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use walkdir::{DirEntry, WalkDir};
use zip::ZipArchive;

/// Endings of the names of source files.
pub(super) const ENDINGS: [&str; 5] = [".java", ".kt", ".kts", ".scala", ".groovy"];
/// Larger files are not read: generated code, or not source at all.
const MOST_BYTES: u64 = 8 << 20;
/// A folder with more files of source than this is hardly that of a program.
const MOST_FILES: usize = 500_000;

/// A folder or an archive.
pub(super) struct Root {
    place: Place,
    /// Paths in it, by the name of the file; the shortest first.
    files: FxHashMap<String, Vec<Found>>,
}

enum Place {
    Folder(PathBuf),
    Archive(ZipArchive<File>),
}

/// A file of source.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Its path in the root, with slashes.
    pub path: String,
    /// Its number in the archive.
    number: usize,
}

impl Root {
    pub fn open(path: &Path) -> io::Result<Self> {
        if std::fs::metadata(path)?.is_dir() {
            let files = in_folder(path)?;
            return Ok(Self { files: by_name(files)?, place: Place::Folder(path.to_owned()) });
        }
        let archive = ZipArchive::new(File::open(path)?).map_err(io::Error::from)?;
        // A name that is no text is not that of a class's source.
        let name = |number| Some((archive.name_for_index(number)?.ok()?.into_owned(), number));
        let files = by_name((0..archive.len()).filter_map(name))?;
        Ok(Self { files, place: Place::Archive(archive) })
    }

    /// The files of that name, the one with the shortest path first.
    pub fn named(&self, name: &str) -> &[Found] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }

    /// The text of a file; `None`: it is gone, or not to be read.
    pub fn read(&mut self, found: &Found) -> Option<String> {
        let mut bytes = Vec::new();
        match &mut self.place {
            Place::Folder(folder) => {
                let path = folder.join(&found.path);
                // Pipes and devices could block.
                std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
                File::open(path).ok()?.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
            }
            Place::Archive(archive) => {
                archive.by_index(found.number).ok()?.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
            }
        }
        (bytes.len() as u64 <= MOST_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// All files below a folder, by their paths in it. Hidden folders, such as `.git`, are left out, as are folders that cannot be read.
fn in_folder(folder: &Path) -> io::Result<impl Iterator<Item = (String, usize)> + use<>> {
    // What is wrong with the folder itself is told.
    std::fs::read_dir(folder)?;
    let is_hidden = |entry: &DirEntry| entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
    let folder = folder.to_owned();
    let entries = WalkDir::new(&folder).sort_by_file_name().into_iter().filter_entry(move |entry| !is_hidden(entry));
    Ok(entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_file()).filter_map(move |entry| {
        let path = entry.path().strip_prefix(&folder).ok()?.to_str()?;
        Some((path.to_owned(), 0))
    }))
}

fn by_name(files: impl Iterator<Item = (String, usize)>) -> io::Result<FxHashMap<String, Vec<Found>>> {
    let mut by_name: FxHashMap<String, Vec<Found>> = FxHashMap::default();
    let mut count = 0;
    for (path, number) in files {
        if !ENDINGS.iter().any(|ending| path.ends_with(ending)) {
            continue;
        }
        count += 1;
        if count > MOST_FILES {
            return Err(io::Error::other(format!("it has more than {MOST_FILES} files of source")));
        }
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        by_name.entry(name).or_default().push(Found { path, number });
    }
    for files in by_name.values_mut() {
        files.sort_by(|one, other| (one.path.len(), &one.path).cmp(&(other.path.len(), &other.path)));
    }
    Ok(by_name)
}
