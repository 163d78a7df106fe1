//! Reading of complete and cut-off traces, and of buffer files.

use et_format::Nanos;
use et_format::event::{self, Event, ObjectHash, encode};
use et_format::progress::Stopped;
use et_names::MethodId;

use super::*;
use crate::testing::TraceBuilder;

fn sample() -> Vec<u8> {
    let mut builder = TraceBuilder::new();
    builder.events(1, 5, &[Event::Entry { method: MethodId(1) }]);
    builder.events(2, 6, &[Event::Entry { method: MethodId(2) }]);
    builder.events(1, 7, &[Event::Exit { method: MethodId(1) }]);
    builder.finish()
}

#[test]
fn blocks_are_indexed_by_thread() {
    let file = TraceFile::from_bytes(sample(), None).unwrap();
    assert!(file.cut_off().is_none());
    let threads: Vec<_> = file.threads().iter().map(|t| (t.thread, t.len())).collect();
    assert_eq!(threads, [(1, 2), (2, 1)]);
    let mut bytes = Vec::new();
    file.load_events(&file.threads()[1], 0, &mut bytes).unwrap();
    assert_eq!(event::decode(&bytes).unwrap().unwrap().0, Event::Ticket(Ticket(6)));
}

#[test]
fn every_cut_is_read_to_the_last_whole_block() {
    let bytes = sample();
    let whole = TraceFile::from_bytes(bytes.clone(), None).unwrap();
    for cut in FILE_HEADER..bytes.len() {
        let file = TraceFile::from_bytes(bytes[..cut].to_vec(), None).unwrap();
        let cut_off = file.cut_off().expect("said so");
        assert_eq!(
            cut_off.blocks,
            whole.blocks().iter().filter(|b| b.at + b.header.stored_len as usize <= cut).count()
        );
    }
    assert!(matches!(
        TraceFile::from_bytes(bytes[..8].to_vec(), None),
        Err(ReadError::Format { source: FormatError::FileMagic, .. })
    ));
}

