//! Writes the result of a heap walk in many blocks of limited size.
//!
//! A block of references has its own list of fields, so that it can be read by itself.

use std::env;

use et_format::{BlockKind, InitialField, InitialObject, InitialReference, InitialReferences, InitialSlot};
use rustc_hash::FxHashMap;

use crate::output::queue::Queue;

/// Maximum size of a block in bytes: readers hold one in memory.
const BYTES: usize = 32 << 20;
/// For tests: another maximum, so that a small heap takes several blocks.
const BYTES_VARIABLE: &str = "ET_TEST_INITIAL_BLOCK";

/// Maximum size of a block in bytes.
pub fn bytes() -> usize {
    env::var(BYTES_VARIABLE).ok().and_then(|bytes| bytes.parse().ok()).map_or(BYTES, |bytes: usize| bytes.min(BYTES))
}

/// Writes all objects.
pub fn write_objects(queue: &Queue, objects: &[InitialObject], bytes: usize) {
    for part in objects.chunks((bytes / InitialObject::BYTES).max(1)) {
        let mut raw = Vec::with_capacity(part.len() * InitialObject::BYTES);
        part.iter().for_each(|object| object.encode(&mut raw));
        queue.large_block(BlockKind::InitialObjects, raw);
    }
}

/// Writes references one by one.
pub struct References<'a> {
    queue: &'a Queue,
    bytes: usize,
    block: InitialReferences,
    /// Size of the block in bytes.
    size: usize,
    /// Index of a field in this block, by its index in the list of all fields.
    places: FxHashMap<u32, u32>,
}

impl<'a> References<'a> {
    /// Blocks have at most that many bytes, unless a single reference takes more.
    pub fn new(queue: &'a Queue, bytes: usize) -> Self {
        Self { queue, bytes, block: InitialReferences::default(), size: 0, places: FxHashMap::default() }
    }

    /// Adds a reference. The field of its slot, if it is one, is an index into `fields`.
    pub fn push(&mut self, fields: &[InitialField], reference: InitialReference) {
        if self.size >= self.bytes {
            self.write();
        }
        let slot = match reference.slot {
            InitialSlot::Field(field) => self.place(fields, field).map(InitialSlot::Field),
            InitialSlot::Static(field) => self.place(fields, field).map(InitialSlot::Static),
            InitialSlot::Element(index) => Some(InitialSlot::Element(index)),
        };
        if let Some(slot) = slot {
            self.size += InitialReferences::REFERENCE_BYTES;
            self.block.references.push(InitialReference { slot, ..reference });
        }
    }

    fn place(&mut self, fields: &[InitialField], field: u32) -> Option<u32> {
        if let Some(&place) = self.places.get(&field) {
            return Some(place);
        }
        let named = fields.get(field as usize)?.clone();
        let place = u32::try_from(self.block.fields.len()).ok()?;
        self.size += named.bytes();
        self.block.fields.push(named);
        self.places.insert(field, place);
        Some(place)
    }

    /// Writes the last block.
    pub fn finish(mut self) {
        self.write();
    }

    fn write(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.places.clear();
        let mut raw = Vec::with_capacity(std::mem::take(&mut self.size) + 8);
        block.encode(&mut raw);
        if !block.references.is_empty() {
            self.queue.large_block(BlockKind::InitialReferences, raw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::event::ObjectHash;

    #[test]
    fn objects_fill_blocks_of_bounded_size() {
        let queue = Queue::default();
        let objects: Vec<InitialObject> =
            (1..=10).map(|id| InitialObject { object: ObjectHash(id), ..InitialObject::default() }).collect();
        write_objects(&queue, &objects, 4 * InitialObject::BYTES + 3);
        let blocks = queue.take_blocks();
        assert!(blocks.iter().all(|(kind, _)| *kind == BlockKind::InitialObjects));
        assert_eq!(blocks.iter().map(|(_, raw)| raw.len()).collect::<Vec<_>>(), [64, 64, 32]);
        let read: Vec<_> = blocks.iter().flat_map(|(_, raw)| InitialObject::decode_block(raw).unwrap()).collect();
        assert_eq!(read, objects);
    }

    #[test]
    fn each_block_of_references_names_its_own_fields() {
        let field = |name: &str| InitialField { class: ObjectHash(7), name: name.into(), descriptor: "LA;".into() };
        let fields = ["a", "b", "c"].map(field);
        let reference = |n: u32, slot| InitialReference { origin: ObjectHash(n), target: ObjectHash(n + 1), slot };
        let all: Vec<InitialReference> = (0..30)
            .map(|n| match n % 5 {
                0 => reference(n, InitialSlot::Element(n)),
                1 => reference(0, InitialSlot::Static(2)),
                _ => reference(n, InitialSlot::Field(n / 5 % 2)),
            })
            .collect();
        let queue = Queue::default();
        let limit = 120;
        let mut references = References::new(&queue, limit);
        all.iter().for_each(|reference| references.push(&fields, *reference));
        references.finish();
        let blocks = queue.take_blocks();
        assert!(blocks.len() > 3, "{}", blocks.len());
        // The last reference may add its field.
        let most = limit + InitialReferences::REFERENCE_BYTES + fields[0].bytes() + 8;
        assert!(blocks.iter().all(|(kind, raw)| *kind == BlockKind::InitialReferences && raw.len() <= most));
        let mut read = Vec::new();
        for (_, raw) in &blocks {
            let block = InitialReferences::decode_block(raw).unwrap();
            let meant =
                |place: u32| fields.iter().position(|field| *field == block.fields[place as usize]).unwrap() as u32;
            read.extend(block.references.iter().map(|reference| InitialReference {
                slot: match reference.slot {
                    InitialSlot::Field(place) => InitialSlot::Field(meant(place)),
                    InitialSlot::Static(place) => InitialSlot::Static(meant(place)),
                    element => element,
                },
                ..*reference
            }));
        }
        assert_eq!(read, all);
    }

    #[test]
    fn nothing_leaves_no_block() {
        let queue = Queue::default();
        write_objects(&queue, &[], 100);
        References::new(&queue, 100).finish();
        assert_eq!(queue.take_blocks(), []);
    }
}
