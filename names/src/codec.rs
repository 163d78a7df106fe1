//! The binary form of a names table.

use thiserror::Error;

use crate::table::{Artifact, ArtifactKind, Class, ClassFlags, Field, FieldRef, Method, NamesTable, Shortfall, Site};
use crate::{EventSet, Str, StringTable};

/// First bytes of a names table file.
pub const MAGIC: [u8; 8] = *b"ETNAMES\0";
const VERSION: u16 = 1;
const HEADER: usize = 16;
/// A table of this many bytes is not one of ours: bounds what a damaged file makes us allocate.
const MAX_BODY: usize = 1 << 30;
/// Nor is one whose body is so many times its compressed form: real ones reach 20.
const MAX_RATIO: usize = 1 << 12;

/// Why a names table could not be read.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The first bytes are others.
    #[error("not a names table: it does not start with ETNAMES")]
    Magic,
    /// Written by another version of the tool.
    #[error("names table of format version {0}, this tool reads version {VERSION}: instrument again with this version")]
    Version(u16),
    /// The compressed body is damaged.
    #[error("names table is damaged: {0}")]
    Compression(std::io::Error),
    /// The body ends early or says something impossible.
    #[error("names table is damaged at byte {offset} of its body: {what}")]
    Body {
        /// Byte of the uncompressed body.
        offset: usize,
        /// What was read there.
        what: &'static str,
    },
}

impl NamesTable {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 << 16);
        out.extend_from_slice(&self.artifact.hash.to_le_bytes());
        varint(&mut out, self.artifact.base);
        out.push(match self.artifact.kind {
            ArtifactKind::Jdk => 0,
            ArtifactKind::Application => 1,
            ArtifactKind::Dynamic => 2,
            ArtifactKind::Redefined => 3,
        });
        string(&mut out, &self.artifact.name);
        varint(&mut out, self.strings.len() as u32);
        for text in self.strings.iter() {
            string(&mut out, text);
        }
        varint(&mut out, self.classes.len() as u32);
        for class in &self.classes {
            varint(&mut out, class.name.0);
            varint(&mut out, class.super_name.0);
            varint(&mut out, class.interfaces.len() as u32);
            for name in &class.interfaces {
                varint(&mut out, name.0);
            }
            out.push(class.flags.0);
            varint(&mut out, class.source_file.0);
            varint(&mut out, class.first_method);
            varint(&mut out, class.first_field);
        }
        varint(&mut out, self.methods.len() as u32);
        for method in &self.methods {
            for value in [method.class, method.name.0, method.descriptor.0, method.access.into(), method.line] {
                varint(&mut out, value);
            }
        }
        varint(&mut out, self.fields.len() as u32);
        for field in &self.fields {
            for value in [field.class, field.name.0, field.descriptor.0, field.access.into()] {
                varint(&mut out, value);
            }
        }
        varint(&mut out, self.sites.len() as u32);
        for site in &self.sites {
            for value in [site.method, site.descriptor.0, site.dimensions.into(), site.line] {
                varint(&mut out, value);
            }
        }
        varint(&mut out, self.field_refs.len() as u32);
        for field in &self.field_refs {
            for value in [field.class.0, field.name.0, field.descriptor.0, field.is_static.into()] {
                varint(&mut out, value);
            }
        }
        varint(&mut out, self.shortfalls.len() as u32);
        for short in &self.shortfalls {
            for value in [short.method, short.hooks.0, short.why.0] {
                varint(&mut out, value);
            }
        }
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&VERSION.to_le_bytes());
        // So that a zero means all of them.
        file.push(self.artifact.events.missing().bits());
        file.resize(HEADER - 4, 0);
        file.extend_from_slice(&(out.len() as u32).to_le_bytes());
        // Level 3 of zstd cannot fail on a buffer in memory.
        file.extend(zstd::bulk::compress(&out, 3).expect("zstd compresses any buffer"));
        file
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(file: &[u8]) -> Result<Self, DecodeError> {
        if file.len() < HEADER || file[..8] != MAGIC {
            return Err(DecodeError::Magic);
        }
        let version = u16::from_le_bytes([file[8], file[9]]);
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let size = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
        if size > MAX_BODY || size / MAX_RATIO > file.len() {
            return Err(DecodeError::Body { offset: 0, what: "size out of bounds" });
        }
        let body = zstd::bulk::decompress(&file[HEADER..], size).map_err(DecodeError::Compression)?;
        let events = EventSet::from_bits(file[10]).missing();
        Body { bytes: &body, at: 0, strings: 0 }.table(events)
    }
}

