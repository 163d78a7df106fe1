//! Names tables.

use et_names::{ClassEntries, NamesTable, Opened};
use et_reader::names::Names;
use et_reader::testing::TraceBuilder;
use et_reader::text::{Dialect, TextNames, write_names};
use et_reader::types::Types;
use et_reader::{Trace, TraceFile};

use crate::{Plain, Random, Target};

pub const TARGET: Target = Target {
    name: "names",
    inputs: "names",
    longest: 8192,
    compares: false,
    memory_ratio: 1 << 18,
    run,
    mutate: Some(mutate),
    mend: None,
};

/// Magic, version, flags, size of the body.
const HEADER: usize = 16;
/// Offset of the version.
const VERSION: usize = 8;

fn run(data: &[u8]) {
    by_class(data);
    let Ok(table) = NamesTable::decode(data) else { return };
    let again = NamesTable::decode(&table.encode()).unwrap_or_else(|error| panic!("what was written: {error}"));
    assert!(table.encode() == again.encode(), "reading gives what was written");
    for index in 0..table.classes.len() as u32 {
        assert!(table.class(table.class_id(index)).is_some());
        assert!(table.methods_of(index).end <= table.methods.len());
        assert!(table.fields_of(index).end <= table.fields.len());
    }
    lookup(&table);
    file(&table);
}

/// Two artifacts, one after the other, that refer to each other's classes.
fn lookup(table: &NamesTable) {
    let mut other = table.clone();
    other.artifact.hash = !other.artifact.hash;
    other.artifact.base = table.artifact.base.wrapping_add(table.block().size);
    let mut types = Types::default();
    let names = Names::new(vec![table.clone(), other], &mut types);
    for table in names.tables() {
        for index in 0..table.field_refs.len() as u32 {
            let _ = names.resolve_field_ref(table.field_ref_id(index), &types);
        }
        for index in 0..table.sites.len() as u32 {
            let _ = names.site_text(table.site_id(index));
        }
    }
}

/// The names file has each class under its name.
fn file(table: &NamesTable) {
    let bytes = TraceBuilder::new().names(table).finish();
    let trace = TraceFile::from_bytes(bytes, None).and_then(Trace::from_file);
    let trace = trace.unwrap_or_else(|error| panic!("a trace with this table: {error}"));
    let mut text = Vec::new();
    write_names(&trace, Dialect::Et, None, &[], &mut text).expect("a vector takes everything");
    let names = TextNames::read(text.as_slice()).expect("a slice can be read");
    let names = names.unwrap_or_else(|line| panic!("line {line} of {}", String::from_utf8_lossy(&text)));
    for (index, class) in (0..).zip(&table.classes) {
        let name = table.str(class.name);
        let written = names.descriptor(u64::from(table.class_id(index).0));
        assert_eq!(written, Some(format!("L{name};")));
    }
}

/// Classes are taken out one by one, as the runtime does it, and put together again.
fn by_class(data: &[u8]) {
    let Ok(Opened::ByClass(mut entries)) = ClassEntries::open(data.to_vec()) else { return };
    let block = entries.block();
    let whole = NamesTable::decode(data);
    let mut parts = Vec::new();
    let mut add = |piece: Option<Vec<u8>>| parts.extend(piece.and_then(|piece| NamesTable::decode(&piece).ok()));
    if let Ok(table) = &whole {
        for class in table.classes.iter().step_by(2) {
            add(entries.take([table.str(class.name)]).ok().flatten());
        }
    }
    add(entries.take_rest().ok().flatten());
    assert!(entries.take_rest().is_ok_and(|rest| rest.is_none()), "each is handed out once");
    for joined in NamesTable::join(parts) {
        assert!(joined.block() == block);
        let again =
            NamesTable::decode(&joined.encode()).unwrap_or_else(|error| panic!("classes put together: {error}"));
        assert!(again.classes.len() == joined.classes.len());
        for index in 0..joined.classes.len() as u32 {
            let id = joined.class_id(index);
            assert!(joined.class_index(id) == Some(index as usize), "ids lead back");
            assert!(again.class_id(index) == id);
        }
    }
}

/// Changes what is compressed, and gets lengths right.
pub(crate) fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    match data.get(VERSION)? {
        1 => mutate_whole(data, plain),
        _ => File::read(data)?.mutate(random, plain),
    }
}

fn mutate_whole(data: &[u8], plain: Plain<'_>) -> Option<Vec<u8>> {
    let size = u32::from_le_bytes(data.get(HEADER - 4..HEADER)?.try_into().ok()?) as usize;
    let mut body = zstd::bulk::decompress(&data[HEADER..], size.min(1 << 20)).ok()?;
    plain(&mut body);
    let mut out = data[..HEADER - 4].to_vec();
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend(zstd::bulk::compress(&body, 3).ok()?);
    Some(out)
}

