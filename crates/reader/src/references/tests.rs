use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::record::ObjectId;
use et_names::FieldId;

/// An operation; objects are numbered from 1, 0 is null.
#[derive(Clone, Copy, Debug)]
enum Act {
    New,
    Put { origin: u64, slot: u32, target: u64, how: End },
    Die(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::New),
        8 => (0..20u64, 0..4u32, 0..20u64).prop_map(|(origin, slot, target)| Act::Put { origin, slot, target, how: End::Overwritten }),
        1 => (1..20u64, 0..4u32).prop_map(|(origin, slot)| Act::Put { origin, slot, target: 0, how: End::Cleared }),
        2 => (1..20u64).prop_map(Act::Die),
    ]
}

/// Objects with even ids have elements.
fn slot(origin: u64, slot: u32) -> Slot {
    if origin > 0 && origin.is_multiple_of(2) { Slot::Element(slot) } else { Slot::Field(FieldId(slot)) }
}

fn mark(record: u64) -> Mark {
    let by = (record % 3) as u32;
    let (thread, context) = (ThreadId(by), ContextId(by));
    Mark { record, tick: record / 2, bytes: record * 8, nanos: Some(record), thread, context }
}

type Key = (Option<u64>, Slot, u64, Mark, Option<(Mark, End)>);

fn key(stay: &Stay) -> Key {
    (stay.origin, stay.slot, stay.target, stay.from, stay.to)
}

/// The same by definition: what each slot holds is looked at after each operation.
#[derive(Default)]
struct Model {
    alive: BTreeMap<u64, u64>,
    slots: BTreeMap<(u64, Slot), (u64, Mark)>,
    ended: Vec<Key>,
}

impl Model {
    fn end(&mut self, at: (u64, Slot), to: Option<(Mark, End)>) {
        if let Some((target, from)) = self.slots.remove(&at) {
            let origin = (at.0 > 0).then(|| self.alive[&at.0]);
            self.ended.push((origin, at.1, target, from, to));
        }
    }

    /// What a slot holds, after each record.
    fn held(&self) -> BTreeSet<(Option<u64>, Slot, u64)> {
        let origin = |id: u64| (id > 0).then(|| self.alive[&id]);
        self.slots.iter().map(|(&(id, slot), &(target, _))| (origin(id), slot, target)).collect()
    }
}

fn number(id: u64) -> ObjectId {
    // Ids that share an entry in the cache of recent lookups.
    ObjectId(if id.is_multiple_of(3) { id << 12 } else { id })
}

proptest! {
    /// The stays are those that looking at all slots after each record finds, and what is there at a tick is what was there then.
    #[test]
    fn stays_are_what_slots_hold(
        acts in prop::collection::vec(act(), 1..200),
        smallest in 0..6u32,
        most in 1..9usize,
    ) {
        let (mut slots, mut arranger) = (Slots::default(), Arranger::with(smallest, most));
        let (mut model, mut groups, mut made, mut record) = (Model::default(), Vec::new(), 0, 0u64);
        // By tick: what was there before the first record with that tick.
        let mut at_tick: Vec<BTreeSet<_>> = Vec::new();
        for act in acts {
            // A death follows from the record before it.
            if !matches!(act, Act::Die(_)) {
                while at_tick.len() as u64 <= record.div_ceil(2) {
                    at_tick.push(model.held());
                }
                record += 1;
            }
            let mark = mark(record);
            let mut ended = Vec::new();
            match act {
                Act::New => {
                    slots.born(number(made + 1));
                    model.alive.insert(made + 1, made);
                    made += 1;
                }
                Act::Put { origin, slot: at, target, how } => {
                    let slot = slot(origin, at);
                    ended.extend(slots.put(number(origin), slot, number(target), mark, how));
                    if origin == 0 || model.alive.contains_key(&origin) {
                        model.end((origin, slot), Some((mark, how)));
                        if let Some(&target) = model.alive.get(&target) {
                            model.slots.insert((origin, slot), (target, mark));
                        }
                    }
                }
                Act::Die(id) => {
                    slots.died(number(id), mark, |stay| ended.push(stay));
                    let of: Vec<_> = model.slots.keys().filter(|(origin, _)| *origin == id).copied().collect();
                    of.into_iter().for_each(|at| model.end(at, Some((mark, End::OriginDied))));
                    model.alive.remove(&id);
                }
            }
            ended.into_iter().for_each(|stay| arranger.add(stay, |group| groups.push(group)));
        }
        at_tick.push(model.held());
        slots.finish(|stay| arranger.add(stay, |group| groups.push(group)));
        arranger.finish(|group| groups.push(group));
        for at in model.slots.keys().copied().collect::<Vec<_>>() {
            model.end(at, None);
        }
        let mut found: Vec<Key> = groups.iter().flatten().map(key).collect();
        found.sort();
        model.ended.sort();
        prop_assert_eq!(found, model.ended);
        for group in &groups {
            prop_assert!(!group.is_empty() && group.len() <= most);
            prop_assert!(group.is_sorted_by_key(|stay| stay.from.record));
        }
        for (tick, expected) in (0..).zip(&at_tick) {
            let there = groups.iter().flatten().filter(|stay| stay.is_at(tick));
            let there: BTreeSet<_> = there.map(|stay| (stay.origin, stay.slot, stay.target)).collect();
            prop_assert_eq!(&there, expected, "tick {}", tick);
        }
    }

    /// However long the trace is, what holds at a moment is in few groups: those whose ticks contain it have little else.
    #[test]
    fn a_moment_is_in_few_groups(spans in prop::collection::vec((1..4096u64, 0..12u32), 200..2000)) {
        let mut stays: Vec<Stay> = spans
            .iter()
            .map(|&(from, length)| {
                let to = from + (1 << length);
                let to = Some((mark(to), End::Overwritten));
                Stay { origin: None, slot: Slot::Element(0), target: 0, from: mark(from), to }
            })
            .collect();
        stays.sort_by_key(|stay| stay.to.map(|(to, _)| to.record));
        let (mut arranger, mut groups) = (Arranger::with(4, 1 << 16), Vec::new());
        stays.into_iter().for_each(|stay| arranger.add(stay, |group| groups.push(group)));
        arranger.finish(|group| groups.push(group));
        for record in (0..8192).step_by(97) {
            let tick = mark(record).tick;
            let may_have = |group: &&Group| {
                let first = group.iter().map(|stay| stay.from.tick).min();
                let last = group.iter().filter_map(|stay| stay.to).map(|(to, _)| to.tick).max();
                first <= Some(tick) && last >= Some(tick)
            };
            // One for each level of 2^13 records above the smallest pieces of 2^4, and neighbours that share a tick.
            prop_assert!(groups.iter().filter(may_have).count() <= 2 * 10);
        }
    }
}
