//! Jars, and the jars inside fat jars and wars, as one artifact.

use std::borrow::Cow;
use std::io::{self, Write};

use et_names::ENTRY_IN_JAR;
use rayon::prelude::*;

use super::zip::{Archive, DEFLATED, Entry, Packed, STORED, Writer, ZipError};
use super::{class_file, manifest};
use crate::artifact::{ClassInput, Outcome};
use crate::error::Error;
use crate::report::Skip;

/// An ear holds wars, a war holds jars; nothing sane is deeper.
const MAX_DEPTH: usize = 3;
/// Nested archives are inflated as a whole; more than this together is refused.
const MAX_NESTED_BYTES: u64 = 4 << 30;

/// An archive and what is to become of each entry.
#[derive(Debug)]
pub struct Jar<'a> {
    bytes: Cow<'a, [u8]>,
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

/// What a scan finds besides the jar itself.
#[derive(Debug, Default)]
pub struct Findings {
    /// Number of classes, nested ones included.
    pub classes: usize,
    /// Archives that are not looked into.
    pub skipped: Vec<Skip>,
    nested_bytes: u64,
}

impl<'a> Jar<'a> {
    /// Reads the directory of a jar and of the jars inside.
    pub fn scan(bytes: &'a [u8], place: &str, findings: &mut Findings) -> Result<Self, Error> {
        let fail = |source| Error::Zip { place: place.to_owned(), source };
        let archive = Archive::read(bytes).map_err(fail)?;
        if archive.entries.iter().any(|entry| entry.name == ENTRY_IN_JAR) {
            return Err(Error::AlreadyInstrumented { place: place.to_owned() });
        }
        scan(Cow::Borrowed(bytes), archive, place, "", 0, findings)
    }

    /// The classes, in order of their index, decompressed.
    pub fn classes(&self, count: usize) -> Vec<ClassInput<'_>> {
        let mut found = Vec::with_capacity(count);
        self.collect("", &mut found);
        found.into_par_iter().map(|(label, jar, entry)| ClassInput { label, bytes: jar.content(entry) }).collect()
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

    fn content(&self, entry: &Entry) -> Result<Cow<'_, [u8]>, String> {
        let content = entry.content(&self.bytes).map_err(|error| error.to_string())?;
        if content.is_empty() { Err("the entry is empty".into()) } else { Ok(content) }
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
    pub fn touched(&self, outcomes: &[Outcome<Packed>]) -> bool {
        self.roles.iter().any(|role| match role {
            Role::Class(index) => outcomes[*index] != Outcome::Skipped,
            Role::Nested(jar) => jar.touched(outcomes),
            _ => false,
        })
    }

    /// The signature files that [`write`](Self::write) leaves out.
    pub fn signatures(&self, outcomes: &[Outcome<Packed>]) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_signatures("", outcomes, &mut found);
        found
    }

    fn collect_signatures(&self, prefix: &str, outcomes: &[Outcome<Packed>], found: &mut Vec<String>) {
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
        outcomes: &[Outcome<Packed>],
        names: Option<Vec<u8>>,
    ) -> io::Result<(W, u64)> {
        let data = &*self.bytes;
        let mut writer = Writer::like(out, &self.archive, data)?;
        for (entry, role) in self.archive.entries.iter().zip(&self.roles) {
            crate::interrupt::check().map_err(io::Error::other)?;
            match role {
                Role::Signature => {}
                Role::Class(index) => match &outcomes[*index] {
                    Outcome::New(packed) => writer.replace(entry, data, packed)?,
                    Outcome::Same | Outcome::Skipped => writer.copy(entry, data)?,
                },
                Role::Manifest => {
                    let content = entry.content(data).ok();
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
        if let Some(names) = names {
            // Compressed already.
            writer.add(ENTRY_IN_JAR, &Packed::new(names, STORED))?;
        }
        writer.finish(&data[self.archive.comment.clone()])
    }
}

fn scan<'a>(
    bytes: Cow<'a, [u8]>,
    archive: Archive,
    place: &str,
    prefix: &str,
    depth: usize,
    findings: &mut Findings,
) -> Result<Jar<'a>, Error> {
    let mut roles = Vec::with_capacity(archive.entries.len());
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
            Role::Manifest
        } else if is_archive(name) {
            let label = format!("{prefix}{name}");
            match nested(&bytes, entry, place, &label, depth, findings)? {
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
    outer: &[u8],
    entry: &Entry,
    place: &str,
    label: &str,
    depth: usize,
    findings: &mut Findings,
) -> Result<Result<Jar<'a>, String>, Error> {
    if !is_library(&entry.name) {
        return Ok(Err("an archive that is data, not a library (BOOT-INF/lib, WEB-INF/lib, lib)".into()));
    }
    if depth == MAX_DEPTH {
        return Ok(Err("nested too deep".into()));
    }
    if findings.nested_bytes.saturating_add(entry.size) > MAX_NESTED_BYTES {
        return Ok(Err("the nested archives together are too large".into()));
    }
    let read = entry.content(outer).map(Cow::into_owned).and_then(|bytes| Ok((Archive::read(&bytes)?, bytes)));
    let (archive, bytes) = match read {
        Ok(read) => read,
        Err(ZipError::Empty) => return Ok(Err("the entry is empty".into())),
        Err(error) => return Ok(Err(error.to_string())),
    };
    if archive.entries.iter().any(|entry| entry.name == ENTRY_IN_JAR) {
        return Err(Error::AlreadyInstrumented { place: format!("{place}: {label}") });
    }
    findings.nested_bytes += entry.size;
    scan(Cow::Owned(bytes), archive, place, &format!("{label}!/"), depth + 1, findings).map(Ok)
}

/// Names of what holds classes, inside archives and in folders.
pub fn is_archive(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("jar" | "war" | "ear" | "rar"))
}

/// Archives that launchers and containers put on a class path: Spring Boot's, servlet containers', ear modules.
/// Others may be data of the program, to be handed on as they are.
fn is_library(name: &str) -> bool {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    matches!(folder, "BOOT-INF/lib" | "WEB-INF/lib" | "WEB-INF/lib-provided" | "lib")
        || (folder.is_empty() && !name.to_ascii_lowercase().ends_with(".jar"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_from_data() {
        assert!(is_library("BOOT-INF/lib/a.jar") && is_library("WEB-INF/lib/a.jar") && is_library("shop.war"));
        assert!(!is_library("com/acme/template.jar") && !is_library("agent.jar"));
        assert!(is_archive("a.JAR") && is_archive("x/a.war") && !is_archive("jar") && !is_archive("a.jar.txt"));
    }
}
