//! Compares readings by blocks with the recording of all records.

mod switches;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::blocks::glimpse::{Glimpse, Glimpses, StackThen};
use crate::lifetimes::{Played, Recording, Step};
use crate::model::Stacks;
use crate::moment::Moment;
use crate::observed::usage::UsageObserver;
use crate::observed::{Observed, Observer};
use crate::reading;
use crate::record::{AllocKind, Clock, ObjectId, Record, Totals};
use crate::source::{Deaths, Source};
use crate::survival::Marker;

#[derive(Debug, Default)]
struct Collected {
    rows: Vec<LifeRow>,
    clearings: Vec<KnownStep>,
}

impl Rows for Collected {
    fn row(&mut self, row: &LifeRow) {
        self.rows.push(*row);
    }
    fn clearing(&mut self, clearing: &KnownStep) {
        self.clearings.push(*clearing);
    }
}

/// Ways to read.
pub(crate) fn ways() -> impl Strategy<Value = (bool, bool, usize, usize)> {
    (any::<bool>(), prop::bool::weighted(0.2), 1..4usize, prop_oneof![Just(1usize), 1..60usize])
}

/// What the recording of all records says of an object: its allocation and the clock then, and its death: the step, the
/// clock, the thread, the number of the record.
type Expected = BTreeMap<u64, (Alloc, u64, Option<(u64, u64, ThreadId)>)>;