/// The parts of a table whose classes can be extracted one by one.
struct File {
    header: Vec<u8>,
    /// Without the number of classes at its end.
    head: Vec<u8>,
    classes: Vec<Class>,
    index: Vec<(u32, Place)>,
}

#[derive(Clone)]
struct Class {
    /// The first of its ids of each kind.
    first: [u32; 5],
    content: Vec<u8>,
}

/// Where an entry of the index points.
#[derive(Clone, Copy)]
enum Place {
    Class(usize),
    /// An offset that is not the start of a class.
    Elsewhere(u32),
}

impl File {
    fn read(data: &[u8]) -> Option<File> {
        let header = data.get(..HEADER)?.to_vec();
        let length = u32::from_le_bytes(header[HEADER - 4..].try_into().ok()?) as usize;
        let mut head = data.get(HEADER..)?.get(..length)?.to_vec();
        head.pop().filter(|last| last & 0x80 == 0)?;
        while head.pop_if(|byte| *byte & 0x80 != 0).is_some() {}
        let mut count = &data[HEADER + head.len()..HEADER + length];
        let count = varint(&mut count)?;
        let (mut classes, mut starts) = (Vec::new(), Vec::new());
        let mut rest = &data[HEADER + length..];
        for _ in 0..count {
            starts.push((data.len() - rest.len()) as u32);
            let mut first = [0; 5];
            for number in &mut first {
                *number = varint(&mut rest)?;
            }
            let (raw, stored) = (varint(&mut rest)? as usize, varint(&mut rest)? as usize);
            let content = zstd::bulk::decompress(rest.get(..stored)?, raw.min(1 << 20)).ok()?;
            rest = &rest[stored..];
            classes.push(Class { first, content });
        }
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let place = |at: u32| starts.binary_search(&at).map_or(Place::Elsewhere(at), Place::Class);
        let index = rest.chunks_exact(8).map(|entry| (word(entry), place(word(&entry[4..])))).collect();
        Some(File { header, head, classes, index })
    }

    fn write(&self) -> Option<Vec<u8>> {
        let mut head = self.head.clone();
        put(&mut head, self.classes.len() as u32);
        let mut file = self.header[..HEADER - 4].to_vec();
        file.extend_from_slice(&(head.len() as u32).to_le_bytes());
        file.extend(head);
        let mut starts = Vec::new();
        for class in &self.classes {
            starts.push(file.len() as u32);
            let stored = zstd::bulk::compress(&class.content, 3).ok()?;
            class.first.into_iter().for_each(|number| put(&mut file, number));
            put(&mut file, class.content.len() as u32);
            put(&mut file, stored.len() as u32);
            file.extend(stored);
        }
        for (hash, place) in &self.index {
            let place = match *place {
                Place::Class(at) => starts.get(at).copied().unwrap_or(0),
                Place::Elsewhere(place) => place,
            };
            file.extend_from_slice(&hash.to_le_bytes());
            file.extend_from_slice(&place.to_le_bytes());
        }
        Some(file)
    }

    fn move_places(&mut self, to: impl Fn(usize) -> usize) {
        for (_, place) in &mut self.index {
            if let Place::Class(class) = place {
                *class = to(*class);
            }
        }
    }

    fn mutate(mut self, random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
        let at = random.below(self.classes.len());
        match random.below(10) {
            0 => plain(&mut self.head),
            1 => {
                let other = random.below(self.classes.len());
                if self.classes.len() > 1 {
                    self.classes.swap(at, other);
                }
            }
            2 if !self.classes.is_empty() => {
                self.classes.remove(at);
                let keeps = random.one_in(2);
                self.index.retain(|(_, place)| keeps || !matches!(place, Place::Class(class) if *class == at));
                self.move_places(|class| if class > at { class - 1 } else { class });
            }
            3 => {
                let class = self.classes.get(at)?.clone();
                let to = random.below(self.classes.len() + 1);
                self.classes.insert(to, class);
                self.move_places(|class| if class >= to { class + 1 } else { class });
                let (entry, (hash, _)) =
                    (0..).zip(&self.index).find(|(_, (_, place))| !matches!(place, Place::Elsewhere(_)))?;
                let hash = *hash;
                self.index.insert(entry, (hash, Place::Class(to)));
            }
            4 => {
                let number = random.below(5);
                let class = self.classes.get_mut(at)?;
                class.first[number] = class.first[number].wrapping_add_signed(random.below(9) as i32 - 4);
            }
            5 => {
                let entry = random.below(self.index.len());
                let target =
                    if random.one_in(2) { Place::Class(at) } else { Place::Elsewhere(random.number() as u32 % 4096) };
                self.index.get_mut(entry)?.1 = target;
            }
            _ => plain(&mut self.classes.get_mut(at)?.content),
        }
        self.write()
    }
}

fn varint(from: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..32).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        value |= u32::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put(to: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}
