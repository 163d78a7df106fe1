//! The records of a part of a trace, packed: they are made from it where they are read.

use std::iter::Peekable;
use std::ops::ControlFlow;

use super::script::{Item, Script};
use super::walk::Birth;
use crate::batch::At;
use crate::lifetimes::Known;
use crate::place::Place;
use crate::record::{Alloc, Clock, ObjectId, Record, RecordKind, ThreadId, Totals};
use crate::told::{Hold, Told};

/// What is told of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Whether to tell what holds objects although no record does.
    pub holders: bool,
    pub clock: Clock,
}

/// How much a sheet has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Number of items.
    pub items: usize,
    /// By how much they advance the clock.
    pub ticks: u64,
    /// Number of records.
    pub totals: Totals,
}

/// A part of a trace whose records can be made.
#[derive(Debug)]
pub struct Sheet {
    pub script: Script,
    pub thread: ThreadId,
    /// What it allocates.
    pub births: Vec<Birth>,
    /// The objects, by their numbers.
    pub ids: Vec<ObjectId>,
    /// What slots held before the part: by the index of the item of their first store, in order.
    pub olds: Vec<(u32, ObjectId)>,
    /// Stores that are no records, since they changed nothing: their indexes, in order.
    pub unchanged: Vec<u32>,
    /// The place of the items before the first of `script.places`.
    pub place: Place,
    /// Number of the first step.
    pub step: u64,
    /// Deaths and clearings, and which slots were null by then.
    pub known: Vec<Known>,
}

impl Sheet {
    pub fn of(script: Script) -> Self {
        let (births, ids, olds, unchanged, known) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { script, thread: ThreadId(0), births, ids, olds, unchanged, place: Place::default(), step: 0, known }
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        (self.script.count - self.script.no_steps - self.unchanged.len() as u32).into()
    }

    /// How much it has. `totals` are those of the events, stores that changed nothing included.
    pub fn extent(&self, mut totals: Totals, form: Form) -> Extent {
        totals.0[RecordKind::Update as usize] -= u64::from(self.script.same) + self.unchanged.len() as u64;
        let count = |kind: RecordKind| totals.0[kind as usize];
        let calls = count(RecordKind::Entry) + count(RecordKind::Exit) + count(RecordKind::ExitThrow);
        let ticks = match form.clock {
            Clock::Methods => calls,
            Clock::MethodsAndExceptions => calls + count(RecordKind::Throw) + count(RecordKind::Handle),
            Clock::Bytes => self.births.last().map_or(0, |birth| birth.bytes),
        };
        let holds =
            if form.holders { u64::from(self.script.count) - self.unchanged.len() as u64 - totals.sum() } else { 0 };
        for known in &self.known {
            if let Known::Found { record, .. } = known {
                totals.count(record);
            }
        }
        Extent { items: (totals.sum() + holds) as usize, ticks, totals }
    }

    #[inline]
    fn id(&self, number: u32) -> ObjectId {
        self.ids.get(number as usize).copied().unwrap_or_default()
    }

