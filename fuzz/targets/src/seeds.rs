//! Inputs to start from: the rewriter's fixtures, and small containers around them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use et_format::collector::Fate;
use et_format::event::{Event, ObjectHash, Targets, Ticket};
use et_format::progress::{Progress, RunId};
use et_format::{
    BlockKind, BlockPacker, ClassRecord, Codec, GcRecord, HeapWalk, InitialField, InitialFrame, InitialObject,
    InitialReference, InitialReferences, InitialSlot, MonitorEvent, MonitorPlace, MonitorRecord, Nanos, NewBlock,
    STACK, StackRecord, ThreadRecord, Wall, buffers, thread_flags,
};
use et_instrument::container::zip::{DEFLATED, Packed, STORED, Writer};
use et_names::{DYNAMIC_BASE, FieldRefId, MethodId, NamesTable, SiteId};
use et_reader::source::{Deaths, Reading, Source};
use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
use et_reader::text::{self, Dialect};
use et_reader::text_writer;
use et_reader::{Trace, TraceFile};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::image_maker::{self, Content, content};
use crate::rewriter::{JDK, WITNESS_ALL};

/// File name and content.
pub type Seed = (String, Vec<u8>);

/// The seeds of targets that take these inputs.
pub fn of(inputs: &str) -> Vec<Seed> {
    match inputs {
        "class" => classes(),
        "rewriter" => classes().into_iter().flat_map(|(name, bytes)| with_options(name, bytes)).collect(),
        "jar" => jars(),
        "jimage" => images(),
        "trace" => traces(),
        "text" => texts(),
        "ddm" => crate::ddm::seeds(),
        "names" => vec![("names".into(), names().encode())],
        _ => Vec::new(),
    }
}

/// All events, in a JDK's class or not; with all witnesses, and with none.
fn with_options(name: String, bytes: Vec<u8>) -> [Seed; 2] {
    let events = 0x0f | if name.starts_with("jdk-") { JDK } else { 0 };
    [(name.clone(), events), (format!("{name}-witness"), events | WITNESS_ALL)]
        .map(|(name, options)| (name, [&[options], bytes.as_slice()].concat()))
}

fn classes() -> Vec<Seed> {
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../instrument/tests/fixtures"), "", &mut found);
    found.sort();
    found.into_iter().filter_map(|(name, path)| Some((name, fs::read(path).ok()?))).collect()
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}-"), found);
        } else if name.ends_with(".class") {
            found.push((format!("{prefix}{name}"), path));
        }
    }
}

fn named(name: &str) -> Vec<u8> {
    classes().into_iter().find(|(found, _)| found == name).map(|(_, bytes)| bytes).unwrap_or_default()
}

fn jar(entries: &[(&str, Vec<u8>, u16)], comment: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for (name, content, method) in entries {
        writer.add(name, &Packed::new(content.clone(), *method)).expect("a vector takes everything");
    }
    writer.finish(comment).expect("a vector takes everything").0
}

fn jars() -> Vec<Seed> {
    let (inner, old) = (named("Inner.class"), named("old-Subroutines.class"));
    let digest = "Name: Inner.class\r\nSHA-256-Digest: AAAA\r\n\r\n";
    let manifest = format!("Manifest-Version: 1.0\r\nMain-Class: Inner\r\nClass-Path: a.jar\r\n\r\n{digest}");
    let plain = jar(
        &[
            ("META-INF/", Vec::new(), STORED),
            ("META-INF/MANIFEST.MF", manifest.into_bytes(), DEFLATED),
            ("Inner.class", inner.clone(), DEFLATED),
            ("META-INF/versions/11/Inner.class", inner, STORED),
            ("a/text.txt", b"some text".to_vec(), DEFLATED),
        ],
        b"a comment",
    );
    let signed = jar(
        &[
            ("META-INF/MANIFEST.MF", digest.into(), DEFLATED),
            ("META-INF/A.SF", b"Signature-Version: 1.0\r\n".to_vec(), DEFLATED),
            ("META-INF/A.RSA", vec![1, 2, 3], STORED),
            ("old/Subroutines.class", old.clone(), DEFLATED),
            ("old/Subroutines.class", old, DEFLATED),
            ("../out.class", b"none".to_vec(), STORED),
        ],
        b"",
    );
    let fat = jar(
        &[
            ("BOOT-INF/lib/plain.jar", plain.clone(), STORED),
            ("WEB-INF/lib/signed.jar", signed.clone(), DEFLATED),
            ("empty.class", Vec::new(), STORED),
        ],
        b"",
    );
    let mut script = b"#!/bin/sh\nexec java -jar $0\n".to_vec();
    script.extend_from_slice(&plain);
    [("plain", plain), ("signed", signed), ("fat", fat), ("script", script)].map(|(n, b)| (n.into(), b)).into()
}

