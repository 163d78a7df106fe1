//! What the VM holds, as far as a trace shows it: threads while they run, classes and their loaders, and what only the
//! VM can have held when tracing began.

use std::ops::ControlFlow;

use et_format::event::{ObjectHash, Ticket};
use rustc_hash::{FxHashMap, FxHashSet};

use super::recorder::Recorder;
use super::special::Special;
use super::weak::WeakSlots;
use super::{LifetimesError, Limits, Recording};
use crate::ReadError;
use crate::batch::{self, Filler};
use crate::place::Place;
use crate::record::{Alloc, AllocKind, Clock, ObjectId, Record, Slot, ThreadId};
use crate::resolve::{self, Context, Outcome, Visit};
use crate::told::{Hold, Told};
use crate::trace::Trace;
use crate::types::TypeId;

/// Records a whole trace.
pub fn record(trace: &Trace, limits: Limits) -> Result<(Recording, Outcome), LifetimesError> {
    let (recording, outcome) = record_seen(trace, limits, false, |_, _, _| ControlFlow::Continue(()))?;
    // The callback never breaks.
    Ok((recording.unwrap_or_else(|| unreachable!()), outcome))
}

/// Like [`record`], but keeps the place of each step if `places` is set. `see` is called with each item, its place, and
/// the number of its step. If it breaks, there is no recording.
pub fn record_seen(
    trace: &Trace,
    limits: Limits,
    places: bool,
    see: impl FnMut(&Told, Place, u64) -> ControlFlow<()>,
) -> Result<(Option<Recording>, Outcome), LifetimesError> {
    record_those(trace, limits, places, see, |_| true)
}

/// Records allocations, updates and what the VM holds: what a trace with no other events would have, and so would tell of deaths.
///
/// # Errors
/// The trace cannot be read, or the temporary file cannot be written.
pub fn record_heap(trace: &Trace, limits: Limits) -> Result<Recording, LifetimesError> {
    let is_of_heap =
        |told: &Told| matches!(told, Told::Hold(_) | Told::Record(Record::Alloc(_) | Record::Update { .. }));
    let (recording, _) = record_those(trace, limits, false, |_, _, _| ControlFlow::Continue(()), is_of_heap)?;
    // The callback never breaks.
    Ok(recording.unwrap_or_else(|| unreachable!()))
}

fn record_those(
    trace: &Trace,
    limits: Limits,
    places: bool,
    mut see: impl FnMut(&Told, Place, u64) -> ControlFlow<()>,
    is_wanted: impl Fn(&Told) -> bool,
) -> Result<(Option<Recording>, Outcome), LifetimesError> {
    let mut recorder = Recorder::new(special(trace), limits);
    if places {
        recorder.keep_places();
    }
    let mut goes_on = true;
    recorder.watch(trace.file.watcher());
    let fill = |mut filler: Filler| {
        let outcome = each(trace, &mut filler);
        filler.finish();
        outcome
    };
    let visited = batch::through(&trace.types, Clock::default(), fill, |told, at| {
        if see(told, at.place, recorder.steps()).is_break() {
            goes_on = false;
            return ControlFlow::Break(());
        }
        if !is_wanted(told) {
            return ControlFlow::Continue(());
        }
        recorder.at(at.place);
        match recorder.told(told) {
            true => ControlFlow::Continue(()),
            // The recorder returns the error at the end.
            false => ControlFlow::Break(()),
        }
    });
    let mut outcome = visited?.0?;
    if !goes_on {
        outcome.stopped = true;
        return Ok((None, outcome));
    }
    Ok((Some(recorder.finish()?), outcome))
}

/// Receives the content of a trace.
pub(crate) trait Listen {
    /// Receives the next item and its place. Inlined for the same reason as [`Visit::record`].
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()>;
}

impl<F: FnMut(Told, Place) -> ControlFlow<()>> Listen for F {
    #[inline]
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()> {
        self(told, place)
    }
}

impl Listen for &mut Filler {
    #[inline(always)]
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()> {
        self.at(place);
        self.push(told)
    }
}

/// Calls the listener with each record in order, and between them with what else holds objects, until it breaks or the
/// trace ends.
pub(crate) fn each(trace: &Trace, listener: impl Listen) -> Result<Outcome, ReadError> {
    let vm = Vm::new(trace);
    let flow = ControlFlow::Continue(());
    let mut telling = Telling { vm, failed: None, flow, last: Place::default(), listener };
    let outcome = resolve::run(trace, &mut telling)?;
    telling.end()?;
    Ok(outcome)
}

