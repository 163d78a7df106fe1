//! Which objects die because their holders die, with their key object (Hayes, OOPSLA 1991; Hirzel, Diwan, Hertz, OOPSLA
//! 2003).
//!
//! Objects made unreachable by the same record die together. The key objects among them are those that none of the
//! others refers to; all others die with the key object from which they are reachable. In a cycle that is not reachable
//! from another, the object that died first counts as key.

use std::cmp::Reverse;
use std::fmt::Write;
use std::ops::ControlFlow;

use et_names::units::{bytes, counted, number, percent};
use et_reader::made_in::{MadeIn, Places};
use et_reader::model::{Heap, Node, Stacks};
use et_reader::record::{Alloc, ObjectId, Record};
use et_reader::source::{Deaths, Reading, Source, SourceError};
use et_reader::told::{Hold, Told};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::labels::{Labels, Place};
use crate::table::{more, table};
use et_reader::amount::Amount;

/// Result: with which objects others die.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connectivity {
    /// All objects that died.
    pub died: Amount,
    /// Those that died with a key object.
    pub with_key: Amount,
    /// Key objects that others died with.
    pub keys: Amount,
    /// Objects that died alone.
    pub alone: Amount,
    /// Cycles that nothing else led to.
    pub cycles: u64,
    /// Sites by bytes that die with a key object.
    pub sites: Vec<SiteLine>,
    /// Number of sites.
    pub site_count: usize,
}

/// With what a site's objects die.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteLine {
    #[serde(flatten)]
    pub place: Place,
    /// Objects that died.
    pub died: Amount,
    /// Those that died with a key object.
    pub with_key: Amount,
    /// Where most of these key objects come from.
    pub key: Option<KeyLine>,
}

/// The key objects that most objects of a site die with.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyLine {
    /// Their allocation site.
    #[serde(flatten)]
    pub place: Place,
    /// How many objects die with them.
    pub objects: u64,
}

type Key = (MadeIn, TypeId);

#[derive(Clone, Copy, Debug)]
struct Data {
    place: Key,
    size: u64,
    /// The deaths that it was last part of.
    group: u64,
    is_held: bool,
    is_reached: bool,
}

#[derive(Default)]
struct Tally {
    died: Amount,
    with_key: Amount,
    keys: FxHashMap<Key, u64>,
}

#[derive(Default)]
struct Finder {
    heap: Heap<Data>,
    /// Objects that die at the current record.
    dying: Vec<(ObjectId, Node)>,
    groups: u64,
    sites: FxHashMap<Key, Tally>,
    died: Amount,
    with_key: Amount,
    keys: Amount,
    alone: Amount,
    cycles: u64,
    stack: Vec<Node>,
}

impl Finder {
    /// `place` says where an object is made.
    fn told(&mut self, told: &Told, place: impl FnOnce(&Alloc) -> MadeIn) {
        if let Told::Record(Record::Death { object, .. }) = told {
            if let Some(node) = self.heap.node(*object) {
                self.dying.push((*object, node));
            }
            return;
        }
        if !self.dying.is_empty() {
            self.bury();
        }
        match *told {
            Told::Record(Record::Alloc(alloc)) => {
                let place = (place(&alloc), alloc.ty);
                let data = Data { place, size: alloc.size, group: 0, is_held: false, is_reached: false };
                self.heap.insert(alloc.object, data);
            }
            Told::Record(Record::Update { origin, slot, target, .. })
            | Told::Hold(Hold::Initial { origin, slot, target }) => {
                self.heap.put(origin, slot, target);
            }
            Told::Record(_) | Told::Hold(_) => {}
        }
    }

