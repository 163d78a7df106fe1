//! Instrumented copies of class path and module path entries, made once and kept up to date with the originals.
//!
//! ```text
//! items/HASH/NAME        the copy of the jar or folder NAME; a link to the original if that is to be used unchanged
//! items/HASH/item.json   what it was made from
//! next-id                all ids below are taken: no two items of an entry share an id
//! ```
//!
//! `HASH` is the hash of the original's absolute path, so the path of a copy is known before it is made. Relative names
//! in manifests would not work there; the copies of jars refer to the copies of what the originals refer to.

mod folder;
mod jar;
mod listing;
mod relink;

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use et_names::JDK_LIMIT;
use et_names::units::counted;
use serde::{Deserialize, Serialize};

use super::entry::{CacheEntry, Update};
use super::stamp::Digest;
use crate::artifact::Settings;
use crate::cache::CacheError;
use crate::files::{FileError, create_folder, mode_of_copy, remove_any, write_beside, write_with_mode};
use crate::report::{FEWER_HOOKS, List, Report, ShortfallReport, Skip, UNCHANGED};

/// The copies of an entry of the cache.
pub struct Programs<'a> {
    entry: &'a CacheEntry,
    settings: &'a Settings,
    /// Never looked into: the cache itself.
    cache: &'a Path,
    say: &'a dyn Fn(&str),
    update: Option<Updating>,
    placed: HashMap<PathBuf, bool>,
    done: Done,
}

/// Permissions of a copy's folders and files.
fn modes(original: &Metadata) -> (u32, u32) {
    let file = mode_of_copy(original) & 0o644;
    (file | (file & 0o444) >> 2 | 0o700, file)
}

impl std::fmt::Debug for Programs<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Programs").field("entry", &self.entry).field("done", &self.done).finish_non_exhaustive()
    }
}

/// What had to be written.
#[derive(Debug, Default)]
pub struct Done {
    /// Number of jars instrumented.
    pub jars: usize,
    /// Class files of folders rewritten.
    pub files: usize,
    /// The originals of everything that was written.
    pub rewritten: Vec<PathBuf>,
    /// Messages for the user.
    pub notes: Vec<String>,
    /// What runs without hooks, unless it is instrumented when it is loaded: `a.jar: lib/B.class: damaged`.
    pub skipped: Vec<String>,
    /// Methods that have fewer hooks than asked for.
    pub shortfalls: Vec<String>,
    /// What is not in a read-only cache. If there is anything, nothing is run from the cache, since copies refer to
    /// each other.
    pub missing: Vec<PathBuf>,
}

impl Done {
    /// Short description of what is missing; `None` if nothing is.
    pub fn lacks(&self) -> Option<String> {
        let (first, more) = self.missing.split_first()?;
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        Some(format!("{}{more}", first.display()))
    }

    /// `2 jars and 1 class file`; `None` if all was there.
    pub fn text(&self) -> Option<String> {
        let parts = [(self.jars, "jar"), (self.files, "class file")];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count as u64, what)).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// Lines on what runs without hooks.
    pub fn warnings(&self) -> Vec<String> {
        let lists = [(UNCHANGED, &self.skipped), (FEWER_HOOKS, &self.shortfalls)];
        lists.into_iter().filter_map(|(title, lines)| List { title, lines: lines.clone() }.line()).collect()
    }
}

struct Updating {
    _lock: Update,
    next_id: u32,
    /// The number in the file: higher than the ids taken, so that it is written less often.
    reserved: u32,
}

/// How many ids are taken from the file at once.
const AHEAD: u32 = 1 << 16;

/// Metadata of an item.
#[derive(Debug, Serialize, Deserialize)]
enum Item {
    Jar(jar::JarItem),
    Folder(folder::FolderItem),
}

