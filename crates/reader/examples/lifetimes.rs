//! Generates large traces, and measures the cost of computing deaths.
//!
//! ```text
//! cargo run --release -p et-reader --example lifetimes -- make big.ettrace 10000000 100000
//! cargo run --release -p et-reader --example lifetimes -- measure big.ettrace
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use et_format::event::{Event, ObjectHash, Ticket, encode};
use et_format::progress::RunId;
use et_format::{
    ArrayLayout, BlockKind, ClassRecord, Codec, End, Meta, ThreadRecord, encode_json, file_header, write_block,
};
use et_names::{
    Artifact, ArtifactKind, ClassNames, EventSet, FieldNames, FieldRefId, FieldRefNames, MethodId, MethodNames,
    NamesTable, SiteId, SiteNames,
};
use et_reader::record::Record;
use et_reader::source::{Reading, Source};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["make", file, records, live] => make(file, records.parse()?, live.parse()?),
        ["measure", file] => measure(file),
        _ => Err("make FILE RECORDS LIVE-OBJECTS, or measure FILE".into()),
    }
}

const NODE: ObjectHash = ObjectHash(1);
const NODE_BYTES: u32 = 32;

/// The output file, written block by block.
struct Output {
    out: BufWriter<File>,
    sequence: u64,
}

impl Output {
    fn block(&mut self, kind: BlockKind, thread: u32, ticket: u64, raw: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        write_block(&mut bytes, kind, Codec::Packed, thread, self.sequence, Ticket(ticket), raw)?;
        self.sequence += 1;
        Ok(self.out.write_all(&bytes)?)
    }
}

fn names() -> NamesTable {
    let artifact =
        Artifact { hash: 1, base: 1, name: "synthetic".into(), kind: ArtifactKind::Application, events: EventSet::ALL };
    let mut table = NamesTable::new(artifact);
    let object = "Ljava/lang/Object;";
    let method = |name: &str, access| MethodNames { name: name.into(), descriptor: "()V".into(), access, line: 1 };
    let field = |name: &str, access| FieldNames { name: name.into(), descriptor: object.into(), access };
    let field_ref = |name: &str, is_static| FieldRefNames {
        class: "Node".into(),
        name: name.into(),
        descriptor: object.into(),
        is_static,
    };
    let site =
        |descriptor: &str, dimensions| SiteNames { method: 1, descriptor: descriptor.into(), dimensions, line: 2 };
    table.push(&ClassNames {
        name: "Node".into(),
        methods: vec![method("<init>", 0), method("work", 0), method("main", 8)],
        fields: vec![field("next", 0), field("table", 8)],
        field_refs: vec![field_ref("next", false), field_ref("table", true)],
        sites: vec![site("LNode;", 0), site("[Ljava/lang/Object;", 1)],
        ..ClassNames::default()
    });
    table
}