    fn bury(&mut self) {
        let dying = std::mem::take(&mut self.dying);
        self.groups += 1;
        let group = self.groups;
        for (_, node) in &dying {
            let data = self.heap.data(*node);
            (data.group, data.is_held, data.is_reached) = (group, false, false);
        }
        let mut held = std::mem::take(&mut self.stack);
        for (_, node) in &dying {
            self.heap.get(*node).refs().for_each(|target| {
                if target != *node {
                    held.push(target);
                }
            });
        }
        for target in held.drain(..) {
            let data = self.heap.data(target);
            data.is_held |= data.group == group;
        }
        self.stack = held;
        for (_, node) in &dying {
            if !self.heap.get(*node).data.is_held {
                self.key(*node, group);
            }
        }
        for (_, node) in &dying {
            if !self.heap.get(*node).data.is_reached {
                self.cycles += 1;
                self.key(*node, group);
            }
        }
        for (object, node) in &dying {
            self.heap.forget(*object);
            self.heap.take_refs(*node);
            self.heap.free(*node);
        }
        self.dying = dying;
        self.dying.clear();
    }

    /// A key object, with all of its group that it leads to and that no other has led to yet.
    fn key(&mut self, key: Node, group: u64) {
        let data = self.heap.data(key);
        data.is_reached = true;
        let Data { place, size, .. } = *data;
        self.died.add(size);
        self.sites.entry(place).or_default().died.add(size);
        let mut with = 0;
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(key);
        let mut found = Vec::new();
        while let Some(node) = stack.pop() {
            self.heap.get(node).refs().for_each(|target| found.push(target));
            for target in found.drain(..) {
                let data = self.heap.data(target);
                if data.group != group || data.is_reached {
                    continue;
                }
                data.is_reached = true;
                let Data { place: of_target, size, .. } = *data;
                with += 1;
                self.died.add(size);
                self.with_key.add(size);
                let tally = self.sites.entry(of_target).or_default();
                tally.died.add(size);
                tally.with_key.add(size);
                *tally.keys.entry(place).or_default() += 1;
                stack.push(target);
            }
        }
        self.stack = stack;
        if with > 0 { self.keys.add(size) } else { self.alone.add(size) }
    }
}

/// Reads the trace and finds out; `top` sites are listed.
pub fn connectivity(source: &Source, labels: Labels<'_>, top: usize) -> Result<Connectivity, SourceError> {
    let mut finder = Finder::default();
    let reading = Reading { deaths: Deaths::Trace, holders: source.tells_holders(), ..Reading::default() };
    let (mut stacks, mut places) = (Stacks::<()>::default(), Places::new(labels.naming()));
    source.for_each_told(reading, |told, at| {
        if let Told::Record(record) = told {
            stacks.record(record);
        }
        finder.told(told, |alloc| places.on_stack(alloc.into(), stacks.methods(alloc.thread), at.types));
        ControlFlow::Continue(())
    })?;
    finder.bury();
    let Finder { sites, died, with_key, keys, alone, cycles, .. } = finder;
    let site_count = sites.len();
    let mut sites: Vec<_> = sites.into_iter().collect();
    sites.sort_unstable_by_key(|(place, tally)| (Reverse((tally.with_key.bytes, tally.died.bytes)), *place));
    sites.truncate(top);
    let line = |(place, tally): (Key, Tally)| {
        let key = tally.keys.iter().max_by_key(|&(place, objects)| (*objects, Reverse(*place)));
        SiteLine {
            place: labels.place(place),
            died: tally.died,
            with_key: tally.with_key,
            key: key.map(|(&key, &objects)| KeyLine { place: labels.place(key), objects }),
        }
    };
    let sites = sites.into_iter().map(line).collect();
    Ok(Connectivity { died, with_key, keys, alone, cycles, sites, site_count })
}