fn varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn string(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

struct Body<'a> {
    bytes: &'a [u8],
    at: usize,
    strings: u32,
}

impl Body<'_> {
    fn fail<T>(&self, what: &'static str) -> Result<T, DecodeError> {
        Err(DecodeError::Body { offset: self.at, what })
    }

    fn take(&mut self, count: usize) -> Result<&[u8], DecodeError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => self.fail("it ends early"),
        }
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.fail("number longer than 32 bits")
    }

    /// A count of items of at least one byte each.
    fn count(&mut self) -> Result<usize, DecodeError> {
        let count = self.varint()? as usize;
        if count > self.bytes.len() - self.at { self.fail("count out of bounds") } else { Ok(count) }
    }

    fn text(&mut self) -> Result<&str, DecodeError> {
        let offset = self.at;
        let count = self.count()?;
        std::str::from_utf8(self.take(count)?).map_err(|_| DecodeError::Body { offset, what: "string is not UTF-8" })
    }

    fn str(&mut self) -> Result<Str, DecodeError> {
        let handle = self.varint()?;
        if handle < self.strings { Ok(Str(handle)) } else { self.fail("string handle out of bounds") }
    }

    fn below(&mut self, bound: usize, what: &'static str) -> Result<u32, DecodeError> {
        let value = self.varint()?;
        if (value as usize) < bound { Ok(value) } else { self.fail(what) }
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(self.below(1 << 16, "number longer than 16 bits")? as u16)
    }

    fn table(mut self, events: EventSet) -> Result<NamesTable, DecodeError> {
        let mut hash = [0; 8];
        hash.copy_from_slice(self.take(8)?);
        let base = self.varint()?;
        let kind = match self.byte()? {
            0 => ArtifactKind::Jdk,
            1 => ArtifactKind::Application,
            2 => ArtifactKind::Dynamic,
            3 => ArtifactKind::Redefined,
            _ => return self.fail("unknown kind of artifact"),
        };
        let name = self.text()?.to_owned();
        let mut table = NamesTable::new(Artifact { hash: u64::from_le_bytes(hash), base, name, kind, events });

        let count = self.count()?;
        let mut strings = StringTable::without_index();
        for _ in 0..count {
            strings.push(self.text()?);
        }
        self.strings = count as u32;
        table.strings = strings;

        for _ in 0..self.count()? {
            let (name, super_name) = (self.str()?, self.str()?);
            let interfaces = (0..self.count()?).map(|_| self.str()).collect::<Result<_, _>>()?;
            table.classes.push(Class {
                name,
                super_name,
                interfaces,
                flags: ClassFlags(self.byte()?),
                source_file: self.str()?,
                first_method: self.varint()?,
                first_field: self.varint()?,
            });
        }
        let classes = table.classes.len();
        for _ in 0..self.count()? {
            table.methods.push(Method {
                class: self.below(classes, "method of no class")?,
                name: self.str()?,
                descriptor: self.str()?,
                access: self.u16()?,
                line: self.varint()?,
            });
        }
        for _ in 0..self.count()? {
            table.fields.push(Field {
                class: self.below(classes, "field of no class")?,
                name: self.str()?,
                descriptor: self.str()?,
                access: self.u16()?,
            });
        }
        let methods = table.methods.len();
        for _ in 0..self.count()? {
            table.sites.push(Site {
                method: self.below(methods, "site of no method")?,
                descriptor: self.str()?,
                dimensions: self.u16()? as u8,
                line: self.varint()?,
            });
        }
        for _ in 0..self.count()? {
            table.field_refs.push(FieldRef {
                class: self.str()?,
                name: self.str()?,
                descriptor: self.str()?,
                is_static: self.varint()? != 0,
            });
        }
        for _ in 0..self.count()? {
            table.shortfalls.push(Shortfall {
                method: self.below(methods, "shortfall of no method")?,
                hooks: self.str()?,
                why: self.str()?,
            });
        }
        let mut last = (0, 0);
        for class in &table.classes {
            let next = (class.first_method, class.first_field);
            if next.0 < last.0 || next.1 < last.1 || next.0 as usize > methods || next.1 as usize > table.fields.len() {
                return self.fail("members of a class out of order");
            }
            last = next;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClassNames, FieldNames, FieldRefNames, MethodNames, ShortfallNames, SiteNames};

    fn sample() -> NamesTable {
        let mut table = NamesTable::new(Artifact {
            hash: 0xfeed_beef,
            base: 5_000_000,
            name: "app.jar".into(),
            kind: ArtifactKind::Application,
            events: "alloc,update".parse().unwrap(),
        });
        for (index, name) in ["a/A", "a/B"].into_iter().enumerate() {
            table.push(&ClassNames {
                name: name.into(),
                super_name: "java/lang/Object".into(),
                interfaces: vec!["java/lang/Runnable".into()],
                flags: ClassFlags(index as u8),
                source_file: "A.java".into(),
                methods: vec![MethodNames { name: "run".into(), descriptor: "()V".into(), access: 9, line: 70_000 }],
                fields: vec![FieldNames { name: "x".into(), descriptor: "La/A;".into(), access: 8 }],
                sites: vec![SiteNames { method: 0, descriptor: "[[I".into(), dimensions: 2, line: 12 }],
                field_refs: vec![FieldRefNames {
                    class: "a/A".into(),
                    name: "x".into(),
                    descriptor: "La/A;".into(),
                    is_static: true,
                }],
                shortfalls: vec![ShortfallNames { method: 0, hooks: "updates".into(), why: "size".into() }],
            });
        }
        table
    }

    #[test]
    fn a_table_that_says_nothing_of_events_has_all() {
        let mut file = sample().encode();
        assert_eq!(NamesTable::decode(&file).unwrap().artifact.events, sample().artifact.events);
        file[10] = 0;
        assert_eq!(NamesTable::decode(&file).unwrap().artifact.events, EventSet::ALL);
    }

    #[test]
    fn an_impossible_size_is_refused_before_memory_is_taken_for_it() {
        let mut file = sample().encode();
        file[HEADER - 4..HEADER].copy_from_slice(&(MAX_BODY as u32).to_le_bytes());
        assert!(matches!(NamesTable::decode(&file), Err(DecodeError::Body { what: "size out of bounds", .. })));
    }

    #[test]
    fn a_table_comes_back_as_it_was() {
        let table = sample();
        let back = NamesTable::decode(&table.encode()).unwrap();
        assert_eq!(back.artifact, table.artifact);
        assert_eq!(back.classes, table.classes);
        assert_eq!(back.methods, table.methods);
        assert_eq!(back.fields, table.fields);
        assert_eq!(back.sites, table.sites);
        assert_eq!(back.field_refs, table.field_refs);
        assert_eq!(back.shortfalls, table.shortfalls);
        let method = back.method(crate::MethodId(5_000_001)).unwrap();
        assert_eq!(back.str(back.classes[method.class as usize].name), "a/B");
        assert_eq!(back.methods_of(1), 1..2);
        assert!(back.method(crate::MethodId(4_999_999)).is_none());
        assert!(back.method(crate::MethodId(5_000_002)).is_none());
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let file = sample().encode();
        for cut in 0..file.len() {
            assert!(NamesTable::decode(&file[..cut]).is_err(), "cut at {cut}");
        }
        let body = zstd::bulk::decompress(&file[HEADER..], 1 << 20).unwrap();
        for at in 0..body.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = body.clone();
                damaged[at] = value;
                // Any outcome but a panic will do.
                let _ = Body { bytes: &damaged, at: 0, strings: 0 }.table(EventSet::ALL);
            }
        }
    }
}
