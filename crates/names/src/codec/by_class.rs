//! Version 2 of the format: classes can be extracted one by one, and the runtime copies only the classes that the
//! program loads to the trace.

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::io;

use rustc_hash::FxHashMap;
use zstd::bulk::{Compressor, Decompressor};

use super::body::{self, Body, string, varint};
use super::{DecodeError, HAS_INDEX, HEADER, Header, claim, header};
use crate::Str;
use crate::gaps::{Counts, Gaps, Kind};
use crate::strings::length;
use crate::table::{Artifact, Class, ClassFlags, Field, FieldRef, IdBlock, Method, NamesTable, Shortfall, Site};

pub(super) const VERSION: u16 = 2;
/// Length of an index entry in bytes: hash of the class's name, offset of the class in the file.
const INDEX_ENTRY: usize = 8;
/// Maximum length in bytes of the head of a class's entry, which precedes its compressed content: seven numbers.
const MOST_ENTRY_HEAD: usize = 7 * 5;

/// Encodes a table as a file.
pub(super) fn encode(table: &NamesTable) -> Vec<u8> {
    let head = head(&table.artifact, &table.sizes(), table.classes.len());
    let mut file = header(VERSION, table.artifact.events, HAS_INDEX, head.len());
    file.extend(head);
    // Level 3 of zstd cannot fail on buffers in memory.
    let mut compressor = Compressor::new(3).expect("zstd knows its levels");
    let mut index = Vec::with_capacity(table.classes.len());
    let (mut raw, mut strings) = (Vec::new(), Strings::default());
    for at in 0..length(table.classes.len()) {
        index.push((name_hash(table.str(table.classes[at as usize].name)), length(file.len())));
        raw.clear();
        content(table, at, &mut strings, &mut raw);
        let stored = compressor.compress(&raw).expect("zstd compresses any buffer");
        table.first_offsets(at).0.into_iter().for_each(|first| varint(&mut file, first));
        varint(&mut file, length(raw.len()));
        varint(&mut file, length(stored.len()));
        file.extend(stored);
    }
    index.sort_unstable();
    for (hash, place) in index {
        file.extend_from_slice(&hash.to_le_bytes());
        file.extend_from_slice(&place.to_le_bytes());
    }
    file
}

fn head(artifact: &Artifact, sizes: &Counts, classes: usize) -> Vec<u8> {
    let mut head = Vec::new();
    body::artifact(&mut head, artifact);
    sizes.0.into_iter().for_each(|size| varint(&mut head, size));
    varint(&mut head, length(classes));
    head
}

/// The strings that a class uses, numbered for the class alone; looked up by their handles in the table.
#[derive(Default)]
struct Strings {
    own: FxHashMap<Str, u32>,
    text: Vec<u8>,
    body: Vec<u8>,
}

impl Strings {
    fn put(&mut self, table: &NamesTable, handle: Str) {
        let next = length(self.own.len());
        let own = match self.own.entry(handle) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                string(&mut self.text, table.str(handle));
                *new.insert(next)
            }
        };
        varint(&mut self.body, own);
    }
}