struct Telling<'a, L> {
    vm: Vm<'a>,
    failed: Option<ReadError>,
    flow: ControlFlow<()>,
    /// Place of the last record.
    last: Place,
    listener: L,
}

impl<L: Listen> Visit for &mut Telling<'_, L> {
    #[inline(always)]
    fn record(&mut self, record: Record, context: &Context<'_>) -> ControlFlow<()> {
        self.last = context.place;
        let is_initial = matches!(record, Record::Alloc(Alloc { kind: AllocKind::Initial, .. }));
        if self.vm.is_due(context.ticket()) || (!self.vm.has_begun && !is_initial) {
            self.catch_up(is_initial, context.place);
        }
        let mut constant = None;
        if let Record::Alloc(alloc) = &record {
            self.vm.saw(alloc, is_initial);
            constant = context.is_constant.then_some(alloc.object);
        }
        if self.failed.is_some() {
            return ControlFlow::Break(());
        }
        self.flow = self.listener.told(Told::Record(record), context.place);
        if let Some(object) = constant
            && self.flow.is_continue()
        {
            self.flow = self.listener.told(Told::Hold(Hold::ToTheEnd { object }), context.place);
        }
        self.flow
    }
}

impl<L: Listen> Telling<'_, L> {
    /// Reports what holds objects before the next record.
    #[cold]
    fn catch_up(&mut self, is_initial: bool, place: Place) {
        // A listener that breaks here breaks again at the next record.
        let mut hold = |hold| _ = self.listener.told(Told::Hold(hold), place);
        if !is_initial && !self.vm.has_begun {
            self.failed = self.vm.begin(&mut hold).err();
        }
        self.vm.until(place.ticket().unwrap_or_default(), &mut hold);
    }

    /// Reports what remains after the last record.
    fn end(mut self) -> Result<(), ReadError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.flow.is_continue() {
            let place = Place::new(Ticket(u64::MAX), self.last.wall());
            let mut hold = |hold| _ = self.listener.told(Told::Hold(hold), place);
            if !self.vm.has_begun {
                self.vm.begin(&mut hold)?;
            }
            self.vm.end(&mut hold);
        }
        Ok(())
    }
}

pub(crate) fn special(trace: &Trace) -> Special {
    let (types, names, classes) = (&trace.types, &trace.names, &trace.classes);
    let final_references = types.get_class("java/lang/ref/FinalReference").map(|ancestor| {
        let family = classes.iter().filter_map(|class| classes.of_type(class.ty));
        family.filter(|&class| classes.is_subclass(class, ancestor)).map(|class| classes.get(class).ty).collect()
    });
    Special {
        class: types.get_class("java/lang/Class"),
        // The trace says which strings are constants.
        string: None,
        referent: names
            .class_near("java/lang/ref/Reference", None, types)
            .and_then(|class| names.resolve_field(class, "referent", "Ljava/lang/Object;", types)),
        final_references: final_references.unwrap_or_default(),
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// A thread starts or ends: its `Thread` object is held up to now.
    Thread(ThreadId),
    /// A class is defined: its loader is held from now on.
    Loader,
}

pub(crate) struct Vm<'a> {
    trace: &'a Trace,
    class: Option<TypeId>,
    /// Changes in order of their tickets.
    pub(crate) changes: Vec<(Ticket, ObjectHash, Change)>,
    next: usize,
    /// The objects that the changes refer to, once they are known.
    watched: FxHashMap<ObjectHash, Option<ObjectId>>,
    /// All initial objects; empty once tracing has begun.
    initial: Vec<(ObjectId, TypeId)>,
    weak: WeakSlots,
    has_begun: bool,
}

