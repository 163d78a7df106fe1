//! What all schemes share: objects and their slots, the effects of operations, and tracing.

use super::report::{Collection, CollectionKind, Report};
use super::slots::SlotStore;
use super::{Access, Config, Observer, Phase, Scheme, SimulateError, Stop};
use crate::events::{ArenaId, Event};
use crate::ops::{Amount, ClassKind, Layout, Op, OpsReader};

/// Address at which the heap begins.
pub const BASE: u64 = 1 << 32;

/// An object in the simulated heap; a dead object stays until it is freed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Object {
    pub address: u64,
    /// Size in bytes; 0 if this place is free.
    pub size: u64,
    slots: usize,
    count: u32,
    /// Number of references from static fields and live objects, and from dead ones if the scheme counts them.
    pub incoming: u32,
    mark: u32,
    class: u32,
    site: u32,
    is_array: bool,
    pub is_alive: bool,
    /// Whether it is in the old generation.
    pub is_old: bool,
    /// Whether it is in the remembered set.
    pub is_remembered: bool,
}

/// The simulated heap. An object is identified by its place, from 1; 0 is null.
pub struct World<'a, O> {
    observer: &'a mut O,
    pub objects: Vec<Object>,
    free: Vec<u32>,
    slots: SlotStore,
    statics: Vec<u32>,
    /// Place by handle.
    handles: Vec<u32>,
    epoch: u32,
    layout: Layout,
    /// By class index.
    is_array: Vec<bool>,
    pub alive: Amount,
    /// Heap contents, garbage included.
    pub used: Amount,
    operation: u64,
    tick: u64,
    /// Objects that died since the last operation of another kind. When that follows, no live object may refer to
    /// them.
    dead: Vec<u32>,
    pub report: Report,
}

/// Result of a trace through the heap.
#[derive(Debug, Default)]
pub struct Traced {
    /// Objects in the order reached: breadth-first from the roots.
    pub order: Vec<u32>,
    pub reached: Amount,
    roots: u64,
    rescued: u64,
}

/// Why an operation failed.
enum Wrong {
    Stop(Stop, u64),
    /// It refers to something that does not exist.
    Damaged,
}

impl From<Stop> for Wrong {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop, 0)
    }
}

/// Decrements the reference count.
#[inline]
fn drop_one(object: &mut Object) -> Result<(), Wrong> {
    object.incoming = object.incoming.checked_sub(1).ok_or(Wrong::Damaged)?;
    Ok(())
}

/// Runs all operations.
pub fn play<O: Observer, S: Scheme<O>>(
    ops: &mut OpsReader,
    config: &Config,
    observer: &mut O,
    mut scheme: S,
) -> Result<Report, SimulateError> {
    ops.rewind()?;
    let mut world = World::new(ops, config, observer);
    let said = |world: &World<'_, O>, stop, wanted| match stop {
        Stop::Full => {
            let (collector, heap) = (config.collector, config.heap);
            SimulateError::TooSmall { collector, heap, operation: world.operation, wanted }
        }
        Stop::Contradiction(reached) => {
            SimulateError::Contradiction { operation: world.operation, reached, alive: world.alive.objects }
        }
    };
    scheme.begin(&mut world);
    while let Some(op) = ops.next_op()? {
        match world.op(&mut scheme, op) {
            Ok(()) => {}
            Err(Wrong::Damaged) => return Err(ops.damaged().into()),
            Err(Wrong::Stop(stop, wanted)) => return Err(said(&world, stop, wanted)),
        }
        world.operation += 1;
        if world.operation.is_multiple_of(1 << 16) && !world.observer.goes_on() {
            return Err(SimulateError::Stopped);
        }
    }
    if world.bury().is_err() {
        return Err(ops.damaged().into());
    }
    scheme.finish(&mut world).map_err(|stop| said(&world, stop, 0))?;
    let mut report = world.report;
    report.operations = world.operation;
    report.at_end = world.used;
    let (used, alive) = (world.used, world.alive);
    report.leaked = Amount { objects: used.objects - alive.objects, bytes: used.bytes - alive.bytes };
    Ok(report)
}

impl<'a, O: Observer> World<'a, O> {
    fn new(ops: &OpsReader, config: &Config, observer: &'a mut O) -> Self {
        let tables = ops.tables();
        Self {
            observer,
            objects: vec![Object::default()],
            free: Vec::new(),
            slots: SlotStore::default(),
            statics: Vec::new(),
            handles: Vec::new(),
            epoch: 0,
            layout: tables.layout,
            is_array: tables.classes.iter().map(|class| class.kind != ClassKind::Scalar).collect(),
            alive: Amount::default(),
            used: Amount::default(),
            operation: 0,
            tick: 0,
            dead: Vec::new(),
            report: Report::new(config, tables.totals.peak.bytes),
        }
    }

