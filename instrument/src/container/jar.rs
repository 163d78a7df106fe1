//! Jars, and the jars inside fat jars and wars, as one artifact.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::{Deref, Range};
use std::sync::Arc;

use et_names::{ENTRY_IN_JAR, PATH_IN_JDK};
use rayon::prelude::*;
use thiserror::Error;

use super::zip::{Archive, DEFLATED, Entry, Packed, STORED, Writer, ZipError};
use super::{class_file, manifest};
use crate::artifact::{AlreadyInstrumented, ClassInput, ClassOutcome};
use crate::memory::{self, Budget};
use crate::report::Skip;

/// An ear holds wars, a war holds jars; nothing sane is deeper.
const MAX_DEPTH: usize = 3;
/// Where the end record of an archive begins at the earliest, from its end: the record and the longest comment.
const END_RECORD: usize = 22 + 0xffff;

/// Why a jar cannot be instrumented.
#[derive(Debug, Error)]
pub enum JarError {
    /// It is not a valid zip archive.
    #[error("{place}: {source}")]
    Zip {
        /// The jar, with the entry for a nested one.
        place: String,
        source: ZipError,
    },
    /// It is the jmod of java.base.
    #[error("{place}: {JAVA_BASE}")]
    JavaBase {
        /// The jar.
        place: String,
    },
    /// It has been instrumented already, or contains a jar that has.
    #[error(transparent)]
    AlreadyInstrumented(#[from] AlreadyInstrumented),
}

const JAVA_BASE: &str = "java.base is instrumented with its JDK only: et-instrument jdk --java-home …";

impl JarError {
    /// The reason for copying it unchanged, if that is permissible: it is not a jar, or it is a JDK's own java.base in
    /// an application.
    /// application.
    pub fn as_it_is(&self) -> Option<String> {
        match self {
            Self::Zip { source, .. } => Some(source.to_string()),
            Self::JavaBase { .. } => Some(JAVA_BASE.to_owned()),
            Self::AlreadyInstrumented(_) => None,
        }
    }
}

/// The bytes of an archive. One that is stored in another is a part of that.
#[derive(Clone, Debug)]
enum Bytes<'a> {
    File(&'a [u8]),
    Unpacked(Arc<Vec<u8>>, Range<usize>),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::File(bytes) => bytes,
            Self::Unpacked(bytes, range) => &bytes[range.clone()],
        }
    }
}

impl Bytes<'_> {
    fn unpacked(bytes: Vec<u8>) -> Self {
        let all = 0..bytes.len();
        Self::Unpacked(Arc::new(bytes), all)
    }

    fn part(&self, part: Range<usize>) -> Self {
        match self {
            Self::File(bytes) => Self::File(&bytes[part]),
            Self::Unpacked(bytes, range) => {
                Self::Unpacked(Arc::clone(bytes), range.start + part.start..range.start + part.end)
            }
        }
    }
}

/// An archive and what is to become of each entry.
#[derive(Debug)]
pub struct Jar<'a> {
    bytes: Bytes<'a>,
    archive: Archive,
    roles: Vec<Role<'a>>,
}

#[derive(Debug)]
enum Role<'a> {
    Copy,
    /// Index among the classes of the artifact.
    Class(usize),
    Signature,
    Manifest,
    Nested(Box<Jar<'a>>),
}

/// What a scan finds, apart from the jar itself.
#[derive(Debug)]
pub struct Findings {
    /// Number of classes, nested ones included.
    pub classes: usize,
    /// Archives with classes that are not looked into.
    pub skipped: Vec<Skip>,
    /// Names in the manifest's `Class-Path`.
    pub class_path: Vec<String>,
    budget: Budget,
}

impl Findings {
    /// Nothing yet; `budget` is what may be unpacked.
    pub fn new(budget: Budget) -> Self {
        Self { classes: 0, skipped: Vec::new(), class_path: Vec::new(), budget }
    }
}

impl<'a> Jar<'a> {
    /// Reads the directory of a jar and of the jars inside.
    pub fn scan(bytes: &'a [u8], place: &str, findings: &mut Findings) -> Result<Self, JarError> {
        let fail = |source| JarError::Zip { place: place.to_owned(), source };
        let archive = Archive::read(bytes).map_err(fail)?;
        if archive.entries.iter().any(|entry| is_names_table(&entry.name)) {
            return Err(AlreadyInstrumented { place: place.to_owned() }.into());
        }
        if is_jmod(bytes) && archive.entries.iter().any(|entry| entry.name == "classes/java/lang/Object.class") {
            return Err(JarError::JavaBase { place: place.to_owned() });
        }
        if let Some(manifest) = manifest_of(&archive, bytes) {
            let named = manifest::main_attribute(&manifest, "Class-Path").unwrap_or_default();
            findings.class_path = named.split_ascii_whitespace().map(str::to_owned).collect();
        }
        scan(Bytes::File(bytes), archive, place, "", 0, findings)
    }