/// Simulates a table of `live` linked chains: one chain after the other is replaced, and short-lived objects are
/// allocated in between. Nine in ten records are entries and exits, as in real programs.
fn make(file: &str, records: u64, live: u32) -> Result<()> {
    let mut output = Output { out: BufWriter::new(File::create(file)?), sequence: 0 };
    output.out.write_all(&file_header(RunId::random()))?;
    let layout = ArrayLayout {
        base_offset: [("L".to_owned(), 16)].into(),
        index_scale: [("L".to_owned(), 4)].into(),
        object_alignment: 8,
    };
    let meta = Meta { tool: "synthetic".into(), array_layout: layout, ..Meta::default() };
    output.block(BlockKind::Meta, 0, 0, &encode_json(&meta))?;
    output.block(BlockKind::Names, 0, 0, &names().encode())?;
    let mut raw = Vec::new();
    let class =
        ClassRecord { class: NODE, instance_size: NODE_BYTES, signature: "LNode;".into(), ..Default::default() };
    class.encode(&mut raw);
    output.block(BlockKind::Classes, 0, 0, &raw)?;

    const THREADS: u32 = 2;
    let mut made = 1u32;
    // Scattered like identity hashes, without duplicates.
    let mut fresh = || {
        made += 1;
        ObjectHash(made.wrapping_mul(0x9E37_79B1) & 0x7fff_ffff).max(ObjectHash(2))
    };
    let mut random = 1u64;
    let mut draw = |below: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % u64::from(below)) as u32
    };
    let (init, work, main) = (MethodId(1), MethodId(2), MethodId(3));
    let (next, table_field) = (FieldRefId(1), FieldRefId(2));
    let table = fresh();
    let mut written = 0;
    let mut ticket = 0u64;
    let mut buffers = vec![Vec::new(); THREADS as usize];
    let mut firsts = [0u64; THREADS as usize];
    while written < records {
        let thread = draw(THREADS) as usize;
        let buffer: &mut Vec<u8> = &mut buffers[thread];
        ticket += 1;
        if buffer.is_empty() {
            firsts[thread] = ticket;
        }
        let mut put = |event: Event| {
            encode(&event, buffer);
            written += u64::from(!matches!(event, Event::Ticket(_)));
        };
        put(Event::Ticket(Ticket(ticket)));
        if ticket == 1 {
            put(Event::NewArray { depth: 0, site: SiteId(2), object: table, length: live });
            put(Event::PutStatic { field: table_field, target: table });
        }
        put(Event::Entry { method: main });
        let head = fresh();
        let mut last = head;
        for link in 0..4 {
            let node = if link == 0 { head } else { fresh() };
            put(Event::Entry { method: init });
            put(Event::New { site: SiteId(1), object: node, class: NODE, known: false });
            put(Event::Exit { method: init });
            for _ in 0..10 {
                put(Event::EntryOn { method: work, receiver: node });
                put(Event::Exit { method: work });
            }
            if link > 0 {
                put(Event::PutField { field: next, origin: last, target: node, if_changed: false });
            }
            last = node;
        }
        // Every second chain dies young.
        if draw(2) == 0 {
            put(Event::PutElement { index: draw(live), array: table, target: head });
        }
        put(Event::Exit { method: main });
        if buffer.len() > 1 << 19 {
            let raw = std::mem::take(buffer);
            output.block(BlockKind::Events, thread as u32 + 1, firsts[thread], &raw)?;
        }
    }
    for (thread, raw) in buffers.iter().enumerate() {
        let thread = thread as u32 + 1;
        if !raw.is_empty() {
            output.block(BlockKind::Events, thread, firsts[thread as usize - 1], raw)?;
        }
        let mut end = Vec::new();
        ThreadRecord::End { ticket: Ticket(ticket + 1), thread }.encode(&mut end);
        output.block(BlockKind::Threads, 0, 0, &end)?;
    }
    output.block(BlockKind::End, 0, 0, &encode_json(&End { reason: "VMDeath".into(), ..End::default() }))?;
    Ok(output.out.flush()?)
}

/// Peak memory usage of this process in bytes.
fn peak_memory() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

fn measure(file: &str) -> Result<()> {
    let source = Source::open(Path::new(file), None)?;
    let (mut records, mut deaths) = (0u64, 0u64);
    let (mut live, mut most, mut sizes) = (0u64, 0u64, std::collections::HashMap::new());
    let begin = Instant::now();
    let ending = source.for_each(Reading::default(), |record, _| {
        records += 1;
        match record {
            Record::Alloc(alloc) => {
                live += alloc.size;
                most = most.max(live);
                sizes.insert(alloc.object, alloc.size);
            }
            Record::Death { object, .. } => {
                deaths += 1;
                live -= sizes.remove(object).unwrap_or(0);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let (peak, cost) = (peak_memory()?, ending.cost.unwrap_or_default());
    println!(
        "{records} records, {deaths} deaths, {seconds:.1} s, {:.2} million records/s; largest live heap {} MiB, \
         peak memory {} MiB ({:.2} times); at most {} objects kept, temporary file {} MiB",
        records as f64 / seconds / 1e6,
        most >> 20,
        peak >> 20,
        peak as f64 / most.max(1) as f64,
        cost.most_objects,
        cost.spool_bytes >> 20,
    );
    Ok(())
}
