//! The writer without a JVM.

use super::*;
use crate::buffers::file::Place;
use crate::buffers::{FullChunk, ThreadIndex};
use crate::options::Target;
use crate::output::line::Packed;
use crate::output::packers::Limits;
use crate::output::queue::Work;
use et_format::event::{self, Event};
use et_format::progress::PROGRESS_BLOCK;
use et_format::{
    BLOCK_HEADER, BlockHeader, ClassRecord, FILE_HEADER, GcRecord, MAX_BLOCK, Nanos, check_file_header, decode_json,
};
use et_names::MethodId;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Fake {
    failures: AtomicUsize,
}

impl Host for Fake {
    fn heap_use(&self) -> HeapUse {
        HeapUse { used: 5, committed: 9 }
    }
    fn counters(&self) -> Counters {
        Counters { overflows: 7, ..Counters::default() }
    }
    fn failed(&self, _error: &SinkError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

/// Checks the whole file and returns its blocks.
fn blocks(path: &Path) -> Vec<(BlockHeader, Vec<u8>)> {
    let bytes = std::fs::read(path).unwrap();
    check_file_header(&bytes).unwrap();
    let mut rest = &bytes[FILE_HEADER..];
    let mut blocks = Vec::new();
    while let Some(header) = BlockHeader::decode(rest).unwrap() {
        let stored = &rest[BLOCK_HEADER..BLOCK_HEADER + header.stored_len as usize];
        blocks.push((header, header.unpack(stored).unwrap().into_owned()));
        rest = &rest[BLOCK_HEADER + header.stored_len as usize..];
    }
    assert!(rest.is_empty());
    blocks
}

/// A chunk with that many events, and a ticket.
fn chunk_of(buffers: &Buffers, count: u32) -> FullChunk {
    let at = buffers.take(ThreadIndex(1), Nanos(5)).unwrap();
    let mut events = Vec::new();
    event::encode(&Event::Ticket(buffers.next_ticket()), &mut events);
    (0..count).for_each(|id| event::encode(&Event::Exit { method: MethodId(1 + id * 7919 % 10_007) }, &mut events));
    #[allow(unsafe_code)]
    // SAFETY: the test owns the chunk, which is large enough.
    unsafe {
        (at as *mut u8).copy_from_nonoverlapping(events.as_ptr(), events.len())
    };
    let mut full = None;
    assert!(buffers.hand_in(at + events.len(), Nanos(7), |chunk| full = Some(chunk)));
    full.unwrap()
}

fn packers(writers: u32) -> Packers {
    Packers::new(Limits { writers, helpers: 2 })
}

/// Packs a chunk and appends it.
fn put<H: Host>(writer: &mut Writer<'_, H>, chunk: FullChunk) {
    let queue = Queue::default();
    queue.chunk(chunk);
    assert_eq!([(); 2].map(|()| writer.step(&queue, || ())), [None; 2]);
}

/// Fills a chunk with a ticket and `count` method exits, from method `first` on, and hands it in.
fn fill(queue: &Queue, buffers: &Buffers, packers: &Packers, thread: u32, first: u32, count: u32) -> u64 {
    let taken = buffers.take_or_help(ThreadIndex(thread), Nanos(5), || packers.help(queue, buffers));
    let Ok(at) = taken else { return 0 };
    let mut events = Vec::new();
    event::encode(&Event::Ticket(buffers.next_ticket()), &mut events);
    (first..first + count).for_each(|id| event::encode(&Event::Exit { method: MethodId(id) }, &mut events));
    #[allow(unsafe_code)]
    // SAFETY: the test owns the chunk, which is large enough.
    unsafe {
        (at as *mut u8).copy_from_nonoverlapping(events.as_ptr(), events.len())
    };
    let is_ours = buffers.hand_in(at + events.len(), Nanos(7), |chunk| queue.chunk(chunk));
    if is_ours { events.len() as u64 } else { 0 }
}

fn traced(target: &Target, fake: &Fake, chunks: u32, late: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let (queue, packers) = (Queue::default(), packers(1));
    let mut written = 0;
    std::thread::scope(|scope| {
        let sink = Sink::open(target).unwrap();
        let writer = scope.spawn(|| {
            let written = run(RunId::default(), &queue, &buffers, &packers, sink, fake, Instant::now());
            queue.writer_is_gone();
            written
        });
        queue.block(BlockKind::Meta, b"{}".to_vec());
        queue.class(&ClassRecord { signature: "La;".into(), ..ClassRecord::default() });
        queue.gc(GcRecord::default());
        for number in 0..chunks {
            match fill(&queue, &buffers, &packers, 1 + number % 3, 1, 199) {
                0 => break,
                bytes => written += bytes,
            }
        }
        queue.finish(Finish { reason: "VMDeath", end_ticket: Ticket(chunks.into()), counters: fake.counters() }, None);
        let written = writer.join().unwrap();
        assert!(written.writer.stopped.is_some() || folder.path().join("t.buf").exists());
        written.close(late);
    });
    assert!(!folder.path().join("t.buf").exists());
    written
}

#[test]
fn all_that_was_queued_is_in_the_file_and_the_end_comes_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let fake = Fake::default();
    let written = traced(&Target::File(path.clone()), &fake, 100, 0);
    let blocks = blocks(&path);
    assert_eq!((blocks[0].0.kind, blocks[1].0.kind), (BlockKind::Progress, BlockKind::Meta));
    assert!(blocks.iter().enumerate().all(|(index, (header, _))| header.sequence == index as u64));
    let events: Vec<_> = blocks.iter().filter(|(header, _)| header.kind == BlockKind::Events).collect();
    assert_eq!(events.len(), 100);
    assert!(events.iter().all(|(header, _)| header.first_ticket.0 > 0 && (1..=3).contains(&header.thread)));
    assert!(blocks.iter().all(|(header, _)| header.is_timed == (header.kind == BlockKind::Events)));
    let gcs = blocks.iter().find(|(header, _)| header.kind == BlockKind::Gcs).unwrap();
    assert_eq!(GcRecord::decode_block(&gcs.1).unwrap()[0].heap_used, 5);
    let (last, raw) = blocks.last().unwrap();
    assert_eq!(last.kind, BlockKind::End);
    let end: End = decode_json(raw).unwrap();
    assert_eq!((end.event_bytes, end.blocks, end.end_ticket), (written, blocks.len() as u64, Ticket(100)));
    assert_eq!(fake.failures.into_inner(), 0);
}

/// The first methods of a thread's blocks, in file order.
fn firsts(blocks: &[(BlockHeader, Vec<u8>)], thread: u32) -> Vec<u32> {
    let of = blocks.iter().filter(|(header, _)| header.kind == BlockKind::Events && header.thread == thread);
    of.map(|(_, raw)| {
        let (_, ticket) = event::decode(raw).unwrap().unwrap();
        let Ok(Some((Event::Exit { method }, _))) = event::decode(&raw[ticket..]) else { panic!("no exit") };
        method.0
    })
    .collect()
}

#[test]
fn many_pack_and_the_blocks_of_each_thread_stay_in_their_order() {
    const THREADS: u32 = 4;
    const CHUNKS: u32 = 150;
    const EVENTS: u32 = 1500;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let (queue, packers, fake) = (Queue::default(), packers(3), Fake::default());
    std::thread::scope(|scope| {
        let sink = Sink::open(&Target::File(path.clone())).unwrap();
        let writer = scope.spawn(|| {
            let written = run(RunId::default(), &queue, &buffers, &packers, sink, &fake, Instant::now());
            queue.writer_is_gone();
            written
        });
        let (queue, buffers, packers) = (&queue, &buffers, &packers);
        let threads = (1..=THREADS).map(|thread| {
            scope.spawn(move || {
                (0..CHUNKS).for_each(|number| {
                    fill(queue, buffers, packers, thread, 1 + number, EVENTS);
                })
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        queue.finish(Finish { reason: "VMDeath", end_ticket: Ticket(0), counters: fake.counters() }, None);
        writer.join().unwrap().close(0);
    });
    let blocks = blocks(&path);
    assert!(blocks.iter().enumerate().all(|(index, (header, _))| header.sequence == index as u64));
    for thread in 1..=THREADS {
        assert!(firsts(&blocks, thread).into_iter().eq(1..=CHUNKS), "thread {thread}");
    }
    let end: End = decode_json(&blocks.last().unwrap().1).unwrap();
    assert_eq!(end.events, Some(u64::from(THREADS * CHUNKS * EVENTS)));
    let packing = end.packing.unwrap();
    assert!(packing.writers <= 3 && packing.cpu_seconds > 0.0 && packing.append_seconds > 0.0, "{packing:?}");
}

/// A packing thread stops: a native debugger holds it, or the system does not schedule it.
#[test]
fn who_stands_still_while_it_packs_holds_up_neither_the_others_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let (queue, packers, fake) = (Queue::default(), packers(2), Fake::default());
    fill(&queue, &buffers, &packers, 1, 1, 10);
    let stuck = queue.job().unwrap();
    std::thread::scope(|scope| {
        let sink = Sink::open(&Target::File(path.clone())).unwrap();
        let writer = scope.spawn(|| {
            let written = run(RunId::default(), &queue, &buffers, &packers, sink, &fake, Instant::now());
            queue.writer_is_gone();
            written
        });
        // Many more than there are chunks.
        (2..=100).for_each(|first| assert!(fill(&queue, &buffers, &packers, 1, first, 10) > 0));
        queue.finish(Finish { reason: "VMDeath", end_ticket: Ticket(0), counters: fake.counters() }, None);
        writer.join().unwrap().close(0);
    });
    assert!(firsts(&blocks(&path), 1).into_iter().eq(1..=100));
    // The stopped thread still reads its old content; only after it is done can another thread get the chunk.
    assert_eq!(event::count(&buffers.events(stuck.chunk())), 10);
    assert!(stuck.done(Packed::default()).is_some());
}

#[test]
fn a_block_that_no_reader_would_take_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let fake = Fake::default();
    let sink = Sink::open(&Target::File(path.clone())).unwrap();
    let packers = packers(1);
    let mut writer = Writer::new(RunId::default(), sink, &buffers, &packers, &fake, Instant::now());
    // These bytes are never touched, so they take no memory.
    let large = (BlockKind::InitialObjects, vec![0; MAX_BLOCK + 1]);
    let work = Work { blocks: [large, (BlockKind::Meta, b"{}".to_vec())].into(), ..Work::default() };
    writer.write(work).unwrap();
    writer.end(Finish { reason: "VMDeath", end_ticket: Ticket(3), counters: fake.counters() }, None).unwrap();
    let blocks = blocks(&path);
    let kinds: Vec<BlockKind> = blocks.iter().map(|(header, _)| header.kind).collect();
    assert_eq!(kinds, [BlockKind::Progress, BlockKind::Problem, BlockKind::Meta, BlockKind::End]);
    assert!(blocks.iter().enumerate().all(|(index, (header, _))| header.sequence == index as u64));
    let problem: Problem = decode_json(&blocks[1].1).unwrap();
    assert!(problem.what.contains("InitialObjects") && problem.what.contains("too large"), "{}", problem.what);
}

#[test]
fn what_comes_after_the_end_is_counted_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    traced(&Target::File(path.clone()), &Fake::default(), 3, 26_122);
    let blocks = blocks(&path);
    let [.., (problem, raw), (end, _)] = &*blocks else { panic!("no blocks") };
    assert_eq!((problem.kind, end.kind), (BlockKind::Problem, BlockKind::End));
    let problem: Problem = decode_json(raw).unwrap();
    assert_eq!((problem.count, problem.what.contains("while the VM went down")), (26_122, true));
}

#[test]
fn a_buffer_file_that_is_cut_short_ends_tracing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let fake = Fake::default();
    let sink = Sink::open(&Target::File(path.clone())).unwrap();
    let packers = packers(1);
    let mut writer = Writer::new(RunId::default(), sink, &buffers, &packers, &fake, Instant::now());
    put(&mut writer, chunk_of(&buffers, 10));
    writer.write_progress();
    let (second, third) = (chunk_of(&buffers, 20), chunk_of(&buffers, 30));
    let file = std::fs::OpenOptions::new().write(true).open(folder.path().join("t.buf")).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    [second, third].into_iter().for_each(|chunk| put(&mut writer, chunk));
    writer.end(Finish { reason: "VMDeath", end_ticket: Ticket(3), counters: fake.counters() }, None).unwrap();
    writer.write_progress();
    assert_eq!(fake.failures.into_inner(), 1);
    let events = blocks(&path).iter().filter(|(header, _)| header.kind == BlockKind::Events).count();
    assert_eq!(events, 1);
    let stopped = progress(&path).stopped.unwrap();
    assert!(stopped.why.ends_with("t.buf short or written over it"), "{}", stopped.why);
    assert_eq!(stopped.lost_chunks, 2);
}

#[test]
fn of_discarded_events_the_bytes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let fake = Fake::default();
    let sink = Sink::open(&Target::File(path.clone())).unwrap();
    let packers = packers(1);
    let mut writer = Writer::new(RunId::default(), sink, &buffers, &packers, &fake, Instant::now());
    let counters = Counters { discarded_bytes: Some(510), ..fake.counters() };
    writer.end(Finish { reason: "VMDeath", end_ticket: Ticket(3), counters }, Some(0.5)).unwrap();
    let blocks = blocks(&path);
    assert!(blocks.iter().all(|(header, _)| header.kind != BlockKind::Events));
    let end: End = decode_json(&blocks.last().unwrap().1).unwrap();
    assert_eq!((end.discarded_bytes, end.lost_events, end.event_bytes), (Some(510), 0, 0));
    assert_eq!(end.writer_cpu_seconds, Some(0.5));
    let problem: Problem = decode_json(&blocks[blocks.len() - 2].1).unwrap();
    assert_eq!((problem.count, problem.what.contains("discard=on")), (510, true));
}