    /// Path of the names table in the jar. A jmod only allows certain folders; the content of `lib` ends up in the
    /// image that is linked from it, so there the name must be unique.
    pub fn names_entry(&self, file_name: &str) -> String {
        if is_jmod(&self.bytes) {
            let stem = file_name.strip_suffix(".jmod").unwrap_or(file_name);
            format!("{JMOD_FOLDER}{stem}.etn")
        } else {
            ENTRY_IN_JAR.into()
        }
    }

    /// The classes, in order of their index, decompressed, as far as the budget goes.
    pub fn classes(&self, findings: &mut Findings) -> Vec<ClassInput<'_>> {
        let mut found = Vec::with_capacity(findings.classes);
        self.collect("", &mut found);
        let looks: Vec<Result<(), String>> = found.par_iter().map(|(_, jar, entry)| jar.look(entry)).collect();
        let allowed = looks
            .into_iter()
            .zip(&found)
            .map(|(look, (_, _, entry))| look.and_then(|()| findings.budget.claim(entry.unpacked())));
        let allowed: Vec<Result<(), String>> = allowed.collect();
        let content = found.into_par_iter().zip(allowed).map(|((label, jar, entry), allowed)| ClassInput {
            label,
            bytes: allowed.and_then(|()| entry.content(&jar.bytes).map_err(|error| error.to_string())),
        });
        content.collect()
    }

    fn collect<'b>(&'b self, prefix: &str, found: &mut Vec<(String, &'b Jar<'a>, &'b Entry)>) {
        for (entry, role) in self.archive.entries.iter().zip(&self.roles) {
            match role {
                Role::Class(_) => found.push((format!("{prefix}{}", entry.name), self, entry)),
                Role::Nested(jar) => jar.collect(&format!("{prefix}{}!/", entry.name), found),
                _ => {}
            }
        }
    }

    /// Whether an entry starts as a class file does: what does not need not be unpacked.
    fn look(&self, entry: &Entry) -> Result<(), String> {
        let start = entry.start(&self.bytes, class_file::MAGIC.len()).map_err(|error| error.to_string())?;
        match start.as_slice() {
            [] => Err("the entry is empty".into()),
            start if class_file::is_class(start) => Ok(()),
            _ => Err(class_file::NO_CLASS.into()),
        }
    }

    /// How each class is stored, by its index: deflated ones are packed by the workers.
    pub fn methods(&self, count: usize) -> Vec<u16> {
        let mut methods = vec![DEFLATED; count];
        self.collect_methods(&mut methods);
        methods
    }

    fn collect_methods(&self, methods: &mut [u16]) {
        for (entry, role) in self.archive.entries.iter().zip(&self.roles) {
            match role {
                Role::Class(index) => methods[*index] = entry.method,
                Role::Nested(jar) => jar.collect_methods(methods),
                _ => {}
            }
        }
    }

    /// Whether any class in it was rewritten. If not, it is copied as it is, signatures and all.
    pub fn touched(&self, outcomes: &[ClassOutcome<Packed>]) -> bool {
        self.roles.iter().any(|role| match role {
            Role::Class(index) => outcomes[*index] != ClassOutcome::Skipped,
            Role::Nested(jar) => jar.touched(outcomes),
            _ => false,
        })
    }

    /// The signature files that [`write`](Self::write) leaves out.
    pub fn signatures(&self, outcomes: &[ClassOutcome<Packed>]) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_signatures("", outcomes, &mut found);
        found
    }

    fn collect_signatures(&self, prefix: &str, outcomes: &[ClassOutcome<Packed>], found: &mut Vec<String>) {
        if !self.touched(outcomes) {
            return;
        }
        for (entry, role) in self.archive.entries.iter().zip(&self.roles) {
            match role {
                Role::Signature => found.push(format!("{prefix}{}", entry.name)),
                Role::Nested(jar) => jar.collect_signatures(&format!("{prefix}{}!/", entry.name), outcomes, found),
                _ => {}
            }
        }
    }

    /// Writes the rewritten jar, with the names table as its last entry. Returns the output and its size.
    pub fn write<W: Write>(
        &self,
        out: W,
        outcomes: &[ClassOutcome<Packed>],
        names: Option<(&str, Vec<u8>)>,
    ) -> io::Result<(W, u64)> {
        let data = &*self.bytes;
        let mut writer = Writer::like(out, &self.archive, data)?;
        for (entry, role) in self.archive.entries.iter().zip(&self.roles) {
            crate::interrupt::check().map_err(io::Error::other)?;
            match role {
                Role::Signature => {}
                Role::Class(index) => match &outcomes[*index] {
                    ClassOutcome::New(packed) => writer.replace(entry, data, packed)?,
                    ClassOutcome::Same | ClassOutcome::Skipped => writer.copy(entry, data)?,
                },
                Role::Manifest => {
                    let content = entry.content_within(data, memory::MANIFEST).ok();
                    match content.and_then(|content| manifest::without_digests(&content)) {
                        Some(changed) => writer.replace(entry, data, &Packed::new(changed, entry.method))?,
                        None => writer.copy(entry, data)?,
                    }
                }
                Role::Nested(jar) if jar.touched(outcomes) => {
                    let (nested, _) = jar.write(Vec::with_capacity(jar.bytes.len()), outcomes, None)?;
                    writer.replace(entry, data, &Packed::new(nested, entry.method))?;
                }
                Role::Nested(_) | Role::Copy => writer.copy(entry, data)?,
            }
        }
        if let Some((entry, names)) = names {
            // It is compressed already.
            writer.add(entry, &Packed::new(names, STORED))?;
        }
        writer.finish(&data[self.archive.comment.clone()])
    }
}

