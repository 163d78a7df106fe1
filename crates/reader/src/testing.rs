//! Generates small traces for tests.

use std::collections::BTreeMap;

use et_format::collector::{Collected, Fate};
use et_format::dynamic::{DynamicClass, DynamicCounts};
use et_format::event::{Event, ObjectHash, Ticket, encode};
use et_format::progress::{Progress, RunId};
use et_format::{
    ArrayLayout, BlockKind, BlockPacker, ClassRecord, Codec, End, GcRecord, HeapWalk, InitialFrame, InitialObject,
    InitialReferences, Jvm, Meta, MonitorRecord, NewBlock, Problem, StackRecord, Survivors, ThreadRecord, Wall,
    encode_json, file_header, thread_flags, write_block,
};
use et_names::{
    Artifact, ArtifactKind, ClassFlags, ClassId, ClassNames, DYNAMIC_BASE, EventSet, FieldId, FieldNames,
    FieldRefNames, MethodId, MethodNames, NamesTable, SiteId, SiteNames,
};

use crate::record::{Alloc, AllocKind, ObjectId, Record, RecordKind, Slot, ThreadId};
use crate::types::TypeId;

/// A record of that kind, made from the numbers that `next` returns.
pub fn any_record(kind: RecordKind, thread: ThreadId, mut next: impl FnMut() -> u64) -> Record {
    let mut object = || ObjectId(next());
    match kind {
        RecordKind::Array | RecordKind::Initial | RecordKind::New | RecordKind::Found | RecordKind::Vm => {
            let (object, [size, ty, site, length]) = (object(), [(); 4].map(|()| next()));
            Record::Alloc(Alloc {
                kind: AllocKind::ALL.into_iter().find(|of| of.record_kind() == kind).expect("all are there"),
                object,
                size,
                ty: TypeId(ty as u32),
                site: SiteId(site as u32),
                length: length as u32,
                stack: Default::default(),
                thread,
            })
        }
        RecordKind::Update => {
            let (old, origin, target) = (object(), object(), object());
            Record::Update { old, origin, target, slot: any_slot(&mut next), thread }
        }
        RecordKind::Entry => Record::Entry { receiver: object(), method: MethodId(next() as u32), thread },
        RecordKind::Exit => Record::Exit { receiver: object(), method: MethodId(next() as u32), thread },
        RecordKind::ExitThrow | RecordKind::Throw | RecordKind::Handle => {
            let (receiver, exception, method) = (object(), object(), MethodId(next() as u32));
            match kind {
                RecordKind::ExitThrow => Record::ExitThrow { method, receiver, exception, thread },
                RecordKind::Throw => Record::Throw { method, receiver, exception, thread },
                _ => Record::Handle { method, receiver, exception, thread },
            }
        }
        RecordKind::Death => Record::Death { object: object(), thread },
        RecordKind::Use => Record::Use { object: object(), thread },
    }
}

/// A field or an element.
pub fn any_slot(next: &mut impl FnMut() -> u64) -> Slot {
    let (number, is_element) = (next() as u32, next().is_multiple_of(2));
    if is_element { Slot::Element(number) } else { Slot::Field(FieldId(number)) }
}

/// Writes a trace file block by block. The first block is a `Meta` as for a HotSpot with compressed references.
#[derive(Debug)]
pub struct TraceBuilder {
    bytes: Vec<u8>,
    sequence: u64,
    last_ticket: u64,
    event_bytes: u64,
    lost: u64,
    dynamic: Option<DynamicCounts>,
    packs_events: bool,
}

impl Default for TraceBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl TraceBuilder {
    /// Starts a trace with a `Meta` block.
    pub fn new() -> Self {
        Self::of_run(RunId::default())
    }

    /// Like [`TraceBuilder::new`], but with this run id.
    pub fn of_run(run: RunId) -> Self {
        Self::with_options(run, BTreeMap::new())
    }

