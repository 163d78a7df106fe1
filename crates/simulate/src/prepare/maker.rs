//! Operations from the records of a trace.

use et_names::{FieldId, SiteId};
use et_reader::batch::At;
use et_reader::model::{Heap, Node};
use et_reader::record::{Alloc, AllocKind, LARGEST, ObjectId, Record, Slot, ThreadId};
use et_reader::source::Source;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Wanted;
use super::slots::Slots;
use crate::ops::{ClassKind, Op, OpsError, OpsWriter, Peak, Site, Tables, Totals};

/// Minimum size of an object in bytes.
const LEAST: u64 = 16;
/// Minimum array header in bytes: with compact headers elements begin here.
const SMALLEST_HEADER: u64 = 12;
/// Maximum number of operations between two ticks.
const TICK_EVERY: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Alive,
    /// Reported as dead by the current group of deaths.
    Dying,
    /// Dead in the trace, but still referenced; its death is postponed.
    PutOff,
}

#[derive(Clone, Copy, Debug)]
struct Data {
    class: u32,
    /// Length of a reference array; 0 for other objects, whose slots are those of the class.
    slots: u32,
    size: u64,
    /// Number of references to it.
    incoming: u32,
    state: State,
}

/// Writes the operations. A handle is the object's place in the heap, from 1.
pub struct Maker<'a> {
    source: &'a Source,
    wanted: Wanted,
    out: OpsWriter,
    slots: Slots<'a>,
    heap: Heap<Data>,
    static_fields: FxHashMap<FieldId, u32>,
    threads: FxHashMap<ThreadId, u32>,
    thread_ids: Vec<u32>,
    thread: Option<ThreadId>,
    sites: FxHashSet<SiteId>,
    /// Reported as dead and not yet buried: objects that die together may refer to each other.
    dying: Vec<(ObjectId, ThreadId)>,
    totals: Totals,
    handles: u32,
    alive: crate::ops::Amount,
    tick: u64,
    told_tick: u64,
    next_tick: u64,
    /// The object touched last, if nothing else has happened since.
    touched: Option<Node>,
    /// Reusable buffer for the targets of an object.
    held: Vec<Node>,
}

impl<'a> Maker<'a> {
    pub fn new(source: &'a Source, wanted: Wanted, out: OpsWriter) -> Self {
        Self {
            source,
            wanted,
            out,
            slots: Slots::new(source),
            heap: Heap::default(),
            static_fields: FxHashMap::default(),
            threads: FxHashMap::default(),
            thread_ids: Vec::new(),
            thread: None,
            sites: FxHashSet::default(),
            dying: Vec::new(),
            totals: Totals::default(),
            handles: 0,
            alive: crate::ops::Amount::default(),
            tick: 0,
            told_tick: 0,
            next_tick: 0,
            touched: None,
            held: Vec::new(),
        }
    }

    #[inline]
    pub fn record(&mut self, record: &Record, at: &At<'_>) -> Result<(), OpsError> {
        if let Record::Death { object, thread } = *record {
            self.tick = at.tick.0;
            self.dying.push((object, thread));
            return Ok(());
        }
        if !self.dying.is_empty() {
            self.bury()?;
        }
        self.tick = at.tick.0;
        match *record {
            Record::Alloc(alloc) => self.alloc(&alloc, at),
            Record::Update { origin, slot, target, thread, .. } => self.store(origin, slot, target, Some(thread)),
            Record::Entry { receiver, thread, .. } => self.touch(receiver, thread),
            Record::Use { object, thread } => self.touch(object, thread),
            Record::Exit { .. }
            | Record::ExitThrow { .. }
            | Record::Throw { .. }
            | Record::Handle { .. }
            // Waits in `dying`.
            | Record::Death { .. } => Ok(()),
        }
    }