/// Two JDK images: plain, and with compressed contents.
pub fn images() -> Vec<Seed> {
    let class = |name: &str| named(name);
    let plain = [
        content("/java.base/java/lang/Object.class", class("jdk-java-lang-Object.class")),
        content("/java.base/java/lang/Thread.class", class("jdk-java-lang-Thread.class")),
        content("/java.base/java/util/Inner.class", class("Inner.class")),
        content("/java.base/module-info.class", class("module-module-info.class")),
        content("/java.base/java/lang/text.properties", b"a=b\n".to_vec()),
    ];
    let zipped = |mut resource: Content, zip: u64| {
        let (unpacked, mut encoder) = (resource.stored.len() as u64, ZlibEncoder::new(Vec::new(), Compression::best()));
        encoder.write_all(&resource.stored).expect("a vector takes everything");
        let packed = encoder.finish().expect("a vector takes everything");
        resource.stored = header(packed.len() as u64, unpacked, zip as u32);
        resource.stored.extend_from_slice(&packed);
        resource.unpacked = Some(unpacked);
        resource
    };
    // Strings start with the empty one, so the offsets of these are 1, 5, 16 and 21.
    let strings = ["zip", "compact-cp", "java", "Code"];
    let shared = {
        let whole = class("Interfaces.class");
        let packed = share(&whole);
        let mut shared =
            content("/java.base/java/util/Interfaces.class", header(packed.len() as u64, whole.len() as u64, 5));
        shared.stored.extend_from_slice(&packed);
        shared.unpacked = Some(whole.len() as u64);
        shared
    };
    let mut packed: Vec<Content> = plain.iter().map(|resource| zipped(resource.clone(), 1)).collect();
    packed.push(shared.clone());
    let unpacked = shared.unpacked;
    packed.push(Content {
        name: ["java.base", "java/util", "Twice", "class"].map(str::to_owned),
        unpacked,
        ..zipped(Content { unpacked: None, ..shared }, 1)
    });
    vec![
        ("plain".into(), image_maker::image(&plain, &[])),
        ("compressed".into(), image_maker::image(&packed, &strings)),
    ]
}

/// Header of compressed content.
fn header(stored: u64, unpacked: u64, plugin: u32) -> Vec<u8> {
    let mut out = 0xcafe_fafa_u32.to_le_bytes().to_vec();
    out.extend_from_slice(&stored.to_le_bytes());
    out.extend_from_slice(&unpacked.to_le_bytes());
    out.extend_from_slice(&plugin.to_le_bytes());
    out.extend_from_slice(&[0, 0, 0, 0, 1]);
    out
}

/// The class with `Code` in its constant pool replaced by a reference to the image's string 21.
fn share(class: &[u8]) -> Vec<u8> {
    let wanted = b"\x01\x00\x04Code";
    let Some(at) = class.windows(wanted.len()).position(|window| window == wanted) else { return class.to_vec() };
    // A compressed number: high bit, two bits of length, then the value.
    [&class[..at], &[23, 0b1010_0000 | 21], &class[at + wanted.len()..]].concat()
}

fn names() -> NamesTable {
    let base = class("java/lang/Object", "", &["<init> ()V", "static main ([Ljava/lang/String;)V"]);
    let shop = class("shop/Cart", "java/lang/Object", &["<init> ()V", "add (Lshop/Item;)Z"])
        .with_fields(&["items [Lshop/Item;", "static last Lshop/Cart;", "next Lshop/Cart;"])
        .with_sites(&[(1, "Lshop/Cart;", 12), (1, "[[I", 13)]);
    table("shop.jar", 1, &[base, shop, class("shop/Hidden", "shop/Cart", &[]).not_hooked()])
}