    #[inline]
    fn op<S: Scheme<O>>(&mut self, scheme: &mut S, op: Op) -> Result<(), Wrong> {
        if !self.dead.is_empty() && !matches!(op, Op::Death { .. } | Op::Thread { .. } | Op::Tick { .. }) {
            self.bury()?;
        }
        match op {
            Op::Birth { .. } => return self.birth(scheme, op),
            Op::Update { origin, slot, target } => {
                let (origin, target) = (self.alive_at(origin)?, self.target(target)?);
                let object = &self.objects[origin as usize];
                if slot >= object.count {
                    return Err(Wrong::Damaged);
                }
                let at = self.layout.slot(object.is_array, slot);
                let held = &mut self.slots.of_mut(object.slots, object.count)[slot as usize];
                let old = std::mem::replace(held, target);
                self.access(origin, at, self.layout.reference_bytes.into(), true, Phase::Mutator);
                self.recount(old, target)?;
                if target != 0 {
                    scheme.stored(self, origin, target);
                }
            }
            Op::UpdateStatic { field, target } => {
                let target = self.target(target)?;
                if self.statics.len() <= field as usize {
                    self.statics.resize(field as usize + 1, 0);
                }
                let old = std::mem::replace(&mut self.statics[field as usize], target);
                self.recount(old, target)?;
            }
            Op::Death { handle } => {
                let place = self.alive_at(handle)?;
                self.handles[handle as usize] = 0;
                let object = &mut self.objects[place as usize];
                object.is_alive = false;
                self.alive.sub(object.size);
                if !S::COUNTS_THE_DEAD {
                    for &held in self.slots.of(object.slots, object.count) {
                        if held != 0 {
                            drop_one(&mut self.objects[held as usize])?;
                        }
                    }
                    self.dead.push(place);
                }
                scheme.died(self, place);
            }
            Op::Touch { handle } => {
                let place = self.alive_at(handle)?;
                self.access(place, 0, self.layout.header_bytes.into(), false, Phase::Mutator);
            }
            Op::Thread { .. } => {}
            Op::Tick { tick } => {
                self.tick = tick;
                self.observer.tick(tick);
            }
        }
        Ok(())
    }

