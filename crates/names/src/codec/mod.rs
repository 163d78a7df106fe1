//! The binary formats of a names table.

mod body;
mod by_class;
mod whole;

use thiserror::Error;

pub use by_class::{ClassEntries, Opened, Source};

use crate::EventSet;
use crate::table::NamesTable;

/// Magic number at the start of a names table.
pub const MAGIC: [u8; 8] = *b"ETNAMES\0";
const HEADER: usize = 16;
/// Maximum length of an uncompressed table in bytes. Limits how much memory a damaged file can make the reader
/// allocate.
const MAX_BODY: usize = 1 << 30;
/// Maximum compression ratio of a table's body: real tables reach 20.
const MAX_RATIO: usize = 1 << 12;
/// Maximum total length in bytes of all uncompressed tables of a trace. Limits how much memory a damaged trace can make
/// readers allocate.
pub const MOST_UNPACKED: usize = 256 << 20;

/// Why a names table could not be decoded.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The magic number is wrong.
    #[error("not a names table: it does not start with ETNAMES")]
    Magic,
    /// Written by an unsupported version of the tool.
    #[error("names table of format version {0}, this tool reads versions 1 and 2: instrument again with this version")]
    Version(u16),
    /// The compressed body is damaged, or the file cannot be read.
    #[error("names table is damaged: {0}")]
    Compression(std::io::Error),
    /// The total length of several tables exceeds the limit.
    #[error("it claims more names than its size allows")]
    TooMuch,
    /// The body is truncated or has an impossible value.
    #[error("names table is damaged at byte {offset} of its body: {what}")]
    Body {
        /// Offset in the uncompressed body, in bytes.
        offset: usize,
        /// What was to be decoded there.
        what: &'static str,
    },
}

/// Deducts the uncompressed length of a part from what is left of the limit.
fn claim(left: &mut usize, raw: usize, stored: usize, at: usize) -> Result<(), DecodeError> {
    if raw > MAX_BODY || raw / MAX_RATIO > stored {
        return Err(DecodeError::Body { offset: at, what: "size out of bounds" });
    }
    *left = left.checked_sub(raw).ok_or(DecodeError::TooMuch)?;
    Ok(())
}

impl NamesTable {
    /// Encodes the table: in version 2, or in version 1 if it is unknown which class each entry belongs to.
    pub fn encode(&self) -> Vec<u8> {
        if self.is_whole || self.classes.is_empty() { whole::encode(self) } else { by_class::encode(self) }
    }

    /// Decodes what [`encode`](Self::encode) wrote, or a table of some of its classes from [`ClassEntries`].
    pub fn decode(file: &[u8]) -> Result<Self, DecodeError> {
        let mut left = MAX_BODY.saturating_add(file.len());
        Self::decode_within(file, &mut left)
    }

    /// Decodes one of several tables that share a memory limit: deducts this one's length, compressed and uncompressed,
    /// from `left`.
    pub fn decode_within(file: &[u8], left: &mut usize) -> Result<Self, DecodeError> {
        let header = Header::read(file)?;
        // What is not compressed inside may have been compressed as a whole by the caller.
        claim(left, file.len(), file.len(), 0)?;
        match header.version {
            whole::VERSION => whole::decode(file, header.events, header.length, left),
            _ => by_class::decode(file, &header, left),
        }
    }
}

/// The header of every table.
struct Header {
    version: u16,
    events: EventSet,
    has_index: bool,
    /// Length in bytes of what follows: the uncompressed body in version 1, the head in version 2.
    length: usize,
}

/// Flag: there is an index at the end of the file.
const HAS_INDEX: u8 = 1;

impl Header {
    fn read(file: &[u8]) -> Result<Self, DecodeError> {
        if file.len() < HEADER || file[..8] != MAGIC {
            return Err(DecodeError::Magic);
        }
        let version = u16::from_le_bytes([file[8], file[9]]);
        if ![whole::VERSION, by_class::VERSION].contains(&version) {
            return Err(DecodeError::Version(version));
        }
        Ok(Self {
            version,
            events: events_of(file[10]),
            has_index: file[11] & HAS_INDEX != 0,
            length: u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize,
        })
    }
}

