//! What the VM holds, as far as a trace tells: threads while they run, classes and their loaders, and what only the VM
//! can have held when tracing began.

use std::ops::ControlFlow;

use et_format::Wall;
use et_format::event::{ObjectHash, Ticket};
use rustc_hash::{FxHashMap, FxHashSet};

use super::hold::{Hold, Told, WeakSlots};
use super::recorder::{Recorder, Special};
use super::{LifetimesError, Limits, Recording};
use crate::ReadError;
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::resolve::{self, Outcome};
use crate::trace::Trace;
use crate::types::TypeId;

/// Takes down a whole trace.
pub fn record(trace: &Trace, limits: Limits) -> Result<(Recording, Outcome), LifetimesError> {
    record_seen(trace, limits, |_, _, _| {})
}

/// Where something is told.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its place in the order between threads.
    pub ticket: Ticket,
    /// When the events were made that it is among; none if the trace does not say.
    pub wall: Option<Wall>,
}

/// As [`record`]; `see` gets all that is told, where, and the number of its step.
pub fn record_seen(
    trace: &Trace,
    limits: Limits,
    mut see: impl FnMut(&Told, Place, u64),
) -> Result<(Recording, Outcome), LifetimesError> {
    let mut recorder = Recorder::new(special(trace), limits);
    recorder.watch(trace.file.watcher());
    let outcome = each_at(trace, |told, place| {
        see(told, place, recorder.steps());
        if let Some(wall) = place.wall {
            recorder.wall(wall);
        }
        match recorder.told(told) {
            true => ControlFlow::Continue(()),
            // Why shows in the end.
            false => ControlFlow::Break(()),
        }
    })?;
    Ok((recorder.finish()?, outcome))
}

/// Calls `visit` with each record, in order, and between them with what else holds objects, until it breaks off or the
/// trace ends.
pub fn each(trace: &Trace, mut visit: impl FnMut(&Told) -> ControlFlow<()>) -> Result<Outcome, ReadError> {
    each_at(trace, |told, _| visit(told))
}