    /// Sets a slot's target at the beginning of tracing.
    pub fn initial(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> Result<(), OpsError> {
        self.bury()?;
        self.store(origin, slot, target, None)
    }

    /// Writes a thread switch or a tick if one is due.
    #[inline]
    fn by(&mut self, thread: ThreadId) -> Result<(), OpsError> {
        if self.thread != Some(thread) {
            self.switch(thread)?;
        }
        let is_due = self.wanted.every_tick || self.out.operations() >= self.next_tick;
        if is_due && self.tick != self.told_tick {
            self.totals.ticks += 1;
            self.told_tick = self.tick;
            self.out.push(Op::Tick { tick: self.tick })?;
            self.next_tick = self.out.operations() + TICK_EVERY;
        }
        Ok(())
    }

    #[cold]
    fn switch(&mut self, thread: ThreadId) -> Result<(), OpsError> {
        self.thread = Some(thread);
        self.totals.thread_switches += 1;
        let ids = &mut self.thread_ids;
        let number = *self.threads.entry(thread).or_insert_with(|| {
            ids.push(thread.0);
            ids.len() as u32 - 1
        });
        self.out.push(Op::Thread { thread: number })
    }

    fn alloc(&mut self, alloc: &Alloc, at: &At<'_>) -> Result<(), OpsError> {
        let Alloc { kind, object, size, ty, site, mut length, thread, stack: _ } = *alloc;
        self.by(thread)?;
        self.touched = None;
        let mut class = self.slots.class(ty, || at.types.descriptor(ty).to_owned());
        let layout = self.out.layout();
        if (1..layout.array_bytes(length)).contains(&size) && self.slots.is_guess(class) {
            if size < SMALLEST_HEADER + u64::from(layout.reference_bytes) * u64::from(length) {
                class = self.slots.numbers(ty, class);
            } else {
                // Reference elements if the VM's headers are compact, otherwise primitive ones: the recorded size
                // holds.
                length = layout.elements(size);
            }
        }
        let known = self.slots.get(class);
        let slots = if known.kind == ClassKind::References { length } else { 0 };
        let size = match (size, known.kind) {
            (0, kind) => {
                self.totals.sizes_unknown += 1;
                let elements = if kind == ClassKind::Scalar { 0 } else { length };
                layout.array_bytes(elements).max(LEAST)
            }
            // The elements must fit.
            (size, ClassKind::References) if size < layout.array_bytes(length) => {
                self.totals.sizes_unknown += 1;
                layout.array_bytes(length)
            }
            // An absurd size is refused below.
            (size, _) => size.checked_next_multiple_of(8).unwrap_or(u64::MAX).max(LEAST),
        };
        if size > LARGEST {
            return Err(OpsError::TooLarge(size));
        }
        let node = self.heap.insert(object, Data { class, slots, size, incoming: 0, state: State::Alive });
        let handle = node.0 + 1;
        self.handles = self.handles.max(handle);
        if site.0 != 0 {
            self.sites.insert(site);
        }
        let initial = kind == AllocKind::Initial;
        let birth = Op::Birth { handle, class, size, slots, site: site.0, initial };
        self.out.birth(&birth, self.slots.get(class))?;
        self.totals.births += 1;
        self.totals.allocated.add(size);
        if initial {
            self.totals.initial.add(size);
        }
        self.alive.add(size);
        if self.alive.bytes > self.totals.peak.bytes {
            let operation = self.out.operations() - 1;
            self.totals.peak = Peak { bytes: self.alive.bytes, objects: self.alive.objects, operation };
        }
        Ok(())
    }

    #[inline]
    fn touch(&mut self, object: ObjectId, thread: ThreadId) -> Result<(), OpsError> {
        if !self.wanted.touches {
            return Ok(());
        }
        let Some(node) = self.heap.node(object) else { return Ok(()) };
        if self.touched == Some(node) && self.thread == Some(thread) {
            return Ok(());
        }
        self.by(thread)?;
        self.touched = Some(node);
        self.totals.touches += 1;
        self.out.push(Op::Touch { handle: node.0 + 1 })
    }

    fn store(
        &mut self,
        origin: ObjectId,
        slot: Slot,
        target: ObjectId,
        thread: Option<ThreadId>,
    ) -> Result<(), OpsError> {
        let to = self.heap.node(target);
        let target_handle = to.map_or(0, |node| node.0 + 1);
        self.touched = None;
        let op;
        let old = if origin.is_null() {
            let next = self.static_fields.len() as u32;
            let field = *self.static_fields.entry(FieldId(slot.number())).or_insert(next);
            self.totals.static_updates += 1;
            op = Op::UpdateStatic { field, target: target_handle };
            self.heap.put(origin, Slot::Field(FieldId(field)), target)
        } else {
            let place = self.heap.node(origin).and_then(|node| {
                let data = self.heap.get(node).data;
                let slot = match (self.slots.get(data.class).kind, slot) {
                    (ClassKind::References, Slot::Element(index)) => (index < data.slots).then_some(slot)?,
                    (ClassKind::Scalar, Slot::Field(field)) => Slot::Field(FieldId(self.slots.slot(data.class, field))),
                    _ => return None,
                };
                Some((node.0 + 1, slot))
            });
            let Some((origin_handle, slot)) = place else {
                self.totals.left_out += 1;
                return Ok(());
            };
            self.totals.updates += 1;
            op = Op::Update { origin: origin_handle, slot: slot.number(), target: target_handle };
            self.heap.put(origin, slot, target)
        };
        if let Some(thread) = thread {
            self.by(thread)?;
        }
        self.out.push(op)?;
        if let Some(to) = to {
            self.heap.data(to).incoming += 1;
        }
        match old {
            Some(old) => self.dropped(old),
            None => Ok(()),
        }
    }

    /// Decrements the reference count.
    #[inline]
    fn dropped(&mut self, node: Node) -> Result<(), OpsError> {
        let data = self.heap.data(node);
        data.incoming -= 1;
        if data.state == State::PutOff && data.incoming == 0 { self.release(node) } else { Ok(()) }
    }

    /// Buries the objects reported as dead, except those that a live object refers to: these wait until the last such
    /// reference is gone.
    fn bury(&mut self) -> Result<(), OpsError> {
        if self.dying.is_empty() {
            return Ok(());
        }
        self.touched = None;
        let mut dying = std::mem::take(&mut self.dying);
        let mut nodes: Vec<(Node, ThreadId)> = Vec::with_capacity(dying.len());
        for (object, thread) in dying.drain(..) {
            if let Some(node) = self.heap.forget(object) {
                self.heap.data(node).state = State::Dying;
                nodes.push((node, thread));
            }
        }
        self.dying = dying;
        for &(node, _) in &nodes {
            self.each_held(node, |data| data.incoming -= 1);
        }
        if nodes.iter().any(|&(node, _)| self.heap.get(node).data.incoming > 0) {
            self.put_off(&nodes);
        }
        let mut is_released = false;
        for &(node, thread) in &nodes {
            if self.heap.get(node).data.state == State::Dying {
                self.by(thread)?;
                self.end(node, |data| is_released |= data.state == State::PutOff && data.incoming == 0)?;
            }
        }
        if is_released { self.release_all() } else { Ok(()) }
    }

    /// Calls `change` for each object that this one refers to.
    fn each_held(&mut self, node: Node, mut change: impl FnMut(&mut Data)) {
        let mut held = std::mem::take(&mut self.held);
        self.heap.get(node).refs().for_each(|target| held.push(target));
        for target in held.drain(..) {
            change(self.heap.data(target));
        }
        self.held = held;
    }

    /// Postpones the deaths of those nodes that are still referenced; references among dying objects do not count.
    #[cold]
    fn put_off(&mut self, nodes: &[(Node, ThreadId)]) {
        let is_held = |heap: &Heap<Data>, node: Node| heap.get(node).data.incoming > 0;
        let mut stay: Vec<Node> =
            nodes.iter().map(|&(node, _)| node).filter(|&node| is_held(&self.heap, node)).collect();
        for &node in &stay {
            self.heap.data(node).state = State::PutOff;
        }
        while let Some(node) = stay.pop() {
            self.totals.put_off += 1;
            let mut held = Vec::new();
            self.heap.get(node).refs().for_each(|target| held.push(target));
            for target in held {
                let data = self.heap.data(target);
                data.incoming += 1;
                if data.state == State::Dying {
                    data.state = State::PutOff;
                    stay.push(target);
                }
            }
        }
    }

    /// Writes the object's death. Its references were released already; `see` is called for each former target.
    fn end(&mut self, node: Node, see: impl FnMut(&mut Data)) -> Result<(), OpsError> {
        self.totals.deaths += 1;
        self.alive.sub(self.heap.get(node).data.size);
        self.each_held(node, see);
        self.heap.free(node);
        self.out.push(Op::Death { handle: node.0 + 1 })
    }

    /// Ends an object whose death was postponed, and transitively those that it held.
    #[cold]
    fn release(&mut self, node: Node) -> Result<(), OpsError> {
        let mut next = vec![node];
        while let Some(node) = next.pop() {
            let refs = self.heap.take_refs(node);
            let mut held = Vec::new();
            refs.for_each(|target| held.push(target));
            for target in held {
                let data = self.heap.data(target);
                data.incoming -= 1;
                if data.state == State::PutOff && data.incoming == 0 {
                    next.push(target);
                }
            }
            self.end(node, |_| {})?;
        }
        Ok(())
    }

    /// Ends the postponed objects that are no longer referenced.
    #[cold]
    fn release_all(&mut self) -> Result<(), OpsError> {
        let is_free = |data: &Data| data.state == State::PutOff && data.incoming == 0;
        let free: Vec<Node> =
            self.heap.iter().filter(|(_, object)| is_free(&object.data)).map(|(node, _)| node).collect();
        free.into_iter().try_for_each(|node| self.release(node))
    }

    /// Completes the operations of a trace with that many records.
    pub fn finish(mut self, records: u64) -> Result<(OpsWriter, Tables), OpsError> {
        self.bury()?;
        let naming = self.source.naming();
        let mut sites: Vec<Site> =
            self.sites.iter().map(|&site| Site { site: site.0, name: naming.site(site) }).collect();
        sites.sort_unstable_by_key(|site| site.site);
        let mut notes = Vec::new();
        if self.totals.put_off > 0 {
            notes.push(format!("{} deaths are delayed: something still held these objects", self.totals.put_off));
        }
        if self.totals.left_out > 0 {
            notes.push(format!("{} stores into unknown objects or elements are left out", self.totals.left_out));
        }
        self.totals.operations = self.out.operations();
        self.totals.at_end = self.alive;
        self.totals.records = records;
        let run = self.source.trace().map(|trace| trace.file.run().to_string());
        let tables = Tables {
            tool: format!("et-replay {}", env!("CARGO_PKG_VERSION")),
            trace: self.source.path().display().to_string(),
            run,
            handles: self.handles,
            static_fields: self.static_fields.len() as u32,
            layout: self.out.layout(),
            totals: self.totals,
            classes: self.slots.into_classes(),
            sites,
            threads: self.thread_ids,
            notes,
        };
        Ok((self.out, tables))
    }
}
