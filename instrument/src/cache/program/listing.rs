//! The content of a folder on a class path.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use et_names::ENTRY_IN_JAR;
use walkdir::WalkDir;

use crate::cache::stamp::Stamp;
use crate::container::class_file;

/// A class path may be `.` anywhere; a folder with more files than this is not a class folder.
const MOST: usize = 50_000;

/// Paths are relative to the folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    pub classes: BTreeMap<String, Stamp>,
    /// All else; also folders that need not be looked into.
    pub links: BTreeSet<String>,
}

/// Why a folder is run as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsIs {
    /// There is nothing to rewrite.
    NoClasses,
    /// It is an output of this tool.
    Instrumented,
    /// It has too many files.
    TooLarge,
    /// It cannot be read completely, or contains names that are not valid Unicode.
    Unreadable,
}

impl Listing {
    /// Lists a folder, without anything below `cache`.
    pub(super) fn of(folder: &Path, cache: &Path) -> Result<Self, AsIs> {
        if folder.join(ENTRY_IN_JAR).exists() {
            return Err(AsIs::Instrumented);
        }
        let mut listing = Self::default();
        let mut walk = WalkDir::new(folder).follow_links(true).min_depth(1).into_iter();
        let mut seen = 0;
        while let Some(item) = walk.next() {
            let item = match item {
                Ok(item) => item,
                // A link to nowhere is nothing to the JVM, either.
                Err(error) if error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) => {
                    continue;
                }
                Err(_) => return Err(AsIs::Unreadable),
            };
            seen += 1;
            if seen > MOST {
                return Err(AsIs::TooLarge);
            }
            let path = item.path();
            let name = path.strip_prefix(folder).ok().and_then(Path::to_str).ok_or(AsIs::Unreadable)?.to_owned();
            if item.file_type().is_dir() {
                // Not a package name: `.git` and similar.
                let hidden = item.file_name().as_encoded_bytes().starts_with(b".");
                if hidden || fs::canonicalize(path).is_ok_and(|path| path.starts_with(cache)) {
                    walk.skip_current_dir();
                    listing.links.insert(name);
                }
            } else if item.file_type().is_file() && class_file::has_class_name(path) {
                let metadata = fs::metadata(path).map_err(|_| AsIs::Unreadable)?;
                listing.classes.insert(name, Stamp::of(&metadata));
            } else {
                listing.links.insert(name);
            }
        }
        if listing.classes.is_empty() { Err(AsIs::NoClasses) } else { Ok(listing) }
    }
}
