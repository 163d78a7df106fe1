//! Every request and message survives a round trip; arbitrary bytes are rejected without a panic, and with memory
//! limited to a small multiple of their length.

use et_ddm::chunk::zlib;
use et_ddm::heap::{HeapInfo, Walk, When};
use et_ddm::message::{Failure, Hello};
use et_ddm::ours::{
    Allocations, ClassInfo, Event, Events, Happened, HeapLogged, Histogram, HistogramRow, Instance, Instances, Memory,
    MemoryInfo, MonitorUsage, ObjectInfo, Site, ThreadInfo,
};
use et_ddm::packet::{HANDSHAKE, Packet, PacketDecoder};
use et_ddm::recent::Recent;
use et_ddm::segment::{Form, Kind, SegmentWriter, Solidity, State};
use et_ddm::stack::{Frame, Stack};
use et_ddm::threads::{AndroidStatus, Layout, ThreadState, ThreadStatus, ThreadStatuses};
use et_ddm::{Chunk, ChunkType, Message, Request, chunk};
use et_tests_heap::Counting;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn requests() -> Vec<Request> {
    let mut all = vec![
        Request::Hello { version: 1 },
        Request::Features,
        Request::DebuggerDetached,
        Request::ThreadEvents { on: true },
        Request::ThreadStates { interval_ms: 500 },
        Request::ThreadStatesOnce,
        Request::Stack { thread: 7 },
        Request::CollectGarbage,
        Request::DumpHeap { path: "/tmp/größe.hprof".into() },
        Request::KeepAllocations { on: false },
        Request::AreAllocationsKept,
        Request::RecentAllocations,
        Request::Exit { status: 3 },
        Request::Events { kinds: Events::MONITORS | Events::COLLECTIONS | Events::PLACES },
        Request::Allocations { interval_ms: 1000, rows: 20 },
        Request::Memory,
        Request::Histogram { rows: 30 },
        Request::Instances { class: 1 << 40, most: 10 },
        Request::Object(1 << 40),
        Request::Class(2),
        Request::Monitor(3),
        Request::Thread(4),
        Request::LogHeap { name: "before the order".into() },
        Request::Other(Chunk::new(ChunkType(*b"MINE"), vec![1, 2, 3])),
    ];
    all.extend(When::ALL.map(Request::HeapInfo));
    for when in Walk::ALL {
        all.push(Request::NativeSegments { when });
        all.extend([false, true].map(|objects| Request::HeapSegments { when, objects }));
    }
    all
}

fn frame() -> Frame {
    Frame { class: "LMain;".into(), method: "main".into(), file: Some("Main.java".into()), line: -2 }
}

fn segments(form: Form) -> Vec<Message> {
    let mut writer = SegmentWriter::new(form, 1, 8, 0xfff0_0000, 30);
    for (at, solidity) in Solidity::ALL.into_iter().enumerate() {
        for kind in Kind::ALL {
            writer.push(State { solidity, kind }, 100 * at as u64 + 1);
        }
    }
    writer.finish().into_iter().map(Message::HeapSegment).collect()
}

