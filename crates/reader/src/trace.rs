//! A trace file with everything that explains its events.

use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;

use et_format::dynamic::DynamicClass;
use et_format::event::{ObjectHash, Ticket};
use et_format::progress::OVERFLOWS;
use et_format::{
    BlockKind, ClassRecord, GcRecord, InitialObject, InitialReferences, MonitorRecord, Problem, StackRecord,
    ThreadRecord, thread_flags,
};
use et_names::{DecodeError, EventSet, MOST_UNPACKED, MethodId, NamesTable};
use rustc_hash::FxHashMap;

use crate::classes::{Class, Classes};
use crate::dynamic;
use crate::file::{ReadError, TraceFile};
use crate::names::Names;
use crate::stacks::StackTable;
use crate::types::Types;

/// A frame that was on a stack when tracing began.
#[derive(Clone, Copy, Debug)]
pub struct StartFrame {
    pub method: MethodId,
    /// Receiver; null for a static method, or if unknown.
    pub receiver: ObjectHash,
}

/// A thread of the run.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Thread index.
    pub index: u32,
    /// Its name when it started; empty if unknown.
    pub name: String,
    /// Its `Thread` object.
    pub object: ObjectHash,
    pub is_daemon: bool,
    /// Whether it was running before tracing began.
    pub from_start: bool,
    /// When it started.
    pub start: Ticket,
    /// When it ended; `None` if it ran to the end of the trace, or ended the program.
    pub end: Option<Ticket>,
    /// Its hooked frames when tracing began, outermost first.
    pub frames: Vec<StartFrame>,
}

/// An open trace. Copies share what is large.
#[derive(Clone, Debug)]
pub struct Trace {
    pub file: TraceFile,
    pub types: Arc<Types>,
    pub names: Arc<Names>,
    pub classes: Arc<Classes>,
    /// Threads in order of their indexes.
    pub threads: Vec<Thread>,
    pub gcs: Vec<GcRecord>,
    /// Monitor events in order of their tickets; empty without `monitors=on`.
    pub monitors: Vec<MonitorRecord>,
    pub problems: Vec<Problem>,
    /// Call stacks of allocations; empty unless there are hooks for them.
    pub stacks: Arc<StackTable>,
    /// The events that all classes of the run have hooks for.
    pub events: EventSet,
}

/// Maximum total length in bytes of all uncompressed names, given their stored length: a trace of a few megabytes must
/// not be able to claim the whole memory. What the runtime writes stays below a tenth of it.
fn most_names(stored: u64) -> usize {
    const EXPANSION: u64 = 64;
    // Tables of one artifact are joined, and offsets into their text have 32 bits.
    const MOST: u64 = 2 << 30;
    usize::try_from((MOST_UNPACKED as u64 + stored.saturating_mul(EXPANSION)).min(MOST)).unwrap_or(usize::MAX)
}

impl Trace {
    /// Opens a trace; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::from_file(TraceFile::open(path)?)
    }

    /// Reads everything that explains the events.
    pub fn from_file(file: TraceFile) -> Result<Self, ReadError> {
        let mut types = Types::default();
        let mut tables = Vec::new();
        let stored = file.of_kind(BlockKind::Names).map(|block| u64::from(block.header.stored_len)).sum();
        let mut left = most_names(stored);
        let mut left_out = 0;
        for block in file.of_kind(BlockKind::Names) {
            match NamesTable::decode_within(&file.unpack(block)?, &mut left) {
                Ok(table) => tables.push(table),
                Err(DecodeError::TooMuch) => left_out += 1,
                Err(source) => {
                    let (path, sequence) = (file.path().to_owned(), block.header.sequence);
                    return Err(ReadError::Names { path, sequence, source });
                }
            }
        }
        let recovered = file.recovered(BlockKind::Names);
        tables.extend(recovered.filter_map(|raw| NamesTable::decode_within(raw, &mut left).ok()));
        let mut tables = NamesTable::join(tables);
        let mut classes = Classes::new(all(&file, BlockKind::Classes, ClassRecord::decode_block)?, &mut types);
        let links = all(&file, BlockKind::DynamicClasses, DynamicClass::decode_block)?;
        let origins = dynamic::link(&mut tables, &mut classes, &links);
        let mut names = Names::new(tables, &mut types);
        names.set_origins(&origins);
        let threads = threads(all(&file, BlockKind::Threads, ThreadRecord::decode_block)?, &file, &names, &types);
        let gcs = all(&file, BlockKind::Gcs, GcRecord::decode_block)?;
        let mut monitors = all(&file, BlockKind::Monitors, MonitorRecord::decode_block)?;
        // Threads write them in any order.
        monitors.sort_by_key(|record| record.ticket);
        let stacks = Arc::new(StackTable::new(all(&file, BlockKind::Stacks, StackRecord::decode_block)?, &names));
        let mut problems = file.problems()?;
        if left_out > 0 {
            let what = "tables of names that are too large for so small a trace, and left out";
            problems.push(Problem { what: what.to_owned(), count: left_out });
        }
        // At a proper end the runtime writes it as a problem.
        let overflows = file.last_known().map_or(0, |progress| progress.overflows);
        if overflows > 0 {
            problems.push(Problem { what: OVERFLOWS.to_owned(), count: overflows });
        }
        let events = events(&names, &classes, &types);
        // There are mirrors even if no class with a names table was loaded.
        types.intern_class("java/lang/Class");
        let (names, classes) = (Arc::new(names), Arc::new(classes));
        Ok(Self { file, types: Arc::new(types), names, classes, threads, gcs, monitors, problems, stacks, events })
    }

    /// Whether the trace counts allocations and tells of no single objects (`counts=1s`).
    pub fn only_counts(&self) -> bool {
        self.file.meta().options.get("counts").is_some_and(|slice| !slice.is_empty() && slice != "off")
    }

    /// Calls `visit` for each initial object.
    pub(crate) fn initial_objects(&self, mut visit: impl FnMut(&InitialObject)) -> Result<(), ReadError> {
        for block in self.file.of_kind(BlockKind::InitialObjects) {
            let records = InitialObject::decode_block(&self.file.unpack(block)?)
                .map_err(|source| self.file.block_error(block, source))?;
            records.iter().for_each(&mut visit);
        }
        for raw in self.file.recovered(BlockKind::InitialObjects) {
            InitialObject::decode_block(raw).unwrap_or_default().iter().for_each(&mut visit);
        }
        Ok(())
    }

    /// Calls `visit` for each block of initial references.
    pub(crate) fn initial_references(&self, mut visit: impl FnMut(&InitialReferences)) -> Result<(), ReadError> {
        for block in self.file.of_kind(BlockKind::InitialReferences) {
            let records = InitialReferences::decode_block(&self.file.unpack(block)?)
                .map_err(|source| self.file.block_error(block, source))?;
            visit(&records);
        }
        for raw in self.file.recovered(BlockKind::InitialReferences) {
            InitialReferences::decode_block(raw).iter().for_each(&mut visit);
        }
        Ok(())
    }

    /// Classes of the run without hooks, except arrays and the classes of the hooks: classes created at run time and
    /// not instrumented, excluded classes, and classes of artifacts that were not instrumented.
    pub fn not_instrumented(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter().filter(|class| {
            let signature = &class.record.signature;
            signature.starts_with('L')
                && !signature.starts_with(HEAP_PROXY)
                && !class.has_table
                && !self.names.is_hooked(class.ty)
                && !class.file_ty.is_some_and(|ty| self.names.is_hooked(ty))
        })
    }

    /// The thread with that index.
    pub fn thread(&self, index: u32) -> Option<&Thread> {
        // Indexes are consecutive from 1 on; only in a cut-off trace some are missing.
        let likely = self.threads.get((index as usize).wrapping_sub(1)).filter(|thread| thread.index == index);
        likely.or_else(|| {
            let place = self.threads.binary_search_by_key(&index, |thread| thread.index).ok()?;
            self.threads.get(place)
        })
    }

    /// Name of a thread, for display; `None` if it has none.
    pub fn thread_name(&self, index: u32) -> Option<&str> {
        self.thread(index).map(|thread| thread.name.as_str())
    }
}

