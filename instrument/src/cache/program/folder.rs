//! The rewritten copy of a folder of classes. Each class is an artifact by itself, with its names table beside it, so
//! that only classes that changed are written again. All else in it is a link to the original.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use et_names::ArtifactKind;
use serde::{Deserialize, Serialize};

use super::listing::{AsIs, Listing};
use super::{Item, Programs, Slot};
use crate::artifact::{Blocks, ClassInput, Outcome, instrument};
use crate::cache::stamp::{Digest, Stamp};
use crate::cache::{remove_any, write_beside};
use crate::error::Error;

/// What is noted of a folder.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FolderItem {
    /// By path in the folder.
    classes: BTreeMap<String, Class>,
    links: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Class {
    stamp: Stamp,
    digest: Digest,
    /// Or a link to the original.
    rewritten: bool,
}

impl FolderItem {
    fn is_up_to_date(&self, listing: &Listing) -> bool {
        let stamps = self.classes.iter().map(|(name, class)| (name, &class.stamp));
        self.links == listing.links && stamps.eq(&listing.classes)
    }
}

impl Programs<'_> {
    /// Whether there is a rewritten copy, brought up to date now if need be.
    pub(super) fn folder(&mut self, original: &Path, slot: &Slot) -> Result<bool, Error> {
        let listing = match Listing::of(original, self.cache) {
            Ok(listing) => listing,
            Err(why) => return self.folder_as_is(original, slot, why),
        };
        let known = |slot: &Slot| match slot.read() {
            Some(Item::Folder(item)) => Some(item),
            _ => None,
        };
        let mut item = known(slot);
        if item.as_ref().is_some_and(|item| item.is_up_to_date(&listing)) {
            return Ok(true);
        }
        if self.begin()? {
            item = known(slot);
        }
        let known = item.unwrap_or_default();
        if !known.is_up_to_date(&listing) {
            slot.open()?;
            if !fs::symlink_metadata(&slot.copy).is_ok_and(|copy| copy.is_dir()) {
                remove_any(&slot.copy)?;
            }
            let item = self.update_folder(original, &slot.copy, &listing, known)?;
            slot.write(&Item::Folder(item))?;
        }
        Ok(true)
    }

    /// A link stands for the copy, for jars to name.
    fn folder_as_is(&mut self, original: &Path, slot: &Slot, why: AsIs) -> Result<bool, Error> {
        if why == AsIs::TooLarge {
            self.done.notes.push(format!("{}: too much for a folder of classes, run as it is", original.display()));
        }
        if !fs::symlink_metadata(&slot.copy).is_ok_and(|copy| copy.is_symlink()) {
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
    ) -> Result<FolderItem, Error> {
        remove_stale(copy, listing, &known)?;
        fs::create_dir_all(copy).map_err(Error::io("create", copy))?;
        let mut item = FolderItem { links: listing.links.clone(), ..FolderItem::default() };
        let name = original.file_name().unwrap_or_default().to_string_lossy();
        self.settings.progress.stage(format!("rewriting {name}"));
        for name in &listing.links {
            link(&original.join(name), &copy.join(name))?;
        }
        for (name, stamp) in &listing.classes {
            let (from, to) = (original.join(name), copy.join(name));
            let old = known.classes.get(name).filter(|_| fs::symlink_metadata(&to).is_ok());
            if let Some(old) = old.filter(|old| old.stamp == *stamp) {
                item.classes.insert(name.clone(), *old);
                continue;
            }
            let metadata = fs::metadata(&from).map_err(Error::io("read", &from))?;
            let bytes = fs::read(&from).map_err(Error::io("read", &from))?;
            let (stamp, digest) = (Stamp::lasting(&metadata), Digest::of(&bytes));
            let rewritten = match old.filter(|old| old.digest == digest) {
                Some(old) => old.rewritten,
                None => self.class(name, &bytes, &from, &to)?,
            };
            item.classes.insert(name.clone(), Class { stamp, digest, rewritten });
        }
        Ok(item)
    }

    /// Rewrites a class; one that cannot be is linked.
    fn class(&mut self, name: &str, bytes: &[u8], from: &Path, to: &Path) -> Result<bool, Error> {
        let input = [ClassInput { label: name.to_owned(), bytes: Ok(Cow::Borrowed(bytes)) }];
        let mut blocks = Blocks::new(Some(self.next_id()));
        let done = instrument(&input, name, ArtifactKind::Application, self.settings, &mut blocks, |_, bytes| bytes);
        let done = match done {
            Ok(done) => done,
            Err(Error::Class { .. }) => return link(from, to).map(|()| false),
            Err(Error::Ids { .. }) => return Err(Error::CacheIds),
            Err(error) => return Err(error),
        };
        let content = match &done.outcomes[0] {
            Outcome::New(content) => content,
            Outcome::Same => bytes,
            Outcome::Skipped => return link(from, to).map(|()| false),
        };
        self.take_ids(done.report.id_base.saturating_add(done.report.id_count))?;
        parents(to)?;
        write_beside(&table(to), &done.names.encode())?;
        write_beside(to, content)?;
        self.done.files += 1;
        self.done.rewritten.push(from.to_owned());
        Ok(true)
    }
}

/// The names table of a class.
fn table(class: &Path) -> std::path::PathBuf {
    let mut name = class.as_os_str().to_owned();
    name.push(".etn");
    name.into()
}

fn parents(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(Error::io("create", folder))
}

fn link(from: &Path, to: &Path) -> Result<(), Error> {
    if fs::read_link(to).is_ok_and(|target| target == from) {
        return Ok(());
    }
    remove_any(to)?;
    parents(to)?;
    symlink(from, to).map_err(Error::io("create", to))
}

/// Removes what the original has no longer, and folders that are left empty.
fn remove_stale(copy: &Path, listing: &Listing, known: &FolderItem) -> Result<(), Error> {
    let classes = known.classes.keys().filter(|name| !listing.classes.contains_key(*name));
    let links = known.links.iter().filter(|name| !listing.links.contains(*name));
    for name in classes.chain(links) {
        let path = copy.join(name);
        remove_any(&path)?;
        remove_any(&table(&path))?;
        let mut folder = path.parent();
        while let Some(empty) = folder.filter(|folder| *folder != copy && fs::remove_dir(folder).is_ok()) {
            folder = empty.parent();
        }
    }
    Ok(())
}