fn messages() -> Vec<Message> {
    let threads = ThreadState::ALL.map(|state| ThreadStatus { id: 5, state, is_suspended: true, android: None });
    let of_android = ThreadState::ALL.map(|state| ThreadStatus {
        is_suspended: false,
        android: Some(AndroidStatus { tid: 1, utime: 2, stime: 3, is_daemon: true }),
        ..ThreadStatus { id: 5, state, is_suspended: false, android: None }
    });
    let (class, name) = ("java.lang.Object".to_owned(), "<b>\u{1f418}\n".to_owned());
    let happened = [
        Happened::ContendedEnter { monitor: 1, class: class.clone(), thread: 2, owner: 3 },
        Happened::ContendedEntered { monitor: 1, class: class.clone(), thread: 2, owner: 3, waited_ns: 1 << 50 },
        Happened::Wait { monitor: 1, class: class.clone(), thread: 2, timeout_ms: 0 },
        Happened::Waited { monitor: 1, class: class.clone(), thread: 2, waited_ns: 9, timed_out: true },
        Happened::GcStart,
        Happened::GcFinish { pause_ns: 77 },
    ];
    let places = ["", "com.acme.Till.open(Till.java:17)"];
    let event = |(what, place): (Happened, &str)| Event { time_ns: 1 << 60, what, place: place.to_owned() };
    let events: Vec<Event> =
        happened.iter().flat_map(|what| places.map(|place| event((what.clone(), place)))).collect();
    let info =
        HeapInfo { heap: 1, time_ms: 1 << 40, reason: When::EveryGc, most: u32::MAX, size: 5, used: 4, objects: 3 };
    let mut all = vec![
        Message::Hello(Hello { version: 1, pid: 4711, vm: "OpenJDK 25".into(), application: name.clone() }),
        Message::Features(vec!["et-events".into(), String::new()]),
        Message::DebuggerDetached,
        Message::ApplicationName(name.clone()),
        Message::Waits(0),
        Message::ThreadStarted { id: 1, name: name.clone() },
        Message::ThreadRenamed { id: 1, name: String::new() },
        Message::ThreadEnded(1),
        Message::ThreadStates(ThreadStatuses { layout: Layout::Of2007, threads: threads.to_vec() }),
        Message::ThreadStates(ThreadStatuses { layout: Layout::Android, threads: of_android.to_vec() }),
        Message::Stack(Stack { thread: 3, frames: vec![frame(), Frame { file: None, ..frame() }] }),
        Message::HeapInfo(vec![info, HeapInfo::default()]),
        Message::HeapDumped(0xff),
        Message::KeepsAllocations(true),
        Message::RecentAllocations(vec![
            Recent { size: 24, thread: 3, class: "[I".into(), frames: vec![frame(), frame()] },
            Recent { size: 16, thread: 3, class: "LMain;".into(), frames: vec![] },
        ]),
        Message::Fail(Failure { code: Failure::UNSUPPORTED, message: "no".into() }),
        Message::Events(Events { lost: 3, events }),
        Message::Allocations(Allocations {
            time_ms: 1,
            interval_ms: 1000,
            objects: 10,
            bytes: 1 << 40,
            sites: vec![Site {
                class: class.clone(),
                site: "A.b:3".into(),
                context: "C.d;E.f".into(),
                objects: 1,
                bytes: 2,
            }],
        }),
        Message::Memory(MemoryInfo {
            time_ms: 1,
            collections: 2,
            pauses_ns: 3,
            parts: vec![Memory { name: "heap".into(), used: 1 << 33, size: 1 << 34, most: 0 }],
        }),
        Message::Histogram(Histogram {
            objects: 1,
            bytes: 2,
            rows: vec![HistogramRow { class: 9, name: class.clone(), objects: 1, bytes: 16 }],
        }),
        Message::Instances(Instances { class: 9, total: 1, objects: vec![Instance { id: 8, size: 16 }] }),
        Message::Object(ObjectInfo {
            id: 8,
            class: 9,
            class_name: class.clone(),
            size: 24,
            length: Some(0),
            thread: 1,
        }),
        Message::Object(ObjectInfo { id: 8, ..ObjectInfo::default() }),
        Message::Class(ClassInfo { id: 9, name: class.clone(), modifiers: 1, ..ClassInfo::default() }),
        Message::Monitor(MonitorUsage {
            object: 8,
            class_name: class,
            owner: 1,
            entries: 2,
            waiters: vec![3, 4],
            notify_waiters: vec![5],
        }),
        Message::Thread(ThreadInfo {
            id: 1,
            name,
            group: "main".into(),
            parent: String::new(),
            priority: 5,
            is_daemon: true,
            state: ThreadState::VmWait,
            cpu_ns: u64::MAX,
            waits_for: 8,
        }),
        Message::HeapLogged(HeapLogged {
            dump: 2,
            file: "/tmp/größe.trcxml".into(),
            objects: 1 << 40,
            references: 3,
            roots: 4,
            pause_us: 5,
        }),
        Message::Other(Chunk::new(ChunkType(*b"MINE"), vec![])),
    ];
    for native in [false, true] {
        all.extend([Message::HeapStart { heap: 2, native }, Message::HeapEnd { heap: 2, native }]);
    }
    all.extend([Form::Merged, Form::Objects, Form::Native].into_iter().flat_map(segments));
    all
}

