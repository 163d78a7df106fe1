//! The definition of death, implemented literally in quadratic time.

use std::collections::{BTreeMap, BTreeSet};

use super::generate::{CLASS, FINAL_REFERENCE, Program, REFERENT, STRING};
use crate::lifetimes::Step;
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::types::TypeId;

type Slots = BTreeMap<(ObjectId, Slot), ObjectId>;

/// All deaths in a program.
pub struct Deaths {
    /// Step after which each object was unreachable.
    died_after: BTreeMap<ObjectId, usize>,
    /// Weak slots after each step.
    weak: Vec<Slots>,
    threads: Vec<ThreadId>,
    /// What is reachable after the last step only because of stacks.
    pub only_on_stacks: BTreeSet<ObjectId>,
}

/// Everything reachable from static fields and these objects.
fn reach(slots: &Slots, mut reachable: BTreeSet<ObjectId>) -> BTreeSet<ObjectId> {
    reachable.extend(slots.iter().filter(|((origin, _), _)| origin.is_null()).map(|(_, &target)| target));
    loop {
        let held = slots.iter().filter(|((origin, _), _)| reachable.contains(origin)).map(|(_, &target)| target);
        let more: BTreeSet<_> = held.filter(|target| !reachable.contains(target)).collect();
        if more.is_empty() {
            return reachable;
        }
        reachable.extend(more);
    }
}

fn is_weak(types: &BTreeMap<ObjectId, TypeId>, origin: ObjectId, slot: Slot) -> bool {
    slot == REFERENT && types.get(&origin) != Some(&FINAL_REFERENCE)
}

fn put(slots: &mut Slots, origin: ObjectId, slot: Slot, target: ObjectId) {
    if target.is_null() {
        slots.remove(&(origin, slot));
    } else {
        slots.insert((origin, slot), target);
    }
}

/// Computes all deaths of a program.
pub fn deaths(program: &Program) -> Deaths {
    let mut types = BTreeMap::new();
    let mut born = BTreeMap::new();
    let mut last_mention: BTreeMap<ObjectId, usize> = BTreeMap::new();
    let mut stacks: BTreeMap<ThreadId, Vec<ObjectId>> = BTreeMap::new();
    let mut in_flight: BTreeMap<ThreadId, ObjectId> = BTreeMap::new();
    let (mut strong, mut weak) = (Slots::new(), Slots::new());
    let (mut strong_after, mut weak_after) = (Vec::new(), Vec::new());
    let never = program.steps.len();
    let to_the_end = |object: ObjectId, last: &mut BTreeMap<ObjectId, usize>| {
        last.insert(object, never);
    };
    let mut held: BTreeSet<ObjectId> = program.held_at_end.iter().copied().collect();
    for (number, step) in program.steps.iter().enumerate() {
        let mut mention = |object: ObjectId| {
            last_mention.insert(object, number);
        };
        match *step {
            Step::Held { object, .. } => mention(object),
            Step::Initial { origin, target, slot, .. } => {
                mention(origin);
                mention(target);
                put(&mut strong, origin, slot, target);
            }
            Step::Record(record) => {
                match record {
                    Record::Alloc(Alloc { kind, object, ty, .. }) => {
                        types.insert(object, ty);
                        born.insert(object, number);
                        if ty == CLASS || ty == STRING && kind == AllocKind::Vm {
                            held.insert(object);
                        }
                    }
                    Record::Entry { receiver, thread, .. } => stacks.entry(thread).or_default().push(receiver),
                    Record::Exit { thread, .. } => {
                        stacks.entry(thread).or_default().pop();
                    }
                    Record::ExitThrow { thread, .. } => {
                        stacks.entry(thread).or_default().pop();
                        if stacks[&thread].is_empty() {
                            in_flight.remove(&thread);
                        }
                    }
                    Record::Throw { exception, thread, .. } => {
                        in_flight.insert(thread, exception);
                    }
                    Record::Handle { thread, .. } => {
                        in_flight.remove(&thread);
                    }
                    Record::Update { .. } | Record::Death { .. } | Record::Use { .. } => {}
                }
                if let Record::Update { origin, target, slot, .. } = record {
                    mention(origin);
                    mention(target);
                    put(if is_weak(&types, origin, slot) { &mut weak } else { &mut strong }, origin, slot, target);
                } else {
                    record.objects().into_iter().for_each(mention);
                }
            }
            Step::WeakUpdate { .. } => unreachable!("the recorder tells weak slots"),
        }
        strong_after.push(strong.clone());
        weak_after.push(weak.clone());
    }
    let without_stacks = reach(&strong, held.clone());
    held.extend(stacks.values().flatten());
    held.extend(in_flight.values());
    held.iter().for_each(|&object| to_the_end(object, &mut last_mention));

    let mut died_after = BTreeMap::new();
    for (number, slots) in strong_after.iter().enumerate() {
        let is_born = |object: &ObjectId| born.get(object).is_some_and(|&at| at <= number);
        let used_later = last_mention.iter().filter(|&(object, &last)| last > number && is_born(object));
        let reachable = reach(slots, used_later.map(|(&object, _)| object).collect());
        for &object in born.keys().filter(|&object| is_born(object)) {
            if !reachable.contains(&object) {
                died_after.entry(object).or_insert(number);
            } else {
                assert!(!died_after.contains_key(&object), "the dead do not come back");
            }
        }
    }
    let threads = program.steps.iter().map(Step::thread).collect();
    let is_alive = |object: &&ObjectId| !died_after.contains_key(object) && !without_stacks.contains(object);
    let only_on_stacks = born.keys().filter(is_alive).copied().collect();
    Deaths { died_after, weak: weak_after, threads, only_on_stacks }
}

impl Deaths {
    /// The step as a record, with the old target that readers see.
    pub fn seen_by_readers(&self, number: usize, step: &Step) -> Option<Record> {
        let mut record = step.record()?;
        if let Record::Update { old, origin, slot, .. } = &mut record
            && number > 0
            && self.weak[number - 1].contains_key(&(*origin, *slot))
            && self.died_after.get(old).is_some_and(|&died| died < number)
        {
            *old = ObjectId::NULL;
        }
        Some(record)
    }

    /// Weak references that are cleared because their referents die at that step.
    pub fn clearings(&self, number: usize) -> Vec<Record> {
        let dies_here = |object: &ObjectId| self.died_after.get(object) == Some(&number);
        let is_alive = |object: &ObjectId| self.died_after.get(object).is_none_or(|&died| died > number);
        let slots =
            self.weak[number].iter().filter(|((reference, _), target)| dies_here(target) && is_alive(reference));
        let mut clearings: Vec<_> = slots
            .map(|(&(origin, slot), &old)| Record::Update {
                old,
                origin,
                target: ObjectId::NULL,
                slot,
                thread: self.threads[number],
            })
            .collect();
        clearings.sort_by_key(Record::objects);
        clearings
    }

    /// Deaths at that step.
    pub fn after(&self, number: usize) -> impl Iterator<Item = Record> + '_ {
        let dead = self.died_after.iter().filter(move |&(_, &died)| died == number);
        dead.map(move |(&object, _)| Record::Death { object, thread: self.threads[number] })
    }
}