    fn birth<S: Scheme<O>>(&mut self, scheme: &mut S, birth: Op) -> Result<(), Wrong> {
        let Op::Birth { handle, class, size, slots: count, site, initial: _ } = birth else { return Ok(()) };
        let handle = handle as usize;
        if self.handles.len() <= handle {
            self.handles.resize(handle + 1, 0);
        }
        if self.handles[handle] != 0 || size == 0 {
            return Err(Wrong::Damaged);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.objects.push(Object::default());
            self.objects.len() as u32 - 1
        });
        let is_array = self.is_array[class as usize];
        self.objects[place as usize] = Object { size, class, site, is_array, is_alive: false, ..Object::default() };
        // Not live yet: a collection that makes room for it must not visit it.
        scheme.allocate(self, place).map_err(|stop| Wrong::Stop(stop, size))?;
        // Slots take memory of this process too, so they are allocated only when the simulated heap has room.
        let slots = self.slots.take(count);
        let object = &mut self.objects[place as usize];
        (object.slots, object.count, object.is_alive) = (slots, count, true);
        self.handles[handle] = place;
        self.alive.add(size);
        Ok(())
    }

    #[inline]
    fn alive_at(&self, handle: u32) -> Result<u32, Wrong> {
        match self.handles.get(handle as usize) {
            Some(&place) if place != 0 => Ok(place),
            _ => Err(Wrong::Damaged),
        }
    }

    #[inline]
    fn target(&self, handle: u32) -> Result<u32, Wrong> {
        if handle == 0 { Ok(0) } else { self.alive_at(handle) }
    }

    #[inline]
    fn recount(&mut self, old: u32, new: u32) -> Result<(), Wrong> {
        if new != 0 {
            self.objects[new as usize].incoming += 1;
        }
        if old != 0 { drop_one(&mut self.objects[old as usize]) } else { Ok(()) }
    }

    /// Checks that no live object refers to one that has died; otherwise operations could use freed places.
    fn bury(&mut self) -> Result<(), Wrong> {
        let is_held = self.dead.iter().any(|&place| self.objects[place as usize].incoming > 0);
        self.dead.clear();
        if is_held { Err(Wrong::Damaged) } else { Ok(()) }
    }

    /// Sends an event to the observer.
    pub fn tell(&mut self, event: Event) {
        self.report.events.count(&event);
        self.observer.event(self.operation, &event);
    }

    #[inline]
    fn access(&mut self, place: u32, offset: u64, bytes: u64, is_write: bool, phase: Phase) {
        if O::ACCESSES {
            let Object { address, class, site, .. } = self.objects[place as usize];
            self.observer.access(&Access { address: address + offset, bytes, is_write, phase, class, site });
        }
    }

    /// Places a new object at its address.
    pub fn place(&mut self, place: u32, arena: ArenaId, address: u64) {
        let object = &mut self.objects[place as usize];
        object.address = address;
        let (class, size) = (object.class, object.size);
        self.used.add(size);
        self.report.peak_bytes = self.report.peak_bytes.max(self.used.bytes);
        self.tell(Event::NewObject { arena, object: address, class, size });
        self.access(place, 0, size, true, Phase::Mutator);
    }

    /// Moves an object.
    pub fn move_to(&mut self, place: u32, arena: ArenaId, new_arena: ArenaId, new_object: u64) {
        let Object { address: object, size, .. } = self.objects[place as usize];
        self.access(place, 0, size, false, Phase::Collector);
        self.objects[place as usize].address = new_object;
        self.tell(Event::MoveObject { arena, object, new_arena, new_object });
        self.access(place, 0, size, true, Phase::Collector);
    }

    /// Frees a dead object. Returns its address and size.
    pub fn delete(&mut self, place: u32, arena: ArenaId) -> (u64, u64) {
        let Object { address, size, .. } = self.objects[place as usize];
        self.access(place, 0, 8, true, Phase::Collector);
        self.tell(Event::DeleteObject { arena, object: address });
        self.gone(place);
        (address, size)
    }

    /// Removes a dead object without an event: it goes with its arena.
    pub fn gone(&mut self, place: u32) {
        let object = &mut self.objects[place as usize];
        let (size, slots, count) = (object.size, object.slots, object.count);
        *object = Object::default();
        self.used.sub(size);
        self.report.freed.add(size);
        self.slots.give(slots, count);
        self.free.push(place);
    }

    /// Whether the last trace reached the object.
    #[inline]
    pub fn is_marked(&self, place: u32) -> bool {
        self.objects[place as usize].mark == self.epoch
    }

    /// Contents of the object's slots.
    #[inline]
    pub fn held(&self, place: u32) -> &[u32] {
        let object = &self.objects[place as usize];
        self.slots.of(object.slots, object.count)
    }

    /// Traces the whole heap. Fails if the objects reached are not exactly the live ones.
    pub fn trace_all(&mut self) -> Result<Traced, Stop> {
        let handles = std::mem::take(&mut self.handles);
        let traced = self.trace(&handles, &[], false);
        self.handles = handles;
        match traced.reached.objects == self.alive.objects {
            true => Ok(traced),
            false => Err(Stop::Contradiction(traced.reached.objects)),
        }
    }

    /// Traces young objects from static fields, `remembered` old objects and locals.
    pub fn trace_young(&mut self, young: &[u32], remembered: &[u32]) -> Traced {
        self.trace(young, remembered, true)
    }

    /// Roots are static fields, and those live `candidates` without references from the heap: a local must hold them.
    /// A live object not reached from there is in a cycle that a local holds.
    fn trace(&mut self, candidates: &[u32], remembered: &[u32], is_young: bool) -> Traced {
        self.observer.collection_begins();
        self.epoch += 1;
        let mut traced = Traced::default();
        for field in 0..self.statics.len() {
            self.reach(self.statics[field], is_young, &mut traced);
        }
        for &old in remembered {
            self.scan(old, is_young, &mut traced);
        }
        let is_root = |object: &Object| object.is_alive && object.incoming == 0;
        for &place in candidates {
            if place != 0 && is_root(&self.objects[place as usize]) {
                self.reach(place, is_young, &mut traced);
            }
        }
        traced.roots = traced.order.len() as u64;
        let mut scanned = self.follow(0, is_young, &mut traced);
        for &place in candidates {
            let object = &self.objects[place as usize];
            if place != 0 && object.is_alive && object.mark != self.epoch {
                traced.rescued += 1;
                self.reach(place, is_young, &mut traced);
                scanned = self.follow(scanned, is_young, &mut traced);
            }
        }
        traced
    }

    /// Scans the objects reached from position `from` on. Returns the position after the last.
    fn follow(&mut self, from: usize, is_young: bool, traced: &mut Traced) -> usize {
        let mut at = from;
        while let Some(&place) = traced.order.get(at) {
            self.scan(place, is_young, traced);
            at += 1;
        }
        at
    }

    #[inline]
    fn scan(&mut self, place: u32, is_young: bool, traced: &mut Traced) {
        let Object { slots, count, is_array, .. } = self.objects[place as usize];
        self.access(place, 0, self.layout.header_bytes.into(), false, Phase::Collector);
        if count > 0 {
            let bytes = u64::from(count) * u64::from(self.layout.reference_bytes);
            self.access(place, self.layout.slot(is_array, 0), bytes, false, Phase::Collector);
        }
        for slot in 0..count as usize {
            let held = self.slots.of(slots, count)[slot];
            self.reach(held, is_young, traced);
        }
    }

    #[inline]
    fn reach(&mut self, place: u32, is_young: bool, traced: &mut Traced) {
        let object = &mut self.objects[place as usize];
        if place != 0 && object.mark != self.epoch && !(is_young && object.is_old) {
            object.mark = self.epoch;
            traced.reached.add(object.size);
            traced.order.push(place);
        }
    }

    /// Records a collection that has ended.
    pub fn collected(&mut self, kind: CollectionKind, before: Amount, traced: &Traced, moved: Amount, free: [u64; 2]) {
        self.report.collected(Collection {
            operation: self.operation,
            tick: self.tick,
            kind,
            before,
            after: self.used,
            reached: traced.reached,
            moved,
            roots: traced.roots,
            rescued: traced.rescued,
            free: free[0],
            largest_free: free[1],
        });
        self.observer.collection_ends(self.used);
    }
}
