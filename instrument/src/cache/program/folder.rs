//! The instrumented copy of a class folder. Each class is an artifact of its own with its names table beside it, so
//! that only changed classes have to be written again. Everything else is a link to the original.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use et_names::ArtifactKind;
use serde::{Deserialize, Serialize};

use super::listing::{AsIs, Listing};
use super::{Item, Programs, Slot};
use crate::artifact::{ArtifactError, Blocks, ClassInput, ClassOutcome, Settings, instrument};
use crate::cache::CacheError;
use crate::cache::stamp::{Digest, Seal, Stamp};
use crate::files::{FileError, create_folder, mode_of_copy, remove_any, write_with_mode};
use crate::input::Input;
use crate::report::{ShortfallReport, Skip};

/// Metadata of a folder's copy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FolderItem {
    /// Classes by path relative to the folder.
    classes: BTreeMap<String, Class>,
    links: BTreeSet<String>,
    /// Which rules of the filter have decided over its classes.
    decided: BTreeSet<usize>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Class {
    stamp: Stamp,
    digest: Digest,
    made: Made,
}

/// What the copy of a class file is.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Made {
    Rewritten {
        class: Seal,
        table: Seal,
        /// Methods that have fewer hooks than asked for.
        shortfalls: Vec<ShortfallReport>,
    },
    /// To the original, and why it could not be rewritten.
    Link(Option<String>),
}

impl Made {
    /// The same, which others may read now as the original.
    fn with_mode(&self, path: &Path, mode: u32) -> Result<Self, FileError> {
        if let Self::Rewritten { .. } = self {
            for path in [path, &beside(path)] {
                fs::set_permissions(path, Permissions::from_mode(mode)).map_err(FileError::at("write", path))?;
            }
        }
        Ok(self.clone())
    }

    /// Whether the copy is undamaged.
    fn is_whole(&self, path: &Path) -> bool {
        match self {
            Self::Rewritten { class, table, .. } => class.holds(path) && table.holds(&beside(path)),
            Self::Link(_) => fs::symlink_metadata(path).is_ok(),
        }
    }
}

impl FolderItem {
    fn is_up_to_date(&self, listing: &Listing, copy: &Path) -> bool {
        let stamps = self.classes.iter().map(|(name, class)| (name, &class.stamp));
        self.links == listing.links
            && stamps.eq(&listing.classes)
            && self.classes.iter().all(|(name, class)| class.made.is_whole(&copy.join(name)))
            && self.links.iter().all(|name| fs::symlink_metadata(copy.join(name)).is_ok())
    }

    /// Whether the copy was made from the current content, although modification times differ.
    fn has_content(&self, listing: &Listing, original: &Path, copy: &Path) -> bool {
        let is_made_of = |(name, class): (&String, &Class)| {
            Digest::of_file(&original.join(name)).is_ok_and(|digest| digest == class.digest)
                && class.made.is_whole(&copy.join(name))
        };
        self.links == listing.links
            && self.classes.keys().eq(listing.classes.keys())
            && self.classes.iter().all(is_made_of)
    }

    fn shortfalls(&self) -> impl Iterator<Item = ShortfallReport> {
        self.classes.values().flat_map(|class| match &class.made {
            Made::Rewritten { shortfalls, .. } => shortfalls.clone(),
            Made::Link(_) => Vec::new(),
        })
    }

    fn skipped(&self) -> impl Iterator<Item = Skip> {
        self.classes.iter().filter_map(|(name, class)| match &class.made {
            Made::Link(Some(why)) => Some(Skip { entry: name.clone(), reason: why.clone() }),
            _ => None,
        })
    }
}