    /// Makes its records, and passes each with its position, until `visit` breaks. `at` is the position of the first.
    #[inline]
    pub fn each<'t>(
        &self,
        form: Form,
        at: &mut At<'t>,
        visit: &mut impl FnMut(&Told, &At<'t>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        at.place = self.place;
        let mut teller = Teller { form, step: self.step, known: self.known.iter().peekable(), at, visit };
        let thread = self.thread;
        let mut places = self.script.places.iter().peekable();
        let mut olds = self.olds.iter().peekable();
        let mut unchanged = self.unchanged.iter().peekable();
        let mut births = self.births.iter();
        let mut index = 0u32;
        for item in self.script.items() {
            while let Some((_, place)) = places.next_if(|(at, _)| *at <= index) {
                teller.at.place = *place;
            }
            index += 1;
            let record = match item {
                Item::Entry { method, receiver } => Record::Entry { method, receiver: self.id(receiver), thread },
                Item::Exit { method, receiver } => Record::Exit { method, receiver: self.id(receiver), thread },
                Item::Leaf { method, receiver } => {
                    let receiver = self.id(receiver);
                    teller.record(Record::Entry { method, receiver, thread })?;
                    index += 1;
                    Record::Exit { method, receiver, thread }
                }
                Item::Flight { kind, method, receiver, exception } => {
                    let (receiver, exception) = (self.id(receiver), self.id(exception));
                    match kind {
                        RecordKind::ExitThrow => Record::ExitThrow { method, receiver, exception, thread },
                        RecordKind::Throw => Record::Throw { method, receiver, exception, thread },
                        _ => Record::Handle { method, receiver, exception, thread },
                    }
                }
                Item::Use { object } => Record::Use { object: self.id(object), thread },
                Item::Alloc { object } => match births.next() {
                    Some(birth) => Record::Alloc(Alloc { object: self.id(object), ..birth.alloc }),
                    None => continue,
                },
                Item::Update { .. } if unchanged.next_if_eq(&&(index - 1)).is_some() => continue,
                Item::Update { old, origin, target, slot } => {
                    let (origin, target) = (self.id(origin), self.id(target));
                    let old = match old {
                        Some(old) => self.id(old),
                        None => olds.next_if(|(at, _)| *at == index - 1).map(|(_, old)| *old).unwrap_or_default(),
                    };
                    let old = if teller.is_cleared() { ObjectId::NULL } else { old };
                    Record::Update { old, origin, target, slot, thread }
                }
                Item::Until { object, thread } => {
                    teller.hold(Hold::Until { object: self.id(object), thread })?;
                    continue;
                }
                Item::ToTheEnd { object } => {
                    teller.hold(Hold::ToTheEnd { object: self.id(object) })?;
                    continue;
                }
                Item::Initial { origin, target, slot } => {
                    teller.hold(Hold::Initial { origin: self.id(origin), slot, target: self.id(target) })?;
                    continue;
                }
            };
            teller.record(record)?;
        }
        ControlFlow::Continue(())
    }
}

/// Passes on the items of a sheet, and what is known between them.
struct Teller<'s, 'v, 't, V> {
    form: Form,
    /// Number of the next step.
    step: u64,
    known: Peekable<std::slice::Iter<'s, Known>>,
    at: &'v mut At<'t>,
    visit: &'v mut V,
}

impl<'t, V: FnMut(&Told, &At<'t>) -> ControlFlow<()>> Teller<'_, '_, 't, V> {
    /// Whether the next step is a store into a slot that was null by then.
    #[inline]
    fn is_cleared(&mut self) -> bool {
        let step = self.step;
        self.known.next_if(|known| matches!(known, Known::Cleared { at } if *at == step)).is_some()
    }

    #[inline(always)]
    fn pass(&mut self, record: Record) -> ControlFlow<()> {
        let ticks = record.ticks(self.form.clock);
        (self.visit)(&Told::Record(record), self.at)?;
        self.at.tick.0 += ticks;
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn record(&mut self, record: Record) -> ControlFlow<()> {
        self.pass(record)?;
        self.stepped()
    }

    fn hold(&mut self, hold: Hold) -> ControlFlow<()> {
        if self.form.holders {
            (self.visit)(&Told::Hold(hold), self.at)?;
        }
        if matches!(hold, Hold::ToTheEnd { .. }) { ControlFlow::Continue(()) } else { self.stepped() }
    }

    #[inline(always)]
    fn stepped(&mut self) -> ControlFlow<()> {
        let step = self.step;
        self.step += 1;
        match self.known.peek() {
            Some(known) if known.step() <= step => self.found(step),
            _ => ControlFlow::Continue(()),
        }
    }

    #[inline(never)]
    fn found(&mut self, step: u64) -> ControlFlow<()> {
        while let Some(known) = self.known.next_if(|known| known.step() <= step) {
            if let Known::Found { record, .. } = known {
                self.at.is_clearing = matches!(record, Record::Update { .. });
                self.pass(*record)?;
                self.at.is_clearing = false;
            }
        }
        ControlFlow::Continue(())
    }
}