#[test]
fn all_requests_and_messages_come_back() {
    for request in requests() {
        assert_eq!(Request::read(&request.chunk()).as_ref(), Ok(&request));
    }
    for message in messages() {
        assert_eq!(Message::read(&message.chunk()).as_ref(), Ok(&message));
        // The same when compressed.
        let compressed = chunk::encode(&[zlib::compress(message.chunk())]);
        assert_eq!(chunk::decode(&compressed), Ok(vec![message.chunk()]));
    }
}

#[test]
fn every_end_of_a_chunk_but_its_own_is_refused_or_means_less() {
    for chunk in requests().iter().map(Request::chunk).chain(messages().iter().map(Message::chunk)) {
        for length in 0..chunk.data.len() {
            let cut = Chunk::new(chunk.kind, chunk.data[..length].to_vec());
            // Nothing of it can be read as the whole.
            if let Ok(message) = Message::read(&cut) {
                assert_eq!(message.chunk(), cut, "{chunk:?} cut to {length}");
            }
            let _ = Request::read(&cut);
        }
    }
}

/// All that is said in both directions, one packet each.
fn conversation() -> Vec<u8> {
    let messages = messages();
    let mut chunks: Vec<Chunk> = requests().iter().map(Request::chunk).collect();
    chunks.extend(messages.iter().map(Message::chunk));
    chunks.extend(messages.iter().map(|message| zlib::compress(message.chunk())));
    let mut bytes = HANDSHAKE.to_vec();
    for (id, chunk) in (0..).zip(&chunks) {
        bytes.extend(Packet::ddm(id, chunk.encode()).encode());
    }
    bytes
}

/// Reads all that can be read, as both sides would.
fn read_all(bytes: &[u8]) -> usize {
    let mut decoder = PacketDecoder::new(1 << 20);
    decoder.push(bytes);
    let mut read = 0;
    while let Ok(Some(packet)) = decoder.next_packet() {
        for chunk in chunk::decode(&packet.data).unwrap_or_default() {
            read += usize::from(Message::read(&chunk).is_ok()) + usize::from(Request::read(&chunk).is_ok());
        }
    }
    read
}

#[test]
fn mutated_packets_do_no_harm() {
    let bytes = conversation();
    let all = read_all(&bytes);
    assert!(all > 130, "only {all} are read when nothing is wrong");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mutations = prop::collection::vec((0..bytes.len(), any::<u8>()), 1..8);
    let mut less = 0;
    for _ in 0..10_000 {
        let mut mutated = bytes.clone();
        for (at, byte) in mutations.new_tree(&mut runner).unwrap().current() {
            mutated[at] = byte;
        }
        // Decompressed data may be a large multiple of its input; everything else is a small one.
        et_tests_heap::bounded(8 * mutated.len() + (1 << 20), || less += usize::from(read_all(&mutated) < all));
    }
    assert!(less > 5_000, "of 10,000 mutated conversations {less} cannot be read as a whole");
}

proptest! {
    #[test]
    fn any_bytes_do_no_harm(kind in prop::sample::select(kinds()), data in prop::collection::vec(any::<u8>(), 0..200)) {
        let chunk = Chunk::new(kind, data);
        let _ = (Message::read(&chunk), Request::read(&chunk), chunk::decode(&chunk.data));
    }
}

fn kinds() -> Vec<ChunkType> {
    messages().iter().map(Message::chunk).chain(requests().iter().map(Request::chunk)).map(|chunk| chunk.kind).collect()
}