#[test]
fn a_full_disk_stops_tracing_once_and_does_not_hang() {
    let fake = Fake::default();
    traced(&Target::File("/dev/full".into()), &fake, 1000, 0);
    assert_eq!(fake.failures.into_inner(), 1);
}

#[test]
fn a_command_that_goes_away_stops_tracing() {
    let fake = Fake::default();
    traced(&Target::Command("head -c 10 >/dev/null".into()), &fake, 3000, 0);
    assert_eq!(fake.failures.into_inner(), 1);
}

/// The `Progress` block of a file.
fn progress(path: &Path) -> Progress {
    let (header, raw) = blocks(path).swap_remove(0);
    assert_eq!(header.kind, BlockKind::Progress);
    decode_json(&raw).unwrap()
}

#[test]
fn a_killed_run_leaves_its_last_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let (queue, fake, packers) = (Queue::default(), Fake::default(), packers(1));
    std::thread::scope(|scope| {
        let sink = Sink::open(&Target::File(path.clone())).unwrap();
        scope.spawn(|| {
            run(RunId::default(), &queue, &buffers, &packers, sink, &fake, Instant::now());
            queue.writer_is_gone();
        });
        queue.block(BlockKind::Meta, b"{}".to_vec());
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut last = Progress::default();
        while last.overflows != 7 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > (FILE_HEADER + PROGRESS_BLOCK) as u64) {
                last = progress(&path);
            }
        }
        // A failing test must not wait for the writer.
        queue.finish(Finish { reason: "VMDeath", end_ticket: Ticket(0), counters: fake.counters() }, None);
        assert!(last.seconds > 0.0 && last.blocks == 2 && last.overflows == 7, "{last:?}");
        assert_eq!(last.stopped, None);
    });
}