fn traces() -> Vec<Seed> {
    let mut builder = TraceBuilder::new();
    builder.names(&names());
    for (class, signature) in [(10, "Ljava/lang/Object;"), (11, "Lshop/Cart;"), (12, "[[I")] {
        builder.class(&ClassRecord {
            ticket: Ticket(1),
            class: ObjectHash(class),
            instance_size: 16,
            signature: signature.into(),
            ..ClassRecord::default()
        });
    }
    builder.first_thread(1, "main", Vec::new());
    builder.initial_objects(&[InitialObject { object: ObjectHash(20), class: ObjectHash(11), size: 24, length: -1 }]);
    let to = |slot| InitialReference { slot, origin: ObjectHash(20), target: ObjectHash(20) };
    builder.initial_references(&InitialReferences {
        fields: vec![InitialField { class: ObjectHash(11), name: "next".into(), descriptor: "Lshop/Cart;".into() }],
        references: vec![to(InitialSlot::Field(0)), to(InitialSlot::Element(1))],
    });
    let (object, class, method) = (ObjectHash(30), ObjectHash(11), MethodId(3));
    let targets = Targets::new(&[30, 0, 0, 0, 32, 0, 0, 0]).expect("two words");
    let all = [
        Event::Entry { method: MethodId(2) },
        Event::EntryInit { method, site: SiteId(1) },
        Event::SuperCall { method },
        Event::New { site: SiteId(1), object, class, known: false },
        Event::Made { object: ObjectHash(33), class, length: -1, fresh: true, constant: true },
        Event::New { site: SiteId(1), object: ObjectHash(33), class, known: true },
        Event::Exit { method },
        Event::EntryOn { method: MethodId(4), receiver: object },
        Event::NewArray { depth: 0, site: SiteId(2), object: ObjectHash(31), length: 3 },
        Event::Found { object: ObjectHash(32), class: ObjectHash(12), length: 4 },
        Event::PutField { field: FieldRefId(1), origin: object, target: ObjectHash(31), if_changed: false },
        Event::PutStatic { field: FieldRefId(2), target: object },
        Event::PutElement { index: 1, array: ObjectHash(31), target: ObjectHash(32) },
        Event::PutElements { start: 0, array: ObjectHash(31), targets },
        Event::Used { object: ObjectHash(32) },
        Event::Switch { owner: ObjectHash(40) },
        Event::Entry { method: MethodId(2) },
        Event::Switch { owner: ObjectHash::NULL },
        Event::Throw { method: MethodId(4), exception: object },
        Event::ExitThrow { method: MethodId(4), exception: object, receiver: object },
        Event::Handle { method: MethodId(2), exception: object },
        Event::Exit { method: MethodId(2) },
    ];
    builder.events(1, 2, &all);
    builder.events(2, 3, &all[7..12]);
    builder.problem("something odd", 3);
    let cut_off = builder.without_end();
    builder.gc(&GcRecord { start: Ticket(4), finish: Ticket(5), ..GcRecord::default() });
    let whole = builder.finish();

    let file = buffers::FileHeader {
        chunk_size: 256,
        chunk_count: 2,
        pid: 1,
        ticket: Ticket(9),
        run: RunId::default(),
        chunks_at: 4096,
    };
    let mut with_buffers = cut_off.clone();
    with_buffers.extend_from_slice(&file.encode());
    with_buffers.resize(cut_off.len() + buffers::JOURNALS_AT, 0);
    for (state, sequence) in [(buffers::STATE_OWNED, 2), (buffers::STATE_FULL, 1)] {
        let start = with_buffers.len();
        with_buffers.extend_from_slice(&buffers::ChunkHeader { state, thread: 1, sequence, wall: None }.encode());
        for event in [Event::Ticket(Ticket(5 + sequence))].iter().chain(&all[..4]) {
            et_format::event::encode(event, &mut with_buffers);
        }
        with_buffers.resize(start + 256, 0);
    }
    builder.collected(Fate::Held, 4, &[30]).collected(Fate::Freed, 5, &[31, 32]).collected_of(Fate::Freed, 8, 6, &[33]);
    let collected = builder.finish();
    let (rich, journals) = (rich_trace(), journals(&cut_off));
    [
        ("whole", whole),
        ("cut-off", cut_off),
        ("buffers", with_buffers),
        ("collected", collected),
        ("rich", rich),
        ("journals", journals),
        ("births", births()),
        ("counts", counts()),
    ]
    .map(|(n, b)| (n.into(), b))
    .into()
}