    /// The same, of a run with these options.
    pub fn with_options(run: RunId, options: BTreeMap<String, String>) -> Self {
        let four = ["I", "F", "L"].map(|letter| (letter.to_owned(), 4));
        let others = [("Z", 1), ("B", 1), ("C", 2), ("S", 2), ("J", 8), ("D", 8)];
        let index_scale = others.into_iter().map(|(letter, scale)| (letter.to_owned(), scale)).chain(four);
        let index_scale: BTreeMap<_, _> = index_scale.collect();
        let meta = Meta {
            tool: "et-trace tests".into(),
            pid: 42,
            start_unix_millis: 1_700_000_000_000,
            jvm: Jvm { name: "HotSpot".into(), version: "17.0.1".into() },
            java_home: "/opt/jdk".into(),
            command: "shop.Main --fast".into(),
            id_scheme: "hashCode=0".into(),
            locked_ids: String::new(),
            array_layout: ArrayLayout {
                base_offset: index_scale.keys().map(|letter| (letter.clone(), 16)).collect(),
                index_scale,
                object_alignment: 8,
            },
            options,
            ..Meta::default()
        };
        let mut builder = Self {
            bytes: file_header(run).to_vec(),
            sequence: 0,
            last_ticket: 0,
            event_bytes: 0,
            lost: 0,
            dynamic: None,
            packs_events: false,
        };
        builder.block(BlockKind::Meta, 0, Ticket(0), &encode_json(&meta));
        builder
    }

    fn block(&mut self, kind: BlockKind, thread: u32, first: Ticket, raw: &[u8]) {
        write_block(&mut self.bytes, kind, Codec::Zstd, thread, self.sequence, first, raw).expect("a small block");
        self.sequence += 1;
    }

    /// Adds a `Names` block.
    pub fn names(&mut self, table: &NamesTable) -> &mut Self {
        self.block(BlockKind::Names, 0, Ticket(0), &table.encode());
        self
    }

    /// Adds a `Classes` block with one class.
    pub fn class(&mut self, record: &ClassRecord) -> &mut Self {
        let mut raw = Vec::new();
        record.encode(&mut raw);
        self.block(BlockKind::Classes, 0, Ticket(0), &raw);
        self
    }

    /// Adds classes that were loaded before the first event, given by mirror, instance size in bytes and signature. The first is
    /// the superclass of the others.
    pub fn loaded_classes(&mut self, classes: &[(u32, u32, &str)]) -> &mut Self {
        for (at, &(mirror, instance_size, signature)) in classes.iter().enumerate() {
            self.class(&ClassRecord {
                ticket: Ticket(0),
                class: ObjectHash(mirror),
                superclass: ObjectHash(if at == 0 { 0 } else { classes[0].0 }),
                instance_size,
                mirror_size: 120,
                signature: signature.into(),
                ..ClassRecord::default()
            });
        }
        self
    }

    /// Adds a `Classes` block with several classes.
    pub fn classes(&mut self, records: &[ClassRecord]) -> &mut Self {
        let mut raw = Vec::new();
        records.iter().for_each(|record| record.encode(&mut raw));
        self.block(BlockKind::Classes, 0, Ticket(0), &raw);
        self
    }

    /// Adds a `Threads` block with one record.
    pub fn thread(&mut self, record: &ThreadRecord) -> &mut Self {
        let mut raw = Vec::new();
        record.encode(&mut raw);
        self.block(BlockKind::Threads, 0, Ticket(0), &raw);
        self
    }

    /// Adds a `Threads` block with several records.
    pub fn threads(&mut self, records: &[ThreadRecord]) -> &mut Self {
        let mut raw = Vec::new();
        records.iter().for_each(|record| record.encode(&mut raw));
        self.block(BlockKind::Threads, 0, Ticket(0), &raw);
        self
    }

    /// Adds a thread that existed when tracing began, with its frames.
    pub fn first_thread(&mut self, thread: u32, name: &str, frames: Vec<InitialFrame>) -> &mut Self {
        self.thread(&ThreadRecord::Start {
            ticket: Ticket(0),
            thread,
            object: ObjectHash::NULL,
            flags: thread_flags::RUNNING_AT_START,
            name: name.into(),
            frames,
        })
    }

    /// Adds a `Stacks` block.
    pub fn stacks(&mut self, records: &[StackRecord]) -> &mut Self {
        let mut raw = Vec::new();
        records.iter().for_each(|record| record.encode(&mut raw));
        self.block(BlockKind::Stacks, 0, Ticket(0), &raw);
        self
    }