/// Encodes a class together with the strings that it uses, so that it does not depend on other classes.
fn content(table: &NamesTable, index: u32, strings: &mut Strings, raw: &mut Vec<u8>) {
    strings.own.clear();
    strings.text.clear();
    strings.body.clear();
    let class = &table.classes[index as usize];
    let methods = table.methods_of(index);
    let first_method = length(methods.start);
    strings.put(table, class.name);
    strings.put(table, class.super_name);
    varint(&mut strings.body, length(class.interfaces.len()));
    class.interfaces.iter().for_each(|name| strings.put(table, *name));
    strings.body.push(class.flags.0);
    strings.put(table, class.source_file);
    varint(&mut strings.body, length(methods.len()));
    for method in &table.methods[methods.clone()] {
        strings.put(table, method.name);
        strings.put(table, method.descriptor);
        varint(&mut strings.body, method.access);
        varint(&mut strings.body, method.line);
    }
    let fields = &table.fields[table.fields_of(index)];
    varint(&mut strings.body, length(fields.len()));
    for field in fields {
        strings.put(table, field.name);
        strings.put(table, field.descriptor);
        varint(&mut strings.body, field.access);
    }
    let sites = &table.sites[table.sites_of(index)];
    varint(&mut strings.body, length(sites.len()));
    for site in sites {
        varint(&mut strings.body, site.method - first_method);
        strings.put(table, site.descriptor);
        strings.body.push(site.dimensions);
        varint(&mut strings.body, site.line);
    }
    let field_refs = &table.field_refs[table.field_refs_of(index)];
    varint(&mut strings.body, length(field_refs.len()));
    for field in field_refs {
        strings.put(table, field.class);
        strings.put(table, field.name);
        strings.put(table, field.descriptor);
        strings.body.push(field.is_static.into());
    }
    let shortfalls = table.shortfalls_of(index);
    varint(&mut strings.body, length(shortfalls.len()));
    for short in shortfalls {
        varint(&mut strings.body, short.method - first_method);
        strings.put(table, short.hooks);
        strings.put(table, short.why);
    }
    varint(raw, length(strings.own.len()));
    raw.extend_from_slice(&strings.text);
    raw.extend_from_slice(&strings.body);
}

thread_local! {
    /// The one that the thread used last: many tables have one class, and allocating one takes longer than decompressing a class.
    static DECOMPRESSOR: Cell<Option<Decompressor<'static>>> = const { Cell::new(None) };
}

/// Decodes a file that [`encode`] wrote, or one with a part of its classes.
pub(super) fn decode(file: &[u8], header: &Header, left: &mut usize) -> Result<NamesTable, DecodeError> {
    let head = file.get(HEADER..).and_then(|rest| rest.get(..header.length));
    let Some(head) = head else { return Err(damage(file.len(), "it ends early")) };
    let (artifact, sizes, classes) = read_head(head, header)?;
    let mut table = NamesTable::new(artifact);
    let mut gaps = Gaps::new(sizes);
    let mut rest = Body::new(file);
    rest.at = HEADER + header.length;
    let mut decompressor = DECOMPRESSOR.take().map_or_else(Decompressor::new, Ok).map_err(DecodeError::Compression)?;
    let mut next = Counts::default();
    for _ in 0..classes {
        let at = rest.at;
        let mut first = Counts::default();
        for number in &mut first.0 {
            *number = rest.varint()?;
        }
        let (raw, stored) = (rest.varint()? as usize, rest.varint()? as usize);
        claim(left, raw, stored, at)?;
        if !first.reaches(&next) {
            return Err(damage(at, "class out of bounds"));
        }
        let content = decompressor.decompress(rest.take(stored)?, raw).map_err(DecodeError::Compression)?;
        gaps.push(first, table.counts());
        let before = table.counts();
        class(&mut Body::new(&content), &mut table)?;
        let after = table.counts();
        for kind in 0..5 {
            let end = u64::from(first.0[kind]) + u64::from(after.0[kind] - before.0[kind]);
            if end > u64::from(sizes.0[kind]) {
                return Err(damage(at, "class out of bounds"));
            }
            next.0[kind] = end as u32;
        }
    }
    if header.has_index {
        rest.take(classes * INDEX_ENTRY)?;
    }
    if rest.at != file.len() {
        return Err(damage(rest.at, "more bytes than classes"));
    }
    DECOMPRESSOR.set(Some(decompressor));
    table.gaps = Some(gaps).filter(|_| table.counts() != sizes);
    Ok(table)
}

fn damage(offset: usize, what: &'static str) -> DecodeError {
    DecodeError::Body { offset, what }
}

fn read_head(head: &[u8], header: &Header) -> Result<(Artifact, Counts, usize), DecodeError> {
    let mut body = Body::new(head);
    let artifact = body.artifact(header.events)?;
    let mut sizes = Counts::default();
    for size in &mut sizes.0 {
        *size = body.varint()?;
    }
    if sizes.0.into_iter().any(|size| artifact.base.checked_add(size).is_none()) {
        return Err(damage(0, "ids out of bounds"));
    }
    let classes = body.below(sizes[Kind::Class] as usize + 1, "more classes than the artifact has")? as usize;
    Ok((artifact, sizes, classes))
}