impl<'a> Programs<'a> {
    /// Opens the copies in `entry`, which are made with `settings`. Nothing below `cache` is ever copied. `say` is
    /// called with a message before waiting for others.
    pub fn new(entry: &'a CacheEntry, cache: &'a Path, settings: &'a Settings, say: &'a dyn Fn(&str)) -> Self {
        Self { entry, settings, cache, say, update: None, placed: HashMap::new(), done: Done::default() }
    }

    /// The rewritten copy of a jar or folder, brought up to date; `None` if the original is to be run as it is.
    pub fn place(&mut self, original: &Path) -> Result<Option<PathBuf>, CacheError> {
        let original = absolute(original)?;
        Ok(self.placed(&original)?.then(|| self.slot(&original).copy))
    }

    /// Settings with rules that record which of them decide about one item.
    fn own_settings(&self) -> Settings {
        let Settings { filter, progress, .. } = self.settings;
        Settings { filter: filter.fresh(), progress: progress.clone(), ..*self.settings }
    }

    /// Reports an item that is used, whether it is new or not.
    fn tell(&mut self, original: &Path, decided: &[usize], skipped: &[Skip], shortfalls: &[ShortfallReport]) {
        self.settings.filter.note_decided(decided.iter().copied());
        self.done.skipped.extend(skipped.iter().map(|skip| format!("{}: {skip}", original.display())));
        self.done.shortfalls.extend(shortfalls.iter().map(|short| format!("{}: {short}", original.display())));
    }

    /// It is to run as it is, with all others.
    fn is_missing(&mut self, original: &Path) -> bool {
        self.done.missing.push(original.to_owned());
        false
    }

    /// Returns what was done, after the last item.
    pub fn finish(mut self) -> Result<Done, CacheError> {
        self.done.skipped.sort();
        self.done.shortfalls.sort();
        if let Some(update) = self.update.take() {
            write_beside(&self.ids(), update.next_id.to_string().as_bytes())?;
        }
        Ok(self.done)
    }

    /// Makes the copy if necessary; returns whether it differs from the original.
    fn placed(&mut self, original: &Path) -> Result<bool, CacheError> {
        if let Some(known) = self.placed.get(original) {
            return Ok(*known);
        }
        // Jars may name one another in a circle.
        self.placed.insert(original.to_owned(), true);
        let slot = self.slot(original);
        let rewritten = match fs::metadata(original) {
            _ if original.to_str().is_none() || original.starts_with(self.cache) => false,
            Ok(metadata) if metadata.is_dir() => self.folder(original, &slot)?,
            Ok(metadata) if metadata.is_file() => self.jar(original, &slot, &metadata)?,
            _ => false,
        };
        self.placed.insert(original.to_owned(), rewritten);
        Ok(rewritten)
    }

    fn slot(&self, original: &Path) -> Slot {
        let hash = Digest::of(original.as_os_str().as_encoded_bytes());
        let folder = self.entry.folder().join("items").join(hash.to_string());
        // The root directory has no name.
        let name = original.file_name().unwrap_or("root".as_ref());
        Slot { copy: folder.join("copy").join(name), note: folder.join("item.json"), original: original.to_owned() }
    }

    /// Only one run writes at a time. Says whether that begins only now, so that others may have written meanwhile.
    fn begin(&mut self) -> Result<bool, FileError> {
        if self.update.is_some() || self.entry.is_read_only() {
            return Ok(false);
        }
        let lock = self.entry.update(|| (self.say)("waiting for another run that rewrites classes"))?;
        let known = fs::read_to_string(self.ids()).ok().and_then(|text| text.trim().parse().ok());
        let next_id = known.unwrap_or(JDK_LIMIT);
        self.update = Some(Updating { _lock: lock, next_id, reserved: next_id });
        Ok(true)
    }

    fn ids(&self) -> PathBuf {
        self.entry.folder().join("next-id")
    }

    fn next_id(&self) -> u32 {
        self.update.as_ref().map_or(JDK_LIMIT, |update| update.next_id)
    }