    /// Adds an `Events` block, including the `Ticket` with which it starts.
    pub fn events(&mut self, thread: u32, ticket: u64, events: &[Event<'_>]) -> &mut Self {
        self.events_at(thread, ticket, None, events)
    }

    /// Like [`TraceBuilder::events`], with timestamps.
    pub fn timed_events(&mut self, thread: u32, ticket: u64, wall: Wall, events: &[Event<'_>]) -> &mut Self {
        self.events_at(thread, ticket, Some(wall), events)
    }

    fn events_at(&mut self, thread: u32, ticket: u64, wall: Option<Wall>, events: &[Event<'_>]) -> &mut Self {
        let mut raw = Vec::new();
        encode(&Event::Ticket(Ticket(ticket)), &mut raw);
        for event in events {
            encode(event, &mut raw);
            if let Event::Ticket(Ticket(ticket)) = event {
                self.last_ticket = self.last_ticket.max(*ticket);
            }
        }
        self.last_ticket = self.last_ticket.max(ticket);
        self.event_bytes += raw.len() as u64;
        let first_ticket = Ticket(ticket);
        let codec = if self.packs_events { Codec::Packed } else { Codec::Zstd };
        let (kind, sequence) = (BlockKind::Events, self.sequence);
        let block = NewBlock { kind, codec, thread, sequence, first_ticket, wall };
        let mut packer = BlockPacker::default();
        if self.packs_events {
            packer.pack_all();
        }
        packer.write(&mut self.bytes, block, &raw).expect("a small block");
        self.sequence += 1;
        self
    }

    /// From now on blocks of events are packed, as those of the runtime are, however small they are.
    pub fn pack_events(&mut self) -> &mut Self {
        self.packs_events = true;
        self
    }

    /// Adds a `Gcs` block with one collection.
    pub fn gc(&mut self, record: &GcRecord) -> &mut Self {
        let mut raw = Vec::new();
        record.encode(&mut raw);
        self.block(BlockKind::Gcs, 0, Ticket(0), &raw);
        self
    }

    /// Adds a `Monitors` block.
    pub fn monitors(&mut self, records: &[MonitorRecord]) -> &mut Self {
        let mut raw = Vec::new();
        records.iter().for_each(|record| record.encode(&mut raw));
        self.block(BlockKind::Monitors, 0, Ticket(0), &raw);
        self
    }

    /// Adds what a walk through the heap found.
    pub fn survivors(&mut self, walk: HeapWalk, objects: &[u32]) -> &mut Self {
        for raw in walk.encode(objects) {
            self.survivors_block(&raw);
        }
        self
    }

    /// Adds a `Survivors` block.
    pub fn survivors_block(&mut self, raw: &[u8]) -> &mut Self {
        self.block(BlockKind::Survivors, 0, Survivors::ticket(raw), raw);
        self
    }

    /// Adds a `Collector` block: the fate of objects, found by a collection that started at ticket `by`.
    pub fn collected(&mut self, fate: Fate, by: u64, objects: &[u32]) -> &mut Self {
        self.collected_of(fate, 1, by, objects)
    }

    /// Like [`TraceBuilder::collected`], with a sampling interval of `share`.
    pub fn collected_of(&mut self, fate: Fate, share: u32, by: u64, objects: &[u32]) -> &mut Self {
        let mut raw = Vec::new();
        let objects = objects.iter().copied().map(ObjectHash).collect();
        Collected { fate, share, by: Ticket(by), objects }.encode(&mut raw);
        self.block(BlockKind::Collector, 0, Ticket(0), &raw);
        self
    }

    /// Adds an `InitialObjects` block.
    pub fn initial_objects(&mut self, objects: &[InitialObject]) -> &mut Self {
        let mut raw = Vec::new();
        objects.iter().for_each(|object| object.encode(&mut raw));
        self.block(BlockKind::InitialObjects, 0, Ticket(0), &raw);
        self
    }

    /// Adds an `InitialReferences` block.
    pub fn initial_references(&mut self, references: &InitialReferences) -> &mut Self {
        let mut raw = Vec::new();
        references.encode(&mut raw);
        self.block(BlockKind::InitialReferences, 0, Ticket(0), &raw);
        self
    }

    /// Adds a `Problem` block.
    pub fn problem(&mut self, what: &str, count: u64) -> &mut Self {
        self.block(BlockKind::Problem, 0, Ticket(0), &encode_json(&Problem { what: what.into(), count }));
        self
    }

    /// Adds a `Progress` block.
    pub fn progress(&mut self, progress: &Progress) -> &mut Self {
        self.block(BlockKind::Progress, 0, Ticket(0), &progress.json());
        self
    }

    /// Adds a `DynamicClasses` block: mirrors, and ids of classes.
    pub fn dynamic_classes(&mut self, classes: &[(u32, u32)]) -> &mut Self {
        let mut raw = Vec::new();
        for &(mirror, class) in classes {
            DynamicClass { mirror: ObjectHash(mirror), class: ClassId(class) }.encode(&mut raw);
        }
        self.block(BlockKind::DynamicClasses, 0, Ticket(0), &raw);
        self
    }

    /// Sets the counts in the `End` block.
    pub fn dynamic(&mut self, counts: DynamicCounts) -> &mut Self {
        self.dynamic = Some(counts);
        self
    }

    /// Sets the number of lost events in the `End` block.
    pub fn lost(&mut self, events: u64) -> &mut Self {
        self.lost = events;
        self
    }

    /// Returns the file as a killed program leaves it.
    pub fn without_end(&mut self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Returns the file with its `End` block.
    pub fn finish(&mut self) -> Vec<u8> {
        let end = End {
            reason: "VMDeath".into(),
            end_ticket: Ticket(self.last_ticket),
            event_bytes: self.event_bytes,
            blocks: self.sequence + 1,
            lost_events: self.lost,
            seconds: 1.5,
            events: None,
            discarded_bytes: None,
            writer_cpu_seconds: None,
            packing: None,
            dynamic: self.dynamic,
        };
        self.block(BlockKind::End, 0, Ticket(0), &encode_json(&end));
        self.bytes.clone()
    }
}

/// Creates a names table with classes made by [`class`].
pub fn table(name: &str, base: u32, classes: &[ClassNames]) -> NamesTable {
    let kind = match base {
        1 => ArtifactKind::Jdk,
        DYNAMIC_BASE.. => ArtifactKind::Dynamic,
        _ => ArtifactKind::Application,
    };
    let mut table =
        NamesTable::new(Artifact { hash: u64::from(base), base, name: name.into(), kind, events: EventSet::ALL });
    classes.iter().for_each(|class| table.push(class));
    table
}

/// Creates a class with methods, each given as `name descriptor`, with `static` before it for a static one.
pub fn class(name: &str, super_name: &str, methods: &[&str]) -> ClassNames {
    let methods = methods
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let (is_static, text) = text.strip_prefix("static ").map_or((false, *text), |text| (true, text));
            let (name, descriptor) = text.split_once(' ').unwrap_or((text, "()V"));
            MethodNames {
                name: name.into(),
                descriptor: descriptor.into(),
                access: if is_static { 8 } else { 0 },
                line: 10 * (index as u32 + 1),
            }
        })
        .collect();
    ClassNames { name: name.into(), super_name: super_name.into(), methods, ..ClassNames::default() }
}

/// Adds to a class what [`class`] leaves out.
pub trait ClassNamesExt: Sized {
    /// Adds fields, each given as `name descriptor`, with `static` before it for a static one, and a reference to each.
    fn with_fields(self, fields: &[&str]) -> Self;
    /// Adds sites: index of the method, descriptor of the allocated type, line.
    fn with_sites(self, sites: &[(u32, &str, u32)]) -> Self;
    fn not_hooked(self) -> Self;
}

impl ClassNamesExt for ClassNames {
    fn with_fields(mut self, fields: &[&str]) -> Self {
        for text in fields {
            let (is_static, text) = text.strip_prefix("static ").map_or((false, *text), |text| (true, text));
            let (name, descriptor) = text.split_once(' ').unwrap_or((text, "Ljava/lang/Object;"));
            self.fields.push(FieldNames {
                name: name.into(),
                descriptor: descriptor.into(),
                access: if is_static { 8 } else { 0 },
            });
            self.field_refs.push(FieldRefNames {
                class: self.name.clone(),
                name: name.into(),
                descriptor: descriptor.into(),
                is_static,
            });
        }
        self
    }

    fn with_sites(mut self, sites: &[(u32, &str, u32)]) -> Self {
        self.sites.extend(sites.iter().map(|&(method, descriptor, line)| SiteNames {
            method,
            descriptor: descriptor.into(),
            dimensions: descriptor.bytes().take_while(|&byte| byte == b'[').count() as u8,
            line,
        }));
        self
    }

    fn not_hooked(mut self) -> Self {
        self.flags = ClassFlags(self.flags.0 | ClassFlags::NOT_HOOKED);
        self
    }
}