/// Two threads that tell how objects are made and nothing else, on stacks; ids come again, and a walk finds some of them.
fn births() -> Vec<u8> {
    let mut builder = on_stacks();
    let class = ObjectHash(11);
    let new = |object, site| Event::New { site: SiteId(site), object: ObjectHash(object), class, known: false };
    let made =
        |object, fresh| Event::MadeAt { site: SiteId(STACK | 2), object: ObjectHash(object), class, length: -1, fresh };
    let array = |depth, object| Event::NewArray { depth, site: SiteId(2), object: ObjectHash(object), length: 1 };
    let put = Event::PutElement { index: 0, array: ObjectHash(33), target: ObjectHash(34) };
    builder.events(
        1,
        2,
        &[
            new(30, STACK | 1),
            new(31, 1),
            array(0, 33),
            array(1, 34),
            put,
            Event::Ticket(Ticket(6)),
            new(30, STACK | 3),
        ],
    );
    builder.events(2, 4, &[made(40, true), made(31, false), made(41, false), new(42, 1)]);
    builder.gc(&GcRecord { start: Ticket(7), finish: Ticket(8), ..GcRecord::default() });
    let walk = HeapWalk { begin: Ticket(8), end: Ticket(9), ..HeapWalk::default() };
    builder.survivors(walk, &[30, 33, 40]);
    builder.finish()
}

/// A thread that only counts what it makes.
fn counts() -> Vec<u8> {
    let mut builder = on_stacks();
    let count =
        |site, objects| Event::Counted { site: SiteId(site), class: ObjectHash(11), objects, units: 2 * objects };
    builder.timed_events(1, 2, Wall { begin: Nanos(5), end: None }, &[count(STACK | 1, 3), count(1, 1)]);
    builder.timed_events(1, 3, Wall { begin: Nanos(2_000_000_005), end: None }, &[count(STACK | 3, 7)]);
    let many: Vec<Event<'_>> = (1..50).map(|number| count(STACK | (1 + number % 3), number)).collect();
    builder.events(1, 4, &many);
    builder.finish()
}

/// A trace with classes, two threads and three stacks, and no events yet.
fn on_stacks() -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    builder.names(&names());
    for (class, signature) in [(11, "Lshop/Cart;"), (12, "[[I")] {
        builder.class(&ClassRecord {
            class: ObjectHash(class),
            instance_size: 16,
            mirror_size: 96,
            signature: signature.into(),
            ..ClassRecord::default()
        });
    }
    builder.first_thread(1, "main", Vec::new());
    builder.first_thread(2, "other", Vec::new());
    let frames = [(1, 0, 1), (2, 1, 2), (3, 1, 1)];
    builder.stacks(&frames.map(|(number, caller, site)| StackRecord::Frame { number, caller, site }));
    builder
}