/// The answer first, then a table.
pub fn render(found: &Connectivity) -> String {
    let mut out = String::new();
    let died = found.died;
    let share = |amount: Amount| percent(amount.objects, died.objects);
    let _ = writeln!(out, "{} died:", counted(died.objects, "object"));
    let mut line = |amount: Amount, what: &str| {
        let _ = writeln!(out, "  {:>11} {:>7}  {what}", number(amount.objects), share(amount));
    };
    line(found.with_key, "with a key object that led to them");
    line(found.keys, "as key objects of others");
    line(found.alone, "alone");
    if found.cycles > 0 {
        let _ = writeln!(out, "{} died with nothing else leading to them.", counted(found.cycles, "cycle"));
    }
    out.push('\n');
    let rows: Vec<Vec<String>> = found
        .sites
        .iter()
        .map(|line| {
            let key =
                line.key.as_ref().map_or_else(String::new, |key| format!("{} at {}", key.place.ty, key.place.site));
            vec![
                bytes(line.with_key.bytes),
                number(line.died.objects),
                percent(line.with_key.objects, line.died.objects),
                line.place.ty.clone(),
                line.place.site.clone(),
                key,
            ]
        })
        .collect();
    table(&mut out, 3, &["with key", "died", "of them", "class", "site", "most with"], &rows);
    more(&mut out, found.site_count, found.sites.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_names::FieldId;
    use et_names::SiteId;
    use et_reader::made_in::Means;
    use et_reader::record::{AllocKind, Slot, ThreadId};
    use proptest::prelude::*;

    const THREAD: ThreadId = ThreadId(1);

    fn alloc(finder: &mut Finder, object: u64) {
        let (kind, object, ty) = (AllocKind::New, ObjectId(object), TypeId(object as u32));
        let alloc =
            Alloc { kind, object, size: 8, ty, site: SiteId(0), length: 0, stack: Default::default(), thread: THREAD };
        finder.told(&Told::Record(Record::Alloc(alloc)), |_| MadeIn::Nowhere(Means::Native));
    }

    proptest! {
        /// By definition: which of the dying are held by another of them, and from which key each can be reached.
        #[test]
        fn all_but_keys_die_with_one(
            edges in prop::collection::vec((1..9u64, 0..3u32, 1..9u64), 0..25), dying in prop::collection::btree_set(1..9u64, 1..8),
        ) {
            let mut finder = Finder::default();
            (1..9).for_each(|object| alloc(&mut finder, object));
            let mut slots = std::collections::BTreeMap::new();
            for &(origin, slot, target) in &edges {
                let (from, to, slot_of) = (ObjectId(origin), ObjectId(target), Slot::Field(FieldId(slot)));
                let update = Record::Update { old: ObjectId::NULL, origin: from, target: to, slot: slot_of, thread: THREAD };
                finder.told(&Told::Record(update), |alloc| unreachable!("{alloc:?}"));
                slots.insert((origin, slot), target);
            }
            for &object in &dying {
                let death = Record::Death { object: ObjectId(object), thread: THREAD };
                finder.told(&Told::Record(death), |alloc| unreachable!("{alloc:?}"));
            }
            finder.bury();
            let holds = |from: u64, to: u64| slots.iter().any(|(&(origin, _), &target)| origin == from && target == to);
            let held = |object: u64| dying.iter().any(|&other| other != object && holds(other, object));
            let keys: Vec<u64> = dying.iter().copied().filter(|&object| !held(object)).collect();
            let mut reached = keys.clone();
            let mut at = 0;
            while at < reached.len() {
                let more: Vec<u64> = dying.iter().copied().filter(|&to| holds(reached[at], to) && !reached.contains(&to)).collect();
                reached.extend(more);
                at += 1;
            }
            prop_assert_eq!(finder.died.objects, dying.len() as u64);
            prop_assert_eq!(finder.cycles > 0, reached.len() < dying.len());
            if finder.cycles == 0 {
                prop_assert_eq!(finder.keys.objects + finder.alone.objects, keys.len() as u64);
            }
            let alone = keys.iter().filter(|&&key| !dying.iter().any(|&to| to != key && holds(key, to))).count();
            prop_assert!(finder.alone.objects >= alone as u64);
            prop_assert_eq!(finder.heap.len(), 8 - dying.len());
        }
    }
}