impl Programs<'_> {
    /// Whether there is a rewritten copy, brought up to date now if need be.
    pub(super) fn folder(&mut self, original: &Path, slot: &Slot) -> Result<bool, CacheError> {
        let listing = match Listing::of(original, self.cache) {
            Ok(listing) => listing,
            Err(why) => return self.folder_as_is(original, slot, why),
        };
        let known = |slot: &Slot| match slot.read() {
            Some(Item::Folder(item)) => Some(item),
            _ => None,
        };
        let mut item = known(slot);
        let up_to_date = |item: &FolderItem| item.is_up_to_date(&listing, &slot.copy);
        if !item.as_ref().is_some_and(up_to_date) && self.begin()? {
            item = known(slot);
        }
        let mut item = item.unwrap_or_default();
        if self.entry.is_read_only() {
            if !up_to_date(&item) && !item.has_content(&listing, original, &slot.copy) {
                return Ok(self.is_missing(original));
            }
        } else if !up_to_date(&item) {
            slot.open()?;
            if !fs::symlink_metadata(&slot.copy).is_ok_and(|copy| copy.is_dir()) {
                remove_any(&slot.copy)?;
            }
            item = self.update_folder(original, &slot.copy, &listing, item)?;
            slot.write(&Item::Folder(item.clone()))?;
        }
        let decided: Vec<usize> = item.decided.iter().copied().collect();
        let (skipped, shortfalls): (Vec<_>, Vec<_>) = (item.skipped().collect(), item.shortfalls().collect());
        self.tell(original, &decided, &skipped, &shortfalls);
        Ok(true)
    }

    /// Makes the copy a link to the original, so that jars can refer to it.
    fn folder_as_is(&mut self, original: &Path, slot: &Slot, why: AsIs) -> Result<bool, CacheError> {
        if why == AsIs::TooLarge {
            self.done
                .notes
                .push(format!("{}: too large for a folder of classes: runs without a copy", original.display()));
        }
        let is_linked = fs::symlink_metadata(&slot.copy).is_ok_and(|copy| copy.is_symlink());
        if !is_linked && !self.entry.is_read_only() {
            self.begin()?;
            slot.open()?;
            slot.link()?;
        }
        Ok(false)
    }

    fn update_folder(
        &mut self,
        original: &Path,
        copy: &Path,
        listing: &Listing,
        known: FolderItem,
    ) -> Result<FolderItem, CacheError> {
        remove_stale(copy, listing, &known)?;
        create_folder(copy)?;
        // Others must not look into it before it has the permissions of the original.
        fs::set_permissions(copy, Permissions::from_mode(0o700)).map_err(FileError::at("write", copy))?;
        let mut item =
            FolderItem { links: listing.links.clone(), decided: known.decided.clone(), ..FolderItem::default() };
        let settings = self.own_settings();
        let name = original.file_name().unwrap_or_default().to_string_lossy();
        self.settings.progress.stage(format!("rewriting {name}"));
        for name in &listing.links {
            link(&original.join(name), &copy.join(name))?;
        }
        for (name, stamp) in &listing.classes {
            let (from, to) = (original.join(name), copy.join(name));
            let old = known.classes.get(name).filter(|old| old.made.is_whole(&to));
            if let Some(old) = old.filter(|old| old.stamp == *stamp) {
                item.classes.insert(name.clone(), old.clone());
                continue;
            }
            let metadata = fs::metadata(&from).map_err(FileError::at("read", &from))?;
            let mode = mode_of_copy(&metadata);
            let bytes = Input::open(&from)?;
            let (stamp, digest) = (Stamp::lasting(&metadata), Digest::of(&bytes));
            let made = match old.filter(|old| old.digest == digest) {
                Some(old) => old.made.with_mode(&to, mode)?,
                None => self.class(name, &bytes, (&from, &to), mode, &settings)?,
            };
            item.classes.insert(name.clone(), Class { stamp, digest, made });
        }
        item.decided.extend(settings.filter.decided());
        let names = listing.classes.keys().chain(&listing.links);
        let folders: BTreeSet<&Path> = names.flat_map(|name| Path::new(name).ancestors().skip(1)).collect();
        // Inner folders first, while the outer ones are still inaccessible.
        for folder in folders.into_iter().rev() {
            let (from, to) = (original.join(folder), copy.join(folder));
            let mode = mode_of_copy(&fs::metadata(&from).map_err(FileError::at("read", &from))?);
            fs::set_permissions(&to, Permissions::from_mode(mode)).map_err(FileError::at("write", &to))?;
        }
        Ok(item)
    }

    /// Rewrites a class; one that cannot be is linked.
    fn class(
        &mut self,
        name: &str,
        bytes: &[u8],
        (from, to): (&Path, &Path),
        mode: u32,
        settings: &Settings,
    ) -> Result<Made, CacheError> {
        let input = [ClassInput { label: name.to_owned(), bytes: Ok(Cow::Borrowed(bytes)) }];
        let mut blocks = Blocks::new(Some(self.next_id()));
        let done = instrument(&input, name, ArtifactKind::Application, settings, &mut blocks, |_, bytes| bytes);
        let done = match done {
            Ok(done) => done,
            // It is already instrumented.
            Err(ArtifactError::Class { .. }) => {
                link(from, to)?;
                return Ok(Made::Link(None));
            }
            Err(ArtifactError::Ids { .. }) => return Err(CacheError::NoIds),
            Err(error) => return Err(error.into()),
        };
        let content = match &done.outcomes[0] {
            ClassOutcome::New(content) => content,
            ClassOutcome::Same => bytes,
            ClassOutcome::Skipped => {
                let why = done.report.skipped.into_iter().next().map(|skip| skip.reason);
                link(from, to)?;
                return Ok(Made::Link(why));
            }
        };
        self.take_ids(done.report.id_base.saturating_add(done.report.id_count))?;
        parents(to)?;
        let table = beside(to);
        write_with_mode(&table, &done.names.encode(), mode)?;
        write_with_mode(to, content, mode)?;
        self.done.files += 1;
        self.done.rewritten.push(from.to_owned());
        Ok(Made::Rewritten { class: Seal::of(to)?, table: Seal::of(&table)?, shortfalls: done.report.shortfalls })
    }
}

/// Path of the names table of a class.
fn beside(class: &Path) -> std::path::PathBuf {
    let mut name = class.as_os_str().to_owned();
    name.push(".etn");
    name.into()
}

fn parents(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(path);
    create_folder(folder)
}

fn link(from: &Path, to: &Path) -> Result<(), FileError> {
    if fs::read_link(to).is_ok_and(|target| target == from) {
        return Ok(());
    }
    remove_any(to)?;
    parents(to)?;
    symlink(from, to).map_err(FileError::at("create", to))
}

/// Removes what the original has no longer, and folders that are left empty.
fn remove_stale(copy: &Path, listing: &Listing, known: &FolderItem) -> Result<(), FileError> {
    let classes = known.classes.keys().filter(|name| !listing.classes.contains_key(*name));
    let links = known.links.iter().filter(|name| !listing.links.contains(*name));
    for name in classes.chain(links) {
        let path = copy.join(name);
        remove_any(&path)?;
        remove_any(&beside(&path))?;
        let mut folder = path.parent();
        while let Some(empty) = folder.filter(|folder| *folder != copy && fs::remove_dir(folder).is_ok()) {
            folder = empty.parent();
        }
    }
    Ok(())
}