#[test]
fn buffers_complete_a_trace_without_an_end() {
    let mut builder = TraceBuilder::new();
    builder.events(1, 5, &[Event::Entry { method: MethodId(1) }]);
    let trace = builder.without_end();
    let chunk = |state, thread, sequence, ticket: u64| {
        let mut chunk = buffers::ChunkHeader { state, thread, sequence, wall: None }.encode().to_vec();
        encode(&Event::Ticket(Ticket(ticket)), &mut chunk);
        encode(&Event::EntryOn { method: MethodId(3), receiver: ObjectHash(9) }, &mut chunk);
        chunk.resize(128, 0);
        chunk
    };
    let run = RunId::default();
    let header =
        buffers::FileHeader { chunk_size: 128, chunk_count: 5, pid: 1, ticket: Ticket(9), run, chunks_at: 4096 };
    let mut buf = header.encode().to_vec();
    buf.resize(buffers::JOURNALS_AT, 0);
    buf.extend(chunk(buffers::STATE_OWNED, 1, 8, 9));
    buf.extend(chunk(buffers::STATE_FULL, 1, 7, 6));
    buf.extend(chunk(buffers::STATE_FULL, 1, 6, 5));
    buf.extend(chunk(buffers::STATE_FREE, 1, 9, 11));
    buf.extend(chunk(buffers::STATE_OWNED, 2, 3, 8));
    let file = TraceFile::from_bytes(trace.clone(), Some(buf.clone())).unwrap();
    let read = BufferFile::Read { chunks: 3, records: 0, damaged: 0, overflowed: false };
    assert_eq!(file.cut_off().unwrap().buffer_file, read, "the chunk of ticket 5 is in the trace already");
    let mut tickets = Vec::new();
    let mut bytes = Vec::new();
    for piece in 0..file.threads()[0].len() {
        file.load_events(&file.threads()[0], piece, &mut bytes).unwrap();
        match event::decode(&bytes) {
            Ok(Some((Event::Ticket(ticket), _))) => tickets.push(ticket.0),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tickets, [5, 6, 9]);
    for cut in 0..buf.len() {
        TraceFile::from_bytes(trace.clone(), Some(buf[..cut].to_vec())).unwrap();
    }
}

/// A trace without an end, and a buffer file with one more chunk.
fn cut_and_buffers(run: RunId, buffers_run: RunId) -> (TraceBuilder, Vec<u8>) {
    let mut builder = TraceBuilder::of_run(run);
    builder.events(1, 5, &[Event::Entry { method: MethodId(1) }]);
    let header = buffers::FileHeader {
        chunk_size: 128,
        chunk_count: 1,
        pid: 1,
        ticket: Ticket(9),
        run: buffers_run,
        chunks_at: 4096,
    };
    let mut buf = header.encode().to_vec();
    buf.resize(buffers::JOURNALS_AT, 0);
    let state = buffers::STATE_OWNED;
    buf.extend(buffers::ChunkHeader { state, thread: 1, sequence: 1, wall: None }.encode());
    encode(&Event::Ticket(Ticket(9)), &mut buf);
    buf.resize(buffers::JOURNALS_AT + 128, 0);
    (builder, buf)
}

/// The message about a cut-off trace.
fn said(trace: Vec<u8>, buffers: Option<Vec<u8>>) -> String {
    TraceFile::from_bytes(trace, buffers).unwrap().cut_off().unwrap().to_string()
}

#[test]
fn only_the_buffers_of_the_same_run_are_used_and_others_are_reported() {
    let (run, other) = (RunId::random(), RunId::random());
    let (mut builder, own) = cut_and_buffers(run, run);
    let trace = builder.without_end();
    let file = TraceFile::from_bytes(trace.clone(), Some(own.clone())).unwrap();
    assert_eq!((file.run(), file.threads()[0].len()), (run, 2));
    for (buffers, words) in [
        (Some(own.clone()), "1 more chunk"),
        (Some(cut_and_buffers(run, other).1), "belongs to another run"),
        (Some(cut_and_buffers(run, RunId::default()).1), "belongs to another run"),
        (Some(b"garbage".to_vec()), "cannot be read"),
        (Some(Vec::new()), "cannot be read"),
        (None, "no buffer file"),
    ] {
        let said = said(trace.clone(), buffers);
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(said.contains("an unknown number"), words != "1 more chunk", "{said}");
    }
}

#[test]
fn chunks_that_cannot_be_read_are_counted() {
    let run = RunId::random();
    let (mut builder, own) = cut_and_buffers(run, run);
    let trace = builder.without_end();
    let mut state = own.clone();
    state[buffers::JOURNALS_AT] = 9;
    let mut no_ticket = own.clone();
    no_ticket.truncate(buffers::JOURNALS_AT + buffers::CHUNK_HEADER);
    encode(&Event::Entry { method: MethodId(1) }, &mut no_ticket);
    no_ticket.resize(own.len(), 0);
    for damaged in [state, no_ticket, own[..own.len() - 1].to_vec()] {
        let file = TraceFile::from_bytes(trace.clone(), Some(damaged)).unwrap();
        assert_eq!(
            file.cut_off().unwrap().buffer_file,
            BufferFile::Read { chunks: 0, records: 0, damaged: 1, overflowed: false }
        );
    }
    assert!(said(trace, Some(own[..buffers::JOURNALS_AT].to_vec())).contains("1 parts that cannot be read"));
}

#[test]
fn a_trace_says_why_it_was_stopped_and_takes_no_buffers_then() {
    let run = RunId::random();
    let (mut builder, buffers) = cut_and_buffers(run, run);
    let why = "cannot write to a.ettrace: no space";
    let stopped = Stopped { why: why.into(), seconds: 3.25, lost_chunks: 2, lost_events: 700 };
    builder.progress(&Progress { blocks: 1, stopped: Some(stopped), ..Progress::default() });
    let trace = builder.without_end();
    let file = TraceFile::from_bytes(trace.clone(), Some(buffers.clone())).unwrap();
    assert_eq!(file.threads()[0].len(), 1);
    let text = said(trace, Some(buffers));
    for words in [why, "3.25 s", "700 events in 2 chunks", "cut off after"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("killed") && !text.contains("buffer file"), "{text}");
}

#[test]
fn the_last_sign_of_life_and_missing_blocks_are_reported() {
    let mut builder = TraceBuilder::new();
    builder.progress(&Progress { seconds: 1.0, blocks: 2, ..Progress::default() });
    builder.progress(&Progress { seconds: 2.5, blocks: 9, ..Progress::default() });
    let trace = builder.without_end();
    let text = said(trace.clone(), None);
    assert!(text.contains("2.50 s") && text.contains("at least 6 more had been written"), "{text}");
    // Truncated while it was overwritten: the previous one counts.
    let mut torn = trace;
    *torn.last_mut().unwrap() ^= 1;
    assert!(said(torn, None).contains("1.00 s"));
}

#[test]
fn records_of_the_journals_are_taken_unless_they_were_written() {
    use et_format::{ClassRecord, GcRecord, encode_json};

    let run = RunId::random();
    let mut builder = TraceBuilder::of_run(run);
    // Blocks 1 and 2: what the writer wrote of the records that begin with block 1.
    builder.class(&ClassRecord { signature: "LOne;".into(), ..ClassRecord::default() }).problem("one", 1);
    let trace = builder.without_end();
    let size = 1024;
    let header = buffers::FileHeader {
        chunk_size: 128,
        chunk_count: 0,
        pid: 1,
        ticket: Ticket(9),
        run,
        chunks_at: (buffers::JOURNALS_AT + buffers::JOURNALS * size) as u32,
    };
    let journal = |first_block: u64, overflowed, entries: &[(BlockKind, Vec<u8>)]| {
        let mut out = Vec::new();
        for (kind, record) in entries {
            out.extend_from_slice(&u32::from(*kind as u8).to_le_bytes());
            out.extend_from_slice(&(record.len() as u32).to_le_bytes());
            out.extend_from_slice(record);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        let mut area = (out.len() as u32).to_le_bytes().to_vec();
        area.extend_from_slice(&u32::from(overflowed).to_le_bytes());
        area.extend_from_slice(&first_block.to_le_bytes());
        area.extend_from_slice(&out);
        area.resize(size, 0);
        area
    };
    let class = |signature: &str| {
        let mut raw = Vec::new();
        ClassRecord { signature: signature.into(), ..ClassRecord::default() }.encode(&mut raw);
        (BlockKind::Classes, raw)
    };
    let problem = |what: &str| (BlockKind::Problem, encode_json(&Problem { what: what.into(), count: 1 }));
    let mut gc = Vec::new();
    GcRecord::default().encode(&mut gc);
    let mut buf = header.encode().to_vec();
    buf.resize(buffers::JOURNALS_AT, 0);
    // The journal that is still queued is first in the file, and last in the order.
    let waiting = [problem("three"), class("LTwo;"), (BlockKind::Gcs, vec![1])];
    buf.extend(journal(0, true, &waiting));
    buf.extend(journal(1, false, &[class("LOne;"), problem("one"), problem("two"), (BlockKind::Gcs, gc)]));

    let file = TraceFile::from_bytes(trace.clone(), Some(buf.clone())).unwrap();
    let read = BufferFile::Read { chunks: 0, records: 4, damaged: 1, overflowed: true };
    assert_eq!(file.cut_off().unwrap().buffer_file, read);
    let kinds: Vec<_> = file.records.iter().map(|(kind, _)| *kind).collect();
    use BlockKind::{Classes, Gcs, Problem as Said};
    assert_eq!(kinds, [Said, Gcs, Said, Classes]);
    let problems: Vec<_> = file.problems().unwrap().into_iter().map(|problem| problem.what).collect();
    assert_eq!(problems, ["one", "two", "three"]);
    let trace_of = |bytes: Vec<u8>| crate::Trace::from_file(TraceFile::from_bytes(bytes, Some(buf.clone())).unwrap());
    assert_eq!(trace_of(trace.clone()).unwrap().gcs.len(), 1);
    for cut in 0..buf.len() {
        TraceFile::from_bytes(trace.clone(), Some(buf[..cut].to_vec())).unwrap();
    }
}

/// The trace of a small program from before blocks had timestamps.
#[test]
fn a_trace_of_the_first_format_is_read_and_has_no_times() {
    let trace = include_bytes!("../../../tests/traces/version-1.trace");
    assert_eq!(trace[8..10], [1, 0], "the version in the header");
    let file = TraceFile::from_bytes(trace.to_vec(), None).unwrap();
    assert!(file.cut_off().is_none());
    let mut events = Vec::new();
    let mut counts = Vec::new();
    for thread in file.threads() {
        for piece in 0..thread.len() {
            file.load_events(thread, piece, &mut events).unwrap();
            counts.push((thread.thread, event::count(&events)));
            assert_eq!(file.wall(thread, piece), None);
        }
    }
    assert_eq!(counts, [(1, 21282), (7, 88), (8, 73), (6, 12)], "as the reader of then counted them");
}

#[test]
fn chunks_of_the_buffer_file_tell_when_they_happened() {
    let run = RunId::random();
    let (mut builder, mut buf) = cut_and_buffers(run, run);
    let wall = Wall { begin: Nanos(3), end: None };
    let header = buffers::ChunkHeader { state: buffers::STATE_OWNED, thread: 1, sequence: 1, wall: Some(wall) };
    buf[buffers::JOURNALS_AT..][..buffers::CHUNK_HEADER].copy_from_slice(&header.encode());
    let file = TraceFile::from_bytes(builder.without_end(), Some(buf)).unwrap();
    let walls: Vec<_> = (0..2).map(|piece| file.wall(&file.threads()[0], piece)).collect();
    assert_eq!(walls, [None, Some(wall)]);
}