/// Features that the others lack: initial frames, classes created at run time, monitors, times, progress blocks, and
/// enough events to be packed.
fn rich_trace() -> Vec<u8> {
    let mut builder = TraceBuilder::new();
    builder.names(&names());
    builder.names(&table("dynamic", DYNAMIC_BASE, &[class("shop/Proxy", "shop/Cart", &["<init> ()V", "call ()V"])]));
    for (class, superclass, signature) in
        [(9, 0, "Ljava/lang/Class;"), (10, 0, "Ljava/lang/Object;"), (11, 10, "Lshop/Cart;"), (13, 11, "Lshop/Proxy;")]
    {
        builder.class(&ClassRecord {
            class: ObjectHash(class),
            superclass: ObjectHash(superclass),
            loader: ObjectHash(if class == 13 { 21 } else { 0 }),
            instance_size: 24,
            mirror_size: 112,
            signature: signature.into(),
            ..ClassRecord::default()
        });
    }
    builder.dynamic_classes(&[(13, DYNAMIC_BASE)]);
    let frame = |method: &str, descriptor: &str, receiver| InitialFrame {
        class: "Lshop/Cart;".into(),
        method: method.into(),
        descriptor: descriptor.into(),
        receiver: ObjectHash(receiver),
    };
    builder.first_thread(1, "main", vec![frame("add", "(Lshop/Item;)Z", 20), frame("<init>", "()V", 21)]);
    builder.thread(&ThreadRecord::Start {
        ticket: Ticket(3),
        thread: 2,
        object: ObjectHash(22),
        flags: thread_flags::DAEMON,
        name: "worker".into(),
        frames: Vec::new(),
    });
    let initial = |object| InitialObject { object: ObjectHash(object), class: ObjectHash(11), size: 24, length: -1 };
    builder.initial_objects(&[initial(20), initial(21)]);
    let place = || MonitorPlace { monitor_class: "Lshop/Cart;".into(), line: 7, ..MonitorPlace::default() };
    let monitor = |nanos, what| MonitorRecord { ticket: Ticket(4), nanos, thread: 1, object: ObjectHash(20), what };
    builder.monitors(&[
        monitor(10, MonitorEvent::Enter { owner: 2, place: place() }),
        monitor(20, MonitorEvent::Entered),
        monitor(30, MonitorEvent::Wait { timeout_millis: 5, place: place() }),
        monitor(40, MonitorEvent::Waited { is_timed_out: true }),
    ]);
    let wall = Wall { begin: Nanos(1_000), end: Some(Nanos(2_000_000)) };
    let add = MethodId(4);
    builder.timed_events(
        1,
        4,
        wall,
        &[Event::Leaf { method: add, receiver: ObjectHash(20) }, Event::Exit { method: add }],
    );
    builder.progress(&Progress { seconds: 1.5, ticket: Ticket(9), overflows: 1, ..Progress::default() });
    let mut trace = builder.without_end();
    let mut raw = Vec::new();
    let mut push = |event: Event<'_>| et_format::event::encode(&event, &mut raw);
    push(Event::Ticket(Ticket(6)));
    for object in (50..110).map(ObjectHash) {
        push(Event::Entry { method: MethodId(3) });
        push(Event::New { site: SiteId(1), object, class: ObjectHash(11), known: false });
        push(Event::Exit { method: MethodId(3) });
        push(Event::EntryOn { method: add, receiver: object });
        push(Event::PutField { field: FieldRefId(3), origin: ObjectHash(22), target: object, if_changed: true });
        push(Event::PutStatic { field: FieldRefId(2), target: object });
        push(Event::Exit { method: add });
    }
    let (kind, codec, first_ticket) = (BlockKind::Events, Codec::Packed, Ticket(6));
    let block = NewBlock { kind, codec, thread: 2, sequence: 99, first_ticket, wall: None };
    BlockPacker::default().write(&mut trace, block, &raw).expect("a small block");
    trace
}

