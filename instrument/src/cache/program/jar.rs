//! The rewritten copy of a jar.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use et_names::class_path::decoded;
use serde::{Deserialize, Serialize};

use super::{Item, Programs, Slot, above, relink, unique};
use crate::app::{self, AppError};
use crate::artifact::ArtifactError;
use crate::cache::CacheError;
use crate::cache::stamp::{Digest, Seal, Stamp};
use crate::container::jar::JarError;
use crate::container::manifest;
use crate::container::zip::Archive;
use crate::files::{FileError, mode_of_copy, remove_any};
use crate::input::Input;
use crate::memory;
use crate::report::{ShortfallReport, Skip};

/// Attributes of manifests that name other jars, and whether they hold URLs.
const NAMING: [(&str, bool); 2] = [("Class-Path", true), ("Boot-Class-Path", false)];

/// Metadata of a jar's copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JarItem {
    stamp: Stamp,
    digest: Digest,
    /// Of the copy, if it is rewritten; else it is a link.
    seal: Option<Seal>,
    /// Absolute paths of what its manifest refers to.
    named: Vec<PathBuf>,
    /// Entries that were copied unchanged.
    skipped: Vec<Skip>,
    /// Methods that have fewer hooks than asked for.
    shortfalls: Vec<ShortfallReport>,
    /// Which rules of the filter decided over its classes.
    decided: Vec<usize>,
}

impl JarItem {
    /// Whether the copy was made from the current content.
    fn has_content(&self, original: &Path) -> bool {
        Digest::of_file(original).unwrap_or(Digest::of(&[])) == self.digest
    }

    /// Whether the copy is undamaged.
    fn is_whole(&self, copy: &Path) -> bool {
        match &self.seal {
            Some(seal) => seal.holds(copy),
            None => fs::symlink_metadata(copy).is_ok(),
        }
    }
}

impl Programs<'_> {
    /// Whether there is a rewritten copy, made now if need be.
    pub(super) fn jar(&mut self, original: &Path, slot: &Slot, metadata: &Metadata) -> Result<bool, CacheError> {
        let stamp = Stamp::of(metadata);
        let known = |slot: &Slot| match slot.read() {
            Some(Item::Jar(item)) if item.is_whole(&slot.copy) => Some(item),
            _ => None,
        };
        let mut item = known(slot);
        if item.as_ref().is_none_or(|item| item.stamp != stamp) && self.begin()? {
            item = known(slot); // another run may have been quicker
        }
        let item = match item {
            Some(item) if item.stamp == stamp => item,
            // In an image of a container the times are others, and the content is the same.
            item if self.entry.is_read_only() => match item.filter(|item| item.has_content(original)) {
                Some(item) => item,
                None => return Ok(self.is_missing(original)),
            },
            item => self.update_jar(original, slot, metadata, item)?,
        };
        for named in &item.named {
            self.placed(named)?;
        }
        self.tell(original, &item.decided, &item.skipped, &item.shortfalls);
        Ok(item.seal.is_some())
    }

    fn update_jar(
        &mut self,
        original: &Path,
        slot: &Slot,
        metadata: &Metadata,
        known: Option<JarItem>,
    ) -> Result<JarItem, CacheError> {
        let bytes = match Input::open(original) {
            Ok(bytes) => bytes,
            // The JVM leaves out what it cannot read.
            Err(error) => return self.as_is(slot, metadata, Digest::of(&[]), Some(error.to_string())),
        };
        let (stamp, digest) = (Stamp::lasting(metadata), Digest::of(&bytes));
        if let Some(known) = known.filter(|known| known.digest == digest) {
            return self.noted(slot, JarItem { stamp, ..known });
        }
        slot.open()?;
        let archive = match Archive::read(&bytes) {
            Ok(archive) => archive,
            Err(error) => return self.as_is(slot, metadata, digest, Some(error.to_string())),
        };
        let names = Named::of(&archive, &bytes, original);
        // An index of other jars is read instead of what the manifest names, and names them by relative paths.
        if !names.all.is_empty() && archive.entries.iter().any(|entry| entry.name == "META-INF/INDEX.LIST") {
            return self.as_is(slot, metadata, digest, None);
        }
        remove_any(&slot.copy)?;
        let settings = self.own_settings();
        let report = app::run(&[original.to_owned()], &slot.copy, true, Some(self.next_id()), &settings);
        let report = match report {
            Ok(report) => report,
            Err(
                AppError::AlreadyInstrumented(_)
                | AppError::Jar(JarError::AlreadyInstrumented(_))
                | AppError::Artifact(ArtifactError::Class { .. }),
            ) => return self.as_is(slot, metadata, digest, None),
            Err(AppError::Artifact(ArtifactError::Ids { .. })) => return Err(CacheError::NoIds),
            // Nothing that can be rewritten: the JVM has its own opinion of it.
            Err(AppError::Jar(error)) => return self.as_is(slot, metadata, digest, error.as_it_is()),
            Err(AppError::Unusable { why, .. }) => return self.as_is(slot, metadata, digest, Some(why)),
            Err(error) => return Err(error.into()),
        };
        if report.artifacts.iter().all(|artifact| artifact.classes == 0) && names.all.is_empty() {
            let skipped = report.artifacts.into_iter().flat_map(|artifact| artifact.skipped).collect();
            return self.as_is_but(slot, metadata, digest, skipped);
        }
        self.take_ids(above(&report))?;
        if report.artifacts.iter().any(|artifact| !artifact.signatures_removed.is_empty()) {
            self.done.notes.push(format!(
                "{}: runs without its signatures, which are valid for the original only",
                original.display()
            ));
        }
        let mode = Permissions::from_mode(mode_of_copy(metadata));
        fs::set_permissions(&slot.copy, mode).map_err(FileError::at("write", &slot.copy))?;
        for (attribute, names) in &names.attributes {
            let places = names.iter().map(|name| name.place(|path| self.slot(path).copy));
            relink::relink(&slot.copy, attribute, &places.collect::<Vec<_>>().join(" "))?;
        }
        self.done.jars += 1;
        self.done.rewritten.push(original.to_owned());
        let seal = Some(Seal::of(&slot.copy)?);
        let (mut skipped, mut shortfalls) = (Vec::new(), Vec::new());
        for artifact in report.artifacts {
            skipped.extend(artifact.skipped);
            shortfalls.extend(artifact.shortfalls);
        }
        let decided = settings.filter.decided().collect();
        self.noted(slot, JarItem { stamp, digest, seal, named: names.all, skipped, shortfalls, decided })
    }

    fn noted(&self, slot: &Slot, item: JarItem) -> Result<JarItem, CacheError> {
        slot.write(&Item::Jar(item.clone()))?;
        Ok(item)
    }

    /// It is to run as it is, for this reason if that is to be said.
    fn as_is(
        &mut self,
        slot: &Slot,
        metadata: &Metadata,
        digest: Digest,
        why: Option<String>,
    ) -> Result<JarItem, CacheError> {
        let skipped = why.into_iter().map(|reason| Skip { entry: String::new(), reason }).collect();
        self.as_is_but(slot, metadata, digest, skipped)
    }

    /// Makes the copy a link to the original, so that other jars can refer to it.
    fn as_is_but(
        &mut self,
        slot: &Slot,
        metadata: &Metadata,
        digest: Digest,
        skipped: Vec<Skip>,
    ) -> Result<JarItem, CacheError> {
        slot.open()?;
        slot.link()?;
        let stamp = Stamp::lasting(metadata);
        let (named, shortfalls, decided) = (Vec::new(), Vec::new(), Vec::new());
        self.noted(slot, JarItem { stamp, digest, seal: None, named, skipped, shortfalls, decided })
    }
}

