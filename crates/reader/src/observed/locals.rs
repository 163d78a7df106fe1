//! Which objects local variables may hold: what methods have had in hand, and what of it died while they ran.

use et_names::MethodId;
use rustc_hash::FxHashMap;

use super::HeldByLocal;
use super::held::{Dead, Held, by_origins};
use crate::attribution::{Attribution, Callers, NONE, Origins};
use crate::made_in::Places;
use crate::model::{FrameRef, Objects, Stacks};
use crate::owners::Origin;
use crate::record::{Alloc, AllocKind, ObjectId, Record};
use crate::source::Source;
use crate::types::Types;

/// An object that is not dead yet.
#[derive(Clone, Copy, Debug)]
struct Life {
    size: u64,
    /// Number of its allocation.
    number: u64,
    /// Number of its origins; `None` if it was there when tracing began.
    origins: Option<u32>,
    /// The outermost method that had it in hand and, when that was last looked at, still ran.
    holder: Option<FrameRef>,
}

/// What is known of local variables so far.
#[derive(Debug)]
pub(super) struct Locals<'a> {
    attribution: Attribution<'a>,
    places: Places<'a>,
    /// Methods that were entered, and whose they are.
    entered: FxHashMap<MethodId, Origin>,
    origins: Vec<Origins>,
    numbers: FxHashMap<Origins, u32>,
    stacks: Stacks<Callers>,
    alive: Objects<Life>,
    births: u64,
    /// Number of records so far, except computed ones.
    records: u64,
    held: Held<u32>,
}

impl<'a> Locals<'a> {
    pub fn of(source: &'a Source) -> Self {
        Self {
            attribution: Attribution::of(source),
            places: Places::new(source.naming()),
            entered: FxHashMap::default(),
            origins: Vec::new(),
            numbers: FxHashMap::default(),
            stacks: Stacks::default(),
            alive: Objects::default(),
            births: 0,
            records: 0,
            held: Held::default(),
        }
    }

    /// The next record, except computed ones.
    pub fn record(&mut self, record: &Record, types: &Types) {
        self.records += 1;
        self.mentioned(record);
        match *record {
            Record::Entry { method, .. } => self.enter(record, method),
            Record::Alloc(alloc) => self.made(&alloc, types),
            _ => self.stacks.record(record),
        }
    }

    fn enter(&mut self, record: &Record, method: MethodId) {
        let Self { entered, attribution, .. } = self;
        let origin = *entered.entry(method).or_insert_with(|| attribution.owners.origin(method));
        self.stacks
            .record_with(record, |below| below.map(|frame| frame.data).unwrap_or_default().of_callee(method, origin));
    }

    fn made(&mut self, alloc: &Alloc, types: &Types) {
        let top = self.stacks.top(alloc.thread).map(|(at, frame)| (at, frame.data, frame.method));
        let origins = (alloc.kind != AllocKind::Initial).then(|| {
            let place = self.places.on_stack(alloc.into(), self.stacks.methods(alloc.thread), types);
            let (callers, method) = top.map_or((Callers::default(), NONE), |(_, callers, method)| (callers, method));
            let origins = self.attribution.origins(place, alloc.ty, callers, method);
            *self.numbers.entry(origins).or_insert_with(|| {
                self.origins.push(origins);
                self.origins.len() as u32 - 1
            })
        });
        let holder = top.map(|(at, ..)| at);
        self.alive.insert(alloc.object, Life { size: alloc.size, number: self.births, origins, holder });
        self.births += 1;
    }

    /// The active method has used whatever the record names, including the new target of an update.
    fn mentioned(&mut self, record: &Record) {
        let in_hand = match *record {
            // The frame is about to end, and nothing is in hand before it is allocated.
            Record::Alloc(_) | Record::Exit { .. } | Record::ExitThrow { .. } => return,
            Record::Update { origin, target, .. } => [origin, target, ObjectId::NULL],
            Record::Entry { .. }
            | Record::Throw { .. }
            | Record::Handle { .. }
            | Record::Death { .. }
            | Record::Use { .. } => record.objects(),
        };
        let Some((frame, _)) = self.stacks.top(record.thread()) else { return };
        for object in in_hand {
            let Some(node) = self.alive.node(object) else { continue };
            let life = &mut self.alive[node];
            let keeps = life.holder.is_some_and(|holder| {
                (holder.thread != frame.thread || holder.depth <= frame.depth) && self.stacks.running(holder).is_some()
            });
            if !keeps {
                life.holder = Some(frame);
            }
        }
    }

    /// An object died.
    pub fn died(&mut self, object: ObjectId) {
        let Some(node) = self.alive.forget(object) else { return };
        self.alive.free(node);
        let Life { size, number, origins, holder } = self.alive[node];
        let Some(kind) = origins else { return };
        let Self { stacks, held, .. } = self;
        let runs = |frame| stacks.running(frame).is_some();
        held.tidy(runs);
        let holder = holder.filter(|holder| runs(*holder));
        held.died(&Dead { record: self.records, kind, number, bytes: size, holder });
    }

    /// Methods that were entered, in no particular order.
    pub fn entered(&self) -> impl Iterator<Item = MethodId> {
        self.entered.keys().copied()
    }

    /// What methods that still run may hold, by method and place.
    pub fn held(self) -> Vec<HeldByLocal> {
        let Self { stacks, origins, held, .. } = self;
        let candidates = held.at_end(|frame| stacks.running(frame).map(|frame| frame.method));
        by_origins(&candidates, |number| origins[*number as usize])
    }
}
