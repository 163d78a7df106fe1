//! Appends blocks: records are packed here, events are packed already.

use et_format::event::Ticket;
use et_format::{BLOCK_HEADER, BlockHeader, BlockKind, Codec, GcRecord, MAX_BLOCK, NewBlock, Problem, Survivors};

use super::{Host, Writer};
use crate::base::{cpu_time, pages};
use crate::output::line::{Done, Packed};
use crate::output::queue::Work;
use crate::output::sink::SinkError;

/// Codec for records, of which there are few blocks.
const OTHER_CODEC: Codec = Codec::Zstd;
/// Maximum memory kept for output blocks in bytes. The names of a JDK take more, once.
const KEPT: usize = 1 << 20;

impl<H: Host> Writer<'_, H> {
    /// Packs and writes queued records.
    pub(super) fn write(&mut self, work: Work<'_>) -> Result<(), SinkError> {
        for (kind, raw) in work.blocks {
            self.pack(kind, &raw);
        }
        for table in work.names {
            self.pack(BlockKind::Names, &table);
        }
        let records = [
            (BlockKind::Classes, work.classes),
            (BlockKind::DynamicClasses, work.dynamic_classes),
            (BlockKind::Threads, work.threads),
            (BlockKind::Monitors, work.monitors),
            (BlockKind::Stacks, work.stacks),
        ];
        for (kind, raw) in records {
            if !raw.is_empty() {
                self.pack(kind, &raw);
            }
        }
        if !work.gcs.is_empty() {
            let heap = self.host.heap_use();
            let mut raw = Vec::new();
            for gc in work.gcs {
                GcRecord { heap_used: heap.used, heap_committed: heap.committed, ..gc }.encode(&mut raw);
            }
            self.pack(BlockKind::Gcs, &raw);
        }
        self.flush()
    }

    /// Appends blocks of events, and releases their chunks.
    pub(super) fn append_all(&mut self, packed: Vec<Done>) {
        if packed.is_empty() {
            return;
        }
        let start = cpu_time::of_this_thread();
        for Done { packed, chunk } in packed {
            self.append(packed);
            if let Some(chunk) = chunk {
                self.buffers.release(chunk);
            }
        }
        if let (Some(start), Some(end)) = (start, cpu_time::of_this_thread()) {
            self.append += end.saturating_sub(start);
        }
    }

    fn append(&mut self, packed: Packed) {
        let Packed { mut block, events, event_bytes, problem } = packed;
        if event_bytes == 0 {
            return;
        }
        if self.stopped.is_none() {
            BlockHeader::set_sequence(&mut block, self.blocks);
            // Checked after the chunk was read: a later loss does not affect it.
            let is_whole = self.buffers.are_whole();
            // Blocks with earlier numbers go first.
            let flushed = if is_whole { self.flush() } else { Err(SinkError::Buffers(self.buffers.name())) };
            let written = flushed.and_then(|()| match &mut self.sink {
                Some(sink) if !block.is_empty() => sink.write(&block),
                _ => Ok(()),
            });
            match written {
                Ok(()) => {
                    self.blocks += u64::from(!block.is_empty());
                    self.event_bytes += event_bytes;
                    self.events += events;
                }
                // Before the chunk is counted: it was still in transit when writing failed.
                Err(error) => self.fail(&error),
            }
        }
        if let Some(what) = problem {
            self.pack(BlockKind::Problem, &et_format::encode_json(&Problem { what, count: 1 }));
            if let Err(error) = self.flush() {
                self.fail(&error);
            }
        }
        if let Some(stopped) = &mut self.stopped {
            stopped.lost_chunks += 1;
            stopped.lost_events += events;
        }
    }

    /// Packs a block and appends it to the output. A block that is too large is left out, with a note in the trace.
    fn add(&mut self, block: NewBlock, raw: &[u8]) {
        match self.packer.write(&mut self.packed, block, raw) {
            Ok(()) => self.blocks += 1,
            Err(error) => {
                let problem = Problem { what: format!("{:?} left out: {error}", block.kind), count: 1 };
                self.pack(BlockKind::Problem, &et_format::encode_json(&problem));
            }
        }
    }

    pub(super) fn pack(&mut self, kind: BlockKind, raw: &[u8]) {
        if self.stopped.is_none() {
            // Names tables are compressed already.
            let codec = if kind == BlockKind::Names { Codec::Stored } else { OTHER_CODEC };
            if (KEPT..=MAX_BLOCK).contains(&raw.len()) {
                self.packed.reserve(raw.len() + BLOCK_HEADER);
                pages::populate(self.packed.spare_capacity_mut());
            }
            let first_ticket = if kind == BlockKind::Survivors { Survivors::ticket(raw) } else { Ticket(0) };
            let sequence = self.blocks;
            self.add(NewBlock { kind, codec, thread: 0, sequence, first_ticket, wall: None }, raw);
            if self.packed.len() > KEPT
                && let Err(error) = self.flush()
            {
                self.fail(&error);
            }
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), SinkError> {
        let result = match &mut self.sink {
            Some(sink) if !self.packed.is_empty() && self.stopped.is_none() => sink.write(&self.packed),
            _ => Ok(()),
        };
        self.packed.clear();
        self.packed.shrink_to(KEPT);
        result
    }
}
