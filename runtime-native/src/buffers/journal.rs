//! Records queued for the writer, with a copy in the buffer file, so that they survive if the program is killed before
//! they are written.
//!
//! Two areas take turns. New records go to one; the other holds those that the writer is writing, until they are in
//! the trace. Records larger than an area (the initial objects, names tables of whole artifacts) are not kept: they
//! are at risk only at the start.
#![allow(unsafe_code, reason = "shared memory")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use et_format::BlockKind;
use et_format::buffers::{
    ENTRY_HEADER, JOURNAL_BLOCK_AT, JOURNAL_FLAGS_AT, JOURNAL_HEADER, JOURNAL_USED_AT, JOURNALS, OVERFLOWED,
};
use memmap2::MmapRaw;

/// The areas of a buffer file. Its methods are called by one thread at a time.
#[derive(Debug)]
pub struct Journal {
    map: Arc<MmapRaw>,
    start: usize,
    bytes: usize,
    active: usize,
}

impl Journal {
    /// Uses areas of `bytes` each from `start` on, which must be zeroed and inside the mapping.
    pub fn new(map: Arc<MmapRaw>, start: usize, bytes: usize) -> Option<Self> {
        let fits = start.is_multiple_of(8) && bytes.is_multiple_of(8) && bytes > JOURNAL_HEADER;
        (fits && start + JOURNALS * bytes <= map.len()).then_some(Self { map, start, bytes, active: 0 })
    }

    /// Keeps a record, or notes that one is missing.
    pub fn add(&mut self, kind: BlockKind, record: &[u8]) {
        let used = self.used(self.active).load(Ordering::Relaxed) as usize;
        let at = JOURNAL_HEADER + used;
        let len = (ENTRY_HEADER + record.len()).next_multiple_of(4);
        let (Ok(record_len), Ok(end), true) =
            (u32::try_from(record.len()), u32::try_from(used + len), at + len <= self.bytes)
        else {
            self.flags(self.active).store(OVERFLOWED, Ordering::Relaxed);
            return;
        };
        let mut header = [0; ENTRY_HEADER];
        header[..4].copy_from_slice(&u32::from(kind as u8).to_le_bytes());
        header[4..].copy_from_slice(&record_len.to_le_bytes());
        // SAFETY: inside the area, as just checked; no other thread writes there, and only a reader of the file reads.
        unsafe {
            let entry = self.map.as_mut_ptr().add(self.area(self.active) + at);
            entry.copy_from_nonoverlapping(header.as_ptr(), ENTRY_HEADER);
            entry.add(ENTRY_HEADER).copy_from_nonoverlapping(record.as_ptr(), record.len());
        }
        // Published last: if the program is killed before, a reader sees no partial record.
        self.used(self.active).store(end, Ordering::Release);
    }

    /// The writer takes the queued records; `first_block` is the number of their first block.
    pub fn taken(&mut self, first_block: u64) {
        let is_empty = self.used(self.active).load(Ordering::Relaxed) == 0;
        if !is_empty || self.flags(self.active).load(Ordering::Relaxed) != 0 {
            self.first_block(self.active).store(first_block, Ordering::Release);
            self.active = (self.active + 1) % JOURNALS;
            self.clear(self.active);
        }
    }

    /// The records taken by the writer are in the trace.
    pub fn written(&mut self) {
        self.clear((self.active + 1) % JOURNALS);
    }

    fn clear(&self, area: usize) {
        self.used(area).store(0, Ordering::Release);
        self.flags(area).store(0, Ordering::Relaxed);
        self.first_block(area).store(0, Ordering::Release);
    }

    fn area(&self, area: usize) -> usize {
        self.start + area * self.bytes
    }

    fn used(&self, area: usize) -> &AtomicU32 {
        self.word(self.area(area) + JOURNAL_USED_AT)
    }

    fn flags(&self, area: usize) -> &AtomicU32 {
        self.word(self.area(area) + JOURNAL_FLAGS_AT)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, and only accessed atomically.
        unsafe { &*self.map.as_mut_ptr().add(at).cast::<AtomicU32>() }
    }

    fn first_block(&self, area: usize) -> &AtomicU64 {
        // SAFETY: as above; the offset is a multiple of 8.
        unsafe { &*self.map.as_mut_ptr().add(self.area(area) + JOURNAL_BLOCK_AT).cast::<AtomicU64>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;
    use crate::buffers::file::Place;
    use et_format::buffers::{FileHeader, journals};
    use et_format::progress::RunId;

    type Found = (u64, Vec<(u32, usize)>, bool);

    /// The view of a reader: for each area the first block, kinds and sizes of records, and whether some are missing.
    fn found(path: &std::path::Path) -> Vec<Found> {
        let bytes = std::fs::read(path).unwrap();
        let header = FileHeader::decode(&bytes).unwrap();
        journals(&bytes, &header)
            .map(|journal| {
                let entries = journal.entries.iter().map(|(kind, record)| (*kind, record.len())).collect();
                (journal.first_block, entries, journal.overflowed)
            })
            .collect()
    }

    #[test]
    fn records_are_in_the_file_until_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.buf");
        let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
        let mut journal = buffers.journal().unwrap();
        journal.add(BlockKind::Classes, &[1; 5]);
        journal.add(BlockKind::Problem, &[2; 8]);
        let two = vec![(4, 5), (9, 8)];
        assert_eq!(found(&path), [(0, two.clone(), false), (0, vec![], false)]);
        journal.taken(7);
        journal.add(BlockKind::Gcs, &[3; 48]);
        assert_eq!(found(&path), [(7, two, false), (0, vec![(6, 48)], false)]);
        journal.written();
        assert_eq!(found(&path), [(0, vec![], false), (0, vec![(6, 48)], false)]);
        journal.add(BlockKind::Names, &vec![1; 1 << 20]);
        assert_eq!(found(&path)[1], (0, vec![(6, 48)], true));
        journal.taken(9);
        journal.written();
        // Nothing is queued, so the areas are not swapped.
        journal.taken(10);
        journal.written();
        assert_eq!(found(&path), [(0, vec![], false), (0, vec![], false)]);
    }
}