impl<'a> Vm<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        let mut changes = Vec::new();
        for thread in trace.threads.iter().filter(|thread| !thread.object.is_null()) {
            for ticket in std::iter::once(thread.start).chain(thread.end) {
                changes.push((ticket, thread.object, Change::Thread(ThreadId(thread.index))));
            }
        }
        let mut loaders = FxHashSet::default();
        for class in trace.classes.iter().map(|class| &class.record) {
            // One mention is enough, since it is held from then on.
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

    pub(crate) fn saw(&mut self, alloc: &Alloc, is_initial: bool) {
        if let Some(hash) = alloc.object.identity_hash()
            && let Some(known) = self.watched.get_mut(&ObjectHash(hash))
        {
            *known = Some(alloc.object);
        }
        if is_initial {
            self.weak.saw(alloc);
            self.initial.push((alloc.object, alloc.ty));
        }
    }

    /// Whether there are changes before that ticket.
    #[inline]
    fn is_due(&self, ticket: Ticket) -> bool {
        self.changes.get(self.next).is_some_and(|change| change.0 < ticket)
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

    /// Reports the initial references. The VM is taken to hold those initial objects that no slot holds, for good.
    pub(crate) fn begin(&mut self, tell: &mut impl FnMut(Hold)) -> Result<(), ReadError> {
        self.has_begun = true;
        let initial = std::mem::take(&mut self.initial);
        // There may be very many. Their ids have never been used before, so they fit in 31 bits.
        let places: FxHashMap<u32, u32> = (0..).zip(&initial).map(|(at, (id, _))| (id.0 as u32, at)).collect();
        let place = |id: ObjectId| u32::try_from(id.0).ok().and_then(|id| places.get(&id).copied());
        let current = |hash: ObjectHash| Some(ObjectId(hash.0.into())).filter(|&id| place(id).is_some());
        let (mut references, mut weakly, mut roots) = (Vec::new(), Vec::new(), Vec::new());
        resolve::initial_references(self.trace, current, |origin: ObjectId, slot: Slot, target: ObjectId| {
            tell(Hold::Initial { origin, slot, target });
            let Some(to) = place(target) else { return };
            match place(origin) {
                None => roots.push(to),
                Some(_) if self.weak.is_weak(origin, slot) => weakly.push(to),
                Some(from) => references.push((from, to)),
            }
        })?;
        let mut heap = InitialHeap::new(initial.len(), references);
        let all = 0..initial.len() as u32;
        roots.extend(all.clone().filter(|&at| Some(initial[at as usize].1) == self.class));
        let receivers = self.trace.threads.iter().flat_map(|thread| thread.frames.iter().map(|frame| frame.receiver));
        let known = self.watched.values().flatten().copied().chain(receivers.filter_map(current));
        roots.extend(known.filter_map(place));
        roots.into_iter().for_each(|root| heap.reach(root));
        let mut hold = |at: u32, heap: &mut InitialHeap| {
            if !heap.reached[at as usize] {
                tell(Hold::ToTheEnd { object: initial[at as usize].0 });
                heap.reach(at);
            }
        };
        let weak_only: FxHashSet<u32> = weakly.iter().copied().collect();
        for at in all.clone().filter(|at| !weak_only.contains(at)) {
            if !heap.is_held[at as usize] {
                hold(at, &mut heap);
            }
        }
        weakly.into_iter().for_each(|at| heap.reach(at));
        // What remains consists of cycles.
        all.for_each(|at| hold(at, &mut heap));
        Ok(())
    }
}

/// The initial heap with numbered objects. There are often tens of millions of objects if tracing begins late, so each
/// takes only a few bytes.
struct InitialHeap {
    /// Start of each object's targets; the last object's end at the end of the vector.
    starts: Vec<usize>,
    targets: Vec<u32>,
    /// Whether another object refers to it.
    is_held: Vec<bool>,
    reached: Vec<bool>,
}

impl InitialHeap {
    /// Builds the heap from the references between objects.
    fn new(objects: usize, references: Vec<(u32, u32)>) -> Self {
        let mut starts = vec![0; objects + 1];
        let mut is_held = vec![false; objects];
        for &(from, to) in &references {
            starts[from as usize + 1] += 1;
            is_held[to as usize] |= from != to;
        }
        for at in 0..objects {
            starts[at + 1] += starts[at];
        }
        // Filled backward from the end of each object's range, so that `starts` ends up at its beginning.
        let mut targets = vec![0; references.len()];
        let mut next = starts[1..].to_vec();
        for (from, to) in references.into_iter().rev() {
            let next = &mut next[from as usize];
            *next -= 1;
            targets[*next] = to;
        }
        Self { starts, targets, is_held, reached: vec![false; objects] }
    }

    fn reach(&mut self, from: u32) {
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            if !std::mem::replace(&mut self.reached[at as usize], true) {
                let targets = self.starts[at as usize]..self.starts[at as usize + 1];
                stack.extend(&self.targets[targets]);
            }
        }
    }
}