/// As [`each`], with the place of each record.
fn each_at(trace: &Trace, mut visit: impl FnMut(&Told, Place) -> ControlFlow<()>) -> Result<Outcome, ReadError> {
    let mut vm = Vm::new(trace);
    let mut failed = None;
    let mut flow = ControlFlow::Continue(());
    let mut place = Place { ticket: Ticket(u64::MAX), wall: None };
    let outcome = trace.for_each(|record, context| {
        place = Place { ticket: context.ticket, wall: context.wall };
        // Who wants to break off here does so at the next record.
        let mut hold = |hold| _ = visit(&Told::Hold(hold), place);
        let is_initial = matches!(record, Record::Alloc(Alloc { kind: AllocKind::Initial, .. }));
        if !is_initial && !vm.has_begun {
            failed = vm.begin(&mut hold).err();
        }
        vm.until(context.ticket, &mut hold);
        if let Record::Alloc(alloc) = record {
            vm.saw(alloc, is_initial);
        }
        flow = if failed.is_none() { visit(&Told::Record(*record), place) } else { ControlFlow::Break(()) };
        if let (true, Record::Alloc(alloc)) = (context.is_constant && flow.is_continue(), record) {
            flow = visit(&Told::Hold(Hold::ToTheEnd { object: alloc.object }), place);
        }
        flow
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if flow.is_continue() {
        place.ticket = Ticket(u64::MAX);
        let mut hold = |hold| _ = visit(&Told::Hold(hold), place);
        if !vm.has_begun {
            vm.begin(&mut hold)?;
        }
        vm.end(&mut hold);
    }
    Ok(outcome)
}

fn special(trace: &Trace) -> Special {
    let (types, names, classes) = (&trace.types, &trace.names, &trace.classes);
    let final_references = types.get_class("java/lang/ref/FinalReference").map(|ancestor| {
        let family = classes.iter().filter_map(|class| classes.of_type(class.ty));
        family.filter(|&class| classes.is_subclass(class, ancestor)).map(|class| classes.get(class).ty).collect()
    });
    Special {
        class: types.get_class("java/lang/Class"),
        // What is a constant is told.
        string: None,
        referent: names
            .class_near("java/lang/ref/Reference", None, types)
            .and_then(|class| names.resolve_field(class, "referent", "Ljava/lang/Object;", types)),
        final_references: final_references.unwrap_or_default(),
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    /// A thread starts or ends: its `Thread` is held up to here.
    Thread(ThreadId),
    /// A class is defined: its loader is held from now on.
    Loader,
}

struct Vm<'a> {
    trace: &'a Trace,
    class: Option<TypeId>,
    /// In order of their tickets.
    changes: Vec<(Ticket, ObjectHash, Change)>,
    next: usize,
    /// The objects that the changes name, once they are known.
    watched: FxHashMap<ObjectHash, Option<ObjectId>>,
    /// All that was there when tracing began, until it has begun.
    initial: Vec<(ObjectId, TypeId)>,
    weak: WeakSlots,
    has_begun: bool,
}

impl<'a> Vm<'a> {
    fn new(trace: &'a Trace) -> Self {
        let mut changes = Vec::new();
        for thread in trace.threads.iter().filter(|thread| !thread.object.is_null()) {
            for ticket in std::iter::once(thread.start).chain(thread.end) {
                changes.push((ticket, thread.object, Change::Thread(ThreadId(thread.index))));
            }
        }
        let mut loaders = FxHashSet::default();
        for class in trace.classes.iter().map(|class| &class.record) {
            // Once is enough: from there on it is held.
            if !class.loader.is_null() && loaders.insert(class.loader) {
                changes.push((class.ticket, class.loader, Change::Loader));
            }
        }
        changes.sort_by_key(|&(ticket, ..)| ticket);
        let watched = changes.iter().map(|&(_, object, _)| (object, None)).collect();
        let class = trace.types.get_class("java/lang/Class");
        let weak = WeakSlots::new(&special(trace));
        Self { trace, class, changes, next: 0, watched, initial: Vec::new(), weak, has_begun: false }
    }

    fn saw(&mut self, alloc: &Alloc, is_initial: bool) {
        // The low 31 bits are the hash, whichever object of that hash it is.
        let hash = ObjectHash(alloc.object.0 as u32 & 0x7fff_ffff);
        if alloc.object.0 >> 62 == 0
            && let Some(known) = self.watched.get_mut(&hash)
        {
            *known = Some(alloc.object);
        }
        if is_initial {
            self.weak.saw(alloc);
            self.initial.push((alloc.object, alloc.ty));
        }
    }

    fn until(&mut self, ticket: Ticket, tell: &mut impl FnMut(Hold)) {
        while let Some(&(_, object, change)) = self.changes.get(self.next).filter(|change| change.0 < ticket) {
            self.next += 1;
            if let Some(object) = self.watched.get(&object).copied().flatten() {
                tell(match change {
                    Change::Thread(thread) => Hold::Until { object, thread },
                    Change::Loader => Hold::ToTheEnd { object },
                });
            }
        }
    }

    fn end(&mut self, tell: &mut impl FnMut(Hold)) {
        self.until(Ticket(u64::MAX), tell);
        for thread in self.trace.threads.iter().filter(|thread| thread.end.is_none()) {
            if let Some(object) = self.watched.get(&thread.object).copied().flatten() {
                tell(Hold::ToTheEnd { object });
            }
        }
    }

    /// What slots held when tracing began; and what was there although no slot held it, the VM holds for good.
    fn begin(&mut self, tell: &mut impl FnMut(Hold)) -> Result<(), ReadError> {
        self.has_begun = true;
        let initial = std::mem::take(&mut self.initial);
        let places: FxHashMap<ObjectId, usize> = initial.iter().enumerate().map(|(at, &(id, _))| (id, at)).collect();
        let current = |hash: ObjectHash| Some(ObjectId(hash.0.into())).filter(|id| places.contains_key(id));
        let mut heap = Heap { holds: vec![Vec::new(); initial.len()], ..Heap::default() };
        heap.reached.resize(initial.len(), false);
        heap.is_held.resize(initial.len(), false);
        let mut weakly = Vec::new();
        let mut roots: Vec<usize> = Vec::new();
        resolve::initial_references(self.trace, current, |origin: ObjectId, slot: Slot, target: ObjectId| {
            tell(Hold::Initial { origin, slot, target });
            let to = places[&target];
            match places.get(&origin) {
                None => roots.push(to),
                Some(_) if self.weak.is_weak(origin, slot) => weakly.push(to),
                Some(&from) => {
                    heap.holds[from].push(to);
                    heap.is_held[to] |= from != to;
                }
            }
        })?;
        roots.extend((0..initial.len()).filter(|&at| Some(initial[at].1) == self.class));
        let receivers = self.trace.threads.iter().flat_map(|thread| thread.frames.iter().map(|frame| frame.receiver));
        let known = self.watched.values().flatten().copied().chain(receivers.filter_map(current));
        roots.extend(known.filter_map(|object| places.get(&object).copied()));
        roots.into_iter().for_each(|root| heap.reach(root));
        let mut hold = |at: usize, heap: &mut Heap| {
            if !heap.reached[at] {
                tell(Hold::ToTheEnd { object: initial[at].0 });
                heap.reach(at);
            }
        };
        let weak_only: FxHashSet<usize> = weakly.iter().copied().collect();
        for at in (0..initial.len()).filter(|at| !weak_only.contains(at)) {
            if !heap.is_held[at] {
                hold(at, &mut heap);
            }
        }
        weakly.into_iter().for_each(|at| heap.reach(at));
        // What is left holds itself in circles.
        (0..initial.len()).for_each(|at| hold(at, &mut heap));
        Ok(())
    }
}

/// The heap when tracing began.
#[derive(Default)]
struct Heap {
    holds: Vec<Vec<usize>>,
    /// By another object.
    is_held: Vec<bool>,
    reached: Vec<bool>,
}

impl Heap {
    fn reach(&mut self, from: usize) {
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            if !std::mem::replace(&mut self.reached[at], true) {
                stack.extend(&self.holds[at]);
            }
        }
    }
}