fn scan<'a>(
    bytes: Bytes<'a>,
    archive: Archive,
    place: &str,
    prefix: &str,
    depth: usize,
    findings: &mut Findings,
) -> Result<Jar<'a>, JarError> {
    let mut roles = Vec::with_capacity(archive.entries.len());
    let libraries = Libraries::of(&archive, &bytes);
    for entry in &archive.entries {
        let name = entry.name.as_str();
        roles.push(if entry.is_folder() {
            Role::Copy
        } else if class_file::has_class_name(name.as_ref()) {
            findings.classes += 1;
            Role::Class(findings.classes - 1)
        } else if manifest::is_signature(name) {
            Role::Signature
        } else if manifest::is_manifest(name) {
            if entry.unpacked() > memory::MANIFEST {
                let reason = "too large for a manifest: ignored".into();
                findings.skipped.push(Skip { entry: format!("{prefix}{name}"), reason });
            }
            Role::Manifest
        } else if is_archive(name) {
            let label = format!("{prefix}{name}");
            let is_library = libraries.has(name);
            match nested(&bytes, entry, is_library, place, &label, depth, findings)? {
                _ if !is_library && !holds_classes(entry, &bytes, &findings.budget) => Role::Copy,
                Ok(jar) => Role::Nested(Box::new(jar)),
                Err(reason) => {
                    findings.skipped.push(Skip { entry: label, reason });
                    Role::Copy
                }
            }
        } else {
            Role::Copy
        });
    }
    Ok(Jar { bytes, archive, roles })
}

/// A nested jar, or why it is copied unchanged.
fn nested<'a>(
    outer: &Bytes<'a>,
    entry: &Entry,
    is_library: bool,
    place: &str,
    label: &str,
    depth: usize,
    findings: &mut Findings,
) -> Result<Result<Jar<'a>, String>, JarError> {
    if !is_library {
        return Ok(Err("an archive that is data, not a library (BOOT-INF/lib, WEB-INF/lib, lib)".into()));
    }
    if depth == MAX_DEPTH {
        return Ok(Err("nested too deeply".into()));
    }
    if let Err(error) = looks_like_archive(entry, outer) {
        return Ok(Err(error.to_string()));
    }
    if let Err(why) = findings.budget.claim(entry.unpacked()) {
        return Ok(Err(why));
    }
    // Checked in any case; what is stored is not copied.
    let bytes = entry.content(outer).map(|content| match content {
        Cow::Borrowed(_) => outer.part(entry.data.clone()),
        Cow::Owned(content) => Bytes::unpacked(content),
    });
    let read = bytes.and_then(|bytes| Ok((Archive::read(&bytes)?, bytes)));
    let (archive, bytes) = match read {
        Ok(read) => read,
        Err(error) => {
            findings.budget.release(entry.unpacked());
            let is_empty = error == ZipError::Empty;
            return Ok(Err(if is_empty { "the entry is empty".into() } else { error.to_string() }));
        }
    };
    if archive.entries.iter().any(|entry| is_names_table(&entry.name)) {
        return Err(AlreadyInstrumented { place: format!("{place}: {label}") }.into());
    }
    scan(bytes, archive, place, &format!("{label}!/"), depth + 1, findings).map(Ok)
}