/// Decodes a class and appends it to the table.
fn class(body: &mut Body<'_>, table: &mut NamesTable) -> Result<(), DecodeError> {
    let count = body.count()?;
    let mut strings = Vec::with_capacity(count);
    for _ in 0..count {
        strings.push(table.strings.intern(body.text()?));
    }
    let own = |body: &mut Body<'_>| {
        let handle = body.below(strings.len(), "string handle out of bounds")?;
        Ok::<Str, DecodeError>(strings[handle as usize])
    };
    let index = length(table.classes.len());
    let first = table.counts();
    let (name, super_name) = (own(body)?, own(body)?);
    let interfaces = (0..body.count()?).map(|_| own(body)).collect::<Result<_, _>>()?;
    let (flags, source_file) = (ClassFlags(body.byte()?), own(body)?);
    table.classes.push(Class {
        name,
        super_name,
        interfaces,
        flags,
        source_file,
        first_method: first[Kind::Method],
        first_field: first[Kind::Field],
        first_site: first[Kind::Site],
        first_field_ref: first[Kind::FieldRef],
    });
    let methods = body.count()?;
    for _ in 0..methods {
        let (name, descriptor) = (own(body)?, own(body)?);
        table.methods.push(Method { class: index, name, descriptor, access: body.u16()?, line: body.varint()? });
    }
    for _ in 0..body.count()? {
        let (name, descriptor) = (own(body)?, own(body)?);
        table.fields.push(Field { class: index, name, descriptor, access: body.u16()? });
    }
    for _ in 0..body.count()? {
        let method = first[Kind::Method] + body.below(methods, "site of no method")?;
        table.sites.push(Site { method, descriptor: own(body)?, dimensions: body.byte()?, line: body.varint()? });
    }
    for _ in 0..body.count()? {
        let (class, name, descriptor) = (own(body)?, own(body)?, own(body)?);
        table.field_refs.push(FieldRef { class, name, descriptor, is_static: body.byte()? != 0 });
    }
    let first_shortfall = table.shortfalls.len();
    for _ in 0..body.count()? {
        let method = first[Kind::Method] + body.below(methods, "shortfall of no method")?;
        table.shortfalls.push(Shortfall { method, hooks: own(body)?, why: own(body)? });
    }
    table.sort_shortfalls(first_shortfall);
    if body.at != body.bytes.len() { body.fail("more bytes than the class has") } else { Ok(()) }
}

/// Hash of a class name by which the index is sorted (FNV-1a, 32 bits).
fn name_hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Random access to the bytes of a table.
pub trait Source {
    /// Fills the buffer from `offset` on, as far as there are bytes, and returns their number.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Total number of bytes.
    fn size(&self) -> io::Result<u64>;
}

impl Source for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// A table of version 1 or 2.
#[derive(Debug)]
pub enum Opened<S> {
    /// Version 2: classes can be extracted one by one.
    ByClass(ClassEntries<S>),
    /// Version 1: the table can only be copied as a whole.
    Whole(S),
}

/// The classes of a table, each of which is extracted at most once.
#[derive(Debug)]
pub struct ClassEntries<S> {
    artifact: Artifact,
    sizes: Counts,
    source: S,
    /// Name hash and file offset of each class, as in the file.
    index: Vec<(u32, u32)>,
    /// Whether each class has been extracted.
    taken: Vec<bool>,
}

