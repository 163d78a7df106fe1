//! Dialect `tptp`: the XML of TPTP's viewers (`docs/trcxml.xsd`), as `libet_monitor.so` writes it for programs that are
//! not traced.
//!
//! The trace does not have the time of each event. The `time` of an element is the latest known time before it: when
//! its chunk, or an earlier one in the trace, was begun.

use std::iter::Peekable;
use std::time::Duration;

use et_format::event::{ObjectHash, Ticket};
use et_format::{GcRecord, MonitorEvent, MonitorRecord};
use et_names::{MethodId, SiteId};
use et_trcxml::{Call, ClassDef, Head, HeapSizes, MethodDef, ObjectAlloc, START, ThreadStart};
use rustc_hash::{FxHashMap, FxHashSet};

use super::type_numbers::TypeNumbers;
use crate::batch::At;
use crate::record::{Alloc, AllocKind, ObjectId, Record, ThreadId};
use crate::resolve::ObjectIds;
use crate::text::starts::TPTP;
use crate::trace::{Thread, Trace};
use crate::types::{TypeId, Types, for_people};

/// Events between the records.
#[derive(Clone, Copy, Debug)]
enum Happened<'a> {
    ThreadStart(&'a Thread),
    ThreadEnd(u32),
    GcStart(&'a GcRecord),
    GcFinish(&'a GcRecord),
    Monitor(&'a MonitorRecord),
}

type Timeline<'a> = Peekable<std::vec::IntoIter<(Ticket, Happened<'a>)>>;

/// Writes element after element.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    trace: &'a Trace,
    numbers: TypeNumbers<'a>,
    classes: FxHashSet<TypeId>,
    methods: FxHashSet<MethodId>,
    threads: FxHashSet<u32>,
    ended: FxHashSet<u32>,
    /// Objects by their ids in events, if monitors were recorded.
    objects: Option<FxHashMap<ObjectHash, ObjectId>>,
    /// When threads began to wait.
    waits: FxHashMap<(u32, ObjectHash), u64>,
    /// Number of monitor events whose objects have no record, or are dead according to the records.
    untold: u64,
    timeline: Timeline<'a>,
    /// Start of the run since the Unix epoch.
    began: Duration,
    now: Duration,
}

fn timeline(trace: &Trace) -> Timeline<'_> {
    let mut all: Vec<(Ticket, Happened)> = Vec::new();
    for thread in &trace.threads {
        all.push((thread.start, Happened::ThreadStart(thread)));
        all.extend(thread.end.map(|end| (end, Happened::ThreadEnd(thread.index))));
    }
    for gc in &trace.gcs {
        all.push((gc.start, Happened::GcStart(gc)));
        all.push((gc.finish, Happened::GcFinish(gc)));
    }
    all.extend(trace.monitors.iter().map(|record| (record.ticket, Happened::Monitor(record))));
    // Events with the same ticket keep their order: a start comes before its end.
    all.sort_by_key(|(ticket, _)| *ticket);
    all.into_iter().peekable()
}

impl<'a> Writer<'a> {
    pub(super) fn new(trace: &'a Trace, numbers: TypeNumbers<'a>) -> Self {
        let began = Duration::from_millis(trace.file.meta().start_unix_millis);
        Self {
            trace,
            numbers,
            classes: FxHashSet::default(),
            methods: FxHashSet::default(),
            threads: FxHashSet::default(),
            ended: FxHashSet::default(),
            objects: (!trace.monitors.is_empty()).then(FxHashMap::default),
            waits: FxHashMap::default(),
            untold: 0,
            timeline: timeline(trace),
            began,
            now: began,
        }
    }

