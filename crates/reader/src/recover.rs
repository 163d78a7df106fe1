//! Makes a complete trace from a cut-off one: its blocks, the content of the buffer file, and an end.

use std::io::{self, Write};

use et_format::event::{self, Event, Ticket};
use et_format::progress::OVERFLOWS;
use et_format::{BlockHeader, BlockKind, BlockPacker, Codec, End, NewBlock, Problem, Wall, encode_json, file_header};

use crate::file::{RECOVERED, TraceFile};
use crate::watch::Unit;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Number of blocks copied from the trace.
    pub blocks: u64,
    /// Number of chunks from the buffer file.
    pub chunks: u64,
}

/// Writes the complete trace. The message about the truncation becomes a problem in the new trace, so that it is not
/// mistaken for a run that ended normally.
pub fn recover(file: &TraceFile, out: impl Write) -> io::Result<Recovered> {
    let mut writer = Writer { out, sequence: 0, event_bytes: 0, last: Ticket(0), packer: BlockPacker::default() };
    writer.out.write_all(&file_header(file.run()))?;
    let mut recovered = Recovered::default();
    file.watcher().begin("writing", Unit::Bytes, file.size());
    for block in file.blocks() {
        // Its content goes to the end block and the problems.
        if block.header.kind != BlockKind::Progress {
            writer.copy(block.header, file.stored(block))?;
            file.watcher().add(block.header.stored_len.into());
            recovered.blocks += 1;
        }
    }
    for (kind, record) in file.records() {
        writer.block(*kind, record)?;
    }
    let mut events = Vec::new();
    for thread in file.threads() {
        for piece in thread.chunks() {
            // A chunk is in mapped memory: loading cannot fail.
            if file.load_events(thread, piece, &mut events).is_ok() {
                writer.events(thread.thread, file.wall(thread, piece), &events)?;
                recovered.chunks += 1;
            }
        }
    }
    if let Some(cut) = file.cut_off() {
        writer.json(BlockKind::Problem, &Problem { what: format!("recovered: {cut}"), count: 1 })?;
    }
    let last = file.last_known().cloned().unwrap_or_default();
    if last.overflows > 0 {
        writer.json(BlockKind::Problem, &Problem { what: OVERFLOWS.to_owned(), count: last.overflows })?;
    }
    let end = End {
        reason: RECOVERED.to_owned(),
        end_ticket: last.ticket.max(writer.last),
        event_bytes: writer.event_bytes,
        blocks: writer.sequence + 1,
        lost_events: file.lost_events(),
        seconds: last.seconds,
        events: None,
        discarded_bytes: None,
        writer_cpu_seconds: None,
        packing: None,
        dynamic: last.dynamic,
    };
    writer.json(BlockKind::End, &end)?;
    writer.out.flush()?;
    Ok(recovered)
}

struct Writer<W> {
    out: W,
    sequence: u64,
    event_bytes: u64,
    last: Ticket,
    packer: BlockPacker,
}

impl<W: Write> Writer<W> {
    /// Copies a block with a new sequence number.
    fn copy(&mut self, header: BlockHeader, stored: &[u8]) -> io::Result<()> {
        if header.kind == BlockKind::Events {
            self.event_bytes += u64::from(header.raw_len);
            self.last = self.last.max(header.first_ticket);
        }
        self.out.write_all(&BlockHeader { sequence: self.sequence, ..header }.encode())?;
        self.sequence += 1;
        self.out.write_all(stored)
    }

    fn events(&mut self, thread: u32, wall: Option<Wall>, events: &[u8]) -> io::Result<()> {
        let first_ticket = match event::decode(events) {
            Ok(Some((Event::Ticket(first), _))) => first,
            _ => Ticket(0),
        };
        self.event_bytes += events.len() as u64;
        self.last = self.last.max(first_ticket);
        let block = NewBlock { thread, first_ticket, wall, ..self.next(BlockKind::Events) };
        self.write(block, events)
    }

    fn json(&mut self, kind: BlockKind, value: &impl serde::Serialize) -> io::Result<()> {
        self.block(kind, &encode_json(value))
    }

    fn block(&mut self, kind: BlockKind, raw: &[u8]) -> io::Result<()> {
        self.write(self.next(kind), raw)
    }

    fn next(&self, kind: BlockKind) -> NewBlock {
        let codec = Codec::Packed;
        NewBlock { kind, codec, thread: 0, sequence: self.sequence, first_ticket: Ticket(0), wall: None }
    }

    fn write(&mut self, block: NewBlock, raw: &[u8]) -> io::Result<()> {
        let mut out = Vec::new();
        self.packer.write(&mut out, block, raw).map_err(io::Error::other)?;
        self.sequence += 1;
        self.out.write_all(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TraceBuilder;
    use et_format::progress::{Progress, RunId};
    use et_format::{Nanos, buffers};
    use et_names::MethodId;

    #[test]
    fn the_whole_trace_has_the_blocks_the_chunks_and_an_end_that_tells() {
        let run = RunId::random();
        let mut builder = TraceBuilder::of_run(run);
        let progress =
            Progress { seconds: 2.5, ticket: Ticket(9), lost_events: 4, overflows: 3, ..Progress::default() };
        builder.progress(&progress).events(1, 5, &[Event::Entry { method: MethodId(1) }]);
        let header =
            buffers::FileHeader { chunk_size: 128, chunk_count: 1, pid: 1, ticket: Ticket(9), run, chunks_at: 4096 };
        let mut buf = header.encode().to_vec();
        buf.resize(buffers::JOURNALS_AT, 0);
        let state = buffers::STATE_OWNED;
        let wall = Some(Wall { begin: Nanos(77), end: None });
        buf.extend(buffers::ChunkHeader { state, thread: 1, sequence: 1, wall }.encode());
        event::encode(&Event::Ticket(Ticket(9)), &mut buf);
        event::encode(&Event::Exit { method: MethodId(1) }, &mut buf);
        buf.resize(buffers::JOURNALS_AT + 128, 0);
        let mut cut = builder.without_end();
        cut.extend_from_slice(b"ETBK\x03 half a block");
        let cut = TraceFile::from_bytes(cut, Some(buf)).unwrap();

        let mut whole = Vec::new();
        assert_eq!(recover(&cut, &mut whole).unwrap(), Recovered { blocks: 2, chunks: 1 });
        let whole = TraceFile::from_bytes(whole, None).unwrap();
        assert_eq!(whole.cut_off(), None);
        assert_eq!((whole.run(), whole.threads()[0].len()), (run, 2));
        assert!(whole.blocks().iter().enumerate().all(|(at, block)| block.header.sequence == at as u64));
        let end = whole.end().unwrap();
        assert_eq!((end.reason.as_str(), end.end_ticket, end.lost_events, end.seconds), (RECOVERED, Ticket(9), 4, 2.5));
        assert_eq!(end.blocks, whole.blocks().len() as u64);
        let problems = whole.problems().unwrap();
        assert!(problems[0].what.contains("cut off after 3 blocks"), "{problems:?}");
        assert_eq!((problems[1].what.as_str(), problems[1].count), (OVERFLOWS, 3));
        let load = |file: &TraceFile, piece| {
            let mut events = Vec::new();
            file.load_events(&file.threads()[0], piece, &mut events).map(|()| events)
        };
        for piece in 0..2 {
            assert_eq!(load(&whole, piece), load(&cut, piece));
            let read = |file: &TraceFile| file.wall(&file.threads()[0], piece);
            assert_eq!((read(&whole), read(&cut)), ([None, wall][piece], [None, wall][piece]));
        }
    }
}