/// Beginning of the descriptors of the classes that contain the hooks.
const HEAP_PROXY: &str = "Ljava/lang/HeapProxy";

/// The events that all artifacts with a class in the run have hooks for. Tables are found everywhere on the class path,
/// so there may be others.
fn events(names: &Names, classes: &Classes, types: &Types) -> EventSet {
    let ran = |table: &NamesTable| {
        let mut types = table.classes.iter().filter_map(|class| types.get_class(table.str(class.name)));
        types.any(|ty| classes.of_type(ty).is_some())
    };
    let less = names.tables().filter(|table| !table.artifact.events.has(EventSet::ALL) && ran(table));
    less.fold(EventSet::ALL, |events, table| events.and(table.artifact.events))
}

fn all<T>(
    file: &TraceFile,
    kind: BlockKind,
    decode: impl Fn(&[u8]) -> Result<Vec<T>, et_format::FormatError>,
) -> Result<Vec<T>, ReadError> {
    let mut records = Vec::new();
    for block in file.of_kind(kind) {
        records.extend(decode(&file.unpack(block)?).map_err(|source| file.block_error(block, source))?);
    }
    // What cannot be decoded was already counted when the file was opened.
    records.extend(file.recovered(kind).filter_map(|raw| decode(raw).ok()).flatten());
    Ok(records)
}

fn threads(records: Vec<ThreadRecord>, file: &TraceFile, names: &Names, types: &Types) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut places: FxHashMap<u32, usize> = FxHashMap::default();
    for record in records {
        match record {
            ThreadRecord::Start { ticket, thread, object, flags, name, frames } => {
                let Entry::Vacant(place) = places.entry(thread) else { continue };
                place.insert(threads.len());
                let frames = frames
                    .iter()
                    .filter_map(|frame| {
                        let method = names.hooked_method(&frame.class, &frame.method, &frame.descriptor, types)?;
                        Some(StartFrame { method, receiver: frame.receiver })
                    })
                    .collect();
                threads.push(Thread {
                    index: thread,
                    name,
                    object,
                    is_daemon: flags & thread_flags::DAEMON != 0,
                    from_start: flags & thread_flags::RUNNING_AT_START != 0,
                    start: ticket,
                    end: None,
                    frames,
                });
            }
            ThreadRecord::End { ticket, thread } => {
                if let Some(&place) = places.get(&thread) {
                    threads[place].end = Some(ticket);
                }
            }
        }
    }
    // A cut-off trace may have events of threads without a record.
    for events in file.threads() {
        if !places.contains_key(&events.thread) {
            threads.push(Thread {
                index: events.thread,
                name: String::new(),
                object: ObjectHash::NULL,
                is_daemon: false,
                from_start: false,
                start: Ticket(0),
                end: None,
                frames: Vec::new(),
            });
        }
    }
    threads.sort_by_key(|thread| thread.index);
    threads
}