/// Where a jmod has its names table.
const JMOD_FOLDER: &str = "lib/elephant-tracks/";

/// Whether the archive is a jmod, which has a header before the zip.
fn is_jmod(bytes: &[u8]) -> bool {
    bytes.starts_with(b"JM\x01\x00")
}

/// Whether an entry is the names table of an artifact.
pub fn is_names_table(entry: &str) -> bool {
    debug_assert!(PATH_IN_JDK.starts_with(JMOD_FOLDER));
    entry == ENTRY_IN_JAR || (entry.starts_with(JMOD_FOLDER) && entry.ends_with(".etn"))
}

/// Names of what holds classes, inside archives and in folders.
pub fn is_archive(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("jar" | "war" | "ear" | "rar" | "jmod"))
}

/// Fails unless an entry may be an archive. Most archives begin with their first entry; one with a launch script or the
/// like is recognized by its end, which is unpacked without keeping the rest in memory.
fn looks_like_archive(entry: &Entry, outer: &[u8]) -> Result<(), ZipError> {
    let start = entry.start(outer, 2)?;
    if entry.is_stored() || start.is_empty() || start == *b"PK" {
        return Ok(());
    }
    let tail = entry.tail(outer, END_RECORD)?;
    if memchr::memmem::rfind(&tail, b"PK\x05\x06").is_some() { Ok(()) } else { Err(ZipError::NoEnd) }
}

/// Whether an archive that is not treated as a library contains classes, which then get no hooks.
fn holds_classes(entry: &Entry, outer: &[u8], budget: &Budget) -> bool {
    if looks_like_archive(entry, outer).is_err() {
        return false;
    }
    if !budget.holds(entry.unpacked()) {
        return true;
    }
    let content = entry.content(outer).ok();
    let archive = content.and_then(|content| Archive::read(&content).ok());
    archive.is_some_and(|archive| archive.entries.iter().any(|entry| class_file::has_class_name(entry.name.as_ref())))
}

fn manifest_of<'a>(archive: &Archive, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    archive
        .entries
        .iter()
        .find(|entry| manifest::is_manifest(&entry.name))?
        .content_within(bytes, memory::MANIFEST)
        .ok()
}

/// Which nested archives are libraries on a class path. Others may be data of the program, to be copied unchanged.
#[derive(Debug, Default)]
struct Libraries {
    /// Jars at the root are modules of an ear, or the classes of a resource adapter.
    root: bool,
    /// Named by the manifest: OSGi's `Bundle-ClassPath`, Eclipse's `Rsrc-Class-Path`.
    named: Vec<String>,
}

impl Libraries {
    fn of(archive: &Archive, bytes: &[u8]) -> Self {
        // Most jars hold no others, and their manifests need not be read.
        if !archive.entries.iter().any(|entry| is_archive(&entry.name)) {
            return Self::default();
        }
        let descriptors = ["META-INF/application.xml", "META-INF/ra.xml"];
        let root = archive.entries.iter().any(|entry| descriptors.contains(&entry.name.as_str()));
        let manifest = manifest_of(archive, bytes).unwrap_or_default();
        let listed = ["Bundle-ClassPath", "Rsrc-Class-Path"]
            .iter()
            .filter_map(|name| manifest::main_attribute(&manifest, name))
            .flat_map(|value| value.split([',', ' ']).map(|name| name.trim().to_owned()).collect::<Vec<_>>());
        Self { root, named: listed.collect() }
    }

    fn has(&self, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        if lower.ends_with(".jmod") {
            return false;
        }
        // Spring Boot's, those of servlet containers, WebLogic's, and what ears and many launchers use.
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        matches!(folder, "BOOT-INF/lib" | "WEB-INF/lib" | "WEB-INF/lib-provided" | "APP-INF/lib" | "lib")
            || (folder.is_empty() && (self.root || !lower.ends_with(".jar")))
            || self.named.iter().any(|named| named == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_distinguished_from_data() {
        let usual = Libraries::default();
        for name in ["BOOT-INF/lib/a.jar", "WEB-INF/lib/a.jar", "lib/a.jar", "shop.war"] {
            assert!(usual.has(name), "{name}");
        }
        for name in ["com/acme/template.jar", "agent.jar", "lib/a.jmod"] {
            assert!(!usual.has(name), "{name}");
        }
        assert!(Libraries { root: true, ..Libraries::default() }.has("ejb.jar"));
        assert!(Libraries { named: vec!["inner/x.jar".into()], ..Libraries::default() }.has("inner/x.jar"));
        assert!(is_archive("a.JAR") && is_archive("x/a.war") && !is_archive("jar") && !is_archive("a.jar.txt"));
    }
}