fn expected(trace: &Trace, recording: &Recording) -> (Expected, Vec<(u64, ObjectId, ObjectId)>, Totals, Usage) {
    let mut all = Expected::new();
    let mut numbers: FxHashMap<ObjectId, u64> = FxHashMap::default();
    let (mut clearings, mut totals) = (Vec::new(), Totals::default());
    let mut usage = UsageObserver::new(trace.naming());
    let (mut now, mut tick) = (0, 0);
    let clock = Clock::default().of(trace.events);
    recording
        .replay_steps(|played| {
            match played {
                Played::Step(number, step) => {
                    now = number;
                    if let Some(record) = step.record() {
                        totals.count(&record);
                        usage.record(&record, &trace.types, true);
                        if let Record::Alloc(alloc) = record {
                            numbers.insert(alloc.object, all.len() as u64);
                            all.insert(all.len() as u64, (alloc, tick, None));
                        }
                        tick += record.ticks(clock);
                    }
                }
                Played::Found(record) => {
                    totals.count(record);
                    usage.record(record, &trace.types, true);
                    match *record {
                        Record::Death { object, thread } => {
                            all.get_mut(&numbers[&object]).unwrap().2 = Some((now, tick, thread));
                        }
                        Record::Update { old, origin, .. } => clearings.push((now, old, origin)),
                        _ => unreachable!(),
                    }
                }
                Played::Time(_) | Played::At(_) => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    clearings.sort_unstable();
    (all, clearings, totals, usage.finish(&trace.types))
}

/// What stacks hold, in an order that does not depend on that of slots.
fn held(by_stacks: &[HeldByStack]) -> Vec<HeldByStack> {
    let mut all = by_stacks.to_vec();
    all.iter_mut().for_each(|held| held.objects.sort_unstable());
    all
}

/// Number of records of each thread, computed ones not counted.
fn records_by_thread(recording: &Recording) -> BTreeMap<u32, u64> {
    let mut records = BTreeMap::new();
    recording
        .replay_steps(|played| {
            if let Played::Step(_, step) = played
                && let Some(record) = step.record()
            {
                *records.entry(record.thread().0).or_default() += 1;
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    records
}

/// Reads a trace; again by events if packed words did not tell all that its blocks name.
fn read_in_that_way(trace: &Trace, wanted: Wanted, options: &Options) -> Result<(Collected, Passed), TestCaseError> {
    read_again_if_surprised(trace, wanted, options, || Ok(Collected::default()))
        .map_err(|error| TestCaseError::fail(error.to_string()))
}

/// Checks that a trace is read by blocks as the recording of its records says.
pub(crate) fn agrees(
    trace: &Trace,
    recording: &Recording,
    by_records: &Source,
    outcome: &Outcome,
    (by_events, in_order, threads, most_rows): (bool, bool, usize, usize),
) -> Result<(), TestCaseError> {
    let options = Options { by_events, in_order, threads: Some(threads), most_rows: Some(most_rows), glimpses: true };
    let (collected, passed) = read_in_that_way(trace, Wanted::Deaths, &options)?;
    let (all, clearings, totals, usage) = expected(trace, recording);
    let found: Expected = collected
        .rows
        .iter()
        .map(|row| {
            let death = row.death.map(|death| (death.step, death.tick, death.thread));
            (row.number, (row.alloc, row.tick, death))
        })
        .collect();
    prop_assert_eq!(found.len(), collected.rows.len(), "no number occurs twice");
    let other = found.iter().zip(&all).find(|(found, expected)| found != expected);
    prop_assert!(other.is_none() && found.len() == all.len(), "{other:#?}");
    let mut found: Vec<_> = collected
        .clearings
        .iter()
        .filter_map(|clearing| match *clearing {
            KnownStep::Found { after, record: Record::Update { old, origin, .. } } => Some((after, old, origin)),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    prop_assert_eq!(found, clearings);
    prop_assert_eq!(passed.outcome.totals, totals);
    prop_assert_eq!(&passed.usage, &usage);
    glimpses_agree(&passed.glimpses, recording)?;
    prop_assert_eq!(&passed.outcome.cut_off, &outcome.cut_off);
    prop_assert_eq!(&passed.outcome.anomalies, &outcome.anomalies);
    let cost =
        recording.replay(|_| ControlFlow::Continue(())).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(held(&passed.held_by_stacks), held(&cost.held_by_stacks));
    let records = passed.records.iter().map(|(&thread, &records)| (thread, records));
    let records = records.filter(|(_, records)| *records > 0).collect();
    prop_assert_eq!(records_by_thread(recording), records);
    let in_order = |rows: &[LifeRow]| rows.is_sorted_by_key(|row| row.death.map(|death| death.step));
    let dead = collected.rows.iter().filter(|row| row.death.is_some()).count();
    let (start, end) = (passed.late.rows.start as usize, passed.late.rows.end as usize);
    prop_assert_eq!(end, dead, "those that are late come last");
    prop_assert!(in_order(&collected.rows[..start]) && in_order(&collected.rows[start..end]));
    prop_assert!(collected.rows[end..].is_sorted_by_key(|row| row.number));
    // A store into a weak slot that held null by then is a step of the recording.
    let mut steps = BTreeMap::new();
    recording
        .replay_steps(|played| {
            if let Played::Step(number, step) = played {
                steps.insert(number, *step);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    for clearing in &collected.clearings {
        if let KnownStep::Cleared { at } = clearing {
            let is_cleared = matches!(steps.get(at), Some(Step::WeakUpdate { old: ObjectId::NULL, .. }));
            prop_assert!(is_cleared, "{:?}", steps.get(at));
        }
    }
    let (mut found, expected) = (passed.observed(by_records), observed(by_records));
    // What died with an object that is found late may have been dropped before.
    if !passed.late.rows.is_empty() {
        found.held_by_locals.clone_from(&expected.held_by_locals);
    }
    prop_assert_eq!(found, expected);
    births_agree(trace, outcome, &all, &options)
}

fn observed(by_records: &Source) -> Observed {
    let reading = reading::Reading::default();
    let mut observer = Observer::new(by_records, reading);
    let ending = by_records
        .for_each(reading, |record, at| {
            observer.record(record, at);
            ControlFlow::Continue(())
        })
        .unwrap();
    observer.finish(&ending)
}

/// What slots hold: of an object, or static fields.
type SlotsThen = BTreeMap<(ObjectId, u32), ObjectId>;

/// Checks that glimpses are the heap as it is when the records are followed.
fn glimpses_agree(glimpses: &Glimpses, recording: &Recording) -> Result<(), TestCaseError> {
    let mut numbers: FxHashMap<ObjectId, u64> = FxHashMap::default();
    let mut alive: BTreeMap<ObjectId, u64> = BTreeMap::new();
    let mut slots = SlotsThen::new();
    let (mut stacks, mut records, mut left) = (Stacks::<()>::default(), 0, glimpses.all.iter().peekable());
    let mut results = Vec::new();
    let mut check = |glimpse: &Glimpse, alive: &BTreeMap<ObjectId, u64>, slots: &SlotsThen, stacks: &Stacks| {
        let number = |id: &ObjectId| alive.get(id).copied();
        let mut expected: Vec<(Option<u64>, u32, u64)> = slots
            .iter()
            .filter_map(|((origin, slot), target)| match origin.is_null() {
                true => Some((None, *slot, number(target)?)),
                false => Some((Some(number(origin)?), *slot, number(target)?)),
            })
            .collect();
        expected.sort_unstable();
        let living: FxHashSet<u64> = alive.values().copied().collect();
        let statics = glimpse.statics.iter().map(|&(field, target)| (None, field, target));
        let mut found: Vec<_> = statics.filter(|(.., target)| living.contains(target)).collect();
        let damaged = glimpse.each_reference(|origin, slot, target| {
            if living.contains(&origin) && living.contains(&target) {
                found.push((Some(origin), slot, target));
            }
        });
        found.sort_unstable();
        let receivers: Vec<_> = stacks
            .iter()
            .filter(|(_, stack)| !stack.frames.is_empty())
            .map(|(thread, stack)| {
                let frame = |frame: &crate::model::Frame| (frame.method, number(&frame.receiver));
                (thread, stack.frames.iter().map(frame).collect::<Vec<_>>(), number(&stack.in_flight))
            })
            .collect();
        let receivers: BTreeMap<_, _> =
            receivers.into_iter().map(|(thread, frames, in_flight)| (thread, (frames, in_flight))).collect();
        // Another exception may have taken the place of one in flight, which is dead then.
        let lives = |number: Option<u64>| number.filter(|number| living.contains(number));
        let stack = |stack: &StackThen| {
            let frames = stack.frames.iter().map(|&(method, receiver)| (method, lives(receiver)));
            (stack.thread, (frames.collect::<Vec<_>>(), lives(stack.in_flight)))
        };
        let there: BTreeMap<_, _> = glimpse.stacks.iter().map(stack).collect();
        results.push((damaged, found, expected, there, receivers));
    };
    recording
        .replay_steps(|played| {
            match played {
                Played::Step(_, step) => {
                    if step.record().is_some() {
                        while let Some(glimpse) = left.next_if(|glimpse| glimpse.records == records) {
                            check(glimpse, &alive, &slots, &stacks);
                        }
                        records += 1;
                    }
                    match step {
                        Step::Record(Record::Update { origin, target, slot, .. })
                        | Step::Initial { origin, target, slot, weak: false } => match target.is_null() {
                            true => _ = slots.remove(&(*origin, slot.number())),
                            false => _ = slots.insert((*origin, slot.number()), *target),
                        },
                        Step::Record(record) => {
                            if let Record::Alloc(alloc) = record {
                                let number = numbers.len() as u64;
                                numbers.insert(alloc.object, number);
                                alive.insert(alloc.object, number);
                            }
                            stacks.record(record);
                        }
                        Step::WeakUpdate { .. } | Step::Held { .. } | Step::Initial { .. } => {}
                    }
                }
                Played::Found(Record::Death { object, .. }) => _ = alive.remove(object),
                Played::Found(_) | Played::Time(_) | Played::At(_) => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    left.for_each(|glimpse| check(glimpse, &alive, &slots, &stacks));
    for (damaged, found, expected, there, receivers) in results {
        prop_assert!(damaged.is_some());
        prop_assert_eq!(found, expected);
        prop_assert_eq!(there, receivers);
    }
    Ok(())
}

/// Checks that a reading of births says of walks through the heap, and of what they say of objects, what the records do.
pub(crate) fn fates_agree(
    trace: &Trace,
    by_records: &Source,
    (by_events, in_order, threads, most_rows): (bool, bool, usize, usize),
) -> Result<(), TestCaseError> {
    let options = Options { by_events, in_order, threads: Some(threads), most_rows: Some(most_rows), glimpses: true };
    let (collected, passed) = read_in_that_way(trace, Wanted::Births, &options)?;
    let Some(mut marker) = Marker::of(trace).unwrap() else {
        prop_assert!(passed.fates.is_none());
        return Ok(());
    };
    let reading = reading::Reading { deaths: Deaths::None, places: true, ..reading::Reading::default() };
    let clock = by_records.clock(reading.clock);
    let mut now = Moment::default();
    let mut born = Vec::new();
    by_records
        .for_each(reading, |record, at| {
            if let Some(ticket) = at.place.ticket() {
                marker.at(ticket, || (now, born.len() as u64));
            }
            now.nanos = now.nanos.max(at.place.wall().map(|wall| wall.begin.0));
            if let Record::Alloc(alloc) = record {
                marker.born(alloc.object, born.len() as u64);
                born.push(alloc.object);
                now.bytes += if alloc.kind == AllocKind::Initial { 0 } else { alloc.size };
            }
            now.tick += record.ticks(clock);
            ControlFlow::Continue(())
        })
        .unwrap();
    let expected = marker.finish(now, born.len() as u64);
    let found = passed.fates.unwrap_or_default();
    prop_assert_eq!(found.survival(), expected.survival());
    prop_assert_eq!(collected.rows.len(), born.len());
    for (number, object) in (0..).zip(born) {
        prop_assert_eq!(found.of(number, object), expected.of(number, object), "{}", number);
    }
    Ok(())
}

/// Checks that a reading of births says of them what a recording does, and counts the same records.
fn births_agree(trace: &Trace, outcome: &Outcome, all: &Expected, options: &Options) -> Result<(), TestCaseError> {
    let (collected, passed) = read_in_that_way(trace, Wanted::Births, options)?;
    let found: Vec<_> = collected.rows.iter().map(|row| (row.number, row.alloc, row.tick, row.death)).collect();
    let expected: Vec<_> = all.iter().map(|(&number, &(alloc, tick, _))| (number, alloc, tick, None)).collect();
    prop_assert_eq!(found, expected);
    prop_assert_eq!(passed.outcome.totals, outcome.totals);
    prop_assert_eq!(&passed.outcome.cut_off, &outcome.cut_off);
    prop_assert_eq!(&passed.outcome.anomalies, &outcome.anomalies);
    Ok(())
}