impl<S: Source> ClassEntries<S> {
    /// Reads the head and the index. Fails if they are damaged.
    pub fn open(source: S) -> Result<Opened<S>, DecodeError> {
        let mut start = [0; HEADER];
        let read = source.read_at(&mut start, 0).map_err(DecodeError::Compression)?;
        let header = Header::read(&start[..read])?;
        if header.version != VERSION || !header.has_index {
            return Ok(Opened::Whole(source));
        }
        let size = source.size().map_err(DecodeError::Compression)?;
        if HEADER as u64 + header.length as u64 > size {
            return Err(damage(HEADER, "it ends early"));
        }
        let head = exactly(&source, header.length, HEADER as u64)?;
        let (artifact, sizes, classes) = read_head(&head, &header)?;
        let Some(at) = size.checked_sub(classes as u64 * INDEX_ENTRY as u64) else {
            return Err(damage(HEADER, "it ends early"));
        };
        let bytes = exactly(&source, classes * INDEX_ENTRY, at)?;
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let index: Vec<_> = bytes.chunks_exact(INDEX_ENTRY).map(|entry| (word(entry), word(&entry[4..]))).collect();
        let taken = vec![false; index.len()];
        Ok(Opened::ByClass(Self { artifact, sizes, source, index, taken }))
    }

    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// The range of ids of the artifact, including classes that have been extracted.
    pub fn block(&self) -> IdBlock {
        IdBlock::of(&self.artifact, self.sizes)
    }

    /// Whether there is a class with this name (or, rarely, another whose name has the same hash).
    pub fn has(&self, name: &str) -> bool {
        self.index.binary_search_by_key(&name_hash(name), |entry| entry.0).is_ok()
    }

    /// Extracts the classes with these names (and, rarely, others with the same hashes) that have not been extracted
    /// yet, and encodes them as a table; `None` if there are none. Several classes may have the same name: versions in
    /// a multi-release jar, or jars inside a jar.
    pub fn take<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Result<Option<Vec<u8>>, DecodeError> {
        let mut places = Vec::new();
        for name in names {
            let hash = name_hash(name);
            let from = self.index.partition_point(|entry| entry.0 < hash);
            for at in from..self.index.len() {
                if self.index[at].0 != hash {
                    break;
                }
                if !std::mem::replace(&mut self.taken[at], true) {
                    places.push(self.index[at].1);
                }
            }
        }
        self.piece(places)
    }

    /// Extracts all classes that have not been extracted yet; `None` if there are none.
    pub fn take_rest(&mut self) -> Result<Option<Vec<u8>>, DecodeError> {
        let rest = self.index.iter().zip(&mut self.taken);
        let places = rest.filter_map(|(entry, taken)| (!std::mem::replace(taken, true)).then_some(entry.1)).collect();
        self.piece(places)
    }

    fn piece(&self, mut places: Vec<u32>) -> Result<Option<Vec<u8>>, DecodeError> {
        if places.is_empty() {
            return Ok(None);
        }
        places.sort_unstable();
        // A damaged index may list an offset several times.
        places.dedup();
        let head = head(&self.artifact, &self.sizes, places.len());
        let mut file = header(VERSION, self.artifact.events, 0, head.len());
        file.extend(head);
        let limit = file.len() as u64 + self.source.size().map_err(DecodeError::Compression)?;
        for place in places {
            self.entry(place.into(), &mut file)?;
            if file.len() as u64 > limit {
                return Err(damage(place as usize, "classes overlap"));
            }
        }
        Ok(Some(file))
    }

    fn entry(&self, place: u64, to: &mut Vec<u8>) -> Result<(), DecodeError> {
        // Most entries are no longer than this.
        let mut start = [0; 1024];
        let read = self.source.read_at(&mut start, place).map_err(DecodeError::Compression)?;
        let mut body = Body::new(&start[..read.min(MOST_ENTRY_HEAD)]);
        for _ in 0..6 {
            body.varint()?;
        }
        let length = body.varint()? as usize;
        let length = body.at + length;
        if length <= read {
            to.extend_from_slice(&start[..length]);
            return Ok(());
        }
        if place + length as u64 > self.source.size().map_err(DecodeError::Compression)? {
            return Err(damage(place as usize, "it ends early"));
        }
        to.extend(exactly(&self.source, length, place)?);
        Ok(())
    }
}

fn exactly(source: &impl Source, count: usize, offset: u64) -> Result<Vec<u8>, DecodeError> {
    let mut bytes = vec![0; count];
    let read = source.read_at(&mut bytes, offset).map_err(DecodeError::Compression)?;
    if read < count { Err(damage(offset as usize + read, "it ends early")) } else { Ok(bytes) }
}
