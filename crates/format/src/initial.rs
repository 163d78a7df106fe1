//! Objects and references that existed when tracing began.

use super::FormatError;
use super::fields::{Fields, put_len, put_string, put_u32};
use crate::event::ObjectHash;

/// An object that existed when tracing began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialObject {
    pub object: ObjectHash,
    pub class: ObjectHash,
    /// Size in bytes, or [`LARGEST`](Self::LARGEST) for an array that is at least that large.
    pub size: u32,
    /// Length of an array, or -1 if it is not an array.
    pub length: i32,
}

impl InitialObject {
    /// Largest value of `size`, which stands for that size and everything above: the length of the array says more.
    pub const LARGEST: u32 = u32::MAX;
    /// Length of a record in bytes.
    pub const BYTES: usize = 16;

    /// Appends the record to an `InitialObjects` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in [self.object.0, self.class.0, self.size, self.length as u32] {
            put_u32(out, value);
        }
    }

    /// Decodes all records of an `InitialObjects` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::with_capacity(raw.len() / Self::BYTES);
        while !fields.done() {
            records.push(Self {
                object: fields.object()?,
                class: fields.object()?,
                size: fields.u32()?,
                length: fields.u32()? as i32,
            });
        }
        Ok(records)
    }
}

/// A field in the field list of an `InitialReferences` block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialField {
    /// Mirror of the declaring class.
    pub class: ObjectHash,
    pub name: String,
    pub descriptor: String,
}

impl InitialField {
    /// Length in bytes of its entry in the list.
    pub fn bytes(&self) -> usize {
        12 + self.name.len() + self.descriptor.len()
    }
}

/// Slot of an initial reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSlot {
    /// Instance field of the origin; index into the block's field list.
    Field(u32),
    /// Static field; index into the block's field list.
    Static(u32),
    /// Array element; index into the array.
    Element(u32),
}

/// A reference that existed when tracing began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialReference {
    /// Object that holds the reference; null for a static field.
    pub origin: ObjectHash,
    pub target: ObjectHash,
    pub slot: InitialSlot,
}

/// Content of an `InitialReferences` block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialReferences {
    pub fields: Vec<InitialField>,
    pub references: Vec<InitialReference>,
}

impl InitialReferences {
    /// Length of an encoded reference in bytes.
    pub const REFERENCE_BYTES: usize = 13;

    /// Encodes the block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_len(out, self.fields.len());
        for field in &self.fields {
            put_u32(out, field.class.0);
            put_string(out, &field.name);
            put_string(out, &field.descriptor);
        }
        put_len(out, self.references.len());
        for reference in &self.references {
            put_u32(out, reference.origin.0);
            put_u32(out, reference.target.0);
            let (kind, index) = match reference.slot {
                InitialSlot::Field(index) => (1, index),
                InitialSlot::Static(index) => (2, index),
                InitialSlot::Element(index) => (3, index),
            };
            out.push(kind);
            put_u32(out, index);
        }
    }

    /// Decodes an `InitialReferences` block.
    pub fn decode_block(raw: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new(raw);
        let count = fields.count(12)?;
        let mut block = Self::default();
        for _ in 0..count {
            block.fields.push(InitialField {
                class: fields.object()?,
                name: fields.string()?,
                descriptor: fields.string()?,
            });
        }
        let count = fields.count(Self::REFERENCE_BYTES)?;
        block.references.reserve(count);
        for _ in 0..count {
            let (origin, target) = (fields.object()?, fields.object()?);
            let (kind, index) = (fields.u8()?, fields.u32()?);
            let slot = match kind {
                1 | 2 if index as usize >= block.fields.len() => return fields.fail("field index out of bounds"),
                1 => InitialSlot::Field(index),
                2 => InitialSlot::Static(index),
                3 => InitialSlot::Element(index),
                _ => return fields.fail("kind of an initial reference"),
            };
            block.references.push(InitialReference { origin, target, slot });
        }
        if fields.done() { Ok(block) } else { fields.fail("bytes after the last reference") }
    }
}