/// What a manifest refers to.
#[derive(Default)]
struct Named {
    attributes: Vec<(&'static str, Vec<Name>)>,
    all: Vec<PathBuf>,
}

/// One name in a manifest.
struct Name {
    path: PathBuf,
    is_url: bool,
    /// A URL that ends with a slash is a folder and any other a jar, whatever is there.
    is_folder: bool,
}

impl Named {
    fn of(archive: &Archive, bytes: &[u8], original: &Path) -> Self {
        let mut named = Self::default();
        let entry = archive.entries.iter().find(|entry| manifest::is_manifest(&entry.name));
        let Some(content) = entry.and_then(|entry| entry.content_within(bytes, memory::MANIFEST).ok()) else {
            return named;
        };
        for (attribute, is_url) in NAMING {
            let value = manifest::main_attribute(&content, attribute).unwrap_or_default();
            let names = value.split_ascii_whitespace();
            // URLs other than files are fetched from their origin and have no path here.
            let names = names.filter(|name| !is_url || !name.contains("://") || name.starts_with("file:"));
            let names: Vec<Name> = names.filter_map(|name| Name::of(name, is_url, original)).collect();
            if !names.is_empty() {
                named.all.extend(names.iter().map(|name| name.path.clone()));
                named.attributes.push((attribute, names));
            }
        }
        named.all = unique(named.all);
        named
    }
}

impl Name {
    fn of(name: &str, is_url: bool, original: &Path) -> Option<Self> {
        let path = if is_url { decoded(name) } else { PathBuf::from(name) };
        let path = super::absolute(&original.parent()?.join(path)).ok()?;
        Some(Self { path, is_url, is_folder: name.ends_with('/') })
    }

    /// The URL that replaces it in the copy.
    fn place(&self, copy: impl Fn(&Path) -> PathBuf) -> String {
        // A folder that is named as a jar is nothing to the JVM, and is to stay so.
        let misnamed = self.is_url && !self.is_folder && self.path.is_dir();
        let place = if misnamed { self.path.clone() } else { copy(&self.path) };
        if self.is_url { relink::file_url(&place, self.is_folder) } else { place.display().to_string() }
    }
}