    /// Ids below `next` are taken. To be noted before the item is.
    fn take_ids(&mut self, next: u32) -> Result<(), FileError> {
        let ids = self.ids();
        let Some(update) = &mut self.update else { return Ok(()) };
        update.next_id = update.next_id.max(next);
        if update.next_id > update.reserved {
            update.reserved = update.next_id.saturating_add(AHEAD);
            write_beside(&ids, update.reserved.to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// One above the highest id in a report.
fn above(report: &Report) -> u32 {
    let ends = report.artifacts.iter().map(|artifact| artifact.id_base.saturating_add(artifact.id_count));
    ends.max().unwrap_or(0)
}

/// Where an item has its copy, and what is noted of it.
#[derive(Clone, Debug)]
struct Slot {
    original: PathBuf,
    copy: PathBuf,
    note: PathBuf,
}

impl Slot {
    fn read(&self) -> Option<Item> {
        fs::read(&self.note).ok().and_then(|text| serde_json::from_slice(&text).ok())
    }

    fn write(&self, item: &Item) -> Result<(), FileError> {
        let mode = fs::metadata(&self.original).map_or(0o600, |original| modes(&original).1);
        write_with_mode(&self.note, &serde_json::to_vec(item).unwrap_or_default(), mode)
    }

    /// Deleted until the new metadata is written, so that a killed run leaves nothing that looks complete.
    fn open(&self) -> Result<(), FileError> {
        remove_any(&self.note)?;
        let folder = self.copy.parent().unwrap_or(&self.copy);
        create_folder(folder)?;
        // Before there is anything to see.
        let all = self.note.parent().unwrap_or(folder);
        let mode = fs::metadata(&self.original).map_or(0o700, |original| modes(&original).0);
        fs::set_permissions(all, Permissions::from_mode(mode)).map_err(FileError::at("write", all))
    }

    /// Puts a link to the original in place of the copy.
    fn link(&self) -> Result<(), FileError> {
        remove_any(&self.copy)?;
        symlink(&self.original, &self.copy).map_err(FileError::at("create", &self.copy))
    }
}

/// An absolute path as it is written: links stay, `.` and `..` go, as in a URL.
fn absolute(path: &Path) -> Result<PathBuf, FileError> {
    use std::path::Component;
    let whole = std::path::absolute(path).map_err(FileError::at("find", path))?;
    let mut out = PathBuf::new();
    for component in whole.components() {
        match component {
            Component::ParentDir => _ = out.pop(),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Removes duplicates.
fn unique(names: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_absolute_without_resolving_links() {
        assert_eq!(absolute(Path::new("/a/./b/../c.jar")).unwrap(), Path::new("/a/c.jar"));
        assert_eq!(absolute(Path::new("/../x")).unwrap(), Path::new("/x"));
        assert!(absolute(Path::new("x")).unwrap().is_absolute());
    }

    #[test]
    fn what_is_missing_is_reported_briefly() {
        let missing =
            |names: &[&str]| Done { missing: names.iter().map(PathBuf::from).collect(), ..Done::default() }.lacks();
        assert_eq!(missing(&[]), None);
        assert_eq!(missing(&["/a.jar"]).as_deref(), Some("/a.jar"));
        assert_eq!(missing(&["/a.jar", "/b", "/c"]).as_deref(), Some("/a.jar and 2 more"));
    }

    #[test]
    fn what_was_done_is_reported() {
        assert_eq!(Done::default().text(), None);
        let skipped = vec!["a.jar: B.class: damaged".into(), "C.class: damaged".into()];
        let shortfalls = vec!["a.jar: A.f()V: no sites (size)".into()];
        let done = Done { jars: 2, files: 1, skipped, shortfalls, ..Done::default() };
        assert_eq!(done.text().unwrap(), "2 jars and 1 class file");
        let expected = [
            "2 copied unchanged: a.jar: B.class: damaged, and 1 more",
            "1 methods with fewer hooks: a.jar: A.f()V: no sites (size)",
        ];
        assert_eq!(done.warnings(), expected);
        assert!(Done::default().warnings().is_empty());
    }
}