#[test]
fn a_trace_that_cannot_be_written_says_why_when_and_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ettrace");
    let buffers = Buffers::create(&Place::Beside(folder.path().join("t")), 64 << 10, RunId::default()).unwrap();
    let fake = Fake::default();
    let mut sink = Sink::open(&Target::File(path.clone())).unwrap();
    sink.limit = Some(1400);
    let packers = packers(1);
    let mut writer = Writer::new(RunId::default(), sink, &buffers, &packers, &fake, Instant::now());
    let chunks = [10, 500, 30].map(|count| chunk_of(&buffers, count));
    chunks.into_iter().for_each(|chunk| put(&mut writer, chunk));
    writer.end(Finish { reason: "VMDeath", end_ticket: Ticket(3), counters: fake.counters() }, None).unwrap();
    writer.write_progress();
    assert_eq!(fake.failures.into_inner(), 1);
    assert_eq!(blocks(&path).len(), 2, "the progress, and the one chunk that had room");
    let stopped = progress(&path).stopped.unwrap();
    assert_eq!((stopped.lost_chunks, stopped.lost_events), (2, 530));
    assert!(stopped.why.starts_with("cannot write to ") && stopped.why.contains("t.ettrace: "), "{}", stopped.why);
    assert!(!stopped.why.contains("the program runs on"), "{}", stopped.why);
    assert!(!folder.path().join("t.buf").exists());
}