    /// Writes everything before the first record.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(START.as_bytes());
        out.extend_from_slice(et_trcxml::comment(TPTP).as_bytes());
        let meta = self.trace.file.meta();
        let run =
            self.trace.file.run().to_bytes().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let ids = ["node", "process", "agent"].map(|of| format!("{of}-{run}"));
        let options: Vec<String> = meta.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let head = Head {
            ids: ids.each_ref().map(String::as_str),
            host: None,
            program: &meta.command,
            pid: meta.pid,
            profiler: "Elephant Tracks",
            version: &meta.tool,
            parameters: &options.join(","),
            at: self.began,
        };
        out.extend_from_slice(head.elements().as_bytes());
    }

    /// Writes what remains after the last record.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.up_to(Ticket(u64::MAX), out);
        if self.untold > 0 {
            let line = format!("events of monitors left out, of objects without records {}", self.untold);
            out.extend_from_slice(et_trcxml::comment(&line).as_bytes());
        }
        if self.trace.file.end().is_some() {
            out.extend_from_slice(et_trcxml::trace_end(self.now).as_bytes());
        }
    }

    fn set_time(&mut self, nanos: u64) {
        self.now = self.now.max(self.began + Duration::from_nanos(nanos));
    }

    /// Writes threads and collections before a ticket.
    fn up_to(&mut self, ticket: Ticket, out: &mut Vec<u8>) {
        while let Some((_, happened)) = self.timeline.next_if(|(at, _)| *at <= ticket) {
            let text = match happened {
                Happened::ThreadStart(thread) => {
                    self.define_thread(thread.index, out);
                    continue;
                }
                Happened::ThreadEnd(thread) => {
                    if !self.ended.insert(thread) {
                        continue;
                    }
                    self.define_thread(thread, out);
                    et_trcxml::thread_end(thread, self.now)
                }
                Happened::Monitor(record) => {
                    self.set_time(record.nanos);
                    self.monitor(record, out);
                    continue;
                }
                Happened::GcStart(gc) => {
                    self.set_time(gc.start_nanos);
                    et_trcxml::gc_start(self.now)
                }
                Happened::GcFinish(gc) => {
                    self.set_time(gc.finish_nanos);
                    let sizes = HeapSizes { used: gc.heap_used, committed: gc.heap_committed };
                    et_trcxml::gc_finish(self.now, Some(sizes).filter(|sizes| sizes.committed > 0))
                }
            };
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn define_thread(&mut self, id: u32, out: &mut Vec<u8>) {
        if self.threads.insert(id) {
            let name = self.trace.thread_name(id).unwrap_or_default();
            let start = ThreadStart { id, at: self.now, name, groups: None, object: None };
            out.extend_from_slice(start.element().as_bytes());
        }
    }

    fn thread(&mut self, thread: ThreadId, out: &mut Vec<u8>) -> Option<u32> {
        let id = Some(thread.0).filter(|id| *id != 0)?;
        self.define_thread(id, out);
        Some(id)
    }

    fn class(&mut self, ty: TypeId, types: &Types, out: &mut Vec<u8>) -> u64 {
        let id = self.numbers.number(ty, types);
        if self.classes.insert(ty) {
            out.extend_from_slice(class_def(self.trace, ty, types).element(id, self.now).as_bytes());
        }
        id
    }

    fn method(&mut self, method: MethodId, types: &Types, out: &mut Vec<u8>) -> u64 {
        let id = u64::from(method.0);
        if !self.methods.contains(&method) {
            let names = &self.trace.names;
            let class = names.method_info(method).map_or(TypeId::UNKNOWN, |info| info.class);
            let class = self.class(class, types, out);
            let unknown = format!("method {id}");
            let known = self.trace.names.method(method);
            let (name, signature, line) = known.map_or((unknown.as_str(), "", 0), |(table, method)| {
                (table.str(method.name), table.str(method.descriptor), method.line)
            });
            let start_line = Some(line).filter(|line| *line > 0);
            let def = MethodDef { id, name, signature, start_line, end_line: None, class };
            out.extend_from_slice(def.element().as_bytes());
            self.methods.insert(method);
        }
        id
    }

    /// Appends a record if the format has an element for it.
    pub fn push(&mut self, out: &mut Vec<u8>, record: &Record, at: &At<'_>) {
        if let Some(ticket) = at.place.ticket() {
            self.up_to(ticket, out);
        }
        if let Some(wall) = at.place.wall() {
            self.set_time(wall.begin.0);
        }
        match *record {
            Record::Alloc(alloc) => self.alloc(&alloc, at.types, out),
            Record::Death { object, .. } => {
                if let Some(objects) = &mut self.objects
                    && objects.get(&hash_of(object)) == Some(&object)
                {
                    objects.remove(&hash_of(object));
                }
                out.extend_from_slice(et_trcxml::object_free(object.0, self.now).as_bytes());
            }
            Record::Entry { method, receiver, thread } => self.call("methodEntry", method, receiver, thread, at, out),
            Record::Exit { method, receiver, thread } | Record::ExitThrow { method, receiver, thread, .. } => {
                self.call("methodExit", method, receiver, thread, at, out);
            }
            Record::Throw { method, exception, thread, .. } => {
                self.call("throw", method, exception, thread, at, out);
            }
            Record::Handle { method, exception, thread, .. } => {
                self.call("catch", method, exception, thread, at, out);
            }
            Record::Update { .. } | Record::Use { .. } => {}
        }
    }

    /// Writes contention and waits, for objects with records.
    fn monitor(&mut self, record: &MonitorRecord, out: &mut Vec<u8>) {
        let objects = self.objects.as_ref();
        let object = objects.and_then(|objects| objects.get(&record.object)).filter(|_| record.thread != 0).copied();
        let Some(ObjectId(object)) = object else {
            self.untold += 1;
            return;
        };
        let (thread, at) = (record.thread, self.now);
        self.define_thread(thread, out);
        let text = match record.what {
            MonitorEvent::Enter { owner, .. } => {
                let owner = self.thread(ThreadId(owner), out);
                et_trcxml::contended_enter(thread, at, object, owner)
            }
            MonitorEvent::Entered => et_trcxml::contended_entered(thread, at, object),
            MonitorEvent::Wait { timeout_millis, .. } => {
                self.waits.insert((thread, record.object), record.nanos);
                et_trcxml::wait(thread, at, object, timeout_millis)
            }
            MonitorEvent::Waited { .. } => {
                // A wait that began before tracing has no time.
                let Some(began) = self.waits.remove(&(thread, record.object)) else { return };
                et_trcxml::waited(thread, at, object, record.nanos.saturating_sub(began) / 1_000_000)
            }
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn alloc(&mut self, alloc: &Alloc, types: &Types, out: &mut Vec<u8>) {
        let class = self.class(alloc.ty, types, out);
        // An object made up for one that no event refers to has no id in events.
        if let Some(objects) = self.objects.as_mut().filter(|_| alloc.object.0 < 1 << 62) {
            objects.insert(hash_of(alloc.object), alloc.object);
        }
        let object = alloc.object.0;
        let size = Some(alloc.size).filter(|size| *size > 0);
        let is_array = types.descriptor(alloc.ty).starts_with('[');
        if matches!(alloc.kind, AllocKind::Initial | AllocKind::Found) {
            return out.extend_from_slice(et_trcxml::object_def(object, class, size, is_array).as_bytes());
        }
        let thread = self.thread(alloc.thread, out);
        let site = if alloc.site == SiteId(0) { None } else { self.trace.names.site(alloc.site) };
        let method = site.map(|(table, site)| (table.method_id(site.method), site.line));
        let line = method.map(|(_, line)| line).filter(|line| *line > 0);
        let method = method.map(|(method, _)| self.method(method, types, out));
        let made = ObjectAlloc { thread, at: self.now, object, size, is_array, class, method, line };
        out.extend_from_slice(made.element().as_bytes());
    }

    fn call(
        &mut self,
        name: &str,
        method: MethodId,
        object: ObjectId,
        thread: ThreadId,
        at: &At<'_>,
        out: &mut Vec<u8>,
    ) {
        let thread = self.thread(thread, out);
        let method = self.method(method, at.types, out);
        let object = Some(object.0).filter(|id| *id != 0);
        let call = Call { thread, at: self.now, ticket: at.tick.0, method, object };
        out.extend_from_slice(et_trcxml::call(name, &call).as_bytes());
    }
}

/// The id of an object in events.
fn hash_of(object: ObjectId) -> ObjectHash {
    ObjectIds::hash(object)
}

fn class_def(trace: &Trace, ty: TypeId, types: &Types) -> ClassDef {
    let name = for_people(types.descriptor(ty));
    let Some(&class) = trace.names.classes_of(ty).first() else { return ClassDef { name, ..ClassDef::default() } };
    let index = trace.names.index_of(class);
    let (table, class, _) = trace.names.class(class);
    let fields = &table.fields[table.fields_of(index)];
    let statics = fields.iter().filter(|field| field.is_static()).count();
    ClassDef {
        name,
        source: Some(table.str(class.source_file).to_owned()).filter(|file| !file.is_empty()),
        interfaces: Some(class.interfaces.iter().map(|name| table.str(*name).replace('/', ".")).collect()),
        methods: Some(table.methods_of(index).len()),
        static_fields: Some(statics),
        instance_fields: Some(fields.len() - statics),
        access: None,
    }
}