/// The events in a header: those that are missing, so that 0 means all of them; stacks, which are not part of all, as they are.
fn events_byte(events: EventSet) -> u8 {
    events.missing().or(events.and(EventSet::STACKS)).bits()
}

fn events_of(byte: u8) -> EventSet {
    let found = EventSet::from_bits(byte);
    found.missing().or(found.and(EventSet::STACKS))
}

fn header(version: u16, events: EventSet, flags: u8, length: usize) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&version.to_le_bytes());
    file.push(events_byte(events));
    file.push(flags);
    file.extend_from_slice(&crate::strings::length(length).to_le_bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Artifact, ArtifactKind, ClassFlags, Field, FieldRef, Method, Shortfall, Site};
    use crate::{
        ClassId, ClassNames, FieldId, FieldNames, FieldRefId, FieldRefNames, MethodId, MethodNames, ShortfallNames,
        SiteId, SiteNames,
    };

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
    fn several_tables_have_so_much_together() {
        for is_whole in [true, false] {
            let table = NamesTable { is_whole, ..sample() };
            let file = table.encode();
            let mut left = 1 << 20;
            NamesTable::decode_within(&file, &mut left).unwrap();
            let one = (1 << 20) - left;
            assert!(one > 100, "{one}");
            let mut left = 2 * one;
            for _ in 0..2 {
                NamesTable::decode_within(&file, &mut left).unwrap();
            }
            assert_eq!(left, 0);
            let error = NamesTable::decode_within(&file, &mut left).unwrap_err().to_string();
            assert!(error.contains("more names than"), "{error}");
        }
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
        let mut file = whole::encode(&sample());
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

    /// A table of several classes, some with entries of all kinds and some with none.
    fn varied() -> NamesTable {
        let mut table = sample();
        let artifact = Artifact { events: EventSet::ALL, ..table.artifact.clone() };
        table = NamesTable::new(artifact);
        for index in 0..40u32 {
            let some = |count: u32| 0..(index * 7 + count) % 4;
            let methods = some(1).map(|at| MethodNames {
                name: format!("m{at}"),
                descriptor: "()V".into(),
                access: 9,
                line: index,
            });
            let methods: Vec<_> = methods.collect();
            let of_methods =
                |count: u32| some(count).filter(|_| !methods.is_empty()).map(|at| at % methods.len() as u32);
            table.push(&ClassNames {
                // Two versions of one class.
                name: format!("p/C{}", if index == 31 { 30 } else { index }),
                super_name: "java/lang/Object".into(),
                interfaces: some(2).map(|at| format!("p/I{at}")).collect(),
                flags: ClassFlags((index % 3) as u8),
                source_file: if index % 5 == 0 { String::new() } else { "C.java".into() },
                fields: some(3)
                    .map(|at| FieldNames { name: format!("f{at}"), descriptor: "I".into(), access: 2 })
                    .collect(),
                sites: of_methods(2)
                    .map(|method| SiteNames { method, descriptor: format!("Lp/C{index};"), dimensions: 0, line: 3 })
                    .collect(),
                field_refs: some(0)
                    .map(|at| FieldRefNames {
                        class: format!("p/C{index}"),
                        name: format!("f{at}"),
                        descriptor: "I".into(),
                        is_static: at == 0,
                    })
                    .collect(),
                shortfalls: of_methods(3)
                    .map(|method| ShortfallNames { method, hooks: "updates".into(), why: format!("size {index}") })
                    .collect(),
                methods,
            });
        }
        table
    }

    /// The class at `index` in the form in which it was pushed.
    fn class_names(table: &NamesTable, index: u32) -> ClassNames {
        let text = |handle| table.str(handle).to_owned();
        let class = &table.classes[index as usize];
        let methods = table.methods_of(index);
        let own = |method: u32| method - methods.start as u32;
        let method = |method: &Method| MethodNames {
            name: text(method.name),
            descriptor: text(method.descriptor),
            access: method.access,
            line: method.line,
        };
        let field = |field: &Field| FieldNames {
            name: text(field.name),
            descriptor: text(field.descriptor),
            access: field.access,
        };
        let site = |site: &Site| SiteNames {
            method: own(site.method),
            descriptor: text(site.descriptor),
            dimensions: site.dimensions,
            line: site.line,
        };
        let field_ref = |field: &FieldRef| FieldRefNames {
            class: text(field.class),
            name: text(field.name),
            descriptor: text(field.descriptor),
            is_static: field.is_static,
        };
        let shortfall = |short: &Shortfall| ShortfallNames {
            method: own(short.method),
            hooks: text(short.hooks),
            why: text(short.why),
        };
        ClassNames {
            name: text(class.name),
            super_name: text(class.super_name),
            interfaces: class.interfaces.iter().map(|name| text(*name)).collect(),
            flags: class.flags,
            source_file: text(class.source_file),
            methods: table.methods[methods.clone()].iter().map(method).collect(),
            fields: table.fields[table.fields_of(index)].iter().map(field).collect(),
            sites: table.sites[table.sites_of(index)].iter().map(site).collect(),
            field_refs: table.field_refs[table.field_refs_of(index)].iter().map(field_ref).collect(),
            shortfalls: table.shortfalls_of(index).iter().map(shortfall).collect(),
        }
    }

    /// Everything known about a class, including its ids.
    fn told(table: &NamesTable, index: u32) -> (Vec<u32>, ClassNames) {
        let mut ids = vec![table.class_id(index).0];
        ids.extend(table.methods_of(index).map(|at| table.method_id(at as u32).0));
        ids.extend(table.fields_of(index).map(|at| table.field_id(at as u32).0));
        ids.extend(table.sites_of(index).map(|at| table.site_id(at as u32).0));
        ids.extend(table.field_refs_of(index).map(|at| table.field_ref_id(at as u32).0));
        let mut names = class_names(table, index);
        names.shortfalls.sort_by(|a, b| (a.method, &a.why).cmp(&(b.method, &b.why)));
        (ids, names)
    }

    fn all_told(table: &NamesTable) -> Vec<(Vec<u32>, ClassNames)> {
        (0..table.classes.len() as u32).map(|index| told(table, index)).collect()
    }

    /// Checks ids in and around the artifact's range in both directions.
    fn ids_lead_back(table: &NamesTable) {
        let block = table.block();
        let mut found = [0; 5];
        for id in block.base - 2..block.base + block.size + 2 {
            let indexes = [
                table.class_index(ClassId(id)).map(|at| table.class_id(at as u32).0),
                table.method_index(MethodId(id)).map(|at| table.method_id(at as u32).0),
                table.field_index(FieldId(id)).map(|at| table.field_id(at as u32).0),
                table.site_index(SiteId(id)).map(|at| table.site_id(at as u32).0),
                table.field_ref_index(FieldRefId(id)).map(|at| table.field_ref_id(at as u32).0),
            ];
            for (found, back) in found.iter_mut().zip(indexes) {
                assert!(back.is_none_or(|back| back == id));
                *found += u32::from(back.is_some());
            }
        }
        assert_eq!(found, table.counts().0);
    }

    #[test]
    fn classes_that_are_taken_out_are_as_they_were_and_fit_together_again() {
        let whole = varied();
        let file = whole.encode();
        let back = NamesTable::decode(&file).unwrap();
        let all = all_told(&whole);
        assert_eq!(all_told(&back), all);
        ids_lead_back(&back);
        let Ok(Opened::ByClass(mut entries)) = ClassEntries::open(file.clone()) else { panic!("no classes") };
        assert_eq!((entries.artifact(), entries.block()), (&whole.artifact, whole.block()));
        assert!(entries.take(["p/Nobody"]).unwrap().is_none());
        let mut parts = Vec::new();
        for names in [&["p/C7", "p/C3"][..], &["p/C30"], &["p/C8", "p/C7"], &["p/C39", "p/C0"]] {
            let piece = entries.take(names.iter().copied()).unwrap().unwrap();
            parts.push(NamesTable::decode(&piece).unwrap());
        }
        assert_eq!(parts.iter().map(|part| part.classes.len()).collect::<Vec<_>>(), [2, 2, 1, 2]);
        parts.iter().for_each(ids_lead_back);
        assert!(entries.take(["p/C7", "p/C30"]).unwrap().is_none(), "each is handed out once");
        let mut other = sample();
        other.artifact.base = 9_000_000;
        parts.insert(2, other.clone());
        let joined = NamesTable::join(parts.clone());
        assert_eq!(joined.len(), 2);
        assert_eq!(all_told(&joined[1]), all_told(&other));
        let wanted: Vec<_> = [0, 3, 7, 8, 30, 31, 39].map(|index: usize| all[index].clone()).into();
        assert_eq!(all_told(&joined[0]), wanted);
        assert_eq!((joined[0].block(), joined[0].classes_of_artifact()), (whole.block(), 40));
        ids_lead_back(&joined[0]);
        // A table of a part can itself be encoded and decoded.
        let again = NamesTable::decode(&joined[0].encode()).unwrap();
        assert_eq!((all_told(&again), again.block()), (wanted, whole.block()));
        // Together with the rest the table is complete, and a complete table makes all others redundant.
        parts.push(NamesTable::decode(&entries.take_rest().unwrap().unwrap()).unwrap());
        assert!(entries.take_rest().unwrap().is_none());
        let joined = NamesTable::join(parts.clone());
        assert_eq!((all_told(&joined[0]), joined[0].gaps.is_none()), (all.clone(), true));
        parts.insert(1, back);
        assert_eq!(all_told(&NamesTable::join(parts)[0]), all);
    }

    #[test]
    fn what_version_1_wrote_is_read() {
        let table = varied();
        let file = whole::encode(&table);
        assert!(matches!(ClassEntries::open(file.clone()), Ok(Opened::Whole(same)) if same == file));
        let back = NamesTable::decode(&file).unwrap();
        assert_eq!((back.methods.len(), back.encode() == file), (table.methods.len(), true));
        ids_lead_back(&back);
    }

    #[test]
    fn field_references_of_no_class_come_back() {
        let mut table = NamesTable::new(sample().artifact);
        table.push_field_ref(&FieldRefNames { class: "a/A".into(), name: "x".into(), ..FieldRefNames::default() });
        let back = NamesTable::decode(&table.encode()).unwrap();
        assert_eq!(back.str(back.field_refs[0].name), "x");
    }

    #[test]
    fn a_file_of_classes_that_changes_or_lacks_bytes_is_an_error() {
        let file = varied().encode();
        for cut in 0..file.len() {
            let Ok(Opened::ByClass(mut entries)) = ClassEntries::open(file[..cut].to_vec()) else { continue };
            if let Ok(Some(piece)) = entries.take_rest() {
                let _ = NamesTable::decode(&piece);
            }
        }
        for at in 0..file.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = value;
                let _ = NamesTable::decode(&damaged);
                if let Ok(Opened::ByClass(mut entries)) = ClassEntries::open(damaged)
                    && let Ok(Some(piece)) = entries.take_rest()
                {
                    let _ = NamesTable::decode(&piece);
                }
            }
        }
    }

    #[test]
    fn classes_that_lie_within_each_other_are_not_copied_over_and_over() {
        let mut table = NamesTable::new(sample().artifact);
        (0..20).for_each(|index| table.push(&ClassNames { name: format!("C{index}"), ..ClassNames::default() }));
        let mut file = table.encode();
        let (classes, index) = (HEADER + file[12] as usize, 20 * 8);
        // Each index entry is replaced, so that it points into the classes of 47 bytes.
        let at = file.len() - index;
        file.splice(classes..at, [40; 100]);
        for (place, entry) in (classes as u32..).zip(file[classes + 100..].chunks_exact_mut(8)) {
            entry[4..].copy_from_slice(&place.to_le_bytes());
        }
        let Ok(Opened::ByClass(mut entries)) = ClassEntries::open(file) else { panic!("no classes") };
        let DecodeError::Body { what, .. } = entries.take_rest().unwrap_err() else { panic!("another error") };
        assert_eq!(what, "classes overlap");
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        for file in [varied().encode(), whole::encode(&sample())] {
            for cut in 0..file.len() {
                assert!(NamesTable::decode(&file[..cut]).is_err(), "cut at {cut}");
            }
        }
        let file = whole::encode(&sample());
        let body = zstd::bulk::decompress(&file[HEADER..], 1 << 20).unwrap();
        for at in 0..body.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = body.clone();
                damaged[at] = value;
                let mut again = file[..HEADER].to_vec();
                again.extend(zstd::bulk::compress(&damaged, 3).unwrap());
                // Any outcome is acceptable except a panic.
                let _ = NamesTable::decode(&again);
            }
        }
    }
}
