//! Sizes that have no room in `HPIF` (`ETHI`), and what fills the heap (`ETHG`).

use crate::wire::{Malformed, Reader, Writer};

/// A part of the heap, or all of it, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// As the VM calls it: `G1 Eden Space`; `heap` for all of it.
    pub name: String,
    /// Bytes in use.
    pub used: u64,
    /// Current size in bytes.
    pub size: u64,
    /// Maximum size in bytes; 0 if unknown.
    pub most: u64,
}

/// Sizes at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Collections that stopped the program so far.
    pub collections: u64,
    /// How long they did, together.
    pub pauses_ns: u64,
    /// The heap first, then its parts.
    pub parts: Vec<Memory>,
}

impl MemoryInfo {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an ETHI chunk", data);
        let (time_ms, collections, pauses_ns) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let count = reader.count(4 + 3 * 8)?;
        let mut parts = Vec::with_capacity(count);
        for _ in 0..count {
            parts.push(Memory { name: reader.text()?, used: reader.u8()?, size: reader.u8()?, most: reader.u8()? });
        }
        reader.end()?;
        Ok(Self { time_ms, collections, pauses_ns, parts })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(self.time_ms).u8(self.collections).u8(self.pauses_ns).count(self.parts.len());
        for part in &self.parts {
            out.text(&part.name).u8(part.used).u8(part.size).u8(part.most);
        }
        out.finish()
    }
}

/// The objects of a class in the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramRow {
    /// For `ETCL` and `ETIN`; 0 if the VM has no ids.
    pub class: u64,
    /// With dots; arrays as `byte[]`.
    pub name: String,
    /// Number of objects.
    pub objects: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

/// Objects by class, most bytes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// All objects, of rows that are left out as well.
    pub objects: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Classes with the most bytes.
    pub rows: Vec<HistogramRow>,
}

impl Histogram {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an ETHG chunk", data);
        let (objects, bytes) = (reader.u8()?, reader.u8()?);
        let count = reader.count(8 + 4 + 8 + 8)?;
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            rows.push(HistogramRow {
                class: reader.u8()?,
                name: reader.text()?,
                objects: reader.u8()?,
                bytes: reader.u8()?,
            });
        }
        reader.end()?;
        Ok(Self { objects, bytes, rows })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(self.objects).u8(self.bytes).count(self.rows.len());
        for row in &self.rows {
            out.u8(row.class).text(&row.name).u8(row.objects).u8(row.bytes);
        }
        out.finish()
    }
}