/// A trace with a buffer file that has records, some of which the trace has as well.
fn journals(trace: &[u8]) -> Vec<u8> {
    const ROOM: usize = 512;
    let mut class = Vec::new();
    let record = ClassRecord { class: ObjectHash(14), signature: "Lshop/Late;".into(), ..ClassRecord::default() };
    record.encode(&mut class);
    let mut thread = Vec::new();
    ThreadRecord::End { ticket: Ticket(9), thread: 1 }.encode(&mut thread);
    let table = names().encode();
    let file = buffers::FileHeader {
        chunk_size: 128,
        chunk_count: 1,
        pid: 1,
        ticket: Ticket(9),
        run: RunId::default(),
        chunks_at: (buffers::JOURNALS_AT + buffers::JOURNALS * ROOM) as u32,
    };
    let mut bytes = [trace, &file.encode()].concat();
    bytes.resize(trace.len() + buffers::JOURNALS_AT, 0);
    let journals = [
        (2_u64, vec![(BlockKind::Names, table), (BlockKind::Threads, thread)]),
        (0, vec![(BlockKind::Classes, class), (BlockKind::Problem, b"{\"what\":\"late\",\"count\":1}".to_vec())]),
    ];
    for (first_block, entries) in journals {
        let mut used = Vec::new();
        for (kind, record) in entries {
            used.extend_from_slice(&(kind as u32).to_le_bytes());
            used.extend_from_slice(&(record.len() as u32).to_le_bytes());
            used.extend_from_slice(&record);
            used.resize(used.len().next_multiple_of(4), 0);
        }
        let end = bytes.len() + ROOM;
        bytes.extend_from_slice(&(used.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&first_block.to_le_bytes());
        bytes.extend_from_slice(&used);
        bytes.resize(end, 0);
    }
    let start = bytes.len();
    let state = buffers::STATE_OWNED;
    bytes.extend_from_slice(&buffers::ChunkHeader { state, thread: 1, sequence: 4, wall: None }.encode());
    for event in [Event::Ticket(Ticket(8)), Event::Used { object: ObjectHash(30) }] {
        et_format::event::encode(&event, &mut bytes);
    }
    bytes.resize(start + 128, 0);
    bytes
}

/// The traces as texts, with their names, and texts of others.
fn texts() -> Vec<Seed> {
    let mut all = Vec::new();
    let mut add = |name: String, text: &[u8], names: &[u8]| all.push((name, [text, names].join(crate::text::NAMES)));
    for (name, bytes) in traces().into_iter().filter(|(name, _)| !matches!(name.as_str(), "buffers" | "journals")) {
        let file = TraceFile::from_bytes(bytes, None).expect("a seed is a trace");
        let source = Source::from(Trace::from_file(file).expect("a seed is a trace"));
        let Source::Trace(trace) = &source else { continue };
        for (dialect, word) in [(Dialect::Et, "et"), (Dialect::Replayer, "replayer")] {
            for (deaths, how) in [(Deaths::Trace, "deaths"), (Deaths::None, "holders")] {
                let (mut text, mut names) = (Vec::new(), Vec::new());
                let reading = Reading { deaths, ..Reading::default() };
                let (ending, used) =
                    text_writer::write(&source, dialect, reading, &mut text).expect("a vector takes everything");
                text::write_names(trace, dialect, used.as_ref(), &ending.outcome.extra_fields, &mut names)
                    .expect("a vector takes everything");
                add(format!("{name}-{word}-{how}"), &text, &names);
            }
        }
    }
    add(
        "decimal-et".into(),
        b"C 1 A\nN 10 16 LA; 3 0 1\nN 11 16 LA; 3 1\nU 0 10 11 5 1\nD 10 1\nN 10 16 LB; 3 0 1\nD 10 1\n",
        b"C 0x1 A 0x0 I:\nS 0x9 0x1 0x3 A 0 12\n",
    );
    add(
        "hexadecimal-replayer".into(),
        b"# kind I\nN 1f 10 a 3 0 1\nU 1f 0 5 1\nM 9 1f 1\nE 9 1\nW 1f a 1\nD 1f 1 ff\n",
        b"",
    );
    all
}

#[cfg(test)]
mod tests {
    use et_reader::{births, counted};

    use super::*;

    fn trace(bytes: Vec<u8>) -> Trace {
        Trace::from_file(TraceFile::from_bytes(bytes, None).unwrap()).unwrap()
    }

    #[test]
    fn births_and_counts_are_read_as_such() {
        let (population, _) = births::read(&trace(births())).unwrap().expect("births alone");
        // Two mirrors, five objects of the first thread, and three of the second, which names one of the first's.
        assert_eq!(population.objects, 10);
        assert!(population.survival.is_some());
        // Eleven in slices, and one to 49 in a block without times.
        assert_eq!(counted::counted(&trace(counts())).0.objects, 11 + 49 * 50 / 2);
    }
}
