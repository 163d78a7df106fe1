//! Sizes of heaps (`HPIF`).

use crate::wire::{Malformed, Reader, Writer};

/// When a VM sends what it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Stop sending.
    #[default]
    Never,
    /// Once, immediately.
    Now,
    /// At the next garbage collection.
    NextGc,
    /// At every garbage collection.
    EveryGc,
}

impl When {
    /// All of them, by their numbers.
    pub const ALL: [Self; 4] = [Self::Never, Self::Now, Self::NextGc, Self::EveryGc];

    /// The encoded value.
    pub fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.one_of(&Self::ALL)
    }
}

/// When a VM goes through its heap and sends segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Walk {
    /// Stop sending.
    #[default]
    Never,
    /// At every collection: what it left.
    EveryGc,
    /// At once, with what the next collection would free. The specification leaves this number undefined; other VMs refuse it.
    Now,
}

impl Walk {
    /// All of them, by their numbers.
    pub const ALL: [Self; 3] = [Self::Never, Self::EveryGc, Self::Now];

    /// The encoded value.
    pub fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.one_of(&Self::ALL)
    }
}

/// Statistics of a heap. Sizes have 32 bits: larger ones are [`u32::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapInfo {
    /// Number of the heap.
    pub heap: u32,
    /// Milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The request that it answers.
    pub reason: When,
    /// Maximum size in bytes: `-Xmx`.
    pub most: u32,
    /// Current size in bytes.
    pub size: u32,
    /// Allocated bytes.
    pub used: u32,
    /// Objects allocated; 0 if that is not known.
    pub objects: u32,
}

impl HeapInfo {
    const BYTES: usize = 4 + 8 + 1 + 4 * 4;

    /// A size as the chunk can say it.
    pub fn clamped(bytes: u64) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    pub(crate) fn read_all(data: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut reader = Reader::new("an HPIF chunk", data);
        let count = reader.count(Self::BYTES)?;
        let mut heaps = Vec::with_capacity(count);
        for _ in 0..count {
            heaps.push(Self {
                heap: reader.u4()?,
                time_ms: reader.u8()?,
                reason: When::read(&mut reader)?,
                most: reader.u4()?,
                size: reader.u4()?,
                used: reader.u4()?,
                objects: reader.u4()?,
            });
        }
        reader.end()?;
        Ok(heaps)
    }

    pub(crate) fn write_all(heaps: &[Self]) -> Vec<u8> {
        let mut out = Writer::default();
        out.count(heaps.len());
        for heap in heaps {
            out.u4(heap.heap).u8(heap.time_ms).u1(heap.reason.number());
            out.u4(heap.most).u4(heap.size).u4(heap.used).u4(heap.objects);
        }
        out.finish()
    }
}
